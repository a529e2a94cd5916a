/* The Nth call of a device fails, for every N, and so do all after it: a card
 * that is lost. That is an error with a message, and all that the host had
 * opened is closed. */
#include "device/choose.h"
#include "store/checkpoint.h"
#include "support/asserts.h"
#include "support/silly_device.h"
#include "support/tiny_run.h"
#include "train/bench.h"
#include "train/calibrate.h"
#include "train/sampler.h"
#include "train/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static tiny_run run;
static pl_error err;

/* As little as has every kind of call. */
static int set_up(void **state)
{
    static const char *const small[] = {
        "--n_layer=1",   "--batch_size=2", "--gradient_accumulation_steps=1",
        "--max_iters=1", "--eval_iters=1", "--bias=False"
    };
    (void)state;
    tiny_run_make(&run);
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
        tiny_run_set(&run, small[i]);
    pl_device_choose_only(&silly_device);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    silly_device_fail_at(0, SILLY_LOST);
    pl_device_choose_only(NULL);
    tiny_run_remove(&run);
    return 0;
}

/* What came out of the last act that ended well, and the device's calls that it
 * took. */
static unsigned long long result;
static long calls;
static int armed;

static void arm(long nth, silly_fault how)
{
    silly_device_fail_at(nth, how);
    armed = 1;
}

/* From here on nothing fails, and nothing is counted. */
static void disarm(void)
{
    if (armed)
        calls = silly_device_calls();
    silly_device_fail_at(0, SILLY_LOST);
    armed = 0;
}

static pl_status train(void)
{
    const pl_listener nobody = { .context = NULL };
    pl_status status = tiny_run_try(&run, &err);
    if (status)
        return status;
    run.is_open = 1;
    status = pl_train(&run.session, &nobody, &err);
    disarm();
    if (!status)
        result = tiny_run_hash(&run);
    return status;
}

static pl_status evaluate(void)
{
    pl_machine machine;
    pl_eval eval;
    run.config.eval_only = true;
    pl_status status = pl_machine_make(&machine, PL_MACHINE_RUN, &run.config,
                                       NULL, &run.heap, &err);
    if (!status)
        status = pl_session_open_eval(&run.session, &run.config, &machine,
                                      scratch_path(&run.folder, "out/latest"),
                                      NULL, &run.heap, &err);
    if (status)
        return status;
    run.is_open = 1;
    status = pl_evaluate(&run.session, PL_SPLIT_VAL, NULL, &eval, &err);
    if (!status)
        memcpy(&result, &eval.loss, sizeof result);
    return status;
}

static pl_status sample(void)
{
    const pl_sampling sampling = { 0.8, 5, 1, 0 };
    const int32_t prompt[] = { 3, 4 };
    pl_machine machine;
    pl_sampler sampler;
    int32_t token;
    pl_status status = pl_machine_make(&machine, PL_MACHINE_RUN, &run.config,
                                       NULL, &run.heap, &err);
    if (!status)
        status = pl_session_open_sample(&run.session, &run.config, &machine,
                                        scratch_path(&run.folder, "out/latest"),
                                        NULL, &run.heap, &err);
    if (status)
        return status;
    run.is_open = 1;
    status = pl_sampler_open(&sampler, &run.session, &sampling, 8, &err);
    if (!status) {
        pl_sampler_start(&sampler, 0, prompt, 2);
        status = pl_sampler_next(&sampler, &token, &err);
    }
    if (!status)
        result = (unsigned long long)token;
    return status;
}

static pl_status resume(void)
{
    tiny_run_set(&run, "--init_from=resume");
    tiny_run_set(&run, "--max_iters=2");
    return train();
}

/* Fails at every call of `act` in turn, then at none. What failed once may have
 * been tried again: a save. Then nothing else may have come out of it. */
static void fail_everywhere(pl_status (*act)(void), long least, silly_fault how)
{
    unsigned long long good = 0;
    for (long nth = 0;; nth++) {
        memset(&err, 0, sizeof err);
        arm(nth, how);
        pl_status status = act();
        disarm();
        tiny_run_close(&run);
        if (nth == 0)
            good = result;
        if (nth == 0 || calls < nth) {
            if (status)
                fail_msg("%s", err.text);
            assert_true(calls >= least && result == good);
            if (nth)
                return;
            continue;
        }
        if (!status && how == SILLY_ONCE && result == good)
            continue;
        if (status != PL_E_IO)
            fail_msg("call %ld: status %d, %s", nth, (int)status, err.text);
        assert_contains(err.text, "the silly device is lost");
    }
}

static void a_lost_device_ends_a_training_with_a_message(void **state)
{
    (void)state;
    fail_everywhere(train, 40, SILLY_LOST);
    assert_true(tiny_run_has_step(&run, 1));
}

static void a_lost_device_ends_what_uses_a_model_with_a_message(void **state)
{
    (void)state;
    if (train())
        fail_msg("%s", err.text);
    tiny_run_close(&run);
    fail_everywhere(resume, 40, SILLY_LOST);
    fail_everywhere(sample, 10, SILLY_LOST);
    fail_everywhere(evaluate, 10, SILLY_LOST);
}

static void no_failure_of_a_device_is_overlooked(void **state)
{
    (void)state;
    fail_everywhere(train, 40, SILLY_ONCE);
    fail_everywhere(resume, 40, SILLY_ONCE);
    fail_everywhere(sample, 10, SILLY_ONCE);
    fail_everywhere(evaluate, 10, SILLY_ONCE);
}

/* Measuring is no reason to fail: the plan is made with what is known. */
static void a_lost_device_is_no_measurement(void **state)
{
    (void)state;
    pl_machine machine;
    if (pl_machine_make(&machine, PL_MACHINE_RUN, &run.config, NULL, &run.heap,
                        &err))
        fail_msg("%s", err.text);
    for (long nth = 1; nth < 12; nth++) {
        silly_device_fail_at(nth, SILLY_LOST);
        pl_calibrate(&machine, &run.config, 61);
        assert_int_equal(pl_machine_rates(&machine)->source, PL_RATES_BUILT_IN);
    }
}

static void a_lost_device_ends_a_benchmark_with_a_message(void **state)
{
    static pl_bench bench;
    (void)state;
    const pl_log silent = { 0 };
    pl_machine machine;
    if (pl_machine_make(&machine, PL_MACHINE_RUN, &run.config, NULL, &run.heap,
                        &err) ||
        pl_session_open_bench(&run.session, &run.config, &machine, PL_NEW_ZEROS,
                              61, &silent, &run.heap, &err))
        fail_msg("%s", err.text);
    run.is_open = 1;
    pl_bench_begin(&bench, &run.session);
    silly_device_fail_at(6, SILLY_LOST);
    assert_int_equal(pl_bench_run_round(&bench, &err), PL_E_IO);
    assert_contains(err.text, "the silly device is lost");
    assert_int_equal(bench.count, -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lost_device_ends_a_training_with_a_message),
        TEST(a_lost_device_ends_what_uses_a_model_with_a_message),
        TEST(no_failure_of_a_device_is_overlooked),
        TEST(a_lost_device_is_no_measurement),
        TEST(a_lost_device_ends_a_benchmark_with_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
