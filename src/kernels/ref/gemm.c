/* gemm.c: matrix product and column sum. */
#include "kernels/ref/ref.h"

static float operand(const void *x, size_t at, pl_storage storage,
                     pl_storage round)
{
    const float value = pl_storage_get(x, at, storage);
    return storage == PL_STORE_F32 ? pl_storage_round(value, round) : value;
}

static float element_a(const pl_gemm *args, size_t m, size_t k)
{
    return operand(args->a, m * args->a_row + k * args->a_col, args->a_storage,
                   args->a_round);
}

static float element_b(const pl_gemm *args, size_t k, size_t n)
{
    return operand(args->b, k * args->b_row + n * args->b_col, args->b_storage,
                   args->b_round);
}

static float start(const pl_gemm *args, size_t m, size_t n)
{
    switch (args->start) {
    case PL_GEMM_BIAS:
        return pl_gemm_is_bf16(args) ? pl_sum_start(args->bias[n])
                                     : args->bias[n];
    case PL_GEMM_KEEP:
        return pl_storage_get(args->c, m * args->c_row + n, args->c_storage);
    case PL_GEMM_ZERO:
        break;
    }
    return 0;
}

void pl_ref_gemm(const pl_gemm *args, int ith, int nth)
{
    (void)nth;
    const pl_storage a = pl_gemm_a(args), b = pl_gemm_b(args);
    const pl_products products = pl_products_of(args->products, a, b);
    if (ith)
        return;
    for (size_t m = 0; m < args->M; m++)
        for (size_t n = 0; n < args->N; n++) {
            ref_sum sum = pl_ref_sum_begin(products, a, start(args, m, n));
            for (size_t k = 0; k < args->K; k++)
                pl_ref_sum_add(&sum, (double)element_a(args, m, k),
                               (double)element_b(args, k, n));
            pl_ref_finish(args, m, n, (float)pl_ref_sum_total(&sum));
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
            sum += (double)pl_storage_get(args->x, r * args->C + c,
                                          args->x_storage);
        args->sum[c] = (float)sum;
    }
}
