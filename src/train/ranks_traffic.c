/* ranks_traffic.c: see ranks_traffic.h. */
#include "train/ranks_traffic.h"
#include "base/check.h"

#include <string.h>

/* ---- what is on its way ---- */

size_t pl_piece_element_bytes(const pl_run *run, pl_buffer_id buffer)
{
    return pl_dtype_bytes(run->gpt.graph.buffers[buffer].dtype);
}

static int is_meant(const pl_flow *s)
{
    return s->of_layer == PL_FLOW_ALL ||
           pl_param_at(&s->run->shape, s->slot).layer == s->of_layer;
}

/* The next part, of at most `most` bytes; 0: there is none, or no room. */
static int next(pl_flow *s, size_t most, pl_piece *out)
{
    const pl_slices *slices = &s->run->gpt.slices;
    for (; s->owner < slices->ranks; s->owner++, s->slot = 0) {
        if ((s->owner & s->mask) != s->bits)
            continue;
        for (; s->slot < slices->slots; s->slot++, s->at = 0) {
            const pl_buffer_id buffer = s->buffers ? s->buffers[s->slot]
                                                   : s->run->gpt.partials;
            const pl_slice slice = s->buffers
                                       ? pl_slices_at(slices, s->slot, s->owner)
                                       : pl_slices_partials(slices, s->slot,
                                                            s->owner);
            if (buffer == PL_NO_BUFFER || s->at == slice.count || !is_meant(s))
                continue;
            const size_t bytes = pl_piece_element_bytes(s->run, buffer),
                         room = most / bytes, left = slice.count - s->at,
                         count = left < room ? left : room;
            *out = (pl_piece){ buffer, s->slot, slice.first + s->at, count,
                               bytes };
            s->at += count;
            return count > 0;
        }
    }
    return 0;
}

void pl_flow_skip(pl_flow *s)
{
    size_t bytes = 0;
    pl_piece p;
    while (next(s, PL_RANKS_CHUNK_BYTES - bytes, &p))
        bytes += p.count * p.bytes;
}

size_t pl_flow_measure(pl_flow s)
{
    size_t bytes = 0;
    pl_piece p;
    while (next(&s, PL_RANKS_CHUNK_BYTES - bytes, &p))
        bytes += p.count * p.bytes;
    return bytes;
}

pl_status pl_flow_fill(pl_flow *s, char *chunk, size_t *bytes, pl_error *err)
{
    pl_status status = PL_OK;
    pl_piece p;
    *bytes = 0;
    while (!status && next(s, PL_RANKS_CHUNK_BYTES - *bytes, &p)) {
        status = pl_device_read(s->run->device, p.buffer, p.first * p.bytes,
                                chunk + *bytes, p.count * p.bytes, err);
        *bytes += p.count * p.bytes;
    }
    return status;
}

/* Through memory of its own: it may be called beside the run. */
static pl_status add(pl_run *run, const pl_piece *p, const char *chunk,
                     pl_error *err)
{
    enum { MOST = 4096 };
    float own[MOST], theirs[MOST];
    pl_status status = PL_OK;
    for (size_t at = 0, count; at < p->count && !status; at += count) {
        const size_t from = (p->first + at) * sizeof *own;
        count = p->count - at < MOST ? p->count - at : MOST;
        status = pl_device_read(run->device, p->buffer, from, own,
                                count * sizeof *own, err);
        memcpy(theirs, chunk + at * sizeof *own, count * sizeof *own);
        for (size_t i = 0; i < count && !status; i++)
            own[i] += theirs[i];
        if (!status)
            status = pl_device_write(run->device, p->buffer, from, own,
                                     count * sizeof *own, err);
    }
    return status;
}

pl_status pl_piece_put(pl_run *run, const pl_piece *p, const char *chunk,
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

pl_status pl_flow_drain(pl_flow *s, const char *chunk, pl_treatment use,
                        pl_error *err)
{
    pl_status status = PL_OK;
    size_t bytes = 0;
    pl_piece p;
    while (!status && next(s, PL_RANKS_CHUNK_BYTES - bytes, &p)) {
        status = use == PL_ADDED ? add(s->run, &p, chunk + bytes, err)
                                 : pl_piece_put(s->run, &p, chunk + bytes, err);
        bytes += p.count * p.bytes;
    }
    return status;
}

/* ---- between two ranks ---- */

pl_traffic pl_traffic_begin(pl_comm *comm, char *const chunks[4], int partner,
                            pl_flow out, pl_flow in, pl_treatment use)
{
    pl_traffic t = { .comm = comm,
                     .partner = partner,
                     .out = out,
                     .in = in,
                     .ahead = in,
                     .use = use };
    memcpy(t.chunks, chunks, sizeof t.chunks);
    return t;
}

/* The next message leaves, once the one before the last has. */
static pl_status hand_out(pl_traffic *t, int *moved, pl_error *err)
{
    pl_comm_message *message = &t->sending[t->sent % 2];
    pl_status status = PL_OK;
    size_t bytes;
    for (int i = 0; i < 2 && !status; i++) {
        int is_free;
        status = pl_comm_look(t->comm, &t->sending[i], &is_free, err);
    }
    if (status || message->handle || t->is_all_sent)
        return status;
    char *chunk = t->chunks[t->sent % 2];
    status = pl_flow_fill(&t->out, chunk, &bytes, err);
    t->is_all_sent = bytes == 0;
    *moved = 1;
    if (status || t->is_all_sent)
        return status;
    t->sent++;
    return pl_comm_begin_send(t->comm, t->partner, chunk, bytes, message, err);
}

/* Two messages are asked for before they are here. */
static pl_status ask(pl_traffic *t, int *moved, pl_error *err)
{
    if (t->is_all_asked || t->asked == t->taken + 2)
        return PL_OK;
    const size_t bytes = pl_flow_measure(t->ahead);
    t->is_all_asked = bytes == 0;
    *moved = 1;
    if (t->is_all_asked)
        return PL_OK;
    pl_flow_skip(&t->ahead);
    const size_t place = t->asked++ % 2;
    return pl_comm_begin_receive(t->comm, t->partner, t->chunks[2 + place],
                                 bytes, &t->receiving[place], err);
}

static pl_status take(pl_traffic *t, int *moved, pl_error *err)
{
    const size_t place = t->taken % 2;
    int is_here;
    if (t->taken == t->asked)
        return PL_OK;
    pl_status status = pl_comm_look(t->comm, &t->receiving[place], &is_here,
                                    err);
    if (status || !is_here)
        return status;
    t->taken++;
    *moved = 1;
    return pl_flow_drain(&t->in, t->chunks[2 + place], t->use, err);
}

static int is_over(const pl_traffic *t)
{
    return t->is_all_sent && t->is_all_asked && t->taken == t->asked &&
           !t->sending[0].handle && !t->sending[1].handle;
}

/* Waits for one of those that are under way. */
static pl_status wait_for_one(pl_traffic *t, pl_error *err)
{
    if (t->taken < t->asked)
        return pl_comm_wait(t->comm, &t->receiving[t->taken % 2], err);
    return pl_comm_wait(t->comm, &t->sending[t->sending[0].handle ? 0 : 1],
                        err);
}

pl_status pl_traffic_move(pl_traffic *t, pl_patience patience, int *over,
                          pl_error *err)
{
    pl_status status = PL_OK;
    *over = 0;
    while (!status && !*over) {
        int moved = 0;
        status = hand_out(t, &moved, err);
        if (!status)
            status = ask(t, &moved, err);
        if (!status)
            status = take(t, &moved, err);
        *over = !status && is_over(t);
        if (status || *over || moved)
            continue;
        if (patience == PL_RETURNS)
            return PL_OK;
        status = wait_for_one(t, err);
    }
    return status;
}
