/* flat.h: one row times a matrix, which is read once, as it lies. What decoding
 * a token takes is what reading takes. Chains in ascending k, as everywhere. */
#ifndef PL_KERNELS_PLAIN_FLAT_H
#define PL_KERNELS_PLAIN_FLAT_H

#include "kernels/plain/vec.h"

#include <stddef.h>

enum { TURNED = 8 }; /* columns that are turned together */

typedef float oct __attribute__((vector_size(32)));

/* Eight rows of eight become their columns. */
PL_INLINE void turn_octs(oct q[8])
{
    oct r[8];
    PL_UNROLL
    for (int i = 0; i < 8; i += 2) {
        r[i] = __builtin_shufflevector(q[i], q[i + 1], 0, 8, 1, 9, 4, 12, 5,
                                       13);
        r[i + 1] = __builtin_shufflevector(q[i], q[i + 1], 2, 10, 3, 11, 6, 14,
                                           7, 15);
    }
    PL_UNROLL
    for (int i = 0; i < 8; i += 4) {
        PL_UNROLL
        for (int j = 0; j < 2; j++) {
            q[i + 2 * j] = __builtin_shufflevector(r[i + j], r[i + j + 2], 0, 1,
                                                   8, 9, 4, 5, 12, 13);
            q[i + 2 * j + 1] = __builtin_shufflevector(
                r[i + j], r[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    }
    PL_UNROLL
    for (int i = 0; i < 4; i++) {
        const oct low = q[i], high = q[i + 4];
        q[i] = __builtin_shufflevector(low, high, 0, 1, 2, 3, 8, 9, 10, 11);
        q[i + 4] = __builtin_shufflevector(low, high, 4, 5, 6, 7, 12, 13, 14,
                                           15);
    }
}

/* acc[n] += a[0] b[0, n], then a[1] b[1, n], ... for n < count. */
static inline void add_rows(float *restrict acc, const float *restrict a,
                            size_t a_col, const float *restrict b, size_t b_row,
                            size_t K, size_t count)
{
    size_t k = 0;
    for (; k + 4 <= K; k += 4) {
        const float a0 = a[k * a_col], a1 = a[(k + 1) * a_col],
                    a2 = a[(k + 2) * a_col], a3 = a[(k + 3) * a_col];
        const float *restrict b0 = b + k * b_row, *restrict b1 = b0 + b_row,
                              *restrict b2 = b1 + b_row,
                              *restrict b3 = b2 + b_row;
        for (size_t n = 0; n < count; n++)
            acc[n] = fma1(
                a3, b3[n],
                fma1(a2, b2[n], fma1(a1, b1[n], fma1(a0, b0[n], acc[n]))));
    }
    for (; k < K; k++)
        for (size_t n = 0; n < count; n++)
            acc[n] = fma1(a[k * a_col], b[k * b_row + n], acc[n]);
}

/* sum += a * b, by pointers since not every set passes such vectors. */
PL_INLINE void oct_add(oct *sum, float a, const oct *b)
{
#if defined(__FMA__)
    *sum = _mm256_fmadd_ps(_mm256_set1_ps(a), *b, *sum);
#else
    *sum += a * *b;
#endif
}

enum { OCTS = 4, TOGETHER = OCTS * 8 }; /* columns whose chains run abreast */

/* acc[i] += a[0] b[i, 0], then a[1] b[i, 1], ... for TOGETHER rows of b. */
static inline void add_columns(float *acc, const float *a, size_t a_col,
                               const float *b, size_t b_col, size_t K)
{
    oct sum[OCTS];
    size_t k = 0;
    memcpy(sum, acc, sizeof sum);
    for (; k + 8 <= K; k += 8)
        for (int j = 0; j < OCTS; j++) {
            const float *from = b + (size_t)(8 * j) * b_col + k;
            oct q[8];
            PL_UNROLL
            for (int i = 0; i < 8; i++) {
                memcpy(&q[i], from + (size_t)i * b_col, sizeof q[i]);
                __builtin_prefetch(from + ((size_t)i + TOGETHER) * b_col);
            }
            turn_octs(q);
            PL_UNROLL
            for (int i = 0; i < 8; i++)
                oct_add(&sum[j], a[(k + (size_t)i) * a_col], &q[i]);
        }
    memcpy(acc, sum, sizeof sum);
    for (; k < K; k++)
        for (size_t i = 0; i < TOGETHER; i++)
            acc[i] = fma1(a[k * a_col], b[i * b_col + k], acc[i]);
}

#endif
