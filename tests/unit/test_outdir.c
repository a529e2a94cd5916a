/* Tests of store/outdir: which checkpoints stay, what the links point to, and
 * what becomes of those that are damaged. */
#include "store/checkpoint.h"
#include "store/outdir.h"
#include "support/tiny_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void save(tiny_run *run)
{
    pl_error err = { 0 };
    if (pl_checkpoint_save(&run->session.run, &err))
        fail_msg("%s", err.text);
}

/* ---- what stays ---- */

/* The step that a link of out_dir points to. */
static long linked(const tiny_run *run, const char *link)
{
    char target[PL_PATH_BYTES];
    uint64_t step;
    pl_error err = { 0 };
    if (pl_link_read(scratch_path(&run->folder, link), target, &err))
        fail_msg("%s", err.text);
    return pl_outdir_step_of(target, &step) ? (long)step : -1;
}

static int has_step(const tiny_run *run, uint64_t step)
{
    char name[PL_OUTDIR_NAME_BYTES], path[64];
    pl_outdir_name(name, step);
    snprintf(path, sizeof path, "out/%s", name);
    return scratch_count(scratch_path(&run->folder, path)) == 9;
}

static void as_many_old_ones_stay_as_keep_says(void **state)
{
    (void)state;
    for (int keep = 0; keep < 3; keep++) {
        tiny_run run;
        char setting[32];
        snprintf(setting, sizeof setting, "--keep=%d", keep);
        tiny_run_make(&run);
        tiny_run_set(&run, setting);
        tiny_run_open(&run);
        for (int i = 0; i < 5; i++) {
            save(&run);
            tiny_run_train(&run, 1);
        }
        for (int step = 0; step < 5; step++)
            assert_int_equal(has_step(&run, (uint64_t)step), step >= 4 - keep);
        assert_int_equal(linked(&run, "out/latest"), 4);
        /* beside them: latest, metrics.jsonl, TensorBoard's and the lock */
        assert_int_equal(scratch_count(scratch_path(&run.folder, "out")),
                         keep + 1 + 4);
        tiny_run_remove(&run);
    }
}

static void the_best_is_never_removed(void **state)
{
    (void)state;
    static const double losses[] = { 3.0, 2.0, 2.5, 2.6, 1.9, 2.2, 2.3, 2.0 };
    static const long best[] = { 0, 1, 1, 1, 4, 4, 4, 4 };
    tiny_run run;
    tiny_run_make(&run);
    tiny_run_set(&run, "--keep=1");
    tiny_run_open(&run);
    for (int i = 0; i < 8; i++) {
        run.session.run.val_loss = losses[i];
        save(&run);
        assert_int_equal(linked(&run, "out/best"), best[i]);
        assert_true(has_step(&run, (uint64_t)best[i]));
        tiny_run_train(&run, 1);
    }
    assert_int_equal(scratch_count(scratch_path(&run.folder, "out")), 3 + 5);

    /* a resumed run knows it: 1.95 is no improvement, 1.85 is */
    tiny_run_close(&run);
    tiny_run_set(&run, "--init_from=resume");
    tiny_run_open(&run);
    assert_int_equal(run.session.run.step, 7);
    assert_true(run.session.run.outdir.best_loss == 1.9);
    tiny_run_train(&run, 1);
    run.session.run.val_loss = 1.95;
    save(&run);
    assert_int_equal(linked(&run, "out/best"), 4);
    tiny_run_train(&run, 1);
    run.session.run.val_loss = 1.85;
    save(&run);
    assert_int_equal(linked(&run, "out/best"), 9);
    assert_false(has_step(&run, 4));
    tiny_run_remove(&run);
}

static void what_a_killed_save_left_is_cleared_away(void **state)
{
    (void)state;
    tiny_run run;
    pl_error err = { 0 };
    tiny_run_make(&run);
    tiny_run_open(&run);
    assert_int_equal(
        pl_folder_make(scratch_path(&run.folder, "out/.saving"), &err), PL_OK);
    scratch_write(scratch_path(&run.folder, "out/.saving/model.safetensors"),
                  "half", 4);
    scratch_write(scratch_path(&run.folder, "out/.saving/other"), "x", 1);
    save(&run);
    assert_false(scratch_has(scratch_path(&run.folder, "out/.saving")));
    assert_true(has_step(&run, 0));
    tiny_run_remove(&run);
}

static void an_earlier_run_is_moved_aside_and_can_go_on(void **state)
{
    (void)state;
    tiny_run run;
    tiny_run_make(&run);
    tiny_run_open(&run);
    tiny_run_train(&run, 2);
    save(&run);
    unsigned long long before = tiny_run_hash(&run);
    tiny_run_close(&run);
    tiny_run_open(&run); /* from scratch */
    assert_int_equal(run.session.run.step, 0);
    assert_false(has_step(&run, 2));
    assert_int_equal(linked(&run, "out/latest"), -1);
    assert_int_equal(linked(&run, "out/earlier-1/latest"), 2);
    tiny_run_close(&run);
    char setting[600];
    snprintf(setting, sizeof setting, "--out_dir=%s",
             scratch_path(&run.folder, "out/earlier-1"));
    tiny_run_set(&run, setting);
    tiny_run_set(&run, "--init_from=resume");
    tiny_run_open(&run);
    assert_true(tiny_run_hash(&run) == before);
    tiny_run_remove(&run);
}

/* ---- damage ---- */

/* Opens with `setting`, expecting a failure whose text has `words`. */
static void assert_refused(tiny_run *run, const char *setting, pl_status code,
                           const char *words)
{
    pl_error err = { 0 };
    if (setting)
        tiny_run_set(run, setting);
    assert_int_equal(tiny_run_try(run, &err), code);
    if (!strstr(err.text, words))
        fail_msg("expected \"%s\" in: %s", words, err.text);
}

/* Replaces `file` of the checkpoint by its first `keep` bytes. */
static void cut(tiny_run *run, const char *file, size_t keep)
{
    const char *path = scratch_path(&run->folder, file);
    size_t bytes;
    char *text = scratch_read(path, &bytes);
    assert_non_null(text);
    scratch_write(path, text, keep < bytes ? keep : bytes);
    free(text);
}

static const struct {
    const char *file; /* below out/ */
    size_t keep;
} cuts[] = {
    { "step-00000002/model.safetensors", 20 },
    { "step-00000002/model.safetensors", 5000 },
    { "step-00000002/optimizer.safetensors", 0 },
    { "step-00000002/state.json", 40 },
    { "step-00000002/tokenizer.json", 40 },
    { "step-00000002/manifest.json", 0 },
    { "step-00000002/manifest.json", 300 },
};
enum { CUTS = sizeof cuts / sizeof cuts[0] };

static void make_and_cut(tiny_run *run, int i, int older)
{
    char file[64];
    snprintf(file, sizeof file, "out/%s", cuts[i].file);
    tiny_run_make(run);
    tiny_run_open(run);
    tiny_run_train(run, 1);
    if (older)
        save(run);
    tiny_run_train(run, 1);
    save(run);
    tiny_run_close(run);
    cut(run, file, cuts[i].keep);
    tiny_run_set(run, "--init_from=resume");
}

static void a_damaged_checkpoint_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < CUTS; i++) {
        tiny_run run;
        make_and_cut(&run, i, 0);
        assert_refused(&run, NULL, PL_E_FORMAT, cuts[i].file);
        tiny_run_remove(&run);
    }
}

static void a_damaged_checkpoint_is_passed_over_and_left_alone(void **state)
{
    (void)state;
    for (int i = 0; i < CUTS; i++) {
        tiny_run run;
        pl_error err = { 0 };
        char aside[96];
        make_and_cut(&run, i, 1);
        tiny_run_open(&run);
        assert_int_equal(run.session.run.step, 1);
        assert_true(has_step(&run, 2)); /* as it was */
        tiny_run_train(&run, 1);
        save(&run); /* its place is needed */
        snprintf(aside, sizeof aside, "out/damaged-step-00000002-1%s",
                 strchr(cuts[i].file, '/'));
        size_t bytes = 0;
        char *text = scratch_read(scratch_path(&run.folder, aside), &bytes);
        assert_non_null(text);
        assert_int_equal(bytes, cuts[i].keep);
        free(text);
        pl_manifest manifest;
        assert_int_equal(pl_manifest_check(
                             &manifest, scratch_path(&run.folder, "out/latest"),
                             PL_SCOPE_ALL, &err),
                         PL_OK);
        tiny_run_remove(&run);
    }
}

/* It is never taken for one of the old ones that stay, nor removed as one. */
static void a_damaged_checkpoint_is_neither_kept_nor_removed(void **state)
{
    (void)state;
    tiny_run run;
    make_and_cut(&run, 0, 1);
    tiny_run_open(&run);
    run.session.run.outdir.best = 2; /* and the best was that one */
    run.session.run.outdir.best_loss = 1.0;
    for (int i = 0; i < 3; i++) {
        tiny_run_train(&run, 2); /* never by its step */
        run.session.run.val_loss = 2.0 + i;
        save(&run);
        assert_int_equal(scratch_count(scratch_path(
                             &run.folder, "out/damaged-step-00000002-1")),
                         9);
        assert_int_equal(linked(&run, "out/best"), 3);
        assert_true(has_step(&run, (uint64_t)(1 + 2 * i)));
        assert_true(has_step(&run, (uint64_t)(3 + 2 * i)));
    }
    tiny_run_remove(&run);
}

/* A mount that is gone leaves an empty folder, which isn't the run's. */
static void a_checkpoint_goes_to_no_other_disk(void **state)
{
    (void)state;
    tiny_run run;
    pl_error err = { 0 };
    scratch other = { "/tmp/plimsoll-test-XXXXXX", scratch_open_files() };
    char setting[700], link[600];
    if (!mkdtemp(other.folder))
        return;
    tiny_run_make(&run);
    snprintf(link, sizeof link, "%s", scratch_path(&run.folder, "mount"));
    assert_int_equal(pl_folder_make(scratch_path(&run.folder, "disk"), &err),
                     PL_OK);
    assert_int_equal(pl_link_replace(link, "disk", &err), PL_OK);
    snprintf(setting, sizeof setting, "--out_dir=%s/out", link);
    tiny_run_set(&run, setting);
    tiny_run_open(&run);
    save(&run);
    tiny_run_train(&run, 1);
    assert_int_equal(pl_link_replace(link, other.folder, &err), PL_OK);
    save(&run); /* to where it was */
    assert_int_equal(scratch_count(other.folder), 0);
    assert_int_equal(linked(&run, "disk/out/latest"), 1);
    assert_int_equal(pl_link_replace(link, "disk", &err), PL_OK);
    tiny_run_train(&run, 1);
    save(&run); /* it is back */
    assert_int_equal(linked(&run, "disk/out/latest"), 2);
    tiny_run_remove(&run);
    scratch_close(&other);
}

/* A folder that was deleted is made again. */
static void a_folder_that_is_gone_is_made_again(void **state)
{
    (void)state;
    tiny_run run;
    tiny_run_make(&run);
    tiny_run_open(&run);
    save(&run);
    scratch_remove(scratch_path(&run.folder, "out"));
    tiny_run_train(&run, 1);
    save(&run);
    assert_true(has_step(&run, 1));
    tiny_run_remove(&run);
}

static void a_checkpoint_without_a_manifest_is_none(void **state)
{
    (void)state;
    tiny_run run;
    tiny_run_make(&run);
    tiny_run_open(&run);
    save(&run);
    tiny_run_close(&run);
    remove(scratch_path(&run.folder, "out/latest/manifest.json"));
    tiny_run_set(&run, "--init_from=resume");
    assert_refused(&run, NULL, PL_E_FORMAT, "manifest.json");
    tiny_run_remove(&run);
}

static void names_are_those_of_steps(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int is_step;
        uint64_t step;
    } cases[] = {
        { "step-00000000", 1, 0 },
        { "step-00000042", 1, 42 },
        { "step-4294967295", 1, 4294967295u },
        { "step-42", 0, 0 },
        { "step-000000042", 0, 0 },
        { "step-00000042.tmp", 0, 0 },
        { "step--0000042", 0, 0 },
        { "step-", 0, 0 },
        { "latest", 0, 0 },
        { "step-99999999999999999999", 0, 0 },
        { "step-00000042/", 0, 0 },
        { "", 0, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t step = 0;
        assert_int_equal(pl_outdir_step_of(cases[i].name, &step),
                         cases[i].is_step);
        if (cases[i].is_step)
            assert_int_equal(step, cases[i].step);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_old_ones_stay_as_keep_says),
        cmocka_unit_test(the_best_is_never_removed),
        cmocka_unit_test(what_a_killed_save_left_is_cleared_away),
        cmocka_unit_test(an_earlier_run_is_moved_aside_and_can_go_on),
        cmocka_unit_test(a_damaged_checkpoint_is_refused),
        cmocka_unit_test(a_damaged_checkpoint_is_passed_over_and_left_alone),
        cmocka_unit_test(a_damaged_checkpoint_is_neither_kept_nor_removed),
        cmocka_unit_test(a_checkpoint_goes_to_no_other_disk),
        cmocka_unit_test(a_folder_that_is_gone_is_made_again),
        cmocka_unit_test(a_checkpoint_without_a_manifest_is_none),
        cmocka_unit_test(names_are_those_of_steps),
    };
    scratch_in_memory();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
