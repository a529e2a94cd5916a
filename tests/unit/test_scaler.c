/* Tests of model/scaler. */
#include "model/scaler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void it_halves_at_an_overflow_down_to_one(void **state)
{
    (void)state;
    pl_scaler scaler = pl_scaler_make(1);
    for (int i = 0; i < 16; i++)
        assert_true(pl_scaler_update(&scaler, 1));
    assert_true(scaler.scale == 1.0);
    assert_false(pl_scaler_update(&scaler, 1)); /* no more room */
    assert_true(scaler.scale == 1.0);
}

static void it_doubles_after_many_good_updates(void **state)
{
    (void)state;
    pl_scaler scaler = pl_scaler_make(1);
    for (int i = 0; i < PL_SCALER_GROWTH_UPDATES - 1; i++)
        pl_scaler_update(&scaler, 0);
    assert_true(scaler.scale == 65536.0);
    pl_scaler_update(&scaler, 0);
    assert_true(scaler.scale == 131072.0);
    pl_scaler_update(&scaler, 1);
    assert_true(scaler.scale == 65536.0);
    assert_int_equal(scaler.good, 0);
    for (int i = 0; i < 100 * PL_SCALER_GROWTH_UPDATES; i++)
        pl_scaler_update(&scaler, 0);
    assert_true(scaler.scale == 0x1p24); /* and no further */
}

static void without_float16_it_stays_at_one(void **state)
{
    (void)state;
    pl_scaler scaler = pl_scaler_make(0);
    assert_false(pl_scaler_update(&scaler, 1));
    for (int i = 0; i < 2 * PL_SCALER_GROWTH_UPDATES; i++)
        pl_scaler_update(&scaler, 0);
    assert_true(scaler.scale == 1.0);
}

static void only_its_own_powers_of_two_are_valid(void **state)
{
    (void)state;
    assert_true(pl_scaler_is_valid(1.0));
    assert_true(pl_scaler_is_valid(65536.0));
    assert_true(pl_scaler_is_valid(0x1p24));
    assert_false(pl_scaler_is_valid(0x1p25));
    assert_false(pl_scaler_is_valid(0.5));
    assert_false(pl_scaler_is_valid(3.0));
    assert_false(pl_scaler_is_valid(-2.0));
    assert_false(pl_scaler_is_valid((double)NAN));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_halves_at_an_overflow_down_to_one),
        cmocka_unit_test(it_doubles_after_many_good_updates),
        cmocka_unit_test(without_float16_it_stays_at_one),
        cmocka_unit_test(only_its_own_powers_of_two_are_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
