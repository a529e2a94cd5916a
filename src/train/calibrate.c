/* calibrate.c: see calibrate.h. The weights stay zero, which is as fast as any
 * numbers and needs no time to make. */
#include "train/calibrate.h"
#include "base/clock.h"
#include "train/session.h"

#include <string.h>

enum {
    MOST_T = 512,
    MOST_V = 4096,
    MOST_C = 1024,
    HEAP_BYTES = 256 * 1024 * 1024,
    LEAST_LOOKS = 3,
};
static const double enough_seconds = 0.6, most_seconds = 2.0;

static const pl_program_id programs[] = { PL_TRAIN, PL_SYNC, PL_ADD_GROUPS,
                                          PL_UPDATE_WEIGHTS };
enum { PROGRAMS = sizeof programs / sizeof programs[0] };

static int64_t at_most(int64_t value, int64_t most)
{
    return value < most ? value : most;
}

/* A small piece of the config: its width, or as many heads as are not too
 * wide. */
static pl_config piece_of(const pl_config *config, size_t vocab_size)
{
    pl_config piece = *config;
    const int64_t head = config->n_embd / config->n_head;
    piece.n_layer = 1;
    piece.batch_size = 1;
    piece.gradient_accumulation_steps = 2;
    piece.gradient_groups = 2;
    piece.block_size = at_most(config->block_size, MOST_T);
    piece.eval_block_size = PL_NONE;
    piece.eval_batch_size = PL_NONE;
    piece.vocab_size = at_most((int64_t)vocab_size, MOST_V);
    piece.grad_checkpoint = (pl_checkpointing){ .kind = PL_CHECKPOINTING_OFF };
    piece.fit = PL_FIT_EXACT;
    if (config->n_embd > MOST_C && head > 0 && head <= MOST_C) {
        const int64_t shared = config->n_kv_head == PL_NONE
                                   ? 1
                                   : config->n_head / config->n_kv_head;
        piece.n_head = MOST_C / head / shared * shared;
        if (piece.n_head == 0)
            piece.n_head = shared;
        piece.n_embd = piece.n_head * head;
        piece.mlp_hidden = PL_NONE;
        if (config->n_kv_head != PL_NONE)
            piece.n_kv_head = piece.n_head / shared;
    }
    return piece;
}

static pl_status train_once(pl_session *session)
{
    session->controls = PL_CONTROLS_NEUTRAL;
    pl_status status = pl_device_clear(session->run.device,
                                       session->run.gpt.train_tokens, NULL);
    if (!status)
        status = pl_session_run(session, PL_TRAIN, PL_PART_LOOP, NULL);
    if (!status)
        status = pl_session_run(session, PL_TRAIN, PL_PART_REST, NULL);
    if (!status)
        status = pl_session_run(session, PL_ADD_GROUPS, PL_PART_LOOP, NULL);
    if (!status)
        status = pl_session_run(session, PL_ADD_GROUPS, PL_PART_REST, NULL);
    if (!status)
        status = pl_session_run(session, PL_UPDATE_WEIGHTS, PL_PART_LOOP, NULL);
    if (!status)
        status = pl_session_run(session, PL_UPDATE_WEIGHTS, PL_PART_REST, NULL);
    if (!status)
        status = pl_session_run(session, PL_SYNC, PL_PART_LOOP, NULL);
    if (!status)
        status = pl_session_run(session, PL_SYNC, PL_PART_REST, NULL);
    return status;
}

/* Some executions: long enough to be measured, short enough to fit between two
 * disturbances. */
static pl_status look_once(pl_session *session, pl_looks *looks)
{
    static const double look_seconds = 0.05;
    const pl_gpt *gpt = &session->run.gpt;
    pl_observed seen = { .least_seconds = 0.0 };
    double runs = 0.0;
    pl_status status = PL_OK;
    for (int i = 0; i < PROGRAMS; i++)
        memset(session->step_seconds[programs[i]], 0,
               gpt->graph.programs[programs[i]].n_steps * sizeof(double));
    const pl_load from = pl_machine_load(&session->machine);
    for (double end = pl_clock_seconds() + look_seconds;
         !status && (runs < 1.0 || (pl_clock_seconds() < end && runs < 1000.0));
         runs++)
        status = train_once(session);
    if (status)
        return status;
    const pl_load to = pl_machine_load(&session->machine);
    for (int i = 0; i < PROGRAMS; i++)
        pl_cost_observe(&seen, gpt, programs[i],
                        session->step_seconds[programs[i]], runs, runs);
    pl_looks_add(looks, &seen, pl_load_quiet(&from, &to));
    return PL_OK;
}

/* Looks until one was undisturbed, but not for long. */
static pl_status measure(pl_session *session)
{
    pl_looks looks = { .count = 0 };
    pl_status status = train_once(session); /* warms up */
    for (int i = 0; i < PROGRAMS; i++)
        pl_device_profile(session->run.device, programs[i],
                          session->step_seconds[programs[i]]);
    for (double begin = pl_clock_seconds(), seconds = 0.0;
         !status && (looks.count < LEAST_LOOKS || seconds < enough_seconds ||
                     (looks.quiet < PL_LOOKS_QUIET && seconds < most_seconds));
         seconds = pl_clock_seconds() - begin)
        status = look_once(session, &looks);
    if (!status)
        pl_machine_learn(&session->machine, &looks);
    return status;
}

void pl_calibrate(pl_machine *machine, const pl_config *config,
                  size_t vocab_size)
{
    const pl_log silent = { 0 };
    const pl_config piece = piece_of(config, vocab_size);
    pl_heap heap = pl_heap_make(HEAP_BYTES);
    pl_session session;
    pl_error ignored;
    pl_machine alone = *machine; /* whoever else shares the run */
    alone.ranks = alone.rank = 0;
    alone.comm = NULL;
    if (!pl_session_open_bench(&session, &piece, &alone, PL_NEW_ZEROS,
                               (size_t)piece.vocab_size, &silent, &heap,
                               &ignored)) {
        pl_status kept = measure(&session);
        if (!kept) {
            machine->rates[machine->dtype] = *pl_machine_rates(
                &session.machine);
            kept = pl_machine_remember(machine, session.run.text,
                                       PL_RUN_TEXT_BYTES, &ignored);
        }
        (void)kept; /* a cache that can't be written is not worth a word */
        pl_session_close(&session);
    }
    pl_heap_close(&heap);
}
