#include "data/batch.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TRAIN_TOKENS = 1000, VAL_TOKENS = 100, T = 7 };

static scratch dir;
static pl_heap heap;
static pl_error err;
static pl_dataset set;

/* Token i is i; validation's is 10000 + i. */
static void write_tokens(const char *path, unsigned base, size_t count)
{
    unsigned char data[2 * TRAIN_TOKENS];
    for (size_t i = 0; i < count; i++) {
        data[2 * i] = (unsigned char)(base + i);
        data[2 * i + 1] = (unsigned char)((base + i) >> 8);
    }
    scratch_write(path, data, 2 * count);
}

static int set_up(void **state)
{
    (void)state;
    memset(&err, 0, sizeof err);
    scratch_open(&dir);
    heap = pl_heap_make(1 << 20);
    write_tokens(scratch_path(&dir, "train.bin"), 0, TRAIN_TOKENS);
    write_tokens(scratch_path(&dir, "val.bin"), 10000, VAL_TOKENS);
    assert_int_equal(pl_dataset_open(&set, "", dir.folder, &heap, &err), PL_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_dataset_close(&set);
    pl_heap_close(&heap);
    scratch_close(&dir);
    return 0;
}

static void crops_are_uniform_and_reach_both_ends(void **state)
{
    (void)state;
    enum { STARTS = 10, DRAWS = 100000 };
    size_t seen[STARTS + 1] = { 0 };
    for (uint32_t i = 0; i < DRAWS; i++) {
        uint64_t start = pl_batch_crop_train(1337, i / 8, i % 8, STARTS + T, T);
        assert_true(start < STARTS);
        seen[start]++;
    }
    for (size_t i = 0; i < STARTS; i++) /* 10 sigma of 10000 +- 95 */
        assert_in_range(seen[i], DRAWS / STARTS - 950, DRAWS / STARTS + 950);
}

static void one_start_is_possible_and_less_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(pl_batch_crop_train(1, 2, 3, T + 1, T), 0);
    assert_int_equal(pl_batch_crop_eval(1, PL_SPLIT_VAL, 3, T + 1, T), 0);
    assert_int_equal(pl_batch_check("train.bin", T + 1, T, &err), PL_OK);
    assert_int_equal(pl_batch_check("train.bin", T, T, &err), PL_E_CONFIG);
    assert_non_null(strstr(err.text, "train.bin has 7 tokens"));
    assert_non_null(strstr(err.text, "sequences of 7: it needs 8"));
    assert_non_null(strstr(err.text, "block_size"));
}

/* Counts how often two lists of crops agree; by chance 1 of 1e9. */
static void every_part_of_the_key_matters(void **state)
{
    (void)state;
    const uint64_t n = 1000000000;
    for (uint32_t i = 0; i < 100; i++) {
        uint64_t base = pl_batch_crop_train(1, i, 2, n, T);
        assert_int_equal(base, pl_batch_crop_train(1, i, 2, n, T));
        assert_int_not_equal(base, pl_batch_crop_train(2, i, 2, n, T));
        assert_int_not_equal(base, pl_batch_crop_train(1, i + 1, 2, n, T));
        assert_int_not_equal(base, pl_batch_crop_train(1, i, 3, n, T));
        uint64_t eval = pl_batch_crop_eval(1, PL_SPLIT_TRAIN, i, n, T);
        assert_int_not_equal(eval, base);
        assert_int_not_equal(eval,
                             pl_batch_crop_eval(1, PL_SPLIT_VAL, i, n, T));
        assert_int_not_equal(eval,
                             pl_batch_crop_eval(2, PL_SPLIT_TRAIN, i, n, T));
    }
}

/* The list of crops is a part of what "the same run" means: it may not change
 * unnoticed. */
static void the_crops_of_a_seed_are_fixed_for_good(void **state)
{
    (void)state;
    assert_int_equal(pl_batch_crop_train(1337, 0, 0, 1003854, 64), 993230);
    assert_int_equal(pl_batch_crop_train(1337, 1999, 11, 1003854, 64), 175353);
    assert_int_equal(pl_batch_crop_eval(1337, PL_SPLIT_VAL, 5, 111540, 64),
                     13567);
}

/* rows[count][T + 1], each sequence in two pieces. */
static pl_status load(const pl_batch_key *key, uint32_t first, uint32_t count,
                      size_t length, int32_t *rows)
{
    pl_status status = PL_OK;
    for (uint32_t i = 0; i < count && !status; i++) {
        const size_t row = i * (length + 1), cut = length / 3;
        status = pl_batch_read(&set, key, first + i, length, 0, cut, rows + row,
                               &err);
        if (!status)
            status = pl_batch_read(&set, key, first + i, length, cut,
                                   length + 1 - cut, rows + row + cut, &err);
    }
    return status;
}

static void rows_are_the_tokens_from_their_crops(void **state)
{
    (void)state;
    const pl_batch_key key = { .use = PL_BATCH_TRAIN, .seed = 3, .step = 40 };
    int32_t rows[5 * (T + 1)];
    assert_int_equal(load(&key, 0, 5, T, rows), PL_OK);
    for (uint32_t s = 0; s < 5; s++) {
        uint64_t start = pl_batch_crop_train(3, 40, s, TRAIN_TOKENS, T);
        for (size_t t = 0; t <= T; t++)
            assert_int_equal(rows[s * (T + 1) + t], start + t);
    }
    const pl_batch_key val = { .use = PL_BATCH_EVAL,
                               .split = PL_SPLIT_VAL,
                               .seed = 3 };
    assert_int_equal(load(&val, 2, 1, T, rows), PL_OK);
    uint64_t start = pl_batch_crop_eval(3, PL_SPLIT_VAL, 2, VAL_TOKENS, T);
    assert_int_equal(rows[0], 10000 + start);
    assert_int_equal(rows[T], 10000 + start + T);
}

static void a_batch_is_the_same_in_any_pieces(void **state)
{
    (void)state;
    const pl_batch_key key = { .use = PL_BATCH_TRAIN, .seed = 9, .step = 1 };
    int32_t whole[12 * (T + 1)], pieces[12 * (T + 1)];
    assert_int_equal(load(&key, 0, 12, T, whole), PL_OK);
    for (uint32_t size = 1; size <= 12; size++) {
        memset(pieces, 0, sizeof pieces);
        for (uint32_t first = 0; first < 12; first += size) {
            uint32_t count = 12 - first < size ? 12 - first : size;
            assert_int_equal(
                load(&key, first, count, T, pieces + first * (T + 1)), PL_OK);
        }
        assert_memory_equal(whole, pieces, sizeof whole);
    }
}

static void data_that_is_too_short_is_an_error(void **state)
{
    (void)state;
    const pl_batch_key val = { .use = PL_BATCH_EVAL, .split = PL_SPLIT_VAL };
    static int32_t rows[VAL_TOKENS + 1];
    assert_int_equal(load(&val, 0, 1, VAL_TOKENS, rows), PL_E_CONFIG);
    assert_non_null(strstr(err.text, "val.bin has 100 tokens"));
    assert_int_equal(load(&val, 0, 1, VAL_TOKENS - 1, rows), PL_OK);
    assert_int_equal(rows[0], 10000);
    assert_int_equal(rows[VAL_TOKENS - 1], 10000 + VAL_TOKENS - 1);
}

static void tokens_are_checked_against_the_vocabulary(void **state)
{
    (void)state;
    const pl_batch_key val = { .use = PL_BATCH_EVAL, .split = PL_SPLIT_VAL };
    int32_t rows[T + 1];
    set.tokenizer.vocab_size = 10000;
    assert_int_equal(load(&val, 0, 1, T, rows), PL_E_FORMAT);
    assert_non_null(strstr(err.text, "outside the vocabulary of 10000"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(crops_are_uniform_and_reach_both_ends),
        TEST(one_start_is_possible_and_less_is_an_error),
        TEST(every_part_of_the_key_matters),
        TEST(the_crops_of_a_seed_are_fixed_for_good),
        TEST(rows_are_the_tokens_from_their_crops),
        TEST(a_batch_is_the_same_in_any_pieces),
        TEST(data_that_is_too_short_is_an_error),
        TEST(tokens_are_checked_against_the_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
