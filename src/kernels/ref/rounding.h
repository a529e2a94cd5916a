/* rounding.h: stochastic rounding, as kernels.h defines it for AdamW. */
#ifndef PL_KERNELS_REF_ROUNDING_H
#define PL_KERNELS_REF_ROUNDING_H

#include "kernels/ref/ref.h"

#include <float.h>
#include <math.h>

/* Whose chances: the same for all that is rounded of a tensor in one step. */
typedef struct ref_chances {
    uint32_t seed, step, tensor;
} ref_chances;

/* The random word of the tensor's element i. */
static inline uint32_t ref_chance(ref_chances of, pl_rounded what, size_t i)
{
    uint32_t word[4];
    pl_rng_words(PL_RNG_ROUND, of.seed, (uint32_t)(i / 4), of.tensor,
                 (uint32_t)what, of.step, word);
    return word[i % 4];
}

static inline uint16_t ref_stochastic_bf16(float x, uint32_t word)
{
    const uint32_t u = pl_float_bits(x);
    if (x != x)
        return pl_bf16_make(x);
    const uint32_t rounded = u + (word >> 16);
    if ((rounded & 0x7fffffffu) < PL_BF16_LEAST)
        return (uint16_t)((u & 0x80000000u) >> 16);
    return (uint16_t)(rounded >> 16);
}

/* The quantized code of a magnitude, 0 .. most. */
static inline int ref_stochastic_code(float x, float scale, int most,
                                      uint32_t word)
{
    const float end = (float)(most * most);
    float y = x * (scale > 0.0f ? end / scale : 0.0f);
    y = y <= end ? y : end; /* NaN too */
    const int c = (int)sqrtf(y);
    const float part = (y - (float)(c * c)) / (float)(2 * c + 1);
    const int up = (float)(word >> 8) * 0x1p-24f < part;
    return c + up < most ? c + up : most;
}

/* The scale of a block whose largest magnitude is `most`. */
static inline float ref_scale_of(float most)
{
    most = most > FLT_MAX ? FLT_MAX : most;
    return most < 1e-30f ? 0.0f : most;
}

/* The first moment that a code stands for. */
static inline float ref_mean_of(int c, float scale)
{
    const float size = (float)(c * c) * (scale / 16129.0f);
    return c < 0 ? -size : size;
}

#endif
