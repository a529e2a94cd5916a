/* ranks.c: see ranks.h. Owns the update; ranks_files.c what files need. */
#include "train/ranks.h"
#include "base/clock.h"

/* ---- opening ---- */

/* Gradients go by layers, from the last to the first, and then the others, as
 * they come out of the backward pass. */
static int layer_of(const pl_run *run, size_t part)
{
    return (int)run->shape.L - 1 - (int)part;
}

static int is_gradient_of(const pl_run *run, pl_buffer_id buffer, int layer)
{
    for (size_t i = 0; i < pl_param_slots(&run->shape); i++)
        if (run->gpt.gradients[i] == buffer)
            return pl_param_at(&run->shape, i).layer == layer;
    return 0;
}

static int touches(const pl_run *run, const pl_step *step, int layer)
{
    for (size_t i = 0; i < PL_MAX_ARGS; i++)
        if (step->args[i].buffer != PL_NO_BUFFER &&
            is_gradient_of(run, step->args[i].buffer, layer))
            return 1;
    return 0;
}

/* Behind which step of a micro-batch a layer's gradients are final. */
static pl_status find_ends(pl_ranks *ranks, const pl_run *run, pl_heap *heap,
                           pl_error *err)
{
    const pl_program *program = &run->gpt.graph.programs[PL_TRAIN];
    pl_status status = pl_heap_take(heap, &ranks->ends, ranks->parts,
                                    sizeof *ranks->ends, err);
    for (size_t part = 0; part < ranks->parts && !status; part++) {
        ranks->ends[part] = 0;
        for (size_t i = 0; i < program->n_steps; i++)
            if (touches(run, &program->steps[i], layer_of(run, part)))
                ranks->ends[part] = i;
    }
    return status;
}

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

/* ---- an update ---- */

static pl_flow flow_of(pl_run *run, const pl_buffer_id *buffers, int layer,
                       size_t mask, size_t bits)
{
    return (pl_flow){ .run = run,
                      .buffers = buffers,
                      .mask = mask,
                      .bits = bits & mask,
                      .of_layer = layer };
}

/* The next exchange of the parts that are ready: for each, with r^1, r^2, ...
 */
static int begin_next(pl_ranks *ranks)
{
    const size_t rank = (size_t)pl_comm_rank(ranks->comm),
                 count = (size_t)pl_comm_ranks(ranks->comm);
    pl_run *run = ranks->run;
    ranks->far = ranks->far ? 2 * ranks->far : 1;
    if (ranks->far >= count) {
        ranks->far = 0;
        ranks->part++;
        return 0;
    }
    const size_t mask = 2 * ranks->far - 1;
    const int layer = layer_of(run, ranks->part);
    ranks->traffic = pl_traffic_begin(
        ranks->comm, ranks->chunks, (int)(rank ^ ranks->far),
        flow_of(run, run->gpt.gradients, layer, mask, rank ^ ranks->far),
        flow_of(run, run->gpt.gradients, layer, mask, rank), PL_ADDED);
    ranks->is_moving = 1;
    return 1;
}

/* As far as it goes, or to the end. */
static pl_status move_gradients(pl_ranks *ranks, pl_patience patience,
                                pl_error *err)
{
    pl_status status = PL_OK;
    while (!status && ranks->part < atomic_load(&ranks->ready)) {
        int over;
        if (!ranks->is_moving && !begin_next(ranks))
            continue;
        status = pl_traffic_move(&ranks->traffic, patience, &over, err);
        if (status || !over)
            return status;
        ranks->is_moving = 0;
    }
    return status;
}

/* On the thread beside: until all of them are there. */
static void move_aside(void *context)
{
    static const double nap = 100e-6;
    pl_ranks *ranks = context;
    pl_status status = PL_OK;
    int was_last = 0;
    while (!status && ranks->part < ranks->parts &&
           !atomic_load(&ranks->is_abandoned)) {
        const int is_last = atomic_load(&ranks->ready) == ranks->parts;
        if (is_last && !was_last)
            ranks->work.early += pl_comm_sent_bytes(ranks->comm) - ranks->begun;
        was_last = is_last;
        status = move_gradients(ranks, is_last ? PL_WAITS : PL_RETURNS,
                                &ranks->trouble);
        if (!status)
            status = pl_comm_beat(ranks->comm, &ranks->trouble);
        if (!is_last)
            pl_clock_sleep(nap);
    }
    ranks->ended = status;
    atomic_store(&ranks->has_failed, status != PL_OK);
}

int pl_ranks_have_failed(const pl_ranks *ranks)
{
    return ranks->is_aside && atomic_load(&ranks->has_failed);
}

void pl_ranks_abandon(pl_ranks *ranks)
{
    if (!ranks->is_aside)
        return;
    atomic_store(&ranks->is_abandoned, 1);
    pl_aside_wait(ranks->aside);
    ranks->is_aside = 0;
}

void pl_ranks_begin_gradients(pl_ranks *ranks, int is_aside)
{
    ranks->part = ranks->far = 0;
    ranks->is_moving = 0;
    atomic_store(&ranks->ready, 0);
    ranks->begun = pl_comm_sent_bytes(ranks->comm);
    ranks->is_aside = is_aside && ranks->aside;
    ranks->ended = PL_OK;
    atomic_store(&ranks->has_failed, 0);
    atomic_store(&ranks->is_abandoned, 0);
    if (ranks->is_aside)
        pl_aside_begin(ranks->aside);
}

void pl_ranks_reach(pl_ranks *ranks, size_t step)
{
    const size_t loop = ranks->run->gpt.graph.programs[PL_TRAIN].loop_steps;
    size_t ready = atomic_load(&ranks->ready);
    while (ready < ranks->parts && ranks->ends[ready] < step &&
           ranks->ends[ready] < loop)
        ready++;
    atomic_store(&ranks->ready, ready);
}

pl_status pl_ranks_add_gradients(pl_ranks *ranks, pl_error *err)
{
    atomic_store(&ranks->ready, ranks->parts);
    if (!ranks->is_aside)
        return move_gradients(ranks, PL_WAITS, err);
    pl_aside_wait(ranks->aside);
    ranks->is_aside = 0;
    return ranks->ended ? pl_fail(err, ranks->ended, "%s", ranks->trouble.text)
                        : PL_OK;
}

pl_status pl_ranks_prepare(pl_ranks *ranks, pl_run *run, pl_heap *heap,
                           pl_error *err)
{
    ranks->run = run;
    ranks->parts = run->shape.L + 1;
    pl_status status = find_ends(ranks, run, heap, err);
    if (!status && pl_comm_may_change_threads(ranks->comm))
        status = pl_aside_open(&ranks->aside, move_aside, ranks, heap, err);
    return status;
}

void pl_ranks_close(pl_ranks *ranks)
{
    pl_ranks_abandon(ranks);
    pl_aside_close(ranks->aside);
}

/* What each has of its own, for all: the way of the gradients back. */
static pl_status share(pl_ranks *ranks, const pl_buffer_id *buffers,
                       pl_error *err)
{
    const size_t rank = (size_t)pl_comm_rank(ranks->comm),
                 count = (size_t)pl_comm_ranks(ranks->comm);
    pl_status status = PL_OK;
    for (size_t far = count / 2; far > 0 && !status; far /= 2) {
        const size_t mask = 2 * far - 1;
        int over;
        pl_traffic t = pl_traffic_begin(
            ranks->comm, ranks->chunks, (int)(rank ^ far),
            flow_of(ranks->run, buffers, PL_FLOW_ALL, mask, rank),
            flow_of(ranks->run, buffers, PL_FLOW_ALL, mask, rank ^ far),
            PL_PUT);
        status = pl_traffic_move(&t, PL_WAITS, &over, err);
    }
    return status;
}

pl_status pl_ranks_share_partials(pl_ranks *ranks, pl_error *err)
{
    return share(ranks, NULL, err);
}

pl_status pl_ranks_share_weights(pl_ranks *ranks, pl_error *err)
{
    return share(ranks, ranks->run->gpt.weights, err);
}

pl_status pl_ranks_send_weights(pl_ranks *ranks, pl_error *err)
{
    const int is_first = pl_comm_rank(ranks->comm) == 0;
    pl_flow s = flow_of(ranks->run, ranks->run->gpt.weights, PL_FLOW_ALL, 0, 0);
    pl_status status = PL_OK;
    for (size_t bytes; !status && (bytes = pl_flow_measure(s)) > 0;) {
        if (is_first)
            status = pl_flow_fill(&s, ranks->chunks[0], &bytes, err);
        if (!status)
            status = pl_comm_broadcast(ranks->comm, ranks->chunks[0], bytes,
                                       err);
        if (!status && !is_first)
            status = pl_flow_drain(&s, ranks->chunks[0], PL_PUT, err);
    }
    return status;
}

pl_status pl_ranks_sum_up(pl_ranks *ranks, pl_error *err)
{
    const size_t count = (size_t)pl_comm_ranks(ranks->comm);
    const pl_gpt *gpt = &ranks->run->gpt;
    uint64_t least = 0;
    for (size_t i = 0; i < gpt->slices.slots; i++)
        if (gpt->gradients[i] != PL_NO_BUFFER)
            least += gpt->graph.buffers[gpt->gradients[i]].bytes +
                     gpt->graph.buffers[gpt->weights[i]].bytes;
    for (size_t far = 1; far < count; far *= 2) {
        pl_ranks_work theirs;
        pl_ranks_work *own = &ranks->work;
        pl_status status = pl_comm_exchange(
            ranks->comm, (int)((size_t)pl_comm_rank(ranks->comm) ^ far), own,
            &theirs, sizeof theirs, err);
        if (status)
            return status;
        own->sent = (own->sent + theirs.sent) / 2;
        own->early = (own->early + theirs.early) / 2;
        own->waited = 0.5 * (own->waited + theirs.waited);
    }
    ranks->work.least = least / count * (count - 1);
    if (pl_gpt_workers(&gpt->layout)) /* they meet now and then */
        ranks->work.least /= gpt->layout.sync_interval;
    return PL_OK;
}

/* ---- decisions ---- */

pl_status pl_ranks_agree_stop(const pl_ranks *ranks, pl_status *status,
                              pl_error *err)
{
    int stop = *status == PL_E_STOPPED;
    if (!ranks->comm || (*status && !stop))
        return PL_OK;
    if (stop && !pl_comm_is_stopped(ranks->comm)) {
        pl_status told = pl_comm_say_stop(ranks->comm, err);
        if (told)
            return told;
    }
    pl_status voted = pl_comm_any(ranks->comm, &stop, err);
    if (!voted && stop && !*status)
        *status = pl_fail(err, PL_E_STOPPED, "another rank was stopped");
    return voted;
}
