/* Tests of advise/expect: the law, at points that were published and measured,
 * and what repeated text is worth. */
#include "advise/expect.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void check_within(double parameters, double tokens,
                         double bytes_per_token, double found)
{
    const pl_expect_text text = { .bytes_per_token = bytes_per_token };
    const pl_expectation e = pl_expect_bits(parameters, tokens, &text);
    if (!(e.low <= found && found <= e.high))
        fail_msg("%g parameters, %g tokens: %g is not within %g to %g",
                 parameters, tokens, found, e.low, e.high);
}

/* nanochat's, dev/LOG.md, with tokens of 4.8 bytes: its first models of 8 to 20
 * blocks, and a later sweep; llm.c's GPT-2 on ten billion tokens. */
static void published_runs_are_within(void **state)
{
    (void)state;
    check_within(58.7e6, 1.17e9, 4.8, 1.0885);
    check_within(135e6, 2.7e9, 4.8, 0.977);
    check_within(268e6, 5.4e9, 4.8, 0.9059);
    check_within(477e6, 9.5e9, 4.8, 0.8565);
    check_within(124e6, 1e10, 4.6, 1.03);
    check_within(110678115, 1241505403, 4.8, 0.8972);
    check_within(167797457, 1785336422, 4.8, 0.8616);
    check_within(250650865, 2642234152, 4.8, 0.8293);
    check_within(381758347, 3806871243, 4.8, 0.7999);
}

/* The demo's, and shorter ones of its like. */
static void own_runs_are_within(void **state)
{
    (void)state;
    check_within(885e3, 800 * 2048.0, 2.75, 1.606);
    check_within(885e3, 240 * 2048.0, 2.75, 1.870);
}

static void more_is_less(void **state)
{
    (void)state;
    const pl_expect_text text = { .bytes_per_token = 4.0 };
    double before = 8.0;
    for (double scale = 1e5; scale < 1e11; scale *= 10.0) {
        const pl_expectation e = pl_expect_bits(scale, 12.0 * scale, &text);
        assert_true(e.low < e.high && e.high <= 8.0);
        assert_true(e.low < before);
        before = e.low;
    }
    const pl_expectation nothing = pl_expect_bits(0.0, 0.0, &text);
    assert_true(nothing.low == 0.0 && nothing.high == 8.0);
}

/* Four times the same text is worth nearly four texts, 400 times no more than
 * some 16. */
static void repeated_text_wears_out(void **state)
{
    (void)state;
    const double tokens = 1e6;
    const pl_expect_text fresh = { .bytes_per_token = 4.0 },
                         same = { 4.0, 4.0 * tokens };
    assert_true(pl_expect_bits(1e6, tokens, &same).low ==
                pl_expect_bits(1e6, tokens, &fresh).low);
    assert_true(pl_expect_bits(1e6, 4 * tokens, &same).low >
                pl_expect_bits(1e6, 4 * tokens, &fresh).low);
    assert_true(pl_expect_bits(1e6, 4 * tokens, &same).low <
                pl_expect_bits(1e6, 3.6 * tokens, &fresh).low);
    assert_true(pl_expect_bits(1e6, 400 * tokens, &same).low >
                pl_expect_bits(1e6, 16.5 * tokens, &fresh).low);
}

static void a_vocabulary_has_its_bytes(void **state)
{
    (void)state;
    assert_true(pl_expect_bytes_per_token(0) == 1.0);
    assert_true(pl_expect_bytes_per_token(65) == 1.0);
    assert_true(fabs(pl_expect_bytes_per_token(8192) - 3.9) < 1e-9);
    assert_true(fabs(pl_expect_bytes_per_token(50304) - 4.56) < 0.01);
    assert_true(pl_expect_bytes_per_token(1u << 20) == 4.7);
    for (size_t v = 256; v < 1u << 18; v *= 2)
        assert_true(pl_expect_bytes_per_token(v + 1) >=
                    pl_expect_bytes_per_token(v));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_runs_are_within),
        cmocka_unit_test(own_runs_are_within),
        cmocka_unit_test(more_is_less),
        cmocka_unit_test(repeated_text_wears_out),
        cmocka_unit_test(a_vocabulary_has_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
