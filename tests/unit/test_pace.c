/* Tests of train/pace: how long the rest takes, and whether a stop waits. */
#include "train/pace.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void assert_near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-9 * fmax(1.0, fabs(wanted))))
        fail_msg("%.12g instead of %.12g", value, wanted);
}

static void at_first_it_believes_what_was_seen_before(void **state)
{
    (void)state;
    pl_pace pace = pl_pace_make(100.0, 50.0, 3.0);
    assert_near(pl_pace_left(&pace, 100.0), 150.0);
    assert_near(pl_pace_share(&pace), 0.0);
}

/* 18 times slower than predicted: seen after a few per cent. */
static void then_it_believes_what_it_sees(void **state)
{
    (void)state;
    pl_pace pace = pl_pace_make(100.0, 50.0, 1.0);
    pace.done = 25.0;
    const double left = pl_pace_left(&pace, 100.0 + 18.0 * 25.0);
    assert_true(left > 0.9 * 18.0 * 25.0 && left < 18.0 * 25.0);
    assert_near(pl_pace_share(&pace), 0.5);
    pace.done = 60.0; /* more than was predicted */
    assert_near(pl_pace_left(&pace, 600.0), 0.0);
    assert_near(pl_pace_share(&pace), 1.0);
}

static void nothing_to_do_is_no_division_by_zero(void **state)
{
    (void)state;
    pl_pace pace = pl_pace_make(1.0, 0.0, 1.0);
    assert_near(pl_pace_left(&pace, 5.0), 0.0);
    assert_near(pl_pace_share(&pace), 0.0);
}

static void what_ends_soon_is_waited_for(void **state)
{
    (void)state;
    pl_pace pace = pl_pace_make(100.0, 50.0, 1.0);
    pace.done = 10.0; /* 40 s are left */
    assert_true(pl_pace_gives_up(&pace, 110.0, 2.0));
    pace = pl_pace_make(100.0, 50.0, 1.0);
    pace.done = 49.0; /* 1 s */
    assert_false(pl_pace_gives_up(&pace, 149.0, 2.0));
}

/* An end that was to be expected and doesn't come. */
static void the_waiting_has_an_end(void **state)
{
    (void)state;
    pl_pace pace = pl_pace_make(100.0, 50.0, 1.0);
    pace.done = 49.0;
    assert_false(pl_pace_gives_up(&pace, 149.0, 2.0));
    assert_false(pl_pace_gives_up(&pace, 149.5, 2.0));
    assert_true(pl_pace_gives_up(&pace, 151.1, 2.0));
    pace.done = 50.0; /* done meanwhile, but too late to be waited for */
    assert_true(pl_pace_gives_up(&pace, 151.2, 2.0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_first_it_believes_what_was_seen_before),
        cmocka_unit_test(then_it_believes_what_it_sees),
        cmocka_unit_test(nothing_to_do_is_no_division_by_zero),
        cmocka_unit_test(what_ends_soon_is_waited_for),
        cmocka_unit_test(the_waiting_has_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
