/* gelu.h: GELU and its derivative on rows of floats. */
#ifndef PL_KERNELS_PLAIN_GELU_H
#define PL_KERNELS_PLAIN_GELU_H

#include "kernels/plain/plain.h"
#include "kernels/plain/vmath.h"

static const float density = 0.398942292f, /* 1 / sqrt(2 pi) */
    sqrt_2_over_pi = 0.797884583f, cubic = 0.044715f;

static inline void gelu(float *restrict y, const float *restrict x,
                        size_t count, pl_gelu_kind kind)
{
    if (kind == PL_GELU_ERF)
        for (size_t i = 0; i < count; i++) {
            float e;
            const float p = normal1(x[i], &e);
            y[i] = (x[i] < -16.0f ? -16.0f : x[i]) * p;
        }
    else
        for (size_t i = 0; i < count; i++) {
            const float s = x[i] * x[i];
            const float u = sqrt_2_over_pi * x[i] * fma1(cubic, s, 1.0f);
            y[i] = 0.5f * x[i] * (1.0f + tanh1(u));
        }
}

/* Beyond +-16 the derivative is 0 or 1 and its terms could overflow. */
PL_INLINE float clamp16(float x)
{
    x = x > 16.0f ? 16.0f : x;
    return x < -16.0f ? -16.0f : x;
}

PL_INLINE float gelu_derivative_erf(float x)
{
    x = clamp16(x);
    float e;
    const float p = normal1(x, &e);
    return fma1(x * density, e, p);
}

PL_INLINE float gelu_derivative_tanh(float x)
{
    x = clamp16(x);
    const float s = x * x;
    const float t = tanh1(sqrt_2_over_pi * x * fma1(cubic, s, 1.0f));
    const float du = sqrt_2_over_pi * fma1(3.0f * cubic, s, 1.0f);
    return 0.5f * fma1(x * du, fma1(-t, t, 1.0f), 1.0f + t);
}

static inline void gelu_bwd(float *restrict d, const float *restrict x,
                            size_t count, pl_gelu_kind kind)
{
    if (kind == PL_GELU_ERF)
        for (size_t i = 0; i < count; i++)
            d[i] *= gelu_derivative_erf(x[i]);
    else
        for (size_t i = 0; i < count; i++)
            d[i] *= gelu_derivative_tanh(x[i]);
}

#endif
