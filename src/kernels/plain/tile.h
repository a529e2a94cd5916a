/* tile.h: the micro-kernel of a matrix product C = A B and the packing around
 * it, which gemm.c and attention.c share. The names MR, NR, KC and MC are those
 * of BLIS and other BLAS libraries.
 *
 *                        NR columns
 *                      +------------+
 *      KC, along k     |  panel of  |   B as float32: up to KC rows of NR,
 *          ->          |     B      |   one row after the other
 *   +--------------+   +------------+
 *   |  MR rows of  |   |  tile of C |   MR x NR accumulators, all of them in
 *   |      A       |   |            |   registers
 *   +--------------+   +------------+
 *
 * For each k a tile loads one row of the panel, broadcasts MR elements of A and
 * does one fused multiply-add per accumulator. A is read in place if its rows
 * are contiguous float32; otherwise up to MC rows of it are first copied, as
 * float32. Every element of C is one chain of multiply-adds in ascending k,
 * whichever tile it is in: rows that are left over use smaller tiles, columns
 * that are left over are padded with zeros in a scratch tile, and a chain that
 * was cut after KC terms is continued from what C holds. */
#ifndef PL_KERNELS_PLAIN_TILE_H
#define PL_KERNELS_PLAIN_TILE_H

#include "kernels/plain/amx_fma.h"
#include "kernels/plain/convert.h"
#include "kernels/plain/flat.h"
#include "kernels/plain/plain.h"
#include "kernels/plain/tensor_tile.h"

/* rows, vectors, a_row or a_col are constants where this is inlined. */
PL_INLINE void tile_run(const int rows, const int vectors, const tile_job *t,
                        size_t a_row, size_t a_col)
{
    const float *a = t->a, *b = t->b;
    const size_t b_row = t->b_row;
    vf acc[MR][NV];
    PL_UNROLL
    for (int i = 0; i < rows; i++) {
        PL_UNROLL
        for (int j = 0; j < vectors; j++)
            acc[i][j] = t->from ? v_load(t->from + (size_t)i * t->from_row +
                                         (size_t)(j * VL))
                                : v_all(0);
    }
    PL_UNROLL
    for (int i = 0; i < rows; i++) {
        PL_UNROLL
        for (int j = 0; j < vectors; j++)
            __builtin_prefetch(
                t->prefetch + (size_t)i * t->c_row + (size_t)(j * VL), 1);
    }
    for (size_t k = t->K; k; k--) {
        vf bv[NV];
        PL_UNROLL
        for (int j = 0; j < vectors; j++)
            bv[j] = v_load(b + j * VL);
        PL_UNROLL
        for (int i = 0; i < rows; i++) {
            vf av = v_all(a[(size_t)i * a_row]);
            PL_UNROLL
            for (int j = 0; j < vectors; j++)
                acc[i][j] = v_fma(av, bv[j], acc[i][j]);
        }
        a += a_col;
        b += b_row;
    }
    PL_UNROLL
    for (int i = 0; i < rows; i++) {
        PL_UNROLL
        for (int j = 0; j < vectors; j++)
            v_store(t->c + (size_t)i * t->c_row + (size_t)(j * VL), acc[i][j]);
    }
}

#define TILE(rows)                                                             \
    static void tile_##rows(const tile_job *t)                                 \
    {                                                                          \
        if (t->a_col == 1)                                                     \
            tile_run(rows, NV, t, t->a_row, 1);                                \
        else                                                                   \
            tile_run(rows, NV, t, 1, t->a_col);                                \
    }                                                                          \
    static void tile_thin_##rows(const tile_job *t)                            \
    {                                                                          \
        if (t->a_col == 1)                                                     \
            tile_run(rows, 1, t, t->a_row, 1);                                 \
        else                                                                   \
            tile_run(rows, 1, t, 1, t->a_col);                                 \
    }
TILE(MR)
#if defined(__FMA__) || defined(PL_NEON)
TILE(4)
#endif
TILE(2)
TILE(1)
#undef TILE

/* Runs the tallest tile that `rows` rows fill, NR or (thin) VL columns wide;
 * returns its number of rows. */
static size_t tile_step(const tile_job *t, size_t rows, int thin)
{
    if (rows >= MR) {
        (thin ? tile_thin_MR : tile_MR)(t);
        return MR;
    }
#if defined(__FMA__) || defined(PL_NEON)
    if (rows >= 4) {
        (thin ? tile_thin_4 : tile_4)(t);
        return 4;
    }
#endif
    if (rows >= 2) {
        (thin ? tile_thin_2 : tile_2)(t);
        return 2;
    }
    (thin ? tile_thin_1 : tile_1)(t);
    return 1;
}

/* The same in tensor arithmetic; NR columns. */
static size_t tile_step_tensor(const tile_job *t, size_t rows)
{
    return t->products == PL_PRODUCTS_AMX ? amx_fma_step(t, rows)
                                          : tensor_step(t, rows);
}

/* The same for a tile of `columns` columns. Any number other than NR or VL goes
 * through a scratch tile that is padded with zeros. */
static size_t tile_step_wide(const tile_job *t, size_t rows, size_t columns)
{
    const int tensor = t->products != PL_PRODUCTS_EXACT;
    const int thin = columns <= VL;
    if (columns == NR || (columns == VL && !tensor))
        return tensor ? tile_step_tensor(t, rows) : tile_step(t, rows, thin);
    float scratch[MR * NR] = { 0 };
    const size_t most = rows < MR ? rows : MR;
    tile_job u = *t;
    for (size_t i = 0; t->from && i < most; i++)
        memcpy(scratch + i * NR, t->from + i * t->from_row,
               columns * sizeof(float));
    u.from = u.c = scratch;
    u.from_row = u.c_row = NR;
    const size_t done = tensor ? tile_step_tensor(&u, rows)
                               : tile_step(&u, rows, thin);
    for (size_t i = 0; i < done; i++)
        memcpy(t->c + i * t->c_row, scratch + i * NR, columns * sizeof(float));
    return done;
}

/* The workspace of a product. */
typedef struct tile_work {
    float *panels; /* packed B: `columns` columns, a multiple of NR */
    size_t panel;  /* stride from one panel to the next, in floats */
    size_t columns;
    float *strip; /* float32 accumulators of a C of 16 bits: strip_floats, or
                   * 0 if C is float32 */
    size_t strip_floats;
    float *a; /* packed A, a_rows * KC; while B is packed, columns of B */
    size_t a_rows;
    pl_products products;
    pl_storage operands; /* of a product in tensor arithmetic */
} tile_work;

/* Converts rows of B to float32, rounded to g->b_round if B is float32. */
static void tile_read_b(float *to, size_t to_row, const pl_gemm *g,
                        const void *b, size_t row, size_t rows, size_t count)
{
    if (g->b_storage == PL_STORE_F32 && g->b_round != PL_STORE_F32)
        round_rows(to, to_row, b, row, rows, count, g->b_round);
    else
        widen_rows(to, to_row, b, row, rows, count, g->b_storage);
}

/* Transposes eight columns of B: panel[k * NR + i] = s[i * s_row + k]. */
PL_INLINE void tile_transpose(float *panel, const float *s, size_t s_row,
                              size_t K)
{
    size_t k = 0;
    for (; k + 8 <= K; k += 8) {
        float8 q[8];
        for (size_t i = 0; i < 8; i++)
            memcpy(&q[i], s + i * s_row + k, sizeof q[i]);
        transpose_8x8(q);
        for (size_t i = 0; i < 8; i++)
            memcpy(panel + (k + i) * NR, &q[i], sizeof q[i]);
    }
    for (; k < K; k++)
        for (size_t i = 0; i < 8; i++)
            panel[k * NR + i] = s[i * s_row + k];
}

/* panel[k * NR + n] = b(k, n) for a B that is stored transposed (its columns
 * are contiguous). Unless it is used as the float32 that it is, TRANSPOSED
 * columns at a time are first converted, in `converted`. */
static void tile_pack_b_transposed(float *panel, float *converted,
                                   const pl_gemm *g, const void *b, size_t K,
                                   size_t columns)
{
    const int as_is = g->b_storage == PL_STORE_F32 &&
                      g->b_round == PL_STORE_F32;
    for (size_t n = 0; n < columns; n += TRANSPOSED) {
        const size_t wide = columns - n < TRANSPOSED ? columns - n : TRANSPOSED;
        const void *from = pl_storage_at(b, n * g->b_col, g->b_storage);
        if (!as_is)
            tile_read_b(converted, KC, g, from, g->b_col, wide, K);
        const float *s = as_is ? from : converted;
        const size_t s_row = as_is ? g->b_col : KC;
        if (wide == TRANSPOSED)
            tile_transpose(panel + n, s, s_row, K);
        else
            for (size_t i = 0; i < wide; i++)
                for (size_t k = 0; k < K; k++)
                    panel[k * NR + n + i] = s[i * s_row + k];
    }
}

/* `count` is cut into as few equal parts of at most `most` as possible: the
 * size of one, rounded up to whole units. */
static inline size_t share_of(size_t count, size_t most, size_t unit)
{
    const size_t parts = (count + most - 1) / most,
                 share = (count + parts - 1) / parts;
    return (share + unit - 1) / unit * unit;
}

/* Rows m .. m + rows - 1 and columns n .. n + columns - 1 of C. */
typedef struct tile_part {
    size_t m, rows, n, columns;
    float *c; /* element (m, n) of C, or of the strip that stands for it */
    size_t c_row;
} tile_part;

/* Prefetches elements; addresses beyond the end of memory do no harm. */
static void tile_prefetch(const void *from, size_t at, size_t count,
                          pl_storage storage)
{
    const size_t line = 64 / pl_storage_bytes(storage);
    for (size_t i = 0; i < count; i += line)
        __builtin_prefetch(pl_storage_at(from, at + i, storage), 0);
}

static int tile_a_is_floats(const pl_gemm *g)
{
    return g->a_storage == PL_STORE_F32 && g->a_round == PL_STORE_F32;
}

/* Converts contiguous rows of A to float32, rounded to g->a_round if A is
 * float32. */
static void tile_read_a(float *to, size_t to_row, const pl_gemm *g,
                        const void *a, size_t rows, size_t count)
{
    if (g->a_storage == PL_STORE_F32 && g->a_round != PL_STORE_F32)
        round_rows(to, to_row, a, g->a_row, rows, count, g->a_round);
    else
        widen_rows(to, to_row, a, g->a_row, rows, count, g->a_storage);
}

/* Packs a transposed A, tile by tile: the i-th group of MR rows has its element
 * (m, k) at (i * KC + k) * MR + m, so that a tile reads consecutive cache
 * lines. */
static void tile_pack_a_transposed(float *to, const pl_gemm *g, const void *a,
                                   size_t rows, size_t K)
{
    const int as_is = tile_a_is_floats(g);
    enum { AHEAD = 8 };
    for (size_t k = 0; k < K; k++) {
        const void *from = pl_storage_at(a, k * g->a_col, g->a_storage);
        float wide[MC_SCRATCH];
        const float *row = from;
        tile_prefetch(from, AHEAD * g->a_col, rows, g->a_storage);
        if (!as_is) {
            tile_read_a(wide, 0, g, from, 1, rows);
            row = wide;
        }
        size_t m = 0;
        for (; m + MR <= rows; m += MR)
            memcpy(to + m * KC + k * MR, row + m, MR * sizeof *to);
        if (m < rows)
            memcpy(to + m * KC + k * MR, row + m, (rows - m) * sizeof *to);
    }
}

/* Whether rows with this stride, in floats, map to the same set of the L1
 * cache, which has fewer ways than a tile reads lines at once: the rows would
 * evict each other. */
static int stride_aliases_in_l1(size_t stride)
{
    enum { WAY_BYTES = 4096 };
    return stride && stride * sizeof(float) % WAY_BYTES == 0;
}

/* Lets t->a point to A's elements (m .., k ..) as float32: in place, or packed
 * in the workspace. A transposed A is packed even if it is float32, since each
 * step along k would touch another page; and so are rows that would evict each
 * other from the L1 cache, if they fit. */
static void tile_pack_a(tile_job *t, const tile_work *work, const pl_gemm *g,
                        size_t m, size_t rows, size_t k)
{
    const void *a = pl_storage_at(g->a, m * g->a_row + k * g->a_col,
                                  g->a_storage);
    t->a = work->a;
    t->a_row = 1;
    t->a_col = MR;
    if (g->a_col != 1) {
        tile_pack_a_transposed(work->a, g, a, rows, t->K);
        return;
    }
    t->a_col = 1;
    t->a_row = KC;
    if (!tile_a_is_floats(g) ||
        (t->K <= KC && stride_aliases_in_l1(g->a_row))) {
        tile_read_a(work->a, KC, g, a, rows, t->K);
        return;
    }
    t->a = a;
    t->a_row = g->a_row;
}

/* to[i] = the start of column n + i's chains, for `count` columns of a product
 * that starts from its bias. */
static void tile_bias(float *to, const pl_gemm *g, size_t n, size_t count)
{
    const int bf16 = pl_gemm_is_bf16(g);
    for (size_t i = 0; i < count; i++)
        to[i] = bf16 ? pl_sum_start(g->bias[n + i]) : g->bias[n + i];
}

/* Adds K terms, from k on, to a part of C. b: B's rows k .. in place, if they
 * are used without packing; else NULL. */
static void tile_block(const tile_work *work, const pl_gemm *g,
                       const tile_part *p, size_t k, size_t K, const float *b)
{
    const size_t most = work->a_rows;
    for (size_t m = 0; m < p->rows; m += most) {
        const size_t rows = p->rows - m < most ? p->rows - m : most;
        tile_job t = { .K = K,
                       .b_row = b ? g->b_row : NR,
                       .c_row = p->c_row,
                       .products = work->products,
                       .operands = work->operands };
        tile_pack_a(&t, work, g, p->m + m, rows, k);
        const float *a = t.a;
        for (size_t n = 0; n < p->columns; n += NR) {
            const size_t columns = p->columns - n < NR ? p->columns - n : NR;
            float bias[NR];
            t.b = b ? b + n : work->panels + n / NR * work->panel;
            if (k == 0 && g->start == PL_GEMM_BIAS) {
                tile_bias(bias, g, p->n + n, columns);
                t.from = bias;
            }
            for (size_t i = 0, done; i < rows; i += done) {
                t.a = t.a_col == 1 ? a + i * t.a_row
                                   : a + i / MR * MR * KC + i % MR;
                t.c = p->c + (m + i) * p->c_row + n;
                if (k || g->start == PL_GEMM_KEEP) {
                    t.from = t.c;
                    t.from_row = t.c_row;
                }
                t.prefetch = t.from != t.c         ? t.c
                             : i + MR < rows       ? t.c + MR * p->c_row
                             : n + NR < p->columns ? t.c - i * p->c_row + NR
                                                   : t.c + MR * p->c_row - n;
                done = tile_step_wide(&t, rows - i, columns);
            }
        }
    }
}

#endif
