/* outdir.h: the folder of a run: which name is which, what is kept.
 *
 *   step-00000020   a checkpoint, whole: it got its name by a rename
 *   latest, best    links to two of them
 *   earlier-1       what an earlier run had left here
 *   damaged-...     a checkpoint that was passed over when a run was resumed
 *   .saving         a checkpoint that is being written
 *   .removing       one that is being removed
 *   .replaced-...   one that is saved once more, until the new one is there
 *   .moving         what is on its way to earlier-1
 *   .lock           held while a run writes here; dies with its process
 *
 * Everything is tried before the first step and not at the first save: the
 * folder can be written, nobody else writes it, there is room, and nothing
 * stands where links go. Knows nothing of a checkpoint's content. */
#ifndef PL_STORE_OUTDIR_H
#define PL_STORE_OUTDIR_H

#include "base/file.h"
#include "base/log.h"

#include <stdint.h>

#define PL_OUTDIR_LATEST   "latest"
#define PL_OUTDIR_BEST     "best"

#define PL_OUTDIR_SAVING   ".saving"
#define PL_OUTDIR_REMOVING ".removing"
#define PL_OUTDIR_REPLACED ".replaced-" /* and its name */

#define PL_OUTDIR_NO_STEP  UINT64_MAX

typedef struct pl_outdir {
    const char *path; /* where it is: `moved` if that isn't where it began */
    char moved[PL_PATH_BYTES];
    const pl_log *log;
    pl_file folder; /* held open, so that it is found again */
    pl_file lock;
    int is_new;      /* it was made when it was opened */
    size_t keep;     /* checkpoints that stay beside the newest and the best */
    uint64_t newest; /* the step of each, or PL_OUTDIR_NO_STEP */
    uint64_t best;
    double best_loss; /* of the best; infinite: there is none */
} pl_outdir;

/* What the files of a run take at most. */
typedef struct pl_outdir_need {
    uint64_t checkpoint_bytes; /* one of them */
    uint64_t metrics_bytes;    /* metrics.jsonl and TensorBoard's, at the end */
} pl_outdir_need;

typedef enum pl_outdir_use {
    PL_OUTDIR_NEW,    /* what is there belongs to an earlier run */
    PL_OUTDIR_RESUMED /* it is this run's */
} pl_outdir_use;

enum { PL_OUTDIR_NAME_BYTES = 32 };

/* "step-00000020", and back. */
void pl_outdir_name(char name[PL_OUTDIR_NAME_BYTES], uint64_t step);
/* Whether `name` is that of a checkpoint. */
int pl_outdir_step_of(const char *name, uint64_t *step);

/* Checkpoints that may be there at once, with the one that is being written. */
size_t pl_outdir_most(size_t keep);

/* What the run's own files take already, in whole pages: checkpoints, what was
 * left of one, and metrics. 0 where there is no such folder. */
PL_MUST_CHECK pl_status pl_outdir_held_bytes(const char *path, uint64_t *bytes,
                                             pl_error *err);

/* Makes the folder and holds its lock. `path` and `log` are borrowed, and
 * `outdir` may not be copied. */
PL_MUST_CHECK pl_status pl_outdir_open(pl_outdir *outdir, const char *path,
                                       size_t keep, pl_outdir_need need,
                                       pl_outdir_use use, const pl_log *log,
                                       pl_error *err);
void pl_outdir_close(pl_outdir *outdir);
/* The same where the run does not begin: a folder that was made for it, and has
 * nothing in it, goes too. */
void pl_outdir_undo(pl_outdir *outdir);

/* Puts right what a process left that was killed between two renames. Done by
 * pl_outdir_open; pl_outdir_mend_closed is for who looks for checkpoints
 * before that, and takes the lock only if there is something to do. */
PL_MUST_CHECK pl_status pl_outdir_mend(const pl_outdir *outdir,
                                       pl_outdir_use use, pl_error *err);
PL_MUST_CHECK pl_status pl_outdir_mend_closed(const char *path,
                                              const pl_log *log, pl_error *err);

/* Looks where the folder is and whether its lock is ours, before anything in
 * it is touched: by its own identity, for its name may be another run's now.
 * Where it was removed: it is made again, or that is an error. */
typedef enum pl_outdir_wish { PL_OUTDIR_REMAKE, PL_OUTDIR_FIND } pl_outdir_wish;
PL_MUST_CHECK pl_status pl_outdir_follow(pl_outdir *outdir, pl_outdir_wish wish,
                                         pl_error *err);

/* <stem>-1, or the next number that is free. */
PL_MUST_CHECK pl_status pl_outdir_free_name(const pl_outdir *outdir,
                                            char path[PL_PATH_BYTES],
                                            const char *stem, pl_error *err);

/* Moves what an earlier run has left to a folder of its own, and says so. */
PL_MUST_CHECK pl_status pl_outdir_move_earlier(pl_outdir *outdir, pl_heap *heap,
                                               pl_error *err);

/* Lets the links of a run that is resumed point to these two steps; `best` may
 * be PL_OUTDIR_NO_STEP. A kill in a save leaves them behind. What can't be
 * linked is warned of. */
void pl_outdir_relink(pl_outdir *outdir, uint64_t newest, uint64_t best,
                      double loss);

/* An empty folder to write a checkpoint into, in the folder in which the run
 * began, under whatever name that is now. Where it was removed it is made
 * again, if no other run is at its place. PL_E_IO where it is out of reach (a
 * mount that is gone), and nothing is written. */
PL_MUST_CHECK pl_status pl_outdir_begin(pl_outdir *outdir,
                                        char folder[PL_PATH_BYTES],
                                        pl_error *err);
/* Gives it the name of its step, lets the links point to it (best if `loss` is
 * the lowest so far), and removes what needn't be kept. What can't be linked or
 * removed is warned of: the checkpoint is there. Allocates nothing. */
PL_MUST_CHECK pl_status pl_outdir_publish(pl_outdir *outdir, uint64_t step,
                                          double loss, pl_error *err);
/* Removes it instead. */
void pl_outdir_abandon(pl_outdir *outdir);

#endif
