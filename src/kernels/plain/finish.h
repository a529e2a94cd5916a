/* finish.h: what becomes of a product's sums: the epilogue, and C's storage.
 * Works on a row of a few hundred columns at a time, while its sums are in the
 * cache.
 */
#ifndef PL_KERNELS_PLAIN_FINISH_H
#define PL_KERNELS_PLAIN_FINISH_H

#include "kernels/plain/convert.h"
#include "kernels/plain/gelu.h"
#include "kernels/plain/mask.h"
#include "kernels/plain/plain.h"

/* y = GELU(c) on a row, each in its own storage; y may be c. */
static void epilogue_gelu(void *y, pl_storage y_storage, const void *c,
                          pl_storage c_storage, size_t count, pl_gelu_kind kind)
{
    float x[STACK_FLOATS], z[STACK_FLOATS];
    if (c_storage == PL_STORE_F32 && y_storage == PL_STORE_F32 && y != c) {
        gelu(y, c, count, kind);
        return;
    }
    for (size_t n = 0; n < count; n += STACK_FLOATS) {
        const size_t some = stack_count(n, count);
        gelu(z, as_floats(x, c, n, some, c_storage), some, kind);
        narrow(pl_storage_at(y, n, y_storage), z, some, y_storage);
    }
}

static void epilogue_gelu_bwd(float *c, const void *x, pl_storage storage,
                              size_t count, pl_gelu_kind kind)
{
    float wide[STACK_FLOATS];
    for (size_t n = 0; n < count; n += STACK_FLOATS) {
        const size_t some = stack_count(n, count);
        gelu_bwd(c + n, as_floats(wide, x, n, some, storage), some, kind);
    }
}

/* c = x + drop(c) on columns from n on, a multiple of 4, of row m. */
static void epilogue_residual(const pl_epilogue *epilogue, float *restrict c,
                              const float *restrict x, size_t m, size_t n,
                              size_t count)
{
    const pl_dropout *drop = &epilogue->dropout;
    const size_t row = epilogue->position + m;
    if (drop->threshold)
        mask_apply(drop, 0, (uint32_t)(row % epilogue->T),
                   drop->sequence + (uint32_t)(row / epilogue->T), n, count, c,
                   c);
    for (size_t i = 0; i < count; i++)
        c[i] = x[i] + c[i];
}

/* Prefetches a row of the epilogue's operands, to be read and written. */
static void prefetch_row(const void *rows, size_t at, size_t count,
                         pl_storage storage)
{
    const size_t line = 64 / pl_storage_bytes(storage);
    for (size_t i = 0; rows && i < count; i += line)
        __builtin_prefetch(pl_storage_at(rows, at + i, storage), 1);
}

/* Where a thread's part of C begins in the whole of C. */
typedef struct offset_in_c {
    size_t m, n;
} offset_in_c;

/* A row of C from its sums: the part of the epilogue that belongs before the
 * rounding, the rounding, the part that belongs after it. `sums` may be C. */
static void finish_row(const pl_gemm *g, offset_in_c first, float *sums,
                       size_t m, size_t n, size_t columns)
{
    const pl_epilogue *epilogue = &g->epilogue;
    const size_t at = (first.m + m) * epilogue->row + first.n + n;
    const void *x = pl_storage_at(epilogue->x, at, epilogue->x_storage);
    void *c = pl_storage_at(g->c, m * g->c_row + n, g->c_storage),
         *y = epilogue->y ? pl_storage_at(epilogue->y, at, epilogue->y_storage)
                          : c;
    if (epilogue->kind != PL_EPILOGUE_NONE) {
        prefetch_row(epilogue->y, at + epilogue->row, columns,
                     epilogue->y_storage);
        prefetch_row(epilogue->x, at + epilogue->row, columns,
                     epilogue->x_storage);
    }
    if (epilogue->kind == PL_EPILOGUE_GELU_BWD)
        epilogue_gelu_bwd(sums, x, epilogue->x_storage, columns,
                          epilogue->gelu);
    if (epilogue->kind == PL_EPILOGUE_RESIDUAL)
        epilogue_residual(epilogue, sums, x, first.m + m, first.n + n, columns);
    if (sums != c)
        narrow(c, sums, columns, g->c_storage);
    if (epilogue->kind == PL_EPILOGUE_GELU)
        epilogue_gelu(y, epilogue->y ? epilogue->y_storage : g->c_storage, c,
                      g->c_storage, columns, epilogue->gelu);
}

static int needs_finish(const pl_gemm *g)
{
    return g->c_storage != PL_STORE_F32 || g->epilogue.kind != PL_EPILOGUE_NONE;
}

#endif
