/* attention_tensor_bwd.cl: the gradients of attention by tensor cores, in the way
 * of attention_tensor.cl: dq by one kernel over keys, dk and dv by another one
 * over queries. */
#include "kernels/gpu/attention_bwd.clh"
#include "kernels/gpu/attention_tensor.cl"

#ifdef PL_TENSOR

/* P and dS of query i and key j; zeros where the query doesn't see the key. */
PL_INLINE void tatt_pair(const gpu_attention_bwd *g, uint32_t b, uint32_t h,
                         uint32_t i, uint32_t j, float lse, float delta,
                         float *s, float *dp)
{
    if (j <= i && i < g->T)
        att_pair(g, b, h, i, j, lse, delta, s, dp);
    else
        *s = *dp = 0.0f;
}

/* Rows are queries, columns keys. Local memory: q, k, dout, v; or two tiles,
 * and one of 128 channels of k. */
PL_INLINE void tatt_dq(const gpu_attention_bwd *g, GLOBAL uint8_t *dqkv,
                       GLOBAL const uint8_t *qkv, GLOBAL const uint8_t *dout,
                       GLOBAL const float *all_lse,
                       GLOBAL const float *all_delta, LOCAL_PTR uint8_t *room,
                       const int deep, const int bf16)
{
    const uint32_t D = g->D, T = g->T, wide = deep ? 128u : 64u,
                   parts = (D + wide - 1) / wide, blocks = wide / 8,
                   tiles = (T + TATT_TILE - 1) / TATT_TILE;
    const uint32_t i0 = (tiles - 1 - GROUP_Y / parts) * TATT_TILE,
                   d0 = GROUP_Y % parts * wide, h = GROUP % g->H,
                   b = GROUP / g->H,
                   rows = T - i0 < TATT_TILE ? T - i0 : TATT_TILE,
                   keys = i0 + rows,
                   i = i0 + ITEM / 32 * 16 + tensor_lane() / 4;
    const att_head a = att_head_of(g, qkv, dout, b, h);
    LOCAL_PTR uint8_t *columns = room + (deep ? 2 : 1) * TATT_ROOM;
    const float one[2] = { 1.0f, 1.0f };
    float s[8][4], dp[8][4], acc[16][4], lse[2], delta[2];
    UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        lse[r] = delta[r] = 0.0f;
        if (i + 8 * r < T) {
            lse[r] = READ(all_lse + ((uint64_t)b * g->H + h) * T + i + 8 * r);
            delta[r] = READ(all_delta + ((uint64_t)b * g->H + h) * T + i +
                            8 * r);
        }
    }
    tatt_clear(acc);
    tatt_clear(acc + 8);
    if (!deep) {
        tatt_load(room, &a.q, i0, rows, 0, D, 8);
        tatt_load(room + 2 * TATT_ROOM, &a.dout, i0, rows, 0, D, 8);
    }
    NO_UNROLL
    for (uint32_t j0 = 0; j0 < keys; j0 += TATT_TILE) {
        const uint32_t left = keys - j0;
        if (deep) {
            tatt_deep_scores(s, room, &a.q, i0, rows, &a.k, j0, left, D, bf16);
            tatt_deep_scores(dp, room, &a.dout, i0, rows, &a.v, j0, left, D,
                             bf16);
            BARRIER();
            tatt_load(columns, &a.k, j0, left, d0, D, blocks);
            COPY_COMMIT();
        } else {
            BARRIER();
            tatt_load(columns, &a.k, j0, left, 0, D, 8);
            COPY_COMMIT();
            tatt_load(room + 3 * TATT_ROOM, &a.v, j0, left, 0, D, 8);
            COPY_COMMIT();
            COPY_WAIT(1);
            BARRIER();
            tatt_clear(s);
            tatt_scores(s, room, columns, D, bf16);
            COPY_WAIT(0);
            BARRIER();
            tatt_clear(dp);
            tatt_scores(dp, room + 2 * TATT_ROOM, room + 3 * TATT_ROOM, D,
                        bf16);
        }
        UNROLL
        for (uint32_t n = 0; n < 8; n++) {
            UNROLL
            for (uint32_t e = 0; e < 4; e++)
                tatt_pair(g, b, h, i + 8 * (e / 2),
                          j0 + 8 * n + tensor_lane() % 4 * 2 + e % 2,
                          lse[e / 2], delta[e / 2], &s[n][e], &dp[n][e]);
        }
        if (deep) {
            COPY_WAIT(0);
            BARRIER();
        }
        tatt_mix(acc, dp, columns, blocks, bf16);
    }
    tatt_store(acc, one, (LOCAL_PTR float *)room, dqkv,
               a.q.at + (uint64_t)i0 * a.q.row, a.q.row, rows, d0, D,
               g->dqkv_storage, g->vector, blocks);
}

/* Rows are keys, columns queries. Local memory: k, q, v, dout, and the columns'
 * statistics; deep: two tiles, one of q and one of dout. */
PL_INLINE void tatt_dkv(const gpu_attention_bwd *g, GLOBAL uint8_t *dqkv,
                        GLOBAL const uint8_t *qkv, GLOBAL const uint8_t *dout,
                        GLOBAL const float *all_lse,
                        GLOBAL const float *all_delta, LOCAL_PTR uint8_t *room,
                        LOCAL_PTR float *stats, const int deep, const int bf16)
{
    const uint32_t D = g->D, T = g->T, parts = (D + 63) / 64,
                   heads = g->H / g->KV;
    const uint32_t j0 = GROUP_Y / parts * TATT_TILE, d0 = GROUP_Y % parts * 64,
                   kv = GROUP % g->KV, b = GROUP / g->KV,
                   rows = T - j0 < TATT_TILE ? T - j0 : TATT_TILE,
                   j = j0 + ITEM / 32 * 16 + tensor_lane() / 4;
    LOCAL_PTR uint8_t *queries = room + (deep ? 2 : 1) * TATT_ROOM,
                      *out = room + 3 * TATT_ROOM;
    const float one[2] = { 1.0f, 1.0f };
    att_head a = att_head_of(g, qkv, dout, b, kv * heads);
    float s[8][4], dp[8][4], dk[16][4], dv[16][4];
    tatt_clear(dk);
    tatt_clear(dv);
    if (!deep) {
        tatt_load(room, &a.k, j0, rows, 0, D, 8);
        tatt_load(room + 2 * TATT_ROOM, &a.v, j0, rows, 0, D, 8);
    }
    NO_UNROLL
    for (uint32_t h = kv * heads; h < (kv + 1) * heads; h++) {
        const uint64_t stat = ((uint64_t)b * g->H + h) * T;
        a = att_head_of(g, qkv, dout, b, h);
        NO_UNROLL
        for (uint32_t i0 = j0; i0 < T; i0 += TATT_TILE) {
            const uint32_t left = T - i0;
            if (deep) {
                tatt_deep_scores(s, room, &a.k, j0, rows, &a.q, i0, left, D,
                                 bf16);
                tatt_deep_scores(dp, room, &a.v, j0, rows, &a.dout, i0, left, D,
                                 bf16);
            }
            BARRIER();
            tatt_load(queries, &a.q, i0, left, d0, D, 8);
            COPY_COMMIT();
            tatt_load(out, &a.dout, i0, left, d0, D, 8);
            COPY_COMMIT();
            if (ITEM < TATT_TILE) {
                const int there = ITEM < left;
                PUT(stats + ITEM,
                    there ? READ(all_lse + stat + i0 + ITEM) : 0.0f);
                PUT(stats + TATT_TILE + ITEM,
                    there ? READ(all_delta + stat + i0 + ITEM) : 0.0f);
            }
            if (!deep) {
                COPY_WAIT(1);
                BARRIER();
                tatt_clear(s);
                tatt_scores(s, room, queries, D, bf16);
            }
            COPY_WAIT(0);
            BARRIER();
            if (!deep) {
                tatt_clear(dp);
                tatt_scores(dp, room + 2 * TATT_ROOM, out, D, bf16);
            }
            UNROLL
            for (uint32_t n = 0; n < 8; n++) {
                UNROLL
                for (uint32_t e = 0; e < 2; e++) {
                    const uint32_t at = 8 * n + tensor_lane() % 4 * 2 + e;
                    const float lse = TAKE(stats + at),
                                delta = TAKE(stats + TATT_TILE + at);
                    UNROLL
                    for (uint32_t r = 0; r < 2; r++)
                        tatt_pair(g, b, h, i0 + at, j + 8 * r, lse, delta,
                                  &s[n][2 * r + e], &dp[n][2 * r + e]);
                }
            }
            tatt_mix(dv, s, out, 8, bf16);
            tatt_mix(dk, dp, queries, 8, bf16);
        }
    }
    tatt_store(dk, one, (LOCAL_PTR float *)room, dqkv,
               a.k.at + (uint64_t)j0 * a.k.row, a.k.row, rows, d0, D,
               g->dqkv_storage, g->vector, 8);
    tatt_store(dv, one, (LOCAL_PTR float *)room, dqkv,
               a.v.at + (uint64_t)j0 * a.v.row, a.v.row, rows, d0, D,
               g->dqkv_storage, g->vector, 8);
}

#define ATTENTION_DQ_TENSOR(name, deep, bytes)                                 \
    KERNEL(name, 128, gpu_attention_bwd)                                       \
    {                                                                          \
        LOCAL ALIGNED_16 uint8_t room[bytes];                                  \
        if (g.qkv_storage == PL_STORE_BF16)                                    \
            tatt_dq(&g, AT(uint8_t, g.dqkv), AT(uint8_t, g.qkv),               \
                    AT(uint8_t, g.dout), AT(float, g.lse), AT(float, g.delta), \
                    room, deep, 1);                                            \
        else                                                                   \
            tatt_dq(&g, AT(uint8_t, g.dqkv), AT(uint8_t, g.qkv),               \
                    AT(uint8_t, g.dout), AT(float, g.lse), AT(float, g.delta), \
                    room, deep, 0);                                            \
    }
ATTENTION_DQ_TENSOR(attention_dq_tensor, 0, 4 * TATT_ROOM)
ATTENTION_DQ_TENSOR(attention_dq_tensor_deep, 1,
                    TATT_TILE * (128 + TATT_PITCH) * 4)

#define ATTENTION_DKV_TENSOR(name, deep)                                       \
    KERNEL(name, 128, gpu_attention_bwd)                                       \
    {                                                                          \
        LOCAL ALIGNED_16 uint8_t room[4 * TATT_ROOM];                          \
        LOCAL ALIGNED_16 float stats[2 * TATT_TILE];                           \
        if (g.qkv_storage == PL_STORE_BF16)                                    \
            tatt_dkv(&g, AT(uint8_t, g.dqkv), AT(uint8_t, g.qkv),              \
                     AT(uint8_t, g.dout), AT(float, g.lse),                    \
                     AT(float, g.delta), room, stats, deep, 1);                \
        else                                                                   \
            tatt_dkv(&g, AT(uint8_t, g.dqkv), AT(uint8_t, g.qkv),              \
                     AT(uint8_t, g.dout), AT(float, g.lse),                    \
                     AT(float, g.delta), room, stats, deep, 0);                \
    }
ATTENTION_DKV_TENSOR(attention_dkv_tensor, 0)
ATTENTION_DKV_TENSOR(attention_dkv_tensor_deep, 1)

#endif
