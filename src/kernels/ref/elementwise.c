/* elementwise.c: GELU, dropout, copy, and how a product ends. */
#include "kernels/ref/ref.h"

#include <math.h>

static double gelu(pl_gelu_kind kind, double x)
{
    if (kind == PL_GELU_RELU2)
        return x > 0 ? x * x : 0;
    if (kind == PL_GELU_ERF)
        return 0.5 * x * (1 + erf(x * M_SQRT1_2));
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double gelu_derivative(pl_gelu_kind kind, double x)
{
    if (kind == PL_GELU_RELU2)
        return x > 0 ? 2 * x : 0;
    if (kind == PL_GELU_ERF)
        return 0.5 * (1 + erf(x * M_SQRT1_2)) +
               x * exp(-0.5 * x * x) / sqrt(2 * M_PI);
    const double t = tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
    const double du = sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * du;
}

void pl_ref_gelu(const pl_gelu *args, int ith, int nth)
{
    (void)nth;
    if (ith)
        return;
    for (size_t i = 0; i < args->count; i++) {
        const float x = pl_storage_get(args->x, i, args->x_storage);
        pl_storage_put(args->y, i, (float)gelu(args->kind, (double)x),
                       args->y_storage);
    }
}

void pl_ref_finish(const pl_gemm *args, size_t m, size_t n, float sum)
{
    const pl_epilogue *epilogue = &args->epilogue;
    const size_t at = m * args->c_row + n, other = m * epilogue->row + n,
                 row = epilogue->position + m;
    double x = 0;
    if (epilogue->kind >= PL_EPILOGUE_GELU_BWD)
        x = (double)pl_storage_get(epilogue->x, other, epilogue->x_storage);
    if (epilogue->kind == PL_EPILOGUE_GELU_BWD)
        sum = (float)((double)sum * gelu_derivative(epilogue->gelu, x));
    else if (epilogue->kind == PL_EPILOGUE_RESIDUAL)
        sum = (float)x + (float)ref_dropped(&epilogue->dropout, 0,
                                            row / epilogue->T,
                                            row % epilogue->T, n, (double)sum);
    pl_storage_put(args->c, at, sum, args->c_storage);
    if (epilogue->kind != PL_EPILOGUE_GELU)
        return;
    const float c = pl_storage_get(args->c, at, args->c_storage);
    const float y = (float)gelu(epilogue->gelu, (double)c);
    if (epilogue->y)
        pl_storage_put(epilogue->y, other, y, epilogue->y_storage);
    else
        pl_storage_put(args->c, at, y, args->c_storage);
}

void pl_ref_drop(const pl_drop *args, int ith, int nth)
{
    (void)nth;
    if (ith)
        return;
    for (size_t r = 0; r < args->rows; r++)
        for (size_t c = 0; c < args->C; c++) {
            const size_t i = r * args->C + c;
            const double y = ref_dropped(&args->dropout, 0, r / args->T,
                                         r % args->T, c, (double)args->x[i]);
            pl_storage_put(args->y, i, (float)y, args->y_storage);
        }
}

void pl_ref_copy(const pl_copy *args, int ith, int nth)
{
    (void)nth;
    if (ith)
        return;
    for (size_t r = 0; r < args->rows; r++) {
        size_t to = r;
        if (args->positions) {
            const size_t b = r / args->queries, i = r % args->queries;
            to = b * args->keys + (size_t)args->positions[b] + i;
        }
        for (size_t c = 0; c < args->C; c++)
            memcpy(pl_storage_at(args->y, to * args->y_row + c, args->storage),
                   pl_storage_at(args->x, r * args->x_row + c, args->storage),
                   pl_storage_bytes(args->storage));
    }
}
