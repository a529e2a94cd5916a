/* ranks.h: an update that several processes of a run (ranks) share.
 *
 * Each rank has the gradients of its own groups. They are added as the binary
 * tree of gpt_groups.c goes on: rank r with r^1, then with r^2, and so on. A
 * rank that has added hands half of what it has to its partner and keeps the
 * other half, so that in the end each has the sum of the slices that it owns
 * (model/slices.h), and has sent no more than it must. It updates these, and
 * the weights go back the same way. Between the two each knows all partial sums
 * of the norm, so that all decide alike.
 *
 *     rank 0   g0 g1 |  g0+g1 of s0 s2 |  sum of s0 -> weights of s0, then all
 *     rank 1   g2 g3 |           s1 s3 |         s1
 *
 * The bits are those of one process with as many groups. */
#ifndef PL_TRAIN_RANKS_H
#define PL_TRAIN_RANKS_H

#include "base/threads.h"
#include "comm/comm.h"
#include "store/run.h"
#include "train/ranks_traffic.h"

#include <stdatomic.h>

/* What updates have cost, of a rank; after pl_ranks_sum_up on average. */
typedef struct pl_ranks_work {
    uint64_t updates, sent, least; /* least: that an update must send */
    uint64_t early; /* of the gradients: sent while others were computed */
    double waited, seconds;
} pl_ranks_work;

/* Of a checkpoint's tensors. */
typedef enum pl_writers {
    PL_WRITERS_UNKNOWN, /* none was written yet */
    PL_WRITERS_ALL,     /* each its part, into a folder that all share */
    PL_WRITER_FIRST,    /* rank 0 gathers them */
} pl_writers;

typedef struct pl_ranks {
    pl_comm *comm; /* NULL: there is one process */
    pl_run *run;
    char *chunks[4]; /* PL_RANKS_CHUNK_BYTES each */
    /* gradients on their way, layer by layer */
    size_t parts;        /* of them: layers, and what is outside */
    size_t *ends;        /* [parts]: the step that is the last to touch it */
    size_t part;         /* which is under way */
    atomic_size_t ready; /* which may be */
    size_t far;          /* its partner is rank ^ far; 0: not begun */
    uint64_t begun;      /* bytes that were sent before them */
    int is_moving;
    pl_traffic traffic;
    /* and beside the backward pass, where that is possible: then the engine is
     * this thread's */
    pl_aside *aside;
    int is_aside;
    atomic_int is_abandoned, has_failed;
    pl_status ended; /* its own */
    pl_error trouble;
    pl_ranks_work work;
    pl_writers writers; /* of the newest checkpoint */
} pl_ranks;

/* Memory for messages, of the heap. */
PL_MUST_CHECK pl_status pl_ranks_open(pl_ranks *ranks, pl_comm *comm,
                                      pl_heap *heap, pl_error *err);
/* Once the run has its programs. */
PL_MUST_CHECK pl_status pl_ranks_prepare(pl_ranks *ranks, pl_run *run,
                                         pl_heap *heap, pl_error *err);
void pl_ranks_close(pl_ranks *ranks);

/* Whether all go on: *status, PL_OK or PL_E_STOPPED, becomes PL_E_STOPPED where
 * it is that on any rank. All ranks come here, those that give something up as
 * well as the others; another status is left as it is. */
PL_MUST_CHECK pl_status pl_ranks_agree_stop(const pl_ranks *ranks,
                                            pl_status *status, pl_error *err);

/* ---- an update: from here on it isn't given up ---- */

/* Gradients may travel as they become final: those of a layer once all steps of
 * PL_TRAIN before `step` are done that touch them. They do so on a thread
 * beside the last micro-batch, if `is_aside` and the engine allows; until
 * pl_ranks_add_gradients nothing else may be said to other ranks then. */
void pl_ranks_begin_gradients(pl_ranks *ranks, int is_aside);
void pl_ranks_reach(pl_ranks *ranks, size_t step);
/* Whether that has ended badly: pl_ranks_add_gradients says how. */
int pl_ranks_have_failed(const pl_ranks *ranks);
/* The update has failed here: ends what is beside it. */
void pl_ranks_abandon(pl_ranks *ranks);
/* The rest of them. The gradients that this rank owns are the sum of all now;
 * the others are of no use. */
PL_MUST_CHECK pl_status pl_ranks_add_gradients(pl_ranks *ranks, pl_error *err);
/* Partial sums of the norm: own ones become all. */
PL_MUST_CHECK pl_status pl_ranks_share_partials(pl_ranks *ranks, pl_error *err);
/* Weights that were updated, for all. */
PL_MUST_CHECK pl_status pl_ranks_share_weights(pl_ranks *ranks, pl_error *err);

/* The mean of all ranks' work, at the end. */
PL_MUST_CHECK pl_status pl_ranks_sum_up(pl_ranks *ranks, pl_error *err);

/* ---- what rank 0 keeps of it, in files ---- */

/* Rank 0 reads and writes moments wherever they are, and lets the others write
 * theirs where they can: pl_run_others. Meanwhile the others serve, until rank
 * 0 says that it is done, and how that ended. */
pl_run_others pl_ranks_others(pl_ranks *ranks);
PL_MUST_CHECK pl_status pl_ranks_serve(pl_ranks *ranks, pl_status *ended,
                                       pl_error *err);
PL_MUST_CHECK pl_status pl_ranks_end_service(pl_ranks *ranks, pl_status ended,
                                             pl_error *err);

/* All weights of rank 0, for all. */
PL_MUST_CHECK pl_status pl_ranks_send_weights(pl_ranks *ranks, pl_error *err);

#endif
