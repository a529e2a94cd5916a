/* gemm.c: matrix products and column sums. Threads split the output in whole
 * tiles, never the sum.
 *
 * As many columns of B as the room has place for are packed together, one block
 * of K after the other; tile.h does the rest. A C of 16 bits is computed in
 * strips, which are float until their k ends. */
#include "kernels/plain/flat.h"
#include "kernels/plain/gelu.h"
#include "kernels/plain/mask.h"
#include "kernels/plain/share.h"
#include "kernels/plain/tile.h"

/* Columns of a strip: few, so that it has many rows. */
enum { STRIP_COLUMNS = 128 };

static size_t ceil_div(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

/* Where there is no scratch: few columns, on the stack. */
enum { FEW = 64, STRIP_ROWS = 120 };

typedef struct small_room {
    _Alignas(64) float panels[FEW / NR * PANEL];
    float strip[FEW * STRIP_ROWS];
    float a[MA_FEW * KC];
} small_room;

static tile_room room_small(small_room *small)
{
    return (tile_room){ .panels = small->panels,
                        .panel = PANEL,
                        .columns = FEW,
                        .strip = small->strip,
                        .strip_floats = sizeof small->strip / sizeof(float),
                        .a = small->a,
                        .a_rows = MA_FEW };
}

/* A product's own scratch, of which a C of 16 bits gets up to a half; 0 in
 * `columns` if it is too small. */
static tile_room room_of(const pl_gemm *g)
{
    const size_t a = MA_MANY * KC, left = g->scratch_floats - a;
    tile_room room = { .panel = PANEL, .a = g->scratch, .a_rows = MA_MANY };
    if (!g->scratch || g->scratch_floats < a)
        return room;
    if (g->c_storage != PL_STORE_F32) {
        const size_t most = 64 * 1024;
        room.strip = g->scratch + a;
        room.strip_floats = left / 2 < most ? left / 2 : most;
    }
    room.panels = g->scratch + a + room.strip_floats;
    room.columns = (left - room.strip_floats) / PANEL * NR;
    if (room.strip && room.strip_floats < STRIP_COLUMNS)
        room.columns = 0;
    return room;
}

/* K rows of B from element `at` on, as panels of NR columns; columns beyond
 * `columns` are zero. */
static void pack_b(const tile_room *room, const pl_gemm *g, size_t at, size_t K,
                   size_t columns)
{
    enum { ROWS = 8 }; /* each is read in one go */
    if (columns % NR)
        memset(room->panels + columns / NR * room->panel, 0,
               K * NR * sizeof(float));
    for (size_t k = 0; k < K && g->b_col == 1; k += ROWS)
        for (size_t n = 0; n < columns; n += NR)
            tile_read_b(
                room->panels + n / NR * room->panel + k * NR, NR, g,
                pl_storage_at(g->b, at + k * g->b_row + n, g->b_storage),
                g->b_row, K - k < ROWS ? K - k : ROWS,
                columns - n < NR ? columns - n : NR);
    for (size_t n = 0; n < columns && g->b_col != 1; n += NR)
        tile_pack_turned(room->panels + n / NR * room->panel, room->a, g,
                         pl_storage_at(g->b, at + n * g->b_col, g->b_storage),
                         K, columns - n < NR ? columns - n : NR);
}

/* ---- what follows a product ---- */

enum { PIECE = 256 }; /* elements that pass through the stack */

/* y = GELU(c) on a row, both kept as they are kept; y may be c. */
static void then_gelu(void *y, pl_storage y_storage, const void *c,
                      pl_storage c_storage, size_t count, pl_gelu_kind kind)
{
    float x[PIECE], z[PIECE];
    if (c_storage == PL_STORE_F32 && y_storage == PL_STORE_F32 && y != c) {
        gelu(y, c, count, kind);
        return;
    }
    for (size_t n = 0; n < count; n += PIECE) {
        const size_t some = count - n < PIECE ? count - n : PIECE;
        widen(x, pl_storage_at(c, n, c_storage), some, c_storage);
        gelu(z, x, some, kind);
        narrow(pl_storage_at(y, n, y_storage), z, some, y_storage);
    }
}

static void then_slope(float *c, const void *x, pl_storage storage,
                       size_t count, pl_gelu_kind kind)
{
    float wide[PIECE];
    if (storage == PL_STORE_F32) {
        gelu_bwd(c, x, count, kind);
        return;
    }
    for (size_t n = 0; n < count; n += PIECE) {
        const size_t some = count - n < PIECE ? count - n : PIECE;
        widen(wide, pl_storage_at(x, n, storage), some, storage);
        gelu_bwd(c + n, wide, some, kind);
    }
}

/* c = x + drop(c) on columns from n on, a multiple of 4, of row m. */
static void then_residual(const pl_then *then, float *restrict c,
                          const float *restrict x, size_t m, size_t n,
                          size_t count)
{
    const pl_dropout *drop = &then->dropout;
    const size_t row = then->position + m;
    if (drop->threshold)
        mask_apply(drop, 0, (uint32_t)(row % then->T),
                   drop->sequence + (uint32_t)(row / then->T), n, n + count,
                   c - n, c - n);
    for (size_t i = 0; i < count; i++)
        c[i] = x[i] + c[i];
}

/* A row of what follows a product, soon to be read or written. */
static void fetch_soon(const void *rows, size_t at, size_t count,
                       pl_storage storage)
{
    const size_t line = 64 / pl_storage_bytes(storage);
    for (size_t i = 0; rows && i < count; i += line)
        __builtin_prefetch(pl_storage_at(rows, at + i, storage), 1);
}

/* Rows m .. and columns n .. of g's C, which lies at `first` of the whole. */
typedef struct corner {
    size_t m, n;
} corner;

static void finish(const pl_gemm *g, corner first, size_t m, size_t rows,
                   size_t n, size_t columns)
{
    const pl_then *then = &g->then;
    for (size_t r = m; r < m + rows && then->kind != PL_THEN_NOTHING; r++) {
        void *c = pl_storage_at(g->c, r * g->c_row + n, g->c_storage);
        const size_t at = (first.m + r) * then->row + first.n + n;
        const void *x = pl_storage_at(then->x, at, then->x_storage);
        fetch_soon(then->y, at + then->row, columns, then->y_storage);
        fetch_soon(then->x, at + then->row, columns, then->x_storage);
        switch (then->kind) {
        case PL_THEN_GELU:
            if (then->y)
                then_gelu(pl_storage_at(then->y, at, then->y_storage),
                          then->y_storage, c, g->c_storage, columns,
                          then->gelu);
            else
                then_gelu(c, g->c_storage, c, g->c_storage, columns,
                          then->gelu);
            break;
        case PL_THEN_SLOPE:
            then_slope(c, x, then->x_storage, columns, then->gelu);
            break;
        case PL_THEN_RESIDUAL:
            then_residual(then, c, x, first.m + r, first.n + n, columns);
            break;
        case PL_THEN_NOTHING:
            break;
        }
    }
}

/* ---- through packed panels ---- */

/* The share of each of so many equal parts, in whole units. */
static size_t share_of(size_t count, size_t most, size_t unit)
{
    const size_t parts = (count + most - 1) / most,
                 share = (count + parts - 1) / parts;
    return (share + unit - 1) / unit * unit;
}

/* The last block of K, some rows at a time, so that what follows finds them
 * near. */
static void run_last(const tile_room *room, const pl_gemm *g, corner first,
                     const tile_part *p, size_t k, const float *b)
{
    tile_part some = *p;
    for (size_t m = 0; m < p->rows; m += room->a_rows) {
        const size_t rest = p->rows - m;
        some.m = p->m + m;
        some.rows = rest < room->a_rows ? rest : room->a_rows;
        some.c = p->c + m * p->c_row;
        tile_block(room, g, &some, k, g->K - k, b);
        if (g->c_storage != PL_STORE_F32)
            narrow_rows(
                pl_storage_at(g->c, some.m * g->c_row + p->n, g->c_storage),
                g->c_row, some.c, some.c_row, some.rows, p->columns,
                g->c_storage);
        finish(g, first, some.m, some.rows, p->n, p->columns);
    }
}

/* All of K on a part of C. */
static void run_chain(const tile_room *room, const pl_gemm *g, corner first,
                      const tile_part *p)
{
    const int packed = g->b_col != 1 || p->columns % NR ||
                       g->M >= PACK_FROM_ROWS || g->b_storage != PL_STORE_F32 ||
                       g->b_round != PL_STORE_F32;
    const size_t depth = g->K > KC ? share_of(g->K, KC, 8) : KC;
    size_t k = 0;
    for (;;) {
        const size_t K = g->K - k < depth ? g->K - k : depth;
        const size_t at = k * g->b_row + p->n * g->b_col;
        const float *b = packed ? NULL : (const float *)g->b + at;
        if (packed)
            pack_b(room, g, at, K, p->columns);
        if (k + K == g->K) {
            run_last(room, g, first, p, k, b);
            return;
        }
        tile_block(room, g, p, k, K, b);
        k += K;
    }
}

/* All of g through the room. */
static void gemm_serial(const pl_gemm *g, corner first, const tile_room *room)
{
    const int whole = g->c_storage == PL_STORE_F32;
    size_t wide = room->columns;
    if (!whole && wide > STRIP_COLUMNS)
        wide = STRIP_COLUMNS;
    if (g->M < PACK_FROM_ROWS)
        wide = NR; /* used while hot */
    else if (g->N > wide)
        wide = share_of(g->N, wide, NR);
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
            run_chain(room, g, first, &p);
        }
}

/* The same, packing on the stack. */
static __attribute__((noinline)) void gemm_small(const pl_gemm *g, corner first)
{
    small_room small;
    const tile_room room = room_small(&small);
    gemm_serial(g, first, &room);
}

/* ---- few rows ---- */

enum { FEW_ROWS = 2, ACROSS = 2048, FLAT_DEPTH = 1024 };

/* Row m of A from k on, as float: where it lies, or in `room`. */
static const float *flat_a(const pl_gemm *g, size_t m, size_t k, size_t K,
                           float room[FLAT_DEPTH])
{
    const void *a = pl_storage_at(g->a, m * g->a_row + k, g->a_storage);
    if (g->a_storage == PL_STORE_F32)
        return a;
    widen(room, a, K, g->a_storage);
    return room;
}

/* What the chains of `count` columns from n on start from. */
static void flat_start(float *acc, const pl_gemm *g, const void *c, size_t n,
                       size_t count)
{
    if (g->start == PL_GEMM_ZERO)
        memset(acc, 0, count * sizeof *acc);
    else
        memcpy(acc, g->start == PL_GEMM_BIAS ? g->bias + n : c,
               count * sizeof *acc);
}

/* Weights are read once, row after row, as they lie: what decoding one token
 * takes is what reading them takes. */
PL_INLINE void gemm_rows(const pl_gemm *g, flat_kind kind)
{
    float acc[ACROSS], room[FLAT_DEPTH];
    for (size_t m = 0; m < g->M; m++)
        for (size_t n = 0; n < g->N; n += ACROSS) {
            const size_t count = g->N - n < ACROSS ? g->N - n : ACROSS;
            void *c = pl_storage_at(g->c, m * g->c_row + n, g->c_storage);
            flat_start(acc, g, c, n, count);
            for (size_t k = 0; k < g->K; k += FLAT_DEPTH) {
                const size_t K = g->K - k < FLAT_DEPTH ? g->K - k : FLAT_DEPTH;
                add_rows(acc, flat_a(g, m, k, K, room),
                         pl_storage_at(g->b, k * g->b_row + n, kind.storage),
                         g->b_row, K, count, kind);
            }
            narrow_rows(c, 0, acc, 0, 1, count, g->c_storage);
        }
}

/* The same where columns of B are rows, for whole groups of them. */
PL_INLINE void gemm_columns(const pl_gemm *g, flat_kind kind)
{
    float acc[TOGETHER], room[FLAT_DEPTH];
    for (size_t m = 0; m < g->M; m++)
        for (size_t n = 0; n + TOGETHER <= g->N; n += TOGETHER) {
            void *c = pl_storage_at(g->c, m * g->c_row + n, g->c_storage);
            flat_start(acc, g, c, n, TOGETHER);
            for (size_t k = 0; k < g->K; k += FLAT_DEPTH) {
                const size_t K = g->K - k < FLAT_DEPTH ? g->K - k : FLAT_DEPTH;
                add_columns(acc, flat_a(g, m, k, K, room),
                            pl_storage_at(g->b, n * g->b_col + k, kind.storage),
                            g->b_col, K, kind);
            }
            narrow_rows(c, 0, acc, 0, 1, TOGETHER, g->c_storage);
        }
}

/* One function for each way in which weights are kept. */
#define FLAT(name, storage, round)                                             \
    static void flat_##name(const pl_gemm *g)                                  \
    {                                                                          \
        if (g->b_col == 1)                                                     \
            gemm_rows(g, (flat_kind){ storage, round });                       \
        else                                                                   \
            gemm_columns(g, (flat_kind){ storage, round });                    \
    }
FLAT(f32, PL_STORE_F32, PL_STORE_F32)
FLAT(round_bf16, PL_STORE_F32, PL_STORE_BF16)
FLAT(round_f16, PL_STORE_F32, PL_STORE_F16)
FLAT(bf16, PL_STORE_BF16, PL_STORE_BF16)
FLAT(f16, PL_STORE_F16, PL_STORE_F16)
#undef FLAT

/* Returns the first column that stays to be done. */
static size_t gemm_flat(const pl_gemm *g)
{
    if (g->b_storage == PL_STORE_BF16)
        flat_bf16(g);
    else if (g->b_storage == PL_STORE_F16)
        flat_f16(g);
    else if (g->b_round == PL_STORE_BF16)
        flat_round_bf16(g);
    else if (g->b_round == PL_STORE_F16)
        flat_round_f16(g);
    else
        flat_f32(g);
    return g->b_col == 1 ? g->N : g->N / TOGETHER * TOGETHER;
}

static int is_flat(const pl_gemm *g)
{
    return g->M <= FEW_ROWS && g->a_col == 1;
}

/* All of g on this thread. */
static void gemm_mine(pl_gemm *g, corner first)
{
    if (is_flat(g)) {
        const size_t done = gemm_flat(g);
        finish(g, first, 0, g->M, 0, done);
        if (done == g->N)
            return;
        first.n += done;
        g->b = pl_storage_at(g->b, done * g->b_col, g->b_storage);
        g->c = pl_storage_at(g->c, done, g->c_storage);
        if (g->start == PL_GEMM_BIAS)
            g->bias += done;
        g->N -= done;
    }
    const tile_room room = room_of(g);
    if (room.columns)
        gemm_serial(g, first, &room);
    else
        gemm_small(g, first);
}

/* ---- threads ---- */

/* Of tiles, to compare: what is computed, and the rows of A and columns of B
 * that are read and packed for it, at half a vector's step per element. */
static size_t thread_cost(size_t tall, size_t wide)
{
    return tall * MR * wide * NR / VL + (tall * MR + wide * NR) / 2;
}

/* Rows or columns, whichever leaves the busiest thread less. */
void PL_K(gemm)(const pl_gemm *args, int ith, int nth)
{
    pl_gemm g = *args;
    const size_t tall = ceil_div(g.M, MR), wide = ceil_div(g.N, NR);
    const size_t by_rows = thread_cost(ceil_div(tall, (size_t)nth), wide),
                 by_columns = thread_cost(tall, ceil_div(wide, (size_t)nth));
    size_t begin, end;
    corner first = { 0, 0 };
    if (by_rows < by_columns) {
        pl_threads_slice(tall, ith, nth, &begin, &end);
        if (begin == end)
            return;
        g.a = pl_storage_at(g.a, begin * MR * g.a_row, g.a_storage);
        g.c = pl_storage_at(g.c, begin * MR * g.c_row, g.c_storage);
        g.M = (end * MR < g.M ? end * MR : g.M) - begin * MR;
        first.m = begin * MR;
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
    gemm_mine(&g, first);
}

void PL_K(column_sum)(const pl_column_sum *args, int ith, int nth)
{
    const size_t C = args->C;
    float *restrict sum = args->sum;
    size_t begin, end;
    share_elements(C, ith, nth, &begin, &end);
    for (size_t r = 0; r < args->rows; r++) {
        const float *restrict x = args->x + r * C;
        for (size_t c = begin; c < end; c++)
            sum[c] += x[c];
    }
}
