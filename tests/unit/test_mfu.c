/* Tests of advise/mfu: a share of the highest peak that was seen. */
#include "advise/mfu.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_share(const pl_mfu *mfu, double wanted)
{
    const double share = pl_mfu_share(mfu);
    if (!(fabs(share - wanted) < 1e-9))
        fail_msg("%g instead of %g", share, wanted);
}

static void the_first_updates_have_none(void **state)
{
    (void)state;
    pl_mfu mfu = pl_mfu_make(50.0, 50.0);
    pl_mfu_probed(&mfu, 100.0);
    for (int i = 0; i < 5; i++) {
        pl_mfu_updated(&mfu, 4.0); /* slow, and counted nowhere */
        assert_true(pl_mfu_share(&mfu) < 0.0);
    }
    pl_mfu_updated(&mfu, 1.0);
    assert_share(&mfu, 0.5);
    pl_mfu_updated(&mfu, 0.5);
    assert_share(&mfu, 0.9 * 0.5 + 0.1 * 1.0);
}

static void the_best_probe_counts(void **state)
{
    (void)state;
    pl_mfu mfu = pl_mfu_make(50.0, 50.0);
    pl_mfu_probed(&mfu, 4.0);
    pl_mfu_probed(&mfu, 100.0);
    pl_mfu_probed(&mfu, 20.0);
    assert_true(mfu.peak_flops == 100.0);
}

/* 1811 %: every probe was disturbed. What training does, the machine can. */
static void what_is_beaten_is_raised(void **state)
{
    (void)state;
    pl_mfu mfu = pl_mfu_make(60.0, 50.0);
    pl_mfu_probed(&mfu, 3.0);
    for (int i = 0; i < 6; i++)
        pl_mfu_updated(&mfu, 1.0);
    assert_true(mfu.peak_flops == 50.0);
    assert_share(&mfu, 60.0 / 50.0); /* nanoGPT counts more than is needed */
    pl_mfu_probed(&mfu, 200.0);
    assert_share(&mfu, 60.0 / 200.0); /* all of it, not only what follows */
}

static void it_is_probed_before_it_is_shown(void **state)
{
    (void)state;
    pl_mfu mfu = pl_mfu_make(60.0, 50.0);
    int probes = 0;
    for (int i = 0; i < 100; i++) {
        pl_mfu_updated(&mfu, 1.0);
        probes += pl_mfu_wants_probe(&mfu);
    }
    assert_int_equal(probes, 3);
}

static void a_clock_that_stands_still_divides_by_nothing(void **state)
{
    (void)state;
    pl_mfu mfu = pl_mfu_make(60.0, 50.0);
    for (int i = 0; i < 9; i++)
        pl_mfu_updated(&mfu, 0.0);
    assert_true(mfu.peak_flops == 0.0 && pl_mfu_share(&mfu) < 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_updates_have_none),
        cmocka_unit_test(the_best_probe_counts),
        cmocka_unit_test(what_is_beaten_is_raised),
        cmocka_unit_test(it_is_probed_before_it_is_shown),
        cmocka_unit_test(a_clock_that_stands_still_divides_by_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
