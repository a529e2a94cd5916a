/* metrics.h: what a run tells as it goes, in out_dir/metrics.jsonl: a line
 * for each update and for each evaluation, in order; and the same numbers for
 * TensorBoard, in out_dir/events.out.tfevents.plimsoll. Texts that a training
 * writes on its way are in samples.jsonl (samples.h) and TensorBoard's, too,
 * and so is what tasks say of it, in tasks.jsonl (task_lines.h).
 *
 *   {"step": 19, "loss": 2.31, "lr": 0.001, "grad_norm": 0.8, ...}
 *   {"step": 20, "train_loss": 2.3, "val_loss": 2.4, ..., "val_bpb": 3.4}
 *
 * Only ever appended to. A checkpoint has a copy of the lines that is thinned
 * out (metrics_thin.h). A resumed run cuts both files to what was before its
 * checkpoint first, so that no step stands there twice, and takes lines that
 * are missing from the copy. What can't be written is warned of once and left
 * out: no run ends for that. Every number goes through one function, `put` in
 * metrics.c. Allocates nothing but when it is opened. */
#ifndef PL_STORE_METRICS_H
#define PL_STORE_METRICS_H

#include "base/file.h"
#include "base/log.h"
#include "format/tensorboard.h"
#include "store/events.h"
#include "store/metrics_thin.h"
#include "store/samples.h"
#include "store/task_lines.h"

#define PL_METRICS_NAME "metrics.jsonl"

/* The one table of metrics: name, and value of the event `e`. The first names
 * tell the two kinds apart, the time comes last (metrics_thin.c). */
#define PL_METRICS_OF_UPDATE(X)                                                \
    X("loss", e->loss)                                                         \
    X("lr", e->learning_rate)                                                  \
    X("grad_norm", e->grad_norm)                                               \
    X("loss_scale", e->loss_scale)                                             \
    X("skipped", e->skipped)                                                   \
    X("arithmetic", e->arithmetic)                                             \
    X("step_ms", e->step_ms)
#define PL_METRICS_OF_EVAL(X)                                                  \
    X("train_loss", e->train.loss)                                             \
    X("val_loss", e->val.loss)                                                 \
    X("train_error", e->train.standard_error)                                  \
    X("val_error", e->val.standard_error)
/* And where the tokenizer is known. */
#define PL_METRICS_OF_BYTES(X) X("val_bpb", e->val.bpb)

typedef struct pl_metrics {
    pl_file file;        /* not open: nothing is written */
    uint64_t good_bytes; /* of it: whole lines */
    pl_tensorboard events;
    pl_thin thin;
    pl_samples samples;
    pl_step_lines tasks;
    uint64_t evaluated_step; /* whose numbers are there; UINT64_MAX: none's */
    const pl_log *log;
    int in_trouble; /* and it was said */
} pl_metrics;

#define PL_METRICS_CLOSED                                                      \
    {                                                                          \
        .file = PL_FILE_CLOSED, .events = { .file = PL_FILE_CLOSED },          \
        .samples = PL_SAMPLES_CLOSED, .tasks = PL_STEP_LINES_CLOSED            \
    }

/* What a checkpoint knows of the lines before it. */
typedef struct pl_metrics_past {
    uint64_t step; /* its own: the updates below it are past */
    int evaluated; /* and so is the evaluation at it */
    uint64_t lines, evals;
    pl_hash_text chain; /* "": it has a copy of every line */
    size_t samples;     /* that its run writes at `step`; its caller says it */
    int sampled;        /* and which are there */
    size_t tasks;       /* likewise that it asks at `step` */
    int asked;
} pl_metrics_past;

/* Opens both: anew where `past` is NULL, else cut to what is past. Lines that
 * metrics.jsonl lacks come from the copy in `folder`, the checkpoint's, as far
 * as that has them. Either is said. PL_E_FORMAT if the copy isn't one. */
PL_MUST_CHECK pl_status pl_metrics_open(pl_metrics *metrics,
                                        const char *out_dir, const char *folder,
                                        const pl_metrics_past *past,
                                        const pl_log *log, pl_heap *heap,
                                        pl_error *err);
void pl_metrics_close(pl_metrics *metrics);

void pl_metrics_updated(pl_metrics *metrics, const pl_update_event *event);
/* Nothing happens if that step's numbers are there already. */
void pl_metrics_evaluated(pl_metrics *metrics, const pl_eval_event *event);

/* A text: the line is made in `line`, PL_SAMPLES_LINE_BYTES. */
void pl_metrics_sampled(pl_metrics *metrics, const char *out_dir,
                        const pl_sample_event *event, char *line);

/* What came of a task. */
void pl_metrics_asked(pl_metrics *metrics, const char *out_dir,
                      const pl_task_event *event);

/* Both are where `out_dir` is now: those that aren't there any more (it was
 * removed, or somebody took them) are begun again, as for a run that is resumed
 * at `step`. Allocates nothing. */
void pl_metrics_follow(pl_metrics *metrics, const char *out_dir, uint64_t step);

/* Waits until the lines are on the disk. */
void pl_metrics_sync(pl_metrics *metrics);

/* The past of a checkpoint at `step`. */
pl_metrics_past pl_metrics_past_at(const pl_metrics *metrics, uint64_t step);

/* How large the files can be after so many updates, evaluations, texts and
 * results of tasks, whatever the numbers are. */
typedef struct pl_metrics_bytes {
    uint64_t lines;   /* metrics.jsonl */
    uint64_t events;  /* TensorBoard's */
    uint64_t samples; /* samples.jsonl */
    uint64_t tasks;   /* tasks.jsonl */
    uint64_t copy;    /* a checkpoint's metrics.jsonl */
} pl_metrics_bytes;
pl_metrics_bytes pl_metrics_most_bytes(uint64_t updates, uint64_t evals,
                                       pl_samples_most samples, uint64_t tasks);

/* ---- for metrics_open.c ---- */

enum { PL_METRICS_LINE_BYTES = 1024 };

/* Reads the copy in `folder`, or begins an empty one. */
PL_MUST_CHECK pl_status pl_metrics_open_thin(pl_metrics *metrics,
                                             const char *folder,
                                             const pl_metrics_past *past,
                                             pl_heap *heap, pl_error *err);
/* Opens metrics.jsonl. */
PL_MUST_CHECK pl_status pl_metrics_open_lines(pl_metrics *metrics,
                                              const char *path,
                                              const pl_metrics_past *past,
                                              pl_error *err);

#endif
