/* schedule.h: the learning rates of an update. The cosine is nanoGPT's. */
#ifndef PL_MODEL_SCHEDULE_H
#define PL_MODEL_SCHEDULE_H

#include "config/config.h"

#include <stdint.h>

/* Linear warm-up, then what `schedule` says: a cosine or a line from
 * learning_rate to min_lr at lr_decay_iters; with 'wsd' (warm-up, stable,
 * decay) a line over the last warmdown_share of lr_decay_iters; 'constant':
 * learning_rate. After lr_decay_iters it is min_lr. Constant from the first
 * update on if decay_lr is off. */
double pl_schedule_rate(const pl_config *config, uint64_t step);

/* Muon's, which is the same share of its highest as that. */
double pl_schedule_muon_rate(const pl_config *config, uint64_t step);

#endif
