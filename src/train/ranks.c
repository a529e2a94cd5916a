/* ranks.c: see ranks.h. */
#include "train/ranks.h"
#include "base/check.h"

#include <string.h>

pl_status pl_ranks_open(pl_ranks *ranks, pl_comm *comm, pl_heap *heap,
                        pl_error *err)
{
    pl_status status = PL_OK;
    *ranks = (pl_ranks){ .comm = comm };
    for (size_t i = 0; i < 4 && comm && !status; i++)
        status = pl_heap_take(heap, &ranks->chunks[i], PL_RANKS_CHUNK_BYTES, 1,
                              err);
    return status;
}

/* ---- what is on its way ---- */

/* The slices of all ranks `s` with (s & mask) == bits, one after the other, of
 * one set of buffers. */
typedef struct stream {
    pl_run *run;
    const pl_buffer_id *buffers; /* by slot; NULL: partial sums of the norm */
    size_t mask, bits;
    size_t owner, slot, at; /* where it is: elements of the slice */
} stream;

/* A part of a tensor. */
typedef struct piece {
    pl_buffer_id buffer;
    size_t slot, first, count, bytes; /* bytes of an element */
} piece;

static stream begin(pl_run *run, const pl_buffer_id *buffers, size_t mask,
                    size_t bits)
{
    return (stream){ .run = run, .buffers = buffers, .mask = mask,
                     .bits = bits };
}

static size_t element_bytes(const pl_run *run, pl_buffer_id buffer)
{
    return pl_dtype_bytes(run->gpt.graph.buffers[buffer].dtype);
}

/* The next part, of at most `most` bytes; 0: there is none, or no room. */
static int next(stream *s, size_t most, piece *out)
{
    const pl_slices *slices = &s->run->gpt.slices;
    for (; s->owner < slices->ranks; s->owner++, s->slot = 0) {
        if ((s->owner & s->mask) != s->bits)
            continue;
        for (; s->slot < slices->slots; s->slot++, s->at = 0) {
            const pl_buffer_id buffer = s->buffers ? s->buffers[s->slot]
                                                   : s->run->gpt.partials;
            const pl_slice slice =
                s->buffers ? pl_slices_at(slices, s->slot, s->owner)
                           : pl_slices_partials(slices, s->slot, s->owner);
            if (buffer == PL_NO_BUFFER || s->at == slice.count)
                continue;
            const size_t bytes = element_bytes(s->run, buffer),
                         room = most / bytes, left = slice.count - s->at,
                         count = left < room ? left : room;
            *out = (piece){ buffer, s->slot, slice.first + s->at, count, bytes };
            s->at += count;
            return count > 0;
        }
    }
    return 0;
}

/* How many bytes the next message has. */
static size_t measure(stream s)
{
    size_t bytes = 0;
    piece p;
    while (next(&s, PL_RANKS_CHUNK_BYTES - bytes, &p))
        bytes += p.count * p.bytes;
    return bytes;
}

/* The next message, from the device. */
static pl_status fill(stream *s, char *chunk, size_t *bytes, pl_error *err)
{
    pl_status status = PL_OK;
    piece p;
    *bytes = 0;
    while (!status && next(s, PL_RANKS_CHUNK_BYTES - *bytes, &p)) {
        status = pl_device_read(s->run->device, p.buffer, p.first * p.bytes,
                                chunk + *bytes, p.count * p.bytes, err);
        *bytes += p.count * p.bytes;
    }
    return status;
}

/* What arrives is put in its place, or added to what is there. */
typedef enum use { ADDED, PUT } use;

static pl_status add(pl_run *run, const piece *p, const char *chunk,
                     pl_error *err)
{
    float *own = (float *)(void *)run->stage;
    const size_t most = PL_RUN_STAGE_BYTES / sizeof *own;
    pl_status status = PL_OK;
    for (size_t at = 0, count; at < p->count && !status; at += count) {
        const size_t from = (p->first + at) * sizeof *own;
        count = p->count - at < most ? p->count - at : most;
        status = pl_device_read(run->device, p->buffer, from, own,
                                count * sizeof *own, err);
        for (size_t i = 0; i < count && !status; i++) {
            float theirs;
            memcpy(&theirs, chunk + (at + i) * sizeof theirs, sizeof theirs);
            own[i] += theirs;
        }
        if (!status)
            status = pl_device_write(run->device, p->buffer, from, own,
                                     count * sizeof *own, err);
    }
    return status;
}

/* A weight, and its working copy. */
static pl_status put(pl_run *run, const piece *p, const char *chunk,
                     pl_error *err)
{
    const size_t most = PL_RUN_STAGE_BYTES / sizeof(float);
    pl_status status = pl_device_write(run->device, p->buffer,
                                       p->first * p->bytes, chunk,
                                       p->count * p->bytes, err);
    if (p->buffer != run->gpt.weights[p->slot] ||
        run->gpt.copies[p->slot] == PL_NO_BUFFER)
        return status;
    PL_CHECK(p->bytes == sizeof(float)); /* others have none */
    for (size_t at = 0, count; at < p->count && !status; at += count) {
        count = p->count - at < most ? p->count - at : most;
        memcpy(run->stage, chunk + at * sizeof(float), count * sizeof(float));
        status = pl_run_write_copy(run, p->slot, p->first + at, count, err);
    }
    return status;
}

static pl_status drain(stream *s, const char *chunk, use how, pl_error *err)
{
    pl_status status = PL_OK;
    size_t bytes = 0;
    piece p;
    while (!status && next(s, PL_RANKS_CHUNK_BYTES - bytes, &p)) {
        status = how == ADDED ? add(s->run, &p, chunk + bytes, err)
                              : put(s->run, &p, chunk + bytes, err);
        bytes += p.count * p.bytes;
    }
    return status;
}

/* Two streams between two ranks, message by message; one of them may be empty.
 * The next message is on its way while one is worked on. */
typedef struct traffic {
    pl_ranks *ranks;
    int partner;
    stream out, in, ahead; /* ahead: what was asked for, of `in` */
    pl_comm_message sending[2], receiving[2];
    use use;
    pl_comm_stop stop;
} traffic;

static pl_status ask(traffic *t, size_t turn, size_t *bytes, pl_error *err)
{
    piece p;
    size_t used = 0;
    *bytes = measure(t->ahead);
    while (next(&t->ahead, PL_RANKS_CHUNK_BYTES - used, &p))
        used += p.count * p.bytes;
    if (*bytes == 0)
        return PL_OK;
    return pl_comm_begin_receive(t->ranks->comm, t->partner,
                                 t->ranks->chunks[2 + turn % 2], *bytes,
                                 &t->receiving[turn % 2], err);
}

static pl_status hand_out(traffic *t, size_t turn, size_t *bytes, pl_error *err)
{
    char *chunk = t->ranks->chunks[turn % 2];
    pl_status status = pl_comm_wait(t->ranks->comm, &t->sending[turn % 2],
                                    t->stop, err);
    if (!status)
        status = fill(&t->out, chunk, bytes, err);
    if (!status && *bytes)
        status = pl_comm_begin_send(t->ranks->comm, t->partner, chunk, *bytes,
                                    &t->sending[turn % 2], err);
    return status;
}

static pl_status exchange(traffic *t, pl_error *err)
{
    size_t out = 1, in = 0, next_in = 0;
    t->ahead = t->in;
    pl_status status = ask(t, 0, &in, err);
    for (size_t turn = 0; !status && (out || in); turn++) {
        if (out)
            status = hand_out(t, turn, &out, err);
        next_in = 0;
        if (!status && in)
            status = ask(t, turn + 1, &next_in, err);
        if (!status && in)
            status = pl_comm_wait(t->ranks->comm, &t->receiving[turn % 2],
                                  t->stop, err);
        if (!status && in)
            status = drain(&t->in, t->ranks->chunks[2 + turn % 2], t->use, err);
        in = next_in;
    }
    for (int i = 0; i < 2 && !status; i++)
        status = pl_comm_wait(t->ranks->comm, &t->sending[i], t->stop, err);
    return status;
}

/* ---- an update ---- */

pl_status pl_ranks_add_gradients(pl_ranks *ranks, pl_run *run, pl_error *err)
{
    const size_t rank = (size_t)pl_comm_rank(ranks->comm),
                 count = (size_t)pl_comm_ranks(ranks->comm);
    pl_status status = PL_OK;
    for (size_t far = 1; far < count && !status; far *= 2) {
        const size_t mask = 2 * far - 1;
        traffic t = {
            .ranks = ranks,
            .partner = (int)(rank ^ far),
            .out = begin(run, run->gpt.gradients, mask, (rank ^ far) & mask),
            .in = begin(run, run->gpt.gradients, mask, rank & mask),
            .use = ADDED,
            .stop = PL_COMM_MAY_STOP,
        };
        status = exchange(&t, err);
    }
    return status;
}

/* What each has of its own, for all: the way of the gradients back. */
static pl_status share(pl_ranks *ranks, pl_run *run,
                       const pl_buffer_id *buffers, pl_comm_stop stop,
                       pl_error *err)
{
    const size_t rank = (size_t)pl_comm_rank(ranks->comm),
                 count = (size_t)pl_comm_ranks(ranks->comm);
    pl_status status = PL_OK;
    for (size_t far = count / 2; far > 0 && !status; far /= 2) {
        const size_t mask = 2 * far - 1;
        traffic t = {
            .ranks = ranks,
            .partner = (int)(rank ^ far),
            .out = begin(run, buffers, mask, rank & mask),
            .in = begin(run, buffers, mask, (rank ^ far) & mask),
            .use = PUT,
            .stop = stop,
        };
        status = exchange(&t, err);
    }
    return status;
}

pl_status pl_ranks_share_partials(pl_ranks *ranks, pl_run *run, pl_error *err)
{
    return share(ranks, run, NULL, PL_COMM_MAY_STOP, err);
}

pl_status pl_ranks_share_weights(pl_ranks *ranks, pl_run *run, pl_error *err)
{
    return share(ranks, run, run->gpt.weights, PL_COMM_MUST_GO_ON, err);
}

pl_status pl_ranks_send_weights(pl_ranks *ranks, pl_run *run, pl_error *err)
{
    const int is_first = pl_comm_rank(ranks->comm) == 0;
    stream s = begin(run, run->gpt.weights, 0, 0);
    pl_status status = PL_OK;
    for (size_t bytes = 1; bytes && !status;) {
        bytes = measure(s);
        if (bytes == 0)
            break;
        if (is_first)
            status = fill(&s, ranks->chunks[0], &bytes, err);
        if (!status)
            status = pl_comm_broadcast(ranks->comm, ranks->chunks[0], bytes,
                                       err);
        if (!status && !is_first)
            status = drain(&s, ranks->chunks[0], PUT, err);
    }
    return status;
}

/* ---- moments, for files ---- */

typedef enum asked { ASKED_READ = 1, ASKED_WRITE, ASKED_END } asked;

/* What rank 0 wants of another; behind ASKED_WRITE the elements follow. */
typedef struct request {
    uint32_t kind, status;      /* of an end: how it was */
    uint64_t set, slot;         /* of tensors.h */
    uint64_t first, count;      /* elements of the other's buffer */
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
        status = pl_comm_wait(ranks->comm, &message, PL_COMM_MUST_GO_ON, err);
    return status;
}

static pl_status receive_all(pl_ranks *ranks, int from, void *data,
                             size_t bytes, pl_error *err)
{
    pl_comm_message message;
    pl_status status = pl_comm_begin_receive(ranks->comm, from, data, bytes,
                                             &message, err);
    if (!status)
        status = pl_comm_wait(ranks->comm, &message, PL_COMM_MUST_GO_ON, err);
    return status;
}

/* A part of a tensor that one rank keeps. */
typedef struct part {
    int owner;
    size_t first;        /* in the owner's buffer */
    size_t count, bytes; /* of an element */
} part;

/* Reads or writes it. */
static pl_status move(pl_ranks *ranks, const pl_tensors_row *row,
                      const part *p, asked kind, char *data, pl_error *err)
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
    return kind == ASKED_READ
               ? receive_all(ranks, p->owner, data, bytes, err)
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
    return move_all(context, row, first, count, ASKED_WRITE,
                    (char *)(size_t)in, err);
}

pl_run_others pl_ranks_others(pl_ranks *ranks, pl_run *run)
{
    ranks->run = run;
    return (pl_run_others){ ranks, read_moments, write_moments };
}

static pl_status answer(pl_ranks *ranks, pl_run *run, const request *r,
                        pl_error *err)
{
    const pl_buffer_id buffer = buffer_of(run, r->set, r->slot);
    const size_t each = element_bytes(run, buffer), bytes = r->count * each;
    char *chunk = ranks->chunks[0];
    PL_CHECK(bytes <= PL_RANKS_CHUNK_BYTES);
    pl_status status = PL_OK;
    if (r->kind == ASKED_READ) {
        status = pl_device_read(run->device, buffer, r->first * each, chunk,
                                bytes, err);
        return status ? status : send_all(ranks, 0, chunk, bytes, err);
    }
    const piece p = { buffer, r->slot, r->first, r->count, each };
    status = receive_all(ranks, 0, chunk, bytes, err);
    return status ? status : put(run, &p, chunk, err);
}

pl_status pl_ranks_serve(pl_ranks *ranks, pl_run *run, pl_status *ended,
                         pl_error *err)
{
    for (;;) {
        request r;
        pl_status status = receive_all(ranks, 0, &r, sizeof r, err);
        if (!status && r.kind == ASKED_END) {
            *ended = (pl_status)r.status;
            return PL_OK;
        }
        if (!status)
            status = answer(ranks, run, &r, err);
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
