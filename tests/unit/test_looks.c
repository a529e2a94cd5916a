/* Tests of model/looks: of several looks the best counts, and what a busy
 * moment said is neither believed nor kept. */
#include "model/looks.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const double now = 1.7e9, day = 86400.0;

/* A look at products of so many units per second, half a second long. */
static pl_observed products(double per_second)
{
    pl_observed seen = { .least_seconds = 2e-6 };
    seen.seconds[PL_OP_MATMUL] = 0.5;
    seen.units[PL_OP_MATMUL] = 0.5 * per_second;
    return seen;
}

static pl_looks look(double per_second, double quiet)
{
    pl_looks looks = { .count = 0 };
    const pl_observed seen = products(per_second);
    pl_looks_add(&looks, &seen, quiet);
    return looks;
}

static double learnt(pl_rates *rates, double per_second, double quiet,
                     double date)
{
    const pl_looks looks = look(per_second, quiet);
    pl_rates_learn(rates, &looks, date);
    return rates->per_second[PL_OP_MATMUL];
}

static void the_best_of_several_looks_counts(void **state)
{
    (void)state;
    static const double seen[] = { 31e9, 370e9, 200e9 };
    static const double quiet[] = { 0.2, 0.6, 0.95 };
    pl_looks looks = { .count = 0 };
    for (int i = 0; i < 3; i++) {
        pl_observed each = products(seen[i]);
        each.least_seconds = i == 1 ? 1e-6 : 5e-6;
        pl_looks_add(&looks, &each, quiet[i]);
    }
    assert_int_equal(looks.count, 3);
    assert_true(looks.per_second[PL_OP_MATMUL] == 370e9);
    assert_true(looks.barrier_seconds == 1e-6);
    assert_true(looks.quiet == 0.95);
    assert_true(looks.per_second[PL_OP_GELU] == 0.0);
}

static void a_brief_look_counts_less_than_a_long_one(void **state)
{
    (void)state;
    pl_looks looks = look(100e9, 1.0);
    pl_observed brief = { .least_seconds = 0.0 };
    brief.seconds[PL_OP_MATMUL] = 1e-5;
    brief.units[PL_OP_MATMUL] = 1e-5 * 900e9;
    pl_looks_add(&looks, &brief, 1.0);
    assert_true(looks.per_second[PL_OP_MATMUL] == 100e9);
}

/* Small models: an op takes microseconds, and milliseconds where the thread was
 * interrupted in it. That isn't a longer look at it. */
static void an_interruption_is_no_long_look(void **state)
{
    (void)state;
    static const double quiet[] = { 1.0, 0.04, 0.5, 1.0 };
    static const double extra[] = { 0.0, 17e-3, 0.7e-3, 0.0 };
    for (int first = 0; first < 4; first++) {
        pl_looks looks = { .count = 0 };
        pl_rates rates = pl_rates_built_in(2);
        learnt(&rates, 100e9, 1.0, now);
        for (int i = 0; i < 4; i++) {
            const int at = (first + i) % 4;
            pl_observed seen = { .least_seconds = 0.0 };
            seen.seconds[PL_OP_MATMUL] = 0.6e-3 + extra[at];
            seen.units[PL_OP_MATMUL] = 0.6e-3 * 100e9;
            seen.seconds[PL_OP_GELU] = 0.1e-3;
            seen.units[PL_OP_GELU] = 0.1e-3 * 1e9;
            pl_looks_add(&looks, &seen, quiet[at]);
        }
        pl_rates_learn(&rates, &looks, now + 60);
        assert_true(fabs(rates.per_second[PL_OP_MATMUL] - 100e9) < 1.0);
    }
}

/* Twelve times too slow, as it happened. */
static void a_busy_moment_does_not_poison_what_is_known(void **state)
{
    (void)state;
    pl_rates rates = pl_rates_built_in(2);
    assert_true(learnt(&rates, 370e9, 1.0, now) == 370e9);
    assert_true(learnt(&rates, 31e9, 0.3, now + day) == 370e9);
    assert_true(rates.quiet == 1.0 && rates.date == now);
    /* what it did in spite of that, it can */
    assert_true(learnt(&rates, 400e9, 0.3, now + day) == 400e9);
}

static void a_quiet_run_forgets_what_was_said(void **state)
{
    (void)state;
    pl_rates rates = pl_rates_built_in(2);
    assert_true(learnt(&rates, 31e9, 0.3, now) == 31e9);
    assert_true(rates.quiet == 0.3);
    assert_true(learnt(&rates, 370e9, 0.97, now + 60) == 370e9);
    assert_true(rates.quiet == 0.97 && rates.date == now + 60);
    /* slower in earnest: another clock, another machine */
    assert_true(learnt(&rates, 250e9, 0.93, now + 120) == 250e9);
}

/* Nothing is ever quiet here: then the best of what there is. */
static void of_two_busy_moments_the_faster_counts(void **state)
{
    (void)state;
    pl_rates rates = pl_rates_built_in(2);
    learnt(&rates, 50e9, 0.5, now);
    assert_true(learnt(&rates, 40e9, 0.6, now + 60) == 50e9);
    assert_true(rates.quiet == 0.6);
    assert_true(learnt(&rates, 60e9, 0.4, now + 60) == 60e9);
    assert_true(rates.quiet == 0.6);
}

static void trust_fades(void **state)
{
    (void)state;
    pl_rates rates = pl_rates_built_in(2);
    assert_true(pl_rates_trust(&rates, now) == 0.0);
    learnt(&rates, 370e9, 1.0, now);
    assert_true(pl_rates_trust(&rates, now) == 1.0);
    assert_true(fabs(pl_rates_trust(&rates, now + 30 * day) - 0.5) < 1e-12);
    assert_true(pl_rates_trust(&rates, now - 2 * day) == 0.0);
    /* busy ever since: after two months that is how it is */
    assert_true(learnt(&rates, 180e9, 0.5, now + 29 * day) == 370e9);
    assert_true(learnt(&rates, 180e9, 0.5, now + 61 * day) == 180e9);
    rates.date = 0.0; /* a file of before */
    assert_true(pl_rates_trust(&rates, now) == 0.0);
    assert_true(learnt(&rates, 20e9, 0.1, now) == 20e9);
}

static void no_look_says_nothing(void **state)
{
    (void)state;
    pl_rates rates = pl_rates_built_in(2);
    const pl_looks none = { .count = 0 };
    pl_rates_learn(&rates, &none, now);
    assert_int_equal(rates.source, PL_RATES_BUILT_IN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_of_several_looks_counts),
        cmocka_unit_test(a_brief_look_counts_less_than_a_long_one),
        cmocka_unit_test(an_interruption_is_no_long_look),
        cmocka_unit_test(a_busy_moment_does_not_poison_what_is_known),
        cmocka_unit_test(a_quiet_run_forgets_what_was_said),
        cmocka_unit_test(of_two_busy_moments_the_faster_counts),
        cmocka_unit_test(trust_fades),
        cmocka_unit_test(no_look_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
