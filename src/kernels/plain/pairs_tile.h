/* pairs_tile.h: bf16 products (kernels.h) by vdpbf16ps, which multiplies pairs
 * of bfloat16 (pairs.h) at twice the rate of float32's multiply-adds, or by AMX
 * (pairs_amx.h).
 *
 * The loops, panels and tiles are those of tile.h, with words of two elements
 * where that has floats:
 *
 *   columns of C      as many as the workspace can pack
 *     k, by DEPTH     packs these columns of B: panels of NR columns, a row of
 *                     words for each pair of k
 *       rows, by MC   copies these rows of A: row by row, or, where A is stored
 *                     transposed and there is no AMX, MR rows interleaved
 *         panel
 *           tile      MR x NR sums in registers; a step adds two terms to each;
 *                     with AMX 32 x 32 sums, and 32 terms to each
 *
 * A is always copied: its halves have to be swapped, and a float32 A rounded.
 * Sums that end in a C of 16 bits are kept in float32, in a strip, until they
 * are finished (finish.h). That takes MC rows of it if all of k is one block,
 * which it is up to DEEPEST. Beyond, the rows of C are done in parts, and a
 * strip has all rows of one. */
#ifndef PL_KERNELS_PLAIN_PAIRS_TILE_H
#define PL_KERNELS_PLAIN_PAIRS_TILE_H

#include "kernels/plain/finish.h"
#include "kernels/plain/pairs_amx.h"
#include "kernels/plain/pairs_pack.h"

#if defined(PL_PAIRS)

/* ---- the tile ---- */

typedef struct pairs_job {
    size_t pairs;
    const uint32_t *a, *b;
    size_t a_row;
    const float *from; /* initial values of the chains; NULL: +0 */
    size_t from_row;
    float *c;
    size_t c_row;
    const char *prefetch; /* the tile of C that is needed next, rows so many */
    size_t prefetch_row;  /* bytes apart */
} pairs_job;

#if defined(PL_PAIRS_AMX)

/* Runs the tallest block of tiles that `rows` rows fill; returns its number of
 * rows. Fewer rows than a tile has are computed with whatever follows them, in
 * a tile of its own. */
static size_t pairs_step(const pairs_job *t, size_t rows, int interleaved)
{
    amx_job j = { .groups = t->pairs / PAIRS_UNIT,
                  .a = t->a,
                  .a_row = t->a_row,
                  .b = t->b,
                  .b_row = NR,
                  .from = t->from,
                  .from_row = t->from_row,
                  .c = t->c,
                  .c_row = t->c_row };
    (void)interleaved;
    if (rows >= AMX_SIDE) {
        const int tall = rows >= PAIRS_ROWS ? 2 : 1;
        amx_run(&j, tall, NV);
        return (size_t)tall * AMX_SIDE;
    }
    float few[AMX_SIDE * NR] = { 0 };
    for (size_t i = 0; t->from && i < rows; i++)
        memcpy(few + i * NR, t->from + i * t->from_row, NR * sizeof *few);
    j.from = j.c = few;
    j.from_row = j.c_row = NR;
    amx_run(&j, 1, NV);
    for (size_t i = 0; i < rows; i++)
        memcpy(t->c + i * t->c_row, few + i * NR, NR * sizeof *few);
    return rows;
}

#else

/* rows, a_row and a_col are constants where this is inlined. */
PL_INLINE void pairs_tile(const int rows, const pairs_job *t,
                          const size_t a_row, const size_t a_col)
{
    enum { AHEAD = 8 }; /* pairs of B */
    const uint32_t *a = t->a, *b = t->b;
    __m512 sums[MR][NV];
    PL_UNROLL
    for (int i = 0; i < rows; i++) {
        PL_UNROLL
        for (int j = 0; j < NV; j++) {
            const size_t at = (size_t)(j * WORDS);
            sums[i][j] = t->from ? _mm512_loadu_ps(t->from +
                                                   (size_t)i * t->from_row + at)
                                 : _mm512_setzero_ps();
            __builtin_prefetch(t->prefetch + (size_t)i * t->prefetch_row +
                                   at * sizeof(float),
                               1);
        }
    }
    for (size_t p = t->pairs; p; p--) {
        __m512i column[NV];
        PL_UNROLL
        for (int j = 0; j < NV; j++) {
            column[j] = _mm512_loadu_si512(b + j * WORDS);
            __builtin_prefetch(b + j * WORDS + AHEAD * NR);
        }
        PL_UNROLL
        for (int i = 0; i < rows; i++) {
            const __m512i row = _mm512_set1_epi32((int)a[(size_t)i * a_row]);
            PL_UNROLL
            for (int j = 0; j < NV; j++)
                sums[i][j] = _mm512_dpbf16_ps(sums[i][j], (__m512bh)row,
                                              (__m512bh)column[j]);
        }
        a += a_col;
        b += NR;
    }
    PL_UNROLL
    for (int i = 0; i < rows; i++) {
        PL_UNROLL
        for (int j = 0; j < NV; j++)
            _mm512_storeu_ps(t->c + (size_t)i * t->c_row + j * WORDS,
                             sums[i][j]);
    }
}

#define PAIRS_TILE(rows)                                                       \
    static void pairs_tile_##rows(const pairs_job *t)                          \
    {                                                                          \
        pairs_tile(rows, t, A_WORDS, 1);                                       \
    }                                                                          \
    static void pairs_tile_interleaved_##rows(const pairs_job *t)              \
    {                                                                          \
        pairs_tile(rows, t, 1, MR);                                            \
    }
PAIRS_TILE(MR)
PAIRS_TILE(8)
PAIRS_TILE(4)
PAIRS_TILE(2)
PAIRS_TILE(1)
#undef PAIRS_TILE

/* Runs the tallest tile that `rows` rows fill; returns its number of rows. */
static size_t pairs_step(const pairs_job *t, size_t rows, int interleaved)
{
    typedef void tile_fn(const pairs_job *);
    static tile_fn *const tiles[][2] = {
        { pairs_tile_MR, pairs_tile_interleaved_MR },
        { pairs_tile_8, pairs_tile_interleaved_8 },
        { pairs_tile_4, pairs_tile_interleaved_4 },
        { pairs_tile_2, pairs_tile_interleaved_2 },
        { pairs_tile_1, pairs_tile_interleaved_1 },
    };
    static const size_t sizes[] = { MR, 8, 4, 2, 1 };
    size_t i = 0;
    while (sizes[i] > rows)
        i++;
    tiles[i][interleaved](t);
    return sizes[i];
}

#endif

/* The same for a tile of fewer than NR columns, by way of a whole one. */
static size_t pairs_step_narrow(const pairs_job *t, size_t rows, size_t columns,
                                int interleaved)
{
    float scratch[PAIRS_ROWS * NR] = { 0 };
    const size_t most = rows < PAIRS_ROWS ? rows : PAIRS_ROWS;
    pairs_job u = *t;
    for (size_t i = 0; t->from && i < most; i++)
        memcpy(scratch + i * NR, t->from + i * t->from_row,
               columns * sizeof *scratch);
    u.from = u.c = scratch;
    u.from_row = u.c_row = NR;
    const size_t done = pairs_step(&u, rows, interleaved);
    for (size_t i = 0; i < done; i++)
        memcpy(t->c + i * t->c_row, scratch + i * NR,
               columns * sizeof *scratch);
    return done;
}

/* ---- the product ---- */

/* What to prefetch of C while the tile at row i and column n of a part is
 * computed: the tile itself if its sums are not read from there, the next one
 * otherwise. */
static const char *pairs_next_c(const pl_gemm *g, const tile_part *p, size_t i,
                                size_t n, int begins)
{
    size_t m = i;
    if (!begins && g->c_storage == PL_STORE_F32) {
        n += i + PAIRS_ROWS < p->rows ? 0 : NR;
        m = i + PAIRS_ROWS < p->rows ? i + PAIRS_ROWS : 0;
    }
    return pl_storage_at(g->c, (p->m + m) * g->c_row + p->n + n, g->c_storage);
}

/* Adds K terms, from k on, to at most a_rows rows of C. */
static void pairs_block(const pairs_work *work, const pl_gemm *g,
                        const tile_part *p, size_t k, size_t K)
{
    const int interleaved = g->a_col != 1 && PAIRS_UNIT == 1;
    const int begins = k == 0 && g->start != PL_GEMM_KEEP;
    pairs_copy_a(work, g, p->m * g->a_row + k * g->a_col, p->rows, K);
    for (size_t n = 0; n < p->columns; n += NR) {
        const size_t columns = p->columns - n < NR ? p->columns - n : NR;
        float bias[NR];
        pairs_job t = { .pairs = pairs_count(K),
                        .a_row = work->a_row,
                        .b = work->panels + n / NR * work->panel,
                        .c_row = p->c_row,
                        .prefetch_row = g->c_row *
                                        pl_storage_bytes(g->c_storage) };
        if (begins && g->start == PL_GEMM_BIAS) {
            tile_bias(bias, g, p->n + n, columns);
            t.from = bias;
        }
        for (size_t i = 0, done; i < p->rows; i += done) {
            t.a = work->a + (interleaved ? i / MR * MR * A_WORDS + i % MR
                                         : i * work->a_row);
            t.c = p->c + i * p->c_row + n;
            if (!begins) {
                t.from = t.c;
                t.from_row = t.c_row;
            }
            t.prefetch = pairs_next_c(g, p, i, n, begins);
            done = columns == NR ? pairs_step(&t, p->rows - i, interleaved)
                                 : pairs_step_narrow(&t, p->rows - i, columns,
                                                     interleaved);
        }
    }
}

/* Words of a panel of `depth` rows. */
static size_t pairs_panel(size_t depth)
{
    return depth / 2 * NR + WORDS;
}

/* Columns for which the room has panels, and so many rows of a strip. */
static size_t pairs_fit(const pairs_work *work, size_t depth, size_t rows)
{
    const size_t panels = work->room_words / (pairs_panel(depth) + NR * rows),
                 most = PANEL_WORDS / pairs_panel(depth);
    return (panels < most ? panels : most) * NR;
}

/* How far a block reaches along k. */
static size_t pairs_depth(const pairs_work *work, const pl_gemm *g)
{
    const size_t all = 2 * pairs_count(g->K),
                 most = work->deepest < DEPTH ? work->deepest : DEPTH;
    if (all <= most || (g->c_storage != PL_STORE_F32 && all <= work->deepest &&
                        pairs_fit(work, all, work->a_rows) >= 2 * NR))
        return all;
    return share_of(g->K, most, HALVES);
}

/* Rows of C that are done together: what a strip of two panels has room for. */
static size_t pairs_tall(const pairs_work *work, const pl_gemm *g, size_t depth)
{
    const size_t most = (work->room_words / 2 - pairs_panel(depth)) / NR;
    if (g->c_storage == PL_STORE_F32 || g->K <= depth)
        return g->M;
    return share_of(g->M, most < STRIP_ROWS ? most : STRIP_ROWS, 1);
}

/* All of k on a part of C of which all columns can be packed. */
static void pairs_part(const pairs_work *work, const pl_gemm *g,
                       offset_in_c first, const tile_part *p, size_t depth)
{
    const int reused = g->c_storage != PL_STORE_F32 && g->K <= depth;
    size_t k = 0, K;
    do {
        K = g->K - k < depth ? g->K - k : depth;
        pairs_pack_b(work, g, k * g->b_row + p->n * g->b_col, K, p->columns);
        for (size_t m = 0; m < p->rows; m += work->a_rows) {
            const size_t rest = p->rows - m;
            tile_part some = *p;
            some.m += m;
            some.rows = rest < work->a_rows ? rest : work->a_rows;
            some.c += reused ? 0 : m * p->c_row;
            pairs_block(work, g, &some, k, K);
            for (size_t r = 0;
                 r < some.rows && k + K == g->K && needs_finish(g); r++)
                finish_row(g, first, some.c + r * some.c_row, some.m + r, p->n,
                           p->columns);
        }
        k += K;
    } while (k < g->K);
}

/* All of g, in parts that the workspace has room for. */
static void pairs_tiled(const pl_gemm *g, offset_in_c first, pairs_work *work)
{
    if (g->M == 0 || g->N == 0)
        return;
    const int strip = g->c_storage != PL_STORE_F32;
    const size_t depth = pairs_depth(work, g),
                 tall = pairs_tall(work, g, depth),
                 rows = !strip          ? 0
                        : g->K <= depth ? work->a_rows
                                        : tall,
                 wide = share_of(g->N, pairs_fit(work, depth, rows), NR);
    work->panel = pairs_panel(depth);
    work->panels = (uint32_t *)(void *)work->room;
    work->strip = work->room + wide / NR * work->panel;
    for (size_t n = 0; n < g->N; n += wide)
        for (size_t m = 0; m < g->M; m += tall) {
            const size_t rest = g->M - m;
            const tile_part p = { .m = m,
                                  .rows = rest < tall ? rest : tall,
                                  .n = n,
                                  .columns = g->N - n < wide ? g->N - n : wide,
                                  .c = strip ? work->strip
                                             : (float *)g->c + m * g->c_row + n,
                                  .c_row = strip ? wide : g->c_row };
            pairs_part(work, g, first, &p, depth);
        }
}

static __attribute__((noinline)) void pairs_on_stack(const pl_gemm *g,
                                                     offset_in_c first)
{
    enum { SHALLOW = 384, PANEL_ROWS = SHALLOW / 2 + 1, ROWS = 120 };
    _Alignas(64) float room[2 * NR * (PANEL_ROWS + ROWS)];
#if defined(PL_PAIRS_AMX)
    enum { ROW = SHALLOW / 2 + WORDS };
#else
    enum { ROW = A_WORDS };
#endif
    uint32_t a[MC_PAIRS_STACK * ROW];
    pairs_work work = { .a = a,
                        .a_rows = MC_PAIRS_STACK,
                        .a_row = ROW,
                        .room = room,
                        .room_words = sizeof room / sizeof *room,
                        .deepest = SHALLOW };
    pairs_tiled(g, first, &work);
}

/* In the product's scratch, or on the stack where that is too small. */
static void pairs_in_room(const pl_gemm *g, offset_in_c first)
{
    const size_t a = MC_PAIRS * A_WORDS,
                 least = 2 * (pairs_panel(DEPTH) + NR * MC_PAIRS);
    if (!g->scratch || g->scratch_floats < a + least) {
        pairs_on_stack(g, first);
        return;
    }
    pairs_work work = { .a = (uint32_t *)(void *)g->scratch,
                        .a_rows = MC_PAIRS,
                        .a_row = A_WORDS,
                        .room = g->scratch + a,
                        .room_words = g->scratch_floats - a,
                        .deepest = DEEPEST };
    pairs_tiled(g, first, &work);
}

static void gemm_pairs(const pl_gemm *g, offset_in_c first)
{
#if defined(PL_PAIRS_AMX)
    pl_amx_begin();
    pairs_in_room(g, first);
    pl_amx_end();
#else
    pairs_in_room(g, first);
#endif
}

#endif
#endif
