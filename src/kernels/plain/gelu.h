/* gelu.h: GELU and its derivative on rows of floats. */
#ifndef PL_KERNELS_PLAIN_GELU_H
#define PL_KERNELS_PLAIN_GELU_H

#include "kernels/gelu.h"
#include "kernels/plain/plain.h"
#include "kernels/swiglu.h"

static inline void gelu(float *restrict y, const float *restrict x,
                        size_t count, pl_gelu_kind kind)
{
    if (kind == PL_GELU_ERF)
        for (size_t i = 0; i < count; i++)
            y[i] = gelu_erf1(x[i]);
    else if (kind == PL_GELU_RELU2)
        for (size_t i = 0; i < count; i++)
            y[i] = relu2_1(x[i]);
    else
        for (size_t i = 0; i < count; i++)
            y[i] = gelu_tanh1(x[i]);
}

static inline void gelu_bwd(float *restrict d, const float *restrict x,
                            size_t count, pl_gelu_kind kind)
{
    if (kind == PL_GELU_ERF)
        for (size_t i = 0; i < count; i++)
            d[i] *= gelu_erf_slope1(x[i]);
    else if (kind == PL_GELU_RELU2)
        for (size_t i = 0; i < count; i++)
            d[i] *= relu2_slope1(x[i]);
    else
        for (size_t i = 0; i < count; i++)
            d[i] *= gelu_tanh_slope1(x[i]);
}

#endif
