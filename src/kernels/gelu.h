/* gelu.h: GELU and its derivative for one element, in both forms. */
#ifndef PL_KERNELS_GELU_H
#define PL_KERNELS_GELU_H

#include "kernels/vmath.h"

#define GELU_DENSITY        0.398942292f /* 1 / sqrt(2 pi) */
#define GELU_SQRT_2_OVER_PI 0.797884583f
#define GELU_CUBIC          0.044715f

PL_INLINE float gelu_erf1(float x)
{
    float e;
    const float p = normal1(x, &e);
    return (x < -16.0f ? -16.0f : x) * p;
}

PL_INLINE float gelu_tanh1(float x)
{
    const float s = x * x;
    const float u = GELU_SQRT_2_OVER_PI * x * fma1(GELU_CUBIC, s, 1.0f);
    return 0.5f * x * (1.0f + tanh1(u));
}

/* Beyond +-16 the derivative is 0 or 1 and its terms could overflow. */
PL_INLINE float gelu_clamp(float x)
{
    x = x > 16.0f ? 16.0f : x;
    return x < -16.0f ? -16.0f : x;
}

PL_INLINE float gelu_erf_slope1(float x)
{
    x = gelu_clamp(x);
    float e;
    const float p = normal1(x, &e);
    return fma1(x * GELU_DENSITY, e, p);
}

PL_INLINE float gelu_tanh_slope1(float x)
{
    x = gelu_clamp(x);
    const float s = x * x;
    const float t = tanh1(GELU_SQRT_2_OVER_PI * x * fma1(GELU_CUBIC, s, 1.0f));
    const float du = GELU_SQRT_2_OVER_PI * fma1(3.0f * GELU_CUBIC, s, 1.0f);
    return 0.5f * fma1(x * du, fma1(-t, t, 1.0f), 1.0f + t);
}

#endif
