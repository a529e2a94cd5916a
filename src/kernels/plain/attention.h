/* attention.h: what the forward and the backward pass of attention share: the
 * exponentials of a row of scores, and products with a head's matrices, which
 * are packed once and used for all its blocks of queries. */
#ifndef PL_KERNELS_PLAIN_ATTENTION_H
#define PL_KERNELS_PLAIN_ATTENTION_H

#include "kernels/plain/lanes.h"
#include "kernels/plain/mask.h"
#include "kernels/plain/tile.h"
#include "kernels/vmath.h"

enum { BLOCK = PL_ATTENTION_BLOCK };

static inline size_t round_up(size_t count, size_t unit)
{
    return (count + unit - 1) / unit * unit;
}

/* The leading dimension of the scores: a row of `keys`, padded to 32 floats. */
static inline size_t ld_of(size_t keys)
{
    return round_up(keys, 32);
}

static inline uint32_t mask_high(size_t head)
{
    return (uint32_t)head << 20;
}

PL_INLINE void round_in_eights(float *s, size_t count, pl_storage storage)
{
    size_t j = 0;
#if defined(__AVX512F__) && defined(__FMA__)
    for (; j + 16 <= count; j += 16)
        _mm512_storeu_ps(s + j, round16(_mm512_loadu_ps(s + j), storage));
#endif
    for (; j < count; j += EIGHT)
        round8(s + j, s + j, storage);
}

/* Rounds a row of weights, in place, to what they meet; the row is padded. */
static inline void round_weights(float *s, size_t count, pl_storage storage)
{
    if (storage == PL_STORE_BF16)
        round_in_eights(s, count, PL_STORE_BF16);
    else if (storage == PL_STORE_F16)
        round_in_eights(s, count, PL_STORE_F16);
}

/* s[j] = exp(s[j] * scale - shift) for the first `count`, +0 from there up to
 * `end` and to the end of a group of lanes; returns their sum. */
static inline float exp_and_sum(float *s, size_t count, size_t end, float scale,
                                float shift)
{
    lanes l = lanes_all(0);
    size_t j = 0;
    for (; j + LANES <= count; j += LANES) {
        for (size_t i = j; i < j + LANES; i++)
            s[i] = exp_down1(s[i] * scale - shift);
        l = lanes_add(l, lanes_load(s + j));
    }
    if (j < count) {
        for (size_t i = j; i < j + LANES; i++)
            s[i] = i < count ? exp_down1(s[i] * scale - shift) : 0.0f;
        l = lanes_add(l, lanes_load(s + j));
        j += LANES;
    }
    for (; j < end; j++)
        s[j] = 0.0f;
    return lanes_total(l);
}

/* ---- packed matrices of a head ---- */

/* A view of a head's rows: `count` of D elements, `stride` elements apart. */
typedef struct strided {
    const void *x;
    size_t stride, count, D;
    pl_storage storage;
} strided;

/* Packs the transpose, as a product's B: the rows become columns, KC channels
 * at a time, in panels of NR columns. There is room for `ld` columns. */
static inline void pack_transposed(float *to, size_t ld, const strided *r,
                                   float *work)
{
    const pl_gemm g = { .b_col = r->stride, .b_storage = r->storage };
    const size_t last = r->count / NR * NR;
    for (size_t d = 0; d < r->D; d += KC) {
        const size_t D = r->D - d < KC ? r->D - d : KC, panel = D * NR;
        float *panels = to + d * ld;
        if (r->count % NR)
            memset(panels + last * D, 0, panel * sizeof *to);
        for (size_t n = 0; n < r->count; n += NR)
            tile_pack_b_transposed(
                panels + n * D, work, &g,
                pl_storage_at(r->x, n * r->stride + d, r->storage), D,
                r->count - n < NR ? r->count - n : NR);
    }
}

/* Packs the matrix as a product's B: panels of `count` rows and NR channels. */
static inline void pack_rows(float *to, const strided *r)
{
    const size_t panel = r->count * NR;
    if (r->D % NR)
        memset(to + r->D / NR * panel, 0, panel * sizeof *to);
    for (size_t d = 0; d < r->D; d += NR)
        widen_rows(to + d / NR * panel, NR, pl_storage_at(r->x, d, r->storage),
                   r->stride, r->count, r->D - d < NR ? r->D - d : NR,
                   r->storage);
}

/* c = (or +=) a * B, packed by pack_transposed with `ld` columns from rows of
 * g->b_storage. `work` holds MC_STACK * KC floats. */
static inline void times_transposed(const float *packed, size_t ld, float *work,
                                    const pl_gemm *g)
{
    const tile_part p = {
        .rows = g->M, .columns = g->N, .c = g->c, .c_row = g->c_row
    };
    for (size_t k = 0; k < g->K; k += KC) {
        const size_t K = g->K - k < KC ? g->K - k : KC;
        const tile_work with = { .panels = (float *)(uintptr_t)packed + k * ld,
                                 .panel = K * NR,
                                 .a = work,
                                 .a_rows = MC_STACK,
                                 .products = g->products,
                                 .operands = g->b_storage };
        tile_block(&with, g, &p, k, K, NULL);
    }
}

/* The same for a B packed by pack_rows with `count` rows, of which the first
 * g->K are used. A is float32, and K is at most KC if A is transposed. */
static inline void times_rows(const float *packed, size_t count, float *work,
                              const pl_gemm *g)
{
    const tile_part p = {
        .rows = g->M, .columns = g->N, .c = g->c, .c_row = g->c_row
    };
    const tile_work with = { .panels = (float *)(uintptr_t)packed,
                             .panel = count * NR,
                             .a = work,
                             .a_rows = MC_STACK,
                             .products = g->products,
                             .operands = g->b_storage };
    tile_block(&with, g, &p, 0, g->K, NULL);
}

#endif
