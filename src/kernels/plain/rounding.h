/* rounding.h: stochastic rounding to bfloat16 and to 8 bits, a block at a time.
 */
#ifndef PL_KERNELS_PLAIN_ROUNDING_H
#define PL_KERNELS_PLAIN_ROUNDING_H

#include "base/rng.h"
#include "kernels/plain/convert.h"
#include "kernels/plain/plain.h"
#include "kernels/plain/share.h"
#include "kernels/vmath.h"

#include <float.h>
#include <math.h>

enum { BLOCK = PL_QUANT_BLOCK };

/* Whose chances: the same for all that is rounded of a tensor in one step. */
typedef struct chances {
    uint32_t seed, step, tensor;
} chances;

/* words[i]: the random word for the stochastic rounding of the tensor's element
 * `first` + i, where first is a multiple of 4. */
static inline void random_words(chances of, pl_rounded what, size_t first,
                                uint32_t words[BLOCK])
{
    enum { QUADS = BLOCK / 4 };
    const uint32_t key[2] = { of.seed, PL_RNG_ROUND }, step = of.step,
                   tensor = of.tensor;
    uint32_t part[4][QUADS];
    for (uint32_t i = 0; i < QUADS; i++) {
        const uint32_t counter[4] = { (uint32_t)(first / 4) + i, tensor,
                                      (uint32_t)what, step };
        uint32_t out[4];
        pl_philox(counter, key, out);
        part[0][i] = out[0];
        part[1][i] = out[1];
        part[2][i] = out[2];
        part[3][i] = out[3];
    }
    for (int i = 0; i < QUADS; i++)
        for (int w = 0; w < 4; w++)
            words[4 * i + w] = part[w][i];
}

static inline void keep_bf16(uint16_t *restrict to, const float *restrict w,
                             const uint32_t *restrict words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint32_t u = pl_float_bits(w[i]);
        const uint32_t number = u + (words[i] >> 16), nan = u | 0x400000u;
        uint32_t h = w[i] == w[i] ? number : nan;
        h = (h & 0x7fffffffu) < PL_BF16_LEAST ? h & 0x80000000u : h;
        to[i] = (uint16_t)(h >> 16);
    }
}

/* codes[i] of magnitudes x[i]: 0 .. most. */
static inline void codes_of(int32_t *restrict codes, const float *restrict x,
                            float scale, int32_t most,
                            const uint32_t *restrict words)
{
    const float end = (float)(most * most),
                factor = scale > 0.0f ? end / scale : 0.0f;
    for (int i = 0; i < BLOCK; i++) {
        const float y = x[i] * factor, bounded = y <= end ? y : end;
        const int32_t c = (int32_t)sqrtf(bounded);
        const float part = (bounded - (float)(c * c)) / (float)(2 * c + 1);
        const float chance = (float)(int32_t)(words[i] >> 8) * 0x1p-24f;
        const int32_t up = chance < part ? 1 : 0;
        codes[i] = c + up < most ? c + up : most;
    }
}

static inline float largest(const float *x)
{
    float most[SHARE_UNIT] = { 0 }, all = 0.0f;
    for (int i = 0; i < BLOCK; i += SHARE_UNIT)
        for (int j = 0; j < SHARE_UNIT; j++)
            most[j] = x[i + j] > most[j] ? x[i + j] : most[j];
    for (int j = 0; j < SHARE_UNIT; j++)
        all = most[j] > all ? most[j] : all;
    all = all > FLT_MAX ? FLT_MAX : all; /* 0 * infinity would be NaN */
    return all < 1e-30f ? 0.0f : all;
}

/* m[i]: the first moment that a code stands for. */
static inline void mean_of_codes(float *restrict m,
                                 const int8_t *restrict codes, float scale,
                                 size_t count)
{
    const float unit = scale / 16129.0f;
    for (size_t i = 0; i < count; i++) {
        const int c = codes[i];
        const float size = (float)(c * c) * unit;
        m[i] = c < 0 ? -size : size;
    }
}

/* The other way round, of a block that is 0 beyond `count`. Returns its scale.
 */
static inline float codes_of_mean(int8_t *restrict codes,
                                  const float *restrict m, size_t count,
                                  const uint32_t *restrict words)
{
    float size[BLOCK];
    int32_t code[BLOCK];
    for (int i = 0; i < BLOCK; i++)
        size[i] = abs1(m[i]);
    const float scale = largest(size);
    codes_of(code, size, scale, 127, words);
    for (size_t i = 0; i < count; i++)
        codes[i] = (int8_t)(m[i] < 0.0f ? -code[i] : code[i]);
    return scale;
}

#endif
