/* tensor.cl: matrix products by tensor cores, C[M, N] = A[M, K] B[K, N] with
 * operands of 16 bits and sums in float32: TENSOR(k) of kernels.h.
 *
 * A group computes a tile of C, each of its warps a part of it, in ascending k,
 * which is never split. Operands come in tiles of 64 k (tensor.clh).
 *
 *   tensor_nn ..  128 x 128, for operands that are kept in 16 bits and can be
 *                 read in blocks of 8. Local memory has two tiles of each; while
 *                 one is multiplied, the next is copied
 *   tensor_any    64 x 64, for all operands: float32 is rounded on its way
 *   tensor_thin   16 x 64, for the few rows of decoding
 *
 * The host has float32 operands of large products rounded first (round_copy).
 * What is missing at the edges is zero in k; elsewhere nobody stores what is
 * made of it. Names say how A and B lie, as in gemm.cl. */
#include "kernels/gpu/gemm.cl"
#include "kernels/gpu/tensor.clh"

/* y[r * C + c] = x[r * ld + c] in 16 bits; both in fours. */
KERNEL(round_copy, 256, gpu_round)
{
    const uint64_t at = ((uint64_t)GROUP * 256 + ITEM) * 4, row = at / g.C;
    GLOBAL uint8_t *y = AT(uint8_t, g.y);
    GLOBAL const uint8_t *x = AT(uint8_t, g.x);
    float v[4];
    if (row >= g.rows)
        return;
    get4(v, x, row * g.ld + at % g.C, 4, PL_STORE_F32, 1, 0.0f);
    set4(y, at, v, 4, g.storage, 1);
}

#ifdef PL_TENSOR

enum {
    TENSOR_TILE = 128,
    TENSOR_PITCH = TENSOR_TILE + 8, /* of rows of sums: pairs meet no bank */
};

/* How a group is cut: its tile, its warps, and the 16 x 8 of each warp. */
typedef struct tensor_cut {
    uint32_t tall, wide, across, items;
    int down, side; /* fragments of a warp, in m and in n */
} tensor_cut;

/* ---- operands ---- */

/* One of the two. Where a tile's blocks lie is the same for every tile: an
 * item's offsets from the tile's first are computed once. */
typedef struct tensor_operand {
    GLOBAL const uint8_t *p; /* the tile's first line, the first k */
    uint64_t step;           /* bytes from tile to tile */
    uint32_t from[4];        /* of the item's blocks */
    uint32_t to, k;          /* of the item's first block */
} tensor_operand;

/* The item's nth block of a tile of 128 lines: its line and its k. */
PL_INLINE uint32_t tensor_line(uint32_t nth, const int by_k)
{
    return by_k ? ITEM / 8 + 32 * nth : ITEM % 16 * 8;
}

PL_INLINE uint32_t tensor_k(uint32_t nth, const int by_k)
{
    return by_k ? ITEM % 8 * 8 : ITEM / 16 + 16 * nth;
}

/* Lines beyond the last are the last one, or the last 8, again. */
PL_INLINE tensor_operand tensor_open(GLOBAL const uint8_t *p, uint32_t first,
                                     uint32_t lines, uint32_t ld,
                                     const int by_k)
{
    const uint32_t last = by_k ? lines - 1 - first : lines - 8 - first;
    tensor_operand o;
    o.p = p + (by_k ? (uint64_t)first * ld : first) * 2;
    o.step = (by_k ? 1u : (uint64_t)ld) * TENSOR_DEPTH * 2;
    o.k = tensor_k(0, by_k);
    o.to = by_k ? tensor_block(ITEM / 8, ITEM % 8, 8)
                : tensor_block(ITEM / 16, ITEM % 16, 16);
    UNROLL
    for (uint32_t n = 0; n < 4; n++) {
        const uint32_t mine = tensor_line(n, by_k),
                       line = mine < last ? mine : last;
        o.from[n] = (by_k ? line * ld + tensor_k(n, by_k)
                          : tensor_k(n, by_k) * ld + line) *
                    2;
    }
    return o;
}

/* The next tile, of which `left` k are there. */
PL_INLINE void tensor_fetch(LOCAL_PTR uint8_t *room, tensor_operand *o,
                            uint32_t left, const int by_k)
{
    UNROLL
    for (uint32_t n = 0; n < 4; n++) {
        const uint32_t k = by_k ? o->k : o->k + 16 * n;
        /* 32 lines, or 16 k, are as many bytes */
        COPY(room + o->to + n * 4096, o->p + o->from[n], k < left ? 16u : 0u);
    }
    o->p += o->step;
}

/* All of a tile of any operand: fours of `lines` lines from `first` on, and of
 * k0 .. */
PL_INLINE void tensor_load(LOCAL_PTR uint8_t *room, GLOBAL const uint8_t *p,
                           uint32_t k0, uint32_t K, uint32_t first,
                           uint32_t lines, uint32_t ld, uint32_t storage,
                           uint32_t round, uint32_t vector, uint32_t by_k,
                           const uint32_t wide, const uint32_t items)
{
    const uint32_t kept = storage == PL_STORE_F32 ? round : storage;
    NO_UNROLL
    for (uint32_t at = ITEM; at < wide * TENSOR_DEPTH / 4; at += items) {
        const uint32_t line = by_k ? at / 16 : at % (wide / 4) * 4,
                       k = by_k ? at % 16 * 4 : at / (wide / 4);
        const uint32_t row = by_k ? first + line : k0 + k,
                       from = by_k ? k0 + k : first + line,
                       rows = by_k ? lines : K, end = by_k ? K : lines,
                       place = by_k ? tensor_block(line, k / 8, 8) + k % 8 * 2
                                    : tensor_block(k, line / 8, wide / 8) +
                                          line % 8 * 2;
        float v[4];
        get4(v, p, (uint64_t)row * ld + from,
             row < rows && from < end ? end - from : 0u, storage, vector, 0.0f);
        PUT((LOCAL_PTR uint2 *)(room + place),
            MAKE_WORDS2(tensor_pair(v[0], v[1], kept),
                        tensor_pair(v[2], v[3], kept)));
    }
}

/* ---- sums ---- */

/* Row `line` of the tile, sums of columns `column` and the next: pairs of a
 * fragment pass through local memory, 16 rows of each warp at a time. */
PL_INLINE LOCAL_PTR float2 *tensor_pair_at(LOCAL_PTR float *rows,
                                           const tensor_cut *cut, int j,
                                           uint32_t below)
{
    const uint32_t l = tensor_lane(), warp = ITEM / 32,
                   row = warp / cut->across * 16 + l / 4 + below,
                   column = warp % cut->across * (8 * (uint32_t)cut->side) +
                            8 * (uint32_t)j + l % 4 * 2;
    return (LOCAL_PTR float2 *)(rows + row * TENSOR_PITCH + column);
}

/* Where row `row` of those rows is in C. */
PL_INLINE uint32_t tensor_row(const tensor_cut *cut, uint32_t row, int i)
{
    return row / 16 * (16 * (uint32_t)cut->down) + 16 * (uint32_t)i + row % 16;
}

PL_INLINE void tensor_begin(float acc[4][4][4], const gpu_gemm *g,
                            GLOBAL const float *c, GLOBAL const float *bias,
                            LOCAL_PTR float *rows, uint32_t m0, uint32_t n0,
                            const tensor_cut *cut)
{
    const uint32_t l = tensor_lane(), warp = ITEM / 32,
                   tall = cut->tall / (uint32_t)cut->down;
    UNROLL
    for (int j = 0; j < cut->side; j++) {
        const uint32_t n = n0 + warp % cut->across * (8 * (uint32_t)cut->side) +
                           8 * (uint32_t)j + l % 4 * 2;
        float first[2] = { 0.0f, 0.0f };
        UNROLL
        for (uint32_t e = 0; e < 2; e++)
            if (g->start == START_BIAS && n + e < g->N) {
                const float b = READ(bias + n + e);
                first[e] = g->flush ? pl_sum_start(b) : b;
            }
        UNROLL
        for (int i = 0; i < cut->down; i++) {
            UNROLL
            for (int e = 0; e < 4; e++)
                acc[i][j][e] = first[e % 2];
        }
    }
    if (g->start != START_KEEP)
        return;
    UNROLL
    for (int i = 0; i < cut->down; i++) {
        NO_UNROLL
        for (uint32_t q = ITEM; q < tall * cut->wide / 4; q += cut->items) {
            const uint32_t row = q / (cut->wide / 4),
                           column = q % (cut->wide / 4) * 4,
                           m = m0 + tensor_row(cut, row, i), n = n0 + column,
                           left = m < g->M && n < g->N ? g->N - n : 0u;
            float v[4];
            get4(v, (GLOBAL const uint8_t *)c, (uint64_t)m * g->c_row + n, left,
                 PL_STORE_F32, g->vector & GPU_VECTOR_C, 0.0f);
            put4(rows + row * TENSOR_PITCH + column, v[0], v[1], v[2], v[3]);
        }
        BARRIER();
        UNROLL
        for (int j = 0; j < cut->side; j++) {
            UNROLL
            for (int e = 0; e < 4; e += 2) {
                const float2 pair = TAKE(tensor_pair_at(rows, cut, j,
                                                        e ? 8u : 0u));
                acc[i][j][e] = pair.x;
                acc[i][j][e + 1] = pair.y;
            }
        }
        BARRIER();
    }
}

PL_INLINE void tensor_finish(float acc[4][4][4], const gpu_gemm *g,
                             const gemm_ends *to, LOCAL_PTR float *rows,
                             uint32_t m0, uint32_t n0, const tensor_cut *cut)
{
    const uint32_t tall = cut->tall / (uint32_t)cut->down;
    UNROLL
    for (int i = 0; i < cut->down; i++) {
        BARRIER();
        UNROLL
        for (int j = 0; j < cut->side; j++) {
            UNROLL
            for (int e = 0; e < 4; e += 2)
                PUT(tensor_pair_at(rows, cut, j, e ? 8u : 0u),
                    MAKE2(acc[i][j][e], acc[i][j][e + 1]));
        }
        BARRIER();
        NO_UNROLL
        for (uint32_t q = ITEM; q < tall * cut->wide / 4; q += cut->items) {
            const uint32_t row = q / (cut->wide / 4),
                           column = q % (cut->wide / 4) * 4;
            float v[4];
            take4(v, rows + row * TENSOR_PITCH + column);
            gemm_end(g, to, m0 + tensor_row(cut, row, i), n0 + column, v);
        }
    }
}

/* ---- the product ---- */

/* Where a warp's fragments are. */
typedef struct tensor_ats {
    uint32_t a, b;
} tensor_ats;

PL_INLINE tensor_ats tensor_ats_of(const tensor_cut *cut, const int a_by_k,
                                   const int b_by_k)
{
    const uint32_t warp = ITEM / 32;
    tensor_ats at;
    at.a = tensor_a_at(warp / cut->across * (16 * (uint32_t)cut->down),
                       !a_by_k, cut->tall / 8);
    at.b = tensor_b_at(warp % cut->across * (8 * (uint32_t)cut->side), !b_by_k,
                       cut->wide / 8);
    return at;
}

/* The qth 16 k of a tile. */
PL_INLINE void tensor_step(float acc[4][4][4], LOCAL_PTR const uint8_t *as,
                           LOCAL_PTR const uint8_t *bs, tensor_ats at,
                           const uint32_t q, const tensor_cut *cut,
                           const int a_by_k, const int b_by_k, const int bf16)
{
    uint32_t b[2][4];
    UNROLL
    for (int j = 0; j < cut->side; j += 2)
        tensor_take(b[j / 2], bs, at.b, (uint32_t)(j / 2), q, !b_by_k,
                    cut->wide / 8);
    UNROLL
    for (int i = 0; i < cut->down; i++) {
        uint32_t a[4];
        tensor_take(a, as, at.a, (uint32_t)i, q, !a_by_k, cut->tall / 8);
        UNROLL
        for (int j = 0; j < cut->side; j++)
            MMA(acc[i][j], a, b[j / 2] + j % 2 * 2, bf16);
    }
}

/* Room of a tile of an operand. */
#define TENSOR_ROOM(lines) ((lines)*TENSOR_DEPTH * 2)

/* Multiplies the tiles at `now` while the next ones come to `next`. Whether
 * these were the last. */
PL_INLINE int tensor_tile(float acc[4][4][4], LOCAL_PTR const uint8_t *now,
                          LOCAL_PTR uint8_t *next, tensor_operand *a,
                          tensor_operand *b, uint32_t *left, tensor_ats at,
                          const tensor_cut *cut, const int a_by_k,
                          const int b_by_k, const int bf16)
{
    const uint32_t one = TENSOR_ROOM(TENSOR_TILE);
    const int is_last = *left <= TENSOR_DEPTH;
    COPY_WAIT(0);
    BARRIER();
    if (!is_last) {
        *left -= TENSOR_DEPTH;
        tensor_fetch(next, a, *left, a_by_k);
        tensor_fetch(next + one, b, *left, b_by_k);
        COPY_COMMIT();
    }
    UNROLL
    for (uint32_t q = 0; q < TENSOR_DEPTH / 16; q++)
        tensor_step(acc, now, now + one, at, q, cut, a_by_k, b_by_k, bf16);
    return is_last;
}

PL_INLINE void tensor_multiply(float acc[4][4][4], LOCAL_PTR uint8_t *room,
                               tensor_operand *a, tensor_operand *b, uint32_t K,
                               const tensor_cut *cut, const int a_by_k,
                               const int b_by_k, const int bf16)
{
    const uint32_t one = TENSOR_ROOM(TENSOR_TILE);
    const tensor_ats at = tensor_ats_of(cut, a_by_k, b_by_k);
    LOCAL_PTR uint8_t *other = room + 2 * one;
    uint32_t left = K;
    tensor_fetch(room, a, K, a_by_k);
    tensor_fetch(room + one, b, K, b_by_k);
    COPY_COMMIT();
    NO_UNROLL
    while (left > 0) {
        if (tensor_tile(acc, room, other, a, b, &left, at, cut, a_by_k, b_by_k,
                        bf16))
            break;
        if (tensor_tile(acc, other, room, a, b, &left, at, cut, a_by_k, b_by_k,
                        bf16))
            break;
    }
}

PL_INLINE void tensor_product(const gpu_gemm *g, GLOBAL const uint8_t *pa,
                              GLOBAL const uint8_t *pb,
                              GLOBAL const float *bias, const gemm_ends *to,
                              LOCAL_PTR uint8_t *room, const int a_by_k,
                              const int b_by_k)
{
    const tensor_cut cut = { TENSOR_TILE, TENSOR_TILE, 4, 256, 4, 4 };
    const uint32_t m0 = (g->first_tile + GROUP_Y) * TENSOR_TILE,
                   n0 = GROUP * TENSOR_TILE;
    LOCAL_PTR float *rows = (LOCAL_PTR float *)room;
    tensor_operand a = tensor_open(pa, m0, g->M, g->a_ld, a_by_k),
                   b = tensor_open(pb, n0, g->N, g->b_ld, b_by_k);
    float acc[4][4][4];
    tensor_begin(acc, g, (GLOBAL const float *)to->c, bias, rows, m0, n0, &cut);
    BARRIER_ALL(); /* others will write what was read here */
    if (g->flush) /* both are bfloat16 */
        tensor_multiply(acc, room, &a, &b, g->K, &cut, a_by_k, b_by_k, 1);
    else
        tensor_multiply(acc, room, &a, &b, g->K, &cut, a_by_k, b_by_k, 0);
    tensor_finish(acc, g, to, rows, m0, n0, &cut);
}

#define TENSOR_PRODUCT(name, a_by_k, b_by_k)                                   \
    KERNEL(name, 256, gpu_gemm)                                                \
    {                                                                          \
        LOCAL_LARGE(room, 4 * TENSOR_ROOM(TENSOR_TILE));                       \
        const gemm_ends to = { AT(uint8_t, g.c), AT(uint8_t, g.y),             \
                               AT(uint8_t, g.x) };                             \
        tensor_product(&g, AT(uint8_t, g.a), AT(uint8_t, g.b),                 \
                       AT(float, g.bias), &to, room, a_by_k, b_by_k);          \
    }
TENSOR_PRODUCT(tensor_nn, 1, 0)
TENSOR_PRODUCT(tensor_nt, 1, 1)
TENSOR_PRODUCT(tensor_tn, 0, 0)
TENSOR_PRODUCT(tensor_tt, 0, 1)

/* ---- any shape ---- */

/* A tile of at most 64 k; how the operands lie only the host knows. */
PL_INLINE void tensor_any_tile(float acc[4][4][4], LOCAL_PTR const uint8_t *as,
                               LOCAL_PTR const uint8_t *bs, uint32_t left,
                               const tensor_cut *cut, const int a_by_k,
                               const int b_by_k, const int bf16)
{
    const tensor_ats at = tensor_ats_of(cut, a_by_k, b_by_k);
    UNROLL
    for (uint32_t q = 0; q < TENSOR_DEPTH / 16; q++)
        if (16 * q < left)
            tensor_step(acc, as, bs, at, q, cut, a_by_k, b_by_k, bf16);
}

PL_INLINE void tensor_any_lying(float acc[4][4][4], LOCAL_PTR const uint8_t *as,
                                LOCAL_PTR const uint8_t *bs, uint32_t left,
                                const tensor_cut *cut, uint32_t by_k,
                                const int bf16)
{
    if (by_k == (GPU_BY_K_A | GPU_BY_K_B))
        tensor_any_tile(acc, as, bs, left, cut, 1, 1, bf16);
    else if (by_k == GPU_BY_K_A)
        tensor_any_tile(acc, as, bs, left, cut, 1, 0, bf16);
    else if (by_k == GPU_BY_K_B)
        tensor_any_tile(acc, as, bs, left, cut, 0, 1, bf16);
    else
        tensor_any_tile(acc, as, bs, left, cut, 0, 0, bf16);
}

PL_INLINE void tensor_any_product(const gpu_gemm *g, GLOBAL const uint8_t *pa,
                                  GLOBAL const uint8_t *pb,
                                  GLOBAL const float *bias, const gemm_ends *to,
                                  LOCAL_PTR uint8_t *room, const tensor_cut cut)
{
    const uint32_t m0 = (g->first_tile + GROUP_Y) * cut.tall,
                   n0 = GROUP * cut.wide;
    LOCAL_PTR float *rows = (LOCAL_PTR float *)room;
    LOCAL_PTR uint8_t *second = room + TENSOR_ROOM(cut.tall);
    float acc[4][4][4];
    tensor_begin(acc, g, (GLOBAL const float *)to->c, bias, rows, m0, n0, &cut);
    BARRIER_ALL(); /* others will write what was read here */
    NO_UNROLL
    for (uint32_t k0 = 0; k0 < g->K; k0 += TENSOR_DEPTH) {
        tensor_load(room, pa, k0, g->K, m0, g->M, g->a_ld, g->a_storage,
                    g->a_round, g->vector & GPU_VECTOR_A, g->by_k & GPU_BY_K_A,
                    cut.tall, cut.items);
        tensor_load(second, pb, k0, g->K, n0, g->N, g->b_ld, g->b_storage,
                    g->b_round, g->vector & GPU_VECTOR_B, g->by_k & GPU_BY_K_B,
                    cut.wide, cut.items);
        BARRIER();
        if (g->flush)
            tensor_any_lying(acc, room, second, g->K - k0, &cut, g->by_k, 1);
        else
            tensor_any_lying(acc, room, second, g->K - k0, &cut, g->by_k, 0);
        BARRIER();
    }
    tensor_finish(acc, g, to, rows, m0, n0, &cut);
}

/* The room also takes rows of sums. */
#define TENSOR_ANY(name, tall, wide, across, down, side, bytes)                \
    KERNEL(name, 128, gpu_gemm)                                                \
    {                                                                          \
        LOCAL ALIGNED_16 uint8_t room[bytes];                                  \
        const gemm_ends to = { AT(uint8_t, g.c), AT(uint8_t, g.y),             \
                               AT(uint8_t, g.x) };                             \
        const tensor_cut cut = { tall, wide, across, 128, down, side };        \
        tensor_any_product(&g, AT(uint8_t, g.a), AT(uint8_t, g.b),             \
                           AT(float, g.bias), &to, room, cut);                 \
    }
TENSOR_ANY(tensor_any, 64, 64, 2, 2, 4, 32 * TENSOR_PITCH * 4)
TENSOR_ANY(tensor_thin, 16, 64, 4, 1, 2, TENSOR_ROOM(16) + TENSOR_ROOM(64))

#endif
