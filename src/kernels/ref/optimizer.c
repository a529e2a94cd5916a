/* optimizer.c: sums of squares and AdamW. Both are defined to the bit, in the
 * contract's own order, so this is float where the contract says float. */
#include "kernels/ref/ref.h"

#include <math.h>

static double sumsq_block(const float *x, size_t count)
{
    double lane[8] = { 0 };
    for (size_t i = 0; i < count; i++)
        lane[i % 8] += (double)x[i] * (double)x[i];
    for (int w = 4; w; w /= 2)
        for (int i = 0; i < w; i++)
            lane[i] += lane[i + w];
    return lane[0];
}

void pl_ref_sumsq(const pl_sumsq *args, int ith, int nth)
{
    (void)nth;
    if (ith)
        return;
    for (size_t i = 0; i < args->count; i += PL_SUMSQ_BLOCK) {
        const size_t rest = args->count - i;
        args->partial[i / PL_SUMSQ_BLOCK] = sumsq_block(
            args->x + i, rest < PL_SUMSQ_BLOCK ? rest : PL_SUMSQ_BLOCK);
    }
}

void pl_ref_adamw(const pl_adamw *args, int ith, int nth)
{
    (void)nth;
    if (ith)
        return;
    for (size_t i = 0; i < args->count; i++) {
        const float g = args->g[i] * args->clip;
        float w = args->w[i], m = args->m[i], v = args->v[i];
        w *= args->keep;
        m += (g - m) * args->beta1_rest;
        v = v * args->beta2 + g * g * args->beta2_rest;
        w -= args->step_size * m /
             (sqrtf(v) / args->root_correction + args->eps);
        args->w[i] = w;
        args->m[i] = m;
        args->v[i] = v;
        args->g[i] = 0.0f;
    }
}
