/* fixes.h: what each piece of advice buys, in bytes and in time, for one plan.
 * Every row is a plan of its own, made and compared; nothing is estimated by
 * rule of thumb. */
#ifndef PL_TRAIN_FIXES_H
#define PL_TRAIN_FIXES_H

#include "train/runplan.h"

typedef enum pl_fix_effect {
    PL_FIX_SAME_BITS,  /* the run's result is the same */
    PL_FIX_OTHER_EVAL, /* training is the same, the evaluation's number not */
    PL_FIX_OTHER_RUN,  /* another model or other numbers */
} pl_fix_effect;

typedef struct pl_fix {
    char setting[64];     /* "grad_checkpoint = 2" */
    int64_t saved_bytes;  /* of the total; negative: costs */
    double update_change; /* time of an update, as a share: 0.06 is 6 % more */
    double eval_change;   /* time of an evaluation, likewise */
    pl_fix_effect effect;
    int fits; /* the budget, with it */
} pl_fix;

enum { PL_MAX_FIXES = 16 };

/* Rows for `plan` of `config`: as many as apply. */
PL_MUST_CHECK pl_status pl_fixes_make(pl_fix fixes[PL_MAX_FIXES], size_t *count,
                                      const pl_run_plan *plan,
                                      const pl_config *config,
                                      const pl_machine *machine, pl_error *err);

#endif
