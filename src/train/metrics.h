/* metrics.h: the numbers of a run as it goes, in out_dir/metrics.jsonl: a line
 * for each update and for each evaluation, in order; and the same numbers for
 * TensorBoard, in out_dir/events.out.tfevents.plimsoll.
 *
 *   {"step": 19, "loss": 2.31, "lr": 0.001, "grad_norm": 0.8, ...}
 *   {"step": 20, "train_loss": 2.3, "val_loss": 2.4, ...}
 *
 * Only ever appended to. A checkpoint notes how long both were, and has a copy
 * of the lines without their times, so that equal runs have equal checkpoints.
 * A resumed run cuts both to that length first, so that no step stands there
 * twice, and takes lines that are missing from the copy. What can't be written
 * is warned of once and left out: no run ends for that. Every number goes
 * through one function, `put` in metrics.c. Allocates nothing. */
#ifndef PL_TRAIN_METRICS_H
#define PL_TRAIN_METRICS_H

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "format/events.h"
#include "train/events.h"

#define PL_METRICS_NAME "metrics.jsonl"

/* The one table of metrics: name, and value of the event `e`. */
#define PL_METRICS_OF_UPDATE(X)                                                \
    X("loss", e->loss)                                                         \
    X("lr", e->learning_rate)                                                  \
    X("grad_norm", e->grad_norm)                                               \
    X("loss_scale", e->loss_scale)                                             \
    X("skipped", e->skipped)                                                   \
    X("step_ms", e->step_ms)
#define PL_METRICS_OF_EVAL(X)                                                  \
    X("train_loss", e->train.loss)                                             \
    X("val_loss", e->val.loss)                                                 \
    X("train_error", e->train.standard_error)                                  \
    X("val_error", e->val.standard_error)

typedef struct pl_metrics {
    pl_file file;               /* not open: nothing is written */
    uint64_t lines, good_bytes; /* whole ones */
    pl_events events;
    const pl_log *log;
    int in_trouble; /* and it was said */
} pl_metrics;

/* How long the two were when a checkpoint was written. */
typedef struct pl_metrics_size {
    uint64_t lines, events_bytes;
} pl_metrics_size;

#define PL_METRICS_CLOSED                                                      \
    {                                                                          \
        .file = PL_FILE_CLOSED, .events = {.file = PL_FILE_CLOSED }            \
    }

/* Opens both, cut to what `size` says; 0: anew. Lines that metrics.jsonl lacks
 * come from the copy in `folder`, the checkpoint's; where that has no more of
 * them, they are missing. Either is said. */
PL_MUST_CHECK pl_status pl_metrics_open(pl_metrics *metrics,
                                        const char *out_dir, const char *folder,
                                        pl_metrics_size size, const pl_log *log,
                                        pl_error *err);
void pl_metrics_close(pl_metrics *metrics);

void pl_metrics_updated(pl_metrics *metrics, const pl_update_event *event);
void pl_metrics_evaluated(pl_metrics *metrics, const pl_eval_event *event);

/* Waits until the lines are on the disk, and says how long both are. */
pl_metrics_size pl_metrics_sync(pl_metrics *metrics);

/* Writes the checkpoint's copy to `path`. *bytes 0: there is none, because
 * there are no lines or they can't be read, which is warned of. */
PL_MUST_CHECK pl_status pl_metrics_copy(pl_metrics *metrics, const char *path,
                                        pl_hash *hash, uint64_t *bytes,
                                        pl_error *err);

#endif
