/* fit.h: the fastest layout under a budget.
 *
 * A layout changes no bit of the run, so the search is free to choose: the
 * micro-batch (every divisor of the layout's batch), the level of each layer,
 * the chunk sizes. batch_size x gradient_accumulation_steps stays as it is. */
#ifndef PL_MODEL_FIT_H
#define PL_MODEL_FIT_H

#include "model/cost.h"
#include "model/gpt.h"

/* What may be chosen. */
typedef struct pl_fit_wish {
    size_t budget_bytes; /* of the arena; SIZE_MAX: no limit */
    int literal;         /* fit = 'exact': the config's own layout */
    int keep_levels;     /* grad_checkpoint was set: only the rest is free */
    int no_products;     /* grad_checkpoint = False: levels that compute no
                          * product again, 0 and 1 */
} pl_fit_wish;

/* One layout with its price. */
typedef struct pl_fit_option {
    pl_gpt_layout layout; /* its levels are the heap's */
    size_t arena_bytes;
    double update_seconds;
    double wait_share; /* of it between steps, whatever they do */
} pl_fit_option;

typedef struct pl_fit {
    int fits;
    pl_fit_option chosen;    /* the fastest that fits, or the smallest */
    pl_fit_option runner_up; /* the fastest of another micro-batch */
    int has_runner_up;
    double fastest_seconds; /* of all that fit */
    pl_fit_option smallest;
} pl_fit;

/* Searches from `base` (pl_gpt_layout_make). Arithmetic only; levels of the
 * result are taken from `heap`. */
PL_MUST_CHECK pl_status pl_fit_search(pl_fit *fit, const pl_shape *shape,
                                      const pl_gpt_layout *base,
                                      const pl_fit_wish *wish,
                                      const pl_rates *rates, pl_heap *heap,
                                      pl_error *err);

/* The smallest layout of such a search, at once: its levels are the heap's. */
PL_MUST_CHECK pl_status pl_fit_smallest(pl_fit_option *smallest,
                                        const pl_shape *shape,
                                        const pl_gpt_layout *base,
                                        const pl_fit_wish *wish,
                                        const pl_rates *rates, pl_heap *heap,
                                        pl_error *err);

/* Two of the layouts that a search from `base` may try: none has a longer step
 * list than the longer one of these, whatever their levels. */
void pl_fit_longest(pl_gpt_layout layouts[2], const pl_shape *shape,
                    const pl_gpt_layout *base);

#endif
