/* tile.h: the serial matrix product that gemm.c and attention.c share.
 *
 * C is cut into tiles of MR x NR whose accumulators live in registers. K is
 * cut into blocks of at most KC; as many columns of such a block of B as the
 * room has place for are packed as float, in panels of NR. A is read where it
 * lies if its rows do; otherwise, and if it is kept in 16 bits, some rows at a
 * time are copied as float. Each element of C is one chain in ascending k
 * wherever the tiles begin: rows left over use smaller tiles, columns left over
 * run on zeros in a scratch tile, and a cut chain is carried on from C. A C of
 * 16 bits is computed in strips, which are float until their k ends. */
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
enum { NV = 2, NR = NV * VL, KC = PL_GEMM_DEPTH, PACK_FROM_ROWS = 16 };
/* Rows of A that are copied together, on the stack or in scratch: whole tiles
 * in every set. */
enum { MA_FEW = 24, MA_MANY = 96 };
/* A panel, and a vector more so that panels don't all meet in one set of a
 * cache. */
enum { PANEL = KC * NR + VL };
/* Columns of a strip: few, so that it has many rows. */
enum { TILE_STRIP_COLUMNS = 128 };

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
#if defined(__FMA__)
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
#if defined(__FMA__)
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
    float *panels; /* PANEL floats each, for `columns` columns: a multiple of
                    * NR */
    size_t columns;
    float *strip; /* of a C of 16 bits: `strip_floats`, 0 if there is none */
    size_t strip_floats;
    float *a; /* a_rows * KC: of A; while packing, columns of B */
    size_t a_rows;
} tile_room;

/* Where there is no scratch: few columns, on the stack. */
enum { FEW = 64 };

typedef struct tile_small {
    _Alignas(64) float panels[FEW / NR * PANEL];
    float strip[FEW * 120];
    float a[MA_FEW * KC];
} tile_small;

static tile_room tile_room_small(tile_small *small)
{
    return (tile_room){ .panels = small->panels,
                        .columns = FEW,
                        .strip = small->strip,
                        .strip_floats = sizeof small->strip / sizeof(float),
                        .a = small->a,
                        .a_rows = MA_FEW };
}

/* Rows of B as float, rounded if they are to be. */
static void tile_read_b(float *to, size_t to_row, const pl_gemm *g,
                        const void *b, size_t row, size_t rows, size_t count)
{
    if (g->b_storage == PL_STORE_F32 && g->b_round != PL_STORE_F32)
        round_rows(to, to_row, b, row, rows, count, g->b_round);
    else
        widen_rows(to, to_row, b, row, rows, count, g->b_storage);
}

enum { TURNED = 8 }; /* columns that are turned together */

/* panel[k * NR + i] = s[i * s_row + k] for eight columns i. */
PL_INLINE void tile_turn(float *panel, const float *s, size_t s_row, size_t K)
{
    typedef float oct __attribute__((vector_size(32)));
    size_t k = 0;
    for (; k + 8 <= K; k += 8) {
        oct q[8], r[8];
        for (size_t i = 0; i < 8; i++)
            memcpy(&q[i], s + i * s_row + k, sizeof q[i]);
        for (size_t i = 0; i < 8; i += 2) {
            r[i] = __builtin_shufflevector(q[i], q[i + 1], 0, 8, 1, 9, 4, 12, 5,
                                           13);
            r[i + 1] = __builtin_shufflevector(q[i], q[i + 1], 2, 10, 3, 11, 6,
                                               14, 7, 15);
        }
        for (size_t i = 0; i < 8; i += 4)
            for (size_t j = 0; j < 2; j++) {
                q[i + 2 * j] = __builtin_shufflevector(
                    r[i + j], r[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
                q[i + 2 * j + 1] = __builtin_shufflevector(
                    r[i + j], r[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
            }
        for (size_t i = 0; i < 4; i++) {
            r[i] = __builtin_shufflevector(q[i], q[i + 4], 0, 1, 2, 3, 8, 9, 10,
                                           11);
            r[i + 4] = __builtin_shufflevector(q[i], q[i + 4], 4, 5, 6, 7, 12,
                                               13, 14, 15);
        }
        for (size_t i = 0; i < 8; i++)
            memcpy(panel + (k + i) * NR, &r[i], sizeof r[i]);
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

/* K rows of B from element `at` on, as panels of NR columns; columns beyond
 * `columns` are zero. */
static void tile_pack(const tile_room *room, const pl_gemm *g, size_t at,
                      size_t K, size_t columns)
{
    enum { TOGETHER = 8 }; /* rows: each is read in one go */
    if (columns % NR)
        memset(room->panels + columns / NR * PANEL, 0, K * NR * sizeof(float));
    for (size_t k = 0; k < K && g->b_col == 1; k += TOGETHER)
        for (size_t n = 0; n < columns; n += NR)
            tile_read_b(
                room->panels + n / NR * PANEL + k * NR, NR, g,
                pl_storage_at(g->b, at + k * g->b_row + n, g->b_storage),
                g->b_row, K - k < TOGETHER ? K - k : TOGETHER,
                columns - n < NR ? columns - n : NR);
    for (size_t n = 0; n < columns && g->b_col != 1; n += NR)
        tile_pack_turned(room->panels + n / NR * PANEL, room->a, g,
                         pl_storage_at(g->b, at + n * g->b_col, g->b_storage),
                         K, columns - n < NR ? columns - n : NR);
}

/* Rows m .. m + rows - 1 and columns n .. n + columns - 1 of C. */
typedef struct tile_part {
    size_t m, rows, n, columns;
    float *c; /* element (m, n), or of the strip that stands for it */
    size_t c_row;
} tile_part;

/* A's elements (m .., k ..) as float: where they lie, or in the room. Columns
 * of A are rows of pages apart, so they are copied even if they are float. */
static void tile_find_a(tile_job *t, const tile_room *room, const pl_gemm *g,
                        size_t m, size_t rows, size_t k)
{
    const void *a = pl_storage_at(g->a, m * g->a_row + k * g->a_col,
                                  g->a_storage);
    t->a = a;
    t->a_row = g->a_row;
    t->a_col = g->a_col;
    if (g->a_storage == PL_STORE_F32 && g->a_col == 1)
        return;
    t->a = room->a;
    t->a_row = g->a_col == 1 ? KC : 1;
    t->a_col = g->a_col == 1 ? 1 : room->a_rows;
    if (g->a_col == 1)
        widen_rows(room->a, KC, a, g->a_row, rows, t->K, g->a_storage);
    else
        widen_rows(room->a, room->a_rows, a, g->a_col, t->K, rows,
                   g->a_storage);
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
            t.b = b ? b + n : room->panels + n / NR * PANEL;
            for (size_t i = 0, done; i < rows; i += done) {
                t.a = a + i * t.a_row;
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

/* The share of each of so many equal parts, in whole units. */
static size_t tile_share(size_t count, size_t most, size_t unit)
{
    const size_t parts = (count + most - 1) / most,
                 share = (count + parts - 1) / parts;
    return (share + unit - 1) / unit * unit;
}

/* All of K on a part of C. */
static void tile_chain(const tile_room *room, const pl_gemm *g,
                       const tile_part *p)
{
    const int packed = g->b_col != 1 || p->columns % NR ||
                       g->M >= PACK_FROM_ROWS || g->b_storage != PL_STORE_F32 ||
                       g->b_round != PL_STORE_F32;
    const size_t depth = g->K > KC ? tile_share(g->K, KC, 8) : KC;
    size_t k = 0;
    do {
        const size_t K = g->K - k < depth ? g->K - k : depth;
        const size_t at = k * g->b_row + p->n * g->b_col;
        if (packed)
            tile_pack(room, g, at, K, p->columns);
        tile_block(room, g, p, k, K, packed ? NULL : (const float *)g->b + at);
        k += K;
    } while (k < g->K);
}

/* All of g on this thread. */
static __attribute__((noinline)) void tile_gemm(const pl_gemm *g,
                                                const tile_room *room)
{
    const int whole = g->c_storage == PL_STORE_F32;
    size_t wide = room->columns;
    if (!whole && wide > TILE_STRIP_COLUMNS)
        wide = TILE_STRIP_COLUMNS;
    if (g->M < PACK_FROM_ROWS)
        wide = NR; /* used while hot */
    else if (g->N > wide)
        wide = tile_share(g->N, wide, NR);
    const size_t tall = whole ? g->M : room->strip_floats / wide;
    for (size_t n = 0; n < g->N; n += wide)
        for (size_t m = 0; m < g->M; m += tall) {
            const size_t rest = g->M - m;
            void *c = pl_storage_at(g->c, m * g->c_row + n, g->c_storage);
            const tile_part p = { .m = m,
                                  .rows = rest < tall ? rest : tall,
                                  .n = n,
                                  .columns = g->N - n < wide ? g->N - n : wide,
                                  .c = whole ? c : room->strip,
                                  .c_row = whole ? g->c_row : wide };
            tile_chain(room, g, &p);
            if (!whole)
                narrow_rows(c, g->c_row, room->strip, wide, p.rows, p.columns,
                            g->c_storage);
        }
}

/* The same, packing on the stack. */
static __attribute__((noinline)) void tile_gemm_small(const pl_gemm *g)
{
    tile_small small;
    const tile_room room = tile_room_small(&small);
    tile_gemm(g, &room);
}

#endif
