/* amx_fma.h: a tile of a product in the arithmetic of Intel's AMX (tensor.h),
 * by fused multiply-adds: what processors without these instructions compute,
 * at about the speed of exact products. In each group of 32 k a tile has two
 * chains for each of its sums, over the even and the odd k. */
#ifndef PL_KERNELS_PLAIN_AMX_FMA_H
#define PL_KERNELS_PLAIN_AMX_FMA_H

#include "kernels/plain/job.h"

/* Rows of a tile: three numbers for each sum have to fit the registers. */
#if (defined(__AVX512F__) && defined(__FMA__)) || defined(PL_NEON)
enum { AMX_FMA_ROWS = 4 };
#else
enum { AMX_FMA_ROWS = 2 };
#endif

/* The products of one k, to one of both chains. */
PL_INLINE void amx_fma_add(vf sums[AMX_FMA_ROWS][NV], const int rows,
                           const float *a, size_t a_row, const float *b)
{
    vf column[NV];
    PL_UNROLL
    for (int j = 0; j < NV; j++)
        column[j] = v_load(b + j * VL);
    PL_UNROLL
    for (int i = 0; i < rows; i++) {
        const vf row = v_all(a[(size_t)i * a_row]);
        PL_UNROLL
        for (int j = 0; j < NV; j++)
            sums[i][j] = v_fma(row, column[j], sums[i][j]);
    }
}

/* rows, a_row or a_col are constants where this is inlined. */
PL_INLINE void amx_fma_run(const int rows, const tile_job *t, size_t a_row,
                           size_t a_col)
{
    vf c[AMX_FMA_ROWS][NV];
    PL_UNROLL
    for (int i = 0; i < rows; i++) {
        PL_UNROLL
        for (int j = 0; j < NV; j++)
            c[i][j] = t->from ? v_load(t->from + (size_t)i * t->from_row +
                                       (size_t)(j * VL))
                              : v_all(0);
    }
    for (size_t k = 0; k < t->K; k += PL_AMX_GROUP) {
        const size_t rest = t->K - k,
                     count = rest < PL_AMX_GROUP ? rest : PL_AMX_GROUP;
        const float *a = t->a + k * a_col, *b = t->b + k * t->b_row;
        vf even[AMX_FMA_ROWS][NV] = { { { 0 } } },
           odd[AMX_FMA_ROWS][NV] = { { { 0 } } };
        size_t i = 0;
        for (; i + 2 <= count; i += 2) {
            amx_fma_add(even, rows, a, a_row, b);
            amx_fma_add(odd, rows, a + a_col, a_row, b + t->b_row);
            a += 2 * a_col;
            b += 2 * t->b_row;
        }
        if (i < count)
            amx_fma_add(even, rows, a, a_row, b);
        PL_UNROLL
        for (int r = 0; r < rows; r++) {
            PL_UNROLL
            for (int j = 0; j < NV; j++)
                c[r][j] += even[r][j] + odd[r][j];
        }
    }
    PL_UNROLL
    for (int i = 0; i < rows; i++) {
        PL_UNROLL
        for (int j = 0; j < NV; j++)
            v_store(t->c + (size_t)i * t->c_row + (size_t)(j * VL), c[i][j]);
    }
}

#define AMX_FMA_TILE(rows)                                                     \
    static void amx_fma_tile_##rows(const tile_job *t)                         \
    {                                                                          \
        if (t->a_col == 1)                                                     \
            amx_fma_run(rows, t, t->a_row, 1);                                 \
        else                                                                   \
            amx_fma_run(rows, t, 1, t->a_col);                                 \
    }
AMX_FMA_TILE(AMX_FMA_ROWS)
AMX_FMA_TILE(1)
#undef AMX_FMA_TILE

/* Runs the tallest tile that `rows` rows fill, NR columns wide; returns its
 * number of rows. */
static size_t amx_fma_step(const tile_job *t, size_t rows)
{
    const int tall = rows >= AMX_FMA_ROWS;
    (tall ? amx_fma_tile_AMX_FMA_ROWS : amx_fma_tile_1)(t);
    return tall ? AMX_FMA_ROWS : 1;
}

#endif
