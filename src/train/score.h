/* score.h: how likely a model finds a text: the log probability of every token
 * given those before it, and the likeliest tokens in its place.
 *
 * Of logits x[V] token i has x[i] - (m + log(s)), in double, where m is the
 * largest of them and s the sum of exp(x[j] - m) over ascending j, by
 * base/exact: the same bits everywhere. Among the likeliest the larger logit
 * comes first, and of equal ones the smaller token. */
#ifndef PL_TRAIN_SCORE_H
#define PL_TRAIN_SCORE_H

#include "train/slots.h"

enum { PL_SCORE_MOST_TOP = 20 };

typedef struct pl_score_choice {
    int32_t token;
    double logprob; /* natural logarithm of its probability */
} pl_score_choice;

typedef struct pl_score {
    pl_score_choice own; /* the token that is there */
    size_t top_count;
    pl_score_choice top[PL_SCORE_MOST_TOP]; /* in its place, likeliest first */
} pl_score;

/* The score of `token` by logits[V], with the `top` likeliest (at most V, and
 * PL_SCORE_MOST_TOP). 0: no logit is a finite number, or one isn't a number;
 * the score is nothing then. */
int pl_score_make(pl_score *score, const float *logits, size_t V, int32_t token,
                  size_t top);

/* Who takes the score of token `index`, from 1 on: the first token has none. */
typedef struct pl_score_taker {
    void *context;
    void (*take)(void *context, size_t index, const pl_score *score);
} pl_score_taker;

/* Scores a text of 1 to T tokens in slot `slot`, whose cache it takes. Token 0
 * has no score: nothing is before it. */
PL_MUST_CHECK pl_status pl_score_text(pl_slots *slots, size_t slot,
                                      const int32_t *tokens, size_t count,
                                      size_t top, const pl_score_taker *taker,
                                      pl_error *err);

/* The error of weights that give no numbers. */
PL_MUST_CHECK pl_status pl_score_broken(pl_error *err);

#endif
