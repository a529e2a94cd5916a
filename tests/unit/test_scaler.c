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
    pl_scaler scaler = pl_scaler_make(PL_F16, 512.0);
    for (int i = 0; i < 16; i++)
        assert_true(pl_scaler_update(&scaler, 1));
    assert_true(scaler.scale == 1.0);
    assert_false(pl_scaler_update(&scaler, 1)); /* no more room */
    assert_true(scaler.scale == 1.0);
}

static void it_doubles_after_many_good_updates(void **state)
{
    (void)state;
    pl_scaler scaler = pl_scaler_make(PL_F16, 512.0);
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

static void stays_at(pl_dtype dtype, double tokens, double scale)
{
    pl_scaler scaler = pl_scaler_make(dtype, tokens);
    assert_true(scaler.scale == scale);
    assert_false(
        pl_scaler_update(&scaler, 1)); /* it wasn't the scale's fault */
    for (int i = 0; i < 2 * PL_SCALER_GROWTH_UPDATES; i++)
        pl_scaler_update(&scaler, 0);
    assert_true(scaler.scale == scale);
}

static void in_float32_it_stays_at_one(void **state)
{
    (void)state;
    stays_at(PL_F32, 524288.0, 1.0);
}

static void in_bfloat16_it_stays_at_the_power_next_to_the_tokens(void **state)
{
    (void)state;
    stays_at(PL_BF16, 1.0, 1.0);
    stays_at(PL_BF16, 524288.0, 524288.0);
    stays_at(PL_BF16, 5.0, 4.0);
    stays_at(PL_BF16, 6.0, 8.0);
    stays_at(PL_BF16, 181.0, 128.0); /* 128 sqrt(2) = 181.02 */
    stays_at(PL_BF16, 182.0, 256.0);
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
        cmocka_unit_test(in_float32_it_stays_at_one),
        cmocka_unit_test(in_bfloat16_it_stays_at_the_power_next_to_the_tokens),
        cmocka_unit_test(only_its_own_powers_of_two_are_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
