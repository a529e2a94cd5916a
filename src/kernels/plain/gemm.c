/* gemm.c: matrix products and column sums.
 *
 * C[M, N] = A[M, K] B[K, N] is computed by the loops that BLAS libraries have:
 *
 *   threads            split C by rows or columns, never the sum over k  (gemm)
 *     columns of C     as many as the workspace can pack            (run_parts)
 *       k, by KC       packs these columns of B, if it has to       (run_all_k)
 *         rows, by MC  packs A, if it has to                       (tile_block)
 *           panel      NR columns of C, KC rows of B
 *             tile     MR x NR elements of C, in registers             (tile.h)
 *
 *      K                 |  |  |  |               |  |  |  |
 *   +------+           K |p |p |p |             M |t |t |t |   p: a panel of B
 *   |  A   | M   times   |  |  |  |   gives       |--+--+--|   t: tiles of C
 *   +------+             |  |  |  |               |t |t |t |
 *
 * KC, MC, MR and NR are the block sizes of BLIS; tile.h has them.
 *
 * With the last block of k the epilogue (GELU, its derivative, or the residual
 * sum) is applied to MC rows at a time, while they are in the cache. A C of 16
 * bits is accumulated in float32, in a buffer (the strip), and rounded once, at
 * the end. Where the panels hold all of k, the strip has MC rows, so that
 * neither B is packed for each strip nor A for each few columns (run_rows);
 * else it has few columns. Products of one or two rows, as decoding has them,
 * go through gemv() instead: they read B once, in place, and pack nothing.
 *
 * Products of bfloat16 with bfloat16 have files of their own, for sets that can
 * multiply that (pairs_tile.h, pairs_flat.h). */
#include "kernels/plain/finish.h"
#include "kernels/plain/flat.h"
#include "kernels/plain/pairs_flat.h"
#include "kernels/plain/pairs_tile.h"
#include "kernels/plain/share.h"
#include "kernels/plain/tile.h"

/* Columns of a strip (at most): few, so that it has many rows. k is cut at
 * multiples of K_UNIT, as tensor arithmetic needs it. */
enum { STRIP_COLUMNS = 128, K_UNIT = PL_LARGEST_GROUP };

static size_t ceil_div(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

/* Where the product has no scratch: a workspace of few columns, on the stack.
 */
enum { NC_STACK = 64, STRIP_ROWS_STACK = 120 };

typedef struct stack_work {
    _Alignas(64) float panels[NC_STACK / NR * PANEL];
    float strip[NC_STACK * STRIP_ROWS_STACK];
    float a[MC_STACK * KC];
} stack_work;

static tile_work work_on_stack(stack_work *small)
{
    return (tile_work){ .panels = small->panels,
                        .panel = PANEL,
                        .columns = NC_STACK,
                        .strip = small->strip,
                        .strip_floats = sizeof small->strip / sizeof(float),
                        .a = small->a,
                        .a_rows = MC_STACK };
}

/* A workspace in the product's own scratch, of which a C of 16 bits gets up to
 * a half; `columns` is 0 if the scratch is too small. */
static tile_work work_in_scratch(const pl_gemm *g)
{
    const size_t a = MC_SCRATCH * KC, left = g->scratch_floats - a;
    tile_work work = { .panel = PANEL, .a = g->scratch, .a_rows = MC_SCRATCH };
    if (!g->scratch || g->scratch_floats < a)
        return work;
    if (g->c_storage != PL_STORE_F32) {
        const size_t most = 64 * 1024;
        work.strip = g->scratch + a;
        work.strip_floats = left / 2 < most ? left / 2 : most;
    }
    work.panels = g->scratch + a + work.strip_floats;
    work.columns = (left - work.strip_floats) / PANEL * NR;
    if (work.strip && work.strip_floats < STRIP_COLUMNS)
        work.columns = 0;
    return work;
}

/* Packs K rows of B, from element `at` on, into panels of NR columns; the last
 * panel is padded with zeros. */
static void pack_b(const tile_work *work, const pl_gemm *g, size_t at, size_t K,
                   size_t columns)
{
    enum { ROWS = 8 }; /* of B, for which all panels are filled in turn */
    if (columns % NR)
        memset(work->panels + columns / NR * work->panel, 0,
               K * NR * sizeof(float));
    for (size_t k = 0; k < K && g->b_col == 1; k += ROWS)
        for (size_t n = 0; n < columns; n += NR)
            tile_read_b(
                work->panels + n / NR * work->panel + k * NR, NR, g,
                pl_storage_at(g->b, at + k * g->b_row + n, g->b_storage),
                g->b_row, K - k < ROWS ? K - k : ROWS,
                columns - n < NR ? columns - n : NR);
    for (size_t n = 0; n < columns && g->b_col != 1; n += NR)
        tile_pack_b_transposed(
            work->panels + n / NR * work->panel, work->a, g,
            pl_storage_at(g->b, at + n * g->b_col, g->b_storage), K,
            columns - n < NR ? columns - n : NR);
}

/* ---- through packed panels ---- */

/* How much of k a block has. */
static size_t block_depth(const pl_gemm *g)
{
    return g->K > KC ? share_of(g->K, KC, K_UNIT) : KC;
}

/* The epilogue of rows whose sums are complete. */
static void finish_rows(const pl_gemm *g, offset_in_c first, const tile_part *p)
{
    for (size_t r = 0; r < p->rows && needs_finish(g); r++)
        finish_row(g, first, p->c + r * p->c_row, p->m + r, p->n, p->columns);
}

/* The last block of k, MC rows at a time, so that the epilogue finds them in
 * the cache. */
static void run_last_k(const tile_work *work, const pl_gemm *g,
                       offset_in_c first, const tile_part *p, size_t k,
                       const float *b)
{
    tile_part some = *p;
    for (size_t m = 0; m < p->rows; m += work->a_rows) {
        const size_t rest = p->rows - m;
        some.m = p->m + m;
        some.rows = rest < work->a_rows ? rest : work->a_rows;
        some.c = p->c + m * p->c_row;
        tile_block(work, g, &some, k, g->K - k, b);
        finish_rows(g, first, &some);
    }
}

/* All of k on a part of C, in blocks of at most KC. */
static void run_all_k(const tile_work *work, const pl_gemm *g,
                      offset_in_c first, const tile_part *p)
{
    const int packed = g->b_col != 1 || p->columns % NR ||
                       g->M >= PACK_FROM_ROWS || g->b_storage != PL_STORE_F32 ||
                       g->b_round != PL_STORE_F32;
    const size_t depth = block_depth(g);
    size_t k = 0;
    for (;;) {
        const size_t K = g->K - k < depth ? g->K - k : depth;
        const size_t at = k * g->b_row + p->n * g->b_col;
        const float *b = packed ? NULL : (const float *)g->b + at;
        if (packed)
            pack_b(work, g, at, K, p->columns);
        if (k + K == g->K) {
            run_last_k(work, g, first, p, k, b);
            return;
        }
        tile_block(work, g, p, k, K, b);
        k += K;
    }
}

/* How many columns of a C of 16 bits are computed together by run_rows: B's
 * panels must hold all of their k, and the strip MC rows of them. 0 where too
 * few fit, or C is float32. */
static size_t columns_of_all_k(const pl_gemm *g, const tile_work *work)
{
    if (g->c_storage == PL_STORE_F32 || g->M < PACK_FROM_ROWS || !g->N || !g->K)
        return 0;
    const size_t panels = work->columns / NR / ceil_div(g->K, block_depth(g)),
                 strips = work->strip_floats / (work->a_rows * NR),
                 most = (panels < strips ? panels : strips) * NR;
    return most < STRIP_COLUMNS && most < g->N ? 0 : share_of(g->N, most, NR);
}

/* Columns n .. of a C of 16 bits: all of B's k is packed once, then MC rows at
 * a time are finished, in a strip that is used again for the next. */
static void run_rows(const tile_work *work, const pl_gemm *g, offset_in_c first,
                     size_t n, size_t columns)
{
    const size_t depth = block_depth(g),
                 block = ceil_div(columns, NR) * work->panel;
    tile_work some = *work;
    for (size_t k = 0; k < g->K; k += depth) {
        some.panels = work->panels + k / depth * block;
        pack_b(&some, g, k * g->b_row + n * g->b_col,
               g->K - k < depth ? g->K - k : depth, columns);
    }
    for (size_t m = 0; m < g->M; m += work->a_rows) {
        const size_t rest = g->M - m;
        const tile_part p = { .m = m,
                              .rows = rest < work->a_rows ? rest : work->a_rows,
                              .n = n,
                              .columns = columns,
                              .c = work->strip,
                              .c_row = ceil_div(columns, NR) * NR };
        for (size_t k = 0; k < g->K; k += depth) {
            some.panels = work->panels + k / depth * block;
            tile_block(&some, g, &p, k, g->K - k < depth ? g->K - k : depth,
                       NULL);
        }
        finish_rows(g, first, &p);
    }
}

/* All of g, in parts whose columns fit the workspace. */
static void run_parts(const tile_work *work, const pl_gemm *g,
                      offset_in_c first)
{
    const int whole = g->c_storage == PL_STORE_F32;
    size_t wide = work->columns;
    if (!whole && wide > STRIP_COLUMNS)
        wide = STRIP_COLUMNS;
    if (g->M < PACK_FROM_ROWS)
        wide = NR; /* a panel is used while it is in the L1 cache */
    else if (g->N > wide)
        wide = share_of(g->N, wide, NR);
    const size_t tall = whole ? g->M : work->strip_floats / wide;
    for (size_t n = 0; n < g->N; n += wide)
        for (size_t m = 0; m < g->M; m += tall) {
            const size_t rest = g->M - m;
            void *c = pl_storage_at(g->c, m * g->c_row + n, g->c_storage);
            const tile_part p = { .m = m,
                                  .rows = rest < tall ? rest : tall,
                                  .n = n,
                                  .columns = g->N - n < wide ? g->N - n : wide,
                                  .c = whole ? c : work->strip,
                                  .c_row = whole ? g->c_row : wide };
            run_all_k(work, g, first, &p);
        }
}

static void gemm_tiled(const pl_gemm *g, offset_in_c first,
                       const tile_work *work)
{
    const size_t wide = columns_of_all_k(g, work);
    if (!wide)
        run_parts(work, g, first);
    for (size_t n = 0; n < g->N && wide; n += wide)
        run_rows(work, g, first, n, g->N - n < wide ? g->N - n : wide);
}

/* The same with a workspace on the stack. */
static __attribute__((noinline)) void
gemm_on_stack(const pl_gemm *g, offset_in_c first, pl_products products)
{
    stack_work small;
    tile_work work = work_on_stack(&small);
    work.products = products;
    work.operands = pl_gemm_a(g);
    gemm_tiled(g, first, &work);
}

/* ---- one or two rows: matrix times vector ---- */

enum { GEMV_ROWS = 2, GEMV_COLUMNS = 2048, GEMV_DEPTH = 1024 };

/* Row m of A from k on, as float32: in place, or converted in `work`, rounded
 * to g->a_round. */
static const float *gemv_a(const pl_gemm *g, size_t m, size_t k, size_t K,
                           float work[GEMV_DEPTH])
{
    const void *a = pl_storage_at(g->a, m * g->a_row + k, g->a_storage);
    if (tile_a_is_floats(g))
        return a;
    tile_read_a(work, 0, g, a, 1, K);
    return work;
}

/* The initial values of the chains of `count` columns from n on. */
static void gemv_start(float *acc, const pl_gemm *g, const void *c, size_t n,
                       size_t count)
{
    if (g->start == PL_GEMM_ZERO)
        memset(acc, 0, count * sizeof *acc);
    else if (g->start == PL_GEMM_BIAS)
        tile_bias(acc, g, n, count);
    else
        memcpy(acc, c, count * sizeof *acc);
}

/* B with contiguous rows: read once, row after row, in place. Decoding a token
 * takes as long as reading the weights does. */
PL_INLINE void gemv_rows(const pl_gemm *g, offset_in_c first, flat_kind kind)
{
    float acc[GEMV_COLUMNS], work[GEMV_DEPTH];
    for (size_t m = 0; m < g->M; m++)
        for (size_t n = 0; n < g->N; n += GEMV_COLUMNS) {
            const size_t count = g->N - n < GEMV_COLUMNS ? g->N - n
                                                         : GEMV_COLUMNS;
            const void *c = pl_storage_at(g->c, m * g->c_row + n, g->c_storage);
            gemv_start(acc, g, c, n, count);
            for (size_t k = 0; k < g->K; k += GEMV_DEPTH) {
                const size_t K = g->K - k < GEMV_DEPTH ? g->K - k : GEMV_DEPTH;
                axpy_rows(acc, gemv_a(g, m, k, K, work),
                          pl_storage_at(g->b, k * g->b_row + n, kind.storage),
                          g->b_row, K, count, kind);
            }
            finish_row(g, first, acc, m, n, count);
        }
}

/* The same for a B that is stored transposed, for whole groups of columns. */
PL_INLINE void gemv_columns(const pl_gemm *g, offset_in_c first, flat_kind kind)
{
    float acc[DOT_COLUMNS], work[GEMV_DEPTH];
    for (size_t m = 0; m < g->M; m++)
        for (size_t n = 0; n + DOT_COLUMNS <= g->N; n += DOT_COLUMNS) {
            const void *c = pl_storage_at(g->c, m * g->c_row + n, g->c_storage);
            gemv_start(acc, g, c, n, DOT_COLUMNS);
            for (size_t k = 0; k < g->K; k += GEMV_DEPTH) {
                const size_t K = g->K - k < GEMV_DEPTH ? g->K - k : GEMV_DEPTH;
                dot_columns(acc, gemv_a(g, m, k, K, work),
                            pl_storage_at(g->b, n * g->b_col + k, kind.storage),
                            g->b_col, K, kind);
            }
            finish_row(g, first, acc, m, n, DOT_COLUMNS);
        }
}

/* One function for each storage of the weights. */
#define GEMV(name, storage, round, how)                                        \
    static void gemv_##name(const pl_gemm *g, offset_in_c first)               \
    {                                                                          \
        if (g->b_col == 1)                                                     \
            gemv_rows(g, first, (flat_kind){ storage, round, how });           \
        else                                                                   \
            gemv_columns(g, first, (flat_kind){ storage, round, how });        \
    }
GEMV(f32, PL_STORE_F32, PL_STORE_F32, PL_PRODUCTS_EXACT)
GEMV(round_bf16, PL_STORE_F32, PL_STORE_BF16, PL_PRODUCTS_EXACT)
GEMV(round_f16, PL_STORE_F32, PL_STORE_F16, PL_PRODUCTS_EXACT)
GEMV(bf16, PL_STORE_BF16, PL_STORE_BF16, PL_PRODUCTS_EXACT)
GEMV(f16, PL_STORE_F16, PL_STORE_F16, PL_PRODUCTS_EXACT)
GEMV(amx_round, PL_STORE_F32, PL_STORE_BF16, PL_PRODUCTS_AMX)
GEMV(amx, PL_STORE_BF16, PL_STORE_BF16, PL_PRODUCTS_AMX)
#undef GEMV

/* Returns how many columns it did; the rest is left to the tiles. */
static size_t gemv(const pl_gemm *g, offset_in_c first, pl_products products)
{
    if (products == PL_PRODUCTS_AMX)
        (g->b_storage == PL_STORE_BF16 ? gemv_amx : gemv_amx_round)(g, first);
    else if (g->b_storage == PL_STORE_BF16)
        gemv_bf16(g, first);
    else if (g->b_storage == PL_STORE_F16)
        gemv_f16(g, first);
    else if (g->b_round == PL_STORE_BF16)
        gemv_round_bf16(g, first);
    else if (g->b_round == PL_STORE_F16)
        gemv_round_f16(g, first);
    else
        gemv_f32(g, first);
    return g->b_col == 1 ? g->N : g->N / DOT_COLUMNS * DOT_COLUMNS;
}

static int is_gemv(const pl_gemm *g)
{
    return g->M <= GEMV_ROWS && g->a_col == 1;
}

/* All of g on this thread. */
static void gemm_on_thread(pl_gemm *g, offset_in_c first)
{
    const pl_products products = pl_products_of(g->products, pl_gemm_a(g),
                                                pl_gemm_b(g));
    const int flat = products == PL_PRODUCTS_EXACT ||
                     products == PL_PRODUCTS_AMX;
#if defined(PL_PAIRS)
    const int pairs = products == PAIRS_PRODUCTS && pl_gemm_is_bf16(g);
    if (pairs && !is_gemv(g)) {
        gemm_pairs(g, first);
        return;
    }
#endif
#if defined(PL_PAIRS_CHAIN)
    if (pairs) {
        gemv_pairs(g, first);
        return;
    }
#endif
    if (flat && is_gemv(g)) {
        const size_t done = gemv(g, first, products);
        if (done == g->N)
            return;
        first.n += done;
        g->b = pl_storage_at(g->b, done * g->b_col, g->b_storage);
        g->c = pl_storage_at(g->c, done, g->c_storage);
        if (g->start == PL_GEMM_BIAS)
            g->bias += done;
        g->N -= done;
    }
    tile_work work = work_in_scratch(g);
    work.products = products;
    work.operands = pl_gemm_a(g);
    if (work.columns)
        gemm_tiled(g, first, &work);
    else
        gemm_on_stack(g, first, products);
}

/* ---- threads ---- */

/* The cost of `rows` x `columns`, to be compared: the multiply-adds, and half a
 * vector operation per element of A and B that is read and packed for them. */
static size_t thread_cost(size_t rows, size_t columns)
{
    return rows * columns / VL + (rows + columns) / 2;
}

/* Rows of a tile. */
static size_t tile_rows(const pl_gemm *g)
{
#if defined(PL_PAIRS)
    if (pl_gemm_is_bf16(g) && g->products == PAIRS_PRODUCTS)
        return PAIRS_ROWS;
#endif
    (void)g;
    return MR;
}

/* Threads split rows or columns, whichever leaves the busiest one less. */
void PL_K(gemm)(const pl_gemm *args, int ith, int nth)
{
    pl_gemm g = *args;
    const size_t unit = tile_rows(args), tall = ceil_div(g.M, unit),
                 wide = ceil_div(g.N, NR);
    const size_t by_rows = thread_cost(ceil_div(tall, (size_t)nth) * unit,
                                       wide * NR),
                 by_columns = thread_cost(tall * unit,
                                          ceil_div(wide, (size_t)nth) * NR);
    size_t begin, end;
    offset_in_c first = { 0, 0 };
    if (by_rows < by_columns) {
        pl_threads_slice(tall, ith, nth, &begin, &end);
        if (begin == end)
            return;
        g.a = pl_storage_at(g.a, begin * unit * g.a_row, g.a_storage);
        g.c = pl_storage_at(g.c, begin * unit * g.c_row, g.c_storage);
        g.M = (end * unit < g.M ? end * unit : g.M) - begin * unit;
        first.m = begin * unit;
    } else {
        pl_threads_slice(wide, ith, nth, &begin, &end);
        if (begin == end)
            return;
        g.b = pl_storage_at(g.b, begin * NR * g.b_col, g.b_storage);
        g.c = pl_storage_at(g.c, begin * NR, g.c_storage);
        if (g.start == PL_GEMM_BIAS)
            g.bias += begin * NR;
        g.N = (end * NR < g.N ? end * NR : g.N) - begin * NR;
        first.n = begin * NR;
    }
    gemm_on_thread(&g, first);
}

void PL_K(column_sum)(const pl_column_sum *args, int ith, int nth)
{
    const size_t C = args->C;
    float room[STACK_FLOATS];
    size_t begin, end;
    share_elements(C, ith, nth, &begin, &end);
    for (size_t r = 0; r < args->rows; r++)
        for (size_t from = begin; from < end; from += STACK_FLOATS) {
            const size_t count = stack_count(from, end);
            const float *restrict x = as_floats(room, args->x, r * C + from,
                                                count, args->x_storage);
            float *restrict sum = args->sum + from;
            for (size_t c = 0; c < count; c++)
                sum[c] += x[c];
        }
}
