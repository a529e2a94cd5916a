/* vmath.h: exp, log, tanh and erf (as the normal distribution, which GELU
 * needs) without branches, tables or calls, so that loops over them vectorise
 * and a tail computes what a vector computes.
 *
 * Largest errors against the true value, tested over the whole range of float:
 *   exp1   1.5 ulp
 *   tanh1  1e-7 absolute, 2e-7 relative
 *   normal1, tail1 and their density  1e-7 absolute; down to -4.5 the lower
 *          tail 3e-4 relative
 *   log_sum1  6e-9 beyond the rounding of the result, 1e-8 where multiply-adds
 *          are rounded twice (by the sizes of its terms; of all floats in
 *          [1, 2^17) the worst have 4.0e-9 and 5.9e-9)
 * NaN gives NaN; exp1 is 0 below -104 and inf above 88.73, tanh1 keeps the sign
 * of zero and reaches +-1. tools/fit_vmath.py makes the constants. */
#ifndef PL_KERNELS_VMATH_H
#define PL_KERNELS_VMATH_H

#include "kernels/dialect.h"

PL_INLINE float abs1(float x)
{
    return pl_bits_float(pl_float_bits(x) & 0x7fffffffu);
}

/* |x| with the sign of s. */
PL_INLINE float sign1(float x, float s)
{
    return pl_bits_float((pl_float_bits(x) & 0x7fffffffu) |
                         (pl_float_bits(s) & 0x80000000u));
}

/* e^x = 2^n e^r with n whole and |r| <= ln2 / 2: returns e^r. Adding 1.5 * 2^23
 * rounds to n and leaves it in the low bits. */
PL_INLINE float exp_rest1(float x, uint32_t *whole)
{
    const float round = 12582912.0f;
    const float t = fma1(x, 1.44269502f, round), n = t - round;
    *whole = pl_float_bits(t) - pl_float_bits(round);
    float r = fma1(n, -0.693145752f, x);
    r = fma1(n, -1.42860677e-06f, r);
    float q = 0.00138144672f;
    q = fma1(q, r, 0.00836878084f);
    q = fma1(q, r, 0.0416683927f);
    q = fma1(q, r, 0.166665196f);
    q = fma1(q, r, 0.49999994f);
    return fma1(r * r, q, r) + 1.0f;
}

/* 2^n is applied in two halves, each normal, so that denormal results are
 * rounded once. Unsigned arithmetic throughout: what NaN leaves in n is
 * harmless. */
PL_INLINE float exp1(float x)
{
    uint32_t n;
    x = x > 89.0f ? 89.0f : x;
    x = x < -105.0f ? -105.0f : x;
    const float p = exp_rest1(x, &n);
    const uint32_t low = (n + 256u) >> 1, high = n + 256u - low;
    return p * pl_bits_float((low - 1u) << 23) *
           pl_bits_float((high - 1u) << 23);
}

/* e^x for x <= 88, with fewer steps: 0 where it would be denormal. */
PL_INLINE float exp_down1(float x)
{
    uint32_t n;
    x = x < -88.0f ? -88.0f : x; /* there 2^n is +0 */
    const float p = exp_rest1(x, &n);
    return p * pl_bits_float((n + 127u) << 23);
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

/* Phi(-|x|), the normal distribution's lower tail, and *e = e^(-x^2/2), of
 * which it is a polynomial's multiple: where erf is wanted, so is its density.
 * erf(z) = 1 - 2 Phi(-z sqrt2) for z >= 0. */
PL_INLINE float tail1(float x, float *e)
{
    float a = abs1(x);
    *e = exp_down1(-0.5f * x * x);
    a = a > 4.5f ? 4.5f : a;
    float w = -2.69774347e-07f;
    w = fma1(w, a, 6.82679229e-06f);
    w = fma1(w, a, -7.76497691e-05f);
    w = fma1(w, a, 0.00053218531f);
    w = fma1(w, a, -0.002506705f);
    w = fma1(w, a, 0.00886740163f);
    w = fma1(w, a, -0.025335189f);
    w = fma1(w, a, 0.0618441924f);
    w = fma1(w, a, -0.132781669f);
    w = fma1(w, a, 0.249969915f);
    w = fma1(w, a, -0.398940712f);
    w = fma1(w, a, 0.5f);
    return *e * w;
}

/* Phi(x) = (1 + erf(x / sqrt2)) / 2. */
PL_INLINE float normal1(float x, float *e)
{
    const float tail = tail1(x, e);
    return x < 0.0f ? tail : 1.0f - tail;
}

/* a + b without an error: the sum, and what its rounding lost. */
PL_INLINE float sum1(float a, float b, float *lost)
{
    const float sum = a + b, of_b = sum - a;
    *lost = (a - (sum - of_b)) + (b - of_b);
    return sum;
}

/* max + log(sum) - minus for a normal, positive sum, also where max or minus is
 * infinite; sum itself where that is NaN or infinite. With sum = 2^n (1 + f)
 * and 1 + f in [sqrt(1/2), sqrt(2)), log(sum) = n ln2 + f - f^2/2 + f^3 q(f).
 * The large terms are added without an error; all that their roundings lost is
 * added to the small ones, and rounded once with them at the end. */
PL_INLINE float log_sum1(float max, float sum, float minus)
{
    const uint32_t root_half = 0x3f3504f3u,
                   away = pl_float_bits(sum) - root_half;
    const float f = pl_bits_float(root_half + (away & 0x7fffffu)) - 1.0f;
    const float n = (float)((int32_t)away >> 23);
    float q = 0.0674508736f;
    q = fma1(q, f, -0.117912889f);
    q = fma1(q, f, 0.119558424f);
    q = fma1(q, f, -0.12389484f);
    q = fma1(q, f, 0.142069474f);
    q = fma1(q, f, -0.166685373f);
    q = fma1(q, f, 0.200028628f);
    q = fma1(q, f, -0.250000089f);
    q = fma1(q, f, 0.333332986f);
    const float square = f * f, square_lost = fma1(f, f, -square);
    float lost[4], low = fma1(square * f, q, -0.5f * square_lost);
    low = fma1(n, 1.42860677e-06f, low);
    float high = sum1(n * 0.693145752f, f, &lost[0]);
    high = sum1(high, -0.5f * square, &lost[1]);
    high = sum1(high, max, &lost[2]);
    high = sum1(high, -minus, &lost[3]);
    low = low + lost[0] + lost[1] + lost[2] + lost[3];
    low = abs1(high) < INFINITY ? low : 0.0f; /* an infinity loses NaN */
    return sum < INFINITY ? high + low : sum;
}

#endif
