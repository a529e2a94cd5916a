/* trainer.h: the loop. Emits events, prints nothing. */
#ifndef PL_TRAIN_TRAINER_H
#define PL_TRAIN_TRAINER_H

#include "train/evaluate.h"
#include "train/session.h"

typedef struct pl_listener {
    void *context;
    void (*updated)(void *context, const pl_update_event *event);
    void (*evaluated)(void *context, const pl_eval_event *event);
    void (*evaluating)(void *context, pl_split split, uint64_t done,
                       uint64_t total);
    void (*saving)(void *context, uint64_t step);
    int (*stop)(void *context); /* asked between steps: not 0 ends the run */
} pl_listener;

/* Updates from session->step to max_iters, with evaluations and checkpoints as
 * the config has them. PL_E_STOPPED after listener->stop: the step is finished
 * and the state is saved. A checkpoint that can't be written on the way is
 * warned of; at the end it is an error that says what was lost. */
PL_MUST_CHECK pl_status pl_train(pl_session *session,
                                 const pl_listener *listener, pl_error *err);

/* One update: batch_size x gradient_accumulation_steps sequences. */
PL_MUST_CHECK pl_status pl_train_update(pl_session *session,
                                        pl_update_event *event, pl_error *err);

#endif
