/* test_vmath.c: exp, log, tanh and the normal distribution (erf in the form
 * that GELU wants) against libm in double, over the whole range of float, with
 * multiply-adds rounded twice (as the base set does) and once (as all others
 * do). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/plain/vec.h"

#include <math.h>

static inline float fused(float a, float b, float c)
{
    return fmaf(a, b, c);
}

#include "kernels/dialect.h"

/* The header once more, under other names and with the other multiply-add. */
#define fma1      fused
#define abs1      fused_abs1
#define sign1     fused_sign1
#define exp_rest1 fused_exp_rest1
#define exp1      fused_exp1
#define tanh1     fused_tanh1
#define exp_down1 fused_exp_down1
#define tail1     fused_tail1
#define normal1   fused_normal1
#define sum1      fused_sum1
#define log_sum1  fused_log_sum1
#include "kernels/vmath.h"
#undef PL_KERNELS_VMATH_H
#undef fma1
#undef abs1
#undef sign1
#undef exp_rest1
#undef exp1
#undef tanh1
#undef exp_down1
#undef tail1
#undef normal1
#undef sum1
#undef log_sum1
#include "kernels/vmath.h"

typedef struct function {
    const char *name;
    float (*ours)(float);
    double (*libm)(double);
} function;

static float plain_exp(float x)
{
    return exp1(x);
}

static float plain_tanh(float x)
{
    return tanh1(x);
}

/* erf(z) = 2 Phi(z sqrt2) - 1: Phi itself is what is tested, and the density
 * that comes with it. */
static float plain_normal(float x)
{
    float e;
    return normal1(x, &e);
}

static float plain_density(float x)
{
    float e;
    normal1(x, &e);
    return e;
}

static float once_exp(float x)
{
    return fused_exp1(x);
}

static float once_tanh(float x)
{
    return fused_tanh1(x);
}

static float once_normal(float x)
{
    float e;
    return fused_normal1(x, &e);
}

static float once_density(float x)
{
    float e;
    fused_normal1(x, &e);
    return e;
}

static double normal(double x)
{
    return 0.5 * erfc(-x / sqrt(2.0));
}

static double bell(double x)
{
    return exp(-0.5 * x * x);
}

static const function exps[] = { { "exp", plain_exp, exp },
                                 { "fused exp", once_exp, exp } };
static const function tanhs[] = { { "tanh", plain_tanh, tanh },
                                  { "fused tanh", once_tanh, tanh } };
static const function normals[] = {
    { "normal", plain_normal, normal },
    { "fused normal", once_normal, normal },
    { "density", plain_density, bell },
    { "fused density", once_density, bell },
};

/* Every 1009th float: 4 million of both signs and all exponents. */
#define EACH_FLOAT(x)                                                          \
    for (uint64_t bits_ = 0; bits_ < 1ull << 32; bits_ += 1009)                \
        for (float x = pl_bits_float((uint32_t)bits_), *once_ = &x; once_;     \
             once_ = NULL)

/* The distance between floats at y, 2^-149 at least. */
static double ulp(double y)
{
    int exponent;
    frexp(y, &exponent);
    return ldexp(1.0, exponent < -125 ? -149 : exponent - 24);
}

static void exp_is_good_to_an_ulp_and_a_half(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++) {
        double worst = 0;
        EACH_FLOAT(x)
        {
            const double want = exp((double)x);
            const double got = (double)exps[f].ours(x);
            if (isnan(x)) {
                assert_true(isnan(got));
            } else if ((float)want == INFINITY || got == (double)INFINITY) {
                assert_true((float)want == INFINITY || want > 3.4028232e38);
                assert_true(got == (double)INFINITY || got > 3.4028232e38);
            } else {
                worst = fmax(worst, fabs(got - want) / ulp(want));
            }
        }
        print_message("%s: %.2f ulp\n", exps[f].name, worst);
        assert_true(worst <= 1.5);
    }
}

static void exp_is_good_where_it_is_used_most(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++)
        for (int i = -3000000; i <= 2900000; i++) {
            const float x = (float)i * (1.0f / 32768);
            const double want = exp((double)x);
            if ((float)want != INFINITY)
                assert_true(fabs((double)exps[f].ours(x) - want) <=
                            1.5 * ulp(want));
        }
}

static void exp_of_the_special_values_is_special(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++) {
        float (*e)(float) = exps[f].ours;
        assert_true(e(0.0f) == 1.0f && e(-0.0f) == 1.0f);
        assert_true(e(INFINITY) == INFINITY && e(89.0f) == INFINITY);
        assert_true(e(88.7f) < INFINITY);
        assert_true(e(-INFINITY) == 0.0f && e(-104.5f) == 0.0f);
        assert_true(e(-103.0f) > 0.0f && !signbit(e(-1e30f)));
        assert_true(isnan(e(NAN)) && isnan(e(-NAN)));
    }
}

static void tanh_is_good_to_a_few_ulp(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++) {
        double absolute = 0, relative = 0;
        EACH_FLOAT(x)
        {
            const double want = tanhs[f].libm((double)x);
            const double got = (double)tanhs[f].ours(x);
            if (isnan(x)) {
                assert_true(isnan(got));
                continue;
            }
            assert_true(!signbit(got) == !signbit(x));
            absolute = fmax(absolute, fabs(got - want));
            if (fabs(want) > 1e-36)
                relative = fmax(relative, fabs(got - want) / fabs(want));
        }
        print_message("%s: %.2g absolute, %.2g relative\n", tanhs[f].name,
                      absolute, relative);
        assert_true(absolute <= 1e-7);
        assert_true(relative <= 2e-7);
    }
}

static void tanh_is_good_where_it_bends(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++)
        for (int i = -400000; i <= 400000; i++) {
            const float x = (float)i * (1.0f / 65536);
            const double want = tanhs[f].libm((double)x);
            const double off = fabs((double)tanhs[f].ours(x) - want);
            assert_true(off <= 1e-7 && off <= 2e-7 * fabs(want));
        }
}

static void tanh_ends_at_one(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++) {
        float (*s)(float) = tanhs[f].ours;
        assert_true(s(INFINITY) == 1.0f && s(-INFINITY) == -1.0f);
        assert_true(s(20.0f) == 1.0f && s(-1e30f) == -1.0f);
        assert_true(s(0.0f) == 0.0f && !signbit(s(0.0f)));
        assert_true(s(-0.0f) == 0.0f && signbit(s(-0.0f)));
        assert_true(isnan(s(NAN)));
    }
}

static void the_normal_distribution_is_good_to_an_ulp_of_one(void **state)
{
    (void)state;
    for (int f = 0; f < 4; f++) {
        double worst = 0;
        EACH_FLOAT(x)
        {
            const double got = (double)normals[f].ours(x);
            if (isnan(x)) {
                assert_true(isnan(got));
                continue;
            }
            assert_true(got >= 0.0 && got <= 1.0);
            worst = fmax(worst, fabs(got - normals[f].libm((double)x)));
        }
        for (int i = -400000; i <= 400000; i++) {
            const float x = (float)i * (1.0f / 65536);
            worst = fmax(worst, fabs((double)normals[f].ours(x) -
                                     normals[f].libm((double)x)));
        }
        print_message("%s: %.3g absolute\n", normals[f].name, worst);
        assert_true(worst <= 1e-7);
    }
}

/* The lower tail keeps its digits: GELU of what is far below 0 is no noise. */
static void the_lower_tail_is_good_relatively(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++)
        for (int i = 0; i <= 45000; i++) {
            const float x = (float)-i * 1e-4f;
            const double want = normal((double)x);
            assert_true(fabs((double)normals[f].ours(x) - want) <= 3e-4 * want);
        }
}

static void the_normal_distribution_ends_at_0_and_1(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++) {
        float (*n)(float) = normals[f].ours;
        assert_true(n(INFINITY) == 1.0f && n(-INFINITY) == 0.0f);
        assert_true(n(20.0f) == 1.0f && n(-1e30f) == 0.0f);
        assert_true(n(0.0f) == n(-0.0f));
        assert_true(isnan(n(NAN)) && isnan(n(-NAN)));
    }
}

/* ---- max + log(sum) - minus ---- */

static float plain_log_sum(float max, float sum, float minus)
{
    return log_sum1(max, sum, minus);
}

static float once_log_sum(float max, float sum, float minus)
{
    return fused_log_sum1(max, sum, minus);
}

/* Multiply-adds that are rounded twice can't tell what f * f lost. */
static const struct {
    const char *name;
    float (*ours)(float max, float sum, float minus);
    double bound;
} log_sums[] = { { "log_sum", plain_log_sum, 1e-8 },
                 { "fused log_sum", once_log_sum, 6e-9 } };

/* What the error has beyond half an ulp of the result. */
static double beyond_rounding(float got, double want)
{
    return fabs((double)got - want) - 0.5 * ulp(want);
}

/* Every sum in [1, 2): all significands, and so every f. Other sums differ in
 * n alone, so that a sample of them does. */
static void the_log_of_a_sum_is_good_to_its_last_rounding(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++) {
        const uint32_t one = 0x3f800000u, two = 0x40000000u;
        double worst = 0;
        for (uint32_t bits = one; bits < 0x7f800000u;
             bits += bits < two ? 1 : 1009) {
            const float sum = pl_bits_float(bits);
            worst = fmax(worst, beyond_rounding(log_sums[f].ours(0, sum, 0),
                                                log((double)sum)));
        }
        print_message("%s: half an ulp and %.2g\n", log_sums[f].name, worst);
        assert_true(worst <= log_sums[f].bound);
    }
}

static void a_maximum_and_a_logit_are_rounded_with_it(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++) {
        double worst = 0;
        for (uint32_t i = 0; i < 1000000; i++) {
            const uint32_t mixed = i * 2654435761u;
            const float sum = 1.0f +
                              (float)(mixed & 0xffff) / (float)(1 << (i & 15));
            const float max = (float)((int)(mixed >> 16) - 32768) /
                              (float)(1 << (i & 15));
            const float minus = i & 16 ? max - (float)(i % 257) / 16 : 0;
            worst = fmax(worst,
                         beyond_rounding(log_sums[f].ours(max, sum, minus),
                                         (double)max + log((double)sum) -
                                             (double)minus));
        }
        print_message("%s: half an ulp and %.2g\n", log_sums[f].name, worst);
        assert_true(worst <= log_sums[f].bound);
    }
}

static void the_log_of_no_sum_is_none(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++) {
        float (*l)(float, float, float) = log_sums[f].ours;
        assert_true(l(0, 1, 0) == 0.0f && l(3, 1, 3) == 0.0f);
        assert_true(l(-2.5f, 1, 0) == -2.5f);
        assert_true(isnan(l(0, NAN, 0)) && isnan(l(0, -NAN, 0)));
        assert_true(isnan(l(NAN, 2, 0)) && isnan(l(0, 2, NAN)));
        assert_true(isnan(l(INFINITY, NAN, 0)));
        assert_true(l(0, INFINITY, 0) == INFINITY);
        assert_true(l(1, 2, -INFINITY) == INFINITY);
        assert_true(l(3e38f, 2, -3e38f) == INFINITY);
        assert_true(l(-INFINITY, 2, 1) == -INFINITY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_good_to_an_ulp_and_a_half),
        cmocka_unit_test(exp_is_good_where_it_is_used_most),
        cmocka_unit_test(exp_of_the_special_values_is_special),
        cmocka_unit_test(tanh_is_good_to_a_few_ulp),
        cmocka_unit_test(tanh_is_good_where_it_bends),
        cmocka_unit_test(tanh_ends_at_one),
        cmocka_unit_test(the_normal_distribution_is_good_to_an_ulp_of_one),
        cmocka_unit_test(the_lower_tail_is_good_relatively),
        cmocka_unit_test(the_normal_distribution_ends_at_0_and_1),
        cmocka_unit_test(the_log_of_a_sum_is_good_to_its_last_rounding),
        cmocka_unit_test(a_maximum_and_a_logit_are_rounded_with_it),
        cmocka_unit_test(the_log_of_no_sum_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
