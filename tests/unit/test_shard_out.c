#include "data/shard_out.h"

#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 1000 };

static scratch dir;
static pl_error err;
static unsigned char buffer[PL_SHARD_OUT_BUFFER_BYTES];
static int32_t ids[COUNT];

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    memset(&err, 0, sizeof err);
    for (int i = 0; i < COUNT; i++)
        ids[i] = i;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_close(&dir);
    return 0;
}

static pl_shard_out_options options_for(pl_shard_kind kind, uint64_t each)
{
    return (pl_shard_out_options){ .folder = dir.folder,
                                   .split = "train",
                                   .kind = kind,
                                   .vocab_size = COUNT,
                                   .shard_tokens = each };
}

/* The tokens of all shards, one behind the other, are 0, 1, ... */
static void assert_counts_up(const pl_shard_out_options *options,
                             uint64_t shards, size_t count)
{
    size_t at = 0;
    for (uint64_t s = 0; s < shards; s++) {
        char name[PL_SHARD_OUT_NAME_BYTES];
        int32_t found[COUNT];
        pl_shard shard;
        pl_shard_out_name(options, s, name);
        if (pl_shard_open(&shard, scratch_path(&dir, name), &err))
            fail_msg("%s", err.text);
        assert_true(shard.n_tokens <= COUNT);
        assert_int_equal(pl_shard_read(&shard, 0, (size_t)shard.n_tokens, found,
                                       COUNT, &err),
                         PL_OK);
        for (size_t i = 0; i < shard.n_tokens; i++)
            assert_int_equal(found[i], at++);
        pl_shard_close(&shard);
    }
    assert_int_equal(at, count);
    assert_int_equal(scratch_count(dir.folder), shards);
}

static void put(pl_shard_out *out, size_t first, size_t count)
{
    if (pl_shard_out_put(out, ids + first, count, &err))
        fail_msg("%s", err.text);
}

static void tokens_are_cut_into_shards(void **state)
{
    (void)state;
    static const pl_shard_kind kinds[] = { PL_SHARD_NANOGPT, PL_SHARD_LLMC,
                                           PL_SHARD_WIDE };
    for (int k = 0; k < 3; k++) {
        pl_shard_out_options options = options_for(kinds[k], 300);
        pl_shard_out out;
        assert_int_equal(pl_shard_out_open(&out, &options, 0, buffer, &err),
                         PL_OK);
        put(&out, 0, 100);
        put(&out, 100, 200); /* a shard is full */
        put(&out, 300, 700);
        assert_int_equal(pl_shard_out_end(&out, &err), PL_OK);
        assert_int_equal(pl_shard_out_end(&out, &err), PL_OK); /* nothing */
        assert_int_equal(pl_shard_out_files(&options, COUNT), 4);
        assert_counts_up(&options, 4, COUNT);
        assert_int_equal(pl_shard_out_open(&out, &options, 0, buffer, &err),
                         PL_OK); /* removes them all */
        assert_int_equal(scratch_count(dir.folder), 0);
    }
}

static void names_and_numbers_of_files(void **state)
{
    (void)state;
    char name[PL_SHARD_OUT_NAME_BYTES];
    pl_shard_out_options one = options_for(PL_SHARD_NANOGPT, 0);
    pl_shard_out_options many = options_for(PL_SHARD_NANOGPT, 10);
    pl_shard_out_name(&one, 0, name);
    assert_string_equal(name, "train.bin");
    pl_shard_out_name(&many, 17, name);
    assert_string_equal(name, "train_000017.bin");
    assert_int_equal(pl_shard_out_files(&one, 0), 0);
    assert_int_equal(pl_shard_out_files(&one, 99), 1);
    assert_int_equal(pl_shard_out_files(&many, 0), 0);
    assert_int_equal(pl_shard_out_files(&many, 20), 2);
    assert_int_equal(pl_shard_out_files(&many, 21), 3);
}

/* From every number of tokens, whatever more there was. */
static void writing_goes_on_behind_any_token(void **state)
{
    (void)state;
    static const uint64_t sizes[] = { 0, 300, 250 };
    for (int k = 0; k < 3; k++)
        for (size_t kept = 0; kept <= COUNT; kept += 125) {
            pl_shard_out_options options = options_for(PL_SHARD_LLMC, sizes[k]);
            pl_shard_out out;
            assert_int_equal(pl_shard_out_open(&out, &options, 0, buffer, &err),
                             PL_OK);
            put(&out, 0, COUNT);
            assert_int_equal(pl_shard_out_flush(&out, &err), PL_OK);
            assert_int_equal(pl_shard_out_sync(&out, &err), PL_OK);
            pl_shard_out_abandon(&out);
            assert_int_equal(
                pl_shard_out_open(&out, &options, kept, buffer, &err), PL_OK);
            assert_int_equal(out.n_tokens, kept);
            put(&out, kept, COUNT - kept);
            assert_int_equal(pl_shard_out_end(&out, &err), PL_OK);
            assert_counts_up(&options, pl_shard_out_files(&options, COUNT),
                             COUNT);
            assert_int_equal(pl_shard_out_open(&out, &options, 0, buffer, &err),
                             PL_OK); /* removes them */
        }
}

static void fewer_tokens_than_were_counted_are_an_error(void **state)
{
    (void)state;
    pl_shard_out_options options = options_for(PL_SHARD_NANOGPT, 0);
    pl_shard_out out;
    int files = scratch_open_files();
    assert_int_equal(pl_shard_out_open(&out, &options, 0, buffer, &err), PL_OK);
    put(&out, 0, 100);
    assert_int_equal(pl_shard_out_end(&out, &err), PL_OK);
    assert_int_equal(pl_shard_out_open(&out, &options, 101, buffer, &err),
                     PL_E_IO);
    assert_non_null(strstr(err.text, "it has 200 bytes, not 202"));
    options.shard_tokens = 50; /* the same, but of shards that aren't there */
    assert_int_equal(pl_shard_out_open(&out, &options, 60, buffer, &err),
                     PL_E_IO);
    assert_int_equal(scratch_open_files(), files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tokens_are_cut_into_shards, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(names_and_numbers_of_files, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(writing_goes_on_behind_any_token,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            fewer_tokens_than_were_counted_are_an_error, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
