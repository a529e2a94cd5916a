/* Every system call and every request for memory fails once while a vocabulary
 * is trained with counts that go to the disk, and while it is saved: no runs
 * are left, and the folder has the old files or the new ones, never both. */
#include "base/file.h"
#include "support/scratch.h"
#include "text/bpe_read.h"
#include "text/bpe_train.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { MANY = 3000, WORDS = 60000, WORD_BYTES = 10, COARSE = 60 };

static scratch dir;
static pl_error err;
static char *text;
static char out_folder[SCRATCH_PATH_BYTES + 8];
static char part_folder[SCRATCH_PATH_BYTES + 8];

static int set_up(void **state)
{
    uint32_t random = 1;
    (void)state;
    scratch_open(&dir);
    snprintf(out_folder, sizeof out_folder, "%s/out", dir.folder);
    snprintf(part_folder, sizeof part_folder, "%s/part", dir.folder);
    text = malloc(WORDS * WORD_BYTES);
    assert_non_null(text);
    for (size_t i = 0; i < WORDS * WORD_BYTES; i++) {
        random = random * 1664525 + 1013904223;
        text[i] = i % WORD_BYTES == 0 ? ' ' : "etaoinsh"[random >> 29];
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_file_fail_at(0, 0);
    pl_arena_fail_at(0);
    free(text);
    scratch_close(&dir);
    return 0;
}

/* Nearly all words are different: one thread's tables are too small. */
static pl_status train(int32_t vocab_size, size_t memory_bytes, pl_bpe **bpe,
                       pl_heap *heap)
{
    const pl_bpe_train_options options = { .vocab_size = vocab_size,
                                           .threads = 16,
                                           .memory_bytes = memory_bytes,
                                           .folder = part_folder };
    pl_bpe_counter *counter = NULL;
    pl_bpe_train_result result = { 0 };
    memset(&err, 0, sizeof err);
    pl_status status = pl_bpe_counter_open(&counter, &options, heap, &err);
    if (status)
        return status;
    status = pl_bpe_counter_add(counter, 0, text, WORDS * WORD_BYTES, &err);
    if (!status)
        status = pl_bpe_train(counter, &result, heap, &err);
    pl_bpe_counter_close(counter);
    assert_true(status || result.spilled_runs > 1);
    *bpe = result.bpe;
    return status;
}

static long next(long nth)
{
    return nth + (nth < COARSE ? 1 : 1 + nth / 8);
}

static void a_failing_call_while_training_leaves_no_runs(void **state)
{
    static const int errors[] = { EIO, ENOSPC };
    (void)state;
    assert_int_equal(mkdir(part_folder, 0755), 0);
    for (int e = 0; e < 2; e++) {
        int happened = 1;
        long failures = 0;
        for (long nth = 1; happened; nth = next(nth)) {
            pl_heap heap = pl_heap_make(64 << 20);
            pl_bpe *bpe;
            int files = scratch_open_files();
            pl_file_fail_at(nth, errors[e]);
            pl_status status = train(300, 24 << 20, &bpe, &heap);
            happened = pl_file_fault_happened();
            pl_file_fail_at(0, 0);
            pl_heap_close(&heap);
            assert_int_equal(scratch_open_files(), files);
            assert_true(scratch_count(part_folder) <= 1); /* can't remove */
            scratch_remove(part_folder);
            assert_int_equal(mkdir(part_folder, 0755), 0);
            failures += status != PL_OK;
            if (status) {
                assert_int_equal(status, PL_E_IO);
                assert_non_null(strstr(err.text, strerror(errors[e])));
                assert_non_null(strstr(err.text, "/part/counts-"));
            }
        }
        assert_true(failures > 20);
    }
}

static const char *const names[] = { "out/merges.txt", "out/vocab.json",
                                     "out/tokenizer.json" };

static void lay_old(void)
{
    scratch_remove(out_folder);
    assert_int_equal(mkdir(out_folder, 0755), 0);
    for (int i = 0; i < 3; i++)
        scratch_write(scratch_path(&dir, names[i]), "old", 3);
}

/* How many of the three are old. */
static int count_old(void)
{
    int old = 0;
    for (int i = 0; i < 3; i++) {
        char *data = scratch_read(scratch_path(&dir, names[i]), NULL);
        assert_non_null(data);
        old += strcmp(data, "old") == 0;
        free(data);
    }
    return old;
}

static void a_failing_save_leaves_the_old_files(void **state)
{
    static const int errors[] = { EIO, ENOSPC, EINVAL };
    pl_heap heap = pl_heap_make(64 << 20);
    pl_bpe *bpe;
    (void)state;
    scratch_remove(part_folder);
    assert_int_equal(mkdir(part_folder, 0755), 0);
    assert_int_equal(train(300, 24 << 20, &bpe, &heap), PL_OK);
    for (int e = 0; e < 3; e++) {
        long nth, failures = 0;
        for (nth = 1; nth < MANY; nth++) {
            lay_old();
            int files = scratch_open_files();
            memset(&err, 0, sizeof err);
            pl_file_fail_at(nth, errors[e]);
            pl_status status = pl_bpe_save(bpe, out_folder, part_folder, &heap,
                                           &err);
            int happened = pl_file_fault_happened();
            pl_file_fail_at(0, 0);
            assert_int_equal(scratch_open_files(), files);
            assert_int_equal(count_old(), status ? 3 : 0);
            assert_int_equal(scratch_count(out_folder), 3);
            failures += status != PL_OK;
            if (!happened)
                break;
        }
        assert_in_range(nth, 20, MANY - 1);
        assert_true(failures > 20);
    }
    pl_heap_close(&heap);
}

static void a_save_into_an_empty_folder_is_all_or_nothing(void **state)
{
    pl_heap heap = pl_heap_make(64 << 20);
    pl_bpe *bpe, *read;
    long nth;
    (void)state;
    scratch_remove(part_folder);
    assert_int_equal(mkdir(part_folder, 0755), 0);
    assert_int_equal(train(300, 24 << 20, &bpe, &heap), PL_OK);
    for (nth = 1; nth < MANY; nth++) {
        scratch_remove(out_folder);
        assert_int_equal(mkdir(out_folder, 0755), 0);
        pl_file_fail_at(nth, EIO);
        pl_status status = pl_bpe_save(bpe, out_folder, part_folder, &heap,
                                       &err);
        int happened = pl_file_fault_happened();
        pl_file_fail_at(0, 0);
        assert_int_equal(scratch_count(out_folder), status ? 0 : 3);
        if (!happened)
            break;
    }
    assert_in_range(nth, 20, MANY - 1);
    assert_int_equal(pl_bpe_load(&read, out_folder, &heap, &err), PL_OK);
    assert_int_equal(pl_bpe_vocab_size(read), 300);
    assert_false(scratch_has(part_folder));
    pl_heap_close(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_call_while_training_leaves_no_runs),
        cmocka_unit_test(a_failing_save_leaves_the_old_files),
        cmocka_unit_test(a_save_into_an_empty_folder_is_all_or_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
