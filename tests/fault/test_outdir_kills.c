/* A process that is killed at any change of its out_dir, in a save and while
 * an earlier run is moved aside: what it leaves is put right by the next. */
#include "base/file.h"
#include "store/checkpoint.h"
#include "support/tiny_run.h"
#include "train/trainer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 1000 };

static void save(tiny_run *run, double loss)
{
    pl_error err = { 0 };
    run->session.run.val_loss = loss;
    if (pl_checkpoint_save(&run->session.run, &err))
        fail_msg("%s", err.text);
}

static long linked(const tiny_run *run, const char *link)
{
    char target[PL_PATH_BYTES];
    uint64_t step;
    pl_error err = { 0 };
    if (pl_link_read(scratch_path(&run->folder, link), target, &err))
        fail_msg("%s", err.text);
    return pl_outdir_step_of(target, &step) ? (long)step : -1;
}

static int has(const tiny_run *run, const char *name)
{
    pl_file_kind kind;
    pl_error err = { 0 };
    assert_int_equal(
        pl_file_look_at(scratch_path(&run->folder, name), &kind, &err), PL_OK);
    return kind != PL_FILE_ABSENT;
}

/* ---- a save ---- */

/* Checkpoints at steps 1 and 2, the first with the loss 4. The second save,
 * with the loss `loss`, is killed at its nth change. Returns whether it was. */
static int kill_in_save(long nth, double loss)
{
    tiny_run run;
    pl_error err = { 0 };
    tiny_run_make(&run);
    tiny_run_set(&run, "--keep=0");
    tiny_run_open(&run);
    tiny_run_train(&run, 1);
    save(&run, 4.0);
    tiny_run_train(&run, 1);
    run.session.run.val_loss = loss;
    pl_file_fail_from(nth, EIO);
    pl_status ignored = pl_checkpoint_save(&run.session.run, &err);
    (void)ignored;
    int killed = pl_file_fault_happened();
    tiny_run_close(&run);
    pl_file_fail_from(0, 0);

    tiny_run_set(&run, "--init_from=resume");
    tiny_run_open(&run);
    long step = (long)run.session.run.step,
         best = step == 2 && loss < 4.0 ? 2 : 1;
    if (!killed)
        assert_int_equal(step, 2);
    assert_int_equal(linked(&run, "out/latest"), step);
    assert_int_equal(linked(&run, "out/best"), best);
    assert_true(tiny_run_has_step(&run, (int)best));
    assert_int_equal(run.session.run.outdir.best, best);
    assert_true(run.session.run.outdir.best_loss == (best == 2 ? loss : 4.0));
    tiny_run_train(&run, 1);
    save(&run, 9.0);
    assert_int_equal(linked(&run, "out/best"), best);
    assert_false(has(&run, "out/.saving"));
    assert_false(has(&run, "out/.removing"));
    tiny_run_remove(&run);
    return killed;
}

/* Calls from one kill to the next; --long kills at each. */
static long apart(void)
{
    return getenv("PL_TEST_LONG") ? 1 : 2;
}

static void both_links_are_right_after_a_kill_in_a_save(void **state)
{
    (void)state;
    int killed = 1;
    for (long nth = 1; nth < MANY && killed; nth += apart())
        killed = kill_in_save(nth, nth % 8 ? 3.0 : 5.0);
    assert_false(killed);
}

/* The only checkpoint is saved once more. */
static void a_step_that_is_saved_again_is_there_at_every_moment(void **state)
{
    (void)state;
    int killed = 1;
    for (long nth = 1; nth < MANY && killed; nth += apart()) {
        tiny_run run;
        pl_error err = { 0 };
        tiny_run_make(&run);
        tiny_run_open(&run);
        tiny_run_train(&run, 1);
        save(&run, 4.0);
        unsigned long long hash = tiny_run_hash(&run);
        pl_file_fail_from(nth, EIO);
        pl_status ignored = pl_checkpoint_save(&run.session.run, &err);
        (void)ignored;
        killed = pl_file_fault_happened();
        tiny_run_close(&run);
        pl_file_fail_from(0, 0);
        tiny_run_set(&run, "--init_from=resume");
        tiny_run_open(&run);
        assert_int_equal(run.session.run.step, 1);
        assert_true(tiny_run_hash(&run) == hash);
        assert_int_equal(linked(&run, "out/latest"), 1);
        assert_int_equal(linked(&run, "out/best"), 1);
        save(&run, 4.0);
        /* both links, the metrics, TensorBoard's, the lock */
        assert_int_equal(scratch_count(scratch_path(&run.folder, "out")), 6);
        tiny_run_remove(&run);
    }
    assert_false(killed);
}

/* ---- an earlier run ---- */

/* Three checkpoints, their links and metrics: seven names. */
static unsigned long long make_earlier(tiny_run *run)
{
    static const double losses[] = { 3.0, 2.0, 2.5 };
    tiny_run_make(run);
    tiny_run_set(run, "--keep=9");
    tiny_run_open(run);
    for (int i = 0; i < 3; i++) {
        tiny_run_train(run, 1);
        save(run, losses[i]);
    }
    unsigned long long hash = tiny_run_hash(run);
    tiny_run_close(run);
    return hash;
}

static void assert_whole(tiny_run *run, const char *folder,
                         unsigned long long hash)
{
    char setting[700], name[64];
    snprintf(setting, sizeof setting, "--out_dir=%s",
             scratch_path(&run->folder, folder));
    tiny_run_set(run, setting);
    tiny_run_set(run, "--init_from=resume");
    tiny_run_open(run);
    assert_int_equal(run->session.run.step, 3);
    assert_true(tiny_run_hash(run) == hash);
    for (int step = 1; step <= 3; step++) {
        snprintf(name, sizeof name, "%s/step-%08d/manifest.json", folder, step);
        assert_true(has(run, name));
    }
    snprintf(name, sizeof name, "%s/best", folder);
    assert_int_equal(linked(run, name), 2);
    snprintf(name, sizeof name, "%s/latest", folder);
    assert_int_equal(linked(run, name), 3);
}

/* From scratch, killed at the nth change; then `again`, from scratch or
 * resumed, undisturbed. */
static int kill_in_move(long nth, int resumed)
{
    tiny_run run;
    pl_error err = { 0 };
    unsigned long long hash = make_earlier(&run);
    pl_file_fail_from(nth, EIO);
    pl_status status = tiny_run_try(&run, &err);
    int killed = pl_file_fault_happened();
    run.is_open = !status;
    tiny_run_close(&run);
    pl_file_fail_from(0, 0);
    if (!killed)
        assert_int_equal(status, PL_OK);
    if (resumed && !has(&run, "out/earlier-1")) { /* the move wasn't done */
        assert_whole(&run, "out", hash);
        assert_false(has(&run, "out/.moving"));
        /* with the metrics, TensorBoard's and the lock */
        assert_int_equal(scratch_count(scratch_path(&run.folder, "out")), 8);
    } else {
        tiny_run_open(&run);
        assert_int_equal(run.session.run.step, 0);
        assert_false(has(&run, "out/.moving"));
        assert_false(has(&run, "out/earlier-2"));
        assert_false(has(&run, "out/latest"));
        tiny_run_close(&run);
        assert_int_equal(
            scratch_count(scratch_path(&run.folder, "out/earlier-1")), 7);
        assert_whole(&run, "out/earlier-1", hash);
    }
    tiny_run_remove(&run);
    return killed;
}

static void an_earlier_run_is_never_split(void **state)
{
    (void)state;
    for (int resumed = 0; resumed < 2; resumed++) {
        int killed = 1;
        for (long nth = 1; nth < MANY && killed; nth += apart())
            killed = kill_in_move(nth, resumed);
        assert_false(killed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_links_are_right_after_a_kill_in_a_save),
        cmocka_unit_test(a_step_that_is_saved_again_is_there_at_every_moment),
        cmocka_unit_test(an_earlier_run_is_never_split),
    };
    scratch_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
