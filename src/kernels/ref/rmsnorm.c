/* rmsnorm.c: rows over the root of their mean square, and the gradients. */
#include "kernels/ref/ref.h"

#include <math.h>

void pl_ref_rmsnorm(const pl_rmsnorm *args, int ith, int nth)
{
    const size_t C = args->C;
    (void)nth;
    if (ith)
        return;
    for (size_t r = 0; r < args->rows; r++) {
        const float *x = args->x + r * C;
        double square = 0;
        for (size_t c = 0; c < C; c++)
            square += (double)x[c] * (double)x[c];
        const double rstd = 1 / sqrt(square / (double)C + (double)args->eps);
        for (size_t c = 0; c < C; c++)
            pl_storage_put(
                args->y, r * C + c,
                (float)((double)x[c] * rstd * (double)args->weight[c]),
                args->y_storage);
        args->rstd[r] = (float)rstd;
    }
}

static double dy_at(const pl_rmsnorm_bwd *args, size_t i)
{
    return (double)pl_storage_get(args->dy, i, args->dy_storage);
}

static void dx_row(const pl_rmsnorm_bwd *args, size_t r)
{
    const size_t C = args->C;
    const float *x = args->x + r * C;
    const double rstd = (double)args->rstd[r];
    double sum_gh = 0;
    for (size_t c = 0; c < C; c++)
        sum_gh += dy_at(args, r * C + c) * (double)args->weight[c] *
                  (double)x[c] * rstd;
    for (size_t c = 0; c < C; c++) {
        const double g = dy_at(args, r * C + c) * (double)args->weight[c];
        const double h = (double)x[c] * rstd;
        const double d = (g - h * (sum_gh / (double)C)) * rstd;
        float *dx = &args->dx[r * C + c];
        *dx = (float)(args->accumulate ? (double)*dx + d : d);
    }
}

void pl_ref_rmsnorm_bwd(const pl_rmsnorm_bwd *args, int ith, int nth)
{
    const size_t C = args->C;
    (void)nth;
    if (ith)
        return;
    for (size_t r = 0; r < args->rows; r++)
        dx_row(args, r);
    for (size_t c = 0; c < C; c++) {
        double dweight = 0;
        for (size_t r = 0; r < args->rows; r++)
            dweight += dy_at(args, r * C + c) * (double)args->x[r * C + c] *
                       (double)args->rstd[r];
        args->dweight[c] = (float)((double)args->dweight[c] + dweight);
    }
}
