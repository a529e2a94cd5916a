/* dial.h: the keys `depth` and `max_minutes`, for the commands that take
 * train's keys: what follows from them, once the vocabulary and the machine's
 * rates are known. */
#ifndef PL_CLI_DIAL_H
#define PL_CLI_DIAL_H

#include "cli/command.h"

/* What follows from `depth`. A run that goes on has that already: then it is
 * taken from its newest checkpoint, with what followed from `max_minutes`. */
PL_MUST_CHECK pl_status pl_cli_dial(pl_config *config, pl_heap *heap,
                                    pl_error *err);

/* What a run in the checkpoint `folder` has settled stays: PL_E_CONFIG where
 * another depth or other minutes are asked for. */
PL_MUST_CHECK pl_status pl_cli_dial_keep(pl_config *config, const char *folder,
                                         pl_heap *heap, pl_error *err);

/* What follows from `max_minutes` on this machine, for a new run. Says how many
 * updates that are; for `args`, unless it is NULL, also the line that makes the
 * same run anywhere. */
PL_MUST_CHECK pl_status pl_cli_minutes(pl_config *config,
                                       const pl_machine *machine,
                                       const pl_cli_args *args, pl_heap *heap,
                                       pl_error *err);

#endif
