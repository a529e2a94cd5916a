/* attention_bwd.cl: the gradients of attention by tiles (attention.clh): dq by one
 * kernel over keys, dk and dv by another one over queries, so that every sum
 * has one writer. Both compute scores and dP again. */
#include "kernels/gpu/attention_bwd.clh"

/* delta = LANES(d) dout * out, for rows (b, h, t). */
KERNEL(attention_delta, 256, gpu_attention_bwd)
{
    LOCAL ALIGNED_16 float room[LANE_ROOM];
    const uint32_t u = GROUP * LANE_ROWS + lane_row(), there = g.B * g.H * g.T,
                   t = u % g.T, h = u / g.T % g.H, b = u / g.T / g.H;
    GLOBAL const uint8_t *out = AT(uint8_t, g.out), *dout = AT(uint8_t, g.dout);
    const uint64_t at = ((uint64_t)b * g.T + t) * g.H * g.D + (uint64_t)h * g.D;
    float sum = 0.0f;
    for (uint32_t d0 = 0; d0 < g.D; d0 += LANE_COLUMNS) {
        const uint32_t d = d0 + 4 * lane_of(),
                       left = u < there && d < g.D ? g.D - d : 0u;
        float v[4], w[4];
        get4(v, dout, at + d, left, g.dout_storage, g.vector, 0.0f);
        get4(w, out, at + d, left, g.out_storage, g.vector, 0.0f);
        lanes_turn(room, v);
        lanes_turn(room, w);
        for (int i = 0; i < 4; i++)
            sum = fma1(v[i], w[i], sum);
    }
    sum = lanes_total(room, sum);
    if (u < there && lane_of() == 0)
        WRITE(AT(float, g.delta) + u, sum);
}

/* The same, rounded to what they meet. */
PL_INLINE void att_rounded_pair(const gpu_attention_bwd *g, uint32_t b,
                                uint32_t h, uint32_t i, uint32_t j, float lse,
                                float delta, float *s, float *dp)
{
    att_pair(g, b, h, i, j, lse, delta, s, dp);
    *s = rounded(*s, g->qkv_storage);
    *dp = rounded(*dp, g->qkv_storage);
}

PL_INLINE void att_dq(const gpu_attention_bwd *g, GLOBAL uint8_t *dqkv,
                      GLOBAL const uint8_t *qkv, GLOBAL const uint8_t *dout,
                      GLOBAL const float *all_lse,
                      GLOBAL const float *all_delta, LOCAL_PTR float *chunk,
                      LOCAL_PTR float *weights, const int plain)
{
    const uint32_t D = g->D, T = g->T, parts = (D + 63) / 64,
                   tiles = (T + ATT_TILE - 1) / ATT_TILE;
    const uint32_t i0 = (tiles - 1 - GROUP_Y / parts) * ATT_TILE,
                   d0 = GROUP_Y % parts * 64, h = GROUP % g->H,
                   b = GROUP / g->H;
    const uint32_t rows = T - i0 < ATT_TILE ? T - i0 : ATT_TILE,
                   keys = i0 + rows, x = ITEM % 16, y = ITEM / 16;
    const att_head a = att_head_of(g, qkv, dout,
                                   b, h);
    const uint64_t stat = ((uint64_t)b * g->H + h) * T + i0 + 4 * y;
    const float one[4] = { 1.0f, 1.0f, 1.0f, 1.0f };
    float s[4][4], dp[4][4], acc[4][8], lse[4], delta[4];
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        lse[i] = delta[i] = 0.0f;
        if (4 * y + i < rows) {
            lse[i] = READ(all_lse + stat + i);
            delta[i] = READ(all_delta + stat + i);
        }
    }
    att_clear(acc);
    for (uint32_t j0 = 0; j0 < keys; j0 += ATT_TILE) {
        const uint32_t left = keys - j0;
        att_scores(s, chunk, &a.q, i0, rows, &a.k, j0, left, D, 4, plain);
        att_scores(dp, chunk, &a.dout, i0, rows, &a.v, j0, left, D, 4, plain);
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            UNROLL
            for (uint32_t c = 0; c < 4; c++) {
                const uint32_t at = i0 + 4 * y + i, j = j0 + x + 16 * c;
                if (j <= at)
                    att_rounded_pair(g, b, h, at, j, lse[i], delta[i],
                                     &s[i][c], &dp[i][c]);
                else
                    dp[i][c] = 0.0f;
            }
        }
        att_put(weights, dp, 4);
        att_mix(acc, weights, chunk, &a.k, j0, left, d0, D, 4, 1, plain);
    }
    att_store(acc, one, dqkv,
              a.q.at + (uint64_t)i0 * a.q.row, a.q.row, rows, d0, D,
              g->dqkv_storage, g->vector, 4, 1);
}

/* Rows are keys here, columns queries. */
PL_INLINE void att_dkv(const gpu_attention_bwd *g, GLOBAL uint8_t *dqkv,
                      GLOBAL const uint8_t *qkv, GLOBAL const uint8_t *dout,
                      GLOBAL const float *all_lse,
                      GLOBAL const float *all_delta, LOCAL_PTR float *chunk,
                      LOCAL_PTR float *weights, const int plain)
{
    const uint32_t D = g->D, T = g->T, parts = (D + 63) / 64,
                   heads = g->H / g->KV;
    const uint32_t j0 = GROUP_Y / parts * ATT_TILE, d0 = GROUP_Y % parts * 64,
                   kv = GROUP % g->KV, b = GROUP / g->KV;
    const uint32_t rows = T - j0 < ATT_TILE ? T - j0 : ATT_TILE, x = ITEM % 16,
                   y = ITEM / 16;
    const float one[4] = { 1.0f, 1.0f, 1.0f, 1.0f };
    att_head a = att_head_of(g, qkv, dout, b,
                             kv * heads);
    float s[4][4], dp[4][4], dk[4][8], dv[4][8];
    att_clear(dk);
    att_clear(dv);
    for (uint32_t h = kv * heads; h < (kv + 1) * heads; h++) {
        const uint64_t stat = ((uint64_t)b * g->H + h) * T;
        a = att_head_of(g, qkv, dout, b, h);
        for (uint32_t i0 = j0; i0 < T; i0 += ATT_TILE) {
            const uint32_t left = T - i0;
            att_scores(s, chunk, &a.k, j0, rows, &a.q, i0, left, D, 4, plain);
            att_scores(dp, chunk, &a.v, j0, rows, &a.dout, i0, left, D, 4, plain);
            UNROLL
            for (uint32_t c = 0; c < 4; c++) {
                const uint32_t i = i0 + x + 16 * c;
                float lse = 0.0f, delta = 0.0f;
                if (i < T) {
                    lse = READ(all_lse + stat + i);
                    delta = READ(all_delta + stat + i);
                }
                UNROLL
                for (uint32_t e = 0; e < 4; e++) {
                    const uint32_t j = j0 + 4 * y + e;
                    if (i < T && j <= i)
                        att_rounded_pair(g, b, h, i, j, lse, delta, &s[e][c],
                                         &dp[e][c]);
                    else
                        s[e][c] = dp[e][c] = 0.0f;
                }
            }
            att_put(weights, s, 4);
            att_mix(dv, weights, chunk, &a.dout, i0, left, d0, D, 4, 1,
                    plain);
            att_put(weights, dp, 4);
            att_mix(dk, weights, chunk, &a.q, i0, left, d0, D, 4, 1, plain);
        }
    }
    att_store(dk, one, dqkv, a.k.at + (uint64_t)j0 * a.k.row,
              a.k.row, rows, d0, D, g->dqkv_storage, g->vector, 4, 1);
    att_store(dv, one, dqkv, a.v.at + (uint64_t)j0 * a.v.row,
              a.v.row, rows, d0, D, g->dqkv_storage, g->vector, 4, 1);
}

#define ATTENTION_BWD(name, body, plain)                                       \
    KERNEL(name, 256, gpu_attention_bwd)                                       \
    {                                                                          \
        LOCAL ALIGNED_16 float chunk[ATT_CHUNK];                               \
        LOCAL ALIGNED_16 float weights[ATT_TILE * (ATT_TILE + 4)];             \
        body(&g, AT(uint8_t, g.dqkv), AT(uint8_t, g.qkv),                      \
             AT(uint8_t, g.dout), AT(float, g.lse), AT(float, g.delta), chunk, \
             weights, plain);                                                  \
    }
ATTENTION_BWD(attention_dq, att_dq, 1)
ATTENTION_BWD(attention_dkv, att_dkv, 1)
ATTENTION_BWD(attention_dq_any, att_dq, 0)
ATTENTION_BWD(attention_dkv_any, att_dkv, 0)
