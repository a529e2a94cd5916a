/* diloco.h: processes of a run as workers (sync_interval above 1): DiLoCo,
 * arXiv 2311.08105.
 *
 * Worker m has the sequences that rank m would have, and makes its own updates
 * of them, with its own optimizer. After every sync_interval of these all meet:
 * the mean of their weights pulls those that they met with last (the anchor) by
 * an outer step with Nesterov's momentum, and all go on from there.
 *
 *     weights -> gradients -> their sum, by slices -> outer step -> weights
 *      (all)       (all)       (train/ranks.c)       (own slice)     (all)
 *
 * One process may be the only worker. Not to be called where there are none
 * (pl_gpt_workers). */
#ifndef PL_TRAIN_DILOCO_H
#define PL_TRAIN_DILOCO_H

#include "train/session.h"

/* The sum of this worker's losses; `all`: of everybody's, where they are in one
 * sum already. */
double pl_diloco_own_loss(const pl_session *session, double all);

/* Whether an update was skipped, anywhere: *skipped is this worker's. The loss
 * scale and the end of a run that diverges follow from it, so that all have the
 * same. */
PL_MUST_CHECK pl_status pl_diloco_any_skipped(pl_session *session,
                                              uint32_t *skipped, pl_error *err);

/* They meet. The gradients are zero before it; after it those that this worker
 * doesn't own are to be cleared. Where it fails, the weights may be neither
 * what they were nor what they should be. */
PL_MUST_CHECK pl_status pl_diloco_sync(pl_session *session, pl_error *err);

#endif
