/* savings.h: what each piece of advice buys, in bytes and in time, for one
 * plan. Every row is a plan of its own, made and compared; nothing is estimated
 * by rule of thumb. */
#ifndef PL_ADVISE_SAVINGS_H
#define PL_ADVISE_SAVINGS_H

#include "advise/runplan.h"

typedef struct pl_saving {
    char setting[64];     /* "grad_checkpoint = 2" */
    int64_t saved_bytes;  /* of the total; negative: costs */
    double update_change; /* time of an update, as a share: 0.06 is 6 % more */
    double eval_change;   /* time of an evaluation, likewise */
    pl_effect effect;     /* of its key */
    int fits;             /* the budget, with it */
} pl_saving;

enum { PL_MAX_SAVINGS = 16 };

/* Rows for `plan` of `config`: as many as apply. */
PL_MUST_CHECK pl_status pl_savings_make(pl_saving fixes[PL_MAX_SAVINGS],
                                        size_t *count, const pl_run_plan *plan,
                                        const pl_config *config,
                                        const pl_machine *machine,
                                        pl_error *err);

#endif
