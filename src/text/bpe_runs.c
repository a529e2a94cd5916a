/* bpe_runs.c: see bpe_runs.h. A file has for each piece its key, its count
 * and, if it is long, its length and bytes: numbers as this machine has them,
 * since no other reads them. */
#include "text/bpe_runs.h"

#include "base/check.h"

#include <string.h>

enum { BUFFER_BYTES = 16 * 1024, HEAD_BYTES = 24, LENGTH_BYTES = 4 };

/* ---- pieces ---- */

pl_pretoken_key pl_run_long_key(const char *text, size_t bytes)
{
    pl_pretoken_key sum = { bytes, ~(uint64_t)bytes }, part;
    for (size_t at = 0; at < bytes; at += sizeof part) {
        part = (pl_pretoken_key){ 0, 0 };
        size_t left = bytes - at;
        memcpy(&part, text + at, left < sizeof part ? left : sizeof part);
        sum.low = (sum.low ^ part.low) * 0x9e3779b97f4a7c15u;
        sum.high = (sum.high ^ part.high) * 0xc2b2ae3d27d4eb4fu;
        sum.low ^= sum.high >> 29;
        sum.high ^= sum.low >> 31;
    }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    sum.high |= (uint64_t)PL_RUN_LONG << 56;
#else
    sum.high |= PL_RUN_LONG;
#endif
    return sum;
}

int pl_run_is_long(pl_pretoken_key key)
{
    return pl_pretoken_short_length(key) == PL_RUN_LONG;
}

int pl_run_compare(const pl_run_count *a, const pl_run_count *b)
{
    uint64_t one = pl_pretoken_hash(a->key), other = pl_pretoken_hash(b->key);
    if (one != other)
        return one < other ? -1 : 1;
    if (a->key.low != b->key.low)
        return a->key.low < b->key.low ? -1 : 1;
    if (a->key.high != b->key.high)
        return a->key.high < b->key.high ? -1 : 1;
    if (!pl_run_is_long(a->key))
        return 0;
    if (a->bytes->length != b->bytes->length)
        return a->bytes->length < b->bytes->length ? -1 : 1;
    int order = memcmp(a->bytes->text, b->bytes->text, a->bytes->length);
    return (order > 0) - (order < 0);
}

const char *pl_run_text(const pl_run_count *count,
                        char room[PL_PRETOKEN_SHORT_BYTES + 1], size_t *bytes)
{
    if (pl_run_is_long(count->key)) {
        *bytes = count->bytes->length;
        return count->bytes->text;
    }
    *bytes = pl_pretoken_short_length(count->key);
    memcpy(room, &count->key, sizeof count->key);
    return room;
}

/* ---- writing ---- */

pl_status pl_run_writer_open(pl_run_writer *writer, const char *path,
                             pl_heap *heap, pl_error *err)
{
    *writer = (pl_run_writer){ .path = path, .file = PL_FILE_CLOSED };
    pl_status status = pl_heap_take(heap, &writer->buffer, BUFFER_BYTES, 1,
                                    err);
    return status ? status : pl_file_create(&writer->file, path, err);
}

static pl_status put(pl_run_writer *writer, const void *data, size_t bytes,
                     pl_error *err)
{
    if (bytes > BUFFER_BYTES - writer->used) {
        pl_status status = pl_file_append(&writer->file, writer->buffer,
                                          writer->used, err);
        writer->used = 0;
        if (status)
            return status;
    }
    if (bytes > BUFFER_BYTES)
        return pl_file_append(&writer->file, data, bytes, err);
    memcpy(writer->buffer + writer->used, data, bytes);
    writer->used += bytes;
    return PL_OK;
}

pl_status pl_run_write(pl_run_writer *writer, const pl_run_count *count,
                       pl_error *err)
{
    char head[HEAD_BYTES];
    memcpy(head, &count->key, sizeof count->key);
    memcpy(head + sizeof count->key, &count->count, sizeof count->count);
    pl_status status = put(writer, head, sizeof head, err);
    if (status || !pl_run_is_long(count->key))
        return status;
    uint32_t length = count->bytes->length;
    if (length > writer->longest_bytes)
        writer->longest_bytes = length;
    status = put(writer, &length, LENGTH_BYTES, err);
    return status ? status : put(writer, count->bytes->text, length, err);
}

pl_status pl_run_writer_close(pl_run_writer *writer, pl_sorted_run *run,
                              pl_error *err)
{
    pl_status status = pl_file_append(&writer->file, writer->buffer,
                                      writer->used, err);
    if (status) {
        pl_run_writer_discard(writer);
        return status;
    }
    *run = (pl_sorted_run){ .path = writer->path,
                            .longest_bytes = writer->longest_bytes };
    status = pl_file_close(&writer->file, err);
    if (status)
        pl_file_remove_quietly(run->path);
    return status;
}

void pl_run_writer_discard(pl_run_writer *writer)
{
    pl_file_discard(&writer->file);
}

/* ---- the union ---- */

typedef struct source {
    pl_run_count now; /* count 0: at its end */
    const pl_sorted_run *run;
    size_t at; /* in memory: the next; in a file's buffer: the next byte */
    pl_file file;
    char *buffer;
    size_t filled, capacity;
    pl_run_bytes *bytes; /* of `now`, if it is long and from a file */
} source;

static int is_file(const source *s)
{
    return s->run->path != NULL;
}

/* Makes `bytes` bytes lie at buffer[at]; *have is 0 at the file's end. */
static pl_status refill(source *s, size_t bytes, int *have, pl_error *err)
{
    size_t left = s->filled - s->at, got;
    *have = 1;
    if (left >= bytes)
        return PL_OK;
    PL_CHECK(bytes <= s->capacity);
    memmove(s->buffer, s->buffer + s->at, left);
    s->at = 0;
    pl_status status = pl_file_read_some(&s->file, s->buffer + left,
                                         s->capacity - left, &got, err);
    if (status)
        return status;
    s->filled = left + got;
    *have = s->filled >= bytes;
    return PL_OK;
}

/* The same inside a record, where the file can't end. */
static pl_status need(source *s, size_t bytes, pl_error *err)
{
    int have;
    pl_status status = refill(s, bytes, &have, err);
    if (!status && !have)
        return pl_fail(err, PL_E_IO,
                       "%s was cut off while it was in use. Is another "
                       "process working in its folder?",
                       pl_path_shown(s->run->path));
    return status;
}

static pl_status next_from_file(source *s, pl_error *err)
{
    int have;
    uint32_t length;
    s->now.count = 0;
    pl_status status = refill(s, 1, &have, err);
    if (!status && have)
        status = need(s, HEAD_BYTES, err);
    if (status || !have)
        return status;
    memcpy(&s->now.key, s->buffer + s->at, sizeof s->now.key);
    memcpy(&s->now.count, s->buffer + s->at + sizeof s->now.key,
           sizeof s->now.count);
    s->at += HEAD_BYTES;
    if (!pl_run_is_long(s->now.key))
        return PL_OK;
    status = need(s, LENGTH_BYTES, err);
    if (status)
        return status;
    memcpy(&length, s->buffer + s->at, LENGTH_BYTES);
    PL_CHECK(length <= s->run->longest_bytes);
    s->at += LENGTH_BYTES;
    status = need(s, length, err);
    if (status)
        return status;
    s->bytes->length = length;
    memcpy(s->bytes->text, s->buffer + s->at, length);
    s->now.bytes = s->bytes;
    s->at += length;
    return PL_OK;
}

static pl_status next(source *s, pl_error *err)
{
    if (is_file(s))
        return next_from_file(s, err);
    if (s->at < s->run->count)
        s->now = s->run->counts[s->at++];
    else
        s->now.count = 0;
    return PL_OK;
}

static pl_status open_source(source *s, const pl_sorted_run *run, pl_heap *heap,
                             pl_error *err)
{
    size_t longest = run->longest_bytes;
    *s = (source){ .run = run, .file = PL_FILE_CLOSED };
    if (is_file(s)) {
        s->capacity = longest > BUFFER_BYTES ? longest : BUFFER_BYTES;
        pl_status status = pl_heap_take(heap, &s->buffer, s->capacity, 1, err);
        if (!status)
            status = pl_heap_take(heap, &s->bytes, sizeof *s->bytes + longest,
                                  1, err);
        if (!status)
            status = pl_file_open_read(&s->file, run->path, err);
        if (status)
            return status;
    }
    return next(s, err);
}

static int before(const source *a, const source *b)
{
    if (a->now.count == 0 || b->now.count == 0)
        return a->now.count != 0 && b->now.count == 0;
    return pl_run_compare(&a->now, &b->now) < 0;
}

/* A binary heap of the sources, the first piece at its top. */
static void sink(source **heap, size_t count, size_t root)
{
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= count)
            return;
        if (child + 1 < count && before(heap[child + 1], heap[child]))
            child++;
        if (!before(heap[child], heap[root]))
            return;
        source *moved = heap[root];
        heap[root] = heap[child];
        heap[child] = moved;
        root = child;
    }
}

static pl_status step(source **heap, size_t count, pl_error *err)
{
    pl_status status = next(heap[0], err);
    sink(heap, count, 0);
    return status;
}

static pl_status unite(source **heap, size_t count, pl_heap *room,
                       size_t longest, pl_run_take *take, void *context,
                       pl_error *err)
{
    pl_run_bytes *kept;
    pl_status status = pl_heap_take(room, &kept, sizeof *kept + longest, 1,
                                    err);
    for (size_t root = count / 2; !status && root-- > 0;)
        sink(heap, count, root);
    while (!status && count > 0 && heap[0]->now.count > 0) {
        pl_run_count sum = heap[0]->now;
        if (pl_run_is_long(sum.key)) { /* its source reads on */
            kept->length = sum.bytes->length;
            memcpy(kept->text, sum.bytes->text, kept->length);
            sum.bytes = kept;
        }
        status = step(heap, count, err);
        while (!status && heap[0]->now.count > 0 &&
               pl_run_compare(&heap[0]->now, &sum) == 0) {
            sum.count += heap[0]->now.count;
            status = step(heap, count, err);
        }
        if (!status)
            status = take(context, &sum, err);
    }
    return status;
}

pl_status pl_run_merge(const pl_sorted_run *runs, size_t count,
                       size_t limit_bytes, pl_run_take *take, void *context,
                       pl_error *err)
{
    pl_heap room = pl_heap_make(limit_bytes);
    source *sources, **heap;
    size_t longest = 0, opened = 0;
    pl_status status = pl_heap_take(&room, &sources, count, sizeof *sources,
                                    err);
    if (!status)
        status = pl_heap_take(&room, &heap, count, sizeof(source *), err);
    for (; !status && opened < count; opened++) {
        const pl_sorted_run *run = &runs[opened];
        heap[opened] = &sources[opened];
        longest = run->longest_bytes > longest ? run->longest_bytes : longest;
        status = open_source(&sources[opened], run, &room, err);
    }
    if (!status)
        status = unite(heap, count, &room, longest, take, context, err);
    while (opened-- > 0)
        pl_file_abandon(&sources[opened].file);
    pl_heap_close(&room);
    return status;
}
