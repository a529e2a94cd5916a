/* session_quiz.h: the tasks that a training asks (tasks, task_interval): read,
 * encoded once and given their memory before the first step, so that all that
 * can be wrong with them is found then. */
#ifndef PL_TRAIN_SESSION_QUIZ_H
#define PL_TRAIN_SESSION_QUIZ_H

#include "store/run.h"
#include "train/request.h"

typedef struct pl_session_quiz {
    pl_requests requests; /* no tasks: the run asks none */
    pl_task_result *results;
} pl_session_quiz;

/* None unless task_interval is set. */
PL_MUST_CHECK pl_status pl_session_quiz_open(pl_session_quiz *quiz,
                                             const pl_config *config,
                                             const pl_tokenizer *tokenizer,
                                             const char *folder, pl_heap *heap,
                                             pl_error *err);

#endif
