/* horizon.c: see horizon.h. */
#include "advise/horizon.h"
#include "model/dial.h"

#include <math.h>

/* Of tables that are only looked at. */
static const size_t HEAP_BYTES = (size_t)1 << 30;

static double evaluation_seconds(const pl_run_plan *plan,
                                 const pl_config *config,
                                 const pl_machine *machine)
{
    const size_t ranks = pl_gpt_ranks(&plan->gpt.layout),
                 sequences = pl_run_plan_eval_sequences(config);
    return 2.0 * pl_run_plan_eval_seconds(
                     &plan->gpt,
                     pl_machine_rates_in(machine, plan->gpt.layout.dtype),
                     (sequences + ranks - 1) / ranks);
}

double pl_horizon_run_seconds(const pl_run_plan *plan, const pl_config *config,
                              const pl_machine *machine)
{
    const int64_t evaluations = config->max_iters / config->eval_interval + 1;
    return (double)config->max_iters * plan->update_seconds +
           (double)evaluations * evaluation_seconds(plan, config, machine);
}

/* What a layout of these settings takes. */
static pl_status look(pl_horizon *found, const pl_config *config,
                      const pl_machine *machine, size_t vocab_size,
                      pl_error *err)
{
    pl_run_plan plan;
    const pl_log quiet = { 0 };
    pl_heap heap = pl_heap_make(HEAP_BYTES);
    pl_status status = pl_run_plan_make(&plan, config, machine, vocab_size,
                                        &quiet, &heap, err);
    if (!status) {
        found->update_seconds = plan.update_seconds;
        found->evaluation_seconds = evaluation_seconds(&plan, config, machine);
        found->source =
            pl_machine_rates_in(machine, plan.gpt.layout.dtype)->source;
    }
    pl_heap_close(&heap);
    return status;
}

/* Updates that there is time for, as a number that needn't be whole. An
 * evaluation comes first, and then one every eval_interval; where that follows
 * from the length, their number doesn't. */
static double updates_in(const pl_horizon *found, const pl_config *config,
                         double seconds)
{
    if (!pl_config_was_set(config, PL_KEY_eval_interval))
        return (seconds - PL_DIAL_EVALUATIONS * found->evaluation_seconds) /
               found->update_seconds;
    return (seconds - found->evaluation_seconds) /
           (found->update_seconds +
            found->evaluation_seconds / (double)config->eval_interval);
}

pl_status pl_horizon_set(pl_horizon *found, pl_config *config,
                         const pl_machine *machine, size_t vocab_size,
                         pl_error *err)
{
    const double seconds = 60.0 * config->max_minutes;
    *found = (pl_horizon){ 0 };
    if (!(seconds > 0.0) || pl_config_was_set(config, PL_KEY_max_iters))
        return PL_OK;
    pl_status status = look(found, config, machine, vocab_size, err);
    if (!status && config->depth != PL_NONE) {
        /* another batch changes next to nothing of the tokens per second */
        const double tokens = seconds / found->update_seconds *
                              (double)pl_config_update_tokens(config);
        status = pl_dial_set_run(config, vocab_size, tokens, PL_FROM_MINUTES,
                                 err);
        if (!status)
            status = look(found, config, machine, vocab_size, err);
    }
    if (status)
        return status;
    const double updates = floor(updates_in(found, config, seconds));
    if (!(updates >= 1.0))
        return pl_fail(err, PL_E_CONFIG,
                       "max_minutes = %g is too short: an update takes %s here "
                       "and an evaluation %s. Raise it, or lower batch_size, "
                       "gradient_accumulation_steps or eval_iters",
                       config->max_minutes,
                       pl_units_duration(found->update_seconds).text,
                       pl_units_duration(found->evaluation_seconds).text);
    status = pl_dial_set_length(config, (int64_t)fmin(updates, PL_MAX_STEPS),
                                PL_FROM_MINUTES, err);
    found->updates = config->max_iters;
    return status;
}
