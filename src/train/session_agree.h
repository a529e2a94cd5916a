/* session_agree.h: what the processes that share a run have to find alike
 * before the first step, and what each of them needs. */
#ifndef PL_TRAIN_SESSION_AGREE_H
#define PL_TRAIN_SESSION_AGREE_H

#include "train/session.h"

/* The tokens of both splits, by their hashes, and the vocabulary. PL_E_RANKS
 * with who differs in what. */
PL_MUST_CHECK pl_status pl_agree_data(const pl_session *session,
                                      const uint64_t hashes[2], pl_error *err);

/* The arithmetic of the plan; fills session->needs. */
PL_MUST_CHECK pl_status pl_agree_plan(pl_session *session, pl_error *err);

#endif
