/* comm.h: the processes of one run, and what they say to each other.
 *
 * A process that a launcher (mpirun, srun) has started with others is a rank.
 * Bytes go from rank to rank through an engine (engine.h). Whoever waits for
 * another rank looks at its own clock: every rank is heard from now and then,
 * also while it computes (pl_comm_beat), and one that was not heard from for
 * `timeout` seconds is gone, whatever the engine believes.
 *
 * One thread of a process speaks, or several in turns where the engine allows
 * that; then one of its own does so now and then, whatever the others do.
 * Nothing is allocated after opening.
 *
 * Once a function has failed all that follow do: the other ranks have been told
 * then, and what was under way is left as it is. */
#ifndef PL_COMM_COMM_H
#define PL_COMM_COMM_H

#include "base/arena.h"
#include "base/status.h"

#include <stdint.h>

typedef struct pl_comm pl_comm;

/* How many processes a launcher says it has started, by its variables in the
 * environment; 1: this one alone. Opens nothing. `variable` is getenv's. */
int pl_comm_started(const char *(*variable)(const char *name));

/* Opens the engine: the library at `path`. PL_E_RANKS where that isn't
 * possible, with what to install. */
PL_MUST_CHECK pl_status pl_comm_open(pl_comm **out, const char *path,
                                     double timeout_seconds, pl_heap *heap,
                                     pl_error *err);
/* After a run that ended on all ranks; waits for them. NULL is fine. */
void pl_comm_close(pl_comm *comm);
/* The run has failed here: tells all others why and ends them, and this process
 * with the status's code. */
void pl_comm_give_up(pl_comm *comm, const pl_error *why);

int pl_comm_rank(const pl_comm *comm);
int pl_comm_ranks(const pl_comm *comm);
const char *pl_comm_engine_name(const pl_comm *comm);
/* Whether several threads may speak, in turns. */
int pl_comm_may_change_threads(const pl_comm *comm);

/* Seconds that a silent rank is waited for from here on. */
void pl_comm_set_timeout(pl_comm *comm, double seconds);
/* What rank `rank` is called in messages: "rank 2 (pc3)", once it has said so.
 */
void pl_comm_name_rank(pl_comm *comm, int rank, const char *host);

enum { PL_COMM_HOST_BYTES = 64 };
typedef struct pl_comm_name {
    char text[PL_COMM_HOST_BYTES + 32];
} pl_comm_name;
pl_comm_name pl_comm_rank_name(const pl_comm *comm, int rank);

/* What the engine holds of this process's memory: what was seen when it was
 * opened, and what it may take for messages under way. */
size_t pl_comm_memory_bytes(const pl_comm *comm);
/* The same of an engine that nobody has opened: a little more than Open MPI
 * holds of it. */
size_t pl_comm_usual_bytes(size_t ranks);
/* Whether another rank has said that the run has ended. */
int pl_comm_was_told(const pl_comm *comm);
/* Whether all ranks below this one are gone, as far as it is known here; rank 0
 * is the first as long as it is there. */
int pl_comm_is_first_left(const pl_comm *comm);

/* Bytes of runs' data that were sent so far, without beats and news. */
uint64_t pl_comm_sent_bytes(const pl_comm *comm);
/* Seconds that were spent waiting so far. */
double pl_comm_waited_seconds(const pl_comm *comm);

/* ---- while it computes ---- */

/* Is to be called every now and then, also for the news of others; looks at the
 * clock alone most times. */
PL_MUST_CHECK pl_status pl_comm_beat(pl_comm *comm, pl_error *err);
/* Tells all others that what is under way is to be given up; then all meet in
 * pl_comm_any. */
PL_MUST_CHECK pl_status pl_comm_say_stop(pl_comm *comm, pl_error *err);
/* Whether one of them has said so. */
int pl_comm_is_stopped(const pl_comm *comm);

/* ---- from rank to rank ---- */

/* A message that is under way. */
typedef struct pl_comm_message {
    void *handle; /* NULL: none is */
    int other;
    int is_sent; /* to it; else it comes from there */
} pl_comm_message;

PL_MUST_CHECK pl_status pl_comm_begin_send(pl_comm *comm, int to,
                                           const void *data, size_t bytes,
                                           pl_comm_message *message,
                                           pl_error *err);
PL_MUST_CHECK pl_status pl_comm_begin_receive(pl_comm *comm, int from,
                                              void *data, size_t bytes,
                                              pl_comm_message *message,
                                              pl_error *err);
PL_MUST_CHECK pl_status pl_comm_wait(pl_comm *comm, pl_comm_message *message,
                                     pl_error *err);
/* Whether it has left or arrived, without waiting. */
PL_MUST_CHECK pl_status pl_comm_look(pl_comm *comm, pl_comm_message *message,
                                     int *is_done, pl_error *err);

/* All at once: sends to and receives from one rank. */
PL_MUST_CHECK pl_status pl_comm_exchange(pl_comm *comm, int partner,
                                         const void *out, void *in,
                                         size_t bytes, pl_error *err);
/* What rank 0 has, for all. */
PL_MUST_CHECK pl_status pl_comm_broadcast(pl_comm *comm, void *data,
                                          size_t bytes, pl_error *err);
/* `bytes` of each rank, in all[rank * bytes]; own ones lie there already. */
PL_MUST_CHECK pl_status pl_comm_gather_all(pl_comm *comm, void *all,
                                           size_t bytes, pl_error *err);
/* Not 0 on every rank where it is not 0 on any. */
PL_MUST_CHECK pl_status pl_comm_any(pl_comm *comm, int *flag, pl_error *err);

#endif
