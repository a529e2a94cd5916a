/* schedule.h: the learning rate of an update, as nanoGPT computes it. */
#ifndef PL_MODEL_SCHEDULE_H
#define PL_MODEL_SCHEDULE_H

#include "config/config.h"

#include <stdint.h>

/* Linear warm-up, then a cosine from learning_rate to min_lr at
 * lr_decay_iters, then min_lr; constant if decay_lr is off. */
double pl_schedule_rate(const pl_config *config, uint64_t step);

#endif
