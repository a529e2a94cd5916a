/* test_card_faults.c: every call to a driver failing in turn, while a run is
 * set up, while it trains and while it saves: an error that names the call,
 * nothing leaked, and the run goes on from its last checkpoint to the same end.
 */
#include "card/which.h"
#include "device/gpu_call.h"
#include "store/checkpoint.h"
#include "support/asserts.h"
#include "support/sanitized.h"
#include "support/scratch.h"
#include "support/tiny_run.h"
#include "train/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#if SANITIZED_ADDRESS
#include <sanitizer/lsan_interface.h>
#endif

enum {
    MANY = 100000,
    OPENING = 80,
    OUT_OF_RESOURCES = -5,
    LAUNCH_FAILED = 719
};

/* Whether an error names the card, and CUDA's, OpenCL's or NVRTC's error. */
static int is_explained(const char *text)
{
    if (is_cuda())
        return strstr(text, "cuda:0 (Emulated card)") &&
               (strstr(text, "CUDA_ERROR_LAUNCH_FAILED") ||
                (strstr(text, "NVRTC") && strstr(text, "719")));
    return strstr(text, "opencl:0 (Emulated card)") &&
           strstr(text, "CL_OUT_OF_RESOURCES");
}

static void make(tiny_run *run)
{
    setenv("PL_CARD", "blind", 1); /* races are others' to find */
    tiny_run_make(run);
    pl_device_choose_only(&which_card()->base);
    tiny_run_set(run, "--eval_interval=2");
    tiny_run_set(run, "--eval_iters=1");
    tiny_run_set(run, "--max_iters=2");
}

static unsigned long long whole(void)
{
    tiny_run run;
    pl_error err = { 0 };
    pl_listener listener = { 0 };
    make(&run);
    tiny_run_open(&run);
    assert_int_equal(pl_train(&run.session, &listener, &err), PL_OK);
    const unsigned long long hash = tiny_run_hash(&run);
    tiny_run_remove(&run);
    return hash;
}

/* Whether the fault came to pass. */
static int train_on_bad_card(long nth, unsigned long long hash)
{
    tiny_run run;
    pl_error err = { 0 };
    pl_listener listener = { 0 };
    const int files = scratch_open_files();
    make(&run);
    pl_gpu_fail_at(nth, is_cuda() ? LAUNCH_FAILED : OUT_OF_RESOURCES);
    pl_status status = tiny_run_try(&run, &err);
    run.is_open = status == PL_OK;
    if (!status)
        status = pl_train(&run.session, &listener, &err);
    const int happened = pl_gpu_fail_at(0, 0) >= nth;
    /* a measurement that fails is only unknown */
    assert_true(happened || !status);
    if (!status)
        assert_true(tiny_run_hash(&run) == hash);
    if (status && !is_explained(err.text))
        fail_msg("call %ld: %s", nth, err.text);
    tiny_run_close(&run);
    assert_int_equal(scratch_open_files(), files);

    tiny_run_set(&run, "--init_from=resume");
    if (tiny_run_try(&run, &err)) { /* nothing was saved yet */
        tiny_run_remove(&run);
        return happened;
    }
    run.is_open = 1;
    assert_int_equal(pl_train(&run.session, &listener, &err), PL_OK);
    assert_true(tiny_run_hash(&run) == hash);
    tiny_run_remove(&run);
    return happened;
}

static void every_call_may_fail(void **state)
{
    int happened = 1;
    const int all = getenv("PL_TEST_LONG") != NULL;
    (void)state;
    const unsigned long long hash = whole();
    /* all while the card is opened, which differ, then some */
    for (long nth = 1; nth < MANY && happened;
         nth += all || nth < OPENING ? 1 : nth)
        happened = train_on_bad_card(nth, hash);
    assert_false(happened);
}

static void leaks_are_fine(int from_here)
{
#if SANITIZED_ADDRESS
    if (from_here)
        __lsan_disable();
    else
        __lsan_enable();
#else
    (void)from_here;
#endif
}

static void a_card_that_hangs_is_given_up(void **state)
{
    tiny_run run;
    pl_error err = { 0 };
    pl_listener listener = { 0 };
    const double patience = pl_gpu_patience;
    (void)state;
    make(&run);
    leaks_are_fine(1); /* nothing can be taken from a card that hangs */
    tiny_run_open(&run);
    pl_gpu_patience = 0.05;
    setenv("PL_CARD", "hangs=1,blind", 1);
    assert_int_equal(pl_train(&run.session, &listener, &err), PL_E_IO);
    if (!strstr(err.text, "hasn't answered for"))
        fail_msg("%s", err.text);
    pl_gpu_patience = patience;
    tiny_run_remove(&run);
    leaks_are_fine(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(a_card_that_hangs_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
