/* pairs.h: bfloat16 in pairs along k, as vdpbf16ps multiplies them, or AMX.
 *
 * vdpbf16ps takes words of two bfloat16s and adds two products to a
 * float32 sum: that of the high halves first, then that of the low halves, each
 * rounded as a fused multiply-add is. So a word that has an even k in its high
 * half and the next k in its low half continues CHAIN(k) by two terms, to the
 * bit:
 *
 *     a:  | k = 0, k = 1 | k = 2, k = 3 | ...      one row of A
 *     b:  | k = 0, k = 1 | k = 2, k = 3 | ...      one column of B
 *          high    low
 *
 * In memory, where the low half comes first, that is the pair the wrong way
 * round: a row of A or a column of B has its halves swapped as it is copied. If
 * K is odd, A is padded with -0 and B with +0, whose product, -0, changes no
 * sum, not even -0.
 *
 * AMX (pairs_amx.h) takes pairs as they are in memory, and 16 of them at a
 * time: what is packed for it is padded with +0 to whole groups.
 *
 * Both take denormals for zero, which storage.h makes sure are never met.
 * Everything here reads exactly what it is told to. */
#ifndef PL_KERNELS_PLAIN_PAIRS_H
#define PL_KERNELS_PLAIN_PAIRS_H

#include "kernels/plain/convert.h"
#include "kernels/plain/plain.h"

/* The set's instruction: what it computes, and how many pairs at a time. Where
 * there is AMX, vdpbf16ps isn't faster than float32's multiply-adds. */
#if defined(__AMX_BF16__)
#define PL_PAIRS       1
#define PL_PAIRS_AMX   1
#define PAIRS_PRODUCTS PL_PRODUCTS_AMX
enum { PAIRS_UNIT = PL_AMX_GROUP / 2 };
#elif defined(__AVX512BF16__)
#define PL_PAIRS       1
#define PL_PAIRS_CHAIN 1
#define PAIRS_PRODUCTS PL_PRODUCTS_EXACT
enum { PAIRS_UNIT = 1 };
#endif

#if defined(PL_PAIRS)

enum { WORDS = 16, HALVES = 32 }; /* of a vector */

/* Pairs of K elements, padded. */
PL_INLINE size_t pairs_count(size_t K)
{
    return ((K + 1) / 2 + PAIRS_UNIT - 1) / PAIRS_UNIT * PAIRS_UNIT;
}

/* The next 32 elements as bfloat16. */
PL_INLINE __m512i pairs_read(const void *x, pl_storage storage)
{
    if (storage == PL_STORE_BF16)
        return _mm512_loadu_si512(x);
    return bf16_round32(_mm512_loadu_ps(x),
                        _mm512_loadu_ps((const float *)x + WORDS));
}

/* The next `count` elements, and +0 beyond them; at most 32 are read. */
PL_INLINE __m512i pairs_read_some(const void *x, size_t count,
                                  pl_storage storage)
{
    const __mmask32 which = count >= HALVES ? 0xffffffffu : (1u << count) - 1u;
    if (storage == PL_STORE_BF16)
        return _mm512_maskz_loadu_epi16(which, x);
    return bf16_round32(_mm512_maskz_loadu_ps((__mmask16)which, x),
                        _mm512_maskz_loadu_ps((__mmask16)(which >> WORDS),
                                              (const float *)x + WORDS));
}

/* Prefetches 32 elements from x[at] on, into the L2 cache; addresses beyond the
 * end of memory do no harm. */
PL_INLINE void pairs_prefetch(const void *x, size_t at, pl_storage storage)
{
    const char *soon = pl_storage_at(x, at, storage);
    __builtin_prefetch(soon, 0, 2);
    if (storage == PL_STORE_F32)
        __builtin_prefetch(soon + 64, 0, 2);
}

/* From memory's order to the instruction's. */
PL_INLINE __m512i pairs_swap(__m512i pairs)
{
#if defined(PL_PAIRS_AMX)
    return pairs;
#else
    return _mm512_rol_epi32(pairs, 16);
#endif
}

/* Two rows of 32 elements to 32 words, in the instruction's order. */
PL_INLINE void pairs_weave(__m512i even, __m512i odd, __m512i words[2])
{
    static const uint16_t which[2][HALVES] = {
        { 32, 0, 33, 1, 34, 2,  35, 3,  36, 4,  37, 5,  38, 6,  39, 7,
          40, 8, 41, 9, 42, 10, 43, 11, 44, 12, 45, 13, 46, 14, 47, 15 },
        { 48, 16, 49, 17, 50, 18, 51, 19, 52, 20, 53, 21, 54, 22, 55, 23,
          56, 24, 57, 25, 58, 26, 59, 27, 60, 28, 61, 29, 62, 30, 63, 31 }
    };
#if defined(PL_PAIRS_AMX)
    const __m512i low = even, high = odd;
#else
    const __m512i low = odd, high = even;
#endif
    for (int i = 0; i < 2; i++)
        words[i] = _mm512_permutex2var_epi16(high, _mm512_loadu_si512(which[i]),
                                             low);
}

/* Transposes a 16 x 16 matrix of words, given by its rows. */
PL_INLINE void pairs_transpose(__m512i r[WORDS])
{
    __m512i t[WORDS];
    PL_UNROLL
    for (int i = 0; i < WORDS; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    PL_UNROLL
    for (int i = 0; i < WORDS; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    PL_UNROLL
    for (int i = 0; i < WORDS; i += 8) {
        PL_UNROLL
        for (int j = 0; j < 4; j++) {
            t[i + j] = _mm512_shuffle_i32x4(r[i + j], r[i + j + 4], 0x88);
            t[i + j + 4] = _mm512_shuffle_i32x4(r[i + j], r[i + j + 4], 0xdd);
        }
    }
    PL_UNROLL
    for (int j = 0; j < 8; j++) {
        r[j] = _mm512_shuffle_i32x4(t[j], t[j + 8], 0x88);
        r[j + 8] = _mm512_shuffle_i32x4(t[j], t[j + 8], 0xdd);
    }
}

/* Up to 32 elements of up to 16 contiguous columns, `row` apart, as pairs by k:
 * words[i] has pair i of every column; +0 where there is none. */
PL_INLINE void pairs_of_columns(__m512i words[WORDS], const void *x, size_t row,
                                size_t columns, size_t count,
                                pl_storage storage)
{
    PL_UNROLL
    for (size_t i = 0; i < WORDS; i++) {
        const void *from = pl_storage_at(x, i * row, storage);
        words[i] = _mm512_setzero_si512();
        if (i < columns)
            words[i] = pairs_swap(count == HALVES
                                      ? pairs_read(from, storage)
                                      : pairs_read_some(from, count, storage));
    }
    pairs_transpose(words);
}

/* A row of A: its K elements as pairs; whole vectors are written. */
PL_INLINE void pairs_of_row(uint32_t *to, const void *x, size_t K,
                            pl_storage storage)
{
    size_t k = 0;
    for (; k + HALVES <= K; k += HALVES)
        _mm512_storeu_si512(
            to + k / 2,
            pairs_swap(pairs_read(pl_storage_at(x, k, storage), storage)));
    if (k < K)
        _mm512_storeu_si512(
            to + k / 2, pairs_swap(pairs_read_some(pl_storage_at(x, k, storage),
                                                   K - k, storage)));
#if defined(PL_PAIRS_CHAIN)
    if (K % 2)
        to[K / 2] |= 0x8000u; /* -0 */
#endif
}

#endif
#endif
