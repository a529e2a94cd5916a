/* rng.h: random numbers that are looked up, never drawn from a state.
 *
 * Philox4x32-10 (Salmon et al. 2011): a key of 64 bits and a counter of 128
 * bits give 128 random bits. The same question has the same answer on every
 * thread, in every plan, after every resume. */
#ifndef PL_BASE_RNG_H
#define PL_BASE_RNG_H

#include "base/philox.h"

/* What a number is for: the second word of every key, so that no two uses can
 * meet. The first word is the seed. */
typedef enum pl_rng_use {
    PL_RNG_INIT = 1, /* counter: element / 4 (low, high in the third), tensor */
    PL_RNG_CROP,     /* counter: step, sequence in the update, split, 0 */
    PL_RNG_EVAL,     /* counter: sequence, 0, split, 0 */
    PL_RNG_SAMPLE,   /* counter: position, sample, 0, 0 */
    PL_RNG_DROPOUT,  /* kernels.h states the counter */
    PL_RNG_ROUND,    /* counter: element / 4, tensor, pl_rounded, step */
} pl_rng_use;

/* Four words for (use, seed, a, b, c, d). */
static inline void pl_rng_words(pl_rng_use use, uint32_t seed, uint32_t a,
                                uint32_t b, uint32_t c, uint32_t d,
                                uint32_t out[4])
{
    const uint32_t counter[4] = { a, b, c, d },
                   key[2] = { seed, (uint32_t)use };
    pl_philox(counter, key, out);
}

/* A whole number in [0, bound), from 64 of the bits: multiply-shift, bias
 * below 2^-32 for every bound under 2^32 and harmless above. bound > 0. */
uint64_t pl_rng_below(const uint32_t words[4], uint64_t bound);

/* A double in [0, 1) with 53 random bits. */
double pl_rng_unit(const uint32_t words[4]);

/* Two independent N(0,1) from words[0..1] and two from words[2..3]
 * (Box-Muller in double, by exact.h's functions: the same bits everywhere). */
void pl_rng_normals(const uint32_t words[4], double out[4]);

#endif
