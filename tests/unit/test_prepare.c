#include "data/dataset.h"
#include "data/prepare.h"
#include "support/asserts.h"
#include "support/scratch.h"
#include "text/bpe_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static scratch dir;
static pl_heap heap;
static pl_error err;
static pl_prepare_result result;
static char out_folder[SCRATCH_PATH_BYTES + 8];

static int set_up(void **state)
{
    (void)state;
    memset(&err, 0, sizeof err);
    memset(&result, 0, sizeof result);
    scratch_open(&dir);
    snprintf(out_folder, sizeof out_folder, "%s/out", dir.folder);
    heap = pl_heap_make(64 << 20);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_heap_close(&heap);
    scratch_close(&dir);
    return 0;
}

static pl_prepare_options options_for(const char *const *paths, size_t count,
                                      pl_tokenizer_kind kind)
{
    static pl_tokenizer byte;
    byte = pl_tokenizer_make_byte();
    return (pl_prepare_options){
        .source = { .paths = paths, .path_count = count },
        .folder = out_folder,
        .tokenizer = kind == PL_TOKENIZER_BYTE ? &byte : NULL,
        .end_token = PL_PREPARE_NO_TOKEN,
        .val_fraction = 0.1,
        .threads = 2,
        .memory_bytes = pl_prepare_min_bytes(2, NULL),
    };
}

static pl_status prepare_file(const char *path, pl_tokenizer_kind kind)
{
    const char *paths[] = { path };
    pl_prepare_options options = options_for(paths, 1, kind);
    pl_heap_close(&heap);
    return pl_prepare(&options, &heap, &result, &err);
}

static pl_status prepare_text(const char *text, size_t bytes,
                              pl_tokenizer_kind kind)
{
    scratch_write(scratch_path(&dir, "text.txt"), text, bytes);
    return prepare_file(scratch_path(&dir, "text.txt"), kind);
}

static void assert_tokens(const char *name, const int *tokens, size_t count)
{
    size_t bytes;
    char *data = scratch_read(scratch_path(&dir, name), &bytes);
    assert_non_null(data);
    assert_int_equal(bytes, 2 * count);
    for (size_t i = 0; i < count; i++) {
        const unsigned char *at = (const unsigned char *)data + 2 * i;
        assert_int_equal(at[0] | at[1] << 8, tokens[i]);
    }
    free(data);
}

static void characters_become_ids_in_sorted_order(void **state)
{
    (void)state;
    const char *text = "héllo wörld\n"; /* 12 characters, 14 bytes */
    assert_int_equal(prepare_text(text, strlen(text), PL_TOKENIZER_CHAR),
                     PL_OK);
    assert_int_equal(result.text_bytes, 14);
    assert_int_equal(result.train_tokens, 10); /* int(12 * 0.9) */
    assert_int_equal(result.val_tokens, 2);
    assert_int_equal(result.tokenizer.vocab_size, 10);
    /* \n ' ' d h l o r w é ö */
    static const int train[] = { 3, 8, 4, 4, 5, 1, 7, 9, 6, 4 };
    static const int val[] = { 2, 0 };
    assert_tokens("out/train.bin", train, 10);
    assert_tokens("out/val.bin", val, 2);
    char *meta = scratch_read(scratch_path(&dir, "out/meta.json"), NULL);
    assert_string_equal(
        meta, "{\"tokenizer\": \"char\", \"vocab_size\": 10, \"characters\": "
              "[\"\\n\", \" \", \"d\", \"h\", \"l\", \"o\", \"r\", \"w\", "
              "\"é\", \"ö\"]}\n");
    free(meta);
    assert_int_equal(scratch_count(out_folder), 3);
}

static void bytes_are_split_as_bytes(void **state)
{
    (void)state;
    assert_int_equal(
        prepare_text("\xFF\x00 abcdefg\x80", 11, PL_TOKENIZER_BYTE), PL_OK);
    static const int train[] = { 255, 0, 32, 97, 98, 99, 100, 101, 102 };
    static const int val[] = { 103, 128 };
    assert_tokens("out/train.bin", train, 9);
    assert_tokens("out/val.bin", val, 2);
    assert_int_equal(result.tokenizer.vocab_size, 256);
}

static void what_was_prepared_opens_as_a_dataset(void **state)
{
    (void)state;
    pl_dataset set;
    int32_t ids[10];
    assert_int_equal(prepare_text("0123456789", 10, PL_TOKENIZER_CHAR), PL_OK);
    assert_int_equal(pl_dataset_open(&set, dir.folder, "out", &heap, &err),
                     PL_OK);
    assert_int_equal(set.tokenizer.kind, PL_TOKENIZER_CHAR);
    assert_int_equal(pl_shard_set_read(&set.shards[PL_SPLIT_TRAIN], 0, 9, ids,
                                       set.tokenizer.vocab_size, &err),
                     PL_OK);
    for (int i = 0; i < 9; i++)
        assert_int_equal(ids[i], i);
    pl_dataset_close(&set);
}

/* The split in characters of texts of every length, against Python's
 * int(n * 0.9), which 1 - 0.1 must not disturb. */
static void the_split_is_nanogpts_for_every_length(void **state)
{
    (void)state;
    char text[200];
    memset(text, 'x', sizeof text);
    for (size_t n = 2; n <= sizeof text; n++) {
        assert_int_equal(prepare_text(text, n, PL_TOKENIZER_CHAR), PL_OK);
        assert_int_equal(result.train_tokens, (uint64_t)((double)n * 0.9));
        assert_int_equal(result.val_tokens, n - result.train_tokens);
    }
}

/* Longer than every buffer, with characters of 1 to 4 bytes across their
 * borders and a split inside: the ids must spell the text. */
static void long_texts_are_streamed_without_a_seam(void **state)
{
    (void)state;
    static const char *const pieces[] = { "a", "é", "€", "😀", "\n" };
    enum { N = 700001 };
    char *text = malloc(4 * N);
    unsigned char *kinds = malloc(N);
    assert_true(text && kinds);
    size_t bytes = 0;
    uint32_t random = 1;
    for (size_t i = 0; i < N; i++) {
        random = random * 1664525 + 1013904223;
        kinds[i] = (unsigned char)((random >> 16) % 5);
        size_t length = strlen(pieces[kinds[i]]);
        memcpy(text + bytes, pieces[kinds[i]], length);
        bytes += length;
    }
    assert_int_equal(prepare_text(text, bytes, PL_TOKENIZER_CHAR), PL_OK);
    assert_int_equal(result.train_tokens, 630000); /* int(630000.9) */
    assert_int_equal(result.val_tokens, 70001);
    static const unsigned char ids[] = { 1, 2, 3, 4, 0 };
    const char *names[] = { "out/train.bin", "out/val.bin" };
    size_t at = 0;
    for (int f = 0; f < 2; f++) {
        size_t size;
        char *data = scratch_read(scratch_path(&dir, names[f]), &size);
        for (size_t i = 0; i < size; i += 2)
            if (data[i] != (char)ids[kinds[at++]] || data[i + 1])
                fail_msg("%s: token %zu", names[f], i / 2);
        free(data);
    }
    assert_int_equal(at, N);
    free(text);
    free(kinds);
}

static void several_files_are_one_text_in_order(void **state)
{
    (void)state;
    scratch_write(scratch_path(&dir, "1"),
                  "\xEF\xBB\xBF"
                  "ab",
                  5);
    scratch_write(scratch_path(&dir, "2"), "", 0);
    scratch_write(scratch_path(&dir, "3"), "c\r\n", 3);
    const char *paths[] = { scratch_path(&dir, "1"), scratch_path(&dir, "2"),
                            scratch_path(&dir, "3") };
    pl_prepare_options options = options_for(paths, 3, PL_TOKENIZER_CHAR);
    options.val_fraction = 0.5;
    assert_int_equal(pl_prepare(&options, &heap, &result, &err), PL_OK);
    static const int train[] = { 5, 2, 3 }, val[] = { 4, 1, 0 };
    assert_tokens("out/train.bin", train, 3); /* mark, a, b */
    assert_tokens("out/val.bin", val, 3);     /* c, \r, \n */
}

static void invalid_utf8_says_where_and_what_to_do(void **state)
{
    (void)state;
    assert_int_equal(prepare_text("ok\nok\nno\xC3(", 10, PL_TOKENIZER_CHAR),
                     PL_E_FORMAT);
    assert_contains(err.text, "text.txt: line 3, byte 8: 0xC3");
    assert_contains(err.text, "--tokenizer=byte");
    assert_int_equal(prepare_text("abc\xE2\x82", 5, PL_TOKENIZER_CHAR),
                     PL_E_FORMAT);
    assert_contains(err.text, "line 1, byte 3: 0xE2");
    assert_int_equal(scratch_count(out_folder), -1);
}

static void invalid_utf8_far_inside_has_the_right_place(void **state)
{
    (void)state;
    enum { N = 600000 };
    char *text = malloc(N);
    assert_non_null(text);
    for (size_t i = 0; i < N; i++)
        text[i] = i % 10 == 9 ? '\n' : 'x';
    text[555555] = '\x80';
    assert_int_equal(prepare_text(text, N, PL_TOKENIZER_CHAR), PL_E_FORMAT);
    assert_contains(err.text, "line 55556, byte 555555: 0x80");
    free(text);
}

static void a_character_cut_by_the_end_of_a_file_is_invalid(void **state)
{
    (void)state;
    scratch_write(scratch_path(&dir, "1"), "abc\xE2\x82", 5);
    scratch_write(scratch_path(&dir, "2"), "\xAC", 1);
    const char *paths[] = { scratch_path(&dir, "1"), scratch_path(&dir, "2") };
    pl_prepare_options options = options_for(paths, 2, PL_TOKENIZER_CHAR);
    assert_int_equal(pl_prepare(&options, &heap, &result, &err), PL_E_FORMAT);
    assert_contains(err.text, "/1: line 1, byte 3");
}

static void more_characters_than_16_bits_tell_apart_are_refused(void **state)
{
    (void)state;
    enum { N = 65537 };
    char *text = malloc(4 * N);
    assert_non_null(text);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t code = 0x20000 + i;
        text[4 * i] = (char)(0xF0 | code >> 18);
        text[4 * i + 1] = (char)(0x80 | (code >> 12 & 0x3F));
        text[4 * i + 2] = (char)(0x80 | (code >> 6 & 0x3F));
        text[4 * i + 3] = (char)(0x80 | (code & 0x3F));
    }
    assert_int_equal(prepare_text(text, 4 * N, PL_TOKENIZER_CHAR), PL_E_FORMAT);
    assert_contains(err.text, "65537 different characters");
    assert_int_equal(prepare_text(text, 4 * (N - 1), PL_TOKENIZER_CHAR), PL_OK);
    assert_int_equal(result.tokenizer.vocab_size, 65536);
    free(text);
}

static void what_is_no_text_is_refused(void **state)
{
    (void)state;
    assert_int_equal(prepare_text("", 0, PL_TOKENIZER_CHAR), PL_E_FORMAT);
    assert_contains(err.text, "empty");
    assert_int_equal(prepare_text("x", 1, PL_TOKENIZER_CHAR), PL_E_FORMAT);
    assert_contains(err.text, "too few");
    assert_int_equal(
        prepare_file(scratch_path(&dir, "absent.txt"), PL_TOKENIZER_CHAR),
        PL_E_IO);
    assert_contains(err.text, "absent.txt");
    pl_prepare_options options = options_for(NULL, 0, PL_TOKENIZER_CHAR);
    assert_int_equal(pl_prepare(&options, &heap, &result, &err), PL_E_USAGE);
    const char *paths[] = { scratch_path(&dir, "text.txt") };
    options = options_for(paths, 1, PL_TOKENIZER_CHAR);
    options.val_fraction = 1.0;
    assert_int_equal(pl_prepare(&options, &heap, &result, &err), PL_E_CONFIG);
    assert_true(scratch_count(out_folder) <= 0);
}

typedef struct watch {
    uint64_t done, total;
    int loads, stop_at; /* handed on; how many are enough */
} watch;

static void see_progress(void *context, const pl_prepare_progress *progress)
{
    watch *w = context;
    assert_true(progress->done_bytes >= w->done &&
                progress->done_bytes <= progress->total_bytes);
    w->loads++;
    w->done = progress->done_bytes;
    w->total = progress->total_bytes;
}

static pl_prepare_wish wish_after(void *context)
{
    watch *w = context;
    return w->loads >= w->stop_at ? PL_PREPARE_STOP : PL_PREPARE_GO_ON;
}

static void progress_counts_both_passes(void **state)
{
    (void)state;
    watch w = { 0 };
    scratch_write(scratch_path(&dir, "t"), "abcdefghijkl", 12);
    const char *paths[] = { scratch_path(&dir, "t") };
    pl_prepare_options options = options_for(paths, 1, PL_TOKENIZER_CHAR);
    options.progress = see_progress;
    options.context = &w;
    assert_int_equal(pl_prepare(&options, &heap, &result, &err), PL_OK);
    assert_int_equal(w.done, 24);
    assert_int_equal(w.total, 24);
}

/* Stops at every place that there is, and goes on from there. */
static void a_stop_leaves_the_old_data_and_the_next_run_goes_on(void **state)
{
    (void)state;
    enum { N = 12000000 };
    char *text = malloc(N);
    assert_non_null(text);
    for (size_t i = 0; i < N; i++)
        text[i] = i % 7 == 6 ? ' ' : (char)('a' + i % 26);
    assert_int_equal(prepare_text("0123456789", 10, PL_TOKENIZER_BYTE), PL_OK);
    scratch_write(scratch_path(&dir, "long"), text, N);
    char path[SCRATCH_PATH_BYTES + 8];
    snprintf(path, sizeof path, "%s/long", dir.folder);
    const char *paths[] = { path };
    int stops = 0;
    for (;; stops++) {
        watch w = { .stop_at = 2 };
        pl_prepare_options options = options_for(paths, 1, PL_TOKENIZER_BYTE);
        options.progress = see_progress;
        options.wish = wish_after;
        options.context = &w;
        options.shard_tokens = 5000000;
        pl_status status = pl_prepare(&options, &heap, &result, &err);
        if (status == PL_OK)
            break;
        assert_int_equal(status, PL_E_STOPPED);
        assert_contains(err.text, "prepare.part");
        static const int val[] = { '9' };
        assert_tokens("out/val.bin", val, 1);
        assert_int_equal(scratch_count(out_folder), 4);
    }
    assert_true(stops > 2);
    assert_true(result.resumed_bytes > 0);
    assert_int_equal(scratch_count(out_folder), 5); /* 3 + 1 shards, meta */
    assert_int_equal(result.train_tokens, N / 10 * 9);
    size_t at = 0;
    static const char *const names[] = { "out/train_000000.bin",
                                         "out/train_000001.bin",
                                         "out/train_000002.bin",
                                         "out/val_000000.bin" };
    for (int f = 0; f < 4; f++) {
        size_t size;
        char *data = scratch_read(scratch_path(&dir, names[f]), &size);
        if (!data)
            continue; /* there are two shards that train, or three */
        for (size_t i = 0; i < size; i += 2, at++)
            if (data[i] != text[at] || data[i + 1])
                fail_msg("%s: token %zu", names[f], i / 2);
        free(data);
    }
    assert_int_equal(at, N);
    free(text);
}

static void other_settings_begin_anew(void **state)
{
    (void)state;
    enum { N = 12000000 };
    char *text = malloc(N);
    assert_non_null(text);
    memset(text, 'x', N);
    scratch_write(scratch_path(&dir, "text.txt"), text, N);
    free(text);
    const char *paths[] = { scratch_path(&dir, "text.txt") };
    watch w = { .stop_at = 3 };
    pl_prepare_options options = options_for(paths, 1, PL_TOKENIZER_BYTE);
    options.progress = see_progress;
    options.wish = wish_after;
    options.context = &w;
    assert_int_equal(pl_prepare(&options, &heap, &result, &err), PL_E_STOPPED);
    options.val_fraction = 0.2;
    options.progress = NULL;
    options.wish = NULL;
    assert_int_equal(pl_prepare(&options, &heap, &result, &err), PL_OK);
    assert_int_equal(result.resumed_bytes, 0);
    assert_int_equal(result.val_tokens, N / 5);
    assert_int_equal(scratch_count(out_folder), 3);
}

/* Appends to the text between the passes. */
static pl_prepare_wish change_text(void *context)
{
    if (++*(int *)context == 1) {
        FILE *file = fopen(scratch_path(&dir, "text.txt"), "ab");
        assert_non_null(file);
        fputs("Z", file);
        fclose(file);
    }
    return PL_PREPARE_GO_ON;
}

static void a_text_that_changes_meanwhile_is_noticed(void **state)
{
    (void)state;
    static const char *const texts[] = { "abcdefghijkl", "abcZefghijkl" };
    for (int i = 0; i < 2; i++) { /* a new character, then a known one more */
        int calls = 0;
        scratch_write(scratch_path(&dir, "text.txt"), texts[i], 12);
        const char *paths[] = { scratch_path(&dir, "text.txt") };
        pl_prepare_options options = options_for(paths, 1, PL_TOKENIZER_CHAR);
        options.wish = change_text;
        options.context = &calls;
        pl_heap_close(&heap);
        assert_int_equal(pl_prepare(&options, &heap, &result, &err), PL_E_IO);
        assert_contains(err.text, "changed by someone else");
        assert_int_equal(scratch_count(out_folder), -1);
    }
}

/* Twenty documents of JSON lines, all of one size. */
static const char *write_documents(void)
{
    char lines[20 * 40];
    size_t used = 0;
    for (int i = 0; i < 20; i++)
        used += (size_t)snprintf(lines + used, sizeof lines - used,
                                 "{\"text\": \"doc %c%c\"}\n", 'a' + i,
                                 'a' + i);
    scratch_write(scratch_path(&dir, "d.jsonl"), lines, used);
    return scratch_path(&dir, "d.jsonl");
}

static void documents_of_a_bpe_end_and_validate_whole(void **state)
{
    (void)state;
    const char *paths[] = { write_documents() };
    pl_bpe *bpe;
    assert_int_equal(
        pl_bpe_load(&bpe, "tests/golden/tokens.tiktoken", &heap, &err), PL_OK);
    pl_tokenizer tokenizer = pl_tokenizer_make_bpe(bpe);
    int32_t end = pl_bpe_special(bpe, "<|endoftext|>");
    assert_true(end >= 0);
    pl_prepare_options options = options_for(paths, 1, PL_TOKENIZER_CHAR);
    options.tokenizer = &tokenizer;
    options.end_token = end;
    assert_int_equal(pl_prepare(&options, &heap, &result, &err), PL_OK);
    assert_int_equal(result.documents, 20);
    assert_string_equal(result.tokenizer_file, "tokenizer.json");
    pl_dataset set;
    assert_int_equal(pl_dataset_open(&set, dir.folder, "out", &heap, &err),
                     PL_OK);
    assert_int_equal(set.tokenizer.kind, PL_TOKENIZER_BPE);
    int ends[2] = { 0, 0 };
    for (int split = 0; split < 2; split++) {
        const pl_shard_set *shards = &set.shards[split];
        int32_t ids[1000];
        size_t count = (size_t)shards->n_tokens;
        assert_true(count < 1000);
        assert_int_equal(pl_shard_set_read(shards, 0, count, ids,
                                           set.tokenizer.vocab_size, &err),
                         PL_OK);
        for (size_t i = 0; i < count; i++)
            ends[split] += ids[i] == end;
        assert_int_equal(ids[count - 1], end);
    }
    assert_int_equal(ends[PL_SPLIT_TRAIN], 18);
    assert_int_equal(ends[PL_SPLIT_VAL], 2);
    pl_dataset_close(&set);
}

static void documents_of_bytes_are_lines_of_one_text(void **state)
{
    (void)state;
    const char *paths[] = { write_documents() };
    pl_prepare_options options = options_for(paths, 1, PL_TOKENIZER_BYTE);
    options.val_fraction = 0.5;
    assert_int_equal(pl_prepare(&options, &heap, &result, &err), PL_OK);
    assert_int_equal(result.train_tokens, 70); /* 20 x "doc aa\n" / 2 */
    assert_int_equal(result.val_tokens, 70);
    size_t bytes;
    char *train = scratch_read(scratch_path(&dir, "out/train.bin"), &bytes);
    for (size_t i = 0; i < bytes / 2; i++)
        assert_int_equal(train[2 * i] == '\n', i % 7 == 6);
    free(train);
}

static void the_end_that_validates_may_reach_over_shards(void **state)
{
    (void)state;
    for (int shard = 1; shard <= 12; shard++) {
        static const pl_shard_kind kinds[] = { PL_SHARD_NANOGPT, PL_SHARD_LLMC,
                                               PL_SHARD_WIDE };
        scratch_write(scratch_path(&dir, "t"), "0123456789", 10);
        const char *paths[] = { scratch_path(&dir, "t") };
        pl_prepare_options options = options_for(paths, 1, PL_TOKENIZER_CHAR);
        options.val_fraction = 0.4;
        options.shard_tokens = (uint64_t)shard;
        options.kind = kinds[shard % 3];
        assert_int_equal(pl_prepare(&options, &heap, &result, &err), PL_OK);
        pl_dataset set;
        int32_t ids[10];
        assert_int_equal(pl_dataset_open(&set, dir.folder, "out", &heap, &err),
                         PL_OK);
        assert_int_equal(set.shards[0].n_tokens, 6);
        assert_int_equal(set.shards[1].n_tokens, 4);
        assert_int_equal(set.shards[0].count, (6 + shard - 1) / shard);
        assert_int_equal(pl_shard_set_read(&set.shards[0], 0, 6, ids, 10, &err),
                         PL_OK);
        assert_int_equal(
            pl_shard_set_read(&set.shards[1], 0, 4, ids + 6, 10, &err), PL_OK);
        for (int i = 0; i < 10; i++)
            assert_int_equal(ids[i], i);
        pl_dataset_close(&set);
    }
}

static void too_little_memory_says_how_much_is_needed(void **state)
{
    (void)state;
    const char *paths[] = { write_documents() };
    pl_prepare_options options = options_for(paths, 1, PL_TOKENIZER_BYTE);
    options.memory_bytes--;
    assert_int_equal(pl_prepare(&options, &heap, &result, &err), PL_E_MEMORY);
    assert_contains(err.text, "Raise memory");
}

static void preparing_again_replaces_and_keeps_other_files(void **state)
{
    (void)state;
    assert_int_equal(prepare_text("0123456789", 10, PL_TOKENIZER_CHAR), PL_OK);
    scratch_write(scratch_path(&dir, "out/input.txt"), "mine", 4);
    assert_int_equal(prepare_text("9876543210", 10, PL_TOKENIZER_BYTE), PL_OK);
    static const int val[] = { '0' };
    assert_tokens("out/val.bin", val, 1);
    assert_int_equal(scratch_count(out_folder), 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(characters_become_ids_in_sorted_order),
        TEST(bytes_are_split_as_bytes),
        TEST(what_was_prepared_opens_as_a_dataset),
        TEST(the_split_is_nanogpts_for_every_length),
        TEST(long_texts_are_streamed_without_a_seam),
        TEST(several_files_are_one_text_in_order),
        TEST(invalid_utf8_says_where_and_what_to_do),
        TEST(invalid_utf8_far_inside_has_the_right_place),
        TEST(a_character_cut_by_the_end_of_a_file_is_invalid),
        TEST(more_characters_than_16_bits_tell_apart_are_refused),
        TEST(what_is_no_text_is_refused),
        TEST(progress_counts_both_passes),
        TEST(a_stop_leaves_the_old_data_and_the_next_run_goes_on),
        TEST(other_settings_begin_anew),
        TEST(a_text_that_changes_meanwhile_is_noticed),
        TEST(documents_of_a_bpe_end_and_validate_whole),
        TEST(documents_of_bytes_are_lines_of_one_text),
        TEST(the_end_that_validates_may_reach_over_shards),
        TEST(too_little_memory_says_how_much_is_needed),
        TEST(preparing_again_replaces_and_keeps_other_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
