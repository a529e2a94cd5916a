/* Tests of store/outdir_follow: a run whose folder is moved, removed or taken
 * by others writes into its own folder or not at all. */
#include "store/checkpoint.h"
#include "support/tiny_run.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static pl_error err;

static void save(tiny_run *run)
{
    if (pl_checkpoint_save(&run->session.run, &err))
        fail_msg("%s", err.text);
}

static void assert_not_saved(tiny_run *run, const char *words)
{
    assert_int_equal(pl_checkpoint_save(&run->session.run, &err), PL_E_IO);
    if (!strstr(err.text, words))
        fail_msg("expected \"%s\" in: %s", words, err.text);
}

static int has(const tiny_run *run, const char *name)
{
    return scratch_has(scratch_path(&run->folder, name));
}

static void move(const tiny_run *run, const char *from, const char *to)
{
    if (pl_file_rename(scratch_path(&run->folder, from),
                       scratch_path(&run->folder, to), &err))
        fail_msg("%s", err.text);
}

/* A run that has saved step 1, and is at step 2. */
static void begin(tiny_run *run)
{
    tiny_run_make(run);
    tiny_run_set(run, "--keep=0");
    tiny_run_open(run);
    tiny_run_train(run, 1);
    save(run);
    tiny_run_train(run, 1);
}

/* What another run has at the same place: a checkpoint that is older, which
 * keep = 0 would remove, and one that is being written. */
static void put_other(const tiny_run *run)
{
    static const char *const folders[] = { "out", "out/step-00000000",
                                           "out/.saving" };
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            pl_folder_make(scratch_path(&run->folder, folders[i]), &err),
            PL_OK);
    scratch_write(scratch_path(&run->folder, "out/step-00000000/model"), "x",
                  1);
    scratch_write(scratch_path(&run->folder, "out/.saving/model"), "x", 1);
}

static void assert_other_is_untouched(const tiny_run *run, int names)
{
    assert_true(has(run, "out/step-00000000/model"));
    assert_true(has(run, "out/.saving/model"));
    assert_int_equal(scratch_count(scratch_path(&run->folder, "out")), names);
}

static void tell(tiny_run *run, uint64_t step)
{
    const pl_update_event e = { .step = step, .loss = 1.0 };
    pl_metrics_updated(&run->session.run.metrics, &e);
}

static size_t lines_in(const tiny_run *run, const char *name)
{
    size_t bytes, lines = 0;
    char *text = scratch_read(scratch_path(&run->folder, name), &bytes);
    assert_non_null(text);
    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    free(text);
    return lines;
}

static void a_run_follows_its_folder(void **state)
{
    (void)state;
    tiny_run run;
    begin(&run);
    tell(&run, 0);
    move(&run, "out", "out2");
    put_other(&run);
    tell(&run, 1);
    save(&run);
    assert_true(has(&run, "out2/step-00000002/manifest.json"));
    assert_false(has(&run, "out2/step-00000001")); /* keep = 0 */
    assert_int_equal(lines_in(&run, "out2/metrics.jsonl"), 2);
    assert_other_is_untouched(&run, 2);
    /* once more, and back; the next save is at home */
    move(&run, "out2", "out3");
    tiny_run_train(&run, 1);
    save(&run);
    assert_true(has(&run, "out3/step-00000003/manifest.json"));
    assert_other_is_untouched(&run, 2);
    tiny_run_remove(&run);
}

static void a_run_follows_the_folder_around_it(void **state)
{
    (void)state;
    tiny_run run;
    char setting[600];
    tiny_run_make(&run);
    snprintf(setting, sizeof setting, "--out_dir=%s",
             scratch_path(&run.folder, "a/b/out"));
    tiny_run_set(&run, setting);
    tiny_run_open(&run);
    move(&run, "a", "c");
    save(&run);
    assert_true(has(&run, "c/b/out/step-00000000/manifest.json"));
    assert_false(has(&run, "a"));
    tiny_run_remove(&run);
}

/* A second run there is refused as long as the first one lives. */
static void a_folder_that_was_moved_is_still_held(void **state)
{
    (void)state;
    tiny_run run;
    pl_file lock;
    begin(&run);
    move(&run, "out", "out2");
    assert_int_equal(
        pl_folder_hold(&lock, scratch_path(&run.folder, "out2"), &err),
        PL_E_IO);
    tiny_run_remove(&run);
}

static void a_folder_that_was_removed_is_made_again_and_held(void **state)
{
    (void)state;
    tiny_run run;
    pl_file lock;
    begin(&run);
    tell(&run, 0);
    tell(&run, 1);
    scratch_remove(scratch_path(&run.folder, "out"));
    save(&run);
    assert_true(has(&run, "out/step-00000002/manifest.json"));
    assert_int_equal(lines_in(&run, "out/metrics.jsonl"), 2);
    tell(&run, 2);
    assert_int_equal(lines_in(&run, "out/metrics.jsonl"), 3);
    assert_int_equal(
        pl_folder_hold(&lock, scratch_path(&run.folder, "out"), &err), PL_E_IO);
    tiny_run_remove(&run);
}

static void another_run_at_its_place_is_left_alone(void **state)
{
    (void)state;
    tiny_run run;
    pl_file lock;
    begin(&run);
    scratch_remove(scratch_path(&run.folder, "out"));
    put_other(&run);
    /* which is still going on */
    assert_int_equal(
        pl_folder_hold(&lock, scratch_path(&run.folder, "out"), &err), PL_OK);
    assert_not_saved(&run, "held by another process");
    assert_other_is_untouched(&run, 3);
    pl_file_abandon(&lock); /* or has ended */
    assert_not_saved(&run, "checkpoints of another one");
    assert_other_is_untouched(&run, 3);
    /* and what can be done helps */
    move(&run, "out", "theirs");
    save(&run);
    assert_true(has(&run, "out/step-00000002/manifest.json"));
    tiny_run_remove(&run);
}

static void a_lock_that_was_removed_is_taken_again(void **state)
{
    (void)state;
    tiny_run run;
    pl_file lock;
    begin(&run);
    remove(scratch_path(&run.folder, "out/.lock"));
    assert_int_equal(
        pl_folder_hold(&lock, scratch_path(&run.folder, "out"), &err), PL_OK);
    assert_not_saved(&run, "the lock of this run was removed");
    assert_true(has(&run, "out/step-00000001"));
    pl_file_abandon(&lock);
    save(&run);
    assert_int_equal(
        pl_folder_hold(&lock, scratch_path(&run.folder, "out"), &err), PL_E_IO);
    tiny_run_remove(&run);
}

/* Somebody took it away while the run goes on. */
static void metrics_that_are_gone_are_begun_again(void **state)
{
    (void)state;
    tiny_run run;
    begin(&run);
    tell(&run, 0);
    tell(&run, 1);
    remove(scratch_path(&run.folder, "out/metrics.jsonl"));
    remove(scratch_path(&run.folder, "out/" PL_TENSORBOARD_NAME));
    save(&run);
    assert_int_equal(lines_in(&run, "out/metrics.jsonl"), 2);
    tell(&run, 2);
    assert_int_equal(lines_in(&run, "out/metrics.jsonl"), 3);
    assert_true(has(&run, "out/" PL_TENSORBOARD_NAME));
    tiny_run_remove(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_follows_its_folder),
        cmocka_unit_test(a_run_follows_the_folder_around_it),
        cmocka_unit_test(a_folder_that_was_moved_is_still_held),
        cmocka_unit_test(a_folder_that_was_removed_is_made_again_and_held),
        cmocka_unit_test(another_run_at_its_place_is_left_alone),
        cmocka_unit_test(a_lock_that_was_removed_is_taken_again),
        cmocka_unit_test(metrics_that_are_gone_are_begun_again),
    };
    scratch_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
