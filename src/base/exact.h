/* exact.h: log, exp, powers, sines and cosines with the same bits everywhere.
 *
 * A libm may compute these as it likes, and each does: the last bit differs
 * from library to library. So whatever feeds a number of a run (initial
 * weights, rates, AdamW's corrections, tokens that are chosen, values of a
 * config) takes them from here. They consist of + - * / of doubles and of
 * operations on bits, in an order that is written down; IEEE 754 leaves no
 * choice there. That needs -ffp-contract=off and doubles that are doubles
 * (FLT_EVAL_METHOD 0), and rounding to nearest.
 *
 * There are two grades. An ulp is the distance between doubles at the result;
 * results below 2^-1022 (denormal ones) may be off by one ulp in either.
 * tests/unit/test_exact.c measures the errors. */
#ifndef PL_BASE_EXACT_H
#define PL_BASE_EXACT_H

/* ---- nearly always the nearest double: errors below 0.501 ulp ---- */

/* As C's functions of these names, special values included, but that cos and
 * sin of an angle of PL_EXACT_MOST_ANGLE or more are NaN. A few microseconds
 * each. */
double pl_exact_exp(double x);
double pl_exact_log(double x);
double pl_exact_log2(double x);
double pl_exact_log10(double x);
double pl_exact_pow(double x, double y);
double pl_exact_cos(double x);
double pl_exact_sin(double x);

#define PL_EXACT_MOST_ANGLE 0x1p30

/* ---- for many numbers: as fast as libm's ---- */

/* x is at least 2^-1022 and finite. Errors below 0.7 ulp. */
double pl_exact_quick_log(double x);

/* Any x; 0 below -745.2, infinite above 709.8. Errors below 0.7 ulp. */
double pl_exact_quick_exp(double x);

/* The cosine and sine of x half-turns, pi x; |x| below 2^50. Errors below 0.9
 * ulp. */
void pl_exact_quick_turn(double x, double *cosine, double *sine);

#endif
