/* shard_check.c: see shard_check.h. Owns the file in the cache. */
#include "data/shard_check.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    READ_BYTES = 1024 * 1024,
    LINE_BYTES = 7 * 21 + 1, /* seven numbers and their blanks */
    MAX_CACHE_BYTES = 64 * 1024 * 1024,
};

typedef struct job {
    const pl_shard_set *set;
    int32_t vocab_size;
    const pl_log *log;
    pl_heap heap;
    pl_error *err;
    char path[PL_PATH_BYTES]; /* in the cache; "": nowhere */
    const char *known;        /* what it says */
    const char *at;           /* behind the line that was found last */
    char *text;               /* what it will say */
    size_t text_bytes;
    int learnt; /* something that it doesn't say yet */
    unsigned char *buffer;
    uint64_t done_bytes, total_bytes;
    double began, said;
    uint64_t hash; /* of all shards so far */
} job;

/* ---- the cache ---- */

/* What is known of a shard's tokens. */
typedef struct finding {
    uint32_t largest;
    uint64_t hash;
} finding;

/* A set's file has the name of its first shard's place on the disk, and a line
 * for each shard: its stamp, its largest id, and the hash of its tokens. */
static pl_status open_cache(job *j, const char *folder)
{
    pl_file_stamp first;
    pl_file_kind kind;
    char name[64], *known;
    size_t bytes;
    pl_status status = pl_file_stamp_of(&j->set->shards[0].file, &first,
                                        j->err);
    if (status)
        return status;
    snprintf(name, sizeof name, "tokens-%" PRIx64 "-%" PRIx64, first.device,
             first.inode);
    status = pl_path_join(j->path, folder, name, j->err);
    if (!status)
        status = pl_heap_take(&j->heap, &j->text, j->set->count, LINE_BYTES,
                              j->err);
    if (status)
        return status;
    /* One that can't be read is one that isn't there. */
    if (!pl_file_look(j->path, &kind, NULL) && kind == PL_FILE_PLAIN &&
        !pl_file_read_all(j->path, MAX_CACHE_BYTES, &j->heap, &known, &bytes,
                          NULL))
        j->known = j->at = known;
    return PL_OK;
}

static void stamp_text(const pl_file_stamp *s, char out[LINE_BYTES])
{
    snprintf(out, LINE_BYTES,
             "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ",
             s->device, s->inode, s->size_bytes, s->modified_ns, s->changed_ns);
}

/* The rest of a line; half of a number may be a smaller one. */
static int read_finding(const char *text, finding *out)
{
    char *end, *last;
    if (*text < '0' || *text > '9')
        return 0;
    const unsigned long largest = strtoul(text, &end, 10);
    if (*end != ' ' || end[1] < '0' || end[1] > '9' || largest > UINT32_MAX)
        return 0;
    out->largest = (uint32_t)largest;
    out->hash = strtoull(end + 1, &last, 10);
    return *last == '\n';
}

/* What was found under this stamp. */
static int recall(job *j, const char *stamp, finding *found)
{
    /* Lines are in the order of the shards, mostly. */
    const char *line = j->known ? strstr(j->at, stamp) : NULL;
    if (!line && j->known)
        line = strstr(j->known, stamp);
    if (!line || (line > j->known && line[-1] != '\n') ||
        !read_finding(line + strlen(stamp), found))
        return 0;
    j->at = line + strlen(stamp);
    return 1;
}

static void remember(job *j, const char *stamp, const finding *found)
{
    if (j->path[0])
        j->text_bytes += (size_t)snprintf(
            j->text + j->text_bytes, LINE_BYTES, "%s%lu %" PRIu64 "\n", stamp,
            (unsigned long)found->largest, found->hash);
}

/* A cache that can't be written is not worth a word. */
static void write_cache(const job *j, const char *folder)
{
    if (!j->path[0] || !j->learnt || pl_folder_make(folder, NULL))
        return;
    pl_status kept = pl_file_replace(j->path, j->text, j->text_bytes, NULL);
    (void)kept;
}

/* ---- reading ---- */

static uint32_t largest_narrow(const unsigned char *bytes, size_t count)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t id = bytes[2 * i] | (uint32_t)bytes[2 * i + 1] << 8;
        largest = id > largest ? id : largest;
    }
    return largest;
}

static uint32_t largest_wide(const unsigned char *bytes, size_t count)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        const unsigned char *at = bytes + 4 * i;
        uint32_t id = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
                      (uint32_t)at[3] << 24;
        largest = id > largest ? id : largest;
    }
    return largest;
}

static void say_progress(job *j)
{
    double now = pl_clock_seconds();
    if (now - j->began < 1.0 || now - j->said < 5.0)
        return;
    j->said = now;
    pl_log_say(
        j->log, PL_LOG_INFO,
        "checking the tokens of %s against the vocabulary, once: %.0f %% of %s",
        pl_path_shown(j->set->name),
        100.0 * (double)j->done_bytes / (double)j->total_bytes,
        pl_units_bytes(j->total_bytes).text);
}

/* Token by token, with the words for one that is outside. */
static pl_status find_outside(const job *j, const pl_shard *shard,
                              uint64_t first, size_t count)
{
    int32_t id;
    pl_status status = PL_OK;
    for (size_t i = 0; i < count && !status; i++)
        status = pl_shard_read(shard, first + i, 1, &id, j->vocab_size, j->err);
    return status;
}

static pl_status scan(job *j, const pl_shard *shard, finding *found)
{
    size_t width = pl_shard_token_bytes(shard->kind);
    uint64_t begin = pl_shard_header_bytes(shard->kind);
    *found = (finding){ 0 };
    for (uint64_t at = 0; at < shard->n_tokens;) {
        uint64_t left = shard->n_tokens - at;
        size_t count = READ_BYTES / width;
        if (left < count)
            count = (size_t)left;
        pl_status status = pl_file_pread_exact(
            &shard->file, j->buffer, count * width, begin + at * width, j->err);
        if (status)
            return status;
        uint32_t here = width == PL_SHARD_WIDE_BYTES
                            ? largest_wide(j->buffer, count)
                            : largest_narrow(j->buffer, count);
        if (here > found->largest)
            found->largest = here;
        found->hash = pl_hash_chain(found->hash, j->buffer, count * width);
        if (here >= (uint32_t)j->vocab_size)
            return find_outside(j, shard, at, count);
        at += count;
        j->done_bytes += count * width;
        say_progress(j);
    }
    return PL_OK;
}

static pl_status check_one(job *j, const pl_shard *shard)
{
    pl_file_stamp stamp;
    char text[LINE_BYTES];
    finding found;
    pl_status status = pl_file_stamp_of(&shard->file, &stamp, j->err);
    if (status)
        return status;
    int settled = pl_file_stamp_settled(&stamp, pl_clock_date());
    stamp_text(&stamp, text);
    if (!recall(j, text, &found) || found.largest >= (uint32_t)j->vocab_size) {
        status = scan(j, shard, &found);
        if (status)
            return status;
        j->learnt |= settled;
    } else {
        j->done_bytes += stamp.size_bytes;
    }
    if (settled)
        remember(j, text, &found);
    j->hash = pl_hash_chain(j->hash, &found.hash, sizeof found.hash);
    return PL_OK;
}

pl_status pl_shard_check(const pl_shard_set *set, int32_t vocab_size,
                         const char *cache_folder, const pl_log *log,
                         uint64_t *hash, pl_error *err)
{
    job j = { .set = set,
              .vocab_size = vocab_size,
              .log = log,
              .heap = pl_heap_make(2 * (size_t)MAX_CACHE_BYTES),
              .err = err,
              .began = pl_clock_seconds() };
    pl_status status = pl_heap_take(&j.heap, &j.buffer, READ_BYTES, 1, err);
    if (!status && cache_folder)
        status = open_cache(&j, cache_folder);
    for (size_t i = 0; i < set->count; i++)
        j.total_bytes += pl_file_size(&set->shards[i].file);
    for (size_t i = 0; i < set->count && !status; i++)
        status = check_one(&j, &set->shards[i]);
    if (!status && cache_folder)
        write_cache(&j, cache_folder);
    *hash = j.hash;
    pl_heap_close(&j.heap);
    return status;
}
