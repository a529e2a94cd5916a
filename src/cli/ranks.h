/* ranks.h: a training that a launcher (mpirun, srun) has started as several
 * processes. */
#ifndef PL_CLI_RANKS_H
#define PL_CLI_RANKS_H

#include "cli/command.h"

/* *comm is NULL where this process was started alone. The engine is the library
 * plimsoll-mpi.so beside the program, or where it was installed; PLIMSOLL_COMM
 * in the environment names another one. */
PL_MUST_CHECK pl_status pl_cli_ranks_open(pl_comm **comm, pl_heap *heap,
                                          pl_error *err);

/* That all of them are one run: the same program, config, data and tokenizer.
 * PL_E_RANKS with who differs in what. */
PL_MUST_CHECK pl_status pl_cli_ranks_agree(pl_comm *comm,
                                           const pl_config *config,
                                           pl_heap *heap, pl_error *err);

/* After it: waits for the others, or, where it has failed here, ends them. */
void pl_cli_ranks_close(pl_comm *comm, pl_status status, const pl_error *err);

#endif
