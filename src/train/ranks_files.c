/* ranks_files.c: what rank 0 reads and writes of the moments that others keep;
 * see ranks.h. */
#include "base/check.h"
#include "train/ranks.h"

#include <string.h>

typedef enum asked { ASKED_READ = 1, ASKED_WRITE, ASKED_END } asked;

/* What rank 0 wants of another; behind ASKED_WRITE the elements follow. */
typedef struct request {
    uint32_t kind, status; /* of an end: how it was */
    uint64_t set, slot;    /* of tensors.h */
    uint64_t first, count; /* elements of the other's buffer */
} request;

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
        const pl_slice own = row->keeper == PL_TENSORS_SLICED
                                 ? pl_slices_at(slices, row->slot, rank)
                             : row->worker == rank
                                 ? pl_gpt_own(&ranks->run->gpt, row->slot)
                                 : (pl_slice){ 0, 0 };
        const size_t from = own.first / row->unit,
                     to = from + (own.count + row->unit - 1) / row->unit;
        size_t at = from > first ? from : first;
        while (at < to && at < end && !status) {
            const size_t left = (to < end ? to : end) - at,
                         n = left < most ? left : most;
            const part p = { (int)rank, at - from, n, bytes };
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

pl_run_others pl_ranks_others(pl_ranks *ranks)
{
    return (pl_run_others){ ranks, read_moments, write_moments };
}

static pl_status answer(pl_ranks *ranks, const request *r, pl_error *err)
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

pl_status pl_ranks_serve(pl_ranks *ranks, pl_status *ended, pl_error *err)
{
    for (;;) {
        request r;
        pl_status status = receive_all(ranks, 0, &r, sizeof r, err);
        if (!status && r.kind == ASKED_END) {
            *ended = (pl_status)r.status;
            return PL_OK;
        }
        if (!status)
            status = answer(ranks, &r, err);
        if (status)
            return status;
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
