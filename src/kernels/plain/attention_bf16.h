/* attention_bf16.h: attention's products of bfloat16 by vdpbf16ps or AMX, on
 * words of two elements (pairs.h). A head's matrices are packed in panels of
 * words, and weights become words where their floats were. Only the layout
 * differs from attention.h; every chain is the same, to the bit.
 *
 * No sum is -0: it begins with +0, and what could vanish was rounded to zero
 * before (halves.h). So any pad is as good as -0. With AMX chains are padded to
 * whole groups, and tiles of 16 rows are written whatever a block has: there is
 * room for them in every scratch. */
#ifndef PL_KERNELS_PLAIN_ATTENTION_BF16_H
#define PL_KERNELS_PLAIN_ATTENTION_BF16_H

#include "kernels/plain/attention.h"
#include "kernels/plain/pairs.h"
#include "kernels/plain/pairs_amx.h"

/* The widest head: a block of queries is copied to MC_STACK * KC words. */
enum { WORDS_MAX_D = 256 };

/* Whether products of heads that are kept so go by words. */
static inline int by_words(pl_storage storage, size_t D, pl_products products)
{
#if defined(PL_PAIRS)
    return storage == PL_STORE_BF16 && D <= WORDS_MAX_D &&
           products == PAIRS_PRODUCTS;
#else
    (void)storage;
    (void)D;
    (void)products;
    return 0;
#endif
}

/* Around all products by words of a thread. */
static inline void begin_words(int by_words)
{
#if defined(PL_PAIRS_AMX)
    if (by_words)
        pl_amx_begin();
#endif
    (void)by_words;
}

static inline void end_words(int by_words)
{
#if defined(PL_PAIRS_AMX)
    if (by_words)
        pl_amx_end();
#endif
    (void)by_words;
}

#if defined(PL_PAIRS)

/* Vectors of a panel whose columns are the channels of a head: 3 where that
 * leaves no rest, as with heads of 48. */
static inline int word_vectors(size_t D)
{
    return round_up(D, 16) % 48 ? NV : 3;
}

/* Words from one row of weights to the next: rows don't meet in one set of the
 * L1 cache. */
static inline size_t weight_row(size_t ld)
{
    return ld / 2 + WORDS;
}

/* The same where a row has one word for each key, of two queries. */
static inline size_t woven_row(size_t ld)
{
    return ld + WORDS;
}

/* ---- packing ---- */

/* A head's rows as columns, in pairs of channels: a panel has NR rows. */
static inline void words_turned(uint32_t *to, const strided *r)
{
    const size_t panel = pairs_count(r->D) * NR;
    for (size_t n = 0; n < round_up(r->count, NR); n += WORDS) {
        const size_t rest = n < r->count ? r->count - n : 0;
        uint32_t *at = to + n / NR * panel + n % NR;
        for (size_t d = 0; d < r->D; d += HALVES) {
            const size_t count = r->D - d < HALVES ? r->D - d : HALVES;
            const void *from = pl_storage_at(r->x, n * r->stride + d,
                                             PL_STORE_BF16);
            __m512i words[WORDS];
            if (rest >= WORDS && count == HALVES)
                pairs_of_columns(words, from, r->stride, WORDS, HALVES,
                                 PL_STORE_BF16);
            else
                pairs_of_columns(words, from, r->stride,
                                 rest < WORDS ? rest : WORDS, count,
                                 PL_STORE_BF16);
            for (size_t i = 0; i < pairs_count(count); i++)
                _mm512_storeu_si512(at + (d / 2 + i) * NR, words[i]);
        }
    }
}

/* A head's rows in pairs of rows; a panel has `vectors` vectors of channels,
 * the last one what is left. */
static inline void words_woven(uint32_t *to, const strided *r, int vectors)
{
    const size_t pairs = pairs_count(r->count), wide = (size_t)vectors * WORDS;
    for (size_t p = 0; p < pairs; p++)
        for (size_t d = 0; d < r->D; d += WORDS) {
            const void *even = pl_storage_at(r->x, 2 * p * r->stride + d,
                                             PL_STORE_BF16),
                       *odd = pl_storage_at(even, r->stride, PL_STORE_BF16);
            const size_t count = r->D - d < WORDS ? r->D - d : WORDS,
                         begin = d / wide * wide,
                         left = round_up(r->D - begin, WORDS);
            const __m512i zero = _mm512_setzero_si512();
            __m512i words[2] = { zero, zero }, next = zero;
            if (2 * p + 1 < r->count)
                next = pairs_read_some(odd, count, PL_STORE_BF16);
            if (2 * p < r->count)
                pairs_weave(pairs_read_some(even, count, PL_STORE_BF16), next,
                            words);
            _mm512_storeu_si512(to + begin * pairs +
                                    p * (left < wide ? left : wide) + d - begin,
                                words[0]);
        }
}

/* Rows of a block as a product's A, `row` words apart. */
static inline void words_of_rows(uint32_t *to, size_t row, const strided *r)
{
    for (size_t i = 0; i < r->count; i++)
        pairs_of_row(to + i * row,
                     pl_storage_at(r->x, i * r->stride, PL_STORE_BF16), r->D,
                     PL_STORE_BF16);
}

/* ---- products ---- */

typedef struct word_job {
    size_t pairs;
    const uint32_t *a;
    size_t a_row, a_col; /* one of them is 1 */
    const uint32_t *b;
    float *c; /* whole vectors are written */
    size_t c_row;
    int keep; /* chains go on from what c holds; else they begin with +0 */
} word_job;

#if defined(PL_PAIRS_AMX)

/* M rows, whose words are contiguous, of a panel of `vectors` vectors. */
static inline void word_panel(const word_job *job, size_t M, int vectors)
{
    for (size_t m = 0; m < M; m += 2 * AMX_SIDE)
        for (int v = 0; v < vectors; v += 2) {
            float *c = job->c + m * job->c_row + v * AMX_SIDE;
            const amx_job t = { .groups = job->pairs / PAIRS_UNIT,
                                .a = job->a + m * job->a_row,
                                .a_row = job->a_row,
                                .b = job->b + v * AMX_SIDE,
                                .b_row = (size_t)vectors * WORDS,
                                .from = job->keep ? c : NULL,
                                .from_row = job->c_row,
                                .c = c,
                                .c_row = job->c_row };
            amx_run(&t, M - m > AMX_SIDE ? 2 : 1, vectors - v > 1 ? 2 : 1);
        }
}

#else

/* rows, vectors, a_row or a_col are constants where this is inlined. */
PL_INLINE void word_tile(const int rows, const int vectors, const word_job *t,
                         size_t a_row, size_t a_col)
{
    enum { MOST_VECTORS = 3 };
    const uint32_t *a = t->a, *b = t->b;
    __m512 sums[MR][MOST_VECTORS];
    PL_UNROLL
    for (int i = 0; i < rows; i++) {
        PL_UNROLL
        for (int j = 0; j < vectors; j++)
            sums[i][j] = t->keep ? _mm512_loadu_ps(t->c + (size_t)i * t->c_row +
                                                   j * WORDS)
                                 : _mm512_setzero_ps();
    }
    for (size_t p = t->pairs; p; p--) {
        __m512i column[MOST_VECTORS];
        PL_UNROLL
        for (int j = 0; j < vectors; j++)
            column[j] = _mm512_loadu_si512(b + j * WORDS);
        PL_UNROLL
        for (int i = 0; i < rows; i++) {
            const __m512i row = _mm512_set1_epi32((int)a[(size_t)i * a_row]);
            PL_UNROLL
            for (int j = 0; j < vectors; j++)
                sums[i][j] = _mm512_dpbf16_ps(sums[i][j], (__m512bh)row,
                                              (__m512bh)column[j]);
        }
        a += a_col;
        b += vectors * WORDS;
    }
    PL_UNROLL
    for (int i = 0; i < rows; i++) {
        PL_UNROLL
        for (int j = 0; j < vectors; j++)
            _mm512_storeu_ps(t->c + (size_t)i * t->c_row + j * WORDS,
                             sums[i][j]);
    }
}

#define WORD_TILE(rows, vectors)                                               \
    static void word_tile_##rows##x##vectors(const word_job *t)                \
    {                                                                          \
        if (t->a_col == 1)                                                     \
            word_tile(rows, vectors, t, t->a_row, 1);                          \
        else                                                                   \
            word_tile(rows, vectors, t, 1, t->a_col);                          \
    }
WORD_TILE(12, 1)
WORD_TILE(12, 2)
WORD_TILE(8, 3)
WORD_TILE(4, 1)
WORD_TILE(4, 2)
WORD_TILE(4, 3)
WORD_TILE(1, 1)
WORD_TILE(1, 2)
WORD_TILE(1, 3)
#undef WORD_TILE

/* M rows of a panel of `vectors` vectors. */
static inline void word_panel(const word_job *job, size_t M, int vectors)
{
    typedef void tile_fn(const word_job *);
    static tile_fn *const tiles[3][3] = {
        { word_tile_12x1, word_tile_4x1, word_tile_1x1 },
        { word_tile_12x2, word_tile_4x2, word_tile_1x2 },
        { word_tile_8x3, word_tile_4x3, word_tile_1x3 },
    };
    const size_t tall = vectors == 3 ? 8 : 12;
    word_job t = *job;
    for (size_t m = 0, done; m < M; m += done) {
        const size_t rest = M - m;
        done = rest >= tall ? tall : rest >= 4 ? 4 : 1;
        tiles[vectors - 1][rest >= tall ? 0 : rest >= 4 ? 1 : 2](&t);
        t.a += done * t.a_row;
        t.c += done * t.c_row;
    }
}

#endif

/* c = (or +=) a * B: M rows, N columns in panels of `vectors` vectors, each of
 * `packed` pairs. */
static inline void word_product(const word_job *job, size_t M, size_t N,
                                int vectors, size_t packed)
{
    const size_t wide = (size_t)vectors * WORDS;
    word_job t = *job;
    for (size_t n = 0; n < N; n += wide) {
        const size_t left = (N - n + WORDS - 1) / WORDS;
        t.b = job->b + n * packed;
        t.c = job->c + n;
        word_panel(&t, M, left < (size_t)vectors ? (int)left : vectors);
    }
}

/* Rows of a block against the first `keys` columns of a panel by
 * words_turned: c has rows of c_row, of which a multiple of NR are written. */
static inline void word_scores(float *c, size_t c_row, size_t keys,
                               const strided *rows, const uint32_t *turned,
                               uint32_t *work)
{
    const size_t pairs = pairs_count(rows->D);
    const word_job t = { .pairs = pairs,
                         .a = work,
                         .a_row = round_up(rows->D, HALVES) / 2,
                         .a_col = 1,
                         .b = turned,
                         .c = c,
                         .c_row = c_row };
    words_of_rows(work, t.a_row, rows);
    word_product(&t, rows->count, round_up(keys, NR), NV, pairs);
}

/* ---- weights ---- */

/* A row of weights in pairs of keys; `to` may be where the row is, or before
 * it. */
static inline void words_of_weights(uint32_t *to, const float *s, size_t count)
{
    for (size_t j = 0; j < count; j += HALVES)
        _mm512_storeu_si512(to + j / 2,
                            pairs_swap(pairs_read(s + j, PL_STORE_F32)));
}

/* Two rows of weights in pairs of queries; NULL: no second row. */
static inline void words_of_two_rows(uint32_t *to, const float *even,
                                     const float *odd, size_t count)
{
    for (size_t j = 0; j < count; j += HALVES) {
        __m512i words[2], next = _mm512_setzero_si512();
        if (odd)
            next = pairs_read(odd + j, PL_STORE_F32);
        pairs_weave(pairs_read(even + j, PL_STORE_F32), next, words);
        _mm512_storeu_si512(to + j, words[0]);
        _mm512_storeu_si512(to + j + WORDS, words[1]);
    }
}

#if defined(PL_PAIRS_AMX)

/* ---- sums over queries ----
 *
 * AMX wants the words of a row of A side by side, and a block's weights have
 * those of a key one below the other. So dk and dv are computed transposed,
 * with the weights as B: channels x queries times queries x keys. */

/* Floats from one channel of such sums to the next: channels don't meet in one
 * set of the L1 cache. */
static inline size_t turned_row(size_t ld)
{
    return ld % 1024 ? ld : ld + WORDS;
}

/* A block's rows, at most a group, in pairs of rows: WORDS words for each
 * channel. */
static inline void words_of_channels(uint32_t *to, const strided *r)
{
    for (size_t d = 0; d < r->D; d += HALVES) {
        const size_t count = r->D - d < HALVES ? r->D - d : HALVES;
        __m512i words[2][WORDS];
        for (size_t p = 0; p < WORDS; p++) {
            const __m512i zero = _mm512_setzero_si512();
            __m512i both[2] = { zero, zero }, next = zero;
            const void *even = pl_storage_at(r->x, 2 * p * r->stride + d,
                                             PL_STORE_BF16),
                       *odd = pl_storage_at(even, r->stride, PL_STORE_BF16);
            if (2 * p + 1 < r->count)
                next = pairs_read_some(odd, count, PL_STORE_BF16);
            if (2 * p < r->count)
                pairs_weave(pairs_read_some(even, count, PL_STORE_BF16), next,
                            both);
            words[0][p] = both[0];
            words[1][p] = both[1];
        }
        for (size_t i = 0; i < 2 && i * WORDS < count; i++) {
            pairs_transpose(words[i]);
            for (size_t c = 0; c < WORDS; c++)
                _mm512_storeu_si512(to + (d + i * WORDS + c) * WORDS,
                                    words[i][c]);
        }
    }
}

/* sums[d, j] += channels[d] . woven[j], for D channels and `keys` keys. */
static inline void add_turned(float *sums, size_t sums_row,
                              const uint32_t *channels, size_t D,
                              const uint32_t *woven, size_t woven_row,
                              size_t keys)
{
    for (size_t d = 0; d < D; d += 2 * AMX_SIDE)
        for (size_t j = 0; j < keys; j += 2 * AMX_SIDE) {
            float *c = sums + d * sums_row + j;
            const amx_job t = { .groups = 1,
                                .a = channels + d * WORDS,
                                .a_row = WORDS,
                                .b = woven + j,
                                .b_row = woven_row,
                                .from = c,
                                .from_row = sums_row,
                                .c = c,
                                .c_row = sums_row };
            amx_run(&t, D - d > AMX_SIDE ? 2 : 1, 2);
        }
}

/* to[t, d] = sums[d, t], for `rows` rows from `first` on. */
static inline void turn_back(float *to, size_t to_row, const float *sums,
                             size_t sums_row, size_t first, size_t rows,
                             size_t D)
{
    for (size_t t = 0; t < rows; t += WORDS)
        for (size_t d = 0; d < D; d += WORDS) {
            __m512i words[WORDS];
            for (size_t i = 0; i < WORDS; i++)
                words[i] = _mm512_loadu_si512(sums + (d + i) * sums_row +
                                              first + t);
            pairs_transpose(words);
            for (size_t i = 0; i < WORDS; i++)
                _mm512_storeu_si512(to + (t + i) * to_row + d, words[i]);
        }
}

#endif
#endif
#endif
