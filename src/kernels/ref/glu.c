/* glu.c: SwiGLU and its gradients. */
#include "kernels/ref/ref.h"

#include <math.h>

void pl_ref_glu(const pl_glu *args, int ith, int nth)
{
    const size_t F = args->F;
    (void)nth;
    if (ith)
        return;
    for (size_t r = 0; r < args->rows; r++)
        for (size_t c = 0; c < F; c++) {
            const size_t at = 2 * r * F + c;
            const double g = (double)pl_storage_get(args->x, at,
                                                    args->x_storage),
                         u = (double)pl_storage_get(args->x, at + F,
                                                    args->x_storage);
            pl_storage_put(args->y, r * F + c, (float)(g / (1 + exp(-g)) * u),
                           args->y_storage);
        }
}

void pl_ref_glu_bwd(const pl_glu_bwd *args, int ith, int nth)
{
    const size_t F = args->F;
    (void)nth;
    if (ith)
        return;
    for (size_t r = 0; r < args->rows; r++)
        for (size_t c = 0; c < F; c++) {
            const size_t at = 2 * r * F + c;
            const double g = (double)pl_storage_get(args->x, at,
                                                    args->x_storage),
                         u = (double)pl_storage_get(args->x, at + F,
                                                    args->x_storage),
                         dy = (double)pl_storage_get(args->dy, r * F + c,
                                                     args->dy_storage),
                         s = 1 / (1 + exp(-g));
            pl_storage_put(args->x, at, (float)(dy * u * s * (1 + g * (1 - s))),
                           args->x_storage);
            pl_storage_put(args->x, at + F, (float)(dy * g * s),
                           args->x_storage);
        }
}
