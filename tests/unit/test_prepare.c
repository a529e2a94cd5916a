#include "data/dataset.h"
#include "data/prepare.h"
#include "support/scratch.h"

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
static int files_before;

static int set_up(void **state)
{
    (void)state;
    memset(&err, 0, sizeof err);
    memset(&result, 0, sizeof result);
    scratch_open(&dir);
    snprintf(out_folder, sizeof out_folder, "%s/out", dir.folder);
    heap = pl_heap_make(PL_PREPARE_HEAP_BYTES);
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

static pl_prepare_options options_for(const char *const *paths, size_t count,
                                      pl_tokenizer_kind kind)
{
    return (pl_prepare_options){ .paths = paths,
                                 .path_count = count,
                                 .folder = out_folder,
                                 .tokenizer = kind,
                                 .val_fraction = 0.1 };
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
    assert_says("text.txt: line 3, byte 8: 0xC3");
    assert_says("--tokenizer=byte");
    assert_int_equal(prepare_text("abc\xE2\x82", 5, PL_TOKENIZER_CHAR),
                     PL_E_FORMAT);
    assert_says("line 1, byte 3: 0xE2");
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
    assert_says("line 55556, byte 555555: 0x80");
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
    assert_says("/1: line 1, byte 3");
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
    assert_says("65537 different characters");
    assert_int_equal(prepare_text(text, 4 * (N - 1), PL_TOKENIZER_CHAR), PL_OK);
    assert_int_equal(result.tokenizer.vocab_size, 65536);
    free(text);
}

static void what_is_no_text_is_refused(void **state)
{
    (void)state;
    assert_int_equal(prepare_text("", 0, PL_TOKENIZER_CHAR), PL_E_FORMAT);
    assert_says("empty");
    assert_int_equal(prepare_text("x", 1, PL_TOKENIZER_CHAR), PL_E_FORMAT);
    assert_says("too few");
    assert_int_equal(
        prepare_file(scratch_path(&dir, "absent.txt"), PL_TOKENIZER_CHAR),
        PL_E_IO);
    assert_says("absent.txt");
    assert_int_equal(prepare_file(dir.folder, PL_TOKENIZER_CHAR), PL_E_IO);
    assert_says("a folder");
    pl_prepare_options options = options_for(NULL, 0, PL_TOKENIZER_CHAR);
    assert_int_equal(pl_prepare(&options, &heap, &result, &err), PL_E_USAGE);
    const char *paths[] = { scratch_path(&dir, "text.txt") };
    options = options_for(paths, 1, PL_TOKENIZER_CHAR);
    options.val_fraction = 1.0;
    assert_int_equal(pl_prepare(&options, &heap, &result, &err), PL_E_USAGE);
    assert_int_equal(scratch_count(out_folder), -1);
}

typedef struct watch {
    uint64_t done, total;
    int calls, stop_at;
} watch;

static void see_progress(void *context, uint64_t done, uint64_t total)
{
    watch *w = context;
    assert_true(done >= w->done && done <= total);
    w->done = done;
    w->total = total;
}

static pl_prepare_wish wish_after(void *context)
{
    watch *w = context;
    return ++w->calls == w->stop_at ? PL_PREPARE_STOP : PL_PREPARE_GO_ON;
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

static void a_stop_leaves_the_old_data_whole(void **state)
{
    (void)state;
    enum { N = 1000000 };
    char *text = calloc(N, 1);
    assert_non_null(text);
    assert_int_equal(prepare_text("0123456789", 10, PL_TOKENIZER_CHAR), PL_OK);
    scratch_write(scratch_path(&dir, "long"), text, N);
    char path[SCRATCH_PATH_BYTES + 8];
    snprintf(path, sizeof path, "%s/long", dir.folder);
    const char *paths[] = { path };
    int stops = 0;
    for (watch w = { .stop_at = 1 };; w.stop_at++, stops++) {
        w.calls = 0;
        w.done = 0;
        pl_prepare_options options = options_for(paths, 1, PL_TOKENIZER_CHAR);
        options.wish = wish_after;
        options.context = &w;
        pl_heap_close(&heap);
        pl_status status = pl_prepare(&options, &heap, &result, &err);
        if (status == PL_OK)
            break;
        assert_int_equal(status, PL_E_STOPPED);
        static const int val[] = { 9 };
        assert_tokens("out/val.bin", val, 1);
        assert_int_equal(scratch_count(out_folder), 3);
    }
    assert_true(stops > 6);
    struct stat info;
    assert_int_equal(stat(scratch_path(&dir, "out/train.bin"), &info), 0);
    assert_int_equal(info.st_size, 2 * 900000);
    free(text);
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
        assert_says("changed by someone else");
        assert_int_equal(scratch_count(out_folder), 0);
    }
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
        TEST(a_stop_leaves_the_old_data_whole),
        TEST(a_text_that_changes_meanwhile_is_noticed),
        TEST(preparing_again_replaces_and_keeps_other_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
