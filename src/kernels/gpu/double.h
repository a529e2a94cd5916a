/* double.h: the little arithmetic that is done in double: sums of losses and of
 * squares, and the factor of clipping. On a device without double it is done
 * by integers, as IEEE 754 says, rounded to nearest, ties to even: the same
 * bits, but for the payload of a NaN. */
#ifndef PL_KERNELS_GPU_DOUBLE_H
#define PL_KERNELS_GPU_DOUBLE_H

#include "kernels/gpu/gpu.h"

#ifndef PL_SOFT_DOUBLE

typedef double real64;

PL_INLINE real64 real64_of(float x)
{
    return (double)x;
}

PL_INLINE real64 real64_bits(uint64_t bits)
{
#if defined(PL_OPENCL)
    return as_double(bits);
#elif defined(PL_CUDA)
    return __longlong_as_double((long long)bits);
#else
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
#endif
}

PL_INLINE real64 real64_add(real64 a, real64 b)
{
    return a + b;
}

/* x * x, which is exact. */
PL_INLINE real64 real64_square(float x)
{
    return (double)x * (double)x;
}

PL_INLINE real64 real64_divide(real64 a, real64 b)
{
    return a / b;
}

PL_INLINE real64 real64_root(real64 a)
{
    return sqrt(a);
}

PL_INLINE int real64_less(real64 a, real64 b)
{
    return a < b;
}

PL_INLINE int real64_is_finite(real64 a)
{
    return a - a == 0.0;
}

PL_INLINE float real64_float(real64 a)
{
    return (float)a;
}

#else

/* The bits of a double. */
typedef uint64_t real64;

#define REAL64_SIGN     0x8000000000000000UL
#define REAL64_INFINITE 0x7ff0000000000000UL
#define REAL64_NAN      0x7ff8000000000000UL
#define REAL64_ONE_BIT  0x0010000000000000UL /* the implied one */

/* A finite number that isn't 0 is m * 2^e with m in [2^62, 2^63). */
typedef struct real64_parts {
    uint64_t m;
    int32_t e;
} real64_parts;

PL_INLINE real64 real64_bits(uint64_t bits)
{
    return bits;
}

PL_INLINE int real64_is_finite(real64 a)
{
    return (a & REAL64_INFINITE) != REAL64_INFINITE;
}

PL_INLINE int real64_is_nan(real64 a)
{
    return (a & ~REAL64_SIGN) > REAL64_INFINITE;
}

PL_INLINE real64_parts real64_normal(uint64_t m, int32_t e)
{
    real64_parts p;
    while (m < 0x4000000000000000UL) {
        m <<= 1;
        e--;
    }
    p.m = m;
    p.e = e;
    return p;
}

PL_INLINE real64_parts real64_open(real64 a)
{
    const uint64_t fraction = a & (REAL64_ONE_BIT - 1);
    const int32_t e = (int32_t)(a >> 52 & 0x7ffu);
    return e ? real64_normal(fraction | REAL64_ONE_BIT, e - 1075)
             : real64_normal(fraction, -1074);
}

/* m * 2^e rounded, m in [2^62, 2^63) and its last bit set if anything below it
 * isn't 0. */
PL_INLINE real64 real64_close(uint64_t sign, uint64_t m, int32_t e)
{
    /* 53 bits are kept, or fewer below 2^-1022 */
    int32_t drop = 10, exponent = e + 62 + 1023;
    if (exponent <= 0) {
        drop += 1 - exponent;
        exponent = 0;
    }
    if (drop > 63)
        return sign;
    const uint64_t rest = m & ((1UL << drop) - 1), half = 1UL << (drop - 1);
    uint64_t kept = m >> drop;
    if (rest > half || (rest == half && (kept & 1)))
        kept++;
    /* the implied one, where there is one, counts as 1 in the exponent; a
     * carry out of the fraction too */
    kept += exponent ? (uint64_t)(exponent - 1) << 52 : 0;
    return kept >= REAL64_INFINITE ? sign | REAL64_INFINITE : sign | kept;
}

PL_INLINE real64 real64_of(float x)
{
    const uint32_t u = pl_float_bits(x);
    const uint64_t sign = (uint64_t)(u & 0x80000000u) << 32;
    const uint32_t a = u & 0x7fffffffu;
    if (a >= 0x7f800000u)
        return a > 0x7f800000u ? REAL64_NAN : sign | REAL64_INFINITE;
    if (a == 0)
        return sign;
    const uint32_t e = a >> 23;
    const uint64_t m = e ? (a & 0x7fffffu) | 0x800000u : a;
    const real64_parts p = real64_normal(m, e ? (int32_t)e - 150 : -149);
    return real64_close(sign, p.m, p.e);
}

PL_INLINE real64 real64_square(float x)
{
    const uint32_t a = pl_float_bits(x) & 0x7fffffffu, e = a >> 23;
    if (a >= 0x7f800000u)
        return a > 0x7f800000u ? REAL64_NAN : REAL64_INFINITE;
    if (a == 0)
        return 0;
    const uint64_t m = e ? (a & 0x7fffffu) | 0x800000u : a;
    const int32_t one = e ? (int32_t)e - 150 : -149;
    const real64_parts p = real64_normal(m * m, 2 * one);
    return real64_close(0, p.m, p.e);
}

/* m >> by, its last bit set if a bit was lost. */
PL_INLINE uint64_t real64_shift(uint64_t m, int32_t by)
{
    if (by > 63)
        return m ? 1 : 0;
    return m >> by | ((m & ((1UL << by) - 1)) ? 1 : 0);
}

PL_INLINE real64 real64_add(real64 a, real64 b)
{
    const uint64_t size_a = a & ~REAL64_SIGN, size_b = b & ~REAL64_SIGN;
    if (size_a < size_b) {
        const real64 other = a;
        a = b;
        b = other;
    }
    const uint64_t sign = a & REAL64_SIGN;
    const int opposite = ((a ^ b) & REAL64_SIGN) != 0;
    if (real64_is_nan(a) || real64_is_nan(b))
        return REAL64_NAN;
    if (!real64_is_finite(a))
        return opposite && !real64_is_finite(b) ? REAL64_NAN : a;
    if ((b & ~REAL64_SIGN) == 0) {
        if ((a & ~REAL64_SIGN) == 0)
            return a & b; /* -0 only for two of them */
        return a;
    }
    const real64_parts p = real64_open(a), q = real64_open(b);
    /* two bits less, so that a sum fits and a difference keeps its rest */
    const uint64_t large = p.m >> 1,
                   small = real64_shift(q.m >> 1, p.e - q.e);
    const uint64_t m = opposite ? large - small : large + small;
    if (m == 0)
        return 0;
    if (m >= 0x4000000000000000UL)
        return real64_close(sign, m, p.e + 1);
    const real64_parts sum = real64_normal(m, p.e + 1);
    return real64_close(sign, sum.m, sum.e);
}

/* Only what clipping divides: a, b > 0 or NaN, or infinite. */
PL_INLINE real64 real64_divide(real64 a, real64 b)
{
    if (real64_is_nan(a) || real64_is_nan(b))
        return REAL64_NAN;
    if (!real64_is_finite(a))
        return real64_is_finite(b) ? a : REAL64_NAN;
    if (!real64_is_finite(b))
        return 0;
    if (b == 0)
        return a == 0 ? REAL64_NAN : REAL64_INFINITE;
    if (a == 0)
        return 0;
    const real64_parts p = real64_open(a), q = real64_open(b);
    uint64_t rest = p.m, m = 0;
    int32_t e = p.e - q.e;
    if (rest < q.m) {
        rest <<= 1;
        e--;
    }
    for (int i = 0; i < 63; i++) {
        m <<= 1;
        if (rest >= q.m) {
            rest -= q.m;
            m |= 1;
        }
        rest <<= 1;
    }
    return real64_close(0, m | (rest ? 1 : 0), e - 62);
}

/* The root of a >= 0. */
PL_INLINE real64 real64_root(real64 a)
{
    if (a == 0 || a == REAL64_SIGN)
        return a;
    if (real64_is_nan(a) || a & REAL64_SIGN)
        return REAL64_NAN;
    if (!real64_is_finite(a))
        return a;
    real64_parts p = real64_open(a);
    if (p.e % 2) {
        p.m >>= 1; /* what a double has below is 0 */
        p.e++;
    }
    /* bit by bit: root * root <= m * 2^62, two bits of m with each */
    uint64_t root = 0, rest = 0, m = p.m;
    for (int i = 0; i < 63; i++) {
        rest = rest << 2 | m >> 62;
        m <<= 2;
        root <<= 1;
        const uint64_t next = root << 1 | 1;
        if (rest >= next) {
            rest -= next;
            root |= 1;
        }
    }
    const real64_parts r = real64_normal(root, (p.e - 62) / 2);
    return real64_close(0, r.m | (rest ? 1 : 0), r.e);
}

/* For a, b >= 0. */
PL_INLINE int real64_less(real64 a, real64 b)
{
    return !real64_is_nan(a) && !real64_is_nan(b) &&
           (a & ~REAL64_SIGN) < (b & ~REAL64_SIGN);
}

PL_INLINE float real64_float(real64 a)
{
    const uint32_t sign = (uint32_t)(a >> 32) & 0x80000000u;
    if (real64_is_nan(a))
        return pl_bits_float(sign | 0x7fc00000u);
    if (!real64_is_finite(a))
        return pl_bits_float(sign | 0x7f800000u);
    if ((a & ~REAL64_SIGN) == 0)
        return pl_bits_float(sign);
    const real64_parts p = real64_open(a);
    int32_t drop = 39, exponent = p.e + 62 + 127;
    if (exponent <= 0) {
        drop += 1 - exponent;
        exponent = 0;
    }
    if (drop > 63)
        return pl_bits_float(sign);
    const uint64_t rest = p.m & ((1UL << drop) - 1), half = 1UL << (drop - 1);
    uint32_t kept = (uint32_t)(p.m >> drop);
    if (rest > half || (rest == half && (kept & 1)))
        kept++;
    kept += exponent > 0 ? (uint32_t)(exponent > 255 ? 255 : exponent - 1) << 23
                         : 0;
    return pl_bits_float(sign | (kept >= 0x7f800000u ? 0x7f800000u : kept));
}

#endif
#endif
