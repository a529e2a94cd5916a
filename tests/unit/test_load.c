/* Tests of advise/load: whose the time was. */
#include "advise/load.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_quiet(pl_load from, pl_load to, double wanted)
{
    const double quiet = pl_load_quiet(&from, &to);
    if (!(fabs(quiet - wanted) < 1e-9))
        fail_msg("%g instead of %g", quiet, wanted);
}

static void the_share_is_time_on_a_processor(void **state)
{
    (void)state;
    assert_quiet((pl_load){ .seconds = 10, .thread_seconds = 3 },
                 (pl_load){ .seconds = 12, .thread_seconds = 5 }, 1.0);
    assert_quiet((pl_load){ .seconds = 10, .thread_seconds = 3 },
                 (pl_load){ .seconds = 20, .thread_seconds = 4 }, 0.1);
    /* clocks that disagree a little */
    assert_quiet((pl_load){ .seconds = 10, .thread_seconds = 3 },
                 (pl_load){ .seconds = 11, .thread_seconds = 4.01 }, 1.0);
}

static void what_a_hypervisor_takes_is_not_ours(void **state)
{
    (void)state;
    assert_quiet((pl_load){ .seconds = 1,
                            .thread_seconds = 1,
                            .ticks = 1000,
                            .stolen_ticks = 10 },
                 (pl_load){ .seconds = 2,
                            .thread_seconds = 2,
                            .ticks = 1200,
                            .stolen_ticks = 60 },
                 0.75);
    /* a file that could be read once only says nothing */
    assert_quiet((pl_load){ .seconds = 1, .thread_seconds = 1 },
                 (pl_load){ .seconds = 2,
                            .thread_seconds = 2,
                            .ticks = 1200,
                            .stolen_ticks = 60 },
                 1.0);
}

static void clocks_that_stand_still_prove_nothing(void **state)
{
    (void)state;
    const pl_load same = { .seconds = 5, .thread_seconds = 5 };
    assert_quiet(same, same, 0.0);
    assert_quiet(same, (pl_load){ .seconds = 6, .thread_seconds = 5 }, 0.0);
}

static void the_text_of_the_kernel_is_read(void **state)
{
    (void)state;
    static const char *const strange[] = {
        "", "cpu", "cpu 1 2 3", "cpu0 1 2", "cpu x", "cpu 1 2 3 4 -5 6 7 8"
    };
    pl_load load = { 0 };
    pl_load_parse_stat(&load, "cpu  100 5 20 800 10 1 4 60 0 0\ncpu0 1 2 3\n");
    assert_true(load.stolen_ticks == 60.0);
    assert_true(load.ticks == 1000.0);
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        load = (pl_load){ 0 };
        pl_load_parse_stat(&load, strange[i]);
        assert_true(load.ticks == 0.0 && load.stolen_ticks == 0.0);
    }
}

static void this_machine_has_clocks(void **state)
{
    volatile double sum = 0.0;
    (void)state;
    const pl_load from = pl_load_read();
    for (int i = 0; i < 3000000; i++)
        sum += 1.0;
    const pl_load to = pl_load_read();
    const double quiet = pl_load_quiet(&from, &to);
    assert_true(quiet > 0.0 && quiet <= 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_share_is_time_on_a_processor),
        cmocka_unit_test(what_a_hypervisor_takes_is_not_ours),
        cmocka_unit_test(clocks_that_stand_still_prove_nothing),
        cmocka_unit_test(the_text_of_the_kernel_is_read),
        cmocka_unit_test(this_machine_has_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
