/* Tests of what a run's files take: no more than was said before it began, and
 * what there is no room for is refused then. */
#include "store/checkpoint.h"
#include "support/tiny_run.h"
#include "train/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

typedef struct sum {
    const char *folder;
    uint64_t bytes;
} sum;

/* A file in whole pages. */
static void add_file(void *context, const char *name)
{
    sum *s = context;
    struct stat info;
    char path[PL_PATH_BYTES];
    pl_error err = { 0 };
    assert_int_equal(pl_path_join(path, s->folder, name, &err), PL_OK);
    assert_int_equal(stat(path, &info), 0);
    s->bytes += ((uint64_t)info.st_size + 4095) / 4096 * 4096;
}

static void a_checkpoint_takes_no_more_than_was_said(void **state)
{
    (void)state;
    tiny_run run;
    pl_listener listener = { 0 };
    pl_error err = { 0 };
    tiny_run_make(&run);
    tiny_run_set(&run, "--eval_interval=1");
    tiny_run_open(&run);
    assert_int_equal(pl_train(&run.session, &listener, &err), PL_OK);
    sum s = { scratch_path(&run.folder, "out/step-00000006/"), 0 };
    assert_int_equal(pl_folder_walk(s.folder, add_file, &s, &err), PL_OK);
    const uint64_t said = pl_checkpoint_bytes(
        &run.config, &run.session.run.gpt,
        pl_checkpoint_tokenizer_bytes(&run.session.run.tokenizer_file,
                                      &run.session.run.hf_tokenizer));
    assert_in_range(s.bytes, 1, said);
    /* and not much less: state.json has 64 KiB at most, and few */
    assert_true(s.bytes + 96 * 1024 > said);
    const pl_metrics_bytes most = pl_checkpoint_metrics_bytes(&run.config);
    sum out = { scratch_path(&run.folder, "out"), 0 };
    add_file(&out, PL_METRICS_NAME);
    assert_in_range(out.bytes, 1, most.lines);
    out.bytes = 0;
    add_file(&out, PL_TENSORBOARD_NAME);
    assert_in_range(out.bytes, 1, most.events);
    tiny_run_remove(&run);
}

/* Of the whole folder, what is the run's own. */
static void what_a_run_holds_is_counted_in_pages(void **state)
{
    (void)state;
    static const char *const folders[] = { "out", "out/step-00000006",
                                           "out/.saving", "out/earlier-1" };
    static const char *const files[] = {
        "out/step-00000006/state.json",
        "out/.saving/state.json",
        "out/metrics.jsonl",
        "out/earlier-1/state.json",
        "out/notes.txt",
        "out/step-00000008",
    };
    scratch s;
    pl_error err = { 0 };
    uint64_t bytes = 1;
    scratch_open(&s);
    assert_int_equal(
        pl_outdir_held_bytes(scratch_path(&s, "out"), &bytes, &err), PL_OK);
    assert_int_equal(bytes, 0);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        assert_int_equal(pl_folder_make(scratch_path(&s, folders[i]), &err),
                         PL_OK);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        FILE *file = fopen(scratch_path(&s, files[i]), "w");
        assert_non_null(file);
        assert_int_equal(fputc('x', file), 'x');
        fclose(file);
    }
    assert_int_equal(
        pl_outdir_held_bytes(scratch_path(&s, "out"), &bytes, &err), PL_OK);
    assert_int_equal(bytes, 3 * 4096);
    scratch_close(&s);
}

/* In memory they count against the budget, on a disk against its room. */
static void metrics_without_room_are_refused_before_the_run(void **state)
{
    (void)state;
    static const char *const many[] = { "--max_iters=4294967295",
                                        "--eval_interval=4294967295" };
    tiny_run run;
    pl_error err = { 0 };
    pl_disk_medium medium;
    tiny_run_make(&run);
    tiny_run_set(&run, many[0]);
    tiny_run_set(&run, many[1]);
    assert_int_equal(pl_disk_look(run.folder.folder, &medium, &err), PL_OK);
    pl_status want = medium == PL_DISK_MEMORY ? PL_E_MEMORY : PL_E_IO;
    assert_int_equal(tiny_run_try(&run, &err), want);
    assert_non_null(strstr(err.text, "metrics"));
    assert_non_null(strstr(err.text, "max_iters"));
    tiny_run_remove(&run);
}

/* What is there already isn't asked for again. */
static void a_resumed_run_asks_for_the_rest_only(void **state)
{
    (void)state;
    enum { SOME = 512 * 1024 * 1024 }; /* more than others take meanwhile */
    tiny_run run;
    pl_error err = { 0 };
    pl_outdir outdir;
    uint64_t room;
    tiny_run_make(&run);
    assert_int_equal(pl_folder_make(scratch_path(&run.folder, "out"), &err),
                     PL_OK);
    FILE *sparse = fopen(scratch_path(&run.folder, "out/metrics.jsonl"), "w");
    assert_non_null(sparse);
    assert_int_equal(fseek(sparse, 2L * SOME - 1, SEEK_SET), 0);
    assert_int_equal(fputc('\n', sparse), '\n');
    fclose(sparse);
    const char *path = scratch_path(&run.folder, "out");
    assert_int_equal(pl_disk_free_bytes(path, &room, &err), PL_OK);
    const pl_outdir_need need = { 1, room + SOME };
    assert_int_equal(
        pl_outdir_open(&outdir, path, 1, need, PL_OUTDIR_NEW, NULL, &err),
        PL_E_IO);
    assert_non_null(strstr(err.text, "metrics"));
    assert_int_equal(
        pl_outdir_open(&outdir, path, 1, need, PL_OUTDIR_RESUMED, NULL, &err),
        PL_OK);
    pl_outdir_close(&outdir);
    tiny_run_remove(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_takes_no_more_than_was_said),
        cmocka_unit_test(what_a_run_holds_is_counted_in_pages),
        cmocka_unit_test(metrics_without_room_are_refused_before_the_run),
        cmocka_unit_test(a_resumed_run_asks_for_the_rest_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
