/* rankplan.h: the plans of all processes (ranks) that share a run, as they
 * would be on machines like this one. Their slices differ (model/slices.h), so
 * each is planned. */
#ifndef PL_ADVISE_RANKPLAN_H
#define PL_ADVISE_RANKPLAN_H

#include "advise/network.h"
#include "advise/runplan.h"

enum { PL_MAX_RANKS = 1024 }; /* that are planned */

/* What a plan takes, and what of. Of numbers alone, so that ranks can tell each
 * other. */
typedef struct pl_rank_bytes {
    uint64_t weights, gradients, moments;
    uint64_t rest;  /* of the total */
    uint64_t total; /* pl_run_plan's: what the budget has to hold */
} pl_rank_bytes;

pl_rank_bytes pl_rank_bytes_of(const pl_run_plan *plan);

/* Of `ranks` ranks, what all take together, and which takes the most and the
 * least: the first of those that take as much. */
typedef struct pl_rank_range {
    pl_rank_bytes all;
    size_t largest, smallest;
} pl_rank_range;
pl_rank_range pl_rank_range_of(const pl_rank_bytes *each, size_t ranks);

typedef struct pl_rank_plans {
    size_t ranks;
    size_t interval;     /* above 1 they are workers (DiLoCo), and this is the
                          * config's sync_interval */
    pl_rank_bytes *each; /* [ranks] */
    pl_rank_range range;
    pl_rank_bytes one;    /* one machine that makes the whole update, without
                           * workers */
    double one_seconds;   /* and its update */
    pl_network_work work; /* of one of them */
} pl_rank_plans;

/* For machine->ranks of them, 1 to PL_MAX_RANKS; machine->rank doesn't matter.
 * PL_E_CONFIG where so many can't share the run, or aren't its workers. */
PL_MUST_CHECK pl_status pl_rank_plans_make(pl_rank_plans *plans,
                                           const pl_config *config,
                                           const pl_machine *machine,
                                           size_t vocab_size, pl_heap *heap,
                                           pl_error *err);

/* An update with this network, or an average one where they are workers. */
pl_network_times pl_rank_plans_times(const pl_rank_plans *plans,
                                     const pl_network *network);

/* What the largest rank would take with DiLoCo, where they share every update:
 * all moments, and of an anchor and an outer momentum in float32 its part. */
uint64_t pl_rank_plans_diloco_bytes(const pl_rank_plans *plans);

#endif
