/* add.c: sums of groups. One rounding: float is the definition. */
#include "kernels/ref/ref.h"

void pl_ref_add(const pl_add *args, int ith, int nth)
{
    (void)nth;
    for (size_t i = 0; i < args->count && ith == 0; i++)
        args->y[i] = args->x[i] + args->y[i];
}

void pl_ref_move(const pl_move *args, int ith, int nth)
{
    (void)nth;
    for (size_t i = 0; i < args->count && ith == 0; i++) {
        args->y[i] = args->x[i];
        args->x[i] = 0.0f;
    }
}
