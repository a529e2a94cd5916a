/* tile.h: the serial matrix product that gemm.c and attention.c share.
 *
 * C is cut into tiles of MR x NR whose accumulators live in registers. K is
 * cut into blocks of KC; NC columns of such a block of B are packed on the
 * stack as float, in panels of NR. A is read where it lies, or, if it is kept
 * in 16 bits, MA rows at a time as float from the stack. Each element of C is
 * one chain in ascending k wherever the tiles begin: rows left over use smaller
 * tiles, columns left over run on zeros in a scratch tile, and a cut chain is
 * carried on from C. A C of 16 bits is computed in strips of MC rows, which are
 * float until their k ends. */
#ifndef PL_KERNELS_PLAIN_TILE_H
#define PL_KERNELS_PLAIN_TILE_H

#include "kernels/plain/convert.h"
#include "kernels/plain/plain.h"
#include "kernels/plain/vec.h"

/* MR * NV accumulators, NV vectors of B and one of A fill the registers. */
#if defined(__AVX512F__) && defined(__FMA__)
enum { MR = 12 };
#elif defined(__FMA__)
enum { MR = 6 };
#else
enum { MR = 4 };
#endif
enum { NV = 2, NR = NV * VL, KC = 256, PACK_FROM_ROWS = 16 };
/* Whole tiles in every set. */
enum { NC = 64, PANELS = NC / NR, MA = 24, MC = 120 };

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
} tile_job;

/* rows, a_row or a_col are constants where this is inlined. */
PL_INLINE void tile_run(const int rows, const tile_job *t, size_t a_row,
                        size_t a_col)
{
    const float *a = t->a, *b = t->b;
    const size_t b_row = t->b_row;
    vf acc[MR][NV];
    PL_UNROLL
    for (int i = 0; i < rows; i++) {
        PL_UNROLL
        for (int j = 0; j < NV; j++)
            acc[i][j] = t->from ? v_load(t->from + (size_t)i * t->from_row +
                                         (size_t)(j * VL))
                                : v_all(0);
    }
    for (size_t k = t->K; k; k--) {
        vf bv[NV];
        PL_UNROLL
        for (int j = 0; j < NV; j++)
            bv[j] = v_load(b + j * VL);
        PL_UNROLL
        for (int i = 0; i < rows; i++) {
            vf av = v_all(a[(size_t)i * a_row]);
            PL_UNROLL
            for (int j = 0; j < NV; j++)
                acc[i][j] = v_fma(av, bv[j], acc[i][j]);
        }
        a += a_col;
        b += b_row;
    }
    PL_UNROLL
    for (int i = 0; i < rows; i++) {
        PL_UNROLL
        for (int j = 0; j < NV; j++)
            v_store(t->c + (size_t)i * t->c_row + (size_t)(j * VL), acc[i][j]);
    }
}

#define TILE(rows)                                                             \
    static void tile_##rows(const tile_job *t)                                 \
    {                                                                          \
        if (t->a_col == 1)                                                     \
            tile_run(rows, t, t->a_row, 1);                                    \
        else                                                                   \
            tile_run(rows, t, 1, t->a_col);                                    \
    }
TILE(MR)
#if defined(__FMA__)
TILE(4)
#endif
TILE(2)
TILE(1)
#undef TILE

/* The tallest tile that `rows` rows fill; returns how many it took. */
static size_t tile_step(const tile_job *t, size_t rows)
{
    if (rows >= MR) {
        tile_MR(t);
        return MR;
    }
#if defined(__FMA__)
    if (rows >= 4) {
        tile_4(t);
        return 4;
    }
#endif
    if (rows >= 2) {
        tile_2(t);
        return 2;
    }
    tile_1(t);
    return 1;
}

/* A tile of fewer than NR columns, through a scratch tile padded with 0. */
static size_t tile_step_narrow(const tile_job *t, size_t rows, size_t columns)
{
    float scratch[MR * NR] = { 0 };
    const size_t most = rows < MR ? rows : MR;
    tile_job u = *t;
    for (size_t i = 0; t->from && i < most; i++)
        memcpy(scratch + i * NR, t->from + i * t->from_row,
               columns * sizeof(float));
    u.from = u.c = scratch;
    u.from_row = u.c_row = NR;
    const size_t done = tile_step(&u, rows);
    for (size_t i = 0; i < done; i++)
        memcpy(t->c + i * t->c_row, scratch + i * NR, columns * sizeof(float));
    return done;
}

/* What one product needs beside its operands: 118 KiB of stack. */
typedef struct tile_room {
    _Alignas(64) float panels[PANELS][KC * NR];
    float strip[MC * NC]; /* of a C of 16 bits */
    float a[MA * KC];     /* of an A of 16 bits; while packing, columns of B */
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

/* panel[k * NR + i] = s[i * s_row + k] for four columns i. */
PL_INLINE void tile_turn(float *panel, const float *s, size_t s_row, size_t K)
{
    typedef float quad __attribute__((vector_size(16)));
    size_t k = 0;
    for (; k + 4 <= K; k += 4) {
        quad q[4], r[4];
        for (size_t i = 0; i < 4; i++)
            memcpy(&q[i], s + i * s_row + k, sizeof q[i]);
        r[0] = __builtin_shufflevector(q[0], q[1], 0, 4, 1, 5);
        r[1] = __builtin_shufflevector(q[2], q[3], 0, 4, 1, 5);
        r[2] = __builtin_shufflevector(q[0], q[1], 2, 6, 3, 7);
        r[3] = __builtin_shufflevector(q[2], q[3], 2, 6, 3, 7);
        q[0] = __builtin_shufflevector(r[0], r[1], 0, 1, 4, 5);
        q[1] = __builtin_shufflevector(r[0], r[1], 2, 3, 6, 7);
        q[2] = __builtin_shufflevector(r[2], r[3], 0, 1, 4, 5);
        q[3] = __builtin_shufflevector(r[2], r[3], 2, 3, 6, 7);
        for (size_t i = 0; i < 4; i++)
            memcpy(panel + (k + i) * NR, &q[i], sizeof q[i]);
    }
    for (; k < K; k++)
        for (size_t i = 0; i < 4; i++)
            panel[k * NR + i] = s[i * s_row + k];
}

/* panel[k * NR + n] = b(k, n) for a B whose columns are rows. Other than
 * float32 as it is, four of them at a time are first made that. */
static void tile_pack_turned(float *panel, float *turned, const pl_gemm *g,
                             const void *b, size_t K, size_t columns)
{
    const int as_is = g->b_storage == PL_STORE_F32 &&
                      g->b_round == PL_STORE_F32;
    for (size_t n = 0; n < columns; n += 4) {
        const size_t wide = columns - n < 4 ? columns - n : 4;
        const void *from = pl_storage_at(b, n * g->b_col, g->b_storage);
        if (!as_is)
            tile_read_b(turned, KC, g, from, g->b_col, wide, K);
        const float *s = as_is ? from : turned;
        const size_t s_row = as_is ? g->b_col : KC;
        if (wide == 4)
            tile_turn(panel + n, s, s_row, K);
        else
            for (size_t i = 0; i < wide; i++)
                for (size_t k = 0; k < K; k++)
                    panel[k * NR + n + i] = s[i * s_row + k];
    }
}

/* K rows of B from element `at` on, as panels of NR columns; columns beyond
 * `columns` are zero. */
static void tile_pack(tile_room *room, const pl_gemm *g, size_t at, size_t K,
                      size_t columns)
{
    enum { TOGETHER = 8 }; /* rows: each is read in one go */
    if (columns % NR)
        memset(room->panels[columns / NR], 0, K * NR * sizeof(float));
    for (size_t k = 0; k < K && g->b_col == 1; k += TOGETHER)
        for (size_t n = 0; n < columns; n += NR)
            tile_read_b(
                room->panels[n / NR] + k * NR, NR, g,
                pl_storage_at(g->b, at + k * g->b_row + n, g->b_storage),
                g->b_row, K - k < TOGETHER ? K - k : TOGETHER,
                columns - n < NR ? columns - n : NR);
    for (size_t n = 0; n < columns && g->b_col != 1; n += NR)
        tile_pack_turned(room->panels[n / NR], room->a, g,
                         pl_storage_at(g->b, at + n * g->b_col, g->b_storage),
                         K, columns - n < NR ? columns - n : NR);
}

/* Rows m .. m + rows - 1 and columns n .. n + columns - 1 of C. */
typedef struct tile_part {
    size_t m, rows, n, columns;
    float *c; /* element (m, n), or of the strip that stands for it */
    size_t c_row;
} tile_part;

/* A's elements (m .., k ..) as float: where they lie, or in the room. */
static void tile_find_a(tile_job *t, tile_room *room, const pl_gemm *g,
                        size_t m, size_t rows, size_t k)
{
    const void *a = pl_storage_at(g->a, m * g->a_row + k * g->a_col,
                                  g->a_storage);
    t->a = a;
    t->a_row = g->a_row;
    t->a_col = g->a_col;
    if (g->a_storage == PL_STORE_F32)
        return;
    t->a = room->a;
    t->a_row = g->a_col == 1 ? KC : 1;
    t->a_col = g->a_col == 1 ? 1 : MA;
    if (g->a_col == 1)
        widen_rows(room->a, KC, a, g->a_row, rows, t->K, g->a_storage);
    else
        widen_rows(room->a, MA, a, g->a_col, t->K, rows, g->a_storage);
}

/* A block of K on a part of C. b: where B's rows of the block lie, if they
 * are used without packing. */
static void tile_block(tile_room *room, const pl_gemm *g, const tile_part *p,
                       size_t k, size_t K, const float *b)
{
    for (size_t m = 0; m < p->rows; m += MA) {
        const size_t rows = p->rows - m < MA ? p->rows - m : MA;
        tile_job t = { .K = K, .b_row = b ? g->b_row : NR, .c_row = p->c_row };
        tile_find_a(&t, room, g, p->m + m, rows, k);
        const float *a = t.a;
        for (size_t n = 0; n < p->columns; n += NR) {
            const size_t columns = p->columns - n < NR ? p->columns - n : NR;
            t.b = b ? b + n : room->panels[n / NR];
            for (size_t i = 0, done; i < rows; i += done) {
                t.a = a + i * t.a_row;
                t.c = p->c + (m + i) * p->c_row + n;
                if (k || g->start == PL_GEMM_KEEP) {
                    t.from = t.c;
                    t.from_row = t.c_row;
                } else if (g->start == PL_GEMM_BIAS) {
                    t.from = g->bias + p->n + n;
                }
                done = columns == NR ? tile_step(&t, rows - i)
                                     : tile_step_narrow(&t, rows - i, columns);
            }
        }
    }
}

/* All of K on a part of C. */
static void tile_chain(tile_room *room, const pl_gemm *g, const tile_part *p)
{
    const int packed = g->b_col != 1 || p->columns % NR ||
                       g->M >= PACK_FROM_ROWS || g->b_storage != PL_STORE_F32 ||
                       g->b_round != PL_STORE_F32;
    size_t k = 0;
    do {
        const size_t K = g->K - k < KC ? g->K - k : KC;
        const size_t at = k * g->b_row + p->n * g->b_col;
        if (packed)
            tile_pack(room, g, at, K, p->columns);
        tile_block(room, g, p, k, K, packed ? NULL : (const float *)g->b + at);
        k += K;
    } while (k < g->K);
}

/* All of g on this thread. */
static __attribute__((noinline)) void tile_gemm(const pl_gemm *g)
{
    const int whole = g->c_storage == PL_STORE_F32;
    const size_t wide = g->M < PACK_FROM_ROWS ? NR : NC; /* used while hot */
    tile_room room;
    for (size_t n = 0; n < g->N; n += wide)
        for (size_t m = 0; m < g->M; m += whole ? g->M : MC) {
            const size_t rest = g->M - m;
            void *c = pl_storage_at(g->c, m * g->c_row + n, g->c_storage);
            const tile_part p = { .m = m,
                                  .rows = whole || rest < MC ? rest : MC,
                                  .n = n,
                                  .columns = g->N - n < wide ? g->N - n : wide,
                                  .c = whole ? c : room.strip,
                                  .c_row = whole ? g->c_row : NC };
            tile_chain(&room, g, &p);
            if (!whole)
                narrow_rows(c, g->c_row, room.strip, NC, p.rows, p.columns,
                            g->c_storage);
        }
}

#endif
