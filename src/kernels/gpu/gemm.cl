/* gemm.cl: matrix products, C[M, N] = A[M, K] B[K, N].
 *
 * A group computes a tile of C, an item 8 x 8 (or 4 x 4) elements of it in
 * registers, by fused multiply-adds in ascending k: CHAIN(k), and k is never
 * split. Blocks of A and B pass through local memory, where both lie with k
 * along the rows; while one block is multiplied, the next one is on its way
 * from global memory to registers.
 *
 *   fast kernels     128 x 128, for shapes that are multiples of what they read
 *     stage          an operand whose k-th row is contiguous: 8 rows of 128
 *     panel          one whose columns are: 128 lines of 32 elements, so that
 *                    whole lines of memory are read, a quarter of the next
 *                    panel with every 8 steps of k; and swizzled, so that a
 *                    warp that writes a column meets no bank twice
 *   any              64 x 64, all shapes
 *   thin             16 x 128, for the few rows of decoding
 *
 * Names say how A and B lie, as BLAS does: n is row-major, t is transposed.
 * There is no fast nt, whose panels would not fit: the host transposes the
 * smaller operand first, and calls nn or tt.
 *
 * Tails in k are padded with -0 in A and +0 in B, whose product, -0, changes no
 * sum. */
#include "kernels/gpu/gelu.clh"
#include "kernels/gpu/memory.clh"

enum {
    GEMM_DEPTH = 8, /* of a stage */
    GEMM_PANEL = 32,
    GEMM_TILE = 128,
    GEMM_PITCH = GEMM_TILE + 4
};

/* pl_gemm_start and pl_epilogue_kind of kernels.h */
enum { START_ZERO, START_BIAS, START_KEEP };
enum { EPILOGUE_NONE, EPILOGUE_GELU, EPILOGUE_GELU_BWD, EPILOGUE_RESIDUAL };

/* Where an item's elements lie in a tile: rows 4 * y .. and columns 4 * x ..,
 * and again so far away. A warp covers 8 x 4 items. */
typedef struct gemm_item {
    uint32_t x, y, far_x, far_y;
} gemm_item;

PL_INLINE gemm_item gemm_item_of(const uint32_t wide, const uint32_t fours)
{
    const uint32_t across = wide / (4 * fours) / 8;
    gemm_item it;
    it.x = ITEM / 32 % across * 8 + ITEM % 8;
    it.y = ITEM / (32 * across) * 4 + ITEM % 32 / 8;
    it.far_x = wide / 2;
    return it;
}

/* ---- what a chain starts from ---- */

PL_INLINE void gemm_begin(float acc[8][8], const gpu_gemm *g,
                          GLOBAL const float *c, GLOBAL const float *bias,
                          uint32_t m0, uint32_t n0, gemm_item it,
                          const int rows, const int columns)
{
    UNROLL
    for (int j = 0; j < columns; j += 4) {
        const uint32_t n = n0 + 4 * it.x + (j ? it.far_x : 0u);
        const uint32_t left = n < g->N ? g->N - n : 0u;
        float first[4] = { 0.0f, 0.0f, 0.0f, 0.0f };
        UNROLL
        for (uint32_t e = 0; e < 4; e++)
            if (g->start == START_BIAS && e < left) {
                const float b = READ(bias + n + e);
                first[e] = g->flush ? pl_sum_start(b) : b;
            }
        UNROLL
        for (int i = 0; i < rows; i++) {
            const uint32_t m = m0 + 4 * it.y + (i >= 4 ? it.far_y : 0u) +
                               (uint32_t)(i % 4);
            float v[4] = { first[0], first[1], first[2], first[3] };
            if (g->start == START_KEEP && m < g->M)
                get4(v, (GLOBAL const uint8_t *)c, (uint64_t)m * g->c_row + n,
                     left, PL_STORE_F32, g->vector & GPU_VECTOR_C, 0.0f);
            UNROLL
            for (int e = 0; e < 4; e++)
                acc[i][j + e] = v[e];
        }
    }
}

/* ---- what becomes of a sum ---- */

typedef struct gemm_ends {
    GLOBAL uint8_t *c, *y;
    GLOBAL const uint8_t *x;
} gemm_ends;

/* Four sums of row m from column n on. */
PL_INLINE void gemm_end(const gpu_gemm *g, const gemm_ends *to, uint32_t m,
                        uint32_t n, float v[4])
{
    const uint64_t at = (uint64_t)m * g->c_row + n,
                   beside = (uint64_t)m * g->row + n;
    const uint32_t left = n < g->N ? g->N - n : 0u,
                   vector = g->vector & GPU_VECTOR_C;
    float x[4];
    if (m >= g->M || left == 0)
        return;
    if (g->epilogue == EPILOGUE_GELU) {
        UNROLL
        for (int i = 0; i < 4; i++) {
            v[i] = rounded(v[i], g->c_storage);
            x[i] = gelu_of(v[i], g->gelu);
        }
        if (g->y)
            set4(to->y, beside, x, left, g->y_storage, vector);
        else
            for (int i = 0; i < 4; i++)
                v[i] = x[i];
    }
    if (g->epilogue == EPILOGUE_GELU_BWD) {
        get4(x, to->x, beside, left, g->x_storage, vector, 0.0f);
        UNROLL
        for (int i = 0; i < 4; i++)
            v[i] *= gelu_slope_of(x[i], g->gelu);
    }
    if (g->epilogue == EPILOGUE_RESIDUAL) {
        const uint32_t row = g->position + m;
        if (g->dropout.threshold)
            dropped4(&g->dropout, row % g->T,
                     g->dropout.sequence + row / g->T, n / 4, v);
        get4(x, to->x, beside, left, PL_STORE_F32, vector, 0.0f);
        UNROLL
        for (int i = 0; i < 4; i++)
            v[i] = x[i] + v[i];
    }
    set4(to->c, at, v, left, g->c_storage, vector);
}

/* All of a tile: a few rows at a time through local memory, so that whole lines
 * are stored, and the text above stands in the program once. */
PL_INLINE void gemm_finish(float acc[8][8], const gpu_gemm *g,
                           const gemm_ends *to, LOCAL_PTR float *room,
                           uint32_t m0, uint32_t n0, gemm_item it,
                           const int rows, const int columns,
                           const uint32_t items, const uint32_t wide)
{
    const uint32_t pitch = wide + 4, fours = wide / 4,
                   tall = items * (uint32_t)(columns / 4) * 4 / wide;
    NO_UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < columns; j += 4)
            put4(room + it.y * pitch + 4 * it.x + (j ? it.far_x : 0u),
                 acc[0][j], acc[0][j + 1], acc[0][j + 2], acc[0][j + 3]);
        UNROLL
        for (int r = 0; r + 1 < rows; r++) {
            UNROLL
            for (int j = 0; j < columns; j++)
                acc[r][j] = acc[r + 1][j];
        }
        BARRIER();
        NO_UNROLL
        for (uint32_t q = ITEM; q < tall * fours; q += items) {
            const uint32_t row = q / fours, column = q % fours * 4;
            float v[4];
            take4(v, room + row * pitch + column);
            gemm_end(g, to,
                     m0 + 4 * row + (i >= 4 ? it.far_y : 0u) +
                         (uint32_t)(i % 4),
                     n0 + column, v);
        }
        BARRIER();
    }
}

/* ---- the step ---- */

/* One k: a and b point to the item's first four; the others are far away. */
PL_INLINE void gemm_step(float acc[8][8], LOCAL_PTR const float *a,
                         LOCAL_PTR const float *b, gemm_item it, const int rows,
                         const int columns)
{
    float fa[8], fb[8];
    take4(fa, a);
    take4(fb, b);
    if (rows > 4)
        take4(fa + 4, a + it.far_y);
    if (columns > 4)
        take4(fb + 4, b + it.far_x);
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < columns; j++)
            acc[i][j] = fma1(fa[i], fb[j], acc[i][j]);
    }
}

/* ---- fast ---- */

/* Four elements as they came: four words of float32, or two of 16 bits. They
 * are converted after the step that hides their way. */
typedef struct gemm_raw {
    uint32_t w[4];
} gemm_raw;

PL_INLINE gemm_raw raw_read(GLOBAL const uint8_t *p, const uint32_t storage)
{
    gemm_raw r;
    if (storage == PL_STORE_F32) {
        const uint4 f = READ((GLOBAL const uint4 *)p);
        r.w[0] = f.x;
        r.w[1] = f.y;
        r.w[2] = f.z;
        r.w[3] = f.w;
    } else {
        const uint2 h = READ((GLOBAL const uint2 *)p);
        r.w[0] = h.x;
        r.w[1] = h.y;
        r.w[2] = r.w[3] = 0;
    }
    return r;
}

PL_INLINE void raw_values(float v[4], gemm_raw r, const uint32_t storage,
                          const uint32_t round)
{
    if (storage == PL_STORE_F32) {
        UNROLL
        for (int i = 0; i < 4; i++)
            v[i] = rounded(pl_bits_float(r.w[i]), round);
    } else {
        UNROLL
        for (int i = 0; i < 4; i++)
            v[i] = half_value(r.w[i / 2] >> 16 * (i % 2) & 0xffffu, storage);
    }
}

/* An operand: `lines` lines of it, of which the tile has 128 from `first` on. As
 * a panel, a line is contiguous in k; as a stage, a row of k is. What lies
 * beyond the last line is the last one, again; nobody stores what is made of
 * it. */
typedef struct gemm_operand {
    GLOBAL const uint8_t *at; /* panel: line 0 and the item's first k of the
                               * next panel; stage: the item's next four */
    uint32_t line, last;      /* panel: the item's in part 0 */
    uint32_t ld;              /* bytes */
} gemm_operand;

PL_INLINE gemm_operand gemm_open(GLOBAL const uint8_t *p, const int panel,
                                 uint32_t first, uint32_t lines, uint32_t ld,
                                 const uint32_t storage)
{
    const uint32_t size = bytes_of(storage);
    gemm_operand o;
    o.ld = ld * size;
    o.last = lines - 1;
    o.line = first + ITEM / 8;
    if (panel) {
        o.at = p + size * (ITEM % 8 * 4);
    } else {
        const uint32_t column = first + ITEM % 32 * 4;
        o.at = p + (uint64_t)(ITEM / 32) * o.ld +
               (uint64_t)(column < lines ? column : lines - 4) * size;
    }
    return o;
}

/* Part `part` (of four) of a panel, its lines from 32 * part on; or a stage. */
PL_INLINE gemm_raw gemm_read(const gemm_operand *o, const int panel,
                             uint32_t part, const uint32_t storage)
{
    if (panel) {
        const uint32_t line = o->line + 32 * part;
        return raw_read(o->at + (uint64_t)(line < o->last ? line : o->last) *
                                    o->ld,
                        storage);
    }
    return raw_read(o->at, storage);
}

/* To what gemm_read reads next. */
PL_INLINE void gemm_advance(gemm_operand *o, const int panel, uint32_t part,
                            const uint32_t storage)
{
    if (!panel)
        o->at += (uint64_t)GEMM_DEPTH * o->ld;
    else if (part == 3)
        o->at += GEMM_PANEL * bytes_of(storage);
}

/* Row k of a panel has its lines in another order: blocks of four, so that they
 * can be read at once. */
PL_INLINE uint32_t gemm_swizzle(uint32_t k)
{
    return (k >> 2 & 7u) * 4u;
}

PL_INLINE void gemm_store(LOCAL_PTR float *room, const int panel, uint32_t part,
                          const float v[4])
{
    if (panel) {
        const uint32_t line = 32 * part + ITEM / 8, k = ITEM % 8 * 4;
        UNROLL
        for (uint32_t i = 0; i < 4; i++)
            PUT(room + (k + i) * GEMM_TILE + (line ^ gemm_swizzle(k)), v[i]);
    } else {
        put4(room + ITEM / 32 * GEMM_PITCH + ITEM % 32 * 4, v[0], v[1], v[2],
             v[3]);
    }
}

/* Floats of an operand's local memory, and of one of its two buffers. */
#define GEMM_ROOM(panel)                                                       \
    ((panel) ? 2 * GEMM_PANEL * GEMM_TILE : 2 * GEMM_DEPTH * GEMM_PITCH)

/* Where step `step` finds row k < 8 of an operand, from the item's first four
 * on. gemm_swizzle(8 * (step % 4) + k), in a form in which k is a constant. */
PL_INLINE LOCAL_PTR const float *gemm_row(LOCAL_PTR const float *room,
                                          const int panel, uint32_t step,
                                          const uint32_t k, uint32_t four)
{
    if (panel)
        return room + step % 8 * (GEMM_DEPTH * GEMM_TILE) + k * GEMM_TILE +
               (4 * four ^ step % 4 * 8 ^ k / 4 * 4);
    return room + step % 2 * (GEMM_DEPTH * GEMM_PITCH) + k * GEMM_PITCH +
           4 * four;
}

/* Where what was read during step `step` goes. */
PL_INLINE LOCAL_PTR float *gemm_next(LOCAL_PTR float *room, const int panel,
                                     uint32_t step)
{
    return room + (panel ? (step / 4 + 1) % 2 * (GEMM_PANEL * GEMM_TILE)
                         : (step + 1) % 2 * (GEMM_DEPTH * GEMM_PITCH));
}

PL_INLINE void gemm_fast(const gpu_gemm *g, GLOBAL const uint8_t *pa,
                         GLOBAL const uint8_t *pb, GLOBAL const float *bias,
                         const gemm_ends *to, LOCAL_PTR float *as,
                         LOCAL_PTR float *bs, const int a_panel,
                         const int b_panel, const int plain)
{
    const uint32_t m0 = (g->first_tile + GROUP_Y) * GEMM_TILE,
                   n0 = GROUP * GEMM_TILE,
                   steps = g->K / GEMM_DEPTH;
    const uint32_t as_kept = plain ? PL_STORE_F32 : g->a_storage,
                   bs_kept = plain ? PL_STORE_F32 : g->b_storage,
                   a_round = plain ? PL_STORE_F32 : g->a_round,
                   b_round = plain ? PL_STORE_F32 : g->b_round;
    gemm_item it = gemm_item_of(GEMM_TILE, 2);
    gemm_operand a = gemm_open(pa, a_panel, m0, g->M, g->a_ld, as_kept),
                 b = gemm_open(pb, b_panel, n0, g->N, g->b_ld, bs_kept);
    float acc[8][8], v[4];
    it.far_y = GEMM_TILE / 2;
    gemm_begin(acc, g, (GLOBAL const float *)to->c, bias, m0, n0, it, 8, 8);
    BARRIER_ALL(); /* others will write what was read here */

    /* the first panel, or stage, of each */
    for (uint32_t part = 0; part < (a_panel ? 4u : 1u); part++) {
        raw_values(v, gemm_read(&a, a_panel, part, as_kept), as_kept, a_round);
        gemm_store(as, a_panel, part, v);
        gemm_advance(&a, a_panel, part, as_kept);
    }
    for (uint32_t part = 0; part < (b_panel ? 4u : 1u); part++) {
        raw_values(v, gemm_read(&b, b_panel, part, bs_kept), bs_kept, b_round);
        gemm_store(bs, b_panel, part, v);
        gemm_advance(&b, b_panel, part, bs_kept);
    }
    BARRIER();
    NO_UNROLL
    for (uint32_t pair = 0; pair < steps; pair += 2) {
        UNROLL
        for (uint32_t odd = 0; odd < 2; odd++) {
            const uint32_t step = pair + odd, part = step % 4, ahead = step + 1,
                           panel_ahead = step - part + 4;
            const int more_a = (a_panel ? panel_ahead : ahead) < steps,
                      more_b = (b_panel ? panel_ahead : ahead) < steps;
            gemm_raw ra, rb;
            if (more_a)
                ra = gemm_read(&a, a_panel, part, as_kept);
            if (more_b)
                rb = gemm_read(&b, b_panel, part, bs_kept);
            UNROLL
            for (uint32_t k = 0; k < GEMM_DEPTH; k++)
                gemm_step(acc, gemm_row(as, a_panel, step, k, it.y),
                          gemm_row(bs, b_panel, step, k, it.x), it, 8, 8);
            if (more_a) {
                raw_values(v, ra, as_kept, a_round);
                gemm_store(gemm_next(as, a_panel, step), a_panel, part, v);
                gemm_advance(&a, a_panel, part, as_kept);
            }
            if (more_b) {
                raw_values(v, rb, bs_kept, b_round);
                gemm_store(gemm_next(bs, b_panel, step), b_panel, part, v);
                gemm_advance(&b, b_panel, part, bs_kept);
            }
            BARRIER();
        }
    }
    gemm_finish(acc, g, to, bs, m0, n0, it, 8, 8, 256, GEMM_TILE);
}

/* plain: both operands are float32, and used as they are. */
#define GEMM_FAST(name, a_panel, b_panel, plain)                                      \
    KERNEL(name, 256, gpu_gemm)                                                \
    {                                                                          \
        LOCAL ALIGNED_16 float as[GEMM_ROOM(a_panel)];                         \
        LOCAL ALIGNED_16 float bs[GEMM_ROOM(b_panel)];                         \
        const gemm_ends to = { AT(uint8_t, g.c), AT(uint8_t, g.y),             \
                               AT(uint8_t, g.x) };                             \
        gemm_fast(&g, AT(uint8_t, g.a), AT(uint8_t, g.b), AT(float, g.bias),   \
                  &to, as, bs, a_panel, b_panel, plain);                       \
    }
GEMM_FAST(gemm_nn, 1, 0, 1)
GEMM_FAST(gemm_tn, 0, 0, 1)
GEMM_FAST(gemm_tt, 0, 1, 1)
GEMM_FAST(gemm_nn_stored, 1, 0, 0)
GEMM_FAST(gemm_tn_stored, 0, 0, 0)
GEMM_FAST(gemm_tt_stored, 0, 1, 0)

/* ---- any shape ---- */

/* Fours of an operand's block, `lines` of it, to local memory. by_k: a line is
 * contiguous in k. */
PL_INLINE void any_load(LOCAL_PTR float *room, GLOBAL const uint8_t *p,
                        const int by_k, const uint32_t wide,
                        const uint32_t items, uint32_t k0, uint32_t first,
                        uint32_t K, uint32_t lines, uint32_t ld,
                        uint32_t storage, uint32_t round, uint32_t vector,
                        float pad)
{
    for (uint32_t at = ITEM; at < 2 * wide; at += items) {
        const uint32_t line = by_k ? first + at / 2 : k0 + at / (wide / 4),
                       from = by_k ? k0 + at % 2 * 4
                                   : first + at % (wide / 4) * 4,
                       end = by_k ? lines : K, length = by_k ? K : lines;
        const uint32_t left = line < end && from < length ? length - from : 0u;
        float v[4];
        get4(v, p, (uint64_t)line * ld + from, left, storage, vector, pad);
        for (uint32_t i = 0; i < 4; i++) {
            const float x = storage == PL_STORE_F32 ? rounded(v[i], round)
                                                    : v[i];
            if (by_k)
                PUT(room + (from - k0 + i) * (wide + 4) + line - first, x);
            else
                PUT(room + (line - k0) * (wide + 4) + from - first + i, x);
        }
    }
}

PL_INLINE void gemm_any(const gpu_gemm *g, GLOBAL const uint8_t *pa,
                        GLOBAL const uint8_t *pb, GLOBAL const float *bias,
                        const gemm_ends *to, LOCAL_PTR float *as,
                        LOCAL_PTR float *bs, const int a_by_k, const int b_by_k,
                        const uint32_t tall, const uint32_t wide,
                        const int rows, const int columns,
                        const uint32_t items)
{
    const uint32_t m0 = (g->first_tile + GROUP_Y) * tall, n0 = GROUP * wide;
    gemm_item it = gemm_item_of(wide, (uint32_t)(columns / 4));
    float acc[8][8];
    it.far_y = tall / 2;
    gemm_begin(acc, g, (GLOBAL const float *)to->c, bias, m0, n0, it, rows,
               columns);
    BARRIER_ALL(); /* others will write what was read here */
    for (uint32_t k0 = 0; k0 < g->K; k0 += GEMM_DEPTH) {
        any_load(as, pa, a_by_k, tall, items, k0, m0, g->K, g->M, g->a_ld,
                 g->a_storage, g->a_round, g->vector & GPU_VECTOR_A, -0.0f);
        any_load(bs, pb, b_by_k, wide, items, k0, n0, g->K, g->N, g->b_ld,
                 g->b_storage, g->b_round, g->vector & GPU_VECTOR_B, 0.0f);
        BARRIER();
        for (uint32_t k = 0; k < GEMM_DEPTH; k++)
            gemm_step(acc, as + k * (tall + 4) + 4 * it.y,
                      bs + k * (wide + 4) + 4 * it.x, it, rows, columns);
        BARRIER();
    }
    gemm_finish(acc, g, to, bs, m0, n0, it, rows, columns, items, wide);
}

/* The room of B also takes the rows that are stored together. */
#define GEMM_ANY(name, a_by_k, b_by_k, tall, wide, side, items)                \
    KERNEL(name, items, gpu_gemm)                                              \
    {                                                                          \
        LOCAL ALIGNED_16 float as[GEMM_DEPTH * (tall + 4)];                    \
        LOCAL ALIGNED_16 float bs[GEMM_DEPTH * (wide + 4)];                    \
        const gemm_ends to = { AT(uint8_t, g.c), AT(uint8_t, g.y),             \
                               AT(uint8_t, g.x) };                             \
        gemm_any(&g, AT(uint8_t, g.a), AT(uint8_t, g.b), AT(float, g.bias),    \
                 &to, as, bs, a_by_k, b_by_k, tall, wide, side, side, items);  \
    }
GEMM_ANY(gemm_nn_any, 1, 0, 64, 64, 8, 64)
GEMM_ANY(gemm_nt_any, 1, 1, 64, 64, 8, 64)
GEMM_ANY(gemm_tn_any, 0, 0, 64, 64, 8, 64)
GEMM_ANY(gemm_tt_any, 0, 1, 64, 64, 8, 64)
GEMM_ANY(gemm_nn_thin, 1, 0, 16, 128, 4, 128)
GEMM_ANY(gemm_nt_thin, 1, 1, 16, 128, 4, 128)

/* ---- a transposed copy ---- */

KERNEL(transpose, 256, gpu_transpose)
{
    enum { SIDE = 32, ROW = SIDE + 1 };
    LOCAL uint32_t room[SIDE * ROW];
    GLOBAL uint8_t *y = AT(uint8_t, g.y);
    GLOBAL const uint8_t *x = AT(uint8_t, g.x);
    const uint32_t r0 = GROUP_Y * SIDE, c0 = GROUP * SIDE, at = ITEM % SIDE;
    for (uint32_t i = ITEM / SIDE; i < SIDE; i += 256 / SIDE)
        if (r0 + i < g.rows && c0 + at < g.columns) {
            const uint64_t from = (uint64_t)(r0 + i) * g.ld + c0 + at;
            PUT(room + i * ROW + at,
                g.bytes == 4 ? READ((GLOBAL const uint32_t *)x + from)
                             : READ((GLOBAL const uint16_t *)x + from));
        }
    BARRIER();
    for (uint32_t i = ITEM / SIDE; i < SIDE; i += 256 / SIDE)
        if (c0 + i < g.columns && r0 + at < g.rows) {
            const uint64_t to = (uint64_t)(c0 + i) * g.rows + r0 + at;
            const uint32_t bits = TAKE(room + at * ROW + i);
            if (g.bytes == 4)
                WRITE((GLOBAL uint32_t *)y + to, bits);
            else
                WRITE((GLOBAL uint16_t *)y + to, (uint16_t)bits);
        }
}

/* ---- sums of columns ---- */

enum { COLUMN_WIDE = 32, COLUMN_TALL = 64 };

/* A group has 32 columns; all items read, the first 32 add. */
KERNEL(column_sum, 256, gpu_column_sum)
{
    LOCAL float room[COLUMN_TALL * COLUMN_WIDE];
    const uint32_t at = ITEM % COLUMN_WIDE, c = GROUP * COLUMN_WIDE + at;
    const int adds = ITEM < COLUMN_WIDE && c < g.C;
    GLOBAL const uint8_t *x = AT(uint8_t, g.x);
    GLOBAL float *to = AT(float, g.sum);
    float sum = 0.0f;
    if (adds)
        sum = READ(to + c);
    for (uint32_t r0 = 0; r0 < g.rows; r0 += COLUMN_TALL) {
        for (uint32_t i = ITEM / COLUMN_WIDE; i < COLUMN_TALL;
             i += 256 / COLUMN_WIDE)
            if (r0 + i < g.rows && c < g.C)
                PUT(room + i * COLUMN_WIDE + at,
                    get(x, (uint64_t)(r0 + i) * g.C + c, g.x_storage));
        BARRIER();
        if (adds)
            for (uint32_t i = 0; i < COLUMN_TALL && r0 + i < g.rows; i++)
                sum = sum + TAKE(room + i * COLUMN_WIDE + at);
        BARRIER();
    }
    if (adds)
        WRITE(to + c, sum);
}
