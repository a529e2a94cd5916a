/* gemm.c: matrix product and column sum. */
#include "kernels/ref/ref.h"

static double product(const pl_gemm *args, size_t m, size_t n, size_t k)
{
    const float a = pl_storage_get(args->a, m * args->a_row + k * args->a_col,
                                   args->a_storage);
    float b = pl_storage_get(args->b, k * args->b_row + n * args->b_col,
                             args->b_storage);
    if (args->b_storage == PL_STORE_F32)
        b = pl_storage_round(b, args->b_round);
    return (double)a * (double)b;
}

void pl_ref_gemm(const pl_gemm *args, int ith, int nth)
{
    (void)nth;
    if (ith)
        return;
    for (size_t m = 0; m < args->M; m++)
        for (size_t n = 0; n < args->N; n++) {
            const size_t at = m * args->c_row + n;
            double sum = 0;
            if (args->start == PL_GEMM_BIAS)
                sum = (double)args->bias[n];
            else if (args->start == PL_GEMM_KEEP)
                sum = (double)pl_storage_get(args->c, at, args->c_storage);
            for (size_t k = 0; k < args->K; k++)
                sum += product(args, m, n, k);
            pl_storage_put(args->c, at, (float)sum, args->c_storage);
        }
    pl_ref_epilogue(args);
}

void pl_ref_column_sum(const pl_column_sum *args, int ith, int nth)
{
    (void)nth;
    if (ith)
        return;
    for (size_t c = 0; c < args->C; c++) {
        double sum = (double)args->sum[c];
        for (size_t r = 0; r < args->rows; r++)
            sum += (double)args->x[r * args->C + c];
        args->sum[c] = (float)sum;
    }
}
