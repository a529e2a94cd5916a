/* elementwise.c: GELU, residual sum, dropout, copy. */
#include "kernels/ref/ref.h"

#include <math.h>

static double gelu(pl_gelu_kind kind, double x)
{
    if (kind == PL_GELU_ERF)
        return 0.5 * x * (1 + erf(x * M_SQRT1_2));
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(pl_gelu_kind kind, double x)
{
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

void pl_ref_gelu_bwd(const pl_gelu_bwd *args, int ith, int nth)
{
    (void)nth;
    if (ith)
        return;
    for (size_t i = 0; i < args->count; i++) {
        const float x = pl_storage_get(args->x, i, args->x_storage);
        args->d[i] = (float)((double)args->d[i] *
                             gelu_slope(args->kind, (double)x));
    }
}

void pl_ref_residual(const pl_residual *args, int ith, int nth)
{
    (void)nth;
    if (ith)
        return;
    for (size_t r = 0; r < args->rows; r++) {
        const size_t row = args->position + r;
        for (size_t c = 0; c < args->C; c++) {
            const size_t i = r * args->C + c;
            const float y = (float)ref_dropped(&args->dropout, 0, row / args->T,
                                               row % args->T, c,
                                               (double)args->y[i]);
            args->y[i] = args->x[i] + y;
        }
    }
}

void pl_ref_drop(const pl_drop *args, int ith, int nth)
{
    (void)nth;
    if (ith)
        return;
    for (size_t r = 0; r < args->rows; r++)
        for (size_t c = 0; c < args->C; c++) {
            const size_t i = r * args->C + c;
            args->y[i] = (float)ref_dropped(&args->dropout, 0, r / args->T,
                                            r % args->T, c, (double)args->x[i]);
        }
}

void pl_ref_copy(const pl_copy *args, int ith, int nth)
{
    (void)nth;
    if (ith)
        return;
    for (size_t r = 0; r < args->rows; r++)
        for (size_t c = 0; c < args->C; c++)
            memcpy(pl_storage_at(args->y, r * args->y_row + c, args->storage),
                   pl_storage_at(args->x, r * args->x_row + c, args->storage),
                   pl_storage_bytes(args->storage));
}
