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

/* ---- other schedules ---- */

static void a_line_falls_evenly(void **state)
{
    (void)state;
    cfg.schedule = PL_SCHEDULE_LINEAR;
    assert_rate(0, 6e-4 / 2001);
    assert_rate(2000, 6e-4);
    assert_rate(151500, 6e-5 + 0.75 * 5.4e-4);
    assert_rate(301000, 3.3e-4);
    assert_rate(600000, 6e-5);
    assert_rate(600001, 6e-5);
}

/* 0.65 of 600,000 are 390,000: the line begins at 210,000. */
static void wsd_is_stable_and_then_falls(void **state)
{
    (void)state;
    cfg.schedule = PL_SCHEDULE_WSD;
    assert_true(cfg.warmdown_share == 0.65);
    assert_rate(1999, 6e-4 * 2000 / 2001);
    assert_rate(2000, 6e-4);
    assert_rate(210000, 6e-4);
    assert_true(pl_schedule_rate(&cfg, 210001) < 6e-4);
    assert_rate(307500, 6e-5 + 0.75 * 5.4e-4);
    assert_rate(405000, 3.3e-4);
    assert_rate(600000, 6e-5);
    assert_rate(600001, 6e-5);
    cfg.warmdown_share = 0.2;
    assert_rate(480000, 6e-4);
    assert_rate(540000, 3.3e-4);
}

static void wsd_without_a_warmdown_falls_at_once(void **state)
{
    (void)state;
    cfg.schedule = PL_SCHEDULE_WSD;
    cfg.warmdown_share = 0.0;
    assert_rate(600000, 6e-4);
    assert_rate(600001, 6e-5);
}

/* A warm-up that reaches into the warmdown cuts it, and no rate is passed
 * twice. */
static void a_warm_up_comes_before_the_warmdown(void **state)
{
    (void)state;
    cfg.schedule = PL_SCHEDULE_WSD;
    cfg.warmup_iters = 300000;
    assert_rate(299999, 6e-4 * 300000 / 300001);
    assert_rate(300000, 6e-4);
    assert_rate(450000, 3.3e-4);
    assert_rate(600000, 6e-5);
}

static void a_constant_rate_warms_up_and_stays(void **state)
{
    (void)state;
    cfg.schedule = PL_SCHEDULE_CONSTANT;
    assert_rate(0, 6e-4 / 2001);
    assert_rate(2000, 6e-4);
    assert_rate(600001, 6e-4);
    cfg.warmup_iters = cfg.lr_decay_iters; /* decays in no iteration */
    assert_rate(600000, 6e-4);
}

static void without_decay_every_schedule_is_constant(void **state)
{
    (void)state;
    cfg.decay_lr = false;
    for (int i = PL_SCHEDULE_COSINE; i <= (int)PL_SCHEDULE_CONSTANT; i++) {
        cfg.schedule = (pl_schedule_choice)i;
        assert_rate(0, 6e-4);
        assert_rate(599999, 6e-4);
    }
}

/* ---- Muon's rate ---- */

static void assert_share(uint64_t step, double highest)
{
    const double want = highest *
                        (pl_schedule_rate(&cfg, step) / cfg.learning_rate),
                 rate = pl_schedule_muon_rate(&cfg, step);
    if (!(fabs(rate - want) <= 1e-14 * highest))
        fail_msg("step %llu: %.17g, expected %.17g", (unsigned long long)step,
                 rate, want);
}

static void muons_rate_is_the_same_share_of_its_own(void **state)
{
    static const uint64_t steps[] = { 0, 1000, 2000, 300000, 500000, 700000 };
    (void)state;
    for (int i = PL_SCHEDULE_COSINE; i <= (int)PL_SCHEDULE_CONSTANT; i++)
        for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
            cfg.schedule = (pl_schedule_choice)i;
            cfg.muon_scale = PL_MUON_SCALE_SPECTRAL;
            cfg.muon_learning_rate = 0.0;
            assert_share(steps[k], 0.02);
            cfg.muon_scale = PL_MUON_SCALE_RMS;
            assert_share(steps[k], 6e-4);
            cfg.muon_learning_rate = 0.5;
            assert_share(steps[k], 0.5);
        }
}

static void muon_learns_also_where_adamw_does_not(void **state)
{
    (void)state;
    cfg.learning_rate = cfg.min_lr = 0.0;
    assert_true(pl_schedule_rate(&cfg, 301000) == 0.0);
    assert_true(fabs(pl_schedule_muon_rate(&cfg, 301000) - 0.01) < 1e-16);
    assert_true(pl_schedule_muon_rate(&cfg, 2000) == 0.02);
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
        TEST(a_line_falls_evenly),
        TEST(wsd_is_stable_and_then_falls),
        TEST(wsd_without_a_warmdown_falls_at_once),
        TEST(a_warm_up_comes_before_the_warmdown),
        TEST(a_constant_rate_warms_up_and_stays),
        TEST(without_decay_every_schedule_is_constant),
        TEST(muons_rate_is_the_same_share_of_its_own),
        TEST(muon_learns_also_where_adamw_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
