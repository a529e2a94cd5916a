/* looks.h: the best of several short looks at the ops of a machine, and what is
 * to be believed of them.
 *
 * Whatever disturbs a look can only make it slow, so of several the fastest
 * counts, op by op; and of two measurements the undisturbed one. */
#ifndef PL_MODEL_LOOKS_H
#define PL_MODEL_LOOKS_H

#include "model/cost.h"

/* Rates from a moment as quiet as this take the place of others. */
#define PL_LOOKS_QUIET 0.9

typedef struct pl_looks {
    int count;
    double per_second[PL_OP_COUNT]; /* the best; 0: not seen */
    int brief[PL_OP_COUNT];         /* it was never seen for long enough */
    double barrier_seconds;         /* the least; 0: not seen */
    double quiet;                   /* of the quietest of them */
} pl_looks;

/* One look: what was seen, and how much of the time was ours (from 0 to 1). */
void pl_looks_add(pl_looks *looks, const pl_observed *seen, double quiet);

/* How far rates are to be trusted at `date` (seconds since 1970): how quiet it
 * was when they were measured, half of that for every month since. 0: nothing
 * is known of it. */
double pl_rates_trust(const pl_rates *rates, double date);

/* Takes over what was seen of the ops at `date`. Looks at a quiet moment, and
 * any that are far better than what is known, take the place of the rates;
 * others, and looks that were too brief, only raise them. */
void pl_rates_learn(pl_rates *rates, const pl_looks *looks, double date);

#endif
