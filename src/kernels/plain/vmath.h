/* vmath.h: exp, tanh and erf without branches, tables or calls, so that loops
 * over them vectorise and a tail computes what a vector computes.
 *
 * Largest errors against the true value, tested over the whole range of float:
 *   exp1   1.5 ulp
 *   tanh1  1e-7 absolute, 2e-7 relative
 *   erf1   1e-7 absolute, 2e-7 relative
 * NaN gives NaN; exp1 is 0 below -104 and inf above 88.73, tanh1 and erf1 keep
 * the sign of zero and reach +-1. tools/fit_vmath.py makes the constants. */
#ifndef PL_KERNELS_PLAIN_VMATH_H
#define PL_KERNELS_PLAIN_VMATH_H

#include "kernels/plain/vec.h"

#include <stdint.h>

PL_INLINE uint32_t float_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

PL_INLINE float bits_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

PL_INLINE float abs1(float x)
{
    return bits_float(float_bits(x) & 0x7fffffffu);
}

/* |x| with the sign of s. */
PL_INLINE float sign1(float x, float s)
{
    return bits_float((float_bits(x) & 0x7fffffffu) |
                      (float_bits(s) & 0x80000000u));
}

/* e^x = 2^n e^r with n whole and |r| <= ln2 / 2. Adding 1.5 * 2^23 rounds to
 * n and leaves it in the low bits. 2^n is applied in two halves, each normal,
 * so that denormal results are rounded once. Unsigned arithmetic throughout:
 * what NaN leaves in n is harmless. */
PL_INLINE float exp1(float x)
{
    const float round = 12582912.0f;
    x = x > 89.0f ? 89.0f : x;
    x = x < -105.0f ? -105.0f : x;
    float t = fma1(x, 1.44269502f, round);
    float n = t - round;
    float r = fma1(n, -0.693145752f, x);
    r = fma1(n, -1.42860677e-06f, r);
    float q = 0.00138144672f;
    q = fma1(q, r, 0.00836878084f);
    q = fma1(q, r, 0.0416683927f);
    q = fma1(q, r, 0.166665196f);
    q = fma1(q, r, 0.49999994f);
    float p = fma1(r * r, q, r) + 1.0f;
    uint32_t biased = float_bits(t) - float_bits(round) + 256u;
    uint32_t low = biased >> 1, high = biased - low;
    return p * bits_float((low - 1u) << 23) * bits_float((high - 1u) << 23);
}

/* Small: x + x^3 q(x^2). Large: 1 - 2 / (e^2|x| + 1). */
PL_INLINE float tanh1(float x)
{
    float a = abs1(x), s = x * x;
    float q = -0.00571704516f;
    q = fma1(q, s, 0.020650588f);
    q = fma1(q, s, -0.0537434965f);
    q = fma1(q, s, 0.133314908f);
    q = fma1(q, s, -0.333332837f);
    float small = fma1(q * s, a, a);
    float large = 1.0f - 2.0f / (exp1(a + a) + 1.0f);
    return sign1(a < 0.625f ? small : large, x);
}

/* Small: x + x q(x^2). Large: 1 - erfc, and log(erfc) is a polynomial. */
PL_INLINE float erf1(float x)
{
    float a = abs1(x), s = x * x;
    float q = 7.85386146e-05f;
    q = fma1(q, s, -0.000801019371f);
    q = fma1(q, s, 0.00518832775f);
    q = fma1(q, s, -0.0268538129f);
    q = fma1(q, s, 0.112835854f);
    q = fma1(q, s, -0.37612626f);
    q = fma1(q, s, 0.128379166f);
    float b = a > 4.0f ? 4.0f : a;
    float e = -2.16867484e-05f;
    e = fma1(e, b, 0.000441335113f);
    e = fma1(e, b, -0.00420455541f);
    e = fma1(e, b, 0.0252082385f);
    e = fma1(e, b, -0.108418547f);
    e = fma1(e, b, -0.633219898f);
    e = fma1(e, b, -1.12957835f);
    e = fma1(e, b, 0.000188036473f);
    float large = 1.0f - exp1(e);
    return sign1(a < 1.0f ? fma1(a, q, a) : large, x);
}

#endif
