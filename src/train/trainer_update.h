/* trainer_update.h: one update of the weights: its batches, the sum of their
 * gradients, and the optimizer; of processes that share it, each has its own
 * groups. */
#ifndef PL_TRAIN_TRAINER_UPDATE_H
#define PL_TRAIN_TRAINER_UPDATE_H

#include "train/trainer.h"

/* PL_E_STOPPED: it was given up, and is as if it had never begun. */
PL_MUST_CHECK pl_status pl_update(pl_session *session,
                                  const pl_listener *listener,
                                  pl_update_event *event, pl_error *err);

#endif
