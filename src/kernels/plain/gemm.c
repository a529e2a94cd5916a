/* gemm.c: matrix products and column sums. Threads split the output in whole
 * tiles, never the sum; tile.h does the work. */
#include "kernels/plain/share.h"
#include "kernels/plain/tile.h"

static size_t ceil_div(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

/* A product's own scratch, of which a C of 16 bits gets up to a half; 0 in
 * `columns` if it is too small. */
static tile_room tile_room_of(const pl_gemm *g)
{
    const size_t a = MA_MANY * KC, left = g->scratch_floats - a;
    tile_room room = { .a = g->scratch, .a_rows = MA_MANY };
    if (!g->scratch || g->scratch_floats < a)
        return room;
    if (g->c_storage != PL_STORE_F32) {
        const size_t most = 64 * 1024;
        room.strip = g->scratch + a;
        room.strip_floats = left / 2 < most ? left / 2 : most;
    }
    room.panels = g->scratch + a + room.strip_floats;
    room.columns = (left - room.strip_floats) / PANEL * NR;
    if (room.strip_floats < NR && g->c_storage != PL_STORE_F32)
        room.columns = 0;
    return room;
}

/* Rows or columns, whichever leaves the busiest thread less; columns if equal,
 * since then no two threads pack the same part of B. */
void PL_K(gemm)(const pl_gemm *args, int ith, int nth)
{
    pl_gemm g = *args;
    const size_t tall = ceil_div(g.M, MR), wide = ceil_div(g.N, NR);
    size_t begin, end;
    if (ceil_div(tall, (size_t)nth) * wide <
        ceil_div(wide, (size_t)nth) * tall) {
        pl_threads_slice(tall, ith, nth, &begin, &end);
        if (begin == end)
            return;
        g.a = pl_storage_at(g.a, begin * MR * g.a_row, g.a_storage);
        g.c = pl_storage_at(g.c, begin * MR * g.c_row, g.c_storage);
        g.M = (end * MR < g.M ? end * MR : g.M) - begin * MR;
    } else {
        pl_threads_slice(wide, ith, nth, &begin, &end);
        if (begin == end)
            return;
        g.b = pl_storage_at(g.b, begin * NR * g.b_col, g.b_storage);
        g.c = pl_storage_at(g.c, begin * NR, g.c_storage);
        if (g.start == PL_GEMM_BIAS)
            g.bias += begin * NR;
        g.N = (end * NR < g.N ? end * NR : g.N) - begin * NR;
    }
    tile_room room = tile_room_of(&g);
    if (room.columns)
        tile_gemm(&g, &room);
    else
        tile_gemm_small(&g);
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
