/* pairs_pack.h: the operands of pairs_tile.h's products, packed: B in panels, A
 * in rows, or interleaved. */
#ifndef PL_KERNELS_PLAIN_PAIRS_PACK_H
#define PL_KERNELS_PLAIN_PAIRS_PACK_H

#include "kernels/plain/pairs_amx.h"
#include "kernels/plain/tile.h"

#if defined(PL_PAIRS)

/* Elements along k of a block: where a chain may be cut at no cost, and where
 * it would cost a strip of many rows. */
enum { DEPTH = 576, DEEPEST = 2304 };
/* Words from one row of copied A to the next: some more than the pairs, so that
 * rows don't meet in one set of the L1 cache, and whole vectors fit. */
enum { A_WORDS = DEEPEST / 2 + WORDS };
/* Packed B takes at most this much, to stay in the L2 cache beside A. */
enum { PANEL_WORDS = 168 * 1024 };
/* Rows of A that are copied together, on the stack or in scratch; rows of a
 * strip of many. */
#if defined(PL_PAIRS_AMX)
enum { PAIRS_ROWS = 2 * AMX_SIDE, MC_PAIRS = 2 * PAIRS_ROWS };
#else
enum { PAIRS_ROWS = MR, MC_PAIRS = 4 * PAIRS_ROWS };
#endif
enum { MC_PAIRS_STACK = PAIRS_ROWS, STRIP_ROWS = 512 };

typedef struct pairs_work {
    uint32_t *a; /* copied A: a_rows * A_WORDS, of a stack's a_row */
    size_t a_rows, a_row;
    float *room; /* packed B, then the strip: so many words or floats */
    size_t room_words, deepest;
    uint32_t *panels;
    size_t panel; /* words from one panel to the next */
    float *strip;
} pairs_work;

/* K rows of B from element `at` on, all contiguous, to panels. */
PL_INLINE void pack_rows(const pairs_work *work, const pl_gemm *g, size_t at,
                         size_t K, size_t columns, pl_storage storage)
{
    /* of rows, for which all panels are filled in turn; rows ahead that are
     * prefetched, into the cache that panels stay in */
    enum { PAIRS = 8, AHEAD = 8 * PAIRS };
    const size_t pairs = pairs_count(K);
    for (size_t p0 = 0; p0 < pairs; p0 += PAIRS)
        for (size_t n = 0; n < columns; n += NR) {
            const size_t count = columns - n < NR ? columns - n : NR;
            uint32_t *panel = work->panels + n / NR * work->panel;
            for (size_t p = p0; p < pairs && p < p0 + PAIRS; p++) {
                const void *even = pl_storage_at(
                               g->b, at + 2 * p * g->b_row + n, storage),
                           *odd = pl_storage_at(even, g->b_row, storage);
                const __m512i zero = _mm512_setzero_si512();
                __m512i words[2] = { zero, zero }, next = zero;
                pairs_prefetch(even, AHEAD * g->b_row, storage);
                pairs_prefetch(odd, AHEAD * g->b_row, storage);
                if (count == NR && 2 * p < K) {
                    if (2 * p + 1 < K)
                        next = pairs_read(odd, storage);
                    pairs_weave(pairs_read(even, storage), next, words);
                } else if (2 * p < K) {
                    if (2 * p + 1 < K)
                        next = pairs_read_some(odd, count, storage);
                    pairs_weave(pairs_read_some(even, count, storage), next,
                                words);
                }
                _mm512_storeu_si512(panel + p * NR, words[0]);
                _mm512_storeu_si512(panel + p * NR + WORDS, words[1]);
            }
        }
}

/* The same for a B whose columns are contiguous. */
PL_INLINE void pack_columns(const pairs_work *work, const pl_gemm *g, size_t at,
                            size_t K, size_t columns, pl_storage storage)
{
    for (size_t n = 0; n < (columns + NR - 1) / NR * NR; n += WORDS) {
        const size_t rest = n < columns ? columns - n : 0;
        uint32_t *panel = work->panels + n / NR * work->panel + n % NR;
        for (size_t k = 0; k < K; k += HALVES) {
            const size_t count = K - k < HALVES ? K - k : HALVES;
            const void *from = pl_storage_at(g->b, at + n * g->b_col + k,
                                             storage);
            __m512i words[WORDS];
            if (rest >= WORDS && count == HALVES)
                pairs_of_columns(words, from, g->b_col, WORDS, HALVES, storage);
            else
                pairs_of_columns(words, from, g->b_col,
                                 rest < WORDS ? rest : WORDS, count, storage);
            for (size_t i = 0; i < pairs_count(count); i++)
                _mm512_storeu_si512(panel + (k / 2 + i) * NR, words[i]);
        }
    }
}

/* Rows of A from element `at` on, to rows of `row` words. */
PL_INLINE void copy_rows(uint32_t *to, size_t row, const pl_gemm *g, size_t at,
                         size_t rows, size_t K, pl_storage storage)
{
    for (size_t m = 0; m < rows; m++)
        pairs_of_row(to + m * row,
                     pl_storage_at(g->a, at + m * g->a_row, storage), K,
                     storage);
}

#if defined(PL_PAIRS_AMX)
/* Rows of a transposed A, likewise. */
PL_INLINE void turn_rows(uint32_t *to, size_t row, const pl_gemm *g, size_t at,
                         size_t rows, size_t K, pl_storage storage)
{
    enum { AHEAD = HALVES };
    for (size_t k = 0; k < K; k += HALVES)
        for (size_t m = 0; m < rows; m += HALVES) {
            const size_t count = rows - m < HALVES ? rows - m : HALVES;
            __m512i words[2][WORDS];
            for (size_t p = 0; p < WORDS; p++) {
                const __m512i zero = _mm512_setzero_si512();
                __m512i both[2] = { zero, zero }, next = zero;
                const void *even = pl_storage_at(
                               g->a, at + (k + 2 * p) * g->a_col + m, storage),
                           *odd = pl_storage_at(even, g->a_col, storage);
                pairs_prefetch(even, AHEAD * g->a_col, storage);
                pairs_prefetch(odd, AHEAD * g->a_col, storage);
                if (k + 2 * p + 1 < K)
                    next = pairs_read_some(odd, count, storage);
                if (k + 2 * p < K)
                    pairs_weave(pairs_read_some(even, count, storage), next,
                                both);
                words[0][p] = both[0];
                words[1][p] = both[1];
            }
            for (size_t i = 0; i < 2 && i * WORDS < count; i++) {
                pairs_transpose(words[i]);
                for (size_t r = 0; r < WORDS; r++)
                    _mm512_storeu_si512(to + (m + i * WORDS + r) * row + k / 2,
                                        words[i][r]);
            }
        }
}
#else
/* Rows of a transposed A: the i-th group of MR rows has pair p of its row m at
 * (i * A_WORDS + p) * MR + m. */
PL_INLINE void interleave_rows(uint32_t *to, const pl_gemm *g, size_t at,
                               size_t rows, size_t K, pl_storage storage)
{
    enum { AHEAD = 16, LINE = 64 };
    const __m512i minus_zero = _mm512_set1_epi16((short)0x8000);
    const size_t bytes = pl_storage_bytes(storage);
    uint32_t row[MC_PAIRS + HALVES + MR] = { 0 };
    for (size_t k = 0; k < K; k += 2) {
        const void *even = pl_storage_at(g->a, at + k * g->a_col, storage),
                   *odd = pl_storage_at(even, g->a_col, storage);
        for (size_t i = 0; i < rows * bytes; i += LINE) {
            const char *soon = (const char *)even + AHEAD * g->a_col * bytes;
            __builtin_prefetch(soon + i);
            __builtin_prefetch(soon + g->a_col * bytes + i);
        }
        for (size_t m = 0; m < rows; m += HALVES) {
            __m512i words[2], next = minus_zero;
            if (k + 1 < K)
                next = pairs_read_some(pl_storage_at(odd, m, storage), rows - m,
                                       storage);
            pairs_weave(pairs_read_some(pl_storage_at(even, m, storage),
                                        rows - m, storage),
                        next, words);
            _mm512_storeu_si512(row + m, words[0]);
            _mm512_storeu_si512(row + m + WORDS, words[1]);
        }
        for (size_t m = 0; m < rows; m += MR)
            memcpy(to + m * A_WORDS + k / 2 * MR, row + m, MR * sizeof *to);
    }
}

PL_INLINE void turn_rows(uint32_t *to, size_t row, const pl_gemm *g, size_t at,
                         size_t rows, size_t K, pl_storage storage)
{
    (void)row;
    interleave_rows(to, g, at, rows, K, storage);
}
#endif

static void pairs_pack_b(const pairs_work *work, const pl_gemm *g, size_t at,
                         size_t K, size_t columns)
{
    const int half = g->b_storage == PL_STORE_BF16;
    if (g->b_col == 1 && half)
        pack_rows(work, g, at, K, columns, PL_STORE_BF16);
    else if (g->b_col == 1)
        pack_rows(work, g, at, K, columns, PL_STORE_F32);
    else if (half)
        pack_columns(work, g, at, K, columns, PL_STORE_BF16);
    else
        pack_columns(work, g, at, K, columns, PL_STORE_F32);
}

static void pairs_copy_a(const pairs_work *work, const pl_gemm *g, size_t at,
                         size_t rows, size_t K)
{
    const int half = g->a_storage == PL_STORE_BF16;
    if (g->a_col == 1 && half)
        copy_rows(work->a, work->a_row, g, at, rows, K, PL_STORE_BF16);
    else if (g->a_col == 1)
        copy_rows(work->a, work->a_row, g, at, rows, K, PL_STORE_F32);
    else if (half)
        turn_rows(work->a, work->a_row, g, at, rows, K, PL_STORE_BF16);
    else
        turn_rows(work->a, work->a_row, g, at, rows, K, PL_STORE_F32);
}

#endif
#endif
