/* attention_tensor.cl: attention by tensor cores, TENSOR of kernels.h, by tiles
 * as in attention.clh; attention_tensor_bwd.cl has its gradients. A group has 64
 * rows, 16 for each of its four warps, and goes through tiles of 64 columns.
 * Scores are fragments of sums (tensor.clh); rounded, they are fragments of an
 * operand, so that weights never leave the registers:
 *
 *   scores   rows x columns over the channels, 64 of them at a time
 *   mix      weights x channels of the columns: the tile that scores were made
 *            of, read the other way round
 *
 * `deep`: heads of more than 64 channels. Their scores take several tiles, one
 * after the other, and a group makes 64 or 128 channels of the result. Else a
 * tile stays for both, and the next is copied meanwhile. */
#include "kernels/gpu/attention.clh"
#include "kernels/gpu/tensor.clh"

#ifdef PL_TENSOR

enum {
    TATT_TILE = 64,
    TATT_ITEMS = 128,
    TATT_ROOM = TATT_TILE * 64 * 2, /* of a tile of 64 channels */
    TATT_PITCH = 8                  /* beyond a row of results */
};

/* Rows first .. first + 63, of which `count` are there, channels d0 .. in
 * `blocks` blocks of 8. They are there after a wait and a barrier. */
PL_INLINE void tatt_load(LOCAL_PTR uint8_t *room, const att_rows *r,
                         uint32_t first, uint32_t count, uint32_t d0,
                         uint32_t D, const uint32_t blocks)
{
    if (r->vector) {
        UNROLL
        for (uint32_t at = ITEM; at < TATT_TILE * blocks; at += TATT_ITEMS) {
            const uint32_t line = at / blocks, d = d0 + at % blocks * 8;
            const int there = line < count && d < D;
            COPY(room + tensor_block(line, at % blocks, blocks),
                 r->p + (r->at + (uint64_t)(first + (there ? line : 0u)) *
                                     r->row +
                         (there ? d : 0u)) *
                            2,
                 there ? 16u : 0u);
        }
        return;
    }
    NO_UNROLL
    for (uint32_t at = ITEM; at < TATT_TILE * blocks * 4; at += TATT_ITEMS) {
        const uint32_t line = at / (blocks * 4), pair = at % (blocks * 4),
                       d = d0 + pair * 2;
        GLOBAL const uint16_t *from = (GLOBAL const uint16_t *)r->p + r->at +
                                      (uint64_t)(first + line) * r->row + d;
        uint32_t two = 0;
        if (line < count && d < D)
            two = READ(from);
        if (line < count && d + 1 < D)
            two |= (uint32_t)READ(from + 1) << 16;
        PUT((LOCAL_PTR uint32_t *)(room + tensor_block(line, pair / 4, blocks) +
                                   pair % 4 * 4),
            two);
    }
}

PL_INLINE void tatt_clear(float s[8][4])
{
    UNROLL
    for (int n = 0; n < 8; n++) {
        UNROLL
        for (int e = 0; e < 4; e++)
            s[n][e] = 0.0f;
    }
}

/* s += the warp's rows x all columns, over `left` channels or 64. */
PL_INLINE void tatt_scores(float s[8][4], LOCAL_PTR const uint8_t *rows,
                           LOCAL_PTR const uint8_t *columns, uint32_t left,
                           const int bf16)
{
    const uint32_t a_at = tensor_a_at(ITEM / 32 * 16, 0, 8),
                   b_at = tensor_b_at(0, 0, 8);
    UNROLL
    for (uint32_t q = 0; q < 4; q++) {
        uint32_t a[4];
        if (16 * q >= left)
            break;
        tensor_take(a, rows, a_at, 0, q, 0, 8);
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t b[4];
            tensor_take(b, columns, b_at, i, q, 0, 8);
            MMA(s[2 * i], a, b, bf16);
            MMA(s[2 * i + 1], a, b + 2, bf16);
        }
    }
}

/* s = the same of all channels, tile by tile, where the head has several. */
PL_INLINE void tatt_deep_scores(float s[8][4], LOCAL_PTR uint8_t *room,
                                const att_rows *rows, uint32_t r0,
                                uint32_t n_rows, const att_rows *columns,
                                uint32_t c0, uint32_t n_columns, uint32_t D,
                                const int bf16)
{
    tatt_clear(s);
    for (uint32_t d0 = 0; d0 < D; d0 += 64) {
        BARRIER();
        tatt_load(room, rows, r0, n_rows, d0, D, 8);
        tatt_load(room + TATT_ROOM, columns, c0, n_columns, d0, D, 8);
        COPY_COMMIT();
        COPY_WAIT(0);
        BARRIER();
        tatt_scores(s, room, room + TATT_ROOM, D - d0, bf16);
    }
}

/* acc += weights x a tile of columns of `blocks` blocks. */
PL_INLINE void tatt_mix(float acc[16][4], float w[8][4],
                        LOCAL_PTR const uint8_t *columns, const uint32_t blocks,
                        const int bf16)
{
    const uint32_t at = tensor_b_at(0, 1, blocks),
                   kept = bf16 ? PL_STORE_BF16 : PL_STORE_F16;
    uint32_t a[4][4];
    UNROLL
    for (uint32_t q = 0; q < 4; q++) {
        UNROLL
        for (uint32_t e = 0; e < 4; e++)
            a[q][e] = tensor_pair(w[2 * q + e / 2][e % 2 * 2],
                                  w[2 * q + e / 2][e % 2 * 2 + 1], kept);
    }
    UNROLL
    for (uint32_t q = 0; q < 4; q++) {
        UNROLL
        for (uint32_t i = 0; i < blocks / 2; i++) {
            uint32_t b[4];
            tensor_take(b, columns, at, i, q, 1, blocks);
            MMA(acc[2 * i], a[q], b, bf16);
            MMA(acc[2 * i + 1], a[q], b + 2, bf16);
        }
    }
}

/* Stores sums, those of a row times its factor, + 0, through local memory. */
PL_INLINE void tatt_store(float acc[16][4], const float factor[2],
                          LOCAL_PTR float *room, GLOBAL uint8_t *p, uint64_t at,
                          uint32_t row, uint32_t count, uint32_t d0, uint32_t D,
                          uint32_t storage, uint32_t vector,
                          const uint32_t blocks)
{
    const uint32_t l = tensor_lane(), pitch = blocks * 8 + TATT_PITCH,
                   fours = blocks * 2;
    BARRIER();
    UNROLL
    for (uint32_t n = 0; n < blocks; n++) {
        UNROLL
        for (int e = 0; e < 2; e++)
            PUT((LOCAL_PTR float2 *)(room +
                                     (ITEM / 32 * 16 + l / 4 + 8 * (uint32_t)e) *
                                         pitch +
                                     8 * n + l % 4 * 2),
                MAKE2(acc[n][2 * e] * factor[e] + 0.0f,
                      acc[n][2 * e + 1] * factor[e] + 0.0f));
    }
    BARRIER();
    NO_UNROLL
    for (uint32_t q = ITEM; q < TATT_TILE * fours; q += TATT_ITEMS) {
        const uint32_t r = q / fours, d = d0 + q % fours * 4;
        float v[4];
        take4(v, room + r * pitch + q % fours * 4);
        if (r < count && d < D)
            set4(p, at + (uint64_t)r * row + d, v, D - d, storage, vector);
    }
}

/* ---- forward ---- */

/* Of a row's four items: the largest, or LANES: each has four of the sixteen
 * lanes of both of its rows, 2x, 2x + 1 and these and 8. */
PL_INLINE float tatt_most(float x)
{
    x = larger(x, SHUFFLE(x, 1));
    return larger(x, SHUFFLE(x, 2));
}

PL_INLINE float tatt_total(const float lanes[2][2])
{
    float sum[2];
    UNROLL
    for (int e = 0; e < 2; e++) {
        float x = lanes[0][e] + lanes[1][e];
        x = x + SHUFFLE(x, 2);
        sum[e] = x + SHUFFLE(x, 1);
    }
    return sum[0] + sum[1];
}

/* exp(s - max), what is added to the lanes, and P. */
PL_INLINE void tatt_weights(float s[8][4], float lanes[2][2][2],
                            const float max[2], const gpu_attention *g,
                            uint32_t b, uint32_t h, uint32_t position,
                            uint32_t j0)
{
    UNROLL
    for (uint32_t n = 0; n < 8; n++) {
        UNROLL
        for (uint32_t r = 0; r < 2; r++) {
            const uint32_t i = position + 8 * r,
                           j = j0 + 8 * n + tensor_lane() % 4 * 2;
            uint32_t words[4] = { 0, 0, 0, 0 };
            if (g->dropout.threshold && j <= i)
                mask_words(&g->dropout, h << 20, i, g->dropout.sequence + b,
                           j / 4, words);
            UNROLL
            for (uint32_t e = 0; e < 2; e++) {
                float p = 0.0f;
                if (j + e <= i) {
                    p = exp_down1(s[n][2 * r + e] * g->scale - max[r]);
                    lanes[r][n % 2][e] = lanes[r][n % 2][e] + p;
                    if (g->dropout.threshold)
                        p = kept(&g->dropout, word_of(words, (j + e) & 3u), p);
                }
                s[n][2 * r + e] = p;
            }
        }
    }
}

PL_INLINE void tatt_largest(float most[2], float s[8][4], uint32_t position,
                            uint32_t j0)
{
    UNROLL
    for (uint32_t n = 0; n < 8; n++) {
        UNROLL
        for (uint32_t e = 0; e < 4; e++)
            if (j0 + 8 * n + tensor_lane() % 4 * 2 + e % 2 <=
                position + 8 * (e / 2))
                most[e / 2] = larger(most[e / 2], s[n][e]);
    }
}

typedef struct tatt_forward_of {
    att_rows q, k, v;
    uint32_t i0, rows, keys, d0, position, b, h;
} tatt_forward_of;

PL_INLINE tatt_forward_of tatt_forward_at(const gpu_attention *g,
                                          GLOBAL const uint8_t *pq,
                                          GLOBAL const uint8_t *pk,
                                          GLOBAL const uint8_t *pv,
                                          GLOBAL const int32_t *positions,
                                          const uint32_t wide)
{
    const uint32_t D = g->D, parts = (D + wide - 1) / wide,
                   tiles = (g->queries + TATT_TILE - 1) / TATT_TILE,
                   h = GROUP % g->H, b = GROUP / g->H;
    const uint64_t at_kv = (uint64_t)b * g->keys * g->kv_row +
                           (uint64_t)(h / (g->H / g->KV)) * D;
    const uint32_t first = positions ? (uint32_t)READ(positions + b) : g->first;
    tatt_forward_of o;
    /* the last tile first: it sees the most keys */
    o.i0 = (tiles - 1 - GROUP_Y / parts) * TATT_TILE;
    o.d0 = GROUP_Y % parts * wide;
    o.rows = g->queries - o.i0 < TATT_TILE ? g->queries - o.i0 : TATT_TILE;
    o.keys = first + o.i0 + o.rows;
    o.position = first + o.i0 + ITEM / 32 * 16 + tensor_lane() / 4;
    o.b = b;
    o.h = h;
    o.q.p = pq;
    o.k.p = pk;
    o.v.p = pv;
    o.q.at = (uint64_t)b * g->queries * g->q_row + (uint64_t)h * D;
    o.k.at = o.v.at = at_kv;
    o.q.row = g->q_row;
    o.k.row = o.v.row = g->kv_row;
    o.q.storage = o.k.storage = o.v.storage = g->qkv_storage;
    o.q.vector = o.k.vector = o.v.vector = g->vector;
    return o;
}

/* Local memory: q, two tiles of k, and v; or q, k and v of twice the width. */
PL_INLINE void tatt_forward(const gpu_attention *g, GLOBAL uint8_t *out,
                            GLOBAL float *lse, const tatt_forward_of o,
                            LOCAL_PTR uint8_t *room, const int deep,
                            const int bf16)
{
    const uint32_t D = g->D, blocks = deep ? 16u : 8u;
    LOCAL_PTR uint8_t *keys = room + TATT_ROOM,
                      *values = room + (deep ? 2 : 3) * TATT_ROOM;
    float s[8][4], acc[16][4], max[2] = { -INFINITY, -INFINITY }, inverse[2];
    float lanes[2][2][2] = { { { 0.0f, 0.0f }, { 0.0f, 0.0f } },
                             { { 0.0f, 0.0f }, { 0.0f, 0.0f } } };
    uint32_t turn = 0;
    tatt_clear(acc);
    tatt_clear(acc + 8);
    if (!deep) {
        tatt_load(room, &o.q, o.i0, o.rows, 0, D, 8);
        tatt_load(keys, &o.k, 0, o.keys, 0, D, 8);
        COPY_COMMIT();
    }
    NO_UNROLL
    for (uint32_t pass = 0; pass < 2; pass++) {
        NO_UNROLL
        for (uint32_t j0 = 0; j0 < o.keys; j0 += TATT_TILE) {
            const uint32_t ahead = j0 + TATT_TILE < o.keys ? j0 + TATT_TILE : 0;
            LOCAL_PTR uint8_t *now = keys, *next = keys;
            if (deep) {
                tatt_deep_scores(s, room, &o.q, o.i0, o.rows, &o.k, j0,
                                 o.keys - j0, D, bf16);
                BARRIER();
            } else {
                now = keys + turn % 2 * TATT_ROOM;
                next = keys + (turn + 1) % 2 * TATT_ROOM;
                turn++;
                COPY_WAIT(0);
                BARRIER();
            }
            if (pass)
                tatt_load(values, &o.v, j0, o.keys - j0, o.d0, D, blocks);
            COPY_COMMIT();
            if (!deep) {
                if (ahead || !pass)
                    tatt_load(next, &o.k, ahead, o.keys - ahead, 0, D, 8);
                COPY_COMMIT();
                tatt_clear(s);
                tatt_scores(s, room, now, D, bf16);
            }
            if (pass == 0) {
                tatt_largest(max, s, o.position, j0);
                continue;
            }
            tatt_weights(s, lanes, max, g, o.b, o.h, o.position, j0);
            if (deep)
                COPY_WAIT(0);
            else
                COPY_WAIT(1);
            BARRIER();
            tatt_mix(acc, s, values, blocks, bf16);
        }
        UNROLL
        for (int r = 0; r < 2; r++)
            if (pass == 0)
                max[r] = tatt_most(max[r]) * g->scale;
    }
    UNROLL
    for (uint32_t r = 0; r < 2; r++) {
        const float l = tatt_total(lanes[r]);
        const uint32_t i = ITEM / 32 * 16 + tensor_lane() / 4 + 8 * r;
        inverse[r] = 1.0f / l;
        if (g->lse && o.d0 == 0 && tensor_lane() % 4 == 0 && i < o.rows)
            WRITE(lse + ((uint64_t)o.b * g->H + o.h) * g->queries + o.i0 + i,
                  log_sum1(max[r], l, 0.0f));
    }
    tatt_store(acc, inverse, (LOCAL_PTR float *)room, out,
               ((uint64_t)o.b * g->queries + o.i0) * g->H * D +
                   (uint64_t)o.h * D,
               g->H * D, o.rows, o.d0, D, g->out_storage, g->vector, blocks);
}

#define ATTENTION_TENSOR(name, deep, bytes)                                    \
    KERNEL(name, 128, gpu_attention)                                           \
    {                                                                          \
        LOCAL ALIGNED_16 uint8_t room[bytes];                                  \
        const tatt_forward_of o = tatt_forward_at(                             \
            &g, AT(uint8_t, g.q), AT(uint8_t, g.k), AT(uint8_t, g.v),          \
            g.positions ? AT(int32_t, g.positions) : 0, deep ? 128u : 64u);    \
        if (g.qkv_storage == PL_STORE_BF16)                                    \
            tatt_forward(&g, AT(uint8_t, g.out), AT(float, g.lse), o, room,    \
                         deep, 1);                                             \
        else                                                                   \
            tatt_forward(&g, AT(uint8_t, g.out), AT(float, g.lse), o, room,    \
                         deep, 0);                                             \
    }
ATTENTION_TENSOR(attention_tensor, 0, 4 * TATT_ROOM)
ATTENTION_TENSOR(attention_tensor_deep, 1, TATT_TILE * (128 + TATT_PITCH) * 4)

#endif
