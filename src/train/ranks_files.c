/* ranks_files.c: checkpoints of a run that several processes share; see
 * ranks.h. Rank 0 asks, the others answer:
 *
 *   read, write   what they keep of a tensor, piece by piece
 *   look          whether what they write is there where rank 0 does
 *   fill          to write their parts there
 *   sum           to add to a checksum what they have written, or will: it goes
 *                 from rank to rank as the bytes stand in the file
 */
#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/units.h"
#include "store/checkpoint.h"
#include "store/limits.h"
#include "train/ranks.h"

#include <stdio.h>
#include <string.h>

typedef enum asked {
    ASKED_READ = 1,
    ASKED_WRITE, /* the elements follow */
    ASKED_SUM,   /* a pl_hash follows */
    ASKED_LOOK,  /* a path follows, PL_PATH_BYTES */
    ASKED_FILL,  /* likewise */
    ASKED_END
} asked;

/* What rank 0 wants of another, and what follows. */
typedef struct request {
    uint32_t kind, status; /* of an end: how it was */
    uint64_t set, slot;    /* of tensors.h */
    uint64_t first, count; /* elements of the other's buffer */
} request;

/* How it went, after ASKED_LOOK and ASKED_FILL. */
typedef struct report {
    uint32_t status, hash_version;
    uint64_t bytes; /* that were written */
    char text[PL_ERROR_TEXT_BYTES];
} report;

static pl_buffer_id buffer_of(const pl_run *run, size_t set, size_t slot)
{
    pl_buffer_id *ids;
    memcpy(&ids, (const char *)&run->gpt + set, sizeof ids);
    return ids[slot];
}

static pl_status send_all(pl_ranks *ranks, int to, const void *data,
                          size_t bytes, pl_error *err)
{
    pl_comm_message message;
    pl_status status = pl_comm_begin_send(ranks->comm, to, data, bytes,
                                          &message, err);
    if (!status)
        status = pl_comm_wait(ranks->comm, &message, err);
    return status;
}

static pl_status receive_all(pl_ranks *ranks, int from, void *data,
                             size_t bytes, pl_error *err)
{
    pl_comm_message message;
    pl_status status = pl_comm_begin_receive(ranks->comm, from, data, bytes,
                                             &message, err);
    if (!status)
        status = pl_comm_wait(ranks->comm, &message, err);
    return status;
}

/* A part of a tensor that one rank keeps. */
typedef struct part {
    int owner;
    size_t first;        /* in the owner's buffer */
    size_t count, bytes; /* of an element */
} part;

/* Reads or writes it. */
static pl_status move(pl_ranks *ranks, const pl_tensors_row *row, const part *p,
                      asked kind, char *data, pl_error *err)
{
    const size_t at = p->first * p->bytes, bytes = p->count * p->bytes;
    if (p->owner == pl_comm_rank(ranks->comm)) {
        pl_device *device = ranks->run->device;
        return kind == ASKED_READ
                   ? pl_device_read(device, row->buffer, at, data, bytes, err)
                   : pl_device_write(device, row->buffer, at, data, bytes, err);
    }
    const request r = { .kind = (uint32_t)kind,
                        .set = row->set,
                        .slot = row->slot,
                        .first = p->first,
                        .count = p->count };
    pl_status status = send_all(ranks, p->owner, &r, sizeof r, err);
    if (status)
        return status;
    return kind == ASKED_READ ? receive_all(ranks, p->owner, data, bytes, err)
                              : send_all(ranks, p->owner, data, bytes, err);
}

/* Elements `first` to `first + count` of a tensor, rank by rank. */
static pl_status move_all(pl_ranks *ranks, const pl_tensors_row *row,
                          size_t first, size_t count, asked kind, char *data,
                          pl_error *err)
{
    const pl_slices *slices = &ranks->run->gpt.slices;
    const size_t bytes = pl_tensor_dtype_bytes(row->info.dtype),
                 most = PL_RANKS_CHUNK_BYTES / bytes, end = first + count;
    pl_status status = PL_OK;
    for (size_t rank = 0; rank < slices->ranks && !status; rank++) {
        const pl_tensors_share own = pl_tensors_own(&ranks->run->gpt, row,
                                                    rank);
        const size_t from = own.first, to = from + own.count;
        size_t at = from > first ? from : first;
        while (at < to && at < end && !status) {
            const size_t left = (to < end ? to : end) - at,
                         n = left < most ? left : most;
            const part p = { (int)rank, own.at + at - from, n, bytes };
            status = move(ranks, row, &p, kind, data + (at - first) * bytes,
                          err);
            at += n;
        }
    }
    return status;
}

static pl_status read_moments(void *context, const pl_tensors_row *row,
                              size_t first, size_t count, void *out,
                              pl_error *err)
{
    return move_all(context, row, first, count, ASKED_READ, out, err);
}

static pl_status write_moments(void *context, const pl_tensors_row *row,
                               size_t first, size_t count, const void *in,
                               pl_error *err)
{
    /* which is only read */
    return move_all(context, row, first, count, ASKED_WRITE, (char *)(size_t)in,
                    err);
}

/* ---- all write ---- */

static pl_status sum_moments(void *context, const pl_tensors_row *row,
                             size_t rank, size_t first, size_t count,
                             pl_hash *hash, pl_error *err)
{
    pl_ranks *ranks = context;
    const pl_tensors_share own = pl_tensors_own(&ranks->run->gpt, row, rank);
    const request r = { .kind = ASKED_SUM,
                        .set = row->set,
                        .slot = row->slot,
                        .first = own.at + first - own.first,
                        .count = count };
    pl_status status = send_all(ranks, (int)rank, &r, sizeof r, err);
    if (!status)
        status = send_all(ranks, (int)rank, hash, sizeof *hash, err);
    if (!status)
        status = receive_all(ranks, (int)rank, hash, sizeof *hash, err);
    if (!status)
        pl_hash_adopt(hash);
    return status;
}

/* All others at once. */
static pl_status ask_all(pl_ranks *ranks, asked kind,
                         const char path[PL_PATH_BYTES], pl_error *err)
{
    const request r = { .kind = (uint32_t)kind };
    pl_status status = PL_OK;
    for (int i = 1; i < pl_comm_ranks(ranks->comm) && !status; i++) {
        status = send_all(ranks, i, &r, sizeof r, err);
        if (!status)
            status = send_all(ranks, i, path, PL_PATH_BYTES, err);
    }
    return status;
}

/* What they all report. */
typedef struct reports {
    report trouble; /* the first that says that something failed */
    int rank;       /* whose that is; 0: all went well */
    uint64_t bytes; /* of all of them */
} reports;

static pl_status hear_all(pl_ranks *ranks, reports *all, pl_error *err)
{
    pl_status status = PL_OK;
    *all = (reports){ .rank = 0 };
    for (int i = 1; i < pl_comm_ranks(ranks->comm) && !status; i++) {
        report r;
        status = receive_all(ranks, i, &r, sizeof r, err);
        if (!status && !r.status && r.hash_version != pl_hash_version()) {
            r.status = PL_E_UNSUPPORTED;
            snprintf(r.text, sizeof r.text,
                     "it has another version of the library xxhash");
        }
        if (!status && r.status && all->rank == 0) {
            all->trouble = r;
            all->rank = i;
        }
        all->bytes += status ? 0 : r.bytes;
    }
    return status;
}

/* Whether that isn't how it was at the last save. */
static int is_new(pl_ranks *ranks, pl_writers writers)
{
    const int was = ranks->writers == writers;
    ranks->writers = writers;
    return !was;
}

/* A name that no other folder has. */
static pl_status name_marker(char path[PL_PATH_BYTES], const char *folder,
                             pl_error *err)
{
    char name[PL_HASH_TEXT_BYTES + 8];
    const double times[2] = { pl_clock_date(), pl_clock_seconds() };
    pl_hash hash;
    pl_hash_begin(&hash);
    pl_hash_add(&hash, times, sizeof times);
    pl_hash_add(&hash, folder, strlen(folder));
    snprintf(name, sizeof name, "shared-%s", pl_hash_end(&hash).text);
    return pl_path_join(path, folder, name, err);
}

/* Where in it a rank writes its number. */
static uint64_t place_of_mark(int rank)
{
    return (uint64_t)rank * PL_CHECKPOINT_BLOCK_BYTES;
}

static pl_status make_marker(const pl_ranks *ranks, const char *path,
                             pl_error *err)
{
    pl_file marker;
    pl_status status = pl_file_create(&marker, path, err);
    if (status)
        return status;
    status = pl_file_resize(&marker, place_of_mark(pl_comm_ranks(ranks->comm)),
                            err);
    if (!status)
        return pl_file_close(&marker, err);
    pl_file_abandon(&marker);
    return status;
}

/* What the others have written, if all have. A layer above the folder (overlay)
 * shows them the file, and keeps what they write to itself. */
static pl_status read_marker(const pl_ranks *ranks, const char *path,
                             reports *all, pl_error *err)
{
    pl_file marker;
    pl_status status = pl_file_open_read(&marker, path, err);
    if (status)
        return status;
    for (int i = 1; i < pl_comm_ranks(ranks->comm) && !status; i++) {
        int mark = 0;
        status = pl_file_pread_exact(&marker, &mark, sizeof mark,
                                     place_of_mark(i), err);
        if (status || mark == i || all->rank > 0)
            continue;
        all->rank = i;
        snprintf(all->trouble.text, sizeof all->trouble.text,
                 "what it writes to %s does not arrive here",
                 pl_path_shown(path));
    }
    pl_file_abandon(&marker);
    return status;
}

/* They do if what each writes into a file that was just made, under the same
 * path, is there. */
static pl_status look(void *context, const char *folder, int *is_shared,
                      pl_error *err)
{
    pl_ranks *ranks = context;
    char path[PL_PATH_BYTES] = { 0 };
    reports all;
    pl_status status = name_marker(path, folder, err);
    if (!status)
        status = make_marker(ranks, path, err);
    if (!status)
        status = ask_all(ranks, ASKED_LOOK, path, err);
    if (!status)
        status = hear_all(ranks, &all, err);
    if (!status && all.rank == 0)
        status = read_marker(ranks, path, &all, err);
    if (status)
        return status;
    *is_shared = all.rank == 0;
    if (!*is_shared && is_new(ranks, PL_WRITER_FIRST))
        pl_log_say(ranks->run->log, PL_LOG_NOTE,
                   "checkpoints: rank 0 gathers what the others keep, and "
                   "writes it, since %s can't write to the same folder: %s",
                   pl_comm_rank_name(ranks->comm, all.rank).text,
                   all.trouble.text);
    return pl_file_remove(path, err);
}

static pl_status fill(void *context, const char *folder, pl_error *err)
{
    pl_ranks *ranks = context;
    char path[PL_PATH_BYTES] = { 0 };
    reports all;
    snprintf(path, sizeof path, "%s", folder);
    pl_status status = ask_all(ranks, ASKED_FILL, path, err);
    if (!status)
        status = hear_all(ranks, &all, err);
    if (status)
        return status;
    if (all.rank > 0)
        return pl_fail(err, (pl_status)all.trouble.status, "%s: %s",
                       pl_comm_rank_name(ranks->comm, all.rank).text,
                       all.trouble.text);
    if (is_new(ranks, PL_WRITERS_ALL))
        pl_log_say(ranks->run->log, PL_LOG_NOTE,
                   "checkpoints: all %d ranks write their parts into one "
                   "folder; of this one rank 0 has left %s to the others",
                   pl_comm_ranks(ranks->comm), pl_units_bytes(all.bytes).text);
    return PL_OK;
}

pl_run_others pl_ranks_others(pl_ranks *ranks)
{
    return (pl_run_others){ .context = ranks,
                            .read = read_moments,
                            .write = write_moments,
                            .look = look,
                            .sum = sum_moments,
                            .fill = fill };
}

/* ---- the others ---- */

static pl_status answer_moments(pl_ranks *ranks, const request *r,
                                pl_error *err)
{
    pl_run *run = ranks->run;
    const pl_buffer_id buffer = buffer_of(run, r->set, r->slot);
    const size_t each = pl_piece_element_bytes(run, buffer),
                 bytes = r->count * each;
    char *chunk = ranks->chunks[0];
    PL_CHECK(bytes <= PL_RANKS_CHUNK_BYTES);
    pl_status status = PL_OK;
    if (r->kind == ASKED_READ) {
        status = pl_device_read(run->device, buffer, r->first * each, chunk,
                                bytes, err);
        return status ? status : send_all(ranks, 0, chunk, bytes, err);
    }
    const pl_piece p = { buffer, r->slot, r->first, r->count, each };
    status = receive_all(ranks, 0, chunk, bytes, err);
    return status ? status : pl_piece_put(run, &p, chunk, err);
}

static pl_status answer_sum(pl_ranks *ranks, const request *r, pl_error *err)
{
    pl_run *run = ranks->run;
    const pl_buffer_id buffer = buffer_of(run, r->set, r->slot);
    const size_t each = pl_piece_element_bytes(run, buffer),
                 end = (r->first + r->count) * each;
    char *chunk = ranks->chunks[0];
    pl_hash hash;
    pl_status status = receive_all(ranks, 0, &hash, sizeof hash, err);
    if (!status)
        pl_hash_adopt(&hash);
    for (size_t at = r->first * each, n; at < end && !status; at += n) {
        n = end - at < PL_RANKS_CHUNK_BYTES ? end - at : PL_RANKS_CHUNK_BYTES;
        status = pl_device_read(run->device, buffer, at, chunk, n, err);
        if (!status)
            pl_hash_add(&hash, chunk, n);
    }
    return status ? status : send_all(ranks, 0, &hash, sizeof hash, err);
}

static void no_visit(void *context, const char *name)
{
    (void)context;
    (void)name;
}

/* Writes to the file, if it is there; files as large as those of a checkpoint
 * may be written, too. A network's file system may believe that a folder is as
 * it was a while ago, until it is listed. */
static pl_status find_marker(const pl_run *run, const char *path, pl_error *err)
{
    const int rank = (int)run->rank;
    char folder[PL_PATH_BYTES];
    pl_file marker;
    snprintf(folder, sizeof folder, "%s", path);
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(folder, '/');
        if (!slash)
            break;
        *slash = 0;
        if (pl_folder_walk(folder, no_visit, NULL, NULL))
            continue; /* opening says what is wrong */
    }
    pl_status status = pl_file_open_shared(&marker, path, err);
    if (status)
        return status;
    status = pl_limits_check_size(&run->gpt, err);
    if (!status)
        status = pl_file_write_at(&marker, &rank, sizeof rank,
                                  place_of_mark(rank), err);
    if (!status)
        status = pl_file_sync(&marker, err);
    if (!status)
        return pl_file_close(&marker, err);
    pl_file_abandon(&marker);
    return status;
}

static pl_status answer_files(pl_ranks *ranks, const request *r, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_error trouble = { .text = "" };
    report answer = { .hash_version = pl_hash_version() };
    pl_status status = receive_all(ranks, 0, path, sizeof path, err), found;
    if (status)
        return status;
    if (r->kind == ASKED_LOOK)
        found = find_marker(ranks->run, path, &trouble);
    else
        found = pl_checkpoint_fill(ranks->run, path, &answer.bytes, &trouble);
    answer.status = (uint32_t)found;
    snprintf(answer.text, sizeof answer.text, "%s", trouble.text);
    return send_all(ranks, 0, &answer, sizeof answer, err);
}

static pl_status answer(pl_ranks *ranks, const request *r, pl_error *err)
{
    switch ((asked)r->kind) {
    case ASKED_LOOK:
    case ASKED_FILL:
        return answer_files(ranks, r, err);
    case ASKED_SUM:
        return answer_sum(ranks, r, err);
    default:
        return answer_moments(ranks, r, err);
    }
}

pl_status pl_ranks_serve(pl_ranks *ranks, pl_status *ended, pl_error *err)
{
    for (;;) {
        request r;
        pl_error trouble;
        pl_status status = receive_all(ranks, 0, &r, sizeof r, &trouble);
        if (!status && r.kind == ASKED_END) {
            *ended = (pl_status)r.status;
            return PL_OK;
        }
        if (!status)
            status = answer(ranks, &r, &trouble);
        if (status) /* whatever it is: rank 0 waits for what doesn't come */
            return pl_fail(err, PL_E_RANKS, "%s", trouble.text);
    }
}

pl_status pl_ranks_end_service(pl_ranks *ranks, pl_status ended, pl_error *err)
{
    const request end = { .kind = ASKED_END, .status = (uint32_t)ended };
    pl_status status = PL_OK;
    for (int i = 1; i < pl_comm_ranks(ranks->comm) && !status; i++)
        status = send_all(ranks, i, &end, sizeof end, err);
    return status;
}
