/* metrics.h: the numbers of a run as it goes, in out_dir/metrics.jsonl: a line
 * for each update and for each evaluation, in order.
 *
 *   {"step": 19, "loss": 2.31, "lr": 0.001, "grad_norm": 0.8, ...}
 *   {"step": 20, "train_loss": 2.3, "val_loss": 2.4, ...}
 *
 * Only ever appended to. A checkpoint notes how long it was; a resumed run cuts
 * it to that length first, so that no step stands there twice. What can't be
 * written is warned of once and left out: no run ends for that. Every number
 * goes through one function, `put` in metrics.c: the place for other writers.
 * Allocates nothing. */
#ifndef PL_TRAIN_METRICS_H
#define PL_TRAIN_METRICS_H

#include "base/file.h"
#include "base/log.h"
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
    pl_file file;        /* not open: nothing is written */
    uint64_t good_bytes; /* whole lines */
    const pl_log *log;
    int in_trouble; /* and it was said */
} pl_metrics;

#define PL_METRICS_CLOSED                                                      \
    {                                                                          \
        .file = PL_FILE_CLOSED                                                 \
    }

/* Opens out_dir/metrics.jsonl, cut to its first `bytes` bytes; 0: anew. If it
 * has less, it is left as it is, but for a last line that isn't whole, and that
 * is said. */
PL_MUST_CHECK pl_status pl_metrics_open(pl_metrics *metrics,
                                        const char *out_dir, uint64_t bytes,
                                        const pl_log *log, pl_error *err);
void pl_metrics_close(pl_metrics *metrics);

void pl_metrics_updated(pl_metrics *metrics, const pl_update_event *event);
void pl_metrics_evaluated(pl_metrics *metrics, const pl_eval_event *event);

/* Waits until the lines are on the disk, and says how long they are. */
uint64_t pl_metrics_bytes(pl_metrics *metrics);

#endif
