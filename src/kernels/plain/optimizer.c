/* optimizer.c: the gradient's norm by blocks, and AdamW. */
#include "kernels/plain/plain.h"
#include "kernels/plain/share.h"

#include <math.h>

/* A square of floats is exact in double, so fusing would change nothing. */
static double sumsq_block(const float *x, size_t count)
{
    double lane[8] = { 0 };
    size_t j = 0;
    for (; j + 8 <= count; j += 8)
        for (size_t i = 0; i < 8; i++)
            lane[i] += (double)x[j + i] * (double)x[j + i];
    for (size_t i = 0; j + i < count; i++)
        lane[i] += (double)x[j + i] * (double)x[j + i];
    for (int w = 4; w; w /= 2)
        for (int i = 0; i < w; i++)
            lane[i] += lane[i + w];
    return lane[0];
}

void PL_K(sumsq)(const pl_sumsq *args, int ith, int nth)
{
    const size_t count = args->count;
    size_t begin, end;
    pl_threads_slice(count / PL_SUMSQ_BLOCK + (count % PL_SUMSQ_BLOCK != 0),
                     ith, nth, &begin, &end);
    for (size_t j = begin; j < end; j++) {
        const size_t first = j * PL_SUMSQ_BLOCK, rest = count - first;
        args->partial[j] = sumsq_block(
            args->x + first, rest < PL_SUMSQ_BLOCK ? rest : PL_SUMSQ_BLOCK);
    }
}

void PL_K(adamw)(const pl_adamw *args, int ith, int nth)
{
    const pl_adamw a = *args;
    float *restrict w = a.w, *restrict g = a.g, *restrict m = a.m,
                    *restrict v = a.v;
    size_t begin, end;
    share_elements(a.count, ith, nth, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        const float grad = g[i] * a.clip;
        const float mean = m[i] + (grad - m[i]) * a.beta1_rest;
        const float square = v[i] * a.beta2 + grad * grad * a.beta2_rest;
        const float root = sqrtf(square) / a.root_correction + a.eps;
        w[i] = w[i] * a.keep - a.step_size * mean / root;
        m[i] = mean;
        v[i] = square;
        g[i] = 0.0f;
    }
}
