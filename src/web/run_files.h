/* run_files.h: a run, read from the files in its folder: metrics.jsonl,
 * samples.jsonl, tasks.jsonl, plan.json, progress.json, warnings.jsonl and the
 * newest checkpoint's state.json. Any of them may be missing but the first.
 *
 * Bounded, however long the run is: updates are gathered in buckets, of which
 * two become one whenever there would be too many; of evaluations every second
 * one goes then; of samples and warnings the last ones stay. What a file holds
 * is somebody else's: a line that can't be read is counted and passed over, as
 * is one that is only half written, and no link leads out of the folder. */
#ifndef PL_WEB_RUN_FILES_H
#define PL_WEB_RUN_FILES_H

#include "base/arena.h"
#include "web/plan_picture.h"

enum {
    PL_RUN_BUCKETS = 400,
    PL_RUN_EVALS = 512,
    PL_RUN_SKIPPED = 256,
    PL_RUN_SAMPLES = 64,
    PL_RUN_WARNINGS = 32,
    PL_RUN_TASKS = 64,
    PL_RUN_KEYS = 256,
    PL_RUN_HELD = 4, /* train, eval, sample, save */
};

/* Numbers that were finite, of those there were. */
typedef struct pl_run_sum {
    double sum, low, high;
    uint64_t count;
} pl_run_sum;

/* Consecutive updates. */
typedef struct pl_run_bucket {
    uint64_t first, last; /* steps */
    uint64_t updates;
    pl_run_sum loss, grad_norm, rate, step_ms;
} pl_run_bucket;

/* NaN: unknown. */
typedef struct pl_run_eval {
    uint64_t step;
    double train, val, train_error, val_error;
    double bpb; /* bits per byte of the validation data */
} pl_run_eval;

/* Texts of a run; as they are, perhaps with a zero inside. */
typedef struct pl_run_text {
    const char *text;
    size_t bytes;
} pl_run_text;

typedef struct pl_run_sample {
    uint64_t step;
    pl_run_text prompt, text;
    int is_cut;
} pl_run_sample;

/* What a task said last. NaN: unknown. */
typedef struct pl_run_task {
    pl_run_text label;
    uint64_t step, items;
    double acc, acc_error, acc_norm, acc_norm_error, perplexity, centred;
} pl_run_task;

typedef struct pl_run_key {
    pl_run_text name, value, from;
} pl_run_key;

typedef struct pl_run_files {
    const char *folder;
    pl_run_bucket *buckets; /* in order */
    size_t n_buckets;
    uint64_t bucket_updates; /* that a full one has: a power of two */
    pl_run_eval *evals;
    size_t n_evals;
    uint64_t evals_every;   /* of those there were, so many became one */
    pl_run_eval best, last; /* by validation loss; the latest */
    int has_eval, has_bpb;
    uint64_t evaluated, updates, lines_lost;
    uint64_t next_step; /* behind the last update */
    pl_run_sum loss, step_ms;
    double last_loss;
    double skipped[PL_RUN_SKIPPED]; /* the first ones' steps */
    size_t n_skipped;
    uint64_t all_skipped;
    pl_run_sample samples[PL_RUN_SAMPLES]; /* the last, in order */
    size_t n_samples;
    uint64_t all_samples;
    pl_run_task tasks[PL_RUN_TASKS]; /* as they came first */
    size_t n_tasks;
    uint64_t all_tasks;
    pl_run_text warnings[PL_RUN_WARNINGS];
    size_t n_warnings;
    uint64_t all_warnings;
    pl_run_key keys[PL_RUN_KEYS];
    size_t n_keys;
    int has_plan; /* and so the following */
    pl_plan_picture plan;
    pl_run_text program, device, layout;
    uint64_t parameters, max_iters, update_tokens;
    pl_run_text phase;                /* "": unknown */
    uint64_t held_bytes[PL_RUN_HELD]; /* the most that was seen; 0: unknown */
} pl_run_files;

/* PL_E_IO where there is no such folder, PL_E_FORMAT where no run is in it. */
PL_MUST_CHECK pl_status pl_run_files_read(pl_run_files *run, const char *folder,
                                          pl_heap *heap, pl_error *err);

double pl_run_mean(const pl_run_sum *sum); /* NaN: none */

/* The value of a key, or NULL. */
const pl_run_text *pl_run_files_key(const pl_run_files *run, const char *name);

/* ---- parts, for tests ---- */

/* One line of metrics.jsonl, `bytes` bytes with a zero behind them. 0: it is
 * none that can be read. */
int pl_run_files_line(pl_run_files *run, const char *line, size_t bytes);

#endif
