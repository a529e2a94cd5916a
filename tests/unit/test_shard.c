#include "data/dataset.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static scratch dir;
static pl_heap heap;
static pl_error err;
static int files_before;

static int set_up(void **state)
{
    (void)state;
    memset(&err, 0, sizeof err);
    scratch_open(&dir);
    heap = pl_heap_make(1 << 20);
    files_before = scratch_open_files();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(scratch_open_files(), files_before);
    pl_heap_close(&heap);
    scratch_close(&dir);
    return 0;
}

static void assert_says(const char *part)
{
    if (!strstr(err.text, part))
        fail_msg("\"%s\" doesn't say \"%s\"", err.text, part);
}

/* Tokens 3 * i % 65536, so that both bytes matter. */
static void write_tokens(const char *path, size_t count)
{
    unsigned char *data = malloc(2 * count);
    assert_non_null(data);
    for (size_t i = 0; i < count; i++) {
        data[2 * i] = (unsigned char)(3 * i & 0xFF);
        data[2 * i + 1] = (unsigned char)(3 * i >> 8 & 0xFF);
    }
    scratch_write(path, data, 2 * count);
    free(data);
}

static void every_range_is_read_exactly(void **state)
{
    (void)state;
    pl_shard shard;
    enum { N = 67 };
    write_tokens(scratch_path(&dir, "train.bin"), N);
    assert_int_equal(
        pl_shard_open(&shard, scratch_path(&dir, "train.bin"), &err), PL_OK);
    assert_int_equal(shard.n_tokens, N);
    for (size_t first = 0; first <= N; first++)
        for (size_t count = 0; count <= N - first; count++) {
            int32_t *out = malloc(count * sizeof *out + 1);
            assert_non_null(out);
            assert_int_equal(
                pl_shard_read(&shard, first, count, out, 65536, &err), PL_OK);
            for (size_t i = 0; i < count; i++)
                assert_int_equal(out[i], 3 * (first + i));
            free(out);
        }
    pl_shard_close(&shard);
}

static void the_largest_token_is_read_as_unsigned(void **state)
{
    (void)state;
    pl_shard shard;
    int32_t out[2];
    scratch_write(scratch_path(&dir, "t.bin"), "\xFF\xFF\x00\x80", 4);
    assert_int_equal(pl_shard_open(&shard, scratch_path(&dir, "t.bin"), &err),
                     PL_OK);
    assert_int_equal(pl_shard_read(&shard, 0, 2, out, 65536, &err), PL_OK);
    assert_int_equal(out[0], 65535);
    assert_int_equal(out[1], 32768);
    pl_shard_close(&shard);
}

static void a_token_outside_the_vocabulary_is_named(void **state)
{
    (void)state;
    pl_shard shard;
    int32_t out[100];
    write_tokens(scratch_path(&dir, "val.bin"), 100);
    assert_int_equal(pl_shard_open(&shard, scratch_path(&dir, "val.bin"), &err),
                     PL_OK);
    assert_int_equal(pl_shard_read(&shard, 10, 90, out, 298, &err), PL_OK);
    assert_int_equal(pl_shard_read(&shard, 10, 90, out, 297, &err),
                     PL_E_FORMAT);
    assert_says("val.bin: token 99 is 297, outside the vocabulary of 297");
    assert_says("prepare the data again");
    pl_shard_close(&shard);
}

static void odd_and_empty_files_are_refused(void **state)
{
    (void)state;
    pl_shard shard;
    scratch_write(scratch_path(&dir, "odd.bin"), "abc", 3);
    scratch_write(scratch_path(&dir, "empty.bin"), "", 0);
    assert_int_equal(pl_shard_open(&shard, scratch_path(&dir, "odd.bin"), &err),
                     PL_E_FORMAT);
    assert_says("odd.bin has 3 bytes");
    assert_int_equal(
        pl_shard_open(&shard, scratch_path(&dir, "empty.bin"), &err),
        PL_E_FORMAT);
    assert_says("isn't empty");
    assert_int_equal(
        pl_shard_open(&shard, scratch_path(&dir, "absent.bin"), &err), PL_E_IO);
}

static void a_file_that_shrinks_while_open_is_an_error(void **state)
{
    (void)state;
    pl_shard shard;
    int32_t out[100];
    const char *path = scratch_path(&dir, "s.bin");
    write_tokens(path, 100);
    assert_int_equal(pl_shard_open(&shard, path, &err), PL_OK);
    assert_int_equal(truncate(path, 50), 0);
    assert_int_equal(pl_shard_read(&shard, 0, 100, out, 65536, &err),
                     PL_E_FORMAT);
    assert_says("too short");
    pl_shard_close(&shard);
}

/* ---- dataset ---- */

static const char byte_meta[] =
    "{\"tokenizer\": \"byte\", \"vocab_size\": 256}";
/* {'vocab_size': 1, 'itos': {0: 'a'}, 'stoi': {'a': 0}} */
static const char pickle_meta[] = "(Vvocab_size\nI1\nVitos\n(I0\nVa\nd"
                                  "Vstoi\n(Va\nI0\ndd.";

static void the_tokenizer_comes_from_json_then_pickle_then_gpt2(void **state)
{
    (void)state;
    pl_dataset set;
    write_tokens(scratch_path(&dir, "train.bin"), 10);
    write_tokens(scratch_path(&dir, "val.bin"), 5);
    assert_int_equal(pl_dataset_open(&set, "data", dir.folder, &heap, &err),
                     PL_OK);
    assert_int_equal(set.tokenizer.kind, PL_TOKENIZER_NONE);
    assert_int_equal(set.tokenizer.vocab_size, 50304);
    assert_int_equal(set.shards[PL_SPLIT_TRAIN].n_tokens, 10);
    assert_int_equal(set.shards[PL_SPLIT_VAL].n_tokens, 5);
    assert_string_equal(set.folder, dir.folder);
    pl_dataset_close(&set);

    scratch_write(scratch_path(&dir, "meta.pkl"), pickle_meta,
                  sizeof pickle_meta - 1);
    assert_int_equal(pl_dataset_open(&set, "data", dir.folder, &heap, &err),
                     PL_OK);
    assert_int_equal(set.tokenizer.kind, PL_TOKENIZER_CHAR);
    assert_int_equal(set.tokenizer.vocab_size, 1);
    pl_dataset_close(&set);

    scratch_write(scratch_path(&dir, "meta.json"), byte_meta,
                  sizeof byte_meta - 1);
    assert_int_equal(pl_dataset_open(&set, "data", dir.folder, &heap, &err),
                     PL_OK);
    assert_int_equal(set.tokenizer.kind, PL_TOKENIZER_BYTE);
    pl_dataset_close(&set);
}

static void a_broken_meta_never_falls_through_to_another(void **state)
{
    (void)state;
    pl_dataset set;
    write_tokens(scratch_path(&dir, "train.bin"), 10);
    write_tokens(scratch_path(&dir, "val.bin"), 5);
    scratch_write(scratch_path(&dir, "meta.pkl"), pickle_meta,
                  sizeof pickle_meta - 1);
    scratch_write(scratch_path(&dir, "meta.json"), "{", 1);
    assert_int_equal(pl_dataset_open(&set, "data", dir.folder, &heap, &err),
                     PL_E_FORMAT);
    assert_says("meta.json:1:");
    assert_int_equal(unlink(scratch_path(&dir, "meta.json")), 0);
    scratch_write(scratch_path(&dir, "meta.pkl"), "cos\nsystem\n.", 12);
    assert_int_equal(pl_dataset_open(&set, "data", dir.folder, &heap, &err),
                     PL_E_FORMAT);
    assert_says("(GLOBAL)");
}

static void missing_files_say_which_command_makes_them(void **state)
{
    (void)state;
    pl_dataset set;
    assert_int_equal(pl_dataset_open(&set, dir.folder, "novel", &heap, &err),
                     PL_E_IO);
    assert_says("novel/train.bin doesn't exist");
    assert_says("plimsoll prepare --out=");
    write_tokens(scratch_path(&dir, "train.bin"), 10);
    assert_int_equal(pl_dataset_open(&set, dir.folder, "", &heap, &err),
                     PL_E_IO);
    assert_says("val.bin doesn't exist");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_range_is_read_exactly),
        TEST(the_largest_token_is_read_as_unsigned),
        TEST(a_token_outside_the_vocabulary_is_named),
        TEST(odd_and_empty_files_are_refused),
        TEST(a_file_that_shrinks_while_open_is_an_error),
        TEST(the_tokenizer_comes_from_json_then_pickle_then_gpt2),
        TEST(a_broken_meta_never_falls_through_to_another),
        TEST(missing_files_say_which_command_makes_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
