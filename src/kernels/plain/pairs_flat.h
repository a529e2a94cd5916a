/* pairs_flat.h: a vector times a matrix by vdpbf16ps (pairs.h): flat.h's GEMV
 * for bf16 products. B is read once, in place: 2 bytes per weight. */
#ifndef PL_KERNELS_PLAIN_PAIRS_FLAT_H
#define PL_KERNELS_PLAIN_PAIRS_FLAT_H

#include "kernels/plain/finish.h"
#include "kernels/plain/flat.h"
#include "kernels/plain/pairs.h"
#include "kernels/plain/tile.h"

#if defined(PL_PAIRS_CHAIN)

/* Elements of A that are paired at a time, and columns whose sums are kept,
 * both on the stack. */
enum { PAIRS_DEPTH = 1024, PAIRS_COLUMNS = 2048 };

/* acc[n] += pairs of a times pairs of rows of b, for up to 32 columns: `pairs`
 * of them, the last without its odd row if `odd` is set. */
PL_INLINE void pairs_axpy(float *acc, const uint32_t *a, const void *b,
                          size_t b_row, size_t pairs, int odd, size_t count,
                          pl_storage storage)
{
    __m512 low = _mm512_loadu_ps(acc), high = _mm512_loadu_ps(acc + WORDS);
    PL_UNROLL
    for (size_t p = 0; p < pairs; p++) {
        const void *even = pl_storage_at(b, 2 * p * b_row, storage),
                   *next = pl_storage_at(even, b_row, storage);
        const __m512bh x = (__m512bh)_mm512_set1_epi32((int)a[p]);
        __m512i words[2], second = _mm512_setzero_si512();
        pairs_prefetch(even, PREFETCH_ROWS * b_row, storage);
        pairs_prefetch(next, PREFETCH_ROWS * b_row, storage);
        if (!odd || p + 1 < pairs)
            second = count == HALVES ? pairs_read(next, storage)
                                     : pairs_read_some(next, count, storage);
        pairs_weave(count == HALVES ? pairs_read(even, storage)
                                    : pairs_read_some(even, count, storage),
                    second, words);
        low = _mm512_dpbf16_ps(low, x, (__m512bh)words[0]);
        high = _mm512_dpbf16_ps(high, x, (__m512bh)words[1]);
    }
    _mm512_storeu_ps(acc, low);
    _mm512_storeu_ps(acc + WORDS, high);
}

/* K rows of b, `count` columns; acc has room for whole vectors. */
PL_INLINE void pairs_axpy_rows(float *acc, const uint32_t *a, const void *b,
                               size_t b_row, size_t K, size_t count,
                               pl_storage storage)
{
    enum { PAIRS = UNROLL_ROWS };
    for (size_t k = 0; k < K; k += 2 * PAIRS) {
        const size_t some = K - k < 2 * PAIRS ? K - k : 2 * PAIRS;
        for (size_t n = 0; n < count; n += HALVES) {
            const size_t columns = count - n < HALVES ? count - n : HALVES;
            const void *from = pl_storage_at(b, k * b_row + n, storage);
            if (some == 2 * PAIRS && columns == HALVES)
                pairs_axpy(acc + n, a + k / 2, from, b_row, PAIRS, 0, HALVES,
                           storage);
            else
                for (size_t i = 0; i < some; i += 2)
                    pairs_axpy(acc + n, a + (k + i) / 2,
                               pl_storage_at(from, i * b_row, storage), b_row,
                               1, i + 1 == some, columns, storage);
        }
    }
}

/* acc[i] += a times column i of a transposed b, for up to 16 of them. */
PL_INLINE void pairs_dot(float acc[WORDS], const uint32_t *a, const void *b,
                         size_t b_col, size_t K, size_t columns,
                         pl_storage storage)
{
    enum { AHEAD = 2 * WORDS, LINE = 64 };
    const size_t bytes = pl_storage_bytes(storage);
    __m512 sum = _mm512_loadu_ps(acc);
    for (size_t k = 0; k < K; k += HALVES) {
        const size_t count = K - k < HALVES ? K - k : HALVES;
        const void *from = pl_storage_at(b, k, storage);
        const char *soon = (const char *)pl_storage_at(b, AHEAD * b_col,
                                                       storage) +
                           k * WORDS * bytes;
        __m512i words[WORDS];
        PL_UNROLL
        for (size_t i = 0; i < HALVES * WORDS * bytes; i += LINE)
            __builtin_prefetch(soon + i, 0, INTO_L2);
        if (columns == WORDS && count == HALVES)
            pairs_of_columns(words, from, b_col, WORDS, HALVES, storage);
        else
            pairs_of_columns(words, from, b_col, columns, count, storage);
        PL_UNROLL
        for (size_t i = 0; i < WORDS; i++) {
            const __m512i x = _mm512_set1_epi32(
                2 * i < count ? (int)a[k / 2 + i] : (int)0x80008000u);
            sum = _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)words[i]);
        }
    }
    _mm512_storeu_ps(acc, sum);
}

/* The initial values of the chains of `count` columns from n on. */
static void pairs_start(float *acc, const pl_gemm *g, size_t m, size_t n,
                        size_t count)
{
    memset(acc, 0, (count + HALVES - 1) / HALVES * HALVES * sizeof *acc);
    if (g->start == PL_GEMM_BIAS)
        tile_bias(acc, g, n, count);
    else if (g->start == PL_GEMM_KEEP)
        memcpy(acc, (const float *)g->c + m * g->c_row + n,
               count * sizeof *acc);
}

/* Row m of A from k on, as pairs. */
static void pairs_of_a(uint32_t *to, const pl_gemm *g, size_t m, size_t k,
                       size_t K)
{
    const void *a = pl_storage_at(g->a, m * g->a_row + k, g->a_storage);
    if (g->a_storage == PL_STORE_BF16)
        pairs_of_row(to, a, K, PL_STORE_BF16);
    else
        pairs_of_row(to, a, K, PL_STORE_F32);
}

/* A product of few rows; storage is g->b_storage. */
PL_INLINE void pairs_flat(const pl_gemm *g, offset_in_c first,
                          pl_storage storage)
{
    float acc[PAIRS_COLUMNS];
    uint32_t a[PAIRS_DEPTH / 2];
    const size_t most = g->b_col == 1 ? PAIRS_COLUMNS : WORDS;
    for (size_t m = 0; m < g->M; m++)
        for (size_t n = 0; n < g->N; n += most) {
            const size_t count = g->N - n < most ? g->N - n : most;
            pairs_start(acc, g, m, n, count);
            for (size_t k = 0; k < g->K; k += PAIRS_DEPTH) {
                const size_t K = g->K - k < PAIRS_DEPTH ? g->K - k
                                                        : PAIRS_DEPTH;
                const void *b = pl_storage_at(g->b, k * g->b_row + n * g->b_col,
                                              storage);
                if (n == 0 || g->K > PAIRS_DEPTH)
                    pairs_of_a(a, g, m, k, K);
                if (g->b_col == 1)
                    pairs_axpy_rows(acc, a, b, g->b_row, K, count, storage);
                else
                    pairs_dot(acc, a, b, g->b_col, K, count, storage);
            }
            finish_row(g, first, acc, m, n, count);
        }
}

static void gemv_pairs(const pl_gemm *g, offset_in_c first)
{
    if (g->b_storage == PL_STORE_BF16)
        pairs_flat(g, first, PL_STORE_BF16);
    else
        pairs_flat(g, first, PL_STORE_F32);
}

#endif
#endif
