#include "model/schedule.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static pl_config cfg;

/* nanoGPT's defaults. */
static int set_up(void **state)
{
    (void)state;
    cfg = pl_config_make_default();
    cfg.learning_rate = 6e-4;
    cfg.min_lr = 6e-5;
    cfg.warmup_iters = 2000;
    cfg.lr_decay_iters = 600000;
    cfg.decay_lr = true;
    return 0;
}

static void assert_rate(uint64_t step, double expected)
{
    double rate = pl_schedule_rate(&cfg, step);
    if (!(fabs(rate - expected) <= 1e-14 * expected))
        fail_msg("step %llu: %.17g, expected %.17g", (unsigned long long)step,
                 rate, expected);
}

static void the_rate_rises_in_a_line_and_starts_above_zero(void **state)
{
    (void)state;
    assert_rate(0, 6e-4 / 2001);
    assert_rate(1, 6e-4 * 2 / 2001);
    assert_rate(999, 6e-4 * 1000 / 2001);
    assert_rate(1999, 6e-4 * 2000 / 2001);
    assert_rate(2000, 6e-4);
}

/* A quarter, a half and three quarters of the way: 0.5 (1 + cos) is
 * (2 + sqrt 2) / 4, 1/2 and (2 - sqrt 2) / 4. */
static void then_it_falls_along_a_cosine(void **state)
{
    (void)state;
    assert_rate(151500, 6e-5 + 0.85355339059327376 * 5.4e-4);
    assert_rate(301000, 3.3e-4);
    assert_rate(450500, 6e-5 + 0.14644660940672624 * 5.4e-4);
    for (uint64_t step = 2000; step < 600000; step += 1000)
        assert_true(pl_schedule_rate(&cfg, step) >
                    pl_schedule_rate(&cfg, step + 1000));
}

static void then_it_stays_at_its_least(void **state)
{
    (void)state;
    assert_rate(600000, 6e-5);
    assert_rate(600001, 6e-5);
    assert_rate(1000000000000, 6e-5);
    cfg.min_lr = 0;
    assert_true(pl_schedule_rate(&cfg, 600001) == 0);
}

static void without_decay_it_is_constant_from_the_first_step(void **state)
{
    (void)state;
    cfg.decay_lr = false;
    assert_rate(0, 6e-4);
    assert_rate(1999, 6e-4);
    assert_rate(700000, 6e-4);
}

static void without_warm_up_it_starts_at_the_top(void **state)
{
    (void)state;
    cfg.warmup_iters = 0;
    assert_rate(0, 6e-4);
    assert_rate(300000, 3.3e-4);
    assert_rate(600000, 6e-5);
}

static void warm_up_may_end_where_the_decay_does(void **state)
{
    (void)state;
    cfg.warmup_iters = cfg.lr_decay_iters = 10;
    assert_rate(9, 6e-4 * 10 / 11);
    assert_rate(10, 6e-5);
    assert_rate(11, 6e-5);
    cfg.warmup_iters = cfg.lr_decay_iters = 0;
    assert_rate(0, 6e-5);
}

static void warm_up_may_last_longer_than_the_decay(void **state)
{
    (void)state;
    cfg.warmup_iters = 100;
    cfg.lr_decay_iters = 10;
    assert_rate(9, 6e-4 * 10 / 101);
    assert_rate(50, 6e-4 * 51 / 101);
    assert_rate(100, 6e-5);
}

/* max_iters 1 more than lr_decay_iters, as in nanoGPT's character configs. */
static void a_short_decay_reaches_its_end(void **state)
{
    (void)state;
    cfg.learning_rate = 1e-3;
    cfg.min_lr = 1e-4;
    cfg.warmup_iters = 1;
    cfg.lr_decay_iters = 3;
    assert_rate(0, 5e-4);
    assert_rate(1, 1e-3);
    assert_rate(2, 5.5e-4);
    assert_rate(3, 1e-4);
    assert_rate(4, 1e-4);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_rate_rises_in_a_line_and_starts_above_zero),
        TEST(then_it_falls_along_a_cosine),
        TEST(then_it_stays_at_its_least),
        TEST(without_decay_it_is_constant_from_the_first_step),
        TEST(without_warm_up_it_starts_at_the_top),
        TEST(warm_up_may_end_where_the_decay_does),
        TEST(warm_up_may_last_longer_than_the_decay),
        TEST(a_short_decay_reaches_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
