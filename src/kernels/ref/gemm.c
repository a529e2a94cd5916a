/* gemm.c: matrix product and column sum. */
#include "kernels/ref/ref.h"

void pl_ref_gemm(const pl_gemm *args, int ith, int nth)
{
    (void)nth;
    if (ith)
        return;
    for (size_t m = 0; m < args->M; m++)
        for (size_t n = 0; n < args->N; n++) {
            float *c = &args->c[m * args->c_row + n];
            double sum = args->start == PL_GEMM_ZERO   ? 0.0
                         : args->start == PL_GEMM_BIAS ? (double)args->bias[n]
                                                       : (double)*c;
            for (size_t k = 0; k < args->K; k++)
                sum += (double)args->a[m * args->a_row + k * args->a_col] *
                       (double)args->b[k * args->b_row + n * args->b_col];
            *c = (float)sum;
        }
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
