/* philox.h: Philox4x32-10, in words that C, OpenCL C and CUDA share: the text
 * of a GPU's program has this file, too (kernels/dialect.h). */
#ifndef PL_BASE_PHILOX_H
#define PL_BASE_PHILOX_H

#ifdef PL_INLINE
#define PL_PHILOX PL_INLINE
#else
#include <stdint.h>
#define PL_PHILOX static inline
#endif

/* out[4] for counter[4] under key[2]. Static so that kernels vectorise it. */
PL_PHILOX void pl_philox(const uint32_t counter[4], const uint32_t key[2],
                         uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3],
             k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

#endif
