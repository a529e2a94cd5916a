/* evaluate.c: see evaluate.h. */
#include "train/evaluate.h"
#include "base/clock.h"
#include "train/pace.h"

#include <math.h>
#include <string.h>

static uint64_t sequences_of(const pl_config *config)
{
    int64_t batch = config->eval_batch_size != PL_NONE ? config->eval_batch_size
                                                       : config->batch_size;
    return (uint64_t)batch * (uint64_t)config->eval_iters;
}

/* An evaluation of a split that is under way. */
typedef struct evaluation {
    pl_session *session;
    const pl_eval_watch *watch;
    pl_batch_key key;
    uint64_t done, total; /* sequences */
    pl_pace pace;
    double looked; /* of the pace's work, when the watch was told last */
} evaluation;

/* Not 0: to be stopped. */
static int look(void *context, const pl_step *step)
{
    static const double between_looks = 0.01;
    evaluation *e = context;
    const pl_eval_watch *watch = e->watch;
    e->pace.done += pl_cost_step(step, &e->session->machine.rates);
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
    return watch->stop && watch->stop(watch->context);
}

/* One round: loads `count` sequences and leaves their losses in the sums. A
 * short last round repeats its first sequence; those sums are not read. */
static pl_status run_round(evaluation *e, size_t count, pl_error *err)
{
    pl_session *session = e->session;
    const pl_gpt *gpt = &session->run.gpt;
    const pl_run_watch watch = { .context = e, .between = look };
    size_t row = gpt->layout.eval_T + 1;
    int32_t *tokens = pl_device_host(session->run.device, gpt->eval_tokens);
    pl_scalars *scalars = pl_session_scalars(session);
    pl_status status = pl_batch_load(&session->run.dataset, &e->key,
                                     (uint32_t)e->done, (uint32_t)count,
                                     gpt->layout.eval_T, tokens, err);
    if (status)
        return status;
    for (size_t i = count; i < gpt->layout.eval_micro; i++)
        memcpy(tokens + i * row, tokens, row * sizeof *tokens);
    scalars->batch_first = 0;
    scalars->micro_first = 0;
    const pl_run_end end = pl_device_run_watched(
        session->run.device, PL_EVAL, PL_PART_LOOP, e->watch ? &watch : NULL);
    e->done += count;
    const int stop = end == PL_RUN_STOPPED ||
                     (e->watch && e->watch->stop &&
                      e->watch->stop(e->watch->context));
    return stop ? pl_fail(err, PL_E_STOPPED, "stopped while evaluating")
                : PL_OK;
}

static evaluation begin(pl_session *session, pl_split split,
                        const pl_eval_watch *watch)
{
    const uint64_t total = sequences_of(session->run.config);
    const double round = pl_cost_round(&session->run.gpt,
                                       &session->machine.rates, PL_EVAL),
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

pl_status pl_evaluate(pl_session *session, pl_split split,
                      const pl_eval_watch *watch, pl_eval *result,
                      pl_error *err)
{
    const pl_gpt *gpt = &session->run.gpt;
    evaluation e = begin(session, split, watch);
    const uint64_t total = e.total;
    double T = (double)gpt->layout.eval_T, sum = 0.0, squares = 0.0;

    while (e.done < total) {
        uint64_t left = total - e.done;
        size_t count = left < gpt->layout.eval_micro ? (size_t)left
                                                     : gpt->layout.eval_micro;
        pl_status status = run_round(&e, count, err);
        if (status)
            return status;
        const double *sums = pl_device_host(session->run.device,
                                            gpt->eval_sums);
        for (size_t i = 0; i < count; i++) {
            double mean = sums[i] / T;
            sum += mean;
            squares += mean * mean;
        }
    }
    double n = (double)total, mean = sum / n;
    double variance = (squares - n * mean * mean) / (n - 1.0);
    result->loss = mean;
    result->standard_error = total > 1 && !isnan(variance)
                                 ? sqrt(fmax(variance, 0.0) / n)
                                 : (double)NAN;
    result->sequences = total;
    result->tokens = total * gpt->layout.eval_T;
    return PL_OK;
}
