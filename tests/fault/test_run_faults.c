/* Faults during a run: every Nth system call of a save fails, every Nth
 * allocation of setting up fails. The old checkpoint stays whole, nothing
 * leaks, and the message says what happened. */
#include "base/file.h"
#include "support/tiny_run.h"
#include "train/checkpoint.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 5000 };

/* The state on disk: readable, and from before or after the save. */
static uint64_t step_on_disk(const tiny_run *run)
{
    pl_checkpoint_state state;
    pl_error err = { 0 };
    pl_heap heap = pl_heap_make(1 << 20);
    if (pl_checkpoint_read_state(&state, scratch_path(&run->folder, "out/ckpt"),
                                 &heap, &err))
        fail_msg("%s", err.text);
    pl_heap_close(&heap);
    return state.step;
}

static void a_failing_save_leaves_a_whole_checkpoint(void **state)
{
    (void)state;
    static const int errors[] = { EIO, ENOSPC };
    tiny_run run;
    pl_error err = { 0 };
    tiny_run_make(&run);
    tiny_run_open(&run);
    assert_int_equal(
        pl_checkpoint_save(&run.session, PL_CHECKPOINT_NEWEST, &err), PL_OK);
    for (size_t e = 0; e < 2; e++) {
        int ended = 0;
        for (long nth = 1; nth < MANY && !ended; nth++) {
            int files = scratch_open_files();
            uint64_t before = step_on_disk(&run);
            run.session.step++;
            pl_file_fail_at(nth, errors[e]);
            pl_status status = pl_checkpoint_save(&run.session,
                                                  PL_CHECKPOINT_NEWEST, &err);
            ended = !pl_file_fault_happened();
            pl_file_fail_at(0, 0);
            uint64_t after = step_on_disk(&run);
            assert_true(after == before || after == run.session.step);
            assert_int_equal(scratch_open_files(), files);
            if (ended) {
                assert_int_equal(status, PL_OK);
                assert_int_equal(after, run.session.step);
            } else if (status) {
                assert_non_null(strstr(err.text, "out/ckpt"));
            }
        }
        assert_true(ended);
    }
    tiny_run_remove(&run);
}

static void a_failing_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    tiny_run run;
    pl_error err = { 0 };
    int ended = 0;
    tiny_run_make(&run);
    for (long nth = 1; nth < MANY && !ended; nth++) {
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
    assert_int_equal(
        pl_checkpoint_save(&run.session, PL_CHECKPOINT_NEWEST, &err), PL_OK);
    tiny_run_close(&run);
    tiny_run_set(&run, "--init_from=resume");
    for (long nth = 1; nth < MANY && !ended; nth++) {
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
        cmocka_unit_test(a_failing_save_leaves_a_whole_checkpoint),
        cmocka_unit_test(a_failing_allocation_is_an_error_and_leaks_nothing),
        cmocka_unit_test(a_failing_read_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
