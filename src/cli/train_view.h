/* train_view.h: the lines that a training prints. */
#ifndef PL_CLI_TRAIN_VIEW_H
#define PL_CLI_TRAIN_VIEW_H

#include "advise/mfu.h"
#include "train/trainer.h"

typedef struct pl_train_view {
    const pl_session *session;
    uint64_t began_step;
    double began; /* seconds */
    pl_mfu mfu;
    double mean_ms;                                /* of an update, smoothed */
    double eval_seconds;                           /* of the last evaluation */
    double update_began, eval_began, sample_began; /* 0: not under way */
    double shown;
} pl_train_view;

/* Measures the machine's peak (some 40 ms, and again after the first updates)
 * and gives the callbacks. */
pl_listener pl_train_view_begin(pl_train_view *view, const pl_session *session);

#endif
