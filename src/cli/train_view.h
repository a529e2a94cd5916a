/* train_view.h: the lines that a training prints. */
#ifndef PL_CLI_TRAIN_VIEW_H
#define PL_CLI_TRAIN_VIEW_H

#include "advise/mfu.h"
#include "store/notes.h"
#include "train/trainer.h"

typedef struct pl_train_view {
    const pl_session *session;
    pl_notes *notes; /* what it tells those who look at its folder */
    uint64_t began_step;
    double began; /* seconds */
    pl_mfu mfu;
    double mean_ms;                                /* of an update, smoothed */
    double eval_seconds;                           /* of the last evaluation */
    double update_began, eval_began, sample_began; /* 0: not under way */
    double quiz_began;                             /* likewise */
    double shown;
} pl_train_view;

/* Measures the machine's peak (some 40 ms, and again after the first updates)
 * and gives the callbacks. */
pl_listener pl_train_view_begin(pl_train_view *view, const pl_session *session,
                                pl_notes *notes);
/* What the process held, beside what was planned. */
void pl_train_view_peak(const pl_session *session);
/* nanoGPT's count of an update's flops. */
double pl_train_view_flops(const pl_session *session);

/* pl_listener's `stop`, by the signals that came. SIGUSR1 is a batch system's:
 * it leaves time for the update. */
int pl_train_view_stop(void *context);

#endif
