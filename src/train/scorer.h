/* scorer.h: how likely a model finds the end of a text, given its beginning.
 *
 * Of a session that serves by the program that serves, many tokens at once; of
 * any other by the one that samples, token by token. The bits are the same
 * (slots.h, score.h). What the cache has of the text before is used again: the
 * contexts of one question, and the examples before all of them, are read
 * once. */
#ifndef PL_TRAIN_SCORER_H
#define PL_TRAIN_SCORER_H

#include "train/sampler.h"
#include "train/score.h"

typedef struct pl_scorer {
    pl_session *session;
    pl_slots slots;     /* where it serves */
    pl_sampler sampler; /* where it doesn't */
    int serves;
    int32_t *tokens; /* [T]: those that the cache has */
    size_t cached;
} pl_scorer;

/* `tokens` has room for T of them. `watch` may be NULL. The cache is the
 * scorer's until another program runs. */
pl_scorer pl_scorer_make(pl_session *session, int32_t *tokens,
                         const pl_run_watch *watch);

typedef struct pl_scored {
    double logprob; /* of all tokens that were asked for */
    int greedy;     /* each of them was the likeliest in its place */
} pl_scored;

/* tokens[from .. count), 1 <= from < count, count <= T + 1. PL_E_STOPPED where
 * the watch ended it. */
PL_MUST_CHECK pl_status pl_scorer_score(pl_scorer *scorer,
                                        const int32_t *tokens, size_t count,
                                        size_t from, pl_scored *scored,
                                        pl_error *err);

#endif
