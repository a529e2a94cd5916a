/* trainer.h: the loop. Emits events, prints nothing. */
#ifndef PL_TRAIN_TRAINER_H
#define PL_TRAIN_TRAINER_H

#include "train/evaluate.h"
#include "train/session.h"

/* What a listener wants. Whatever it is, an evaluation stops where it is, and
 * so do sampling and tasks. */
enum {
    PL_STOP_NOT,
    PL_STOP_AFTER_UPDATE, /* the update that is under way is finished first */
    PL_STOP_SOON, /* it is given up, unless its end is to be expected within
                   * the listener's patience */
};

/* Those that are called within an update, an evaluation, a text or a task
 * (updating, evaluating, sampling, asking, stop) stand between two steps and
 * must leave the session alone. The first two hear of the first step, and of
 * the others now and then. */
typedef struct pl_listener {
    void *context;
    void (*updating)(void *context, const pl_progress *progress);
    void (*updated)(void *context, const pl_update_event *event);
    /* an update that a stop ended: it never was */
    void (*gave_up)(void *context, const pl_progress *progress);
    void (*evaluating)(void *context, pl_split split,
                       const pl_progress *progress);
    void (*evaluated)(void *context, const pl_eval_event *event);
    void (*saving)(void *context, uint64_t step);
    void (*sampling)(void *context, const pl_progress *progress);
    void (*sampled)(void *context, const pl_sample_event *event);
    void (*asking)(void *context, const pl_progress *progress);
    void (*asked)(void *context, const pl_task_event *event);
    int (*stop)(void *context);
    double patience_seconds; /* with PL_STOP_SOON; 0: none */
} pl_listener;

/* Updates from session->run.step to max_iters, with evaluations and checkpoints
 * as the config has them. PL_E_STOPPED after listener->stop: an update that was
 * under way is finished or given up as a whole, and the state is saved as of
 * that step, as it is at the end, also where there was nothing to train. Going
 * on from there leads to the same bits and the same metrics. A checkpoint that
 * can't be written on the way is warned of; at the end it is an error that says
 * what was lost. */
PL_MUST_CHECK pl_status pl_train(pl_session *session,
                                 const pl_listener *listener, pl_error *err);

/* One update: batch_size x gradient_accumulation_steps sequences. */
PL_MUST_CHECK pl_status pl_train_update(pl_session *session,
                                        pl_update_event *event, pl_error *err);

#endif
