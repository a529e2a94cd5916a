#include "data/dataset.h"
#include "support/asserts.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static scratch dir;
static pl_heap heap;
static pl_error err;

static int set_up(void **state)
{
    (void)state;
    memset(&err, 0, sizeof err);
    scratch_open(&dir);
    heap = pl_heap_make(1 << 20);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_heap_close(&heap);
    scratch_close(&dir);
    return 0;
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
    assert_contains(err.text,
                    "val.bin: token 99 is 297, outside the vocabulary of 297");
    assert_contains(err.text, "prepare the data again");
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
    assert_contains(err.text, "odd.bin has 3 bytes");
    assert_int_equal(
        pl_shard_open(&shard, scratch_path(&dir, "empty.bin"), &err),
        PL_E_FORMAT);
    assert_contains(err.text, "isn't empty");
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
    assert_contains(err.text, "too short");
    pl_shard_close(&shard);
}

/* ---- headers and writing ---- */

/* Tokens 7 * i, as the writer makes them. */
static void write_shard(const char *path, pl_shard_kind kind, size_t count)
{
    pl_file file;
    pl_shard_writer writer;
    unsigned char buffer[PL_SHARD_HEADER_BYTES + 6];
    assert_int_equal(pl_file_create(&file, path, &err), PL_OK);
    assert_int_equal(pl_shard_writer_begin(&writer, &file, kind, 65536, buffer,
                                           sizeof buffer, &err),
                     PL_OK);
    for (size_t i = 0; i < count; i++) {
        int32_t id = (int32_t)(7 * i % 65536);
        assert_int_equal(pl_shard_writer_put(&writer, &id, 1, &err), PL_OK);
    }
    assert_int_equal(pl_shard_writer_end(&writer, &err), PL_OK);
    assert_int_equal(pl_file_close(&file, &err), PL_OK);
}

static void every_kind_comes_back_as_it_was_written(void **state)
{
    (void)state;
    for (int kind = PL_SHARD_NANOGPT; kind <= PL_SHARD_WIDE; kind++)
        for (size_t count = 1; count < 3000; count = 3 * count + 1) {
            pl_shard shard;
            static int32_t out[3000];
            const char *path = scratch_path(&dir, "w.bin");
            write_shard(path, (pl_shard_kind)kind, count);
            assert_int_equal(pl_shard_open(&shard, path, &err), PL_OK);
            assert_int_equal(shard.kind, kind);
            assert_int_equal(shard.n_tokens, count);
            assert_int_equal(pl_shard_read(&shard, count / 3, count - count / 3,
                                           out, 65536, &err),
                             PL_OK);
            for (size_t i = count / 3; i < count; i++)
                assert_int_equal(out[i - count / 3], 7 * i % 65536);
            pl_shard_close(&shard);
        }
}

static void a_header_is_as_llm_c_writes_it(void **state)
{
    (void)state;
    size_t bytes;
    int32_t numbers[256];
    write_shard(scratch_path(&dir, "h.bin"), PL_SHARD_LLMC, 300);
    char *data = scratch_read(scratch_path(&dir, "h.bin"), &bytes);
    assert_int_equal(bytes, 1024 + 2 * 300);
    memcpy(numbers, data, sizeof numbers);
    assert_int_equal(numbers[0], 20240520);
    assert_int_equal(numbers[1], 1);
    assert_int_equal(numbers[2], 300);
    for (int i = 3; i < 256; i++)
        assert_int_equal(numbers[i], 0);
    free(data);
    write_shard(scratch_path(&dir, "h.bin"), PL_SHARD_WIDE, 300);
    data = scratch_read(scratch_path(&dir, "h.bin"), &bytes);
    assert_int_equal(bytes, 1024 + 4 * 300);
    memcpy(numbers, data, sizeof numbers);
    assert_int_equal(numbers[0], 20240801);
    assert_int_equal(numbers[1], 7);
    assert_int_equal(numbers[2], 300);
    free(data);
}

static void headers_that_lie_are_refused(void **state)
{
    (void)state;
    pl_shard shard;
    size_t bytes;
    const char *path = scratch_path(&dir, "lie.bin");
    write_shard(path, PL_SHARD_LLMC, 300);
    char *data = scratch_read(path, &bytes);
    scratch_write(path, data, bytes - 2);
    assert_int_equal(pl_shard_open(&shard, path, &err), PL_E_FORMAT);
    assert_contains(err.text, "says 300 tokens, its 1,622 bytes hold 299");
    scratch_write(path, data, bytes - 1);
    assert_int_equal(pl_shard_open(&shard, path, &err), PL_E_FORMAT);
    scratch_write(path, data, 1024);
    assert_int_equal(pl_shard_open(&shard, path, &err), PL_E_FORMAT);
    data[4] = 2;
    scratch_write(path, data, bytes);
    assert_int_equal(pl_shard_open(&shard, path, &err), PL_E_FORMAT);
    assert_contains(err.text, "has version 2, expected 1");
    free(data);
}

static void wide_tokens_are_checked_in_full(void **state)
{
    (void)state;
    pl_shard shard;
    int32_t out[4];
    size_t bytes;
    const char *path = scratch_path(&dir, "wide.bin");
    write_shard(path, PL_SHARD_WIDE, 4);
    char *data = scratch_read(path, &bytes);
    memcpy(data + 1024 + 4, "\x00\x00\x01\x00", 4);  /* 65536 */
    memcpy(data + 1024 + 12, "\x01\x00\x00\x80", 4); /* 2^31 + 1 */
    scratch_write(path, data, bytes);
    assert_int_equal(pl_shard_open(&shard, path, &err), PL_OK);
    assert_int_equal(pl_shard_read(&shard, 0, 3, out, 65537, &err), PL_OK);
    assert_int_equal(out[1], 65536);
    assert_int_equal(pl_shard_read(&shard, 0, 3, out, 65536, &err),
                     PL_E_FORMAT);
    assert_contains(err.text,
                    "token 1 is 65536, outside the vocabulary of 65536");
    assert_contains(err.text, "set vocab_size");
    assert_int_equal(pl_shard_read(&shard, 3, 1, out, INT32_MAX, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "token 3 is 2147483649");
    pl_shard_close(&shard);
    free(data);
}

/* A sparse file of more than 4 GiB, whose last token isn't 0. */
static void tokens_are_found_past_4_gib(void **state)
{
    (void)state;
    pl_shard shard;
    int32_t out[2] = { 7, 7 };
    const uint64_t bytes = (uint64_t)5 << 30;
    pl_file file;
    const char *path = scratch_path(&dir, "large.bin");
    assert_int_equal(pl_file_create(&file, path, &err), PL_OK);
    assert_int_equal(pl_file_write_at(&file, "\x05\x01", 2, bytes - 2, &err),
                     PL_OK);
    assert_int_equal(pl_file_close(&file, &err), PL_OK);
    assert_int_equal(pl_shard_open(&shard, path, &err), PL_OK);
    assert_true(shard.n_tokens == bytes / 2);
    assert_int_equal(pl_shard_read(&shard, bytes / 2 - 2, 2, out, 50304, &err),
                     PL_OK);
    assert_int_equal(out[0], 0);
    assert_int_equal(out[1], 0x105);
    pl_shard_close(&shard);
}

/* ---- sets ---- */

static void several_shards_read_as_one(void **state)
{
    (void)state;
    enum { PARTS = 5, ALL = 3 + 1 + 10 + 2 + 5 };
    static const size_t sizes[PARTS] = { 3, 1, 10, 2, 5 };
    char paths[PARTS][SCRATCH_PATH_BYTES + 32];
    const char *list[PARTS];
    int32_t expected[ALL], out[ALL];
    pl_shard_set set;
    size_t n = 0;
    for (size_t p = 0; p < PARTS; p++) {
        snprintf(paths[p], sizeof paths[p], "%s/p%zu.bin", dir.folder, p);
        list[p] = paths[p];
        write_shard(paths[p], p % 2 ? PL_SHARD_WIDE : PL_SHARD_LLMC, sizes[p]);
        for (size_t i = 0; i < sizes[p]; i++)
            expected[n++] = (int32_t)(7 * i);
    }
    assert_int_equal(pl_shard_set_open(&set, list, PARTS, &heap, &err), PL_OK);
    assert_int_equal(set.n_tokens, ALL);
    for (size_t first = 0; first <= ALL; first++)
        for (size_t count = 0; count <= ALL - first; count++) {
            assert_int_equal(
                pl_shard_set_read(&set, first, count, out, 65536, &err), PL_OK);
            assert_memory_equal(out, expected + first, count * sizeof *out);
        }
    assert_int_equal(pl_shard_set_read(&set, 0, ALL, out, 60, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "p2.bin: token 9 is 63");
    pl_shard_set_close(&set);
    list[PARTS - 1] = scratch_path(&dir, "absent.bin");
    assert_int_equal(pl_shard_set_open(&set, list, PARTS, &heap, &err),
                     PL_E_IO);
}

/* Else its header would be 512 tokens. */
static void a_magic_that_nobody_knows_is_refused(void **state)
{
    (void)state;
    const char *path = scratch_path(&dir, "bad.bin");
    pl_shard shard;
    write_shard(path, PL_SHARD_LLMC, 700);
    size_t bytes;
    char *data = scratch_read(path, &bytes);
    data[0]++;
    scratch_write(path, data, bytes);
    assert_int_equal(pl_shard_open(&shard, path, &err), PL_E_FORMAT);
    assert_contains(err.text, "bad.bin begins with a header for 700 tokens");
    assert_contains(err.text, "20240521, expected 20240520 or 20240801");
    /* Zeros alone are tokens. */
    memset(data, 0, bytes);
    scratch_write(path, data, bytes);
    assert_int_equal(pl_shard_open(&shard, path, &err), PL_OK);
    pl_shard_close(&shard);
    free(data);
}

static void a_shard_without_a_header_beside_others_is_refused(void **state)
{
    (void)state;
    char good[SCRATCH_PATH_BYTES + 32], bad[SCRATCH_PATH_BYTES + 32];
    const char *const lists[2][2] = { { good, bad }, { bad, good } };
    pl_shard_set set;
    snprintf(good, sizeof good, "%s/good.bin", dir.folder);
    snprintf(bad, sizeof bad, "%s/bad.bin", dir.folder);
    write_shard(good, PL_SHARD_LLMC, 700);
    write_shard(bad, PL_SHARD_NANOGPT, 700);
    int files = scratch_open_files();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pl_shard_set_open(&set, lists[i], 2, &heap, &err),
                         PL_E_FORMAT);
        assert_contains(err.text, "bad.bin doesn't begin with llm.c's header");
    }
    assert_int_equal(scratch_open_files(), files);
}

/* ---- dataset ---- */

static void a_folder_of_llm_c_is_read_as_it_is(void **state)
{
    (void)state;
    pl_dataset set;
    int32_t out[7];
    write_shard(scratch_path(&dir, "fineweb_train_000002.bin"), PL_SHARD_LLMC,
                4);
    write_shard(scratch_path(&dir, "fineweb_train_000001.bin"), PL_SHARD_LLMC,
                3);
    write_shard(scratch_path(&dir, "fineweb_val_000000.bin"), PL_SHARD_LLMC, 5);
    scratch_write(scratch_path(&dir, "train.txt"), "x", 1);
    assert_int_equal(pl_dataset_open(&set, "", dir.folder, &heap, &err), PL_OK);
    assert_int_equal(set.shards[PL_SPLIT_TRAIN].n_tokens, 7);
    assert_int_equal(set.shards[PL_SPLIT_VAL].n_tokens, 5);
    assert_non_null(strstr(set.shards[PL_SPLIT_TRAIN].name, "000001.bin"));
    assert_int_equal(
        pl_shard_set_read(&set.shards[PL_SPLIT_TRAIN], 0, 7, out, 50304, &err),
        PL_OK);
    for (int i = 0; i < 7; i++)
        assert_int_equal(out[i], i < 3 ? 7 * i : 7 * (i - 3));
    pl_dataset_close(&set);
    /* train.bin, where there is one, is all there is. */
    write_tokens(scratch_path(&dir, "train.bin"), 10);
    assert_int_equal(pl_dataset_open(&set, "", dir.folder, &heap, &err), PL_OK);
    assert_int_equal(set.shards[PL_SPLIT_TRAIN].n_tokens, 10);
    pl_dataset_close(&set);
}

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
    assert_contains(err.text, "meta.json:1:");
    assert_int_equal(unlink(scratch_path(&dir, "meta.json")), 0);
    scratch_write(scratch_path(&dir, "meta.pkl"), "cos\nsystem\n.", 12);
    assert_int_equal(pl_dataset_open(&set, "data", dir.folder, &heap, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "(GLOBAL)");
}

static void missing_files_say_which_command_makes_them(void **state)
{
    (void)state;
    pl_dataset set;
    assert_int_equal(pl_dataset_open(&set, dir.folder, "novel", &heap, &err),
                     PL_E_IO);
    assert_contains(err.text, "novel/train.bin doesn't exist");
    assert_contains(err.text, "plimsoll prepare --out=");
    write_tokens(scratch_path(&dir, "train.bin"), 10);
    assert_int_equal(pl_dataset_open(&set, dir.folder, "", &heap, &err),
                     PL_E_IO);
    assert_contains(err.text, "val.bin doesn't exist");
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
        TEST(every_kind_comes_back_as_it_was_written),
        TEST(a_header_is_as_llm_c_writes_it),
        TEST(headers_that_lie_are_refused),
        TEST(wide_tokens_are_checked_in_full),
        TEST(tokens_are_found_past_4_gib),
        TEST(several_shards_read_as_one),
        TEST(a_magic_that_nobody_knows_is_refused),
        TEST(a_shard_without_a_header_beside_others_is_refused),
        TEST(a_folder_of_llm_c_is_read_as_it_is),
        TEST(the_tokenizer_comes_from_json_then_pickle_then_gpt2),
        TEST(a_broken_meta_never_falls_through_to_another),
        TEST(missing_files_say_which_command_makes_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
