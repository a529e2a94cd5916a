/* ranks.h: a training that a launcher (mpirun, srun) has started as several
 * processes: what makes one run of them before there is a session. */
#ifndef PL_CLI_RANKS_H
#define PL_CLI_RANKS_H

#include "cli/command.h"
#include "train/session.h"

/* *comm is NULL where this process was started alone. The engine is the library
 * plimsoll-mpi.so beside the program, or where it was installed; PLIMSOLL_COMM
 * in the environment names another one. */
PL_MUST_CHECK pl_status pl_cli_ranks_open(pl_comm **comm,
                                          const pl_config *config,
                                          pl_heap *heap, pl_error *err);

/* That all of them are the same program with the same settings, but for those
 * of the machine and of the call. PL_E_RANKS with who differs in what. */
PL_MUST_CHECK pl_status pl_cli_ranks_agree(pl_comm *comm,
                                           const pl_config *config,
                                           pl_heap *heap, pl_error *err);

/* What rank 0 made of these settings, from its checkpoint, by the dial or the
 * clock, for all. */
PL_MUST_CHECK pl_status pl_cli_ranks_share(pl_comm *comm, pl_config *config,
                                           pl_heap *heap, pl_error *err);

/* Of a run with these settings: who this process is, and what the engine holds
 * of its memory. */
PL_MUST_CHECK pl_status pl_cli_ranks_machine(pl_machine *machine, pl_comm *comm,
                                             pl_error *err);

/* What each of them has planned; and what the updates so far have sent. */
void pl_cli_ranks_say_plans(const pl_session *session);
void pl_cli_ranks_say_work(const pl_session *session);

/* How a run has ended here: of zeros, it had not begun. */
typedef struct pl_cli_ranks_end {
    int has_begun, is_alike; /* it has failed on all ranks in the same way */
    pl_run_purpose purpose;
    uint64_t newest; /* checkpoint, or PL_OUTDIR_NO_STEP */
    char out_dir[PL_PATH_BYTES];
} pl_cli_ranks_end;
pl_cli_ranks_end pl_cli_ranks_end_of(const pl_session *session);

/* After it: waits for the others, or, where it has failed here, ends them, and
 * this process. */
void pl_cli_ranks_close(pl_comm *comm, const pl_cli_ranks_end *end,
                        pl_status status, const pl_error *err);

#endif
