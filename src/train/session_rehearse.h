/* session_rehearse.h: every program once, in its place, before there is
 * anything to lose. What would fail hours later (an op, a page, a stack, a
 * folder that can't be written) fails here, at once. */
#ifndef PL_TRAIN_SESSION_REHEARSE_H
#define PL_TRAIN_SESSION_REHEARSE_H

#include "train/session.h"

/* On a device whose weights, gradients and moments are all zero, as they are
 * when it was opened; they are zero afterwards. One micro-batch of training, an
 * update, a round of evaluation, the longest and the shortest round of
 * decoding; then, if the session trains, one slice is saved to
 * out_dir, loaded again, and removed. */
PL_MUST_CHECK pl_status pl_rehearse(pl_session *session, pl_error *err);

#endif
