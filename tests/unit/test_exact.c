/* test_exact.c: errors against libm's long doubles (64 bits of significand or
 * more, whose own error is below 2^-10 ulp of a double), special values, and
 * the bits themselves, which every compiler and processor must give. */
#include "base/exact.h"
#include "base/rng.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

_Static_assert(LDBL_MANT_DIG >= 64, "there is nothing better to compare with");

enum { NUMBERS = 20000 };
static const double libms_share = 0x1p-10;
static const long double pi = 3.14159265358979323846264338327950288L;

/* The nth number from `low` up to `high`. */
static double between(double low, double high, uint32_t n)
{
    uint32_t words[4];
    pl_rng_words(PL_RNG_SAMPLE, 14, n, 0, 0, 0, words);
    return low + (high - low) * pl_rng_unit(words);
}

static double error_ulp(double got, long double want)
{
    int exponent;
    frexpl(want, &exponent);
    return (double)(fabsl((long double)got - want) /
                    ldexpl(1.0L, exponent - DBL_MANT_DIG));
}

typedef struct domain {
    const char *name;
    double (*ours)(double);
    long double (*libm)(long double);
    double low, high;
    enum { EVENLY, BY_EXPONENT, AROUND_ONE } spread;
} domain;

static double argument(const domain *d, uint32_t n)
{
    const double x = between(d->low, d->high, n);
    switch (d->spread) {
    case BY_EXPONENT:
        return (double)exp2l((long double)x);
    case AROUND_ONE:
        return 1.0 + (n & 1 ? -1 : 1) * (double)exp2l((long double)x);
    default:
        return x;
    }
}

static void expect_errors_below(const domain *d, double bound)
{
    double worst = 0, at = 0;
    for (uint32_t n = 0; n < NUMBERS; n++) {
        const double x = argument(d, n),
                     error = error_ulp(d->ours(x), d->libm((long double)x));
        if (!(error <= worst)) {
            worst = error;
            at = x;
        }
    }
    print_message("%s: %.4f ulp\n", d->name, worst);
    if (!(worst < bound + libms_share))
        fail_msg("%s(%.17g) is off by %.4f ulp", d->name, at, worst);
}

static void results_are_nearly_always_the_nearest_doubles(void **state)
{
    static const domain domains[] = {
        { "exp", pl_exact_exp, expl, -708, 709, EVENLY },
        { "exp", pl_exact_exp, expl, -60, 0, BY_EXPONENT },
        { "log", pl_exact_log, logl, -1022, 1023, BY_EXPONENT },
        { "log", pl_exact_log, logl, 0.5, 2, EVENLY },
        { "log", pl_exact_log, logl, -52, -1, AROUND_ONE },
        { "log2", pl_exact_log2, log2l, -1022, 1023, BY_EXPONENT },
        { "log2", pl_exact_log2, log2l, -52, -1, AROUND_ONE },
        { "log10", pl_exact_log10, log10l, -1022, 1023, BY_EXPONENT },
        { "log10", pl_exact_log10, log10l, -52, -1, AROUND_ONE },
        { "cos", pl_exact_cos, cosl, -10, 10, EVENLY },
        { "cos", pl_exact_cos, cosl, -60, 30, BY_EXPONENT },
        { "sin", pl_exact_sin, sinl, -10, 10, EVENLY },
        { "sin", pl_exact_sin, sinl, -60, 30, BY_EXPONENT },
    };
    (void)state;
    for (size_t i = 0; i < sizeof domains / sizeof domains[0]; i++)
        expect_errors_below(&domains[i], 0.501);
}

static void powers_are_nearly_always_the_nearest_doubles(void **state)
{
    (void)state;
    double worst = 0;
    for (uint32_t n = 0; n < NUMBERS; n++) {
        /* what configs have, AdamW's betas, and bases next to 1 */
        const double away = (double)exp2l((long double)between(-50, -1, n));
        const double bases[] = { between(1e-3, 1e3, n),
                                 between(0.5, 1, n + NUMBERS), 1.0 - away };
        const double exponents[] = { between(-50, 50, ~n),
                                     floor(between(1, 500, ~n)),
                                     floor(between(1, 500, ~n) / away) };
        for (int i = 0; i < 3; i++)
            worst = fmax(worst, error_ulp(pl_exact_pow(bases[i], exponents[i]),
                                          powl((long double)bases[i],
                                               (long double)exponents[i])));
    }
    print_message("pow: %.4f ulp\n", worst);
    assert_true(worst < 0.501 + libms_share);
}

static void the_quick_ones_are_good_to_less_than_an_ulp(void **state)
{
    static const domain logs[] = {
        { "quick log", pl_exact_quick_log, logl, -1022, 1023, BY_EXPONENT },
        { "quick log", pl_exact_quick_log, logl, 0.5, 2, EVENLY },
        { "quick log", pl_exact_quick_log, logl, 0.7, 0.71, EVENLY },
        { "quick log", pl_exact_quick_log, logl, 1.4, 1.42, EVENLY },
        { "quick log", pl_exact_quick_log, logl, -52, -1, AROUND_ONE },
    };
    static const domain exps[] = {
        { "quick exp", pl_exact_quick_exp, expl, -708, 709, EVENLY },
        { "quick exp", pl_exact_quick_exp, expl, -1, 1, EVENLY },
        { "quick exp", pl_exact_quick_exp, expl, -60, 0, BY_EXPONENT },
    };
    (void)state;
    for (size_t i = 0; i < sizeof logs / sizeof logs[0]; i++)
        expect_errors_below(&logs[i], 0.7);
    for (size_t i = 0; i < sizeof exps / sizeof exps[0]; i++)
        expect_errors_below(&exps[i], 0.7);
}

/* Half-turns are reduced to [-1/4, 1/4] here, too: pi x in long double would
 * have lost the digits of a small sine. */
static void
sines_and_cosines_of_half_turns_are_good_to_less_than_an_ulp(void **state)
{
    (void)state;
    double worst = 0;
    for (uint32_t n = 0; n < 4 * NUMBERS; n++) {
        const int small = n & 1;
        const double y = small ? (double)exp2l((long double)between(-60, -2, n))
                               : between(-0.25, 0.25, n);
        const double quarters = small ? 0.0 : floor(between(-9, 9, ~n));
        const double x = 0.5 * quarters + y;
        const long double angle = pi * (long double)(x - 0.5 * quarters);
        const long double turn[4] = { cosl(angle), -sinl(angle), -cosl(angle),
                                      sinl(angle) };
        double cosine, sine;
        pl_exact_quick_turn(x, &cosine, &sine);
        const unsigned q = (unsigned)(int)quarters;
        worst = fmax(worst, error_ulp(cosine, turn[q & 3]));
        worst = fmax(worst, error_ulp(sine, turn[(q + 3) & 3]));
    }
    print_message("quick turn: %.4f ulp\n", worst);
    assert_true(worst < 0.9 + libms_share);
}

/* ---- what has no error at all ---- */

static void what_is_a_double_is_that_double(void **state)
{
    (void)state;
    double power = 1;
    for (int n = 0; n <= 22; n++, power *= 10) {
        assert_true(pl_exact_pow(10, n) == power);
        assert_true(pl_exact_log10(power) == n);
    }
    for (int n = -1022; n <= 1023; n++) {
        assert_true(pl_exact_pow(2, n) == ldexp(1, n));
        assert_true(pl_exact_log2(ldexp(1, n)) == n);
    }
    for (int n = 0; n < 1000; n++) {
        assert_true(pl_exact_pow(n, 2) == (double)n * n);
        assert_true(pl_exact_pow((double)n * n, 0.5) == n);
        assert_true(pl_exact_pow(n, 1) == n);
    }
    assert_true(pl_exact_exp(0) == 1 && pl_exact_quick_exp(0) == 1);
    assert_true(pl_exact_log(1) == 0 && pl_exact_quick_log(1) == 0);
    assert_true(pl_exact_pow(3, 33) == 5559060566555523.0);
}

static void quarters_of_a_turn_are_exact(void **state)
{
    static const double cosines[] = { 1, 0, -1, 0 };
    (void)state;
    for (int n = -9; n <= 9; n++) {
        double cosine, sine;
        pl_exact_quick_turn(0.5 * n, &cosine, &sine);
        assert_true(cosine == cosines[(unsigned)n & 3]);
        assert_true(sine == cosines[(unsigned)(n + 3) & 3]);
    }
}

/* ---- the edges ---- */

static void assert_same(double got, double want)
{
    if (isnan(want) ? !isnan(got)
                    : got != want || !signbit(got) != !signbit(want))
        fail_msg("%g, expected %g", got, want);
}

static void special_values_are_c_s(void **state)
{
    static const double values[] = {
        0.0,  -0.0,  1,          -1,          0.5,    -0.5, 2,        -2,
        3,    -3,    1e300,      -1e300,      1e-300, NAN,  HUGE_VAL, -HUGE_VAL,
        1e19, -1e19, 0x1p52 + 1, -0x1p52 - 1, 0x1p53, 2.5,
    };
    enum { N = sizeof values / sizeof values[0] };
    (void)state;
    for (int i = 0; i < N; i++) {
        const double x = values[i];
        for (int j = 0; j < N; j++) {
            const double want = pow(x, values[j]),
                         got = pl_exact_pow(x, values[j]);
            if (!isfinite(want) || want == 0 || fabs(want) == 1)
                assert_same(got, want);
            else
                assert_true(fabs(got - want) <= 0x1p-52 * fabs(want));
        }
        if (!isfinite(x) || x <= 0) {
            assert_same(pl_exact_log(x), log(x));
            assert_same(pl_exact_log2(x), log2(x));
            assert_same(pl_exact_log10(x), log10(x));
        }
        if (!isfinite(x) || fabs(x) > 1e3 || x == 0) {
            assert_same(pl_exact_exp(x), exp(x));
            assert_same(pl_exact_quick_exp(x), exp(x));
        }
    }
    assert_same(pl_exact_sin(0.0), 0.0);
    assert_same(pl_exact_sin(-0.0), -0.0);
    assert_same(pl_exact_cos(-0.0), 1.0);
}

static void angles_without_end_are_no_angles(void **state)
{
    static const double values[] = { NAN, HUGE_VAL, -HUGE_VAL,
                                     PL_EXACT_MOST_ANGLE,
                                     -PL_EXACT_MOST_ANGLE };
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        assert_true(isnan(pl_exact_cos(values[i])) &&
                    isnan(pl_exact_sin(values[i])));
    assert_true(isfinite(pl_exact_cos(PL_EXACT_MOST_ANGLE - 1)));
}

static void what_is_very_small_or_large_is_off_by_an_ulp_at_most(void **state)
{
    (void)state;
    for (double x = -745.1; x < -708; x += 0.03125) {
        const double want = (double)expl((long double)x);
        assert_true(fabs(pl_exact_exp(x) - want) <= 0x1p-1074);
        assert_true(fabs(pl_exact_quick_exp(x) - want) <= 0x1p-1074);
    }
    assert_true(pl_exact_exp(-745.13) == 0x1p-1074);
    assert_true(pl_exact_exp(-745.14) == 0);
    assert_true(pl_exact_exp(709.78) < HUGE_VAL);
    assert_true(pl_exact_quick_exp(709.78) < HUGE_VAL);
    assert_true(pl_exact_exp(709.79) == HUGE_VAL);
    assert_true(pl_exact_quick_exp(709.79) == HUGE_VAL);
    assert_true(pl_exact_pow(2, -1074) == 0x1p-1074);
    assert_true(pl_exact_pow(2, 1024) == HUGE_VAL);
    assert_true(pl_exact_log2(0x1p-1074) == -1074);
}

/* ---- the bits ---- */

static uint64_t mixed(uint64_t sum, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (sum ^ bits) * 0x100000001b3u; /* FNV-1a, by words */
}

/* Found with gcc on x86-64. A compiler that fuses or reorders anything, a
 * processor that rounds otherwise or a formula that was touched gives another
 * sum; then every run has other numbers (kernels.h, pl_arithmetic). */
static void the_bits_are_these_wherever_it_runs(void **state)
{
    (void)state;
    uint64_t near = 0, quick = 0;
    for (uint32_t n = 0; n < 5000; n++) {
        const double x = between(-700, 700, n), y = between(0, 1, ~n);
        double cosine, sine;
        near = mixed(near, pl_exact_exp(x));
        near = mixed(near, pl_exact_log(y));
        near = mixed(near, pl_exact_log2(y));
        near = mixed(near, pl_exact_log10(y));
        near = mixed(near, pl_exact_pow(y, x));
        near = mixed(near, pl_exact_cos(x));
        near = mixed(near, pl_exact_sin(x));
        quick = mixed(quick, pl_exact_quick_exp(x));
        quick = mixed(quick, pl_exact_quick_log(y));
        pl_exact_quick_turn(x, &cosine, &sine);
        quick = mixed(mixed(quick, cosine), sine);
    }
    print_message("0x%016llx 0x%016llx\n", (unsigned long long)near,
                  (unsigned long long)quick);
    assert_true(near == 0x962bab0c139bed33u);
    assert_true(quick == 0x24856825b3ed397du);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_nearly_always_the_nearest_doubles),
        cmocka_unit_test(powers_are_nearly_always_the_nearest_doubles),
        cmocka_unit_test(the_quick_ones_are_good_to_less_than_an_ulp),
        cmocka_unit_test(
            sines_and_cosines_of_half_turns_are_good_to_less_than_an_ulp),
        cmocka_unit_test(what_is_a_double_is_that_double),
        cmocka_unit_test(quarters_of_a_turn_are_exact),
        cmocka_unit_test(special_values_are_c_s),
        cmocka_unit_test(angles_without_end_are_no_angles),
        cmocka_unit_test(what_is_very_small_or_large_is_off_by_an_ulp_at_most),
        cmocka_unit_test(the_bits_are_these_wherever_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
