/* Faults during a run: every Nth system call of a save fails, every Nth
 * allocation of setting up fails. The old checkpoint stays whole, nothing
 * leaks, and the message says what happened. */
#include "base/file.h"
#include "store/checkpoint.h"
#include "support/tiny_run.h"
#include "train/trainer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 5000 };

/* The newest checkpoint that is whole. */
static uint64_t step_on_disk(const tiny_run *run)
{
    pl_checkpoint_state state;
    pl_error err = { 0 };
    char folder[PL_PATH_BYTES];
    pl_heap heap = pl_heap_make(1 << 20);
    if (pl_checkpoint_find(folder, scratch_path(&run->folder, "out"),
                           PL_WANT_NEWEST, PL_SCOPE_ALL, NULL, &heap, &err) ||
        pl_checkpoint_read_state(&state, folder, &heap, &err))
        fail_msg("%s", err.text);
    pl_heap_close(&heap);
    return state.step;
}

/* What the links point to is whole. */
static void assert_links_are_whole(const tiny_run *run)
{
    static const char *const links[] = { "out/latest", "out/best" };
    for (int i = 0; i < 2; i++) {
        pl_manifest manifest;
        pl_error err = { 0 };
        const char *path = scratch_path(&run->folder, links[i]);
        if (pl_manifest_check(&manifest, path, PL_SCOPE_ALL, &err))
            fail_msg("%s", err.text);
    }
}

static void save_with_a_fault(tiny_run *run, long nth, int error, int *ended)
{
    pl_error err = { 0 };
    int files = scratch_open_files();
    uint64_t before = step_on_disk(run);
    run->session.run.step++;
    run->session.run.val_loss = 3.0 -
                                1e-6 * (double)nth; /* better every time */
    pl_file_fail_at(nth, error);
    pl_status status = pl_checkpoint_save(&run->session.run, &err);
    *ended = !pl_file_fault_happened();
    pl_file_fail_at(0, 0);
    uint64_t after = step_on_disk(run);
    assert_true(after == before || after == run->session.run.step);
    assert_links_are_whole(run);
    assert_int_equal(scratch_open_files(), files);
    if (!status)
        assert_int_equal(after, run->session.run.step);
    else
        assert_non_null(strstr(err.text, "out/step-"));
    if (*ended)
        assert_int_equal(status, PL_OK);
    /* a worse one, undisturbed: the best stays */
    run->session.run.step++;
    run->session.run.val_loss = 5.0;
    if (pl_checkpoint_save(&run->session.run, &err))
        fail_msg("%s", err.text);
    assert_links_are_whole(run);
}

static void a_failing_save_leaves_whole_checkpoints(void **state)
{
    (void)state;
    tiny_run run;
    pl_error err = { 0 };
    int ended = 0;
    tiny_run_make(&run);
    tiny_run_set(&run, "--keep=0");
    tiny_run_open(&run);
    run.session.run.val_loss = 4.0;
    assert_int_equal(pl_checkpoint_save(&run.session.run, &err), PL_OK);
    for (long nth = 1; nth < MANY && !ended; nth++)
        save_with_a_fault(&run, nth, nth % 2 ? EIO : ENOSPC, &ended);
    assert_true(ended);
    tiny_run_remove(&run);
}

/* ---- a whole run on a bad disk ---- */

enum { UPDATES = 6 };

static void count_warning(void *context, pl_log_level level, const char *text)
{
    (void)text;
    *(int *)context += level == PL_LOG_WARN;
}

/* Trains with checkpoints at every step while every nth change of the disk
 * fails. Returns whether any did. */
static int train_on_bad_disk(long nth, int error, unsigned long long hash)
{
    tiny_run run;
    pl_machine machine;
    pl_listener listener = { 0 };
    pl_error err = { 0 };
    int warnings = 0;
    pl_log log = { count_warning, &warnings };
    tiny_run_make(&run);
    tiny_run_set(&run, "--save_interval=1");
    tiny_run_set(&run, "--eval_interval=2");
    tiny_run_set(&run, "--eval_iters=1");
    if (pl_machine_make(&machine, PL_MACHINE_RUN, &run.config, NULL, &run.heap,
                        &err) ||
        pl_session_open_train(&run.session, run.purpose, &run.config, &machine,
                              &log, &run.heap, &err))
        fail_msg("%s", err.text);
    run.is_open = 1;
    assert_int_equal(pl_checkpoint_save(&run.session.run, &err), PL_OK);
    int files = scratch_open_files();
    pl_file_fail_every(nth, error);
    pl_status status = pl_train(&run.session, &listener, &err);
    int happened = pl_file_fault_happened();
    pl_file_fail_every(0, 0);
    assert_int_equal(run.session.run.step, UPDATES); /* it went on */
    assert_true(tiny_run_hash(&run) == hash);
    assert_int_equal(scratch_open_files(), files);
    assert_true(warnings > 0 || !happened || status == PL_OK);
    uint64_t newest = step_on_disk(&run);
    if (!status)
        assert_int_equal(newest, UPDATES);
    else
        assert_non_null(strstr(err.text, "lost"));
    tiny_run_close(&run);

    /* and what is there goes on, to the same end */
    tiny_run_set(&run, "--init_from=resume");
    tiny_run_open(&run);
    assert_int_equal(run.session.run.step, newest);
    assert_int_equal(pl_train(&run.session, &listener, &err), PL_OK);
    assert_true(tiny_run_hash(&run) == hash);
    tiny_run_remove(&run);
    return happened;
}

/* The fault after the nth: all of those at the beginning, then some. */
static long next(long nth)
{
    return nth + (getenv("PL_TEST_LONG") || nth < 20 ? 1 : 1 + nth / 16);
}

static void a_run_goes_on_whatever_the_disk_refuses(void **state)
{
    (void)state;
    tiny_run run;
    pl_listener listener = { 0 };
    pl_error err = { 0 };
    tiny_run_make(&run);
    tiny_run_set(&run, "--eval_interval=2");
    tiny_run_set(&run, "--eval_iters=1");
    tiny_run_open(&run);
    assert_int_equal(pl_train(&run.session, &listener, &err), PL_OK);
    unsigned long long hash = tiny_run_hash(&run);
    tiny_run_remove(&run);
    int happened = 1, all = getenv("PL_TEST_LONG") != NULL;
    for (long nth = 1; nth < MANY && happened; nth += all ? 1 : 1 + nth / 2)
        happened = train_on_bad_disk(nth, nth % 2 ? ENOSPC : EIO, hash);
    assert_false(happened);
}

static void a_failing_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    tiny_run run;
    pl_error err = { 0 };
    int ended = 0;
    tiny_run_make(&run);
    for (long nth = 1; nth < MANY && !ended; nth = next(nth)) {
        int files = scratch_open_files();
        pl_arena_fail_at(nth);
        pl_status status = tiny_run_try(&run, &err);
        pl_arena_fail_at(0);
        if (status) {
            assert_int_equal(status, PL_E_MEMORY);
            assert_int_equal(scratch_open_files(), files);
            assert_true(strlen(err.text) > 0);
        } else {
            run.is_open = 1;
            ended = 1;
        }
    }
    assert_true(ended);
    tiny_run_remove(&run);
}

static void a_failing_read_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    tiny_run run;
    pl_error err = { 0 };
    int ended = 0;
    tiny_run_make(&run);
    tiny_run_open(&run);
    assert_int_equal(pl_checkpoint_save(&run.session.run, &err), PL_OK);
    tiny_run_close(&run);
    tiny_run_set(&run, "--init_from=resume");
    for (long nth = 1; nth < MANY && !ended; nth = next(nth)) {
        int files = scratch_open_files();
        pl_file_fail_at(nth, EIO);
        pl_status status = tiny_run_try(&run, &err);
        ended = !pl_file_fault_happened();
        pl_file_fail_at(0, 0);
        if (ended) {
            assert_int_equal(status, PL_OK);
            run.is_open = 1;
        } else if (!status) { /* the call was advice: nothing was lost */
            pl_session_close(&run.session);
            tiny_run_close(&run);
        } else {
            assert_int_equal(scratch_open_files(), files);
        }
    }
    assert_true(ended);
    tiny_run_remove(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_save_leaves_whole_checkpoints),
        cmocka_unit_test(a_run_goes_on_whatever_the_disk_refuses),
        cmocka_unit_test(a_failing_allocation_is_an_error_and_leaks_nothing),
        cmocka_unit_test(a_failing_read_is_an_error_and_leaks_nothing),
    };
    scratch_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
