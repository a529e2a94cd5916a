/* swiglu.h: SwiGLU and its derivatives for one element; relu2 is here, too. */
#ifndef PL_KERNELS_SWIGLU_H
#define PL_KERNELS_SWIGLU_H

#include "kernels/vmath.h"

/* 1 / (1 + e^-x): 0 far below zero, where e^-x is infinite, and 1 far above. */
PL_INLINE float sigmoid1(float x)
{
    return 1.0f / (1.0f + exp1(-x));
}

PL_INLINE float swiglu1(float gate, float up)
{
    return gate * sigmoid1(gate) * up;
}

/* The gradient of the gate; *dup is that of the other factor. */
PL_INLINE float swiglu_slopes1(float gate, float up, float dy, float *dup)
{
    const float s = sigmoid1(gate);
    *dup = dy * (gate * s);
    return dy * up * (s * fma1(gate, 1.0f - s, 1.0f));
}

PL_INLINE float relu2_1(float x)
{
    const float positive = x > 0.0f ? x : 0.0f;
    return positive * positive;
}

PL_INLINE float relu2_slope1(float x)
{
    return x > 0.0f ? x + x : 0.0f;
}

#endif
