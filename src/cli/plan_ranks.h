/* plan_ranks.h: `plan --ranks=N --network=RATE`: the run as several processes
 * (ranks) would have it, each on a machine like this one, and what the network
 * between them costs. */
#ifndef PL_CLI_PLAN_RANKS_H
#define PL_CLI_PLAN_RANKS_H

#include "advise/rankplan.h"
#include "cli/command.h"
#include "format/jsontext.h"

enum { PL_PLAN_SYNC_INTERVAL = 30 }; /* of DiLoCo, to compare with */

typedef struct pl_plan_ranks {
    size_t ranks;    /* 0: nobody asked */
    int has_network; /* or it takes no time */
    pl_network network;
    pl_rank_plans plans;
    pl_rank_plans shared;   /* with a network and a sync_interval: what they
                             * would be without that */
    pl_network_times times; /* of an update */
    pl_network_times other; /* with a network, of one by the other algorithm:
                             * DiLoCo with PL_PLAN_SYNC_INTERVAL; where the
                             * config has its own, data parallel */
    double tokens;          /* of an update, all ranks */
} pl_plan_ranks;

/* What was asked for: flag number `flag` of the command is --ranks, and the one
 * behind it --network. */
PL_MUST_CHECK pl_status pl_plan_ranks_read(pl_plan_ranks *ranks,
                                           const pl_cli_args *args,
                                           unsigned flag, pl_error *err);

/* What each of them has: this machine, less what lets them talk. */
PL_MUST_CHECK pl_status pl_plan_ranks_machine(const pl_plan_ranks *ranks,
                                              pl_machine *machine,
                                              pl_error *err);

/* Plans all of them. The machine's rank becomes the one that takes most. */
PL_MUST_CHECK pl_status pl_plan_ranks_make(pl_plan_ranks *ranks,
                                           const pl_config *config,
                                           pl_machine *machine,
                                           size_t vocab_size, pl_heap *heap,
                                           pl_error *err);

void pl_plan_ranks_print(const pl_plan_ranks *ranks);
void pl_plan_ranks_put(const pl_plan_ranks *ranks, pl_json_text *j);

#endif
