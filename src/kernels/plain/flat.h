/* flat.h: a vector times a matrix (GEMV), which is read once and in place:
 * decoding a token takes as long as reading its weights. Chains run in
 * ascending k, as everywhere. */
#ifndef PL_KERNELS_PLAIN_FLAT_H
#define PL_KERNELS_PLAIN_FLAT_H

#include "kernels/plain/convert.h"
#include "kernels/plain/vec.h"
#include "kernels/tensor.h"

#include <stddef.h>

/* How a matrix is stored, what it is rounded to as it is read, and how its
 * products are added up: exact or amx. */
typedef struct flat_kind {
    pl_storage storage, round;
    pl_products products;
} flat_kind;

/* One element, a vector, eight. */
PL_INLINE float flat_get(const void *x, size_t i, flat_kind kind)
{
    const float value = pl_storage_get(x, i, kind.storage);
    return kind.storage == PL_STORE_F32 ? pl_storage_round(value, kind.round)
                                        : value;
}

PL_INLINE vf flat_read(const void *x, size_t i, flat_kind kind)
{
    const void *at = pl_storage_at(x, i, kind.storage);
    if (kind.storage == PL_STORE_F32 && kind.round == PL_STORE_F32)
        return v_load(at);
#if defined(__AVX512F__) && defined(__FMA__)
    return kind.storage == PL_STORE_F32
               ? round16(_mm512_loadu_ps(at), kind.round)
               : widen16(at, kind.storage);
#else
    enum { MANY = VL, BY = EIGHT };
    float wide[MANY < BY ? BY : MANY];
    for (size_t j = 0; j + BY <= MANY; j += BY) {
        if (kind.storage == PL_STORE_F32)
            round8(wide + j, (const float *)at + j, kind.round);
        else
            widen8(wide + j, (const uint16_t *)at + j, kind.storage);
    }
    for (size_t j = MANY / BY * BY; j < MANY; j++)
        wide[j] = flat_get(at, j, kind);
    return v_load(wide);
#endif
}

enum { TRANSPOSED = 8 }; /* columns that are transposed together */

typedef float float8 __attribute__((vector_size(32)));

/* Transposes an 8 x 8 matrix, given by its rows. */
PL_INLINE void transpose_8x8(float8 q[8])
{
    float8 r[8];
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
        const float8 low = q[i], high = q[i + 4];
        q[i] = __builtin_shufflevector(low, high, 0, 1, 2, 3, 8, 9, 10, 11);
        q[i + 4] = __builtin_shufflevector(low, high, 4, 5, 6, 7, 12, 13, 14,
                                           15);
    }
}

/* Rows that are added in one pass, how many rows ahead is prefetched, and the
 * locality hint for that: the L2 cache. Many outstanding reads are what memory
 * bandwidth takes. */
enum { UNROLL_ROWS = 8, PREFETCH_ROWS = 32, INTO_L2 = 2 };

/* acc[n] += a[0] b[0, n], then a[1] b[1, n], ... for n < count: one axpy per
 * row of b. kind is constant where this is inlined. */
PL_INLINE void axpy_chain(float *restrict acc, const float *restrict a,
                          const void *restrict b, size_t b_row, size_t K,
                          size_t count, flat_kind kind)
{
    size_t k = 0;
    for (; k + UNROLL_ROWS <= K; k += UNROLL_ROWS) {
        const size_t at = k * b_row;
        size_t n = 0;
        for (; n + VL <= count; n += VL) {
            vf sum = v_load(acc + n);
            PL_UNROLL
            for (size_t i = PREFETCH_ROWS; i < PREFETCH_ROWS + UNROLL_ROWS; i++)
                __builtin_prefetch(
                    pl_storage_at(b, at + i * b_row + n, kind.storage), 0,
                    INTO_L2);
            PL_UNROLL
            for (size_t i = 0; i < UNROLL_ROWS; i++)
                sum = v_fma(v_all(a[k + i]),
                            flat_read(b, at + i * b_row + n, kind), sum);
            v_store(acc + n, sum);
        }
        for (; n < count; n++)
            for (size_t i = 0; i < UNROLL_ROWS; i++)
                acc[n] = fma1(a[k + i], flat_get(b, at + i * b_row + n, kind),
                              acc[n]);
    }
    for (; k < K; k++)
        for (size_t n = 0; n < count; n++)
            acc[n] = fma1(a[k], flat_get(b, k * b_row + n, kind), acc[n]);
}

/* The same in the arithmetic of AMX: the even rows of a group, then the odd
 * ones. */
PL_INLINE void axpy_groups(float *restrict acc, const float *restrict a,
                           const void *restrict b, size_t b_row, size_t K,
                           size_t count, flat_kind kind)
{
    enum { HALF = PL_AMX_GROUP / 2, COLUMNS = 512 };
    float halves[2][HALF], sums[2][COLUMNS];
    for (size_t n = 0; n < count; n += COLUMNS)
        for (size_t k = 0; k < K; k += PL_AMX_GROUP) {
            const size_t rest = K - k, wide = count - n,
                         rows = rest < PL_AMX_GROUP ? rest : PL_AMX_GROUP,
                         columns = wide < COLUMNS ? wide : COLUMNS;
            for (size_t i = 0; i < rows; i++)
                halves[i % 2][i / 2] = a[k + i];
            memset(sums, 0, sizeof sums);
            for (size_t i = 0; i < 2; i++)
                axpy_chain(sums[i], halves[i],
                           pl_storage_at(b, (k + i) * b_row + n, kind.storage),
                           2 * b_row, (rows + 1 - i) / 2, columns, kind);
            for (size_t i = 0; i < columns; i++)
                acc[n + i] += sums[0][i] + sums[1][i];
        }
}

PL_INLINE void axpy_rows(float *restrict acc, const float *restrict a,
                         const void *restrict b, size_t b_row, size_t K,
                         size_t count, flat_kind kind)
{
    if (kind.products == PL_PRODUCTS_AMX)
        axpy_groups(acc, a, b, b_row, K, count, kind);
    else
        axpy_chain(acc, a, b, b_row, K, count, kind);
}

/* sum += a * b, by pointers since not every instruction set can pass such
 * vectors by value. */
PL_INLINE void float8_fma(float8 *sum, float a, const float8 *b)
{
#if defined(__FMA__)
    *sum = _mm256_fmadd_ps(_mm256_set1_ps(a), *b, *sum);
#elif defined(PL_NEON)
    float32x4_t s[2], x[2];
    memcpy(s, sum, sizeof s);
    memcpy(x, b, sizeof x);
    s[0] = vfmaq_n_f32(s[0], x[0], a);
    s[1] = vfmaq_n_f32(s[1], x[1], a);
    memcpy(sum, s, sizeof s);
#else
    *sum += a * *b;
#endif
}

/* Columns whose chains run in parallel. */
enum { DOT_VECTORS = 4, DOT_COLUMNS = DOT_VECTORS * 8 };

/* Eight elements, from k on, of eight rows of b from row i on: q[j] has element
 * k + j of each. */
PL_INLINE void dot_read(float8 q[8], const void *b, size_t b_col, size_t i,
                        size_t k, flat_kind kind)
{
    PL_UNROLL
    for (size_t r = 0; r < 8; r++) {
        const void *at = pl_storage_at(b, (i + r) * b_col + k, kind.storage);
        if (kind.storage != PL_STORE_F32)
            widen8((float *)&q[r], at, kind.storage);
        else if (kind.round != PL_STORE_F32)
            round8((float *)&q[r], at, kind.round);
        else
            memcpy(&q[r], at, sizeof q[r]);
        __builtin_prefetch(
            pl_storage_at(b, (i + r + DOT_COLUMNS) * b_col + k, kind.storage),
            0, INTO_L2);
    }
    transpose_8x8(q);
}

/* acc[k % chains][i] += a[k] b[i, k], k ascending, for DOT_COLUMNS rows of b.
 * chains, 1 or 2, and kind are constant where this is inlined. */
PL_INLINE void dot_chains(float acc[][DOT_COLUMNS], const int chains,
                          const float *a, const void *b, size_t b_col, size_t K,
                          flat_kind kind)
{
    float8 sum[2][DOT_VECTORS];
    const size_t bytes = (size_t)chains * sizeof sum[0];
    size_t k = 0;
    memcpy(sum, acc, bytes);
    for (; k + 8 <= K; k += 8)
        for (int j = 0; j < DOT_VECTORS; j++) {
            float8 q[8];
            dot_read(q, b, b_col, (size_t)(8 * j), k, kind);
            PL_UNROLL
            for (int i = 0; i < 8; i++)
                float8_fma(&sum[i % chains][j], a[k + (size_t)i], &q[i]);
        }
    memcpy(acc, sum, bytes);
    for (; k < K; k++)
        for (size_t i = 0; i < DOT_COLUMNS; i++) {
            float *last = &acc[k % (size_t)chains][i];
            *last = fma1(a[k], flat_get(b, i * b_col + k, kind), *last);
        }
}

/* The dot products of DOT_COLUMNS rows of b with a, added to acc. */
PL_INLINE void dot_columns(float acc[DOT_COLUMNS], const float *a,
                           const void *b, size_t b_col, size_t K,
                           flat_kind kind)
{
    if (kind.products != PL_PRODUCTS_AMX) {
        dot_chains((float(*)[DOT_COLUMNS])acc, 1, a, b, b_col, K, kind);
        return;
    }
    for (size_t k = 0; k < K; k += PL_AMX_GROUP) {
        float halves[2][DOT_COLUMNS] = { { 0 } };
        dot_chains(halves, 2, a + k, pl_storage_at(b, k, kind.storage), b_col,
                   K - k < PL_AMX_GROUP ? K - k : PL_AMX_GROUP, kind);
        for (size_t i = 0; i < DOT_COLUMNS; i++)
            acc[i] += halves[0][i] + halves[1][i];
    }
}

#endif
