/* trainer_looks.h: what a training learns of its machine while it updates. */
#ifndef PL_TRAIN_TRAINER_LOOKS_H
#define PL_TRAIN_TRAINER_LOOKS_H

#include "advise/load.h"
#include "model/looks.h"
#include "train/session.h"

/* From now on each step of an update is timed (on), or none is. */
void pl_trainer_profile(pl_session *session, int on);

/* What one update says of the machine: a look. It began at `from`. */
void pl_trainer_look(pl_session *session, pl_looks *looks, const pl_load *from);

/* What the looks say of the machine, for this run and the next. */
void pl_trainer_learn(pl_session *session, const pl_looks *looks);

#endif
