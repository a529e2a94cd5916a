/* test_vmath.c: exp, tanh and the normal distribution (erf in the form that
 * GELU wants) against libm in double, over the whole range of float, with
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

/* The header once more, under other names and with the other multiply-add. */
#define fma1       fused
#define float_bits fused_float_bits
#define bits_float fused_bits_float
#define abs1       fused_abs1
#define sign1      fused_sign1
#define exp_rest1  fused_exp_rest1
#define exp1       fused_exp1
#define tanh1      fused_tanh1
#define exp_down1  fused_exp_down1
#define tail1      fused_tail1
#define normal1    fused_normal1
#include "kernels/plain/vmath.h"
#undef PL_KERNELS_PLAIN_VMATH_H
#undef fma1
#undef float_bits
#undef bits_float
#undef abs1
#undef sign1
#undef exp_rest1
#undef exp1
#undef tanh1
#undef exp_down1
#undef tail1
#undef normal1
#include "kernels/plain/vmath.h"

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
        for (float x = bits_float((uint32_t)bits_), *once_ = &x; once_;        \
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
