/* looks.h: the best of several short measurements ("looks") of how fast the ops
 * are on a machine, and which of them are believed.
 *
 * Whatever disturbs a measurement can only make it slow, so of several the
 * fastest counts, op by op; and of an earlier and a later one the undisturbed
 * one. */
#ifndef PL_MODEL_LOOKS_H
#define PL_MODEL_LOOKS_H

#include "model/cost.h"

/* Rates that were measured while so much of the time was ours replace others.
 */
#define PL_LOOKS_QUIET 0.9

/* What is known of an op from one look, the least first. */
typedef enum pl_look_grade {
    PL_LOOK_DISTURBED, /* long, but what disturbed it may be most of that */
    PL_LOOK_BRIEF,     /* too short to tell that it is slower than was known */
    PL_LOOK_LONG,
} pl_look_grade;

typedef struct pl_looks {
    int count;
    double per_second[PL_OP_COUNT]; /* the best; 0: not seen */
    pl_look_grade grade[PL_OP_COUNT];
    double barrier_seconds; /* the least; 0: not seen */
    double quiet;           /* of the quietest of them */
} pl_looks;

/* Adds one measurement: what was seen, and how much of the time was ours (from
 * 0 to 1). */
void pl_looks_add(pl_looks *looks, const pl_observed *seen, double quiet);

/* How far rates are trusted at `date` (seconds since 1970), from 0 to 1: how
 * much of the time was ours when they were measured, halved for every month
 * since. 0: nothing is known about that. */
double pl_rates_trust(const pl_rates *rates, double date);

/* Updates the rates with what was measured at `date`. Undisturbed measurements,
 * and any that are trusted far more than what is known, replace the rates;
 * others, and those that were too brief, can only raise them. */
void pl_rates_learn(pl_rates *rates, const pl_looks *looks, double date);

#endif
