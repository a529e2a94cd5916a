/* evaluate.c: see evaluate.h. */
#include "train/evaluate.h"
#include "advise/runplan.h"
#include "base/clock.h"
#include "train/pace.h"

#include <math.h>

/* An evaluation of a split that is under way. */
typedef struct evaluation {
    pl_session *session;
    const pl_eval_watch *watch;
    pl_batch_key key;
    uint64_t done, total; /* sequences */
    pl_pace pace;
    double looked; /* of the pace's work, when the watch was told last */
} evaluation;

/* By a signal here, or on another process. */
static int is_stopped(const evaluation *e)
{
    const pl_eval_watch *watch = e->watch;
    const pl_comm *comm = e->session->ranks.comm;
    return (watch && watch->stop && watch->stop(watch->context)) ||
           (comm && pl_comm_is_stopped(comm));
}

/* Not 0: to be stopped. */
static int look(void *context, const pl_step *step)
{
    static const double between_looks = 0.01;
    evaluation *e = context;
    const pl_eval_watch *watch = e->watch;
    e->pace.done += pl_cost_step(step, pl_machine_rates(&e->session->machine));
    if (watch->progress && e->pace.done - e->looked >= between_looks) {
        const double now = pl_clock_seconds(), seconds = now - e->pace.begin,
                     share = pl_pace_share(&e->pace),
                     tokens = (double)e->total *
                              (double)e->session->run.gpt.layout.eval_T;
        const pl_progress progress = {
            .step = e->session->run.step,
            .done = e->done,
            .total = e->total,
            .share = share,
            .tokens_per_second = seconds > 0.0 ? share * tokens / seconds : 0.0,
            .seconds_left = pl_pace_left(&e->pace, now),
        };
        e->looked = e->pace.done;
        watch->progress(watch->context, e->key.split, &progress);
    }
    return is_stopped(e);
}

/* One round: loads `count` sequences and leaves their losses in the sums. A
 * short last round repeats its first sequence; those sums are not read. */
static pl_status run_round(evaluation *e, size_t count, pl_error *err)
{
    pl_session *session = e->session;
    const pl_gpt *gpt = &session->run.gpt;
    const pl_run_watch watch = { .context = e, .between = look };
    pl_run_end end;
    pl_status status = PL_OK;
    for (size_t i = 0; i < gpt->layout.eval_micro && !status; i++)
        status = pl_session_load_row(session, gpt->eval_tokens, i, &e->key,
                                     e->done + (i < count ? i : 0),
                                     gpt->layout.eval_T, err);
    session->controls.batch_first = 0;
    session->controls.micro_first = 0;
    if (!status)
        status = pl_session_run_watched(session, PL_EVAL, PL_PART_LOOP,
                                        e->watch ? &watch : NULL, &end, err);
    if (status)
        return status;
    e->done += count;
    return end == PL_RUN_STOPPED || is_stopped(e)
               ? pl_fail(err, PL_E_STOPPED, "stopped while evaluating")
               : PL_OK;
}

static evaluation begin(pl_session *session, pl_split split,
                        const pl_eval_watch *watch)
{
    const uint64_t total = pl_run_plan_eval_sequences(session->run.config);
    const double round = pl_cost_round(&session->run.gpt,
                                       pl_machine_rates(&session->machine),
                                       PL_EVAL),
                 rounds = ceil((double)total /
                               (double)session->run.gpt.layout.eval_micro);
    return (evaluation){
        .session = session,
        .watch = watch,
        .key = { .use = PL_BATCH_EVAL,
                 .split = split,
                 .seed = (uint32_t)session->run.config->seed },
        .total = total,
        .pace = pl_pace_make(pl_clock_seconds(), rounds * round, 1.0),
        .looked = -1.0, /* so that the first step is told of */
    };
}

/* Sums of the means of sequences, and of their squares; and of the tokens that
 * stand for any text: their losses, and their bytes. */
typedef struct sums {
    double means, squares;
    double nats;
    uint64_t bytes;
} sums;

static void add(sums *to, const pl_eval_sequence *of, double T)
{
    const double mean = of->loss / T;
    to->means += mean;
    to->squares += mean * mean;
    to->nats += of->nats;
    to->bytes += of->bytes;
}

static pl_status read_losses(evaluation *e, size_t rows, pl_eval_sequence *to,
                             pl_error *err)
{
    pl_run *run = &e->session->run;
    double *losses = (double *)(void *)run->stage;
    const size_t most = PL_RUN_STAGE_BYTES / sizeof *losses;
    for (size_t at = 0; at < rows;) {
        const size_t count = rows - at < most ? rows - at : most;
        pl_status status = pl_device_read(run->device, run->gpt.eval_sums,
                                          at * sizeof *losses, losses,
                                          count * sizeof *losses, err);
        if (status)
            return status;
        for (size_t i = 0; i < count; i++)
            to[at + i] = (pl_eval_sequence){ .loss = losses[i] };
        at += count;
    }
    return PL_OK;
}

/* The losses of sequence `sequence`, which is row `row` of the last round,
 * token by token. Its tokens are read once more: the device's may be gone. */
static pl_status add_tokens(const evaluation *e, size_t row, uint64_t sequence,
                            pl_eval_sequence *to, pl_error *err)
{
    pl_session *session = e->session;
    const pl_run *run = &session->run;
    const size_t T = run->gpt.layout.eval_T,
                 most = PL_RUN_STAGE_BYTES / (sizeof(int32_t) + sizeof(float));
    int32_t *tokens = (int32_t *)(void *)run->stage;
    float *losses = (float *)(void *)(run->stage + most * sizeof *tokens);
    pl_status status = PL_OK;
    for (size_t at = 0, count; at < T && !status; at += count) {
        count = T - at < most ? T - at : most;
        status = pl_batch_read(&run->dataset, &e->key, (uint32_t)sequence, T,
                               at + 1, count, tokens, err);
        if (!status)
            status = pl_device_read(run->device, run->gpt.eval_loss,
                                    (row * T + at) * sizeof *losses, losses,
                                    count * sizeof *losses, err);
        for (size_t i = 0; i < count && !status; i++) {
            const unsigned bytes = session->token_bytes.of[tokens[i]];
            to->nats += bytes ? (double)losses[i] : 0.0;
            to->bytes += bytes;
        }
    }
    return status;
}

/* What the last round says of its `rows` sequences. */
static pl_status read_round(evaluation *e, size_t rows, pl_eval_sequence *to,
                            pl_error *err)
{
    pl_status status = read_losses(e, rows, to, err);
    for (size_t i = 0; i < rows && !status && e->session->token_bytes.of; i++)
        status = add_tokens(e, i, e->done - rows + i, &to[i], err);
    return status;
}

/* Sequences from e->done to `end`, round by round: they are added to `all`, or
 * kept where other processes have the others. */
static pl_status run_rounds(evaluation *e, uint64_t end, sums *all,
                            pl_error *err)
{
    const pl_gpt *gpt = &e->session->run.gpt;
    pl_eval_sequence *to = e->session->evaluated;
    const int is_shared = e->session->ranks.comm != NULL;
    pl_status status = PL_OK;
    while (e->done < end && !status) {
        const uint64_t left = end - e->done;
        const size_t count = left < gpt->layout.eval_micro
                                 ? (size_t)left
                                 : gpt->layout.eval_micro;
        pl_eval_sequence *at = to + (is_shared ? e->done : 0);
        status = run_round(e, count, err);
        if (!status)
            status = read_round(e, count, at, err);
        for (size_t i = 0; i < count && !status && !is_shared; i++)
            add(all, &at[i], (double)gpt->layout.eval_T);
    }
    return status;
}

/* As many sequences for each process, one after the other; then all of them for
 * all, in their order. */
static pl_status share_rounds(evaluation *e, uint64_t total, sums *all,
                              pl_error *err)
{
    pl_session *session = e->session;
    const uint64_t ranks = (uint64_t)pl_comm_ranks(session->ranks.comm),
                   rank = (uint64_t)pl_comm_rank(session->ranks.comm),
                   each = (total + ranks - 1) / ranks,
                   begin = rank * each < total ? rank * each : total,
                   end = begin + each < total ? begin + each : total;
    e->done = begin;
    pl_status status = run_rounds(e, end, all, err),
              voted = pl_ranks_agree_stop(&session->ranks, &status, err);
    if (voted)
        return voted;
    if (!status)
        status = pl_comm_gather_all(session->ranks.comm, session->evaluated,
                                    (size_t)each * sizeof *session->evaluated,
                                    err);
    for (uint64_t i = 0; i < total && !status; i++)
        add(all, &session->evaluated[i],
            (double)session->run.gpt.layout.eval_T);
    return status;
}

pl_status pl_evaluate(pl_session *session, pl_split split,
                      const pl_eval_watch *watch, pl_eval *result,
                      pl_error *err)
{
    const pl_gpt *gpt = &session->run.gpt;
    evaluation e = begin(session, split, watch);
    const uint64_t total = e.total;
    sums all = { 0 };
    pl_status status = session->ranks.comm ? share_rounds(&e, total, &all, err)
                                           : run_rounds(&e, total, &all, err);
    if (status)
        return status;
    double n = (double)total, mean = all.means / n;
    double variance = (all.squares - n * mean * mean) / (n - 1.0);
    result->loss = mean;
    result->standard_error = total > 1 && !isnan(variance)
                                 ? sqrt(fmax(variance, 0.0) / n)
                                 : (double)NAN;
    result->sequences = total;
    result->tokens = total * gpt->layout.eval_T;
    result->bytes = all.bytes;
    result->bpb = all.bytes ? all.nats / M_LN2 / (double)all.bytes
                            : (double)NAN;
    return PL_OK;
}
