/* Tests of train/trainer's end: what is there when a run ends, also one that
 * had nothing to train, is what an undisturbed run leaves. */
#include "store/checkpoint.h"
#include "support/tiny_run.h"
#include "train/trainer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct heard {
    char text[8192];
} heard;

static void hear(void *context, pl_log_level level, const char *text)
{
    heard *h = context;
    (void)level;
    strncat(h->text, text, sizeof h->text - strlen(h->text) - 2);
}

/* Opens and trains to the end; *h has what was said. */
static void train(tiny_run *run, heard *h)
{
    pl_machine machine;
    pl_error err = { 0 };
    pl_listener listener = { 0 };
    static pl_log log;
    log = (pl_log){ hear, h };
    memset(h, 0, sizeof *h);
    if (pl_machine_make(&machine, PL_MACHINE_RUN, &run->config, NULL,
                        &run->heap, &err) ||
        pl_session_open_train(&run->session, run->purpose, &run->config,
                              &machine, &log, &run->heap, &err))
        fail_msg("%s", err.text);
    run->is_open = 1;
    if (pl_train(&run->session, &listener, &err))
        fail_msg("%s", err.text);
}

static pl_checkpoint_state state_of(const tiny_run *run, const char *folder)
{
    pl_checkpoint_state state;
    pl_error err = { 0 };
    pl_heap heap = pl_heap_make(1 << 20);
    if (pl_checkpoint_read_state(&state, scratch_path(&run->folder, folder),
                                 &heap, &err))
        fail_msg("%s", err.text);
    pl_heap_close(&heap);
    return state;
}

static void a_run_without_updates_saves_its_weights(void **state)
{
    (void)state;
    tiny_run run;
    heard h;
    tiny_run_make(&run);
    tiny_run_set(&run, "--max_iters=0");
    train(&run, &h);
    assert_true(tiny_run_has_step(&run, 0));
    assert_non_null(strstr(h.text, "max_iters is 0"));
    assert_true(scratch_has(scratch_path(&run.folder, "out/best")));
    unsigned long long hash = tiny_run_hash(&run);
    tiny_run_close(&run);
    tiny_run_set(&run, "--init_from=resume"); /* and it can go on */
    tiny_run_set(&run, "--max_iters=2");
    tiny_run_open(&run);
    assert_true(tiny_run_hash(&run) == hash);
    tiny_run_remove(&run);
}

static void a_run_that_is_at_its_end_says_so_and_changes_nothing(void **state)
{
    (void)state;
    tiny_run run;
    heard h;
    size_t before, after;
    tiny_run_make(&run);
    tiny_run_set(&run, "--eval_interval=3");
    train(&run, &h);
    assert_null(strstr(h.text, "max_iters is"));
    tiny_run_close(&run);
    static const char marker[] = "out/step-00000006/marker";
    scratch_write(scratch_path(&run.folder, marker), "x", 1);
    char *one = scratch_read(scratch_path(&run.folder, "out/metrics.jsonl"),
                             &before);
    tiny_run_set(&run, "--init_from=resume");
    train(&run, &h);
    assert_non_null(strstr(h.text, "max_iters is 6"));
    assert_true(scratch_has(scratch_path(&run.folder, marker)));
    char *two = scratch_read(scratch_path(&run.folder, "out/metrics.jsonl"),
                             &after);
    assert_string_equal(one, two);
    free(one);
    free(two);
    tiny_run_remove(&run);
}

/* Trains with a stop after `stop` updates (0: none) and then to the end. */
static void train_with_a_stop(tiny_run *run, uint64_t stop)
{
    heard h;
    pl_error err = { 0 };
    tiny_run_make(run);
    tiny_run_set(run, "--keep=9");
    tiny_run_set(run, "--eval_interval=3");
    if (stop) {
        tiny_run_open(run);
        assert_int_equal(tiny_run_until(run, stop, &err), PL_E_STOPPED);
        tiny_run_close(run);
        tiny_run_set(run, "--init_from=resume");
    }
    train(run, &h);
}

/* A stop comes before the evaluation of its step: who resumes makes up for
 * it, and the checkpoint has it. */
static void a_stop_before_an_evaluation_changes_no_checkpoint(void **state)
{
    (void)state;
    static const int steps[] = { 3, 6 };
    tiny_run whole;
    train_with_a_stop(&whole, 0);
    for (uint64_t stop = 1; stop <= 6; stop++) {
        tiny_run run;
        train_with_a_stop(&run, stop);
        for (int i = 0; i < 2; i++) {
            char folder[64];
            snprintf(folder, sizeof folder, "out/step-%08d", steps[i]);
            pl_checkpoint_state want = state_of(&whole, folder),
                                got = state_of(&run, folder);
            assert_memory_equal(&got.val_loss, &want.val_loss, sizeof(double));
            assert_memory_equal(&got.best_val_loss, &want.best_val_loss,
                                sizeof(double));
            assert_true(want.best_val_bpb > 0.0 && isfinite(want.best_val_bpb));
            assert_memory_equal(&got.best_val_bpb, &want.best_val_bpb,
                                sizeof(double));
        }
        char target[2][PL_PATH_BYTES];
        pl_error err = { 0 };
        assert_int_equal(pl_link_read(scratch_path(&whole.folder, "out/best"),
                                      target[0], &err),
                         PL_OK);
        assert_int_equal(pl_link_read(scratch_path(&run.folder, "out/best"),
                                      target[1], &err),
                         PL_OK);
        assert_string_equal(target[0], target[1]);
        tiny_run_remove(&run);
    }
    tiny_run_remove(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_without_updates_saves_its_weights),
        cmocka_unit_test(a_run_that_is_at_its_end_says_so_and_changes_nothing),
        cmocka_unit_test(a_stop_before_an_evaluation_changes_no_checkpoint),
    };
    scratch_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
