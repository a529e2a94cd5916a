#include "text/bpe_passes.h"

#include "support/scratch.h"
#include "text/bpe_train.h"
#include "text/pretok.h"
#include "unit/bpe_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { MERGES = 120, TEXT_BYTES = 3000 };

static pl_heap heap;
static pl_error err;
static scratch folder;

static int set_up(void **state)
{
    (void)state;
    heap = pl_heap_make((size_t)512 << 20);
    memset(&err, 0, sizeof err);
    scratch_open(&folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_file_fail_at(0, 0);
    scratch_close(&folder);
    pl_heap_close(&heap);
    return 0;
}

static pl_bpe_train_options options_for(int32_t vocab_size)
{
    return (pl_bpe_train_options){ .vocab_size = vocab_size,
                                   .threads = 1,
                                   .min_count = 1,
                                   .memory_bytes = (size_t)64 << 20,
                                   .folder = folder.folder };
}

static int compare(const void *a, const void *b)
{
    return pl_run_compare(a, b);
}

/* The pieces of a text as a run in memory; each counts once, so that equal
 * ones are runs of their own. */
static size_t cut(const char *text, size_t bytes, pl_run_count *counts)
{
    size_t count = 0;
    for (size_t at = 0; at < bytes;) {
        size_t length = pl_pretok_next(PL_PATTERN_GPT2, text + at, bytes - at);
        pl_run_count *each = &counts[count++];
        *each = (pl_run_count){ .count = 1 };
        if (length <= PL_PRETOKEN_SHORT_BYTES) {
            each->key = pl_pretoken_key_of(text + at, length, length);
        } else {
            pl_run_bytes *copy;
            assert_int_equal(
                pl_heap_take(&heap, &copy, sizeof *copy + length, 1, &err),
                PL_OK);
            copy->length = (uint32_t)length;
            memcpy(copy->text, text + at, length);
            each->key = pl_run_long_key(text + at, length);
            each->bytes = copy;
        }
        at += length;
    }
    qsort(counts, count, sizeof *counts, compare);
    return count;
}

/* Merges found in passes over a file. */
static pl_status in_passes(const char *text, size_t bytes, size_t pair_bytes,
                           pl_bpe_merge *merges, size_t *count)
{
    static pl_run_count counts[TEXT_BYTES];
    static uint16_t lengths[PL_BPE_BYTES + MERGES];
    pl_bpe_train_options options = options_for(PL_BPE_BYTES + MERGES);
    pl_sorted_run run = { .counts = counts,
                          .count = cut(text, bytes, counts),
                          .longest_bytes = TEXT_BYTES };
    pl_pairs pairs;
    pl_bpe_passes passes = { .options = &options,
                             .runs = &run,
                             .run_count = 1,
                             .pairs = &pairs,
                             .lengths = lengths,
                             .merges = merges,
                             .merge_limit = MERGES };
    assert_int_equal(pl_pairs_open(&pairs, 1, pair_bytes, &err), PL_OK);
    pl_status status = pl_bpe_passes_run(&passes, &err);
    pl_pairs_close(&pairs);
    *count = passes.merge_count;
    return status;
}

static void passes_find_the_merges_of_training_in_memory(void **state)
{
    (void)state;
    static const char *const alphabets[] = { "a",     "ab",       "aaab ",
                                             "abc ",  "the 1",    "aab  \n",
                                             "etao ", "abcdefgh " };
    char text[TEXT_BYTES];
    for (uint32_t seed = 0; seed < 400; seed++) {
        size_t bytes = 200 + 7 * seed, count, want_count;
        pl_bpe_merge merges[MERGES], *want;
        pl_bpe_train_options options = options_for(PL_BPE_BYTES + MERGES);
        pl_bpe_train_result result;
        random_text(text, bytes, alphabets[seed % 8], seed);
        assert_int_equal(train_on(text, bytes, &options, &result, &heap, &err),
                         PL_OK);
        want = merges_of(result.bpe, &want_count);
        if (in_passes(text, bytes, 16 << 20, merges, &count))
            fail_msg("%s", err.text);
        assert_int_equal(count, want_count);
        for (size_t i = 0; i < count; i++)
            if (memcmp(&merges[i], &want[i], sizeof *want) != 0)
                fail_msg("seed %u, merge %zu: %d %d, expected %d %d", seed, i,
                         merges[i].left, merges[i].right, want[i].left,
                         want[i].right);
        free(want);
        assert_int_equal(scratch_count(folder.folder), 0);
    }
}

static void no_merge_makes_a_token_longer_than_the_limit(void **state)
{
    (void)state;
    char text[TEXT_BYTES];
    pl_bpe_merge merges[MERGES];
    size_t count;
    memset(text, 'a', sizeof text);
    assert_int_equal(in_passes(text, sizeof text, 1 << 20, merges, &count),
                     PL_OK);
    assert_true(count > 9); /* 512 is 2 to the 9th */
    size_t lengths[PL_BPE_BYTES + MERGES];
    for (size_t i = 0; i < PL_BPE_BYTES; i++)
        lengths[i] = 1;
    for (size_t i = 0; i < count; i++) {
        lengths[merges[i].made] = lengths[merges[i].left] +
                                  lengths[merges[i].right];
        assert_true(lengths[merges[i].made] <= PL_BPE_TOKEN_BYTES);
    }
}

static void pairs_that_need_too_much_are_an_error(void **state)
{
    (void)state;
    char text[TEXT_BYTES];
    pl_bpe_merge merges[MERGES];
    size_t count;
    random_text(text, sizeof text,
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ"
                "RSTUVWXYZ0123456789",
                3);
    assert_int_equal(in_passes(text, sizeof text, 90000, merges, &count),
                     PL_E_MEMORY);
    assert_int_equal(scratch_count(folder.folder), 0);
}

static void every_failing_call_leaves_no_file(void **state)
{
    (void)state;
    char text[TEXT_BYTES];
    pl_bpe_merge merges[MERGES];
    size_t count;
    long nth, failures = 0;
    int files = scratch_open_files();
    random_text(text, sizeof text, "the 1", 5);
    for (nth = 1; nth < 5000; nth += nth < 60 ? 1 : 7) {
        pl_file_fail_at(nth, ENOSPC);
        pl_status status = in_passes(text, sizeof text, 1 << 20, merges,
                                     &count);
        int happened = pl_file_fault_happened();
        pl_file_fail_at(0, 0);
        assert_int_equal(scratch_open_files(), files);
        if (status) {
            assert_int_equal(status, PL_E_IO);
            assert_non_null(strstr(err.text, "pieces-"));
            failures++;
        }
        /* A file that can't be removed may stay: it is in the caller's own
         * folder, and the next pass writes over it. */
        assert_in_range(scratch_count(folder.folder), 0, 1);
        unlink(scratch_path(&folder, "pieces-0"));
        unlink(scratch_path(&folder, "pieces-1"));
        if (!happened)
            break;
    }
    assert_true(failures > 50);
    assert_in_range(nth, 60, 4999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            passes_find_the_merges_of_training_in_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            no_merge_makes_a_token_longer_than_the_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pairs_that_need_too_much_are_an_error,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_failing_call_leaves_no_file,
                                        set_up, tear_down),
    };
    return cmocka_run_group_tests_name("bpe_passes", tests, NULL, NULL);
}
