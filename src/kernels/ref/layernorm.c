/* layernorm.c: normalisation of rows and its gradients. */
#include "kernels/ref/ref.h"

#include <math.h>

void pl_ref_layernorm(const pl_layernorm *args, int ith, int nth)
{
    const size_t C = args->C;
    (void)nth;
    if (ith)
        return;
    for (size_t r = 0; r < args->rows; r++) {
        const float *x = args->x + r * C;
        double mean = 0, var = 0;
        for (size_t c = 0; c < C; c++)
            mean += (double)x[c];
        mean /= (double)C;
        for (size_t c = 0; c < C; c++)
            var += ((double)x[c] - mean) * ((double)x[c] - mean);
        var /= (double)C;
        const double rstd = 1 / sqrt(var + (double)args->eps);
        for (size_t c = 0; c < C; c++) {
            const double h = ((double)x[c] - mean) * rstd;
            const double bias = args->bias ? (double)args->bias[c] : 0.0;
            pl_storage_put(args->y, r * C + c,
                           (float)(h * (double)args->weight[c] + bias),
                           args->y_storage);
        }
        args->stats[2 * r] = (float)mean;
        args->stats[2 * r + 1] = (float)rstd;
    }
}

static double dy_at(const pl_layernorm_bwd *args, size_t i)
{
    return (double)pl_storage_get(args->dy, i, args->dy_storage);
}

static void dx_row(const pl_layernorm_bwd *args, size_t r)
{
    const size_t C = args->C;
    const float *x = args->x + r * C;
    const double mean = (double)args->stats[2 * r],
                 rstd = (double)args->stats[2 * r + 1];
    double sum_g = 0, sum_gh = 0;
    for (size_t c = 0; c < C; c++) {
        const double g = dy_at(args, r * C + c) * (double)args->weight[c];
        sum_g += g;
        sum_gh += g * ((double)x[c] - mean) * rstd;
    }
    for (size_t c = 0; c < C; c++) {
        const double g = dy_at(args, r * C + c) * (double)args->weight[c];
        const double h = ((double)x[c] - mean) * rstd;
        const double d = (g - sum_g / (double)C - h * (sum_gh / (double)C)) *
                         rstd;
        float *dx = &args->dx[r * C + c];
        *dx = (float)(args->accumulate ? (double)*dx + d : d);
    }
}

void pl_ref_layernorm_bwd(const pl_layernorm_bwd *args, int ith, int nth)
{
    const size_t C = args->C;
    (void)nth;
    if (ith)
        return;
    for (size_t r = 0; r < args->rows; r++)
        dx_row(args, r);
    for (size_t c = 0; c < C; c++) {
        double dweight = 0, dbias = 0;
        for (size_t r = 0; r < args->rows; r++) {
            const double dy = dy_at(args, r * C + c);
            dbias += dy;
            dweight +=
                dy * ((double)args->x[r * C + c] - (double)args->stats[2 * r]) *
                (double)args->stats[2 * r + 1];
        }
        if (args->dweight)
            args->dweight[c] = (float)((double)args->dweight[c] + dweight);
        if (args->dbias)
            args->dbias[c] = (float)((double)args->dbias[c] + dbias);
    }
}
