/* remedies.h: what to change in a config that does not fit, so that it does.
 * For each kind of change the smallest one that fits is searched, and priced
 * by a plan of its own. */
#ifndef PL_ADVISE_REMEDIES_H
#define PL_ADVISE_REMEDIES_H

#include "advise/runplan.h"

typedef struct pl_remedy {
    char settings[128];   /* "optimizer_state = '8bit', weights = 'bf16'" */
    size_t total_bytes;   /* of the fastest plan with it */
    double update_change; /* its time, as a share of the plan's: 0.06: 6 % */
    size_t parameters;
    pl_effect effect; /* the strongest of the keys that it changes */
    int regroups;     /* the same sequences per update, in other batches */
} pl_remedy;

enum { PL_MAX_REMEDIES = 12 };

/* For a plan that doesn't fit: the cheapest changes that do. Files that aren't
 * in memory or other layouts, if that is enough; else fewer bits and smaller
 * models. None if not even the narrowest model does. `vocab_size` as for the
 * plan. */
PL_MUST_CHECK pl_status pl_remedies_make(pl_remedy changes[PL_MAX_REMEDIES],
                                         size_t *count, const pl_run_plan *plan,
                                         const pl_config *config,
                                         const pl_machine *machine,
                                         size_t vocab_size, pl_error *err);

#endif
