/* exact.c: the grade of exact.h that is nearly always the nearest double.
 * Everything is computed in pairs of doubles, about 100 bits, and rounded once
 * at the end: the result is another than the nearest double only if the true
 * value is within 2^-35 ulp or so of the middle between two. The series are
 * the textbooks', term by term. */
#include "base/exact.h"
#include "base/exact_parts.h"

#include <math.h>

typedef pl_exact_pair pair;

static pair pair_add(pair a, pair b)
{
    const pair high = pl_exact_sum(a.high, b.high),
               low = pl_exact_sum(a.low, b.low),
               sum = pl_exact_fast_sum(high.high, high.low + low.high);
    return pl_exact_fast_sum(sum.high, sum.low + low.low);
}

static pair pair_times(pair a, pair b)
{
    const pair p = pl_exact_product(a.high, b.high);
    return pl_exact_fast_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}

static pair pair_over(pair a, pair b)
{
    const double q = a.high / b.high;
    const pair back = pair_times((pair){ q, 0 }, b),
               rest = pair_add(a, (pair){ -back.high, -back.low });
    return pl_exact_fast_sum(q, rest.high / b.high);
}

static pair pair_of(double x)
{
    return (pair){ x, 0.0 };
}

/* e^x = *result * 2^n, returns n; |x| below 1000. The series ends at x^26/26!,
 * with |x| <= 0.347. */
static int exp_pair(pair x, pair *result)
{
    const double n = pl_exact_nearest(x.high * PL_EXACT_LOG2_E);
    pair r = pair_add(x, pair_of(-n * PL_EXACT_LN2_1));
    r = pair_add(r, pair_of(-n * PL_EXACT_LN2_2));
    r = pair_add(r, pair_of(-n * PL_EXACT_LN2_3));
    pair sum = pair_of(1.0);
    for (int k = 26; k >= 1; k--)
        sum = pair_add(pair_of(1.0), pair_times(r, pair_over(sum, pair_of(k))));
    *result = sum;
    return (int)n;
}

/* x is positive and finite. log(x) = n ln 2 + 2 atanh(s), s = f / (2 + f), by
 * its series to s^45/45, with |s| <= 0.172. */
static pair log_pair(double x)
{
    double f, n = 0.0;
    if (x < 0x1p-1022) {
        x *= 0x1p60;
        n = -60.0;
    }
    n += (double)pl_exact_take_apart(x, &f);
    const pair s = pair_over(pair_of(f), pl_exact_sum(2.0, f)),
               z = pair_times(s, s);
    pair sum = pair_of(0.0);
    for (int k = 45; k >= 1; k -= 2)
        sum = pair_add(pair_times(z, sum), pair_over(pair_of(1.0), pair_of(k)));
    sum = pair_times(pair_times(pair_of(2.0), s), sum);
    sum = pair_add(pair_of(n * PL_EXACT_LN2_3), sum);
    sum = pair_add(pair_of(n * PL_EXACT_LN2_2), sum);
    return pair_add(pair_of(n * PL_EXACT_LN2_1), sum);
}

/* e^x, rounded; any x. */
static double exp_rounded(pair x)
{
    pair result;
    if (!(x.high < 709.8)) /* or NaN */
        return x.high >= 709.8 ? HUGE_VAL : x.high;
    if (x.high < -745.2)
        return 0.0;
    const int n = exp_pair(x, &result);
    return pl_exact_scaled(result.high, n);
}

double pl_exact_exp(double x)
{
    return exp_rounded(pair_of(x));
}

/* log(x) times `unit`. */
static double log_rounded(double x, pair unit)
{
    if (x == 0.0)
        return -HUGE_VAL;
    if (!(x > 0.0)) /* or NaN */
        return x < 0.0 ? (double)NAN : x;
    return x == HUGE_VAL ? x : pair_times(log_pair(x), unit).high;
}

double pl_exact_log(double x)
{
    return log_rounded(x, pair_of(1.0));
}

double pl_exact_log2(double x)
{
    return log_rounded(x, (pair){ PL_EXACT_LOG2_E, 0x1.777d0ffda0d24p-56 });
}

double pl_exact_log10(double x)
{
    return log_rounded(x,
                       (pair){ 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57 });
}

/* 0: y is no whole number; 1: an odd one; 2: an even one, as all are from
 * 2^53 on. */
static int wholeness(double y)
{
    const double size = fabs(y);
    if (size >= 0x1p53)
        return 2;
    if ((double)(int64_t)size != size)
        return 0;
    return (int64_t)size & 1 ? 1 : 2;
}

/* For x >= 0. No |y| is too large here: but for 1, log(x) is at least 2^-53 in
 * magnitude, so that from 2^65 on all powers are 0 or infinite. */
static double positive_pow(double x, double y)
{
    if (x == 1.0)
        return 1.0;
    if (x == 0.0 || x == HUGE_VAL || fabs(y) >= 0x1p65)
        return (x > 1.0) == (y > 0.0) ? HUGE_VAL : 0.0;
    return exp_rounded(pair_times(log_pair(x), pair_of(y)));
}

double pl_exact_pow(double x, double y)
{
    if (x == 1.0 || y == 0.0)
        return 1.0;
    if (isnan(x) || isnan(y))
        return x + y;
    const int whole = wholeness(y);
    if (!whole && x < 0.0 && isfinite(x))
        return (double)NAN;
    const double power = positive_pow(fabs(x), y);
    return whole == 1 && signbit(x) ? -power : power;
}

/* x = quarters * pi/2 + *rest, returns quarters mod 4. */
static unsigned reduce(double x, pair *rest)
{
    /* pi/2 in pieces of 23 bits, so that 30 bits times each are exact */
    static const double pieces[] = { 0x1.921fb4p+0, 0x1.4442dp-24,
                                     0x1.846988p-48, 0x1.8cc514p-72,
                                     0x1.80dc1cd129025p-95 };
    const double two_over_pi = 0x1.45f306dc9c883p-1,
                 quarters = pl_exact_nearest(x * two_over_pi);
    *rest = pair_of(x);
    for (int i = 0; i < 5; i++)
        *rest = pair_add(*rest, pair_of(-quarters * pieces[i]));
    return (unsigned)(int64_t)quarters & 3;
}

/* The sine of x if `first` is 1, the cosine if it is 0: from x^first on, each
 * term is the one before times -x^2 / ((k + 1) (k + 2)). |x| <= 0.786. */
static double series(pair x, int first)
{
    const pair z = pair_times(x, (pair){ -x.high, -x.low });
    pair sum = pair_of(1.0);
    for (int k = 26 + first; k > first; k -= 2)
        sum = pair_add(pair_of(1.0),
                       pair_times(z, pair_over(sum, pair_of(k * (k - 1)))));
    return first ? pair_times(x, sum).high : sum.high;
}

static double of_angle(double x, unsigned turned)
{
    pair rest;
    if (!(fabs(x) < PL_EXACT_MOST_ANGLE)) /* or NaN */
        return (double)NAN;
    const unsigned quarter = (reduce(x, &rest) + turned) & 3;
    const double result = series(rest, !(quarter & 1));
    return quarter >= 2 ? -result : result;
}

double pl_exact_sin(double x)
{
    return x == 0.0 ? x : of_angle(x, 0);
}

double pl_exact_cos(double x)
{
    return of_angle(x, 1);
}
