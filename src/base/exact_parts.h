/* exact_parts.h: what both grades of exact.h are made of. For exact.c and
 * exact_quick.c alone. */
#ifndef PL_BASE_EXACT_PARTS_H
#define PL_BASE_EXACT_PARTS_H

#include <float.h>
#include <stdint.h>
#include <string.h>

_Static_assert(FLT_EVAL_METHOD == 0, "doubles must be rounded to doubles");
_Static_assert(DBL_MANT_DIG == 53, "doubles must be IEEE 754's");

static inline uint64_t pl_exact_bits(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double pl_exact_double(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* high + low, where |low| is at most half an ulp of high. */
typedef struct pl_exact_pair {
    double high, low;
} pl_exact_pair;

/* a + b, exactly, where |a| >= |b| or a is 0. */
static inline pl_exact_pair pl_exact_fast_sum(double a, double b)
{
    const double sum = a + b;
    return (pl_exact_pair){ sum, b - (sum - a) };
}

/* a + b, exactly. */
static inline pl_exact_pair pl_exact_sum(double a, double b)
{
    const double sum = a + b, of_b = sum - a;
    return (pl_exact_pair){ sum, (a - (sum - of_b)) + (b - of_b) };
}

/* a * b, but for 2^-106 of it: the upper 26 bits of each are multiplied by
 * themselves. No fma, which processors without it would call libm for. */
static inline pl_exact_pair pl_exact_product(double a, double b)
{
    const uint64_t upper = ~(uint64_t)0x7ffffff;
    const double product = a * b,
                 a1 = pl_exact_double(pl_exact_bits(a) & upper),
                 b1 = pl_exact_double(pl_exact_bits(b) & upper), a2 = a - a1,
                 b2 = b - b1;
    return (pl_exact_pair){ product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) +
                                         a2 * b2 };
}

/* The nearest whole number, |x| below 2^51: adding 1.5 * 2^52 rounds. */
static inline double pl_exact_nearest(double x)
{
    return (x + 0x1.8p52) - 0x1.8p52;
}

/* x * 2^n for x in [1/2, 2] and n in [-1100, 1030]. By halves, each of which
 * is a normal number: only the second product can be rounded. */
static inline double pl_exact_scaled(double x, int n)
{
    const int half = n / 2;
    return x * pl_exact_double((uint64_t)(half + 1023) << 52) *
           pl_exact_double((uint64_t)(n - half + 1023) << 52);
}

/* x = (1 + *rest) * 2^n with 1 + *rest in [sqrt(1/2), sqrt(2)), returns n; x is
 * positive and normal. *rest is exact. */
static inline int pl_exact_take_apart(double x, double *rest)
{
    const uint64_t root_half = 0x3fe6a09e667f3bcd;
    const uint64_t away = pl_exact_bits(x) - root_half;
    const int n = (int)((int64_t)away >> 52);
    *rest = pl_exact_double(root_half + (away & 0xfffffffffffff)) - 1.0;
    return n;
}

/* ln 2 in pieces of 42 bits: their products with whole numbers below 2^11 are
 * exact. */
#define PL_EXACT_LN2_1    0x1.62e42fefa38p-1
#define PL_EXACT_LN2_2    0x1.ef35793c76p-45
#define PL_EXACT_LN2_3    0x1.cc01f97b57a08p-87
#define PL_EXACT_LN2_REST 0x1.ef35793c7673p-45 /* all but the first */
#define PL_EXACT_LOG2_E   0x1.71547652b82fep+0

#endif
