/* Every system call of base/file fails once, for all of them: the error is
 * clean, nothing under a final name is damaged, no descriptor and no temporary
 * file stays. */
#include "base/file.h"
#include "data/batch.h"
#include "data/prepare.h"
#include "support/faults.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static scratch dir;
static char folder[SCRATCH_PATH_BYTES + 8], text[SCRATCH_PATH_BYTES + 8];
static pl_error err;

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    snprintf(folder, sizeof folder, "%s/out", dir.folder);
    snprintf(text, sizeof text, "%s/text", dir.folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_file_fail_at(0, 0);
    scratch_close(&dir);
    return 0;
}

static void assert_holds(const char *path, const char *content)
{
    size_t bytes;
    char *data = scratch_read(path, &bytes);
    assert_non_null(data);
    assert_int_equal(bytes, strlen(content));
    assert_memory_equal(data, content, bytes);
    free(data);
}

/* ---- replace ---- */

static pl_status replace(void)
{
    scratch_write(text, "old", 3);
    return pl_file_replace(text, "brand new", 9, &err);
}

static void judge_replace(pl_status status)
{
    size_t bytes;
    char *data = scratch_read(text, &bytes);
    assert_non_null(data);
    int is_new = bytes == 9 && !memcmp(data, "brand new", 9);
    int is_old = bytes == 3 && !memcmp(data, "old", 3);
    /* An error after the rename: the folder's sync. */
    assert_true(is_new || (status && is_old));
    free(data);
    assert_int_equal(scratch_count(dir.folder), 1);
}

static void replacing_a_file_leaves_the_old_or_the_new(void **state)
{
    (void)state;
    faults_in_every_call(replace, judge_replace, 6, &err, dir.folder);
}

/* ---- links ---- */

static pl_status link_again(void)
{
    return pl_link_replace(scratch_path(&dir, "link"), "new", &err);
}

static void judge_link(pl_status status)
{
    char target[PL_PATH_BYTES];
    pl_error other;
    const char *path = scratch_path(&dir, "link");
    assert_int_equal(pl_link_read(path, target, &other), PL_OK);
    assert_true(!strcmp(target, "new") || (status && !strcmp(target, "old")));
    assert_int_equal(scratch_count(dir.folder), 1);
    assert_int_equal(pl_link_replace(path, "old", &other), PL_OK);
}

static void replacing_a_link_leaves_the_old_or_the_new(void **state)
{
    (void)state;
    assert_int_equal(pl_link_replace(scratch_path(&dir, "link"), "old", &err),
                     PL_OK);
    faults_in_every_call(link_again, judge_link, 5, &err, dir.folder);
}

/* ---- prepare ---- */

static const char old_meta[] = "{\"tokenizer\": \"byte\", \"vocab_size\": 256}";

static pl_status prepare_into(const char *val_text)
{
    pl_heap heap = pl_heap_make(1 << 20);
    pl_prepare_result result;
    const char *paths[] = { text };
    const pl_prepare_options options = {
        .source = { .paths = paths, .path_count = 1 },
        .folder = folder,
        .val_fraction = 0.1,
        .threads = 1,
        .memory_bytes = pl_prepare_min_bytes(1, NULL)
    };
    scratch_write(text, val_text, strlen(val_text));
    pl_status status = pl_prepare(&options, &heap, &result, &err);
    pl_heap_close(&heap);
    return status;
}

static const char *const outputs[] = { "out/train.bin", "out/val.bin",
                                       "out/meta.json" };

/* Old data in the folder, then new data over it. */
static pl_status prepare_over(void)
{
    scratch_write(scratch_path(&dir, outputs[0]), "old train!", 10);
    scratch_write(scratch_path(&dir, outputs[1]), "old val!", 8);
    scratch_write(scratch_path(&dir, outputs[2]), old_meta, strlen(old_meta));
    return prepare_into("0123456789");
}

/* What a failure may leave: a part to go on from, and said so. */
static void remove_part(pl_status status)
{
    const char *part = scratch_path(&dir, "out/prepare.part");
    if (status && scratch_has(scratch_path(&dir, "out/prepare.part/state")))
        assert_non_null(strstr(err.text, "the same command goes on there"));
    if (!status || strstr(err.text, "the same command goes on there"))
        scratch_remove(part);
    /* Nor is a lock that couldn't be had, or let go, in anybody's way. */
    unlink(scratch_path(&dir, "out/.lock"));
}

static void judge_prepare_over(pl_status status)
{
    remove_part(status);
    if (status) {
        assert_holds(scratch_path(&dir, outputs[0]), "old train!");
        assert_holds(scratch_path(&dir, outputs[1]), "old val!");
        assert_holds(scratch_path(&dir, outputs[2]), old_meta);
        assert_int_equal(scratch_count(folder), 3);
        return;
    }
    size_t bytes;
    char *val = scratch_read(scratch_path(&dir, outputs[1]), &bytes);
    assert_int_equal(bytes, 2);
    assert_int_equal(val[0], 9);
    free(val);
    char *train = scratch_read(scratch_path(&dir, outputs[0]), &bytes);
    assert_int_equal(bytes, 18);
    free(train);
    char *meta = scratch_read(scratch_path(&dir, outputs[2]), &bytes);
    assert_non_null(strstr(meta, "\"vocab_size\": 10"));
    free(meta);
    /* Only what could not be removed may be left over. */
    assert_in_range(scratch_count(folder), 3, 4);
    scratch_remove(scratch_path(&dir, "out/prepare.old"));
}

static void preparing_over_old_data_is_all_or_nothing(void **state)
{
    (void)state;
    assert_int_equal(pl_folder_make(folder, &err), PL_OK);
    faults_in_every_call(prepare_over, judge_prepare_over, 30, &err,
                         dir.folder);
}

static void judge_prepare_new(pl_status status)
{
    remove_part(status);
    if (status)
        assert_true(scratch_count(folder) <= 0);
    else
        assert_in_range(scratch_count(folder), 3, 4); /* or litter */
}

static pl_status prepare_afresh(void)
{
    scratch_remove(folder);
    return prepare_into("abcdefghij");
}

static void preparing_into_nothing_leaves_nothing_half_done(void **state)
{
    (void)state;
    faults_in_every_call(prepare_afresh, judge_prepare_new, 25, &err,
                         dir.folder);
}

/* ---- reading ---- */

static pl_status read_back(void)
{
    pl_heap heap = pl_heap_make(1 << 20);
    pl_dataset set;
    int32_t rows[5];
    const pl_batch_key key = { .use = PL_BATCH_TRAIN, .seed = 1 };
    pl_status status = pl_dataset_open(&set, dir.folder, "out", &heap, &err);
    if (!status) {
        for (uint32_t i = 0; i < 2 && !status; i++)
            status = pl_batch_read(&set, &key, i, 4, 0, 5, rows, &err);
        pl_dataset_close(&set);
    }
    if (!status) {
        assert_int_equal(set.tokenizer.kind, PL_TOKENIZER_CHAR);
        assert_int_equal(set.tokenizer.vocab_size, 10);
    }
    pl_heap_close(&heap);
    return status;
}

static void judge_nothing(pl_status status)
{
    (void)status;
}

/* In particular: a meta.json that can't be looked at is never taken for a
 * missing one. */
static void reading_a_dataset_fails_cleanly_or_is_right(void **state)
{
    (void)state;
    assert_int_equal(prepare_into("0123456789"), PL_OK);
    faults_in_every_call(read_back, judge_nothing, 12, &err, dir.folder);
}

/* ---- folders ---- */

static pl_status remove_flat(void)
{
    scratch_remove(folder);
    pl_status status = pl_folder_make(folder, &err);
    if (status)
        return status;
    scratch_write(scratch_path(&dir, "out/a"), "1", 1);
    scratch_write(scratch_path(&dir, "out/b"), "2", 1);
    return pl_folder_remove_flat(folder, &err);
}

static void judge_removed(pl_status status)
{
    if (!status)
        assert_int_equal(scratch_count(folder), -1);
}

static void removing_a_folder_succeeds_only_when_it_is_gone(void **state)
{
    (void)state;
    faults_in_every_call(remove_flat, judge_removed, 10, &err, dir.folder);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(replacing_a_file_leaves_the_old_or_the_new),
        TEST(replacing_a_link_leaves_the_old_or_the_new),
        TEST(preparing_over_old_data_is_all_or_nothing),
        TEST(preparing_into_nothing_leaves_nothing_half_done),
        TEST(reading_a_dataset_fails_cleanly_or_is_right),
        TEST(removing_a_folder_succeeds_only_when_it_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
