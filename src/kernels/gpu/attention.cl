/* attention.cl: causal attention by tiles (attention.clh). The rows' true maxima
 * are found first, then the scores are computed again: the softmax is the plain
 * one, and its sums have the canonical order. A tile of queries has 64 of them,
 * or 16 where there are few, as in decoding; heads of more than 64 channels
 * take twice as many at a time, and heads of more than 128 several groups, each
 * with its own part of the channels. */
#include "kernels/gpu/attention.clh"

/* The larger of 4 scores of each row that its query sees. */
PL_INLINE void att_largest(float most[4], float s[4][4], uint32_t position,
                           uint32_t j0, const int each)
{
    UNROLL
    for (int i = 0; i < each; i++) {
        UNROLL
        for (uint32_t c = 0; c < 4; c++)
            if (j0 + ITEM % 16 + 16 * c <= position + (uint32_t)i)
                most[i] = larger(most[i], s[i][c]);
    }
}

/* Over a row's 16 items: the largest, or the sum of lanes. */
PL_INLINE void att_rows_over(float v[4], LOCAL_PTR float *room, const int sum,
                             const int each)
{
    const uint32_t x = ITEM % 16, y = ITEM / 16;
    BARRIER();
    UNROLL
    for (int i = 0; i < each; i++) {
        LOCAL_PTR float *row = room + ((uint32_t)each * y + (uint32_t)i) * 17;
        PUT(row + x, v[i]);
    }
    BARRIER();
    for (uint32_t w = 8; w; w /= 2) {
        if (x < w) {
            UNROLL
            for (int i = 0; i < each; i++) {
                LOCAL_PTR float *at = room +
                                      ((uint32_t)each * y + (uint32_t)i) * 17 +
                                      x;
                PUT(at, sum ? TAKE(at) + TAKE(at + w)
                            : larger(TAKE(at), TAKE(at + w)));
            }
        }
        BARRIER();
    }
    UNROLL
    for (int i = 0; i < each; i++)
        v[i] = TAKE(room + ((uint32_t)each * y + (uint32_t)i) * 17);
    BARRIER();
}

/* exp(s - max), what is added to the lanes, and P. */
PL_INLINE void att_weights(float s[4][4], float l[4], const float max[4],
                           const gpu_attention *g, uint32_t b, uint32_t h,
                           uint32_t position, uint32_t j0, const int each)
{
    UNROLL
    for (int i = 0; i < each; i++) {
        UNROLL
        for (uint32_t c = 0; c < 4; c++) {
            const uint32_t j = j0 + ITEM % 16 + 16 * c;
            float p = 0.0f;
            if (j <= position + (uint32_t)i) {
                p = exp_down1(s[i][c] * g->scale - max[i]);
                l[i] = l[i] + p;
                p = dropped(&g->dropout, h << 20, position + (uint32_t)i,
                            g->dropout.sequence + b, j, p);
                p = rounded(p, g->qkv_storage);
            }
            s[i][c] = p;
        }
    }
}

PL_INLINE void att_forward(const gpu_attention *g, GLOBAL uint8_t *out,
                           GLOBAL float *lse, GLOBAL const uint8_t *pq,
                           GLOBAL const uint8_t *pk, GLOBAL const uint8_t *pv,
                           GLOBAL const int32_t *positions,
                           LOCAL_PTR float *chunk, LOCAL_PTR float *weights,
                           const int each, const int fours, const int plain)
{
    const uint32_t tall = 16u * (uint32_t)each, wide = 64u * (uint32_t)fours,
                   D = g->D, parts = (D + wide - 1) / wide,
                   tiles = (g->queries + tall - 1) / tall;
    /* the last tile first: it sees the most keys */
    const uint32_t i0 = (tiles - 1 - GROUP_Y / parts) * tall,
                   d0 = GROUP_Y % parts * wide, h = GROUP % g->H,
                   b = GROUP / g->H, kv = h / (g->H / g->KV);
    const uint32_t first = positions ? (uint32_t)READ(positions + b) : g->first,
                   rows = g->queries - i0 < tall ? g->queries - i0 : tall,
                   keys = first + i0 + rows;
    const uint32_t y = (uint32_t)each * (ITEM / 16), position = first + i0 + y;
    const uint64_t at_kv = (uint64_t)b * g->keys * g->kv_row +
                           (uint64_t)kv * D;
    const att_rows q = { pq,
                         (uint64_t)b * g->queries * g->q_row + (uint64_t)h * D,
                         g->q_row, g->qkv_storage, g->vector };
    const att_rows k = { pk, at_kv, g->kv_row, g->qkv_storage, g->vector };
    const att_rows v = { pv, at_kv, g->kv_row, g->qkv_storage, g->vector };
    float s[4][4], acc[4][8], max[4], l[4], inverse[4];
    UNROLL
    for (int i = 0; i < 4; i++) {
        max[i] = -INFINITY;
        l[i] = 0.0f;
        inverse[i] = 0.0f;
    }
    for (uint32_t j0 = 0; j0 < keys; j0 += ATT_TILE) {
        const uint32_t left = keys - j0;
        att_scores(s, chunk, &q, i0, rows, &k, j0, left, D, each, plain);
        att_largest(max, s, position, j0, each);
    }
    att_rows_over(max, weights, 0, each);
    UNROLL
    for (int i = 0; i < each; i++)
        max[i] = max[i] * g->scale;
    att_clear(acc);
    for (uint32_t j0 = 0; j0 < keys; j0 += ATT_TILE) {
        const uint32_t left = keys - j0;
        att_scores(s, chunk, &q, i0, rows, &k, j0, left, D, each, plain);
        att_weights(s, l, max, g, b, h, position, j0, each);
        att_put(weights, s, each);
        att_mix(acc, weights, chunk, &v, j0, left, d0, D, each, fours, plain);
    }
    att_rows_over(l, weights, 1, each);
    UNROLL
    for (int i = 0; i < each; i++) {
        inverse[i] = 1.0f / l[i];
        if (g->lse && d0 == 0 && ITEM % 16 == 0 && y + (uint32_t)i < rows)
            WRITE(lse + ((uint64_t)b * g->H + h) * g->queries + i0 + y +
                      (uint32_t)i,
                  log_sum1(max[i], l[i], 0.0f));
    }
    att_store(acc, inverse, out,
              ((uint64_t)b * g->queries + i0) * g->H * D + (uint64_t)h * D,
              g->H * D, rows, d0, D, g->out_storage, g->vector, each, fours);
}

#define ATTENTION(name, each, fours, plain)                                           \
    KERNEL(name, 256, gpu_attention)                                           \
    {                                                                          \
        LOCAL ALIGNED_16 float chunk[ATT_CHUNK];                               \
        LOCAL ALIGNED_16 float weights[ATT_TILE * (16 * each + 4)];            \
        att_forward(&g, AT(uint8_t, g.out), AT(float, g.lse),                  \
                    AT(uint8_t, g.q), AT(uint8_t, g.k), AT(uint8_t, g.v),      \
                    g.positions ? AT(int32_t, g.positions) : 0, chunk,         \
                    weights, each, fours, plain);                              \
    }
ATTENTION(attention, 4, 1, 1)
ATTENTION(attention_wide, 4, 2, 1)
ATTENTION(attention_any, 4, 1, 0)
ATTENTION(attention_few, 1, 2, 0)
