/* evaluate.c: see evaluate.h. */
#include "train/evaluate.h"

#include <math.h>
#include <string.h>

static uint64_t sequences_of(const pl_config *config)
{
    int64_t batch = config->eval_batch_size != PL_NONE ? config->eval_batch_size
                                                       : config->batch_size;
    return (uint64_t)batch * (uint64_t)config->eval_iters;
}

/* One round: loads `count` sequences and leaves their losses in the sums. A
 * short last round repeats its first sequence; those sums are not read. */
static pl_status run_round(pl_session *session, const pl_batch_key *key,
                           uint64_t first, size_t count, pl_error *err)
{
    const pl_gpt *gpt = &session->gpt;
    size_t row = gpt->layout.eval_T + 1;
    int32_t *tokens = pl_device_host(session->device, gpt->eval_tokens);
    pl_scalars *scalars = pl_session_scalars(session);
    pl_status status = pl_batch_load(&session->dataset, key, (uint32_t)first,
                                     (uint32_t)count, gpt->layout.eval_T,
                                     tokens, err);
    if (status)
        return status;
    for (size_t i = count; i < gpt->layout.eval_micro; i++)
        memcpy(tokens + i * row, tokens, row * sizeof *tokens);
    scalars->batch_first = 0;
    scalars->micro_first = 0;
    pl_device_run(session->device, PL_EVAL, PL_PART_LOOP);
    return PL_OK;
}

pl_status pl_evaluate(pl_session *session, pl_split split,
                      const pl_eval_watch *watch, pl_eval *result,
                      pl_error *err)
{
    const pl_gpt *gpt = &session->gpt;
    const pl_batch_key key = { .use = PL_BATCH_EVAL,
                               .split = split,
                               .seed = (uint32_t)session->config->seed };
    uint64_t total = sequences_of(session->config);
    double T = (double)gpt->layout.eval_T, sum = 0.0, squares = 0.0;

    for (uint64_t first = 0; first < total;) {
        uint64_t left = total - first;
        size_t count = left < gpt->layout.eval_micro ? (size_t)left
                                                     : gpt->layout.eval_micro;
        pl_status status = run_round(session, &key, first, count, err);
        if (status)
            return status;
        const double *sums = pl_device_host(session->device, gpt->eval_sums);
        for (size_t i = 0; i < count; i++) {
            double mean = sums[i] / T;
            sum += mean;
            squares += mean * mean;
        }
        first += count;
        if (watch && watch->progress)
            watch->progress(watch->context, split, first, total);
        if (watch && watch->stop && watch->stop(watch->context))
            return pl_fail(err, PL_E_STOPPED, "stopped while evaluating");
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
