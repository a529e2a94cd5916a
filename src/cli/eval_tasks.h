/* eval_tasks.h: `plimsoll eval --task`: tasks put to a model, as people and
 * scripts see it. */
#ifndef PL_CLI_EVAL_TASKS_H
#define PL_CLI_EVAL_TASKS_H

#include "train/request.h"

typedef struct pl_eval_tasks_wish {
    const char *const *paths; /* files and folders */
    size_t count;
    int json;          /* results for scripts */
    const char *items; /* a file for a line of JSON per item, or NULL */
} pl_eval_tasks_wish;

/* Of the model in `folder`. */
PL_MUST_CHECK pl_status pl_eval_tasks(pl_config *config, const char *folder,
                                      const pl_eval_tasks_wish *wish,
                                      pl_heap *heap, pl_error *err);

/* Which tasks were found, of what kind, and what of them is too long. */
void pl_eval_tasks_say(const pl_requests *requests);

#endif
