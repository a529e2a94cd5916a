/* mask.h: dropout masks as kernels.h defines them, 64 columns at a time. */
#ifndef PL_KERNELS_PLAIN_MASK_H
#define PL_KERNELS_PLAIN_MASK_H

#include "base/rng.h"
#include "kernels/plain/plain.h"
#include "kernels/plain/vec.h"

enum { MASK_COLUMNS = 64 };

/* words[c]: the random word of column `first` + c of one row, whose counter is
 * { high | column / 4, row, sequence, step }. first is a multiple of 4. */
PL_INLINE void mask_words(const pl_dropout *drop, uint32_t high, uint32_t row,
                          uint32_t sequence, uint32_t first,
                          uint32_t words[MASK_COLUMNS])
{
    enum { QUADS = MASK_COLUMNS / 4 };
    const uint32_t key[2] = { drop->seed, (uint32_t)PL_RNG_DROPOUT |
                                              drop->site << 8 |
                                              drop->layer << 16 };
    const uint32_t step = drop->step;
    uint32_t part[4][QUADS];
    for (uint32_t i = 0; i < QUADS; i++) {
        const uint32_t counter[4] = { high | (first / 4 + i), row, sequence,
                                      step };
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

/* y[i] = drop(x[i]) for columns first .. first + count - 1 of one row, x and y
 * being at the first of them, a multiple of 4. In place is allowed. */
PL_INLINE void mask_apply(const pl_dropout *drop, uint32_t high, uint32_t row,
                          uint32_t sequence, size_t first, size_t count,
                          const float *x, float *y)
{
    const uint32_t threshold = drop->threshold;
    const float scale = drop->scale;
    uint32_t words[MASK_COLUMNS];
    for (size_t c = 0; c < count; c += MASK_COLUMNS) {
        const size_t some = count - c < MASK_COLUMNS ? count - c : MASK_COLUMNS;
        mask_words(drop, high, row, sequence, (uint32_t)(first + c), words);
        for (size_t i = 0; i < some; i++) {
            float kept = x[c + i] * scale;
            y[c + i] = words[i] >= threshold ? kept : 0.0f;
        }
    }
}

#endif
