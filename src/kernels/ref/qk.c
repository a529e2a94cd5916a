/* qk.c: RMSNorm and rotation of queries' and keys' heads, and the gradients. */
#include "kernels/ref/ref.h"

#include <math.h>

static double at_element(const void *x, size_t i, pl_storage storage)
{
    return (double)pl_storage_get(x, i, storage);
}

static double root_of(const pl_qk *args, size_t at)
{
    double square = 0;
    for (size_t c = 0; c < args->D; c++) {
        const double x = at_element(args->x, at + c, args->storage);
        square += x * x;
    }
    return 1 / sqrt(square / (double)args->D + (double)args->eps);
}

/* Element c of a head after the norm. */
static double normed(const pl_qk *args, size_t at, size_t c,
                     const float *weight, double rstd)
{
    const double x = at_element(args->x, at + c, args->storage);
    return weight ? x * rstd * (double)weight[c] : x;
}

static void head(const pl_qk *args, size_t at, const float *weight, double rstd,
                 const float *angles)
{
    const size_t D = args->D, half = D / 2;
    for (size_t i = 0; i < (angles ? half : D); i++) {
        const double a = normed(args, at, i, weight, rstd);
        if (!angles) {
            pl_storage_put(args->y, at + i, (float)a, args->storage);
            continue;
        }
        const double b = normed(args, at, i + half, weight, rstd),
                     c = (double)angles[i], s = (double)angles[i + half];
        pl_storage_put(args->y, at + i, (float)(a * c - b * s), args->storage);
        pl_storage_put(args->y, at + i + half, (float)(b * c + a * s),
                       args->storage);
    }
}

void pl_ref_qk(const pl_qk *args, int ith, int nth)
{
    const size_t D = args->D, heads = args->H + args->KV,
                 row = (heads + args->KV) * D;
    (void)nth;
    if (ith)
        return;
    for (size_t r = 0; r < args->rows; r++) {
        const size_t first = args->positions
                                 ? (size_t)args->positions[r / args->T]
                                 : args->position;
        const float *angles = args->table
                                  ? args->table + (first + r % args->T) * D
                                  : NULL;
        for (size_t h = 0; h < heads; h++) {
            const size_t at = r * row + h * D;
            const float *weight = h < args->H ? args->q_weight : args->k_weight;
            const double rstd = weight ? root_of(args, at) : 1;
            if (weight)
                args->rstd[r * heads + h] = (float)rstd;
            head(args, at, weight, rstd, angles);
        }
        for (size_t c = heads * D; c < row; c++)
            pl_storage_put(args->y, r * row + c,
                           pl_storage_get(args->x, r * row + c, args->storage),
                           args->storage);
    }
}

/* Element c of a head's gradient before the rotation. */
static double dn_at(const void *d, pl_storage storage, size_t at, size_t c,
                    size_t D, const float *angles)
{
    const size_t half = D / 2, i = c < half ? c : c - half;
    const double own = at_element(d, at + c, storage);
    if (!angles)
        return own;
    const double other = at_element(d, at + (c < half ? c + half : i), storage),
                 turned = other * (double)angles[i + half];
    return own * (double)angles[i] + (c < half ? turned : -turned);
}

static double h_at(const void *x, pl_storage storage, size_t i, float rstd)
{
    return at_element(x, i, storage) * (double)rstd;
}

/* d[c] and its partner are replaced together. */
static void head_back(const pl_qk_bwd *args, size_t at, const float *weight,
                      float rstd, const float *angles)
{
    const size_t D = args->D, half = D / 2, pairs = angles ? half : D;
    double mean = 0;
    for (size_t c = 0; c < D && weight; c++)
        mean += dn_at(args->d, args->d_storage, at, c, D, angles) *
                (double)weight[c] *
                h_at(args->x, args->x_storage, at + c, rstd) / (double)D;
    for (size_t i = 0; i < pairs; i++) {
        double dn[2];
        for (size_t k = 0; k < (angles ? 2 : 1); k++) {
            const size_t c = i + k * half;
            dn[k] = dn_at(args->d, args->d_storage, at, c, D, angles);
            if (weight)
                dn[k] = (dn[k] * (double)weight[c] -
                         h_at(args->x, args->x_storage, at + c, rstd) * mean) *
                        (double)rstd;
        }
        for (size_t k = 0; k < (angles ? 2 : 1); k++)
            pl_storage_put(args->d, at + i + k * half, (float)dn[k],
                           args->d_storage);
    }
}

void pl_ref_qk_bwd(const pl_qk_bwd *args, int ith, int nth)
{
    const size_t D = args->D, heads = args->H + args->KV;
    (void)nth;
    if (ith)
        return;
    for (size_t r = 0; r < args->rows; r++)
        for (size_t h = 0; h < heads; h++)
            head_back(args, (r * (heads + args->KV) + h) * D,
                      h < args->H ? args->q_weight : args->k_weight,
                      args->rstd ? args->rstd[r * heads + h] : 1,
                      args->table ? args->table + r % args->T * D : NULL);
}

void pl_ref_qk_dw(const pl_qk_dw *args, int ith, int nth)
{
    const size_t D = args->D, heads = args->H + args->KV;
    (void)nth;
    if (ith)
        return;
    for (size_t c = 0; c < D; c++) {
        double sums[2] = { 0, 0 };
        for (size_t r = 0; r < args->rows; r++)
            for (size_t h = 0; h < heads; h++) {
                const size_t at = (r * (heads + args->KV) + h) * D;
                const float *angles = args->table
                                          ? args->table + r % args->T * D
                                          : NULL;
                sums[h >= args->H] += dn_at(args->d, args->d_storage, at, c, D,
                                            angles) *
                                      h_at(args->x, args->x_storage, at + c,
                                           args->rstd[r * heads + h]);
            }
        args->dq_weight[c] = (float)((double)args->dq_weight[c] + sums[0]);
        args->dk_weight[c] = (float)((double)args->dk_weight[c] + sums[1]);
    }
}
