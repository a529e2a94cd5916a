/* horizon.h: how many updates a run makes in a number of minutes, by what this
 * machine is known to reach. Asked once, before the first step: from then on
 * the number is a setting of the run like any other. */
#ifndef PL_ADVISE_HORIZON_H
#define PL_ADVISE_HORIZON_H

#include "advise/runplan.h"

typedef struct pl_horizon {
    int64_t updates; /* 0: max_minutes is not asked for, or max_iters is set */
    double update_seconds;
    double evaluation_seconds; /* of both splits */
    pl_rates_source source;    /* what these are believed for */
} pl_horizon;

/* Sets max_iters and what follows from it, as far as these aren't set: with
 * `depth` also batch, learning rates and evaluations, by the tokens that there
 * is time for. Texts and tasks on the way are not counted. PL_E_CONFIG where
 * the time is too short for one update. */
PL_MUST_CHECK pl_status pl_horizon_set(pl_horizon *found, pl_config *config,
                                       const pl_machine *machine,
                                       size_t vocab_size, pl_error *err);

/* Predicted seconds of the whole run with these settings, evaluations
 * included. */
double pl_horizon_run_seconds(const pl_run_plan *plan, const pl_config *config,
                              const pl_machine *machine);

#endif
