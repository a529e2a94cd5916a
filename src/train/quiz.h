/* quiz.h: tasks that a training puts to its model on its way, with the weights
 * it has and the sample program of its own plan. Nothing of the run is touched,
 * as with previews (preview.h). The results are those that `plimsoll eval
 * --task` has of a checkpoint of that step, to the bit. */
#ifndef PL_TRAIN_QUIZ_H
#define PL_TRAIN_QUIZ_H

#include "train/session.h"

/* Whoever waits: `stop` is asked between any two steps of a program. */
typedef struct pl_quiz_watch {
    void *context;
    void (*progress)(void *context, const pl_progress *progress);
    void (*asked)(void *context, const pl_task_event *event);
    int (*stop)(void *context);
} pl_quiz_watch;

/* Where this step is one to ask at (task_interval) and has no results yet: a
 * line for each task, into tasks.jsonl and to the watch. PL_E_STOPPED if it
 * stopped: all of this step's are asked again by the run that goes on. */
PL_MUST_CHECK pl_status pl_quiz(pl_session *session, const pl_quiz_watch *watch,
                                pl_error *err);

#endif
