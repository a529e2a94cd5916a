/* tile.h: the tiles of a matrix product, which gemm.c and attention.c share.
 *
 * C is cut into tiles of MR x NR whose accumulators live in registers. Columns
 * of B, KC rows of them at most at a time, are packed as float in panels of
 * NR. A is read where it
 * lies if its rows do; otherwise, and if it is kept in 16 bits, some rows at a
 * time are copied as float. Each element of C is one chain in ascending k
 * wherever the tiles begin: rows left over use smaller tiles, columns left over
 * run on zeros in a scratch tile, and a cut chain is carried on from C. */
#ifndef PL_KERNELS_PLAIN_TILE_H
#define PL_KERNELS_PLAIN_TILE_H

#include "kernels/plain/convert.h"
#include "kernels/plain/flat.h"
#include "kernels/plain/plain.h"
#include "kernels/plain/vec.h"

/* MR * NV accumulators, NV vectors of B and one of A fill the registers. */
#if (defined(__AVX512F__) && defined(__FMA__)) || defined(PL_NEON)
enum { MR = 12 };
#elif defined(__FMA__)
enum { MR = 6 };
#else
enum { MR = 4 };
#endif
enum { NV = 2, NR = NV * VL, KC = PL_GEMM_DEPTH, PACK_FROM_ROWS = 16 };
/* Rows of A that are copied together, on the stack or in scratch: whole tiles
 * in every set. */
enum { MA_FEW = 24, MA_MANY = 96 };
/* A panel, and a vector more so that panels don't all meet in one set of a
 * cache. */
enum { PANEL = KC * NR + VL };

/* Rows of A beside a packed (or plain) panel of B into a tile of C. */
typedef struct tile_job {
    size_t K;
    const float *a;
    size_t a_row, a_col;
    const float *b; /* K rows of NR, b_row apart */
    size_t b_row;
    const float *from; /* what the chains start from; NULL: +0 */
    size_t from_row;
    float *c;
    size_t c_row;
    const float *soon; /* the part of C that is needed next */
} tile_job;

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
                t->soon + (size_t)i * t->c_row + (size_t)(j * VL), 1);
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

/* The tallest tile that `rows` rows fill, of NR columns or of one vector;
 * returns how many it took. */
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

/* A tile of `columns` columns; other than NR or VL of them go through a scratch
 * tile padded with 0. */
static size_t tile_step_wide(const tile_job *t, size_t rows, size_t columns)
{
    const int thin = columns <= VL;
    if (columns == NR || columns == VL)
        return tile_step(t, rows, thin);
    float scratch[MR * NR] = { 0 };
    const size_t most = rows < MR ? rows : MR;
    tile_job u = *t;
    for (size_t i = 0; t->from && i < most; i++)
        memcpy(scratch + i * NR, t->from + i * t->from_row,
               columns * sizeof(float));
    u.from = u.c = scratch;
    u.from_row = u.c_row = NR;
    const size_t done = tile_step(&u, rows, thin);
    for (size_t i = 0; i < done; i++)
        memcpy(t->c + i * t->c_row, scratch + i * NR, columns * sizeof(float));
    return done;
}

/* What a product needs beside its operands. */
typedef struct tile_room {
    float *panels; /* for `columns` columns: a multiple of NR */
    size_t panel;  /* floats from one to the next */
    size_t columns;
    float *strip; /* of a C of 16 bits: `strip_floats`, 0 if there is none */
    size_t strip_floats;
    float *a; /* a_rows * KC: of A; while packing, columns of B */
    size_t a_rows;
} tile_room;

/* Rows of B as float, rounded if they are to be. */
static void tile_read_b(float *to, size_t to_row, const pl_gemm *g,
                        const void *b, size_t row, size_t rows, size_t count)
{
    if (g->b_storage == PL_STORE_F32 && g->b_round != PL_STORE_F32)
        round_rows(to, to_row, b, row, rows, count, g->b_round);
    else
        widen_rows(to, to_row, b, row, rows, count, g->b_storage);
}

/* panel[k * NR + i] = s[i * s_row + k] for eight columns i. */
PL_INLINE void tile_turn(float *panel, const float *s, size_t s_row, size_t K)
{
    size_t k = 0;
    for (; k + 8 <= K; k += 8) {
        oct q[8];
        for (size_t i = 0; i < 8; i++)
            memcpy(&q[i], s + i * s_row + k, sizeof q[i]);
        turn_octs(q);
        for (size_t i = 0; i < 8; i++)
            memcpy(panel + (k + i) * NR, &q[i], sizeof q[i]);
    }
    for (; k < K; k++)
        for (size_t i = 0; i < 8; i++)
            panel[k * NR + i] = s[i * s_row + k];
}

/* panel[k * NR + n] = b(k, n) for a B whose columns are rows. Other than
 * float32 as it is, some of them at a time are first made that. */
static void tile_pack_turned(float *panel, float *turned, const pl_gemm *g,
                             const void *b, size_t K, size_t columns)
{
    const int as_is = g->b_storage == PL_STORE_F32 &&
                      g->b_round == PL_STORE_F32;
    for (size_t n = 0; n < columns; n += TURNED) {
        const size_t wide = columns - n < TURNED ? columns - n : TURNED;
        const void *from = pl_storage_at(b, n * g->b_col, g->b_storage);
        if (!as_is)
            tile_read_b(turned, KC, g, from, g->b_col, wide, K);
        const float *s = as_is ? from : turned;
        const size_t s_row = as_is ? g->b_col : KC;
        if (wide == TURNED)
            tile_turn(panel + n, s, s_row, K);
        else
            for (size_t i = 0; i < wide; i++)
                for (size_t k = 0; k < K; k++)
                    panel[k * NR + n + i] = s[i * s_row + k];
    }
}

/* Rows m .. m + rows - 1 and columns n .. n + columns - 1 of C. */
typedef struct tile_part {
    size_t m, rows, n, columns;
    float *c; /* element (m, n), or of the strip that stands for it */
    size_t c_row;
} tile_part;

/* Elements that are read soon; beyond the end of memory they do no harm. */
static void tile_fetch(const void *from, size_t at, size_t count,
                       pl_storage storage)
{
    const size_t line = 64 / pl_storage_bytes(storage);
    for (size_t i = 0; i < count; i += line)
        __builtin_prefetch(pl_storage_at(from, at + i, storage), 0);
}

/* A's rows as columns, tile by tile: group g of MR rows has element (m, k) at
 * (g * KC + k) * MR + m. A tile then reads one line after the other. */
static void tile_turn_a(float *to, const pl_gemm *g, const void *a, size_t rows,
                        size_t K)
{
    enum { AHEAD = 8 };
    for (size_t k = 0; k < K; k++) {
        const void *from = pl_storage_at(a, k * g->a_col, g->a_storage);
        float wide[MA_MANY];
        const float *row = from;
        tile_fetch(from, AHEAD * g->a_col, rows, g->a_storage);
        if (g->a_storage != PL_STORE_F32) {
            widen(wide, from, rows, g->a_storage);
            row = wide;
        }
        size_t m = 0;
        for (; m + MR <= rows; m += MR)
            memcpy(to + m * KC + k * MR, row + m, MR * sizeof *to);
        if (m < rows)
            memcpy(to + m * KC + k * MR, row + m, (rows - m) * sizeof *to);
    }
}

/* Whether rows so many floats apart lie in the same set of the first cache,
 * which has room for fewer than a tile reads at once. */
static int rows_meet(size_t row)
{
    enum { WAY_BYTES = 4096 };
    return row && row * sizeof(float) % WAY_BYTES == 0;
}

/* A's elements (m .., k ..) as float: where they lie, or in the room. Columns
 * of A are rows of pages apart, so they are copied even if they are float, and
 * so are rows that would drive each other out of the cache, if they fit. */
static void tile_find_a(tile_job *t, const tile_room *room, const pl_gemm *g,
                        size_t m, size_t rows, size_t k)
{
    const void *a = pl_storage_at(g->a, m * g->a_row + k * g->a_col,
                                  g->a_storage);
    t->a = room->a;
    t->a_row = 1;
    t->a_col = MR;
    if (g->a_col != 1) {
        tile_turn_a(room->a, g, a, rows, t->K);
        return;
    }
    t->a_col = 1;
    t->a_row = KC;
    if (g->a_storage != PL_STORE_F32 || (t->K <= KC && rows_meet(g->a_row))) {
        widen_rows(room->a, KC, a, g->a_row, rows, t->K, g->a_storage);
        return;
    }
    t->a = a;
    t->a_row = g->a_row;
}

/* A block of K on a part of C. b: where B's rows of the block lie, if they
 * are used without packing. */
static void tile_block(const tile_room *room, const pl_gemm *g,
                       const tile_part *p, size_t k, size_t K, const float *b)
{
    const size_t most = room->a_rows;
    for (size_t m = 0; m < p->rows; m += most) {
        const size_t rows = p->rows - m < most ? p->rows - m : most;
        tile_job t = { .K = K, .b_row = b ? g->b_row : NR, .c_row = p->c_row };
        tile_find_a(&t, room, g, p->m + m, rows, k);
        const float *a = t.a;
        for (size_t n = 0; n < p->columns; n += NR) {
            const size_t columns = p->columns - n < NR ? p->columns - n : NR;
            t.b = b ? b + n : room->panels + n / NR * room->panel;
            for (size_t i = 0, done; i < rows; i += done) {
                t.a = t.a_col == 1 ? a + i * t.a_row
                                   : a + i / MR * MR * KC + i % MR;
                t.c = p->c + (m + i) * p->c_row + n;
                if (k || g->start == PL_GEMM_KEEP) {
                    t.from = t.c;
                    t.from_row = t.c_row;
                } else if (g->start == PL_GEMM_BIAS) {
                    t.from = g->bias + p->n + n;
                }
                t.soon = t.from != t.c         ? t.c
                         : i + MR < rows       ? t.c + MR * p->c_row
                         : n + NR < p->columns ? t.c - i * p->c_row + NR
                                               : t.c + MR * p->c_row - n;
                done = tile_step_wide(&t, rows - i, columns);
            }
        }
    }
}

#endif
