/* exact_quick.c: the quick grade of exact.h. The largest terms of a series are
 * kept with what their rounding lost, all others are plain doubles; so errors
 * are half an ulp of the last sum and a few ulps of something much smaller.
 * Coefficients are those of the series (fractions), with a few terms more than
 * fitted ones would take: nobody has to believe a constant. */
#include "base/exact.h"
#include "base/exact_parts.h"

#include <math.h>

/* With f = m - 1 and s = f / (2 + f), log(m) = 2 atanh(s)
 *     = f - f^2/2 + s (f^2/2 + 2/3 s^2 + 2/5 s^4 + ...),
 * where |s| <= 0.172: what is left out is 2^-62. f and f^2 are exact, so the
 * last product is what has errors: it is 0.019 at most, within four roundings,
 * where the result is 0.34 or more: 0.15 ulp, beside the last sum's 0.5. */
double pl_exact_quick_log(double x)
{
    double f;
    const double n = (double)pl_exact_take_apart(x, &f);
    const double s = f / (2.0 + f), z = s * s;
    const pl_exact_pair square = pl_exact_product(f, f);
    double series = 2.0 / 21;
    series = series * z + 2.0 / 19;
    series = series * z + 2.0 / 17;
    series = series * z + 2.0 / 15;
    series = series * z + 2.0 / 13;
    series = series * z + 2.0 / 11;
    series = series * z + 2.0 / 9;
    series = series * z + 2.0 / 7;
    series = series * z + 2.0 / 5;
    series = series * z + 2.0 / 3;
    const double rest = s * (0.5 * square.high + series * z);
    const pl_exact_pair a = pl_exact_sum(n * PL_EXACT_LN2_1, f),
                        b = pl_exact_sum(a.high, -0.5 * square.high);
    return b.high + (b.low + a.low +
                     (n * PL_EXACT_LN2_REST + (rest - 0.5 * square.low)));
}

/* e^x = 2^n e^r, |r| <= 0.347: what is left out of the series is 2^-63. All
 * terms from r^2/2 on are 0.07 at most, within three roundings of which two are
 * of that size, where the result is 0.7 or more: 0.17 ulp beside 0.5. */
double pl_exact_quick_exp(double x)
{
    if (!(x < 709.8)) /* or NaN */
        return x >= 709.8 ? HUGE_VAL : x;
    if (x < -745.2)
        return 0.0;
    const double n = pl_exact_nearest(x * PL_EXACT_LOG2_E);
    const pl_exact_pair r = pl_exact_sum(x - n * PL_EXACT_LN2_1,
                                         -n * PL_EXACT_LN2_REST);
    const double z = r.high * r.high;
    double even = 1.0 / 87178291200, odd = 1.0 / 6227020800;
    even = even * z + 1.0 / 479001600;
    odd = odd * z + 1.0 / 39916800;
    even = even * z + 1.0 / 3628800;
    odd = odd * z + 1.0 / 362880;
    even = even * z + 1.0 / 40320;
    odd = odd * z + 1.0 / 5040;
    even = even * z + 1.0 / 720;
    odd = odd * z + 1.0 / 120;
    even = even * z + 1.0 / 24;
    odd = odd * z + 1.0 / 6;
    const double rest = 0.5 * z + z * (r.high * odd + z * even);
    const pl_exact_pair sum = pl_exact_fast_sum(1.0, r.high);
    return pl_exact_scaled(
        sum.high + (sum.low + (r.low + r.high * r.low + rest)), (int)n);
}

/* Half-turns are reduced exactly: no digits of pi are needed for that. What is
 * left is an eighth of a turn at most; then 2^-63 of the sine and 2^-67 of the
 * cosine are left out. The sine's terms from a^3/6 on are 0.081 at most, within
 * five roundings, where it is 0.5 or more: 0.4 ulp beside 0.5. */
void pl_exact_quick_turn(double x, double *cosine, double *sine)
{
    const double quarters = pl_exact_nearest(2.0 * x), y = x - 0.5 * quarters;
    const pl_exact_pair product = pl_exact_product(y, 0x1.921fb54442d18p+1);
    const double a = product.high,
                 a_low = product.low + y * 0x1.1a62633145c07p-53;
    const pl_exact_pair square = pl_exact_product(a, a);
    const double z = square.high;
    double c = -1.0 / 6402373705728000, s = 1.0 / 355687428096000;
    c = c * z + 1.0 / 20922789888000;
    s = s * z - 1.0 / 1307674368000;
    c = c * z - 1.0 / 87178291200;
    s = s * z + 1.0 / 6227020800;
    c = c * z + 1.0 / 479001600;
    s = s * z - 1.0 / 39916800;
    c = c * z - 1.0 / 3628800;
    s = s * z + 1.0 / 362880;
    c = c * z + 1.0 / 40320;
    s = s * z - 1.0 / 5040;
    c = c * z - 1.0 / 720;
    s = s * z + 1.0 / 120;
    c = c * z + 1.0 / 24;
    s = s * z - 1.0 / 6;
    const pl_exact_pair one = pl_exact_fast_sum(1.0, -0.5 * z);
    const double c_all = one.high +
                         (one.low + (z * z * c - 0.5 * square.low - a * a_low));
    const double s_all = a + (a * z * s + a_low * (1.0 - 0.5 * z));
    const unsigned quarter = (unsigned)(int64_t)quarters & 3;
    const double first = quarter & 1 ? s_all : c_all,
                 second = quarter & 1 ? c_all : s_all;
    *cosine = quarter == 1 || quarter == 2 ? -first : first;
    *sine = quarter >= 2 ? -second : second;
}
