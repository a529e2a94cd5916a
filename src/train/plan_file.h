/* plan_file.h: plan.json in a run's folder: what takes what, by program and by
 * class, the budget, the model, and the config with the origin of each value.
 * For those who look at the run (store/notes.h): no run reads it. */
#ifndef PL_TRAIN_PLAN_FILE_H
#define PL_TRAIN_PLAN_FILE_H

#include "train/session.h"

typedef struct pl_plan_more {
    double update_flops; /* of an update, as nanoGPT counts them */
    size_t live_bytes;   /* of the budget, for a page beside the run; or 0 */
} pl_plan_more;

/* Writes it into session->run.outdir, where the session has one; what was there
 * is replaced. Uses the run's text buffer. A config that is too long for it is
 * left out. */
PL_MUST_CHECK pl_status pl_plan_file_write(const pl_session *session,
                                           const pl_plan_more *more,
                                           pl_error *err);

#endif
