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

/* A text of unknown length, but where `unique_bytes` says it. */
static void check_of_text(double parameters, double tokens,
                          pl_optimizer_choice optimizer, pl_expect_text text,
                          double found)
{
    const pl_expectation e = pl_expect_bits(parameters, tokens, optimizer,
                                            &text);
    if (!(e.low <= found && found <= e.high))
        fail_msg("%g parameters, %g tokens: %g is not within %g to %g",
                 parameters, tokens, found, e.low, e.high);
}

static void check_within(double parameters, double tokens,
                         double bytes_per_token, double found)
{
    check_of_text(parameters, tokens, PL_OPTIMIZER_MUON,
                  (pl_expect_text){ .bytes_per_token = bytes_per_token },
                  found);
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
    check_of_text(124e6, 1e10, PL_OPTIMIZER_ADAMW, (pl_expect_text){ 4.6, 0 },
                  1.03);
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

/* bench/recipe.jsonl's, at an eighth of the tokens and at the end, and
 * nanoGPT's recipes: for Shakespeare's 1.1 million characters after 500 and
 * 2000 updates, and what the demo was. */
static void runs_of_both_optimizers_are_within(void **state)
{
    const pl_optimizer_choice adamw = PL_OPTIMIZER_ADAMW,
                              muon = PL_OPTIMIZER_MUON;
    const pl_expect_text english = { 3.41, 29e6 }, shakespeare = { 1.0, 1e6 };
    const double some = 134 * 8192.0;
    (void)state;
    check_of_text(4.2e6, some, adamw, english, 2.067);
    check_of_text(4.2e6, some, adamw, english, 2.195);
    check_of_text(4.2e6, some, adamw, english, 1.923);
    check_of_text(4.2e6, 1076 * 8192.0, adamw, english, 1.372);
    check_of_text(4.2e6, some, muon, english, 1.638);
    check_of_text(4.2e6, some, muon, english, 1.700);
    check_of_text(4.2e6, 320 * 8192.0, muon, english, 1.345);
    check_of_text(0.8e6, 500 * 768.0, adamw, shakespeare, 3.305);
    check_of_text(0.8e6, 2000 * 768.0, adamw, shakespeare, 2.754);
    check_of_text(885e3, 1200 * 2048.0, adamw, (pl_expect_text){ 2.75, 4.5e6 },
                  1.977);
}

static void more_is_less(void **state)
{
    (void)state;
    const pl_expect_text text = { .bytes_per_token = 4.0 };
    double before = 8.0;
    for (double scale = 1e5; scale < 1e11; scale *= 10.0) {
        const pl_expectation e = pl_expect_bits(scale, 12.0 * scale,
                                                PL_OPTIMIZER_MUON, &text);
        assert_true(e.low < e.high && e.high <= 8.0);
        assert_true(e.low < before);
        before = e.low;
    }
    const pl_expectation nothing = pl_expect_bits(0.0, 0.0, PL_OPTIMIZER_MUON,
                                                  &text);
    assert_true(nothing.low == 0.0 && nothing.high == 8.0);
}

static double least_of(double tokens, const pl_expect_text *text)
{
    return pl_expect_bits(1e6, tokens, PL_OPTIMIZER_MUON, text).low;
}

/* Four times the same text is worth nearly four texts, 400 times no more than
 * some 16. */
static void repeated_text_wears_out(void **state)
{
    (void)state;
    const double tokens = 1e6;
    const pl_expect_text fresh = { .bytes_per_token = 4.0 },
                         same = { 4.0, 4.0 * tokens };
    assert_true(least_of(tokens, &same) == least_of(tokens, &fresh));
    assert_true(least_of(4 * tokens, &same) > least_of(4 * tokens, &fresh));
    assert_true(least_of(4 * tokens, &same) < least_of(3.6 * tokens, &fresh));
    assert_true(least_of(400 * tokens, &same) >
                least_of(16.5 * tokens, &fresh));
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
        cmocka_unit_test(runs_of_both_optimizers_are_within),
        cmocka_unit_test(more_is_less),
        cmocka_unit_test(repeated_text_wears_out),
        cmocka_unit_test(a_vocabulary_has_its_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
