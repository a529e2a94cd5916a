/* sampler.h: writing text, token by token, with a key-value cache.
 *
 * The tokens are those that a full forward pass would give, to the bit: the
 * cache only saves work. Past block_size the window slides, as nanoGPT's
 * does, and positions begin at 0 again, so each token then costs a whole
 * window. */
#ifndef PL_TRAIN_SAMPLER_H
#define PL_TRAIN_SAMPLER_H

#include "train/session.h"

/* How the next token is chosen. */
typedef struct pl_sampling {
    double temperature; /* 0: the likeliest */
    size_t top_k;       /* 0: among all */
    uint32_t seed;
    double top_p; /* among the likeliest that have this share together, and
                   * those equal to the last of them; 0: among all */
} pl_sampling;

typedef struct pl_sampler {
    pl_session *session;
    pl_sampling sampling;
    int32_t *tokens; /* prompt and what was written: capacity of them */
    size_t count, capacity;
    size_t cached;   /* tokens whose keys and values the cache holds */
    uint32_t sample; /* which text: part of the random numbers' key */
    const pl_run_watch *watch; /* of its programs; may be NULL */
} pl_sampler;

/* Room for `capacity` tokens, from the session's heap. */
PL_MUST_CHECK pl_status pl_sampler_open(pl_sampler *sampler,
                                        pl_session *session,
                                        const pl_sampling *sampling,
                                        size_t capacity, pl_error *err);

/* Begins text number `sample` with a prompt of at least one token. */
void pl_sampler_start(pl_sampler *sampler, uint32_t sample,
                      const int32_t *prompt, size_t count);

/* The next token; it is appended. count < capacity. -1: the logits are not
 * finite, the weights are broken. PL_E_STOPPED if the watch ended a program:
 * the text can only be begun again. */
PL_MUST_CHECK pl_status pl_sampler_next(pl_sampler *sampler, int32_t *token,
                                        pl_error *err);

/* The logits that the next token would be chosen from: [V], the caller's to
 * change, valid until the next call. For tests and tools. */
PL_MUST_CHECK pl_status pl_sampler_logits(pl_sampler *sampler, float **logits,
                                          pl_error *err);

/* Chooses from logits[V], which are overwritten, as `sampling` says. words are
 * the random ones. -1: no logit is a number. */
int32_t pl_sampler_choose(float *logits, size_t V, const pl_sampling *sampling,
                          const uint32_t words[4]);

#endif
