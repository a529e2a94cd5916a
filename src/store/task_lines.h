/* task_lines.h: what tasks say of a model on its way, in out_dir/tasks.jsonl: a
 * line for each task, those of one step together.
 *
 *   {"step": 500, "task": "arc", "kind": "multiple choice", "items": 500,
 *    "acc": 0.31, "acc_stderr": 0.02, ..., "chance": 0.25, "centred": 0.08}
 *
 * The file is as step_lines.h says; the numbers are TensorBoard's, too, as
 * task/arc/acc and so on. */
#ifndef PL_STORE_TASK_LINES_H
#define PL_STORE_TASK_LINES_H

#include "config/config.h"
#include "store/events.h"
#include "store/step_lines.h"

#include <stddef.h>

#define PL_TASK_LINES_NAME "tasks.jsonl"
#define PL_TASK_LINES_TAG  "task/"

enum {
    PL_TASK_LINES_MOST = 64, /* tasks of a training */
    PL_TASK_LINES_LABEL_BYTES = 64,
    PL_TASK_LINES_BYTES = 768, /* of a line */
    PL_TASK_LINES_TAG_BYTES = 96,
};

/* The one table of a result's numbers: X(name, value of `r`). Those that such
 * a task hasn't are NaN, and left out. */
#define PL_TASK_NUMBERS(X)                                                     \
    X("acc", r->accuracy[PL_MEASURE_WHOLE].value)                              \
    X("acc_stderr", r->accuracy[PL_MEASURE_WHOLE].error)                       \
    X("acc_norm", r->accuracy[PL_MEASURE_CHARACTERS].value)                    \
    X("acc_norm_stderr", r->accuracy[PL_MEASURE_CHARACTERS].error)             \
    X("acc_bytes", r->accuracy[PL_MEASURE_BYTES].value)                        \
    X("acc_tokens", r->accuracy[PL_MEASURE_TOKENS].value)                      \
    X("perplexity", r->perplexity.value)                                       \
    X("perplexity_stderr", r->perplexity.error)                                \
    X("chance", r->chance)                                                     \
    X("centred", r->centred)

/* A line of a result, with its line feed; returns its bytes. */
size_t pl_task_line_write(char text[PL_TASK_LINES_BYTES], uint64_t step,
                          const pl_task_result *r);

/* Whether this config's run asks at `step`. */
int pl_task_lines_due(const pl_config *config, uint64_t step);

/* How many lines there can be at the end of a run: what a folder holds isn't
 * looked at. */
uint64_t pl_task_lines_most(const pl_config *config);

#endif
