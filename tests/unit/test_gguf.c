#include "format/gguf.h"
#include "support/asserts.h"
#include "support/scratch.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static scratch dir;
static pl_heap heap;
static pl_error err;
static pl_gguf gguf;
static char path[2 * SCRATCH_PATH_BYTES];
static unsigned char buffer[PL_GGUF_BUFFER_BYTES];

static int set_up(void **state)
{
    (void)state;
    memset(&err, 0, sizeof err);
    scratch_open(&dir);
    snprintf(path, sizeof path, "%s", scratch_path(&dir, "m.gguf"));
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

/* ---- a file by hand ---- */

static unsigned char image[1 << 16];
static size_t used;

static void put(const void *data, size_t bytes)
{
    assert_true(bytes <= sizeof image - used);
    memcpy(image + used, data, bytes);
    used += bytes;
}

static void number(uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        unsigned char byte = (unsigned char)(value >> (8 * i));
        put(&byte, 1);
    }
}

static void text(const char *words)
{
    number(strlen(words), 8);
    put(words, strlen(words));
}

static void head(uint64_t tensors, uint64_t keys)
{
    used = 0;
    put("GGUF", 4);
    number(3, 4);
    number(tensors, 8);
    number(keys, 8);
}

static void tensor(const char *name, uint64_t rank, const uint64_t *dims,
                   uint64_t type, uint64_t offset)
{
    text(name);
    number(rank, 4);
    for (size_t i = 0; i < rank && i < 4; i++)
        number(dims[i], 8);
    number(type, 4);
    number(offset, 8);
}

static void data(size_t bytes)
{
    while (used % 32)
        put("", 1);
    for (size_t i = 0; i < bytes; i++) {
        unsigned char byte = (unsigned char)(i * 7);
        put(&byte, 1);
    }
}

static pl_status reopen(void)
{
    scratch_write(path, image, used);
    return pl_gguf_open(&gguf, path, &heap, &err);
}

static void refused(pl_status status, const char *part)
{
    assert_int_equal(reopen(), status);
    assert_contains(err.text, "m.gguf");
    assert_contains(err.text, part);
}

static const uint64_t pair[4] = { 3, 2, 1, 1 }, block[4] = { 32, 1, 1, 1 },
                      odd[4] = { 33, 1, 1, 1 };

/* ---- reading ---- */

static void a_file_by_hand_is_read(void **state)
{
    (void)state;
    head(2, 3);
    text("a.count");
    number(PL_GGUF_U32, 4);
    number(7, 4);
    text("a.name");
    number(PL_GGUF_TEXT, 4);
    text("gpt2");
    text("a.list");
    number(PL_GGUF_ARRAY, 4);
    number(PL_GGUF_TEXT, 4);
    number(2, 8);
    text("x");
    text("yz");
    tensor("w", 2, pair, PL_GGML_F32, 0);
    tensor("q", 1, block, PL_GGML_Q8_0, 32);
    data(32 + 34);
    assert_int_equal(reopen(), PL_OK);

    int64_t whole = 0;
    char word[16];
    size_t bytes;
    pl_gguf_walk walk;
    assert_int_equal(pl_gguf_want_whole(&gguf, "a.count", 1, 9, &whole, &err),
                     PL_OK);
    assert_int_equal(whole, 7);
    assert_int_equal(pl_gguf_want_text(&gguf, "a.name", word, 16, &err), PL_OK);
    assert_string_equal(word, "gpt2");
    assert_int_equal(
        pl_gguf_walk_begin(&walk, &gguf, "a.list", PL_GGUF_TEXT, &err), PL_OK);
    assert_int_equal(walk.left, 2);
    assert_int_equal(pl_gguf_walk_text(&walk, word, 16, &bytes, &err), PL_OK);
    assert_string_equal(word, "x");
    assert_int_equal(pl_gguf_walk_text(&walk, word, 16, &bytes, &err), PL_OK);
    assert_string_equal(word, "yz");
    assert_int_equal(bytes, 2);

    const pl_gguf_tensor *q = pl_gguf_find(&gguf, "q");
    assert_non_null(q);
    assert_int_equal(q->bytes, 34);
    unsigned char two[2];
    assert_int_equal(pl_gguf_read(&gguf, q, 3, two, 2, &err), PL_OK);
    assert_int_equal(two[0], (unsigned char)(35 * 7));
    assert_null(pl_gguf_find(&gguf, "absent"));
    pl_gguf_close(&gguf);
}

static void a_missing_or_wrong_key_is_named(void **state)
{
    (void)state;
    int64_t whole;
    char word[4];
    pl_gguf_walk walk;
    head(0, 3);
    text("odd");
    number(PL_GGUF_TEXT, 4);
    text("a\xff");
    text("big");
    number(PL_GGUF_U64, 4);
    number(UINT64_MAX, 8);
    text("long");
    number(PL_GGUF_TEXT, 4);
    text("longer");
    assert_int_equal(reopen(), PL_OK);
    assert_int_equal(pl_gguf_want_whole(&gguf, "none", 0, 9, &whole, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "key none is missing");
    assert_int_equal(
        pl_gguf_want_whole(&gguf, "big", 0, INT64_MAX, &whole, &err),
        PL_E_FORMAT);
    assert_int_equal(pl_gguf_want_whole(&gguf, "long", 0, 9, &whole, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "is of type text");
    assert_int_equal(pl_gguf_want_text(&gguf, "long", word, 4, &err),
                     PL_E_FORMAT);
    assert_int_equal(pl_gguf_want_text(&gguf, "odd", word, 4, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "not valid UTF-8");
    assert_int_equal(
        pl_gguf_walk_begin(&walk, &gguf, "long", PL_GGUF_TEXT, &err),
        PL_E_FORMAT);
    pl_gguf_close(&gguf);
}

static void what_is_no_gguf_is_refused(void **state)
{
    (void)state;
    head(0, 0);
    memcpy(image, "GGML", 4);
    refused(PL_E_FORMAT, "begin with \"GGUF\"");
    head(0, 0);
    image[4] = 1;
    refused(PL_E_UNSUPPORTED, "version 1");
    head(0, 0);
    memcpy(image + 4, "\0\0\0\3", 4);
    refused(PL_E_UNSUPPORTED, "big-endian");
    used = 5;
    refused(PL_E_FORMAT, "it has 5 bytes");
}

static void huge_counts_are_refused(void **state)
{
    (void)state;
    head(UINT64_MAX, 0);
    refused(PL_E_FORMAT, "tensors");
    head(0, 1ull << 40);
    refused(PL_E_FORMAT, "keys");
    head(0, 1);
    text("a");
    number(PL_GGUF_ARRAY, 4);
    number(PL_GGUF_I32, 4);
    number(1ull << 62, 8);
    refused(PL_E_FORMAT, "doesn't fit");
    head(0, 1);
    text("a");
    number(PL_GGUF_TEXT, 4);
    number(UINT64_MAX - 7, 8);
    refused(PL_E_FORMAT, "would have");
    head(0, 1);
    number(1000, 8);
    data(2000);
    refused(PL_E_FORMAT, "expected 1 to 255");
}

static void doubled_names_are_refused(void **state)
{
    (void)state;
    head(0, 2);
    for (int i = 0; i < 2; i++) {
        text("same");
        number(PL_GGUF_BOOL, 4);
        number(1, 1);
    }
    refused(PL_E_FORMAT, "key same stands twice");
    head(2, 0);
    tensor("w", 2, pair, PL_GGML_F32, 0);
    tensor("w", 2, pair, PL_GGML_F32, 32);
    data(64);
    refused(PL_E_FORMAT, "tensor w stands twice");
}

static void wrong_types_are_refused(void **state)
{
    (void)state;
    head(0, 1);
    text("a");
    number(13, 4);
    refused(PL_E_FORMAT, "has type 13");
    head(0, 1);
    text("a");
    number(PL_GGUF_BOOL, 4);
    number(2, 1);
    refused(PL_E_FORMAT, "0 or 1");
    head(0, 1);
    text("a");
    number(PL_GGUF_ARRAY, 4);
    number(PL_GGUF_ARRAY, 4);
    number(0, 8);
    refused(PL_E_UNSUPPORTED, "array of arrays");
    head(1, 0);
    tensor("w", 2, pair, 12, 0);
    data(32);
    refused(PL_E_UNSUPPORTED, "llama-quantize");
}

static void shapes_that_cannot_be_are_refused(void **state)
{
    (void)state;
    const uint64_t negative[4] = { (uint64_t)-4, 1, 1, 1 };
    const uint64_t huge[4] = { 1ull << 62, 1ull << 40, 1, 1 };
    const uint64_t nothing[4] = { 3, 0, 1, 1 };
    const struct {
        uint64_t rank, type;
        const uint64_t *dims;
        const char *part;
    } cases[] = {
        { 1, PL_GGML_F32, negative, "dimension 0 is -4" },
        { 2, PL_GGML_F32, huge, "more bytes than can be counted" },
        { 2, PL_GGML_F32, nothing, "which is no size" },
        { 0, PL_GGML_F32, pair, "0 dimensions" },
        { 5, PL_GGML_F32, pair, "5 dimensions" },
        { 1, PL_GGML_Q8_0, odd, "a multiple of 32" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        head(1, 0);
        tensor("w", cases[i].rank, cases[i].dims, cases[i].type, 0);
        data(64);
        refused(PL_E_FORMAT, cases[i].part);
    }
}

static void overlaps_holes_and_short_files_are_refused(void **state)
{
    (void)state;
    head(2, 0);
    tensor("a", 2, pair, PL_GGML_F32, 0);
    tensor("b", 2, pair, PL_GGML_F32, 0);
    data(64);
    refused(PL_E_FORMAT, "overlap");
    head(1, 0);
    tensor("a", 2, pair, PL_GGML_F32, 32);
    data(64);
    refused(PL_E_FORMAT, "leave a hole");
    head(2, 0);
    tensor("a", 2, pair, PL_GGML_F32, 0);
    tensor("b", 2, pair, PL_GGML_F32, 32);
    data(32 + 23);
    refused(PL_E_FORMAT, "cut short");
}

static void a_wrong_alignment_is_refused(void **state)
{
    (void)state;
    const uint64_t wrong[] = { 0, 24, 1ull << 31 };
    for (int i = 0; i < 3; i++) {
        head(0, 1);
        text("general.alignment");
        number(PL_GGUF_U32, 4);
        number(wrong[i], 4);
        refused(PL_E_FORMAT, "general.alignment");
    }
}

/* ---- writing ---- */

enum { ROWS = 3, COLS = 64 };

static float values[ROWS * COLS];

static void plan(pl_gguf_writer *w, pl_gguf_tensor *a, pl_gguf_tensor *b)
{
    *a = (pl_gguf_tensor){ .name = "a",
                           .type = PL_GGML_Q8_0,
                           .rank = 2,
                           .dims = { COLS, ROWS, 1, 1 } };
    *b = (pl_gguf_tensor){
        .name = "b", .type = PL_GGML_F32, .rank = 1, .dims = { 5, 1, 1, 1 }
    };
    pl_gguf_put_text(w, "general.architecture", "gpt2");
    pl_gguf_put_u32(w, "n", 42);
    pl_gguf_put_f32(w, "eps", 1e-5f);
    pl_gguf_put_bool(w, "yes", 1);
    pl_gguf_put_array(w, "words", PL_GGUF_TEXT, 2);
    pl_gguf_element_text(w, "one", 3);
    pl_gguf_element_text(w, "", 0);
    pl_gguf_put_array(w, "ids", PL_GGUF_I32, 1);
    pl_gguf_element_i32(w, -3);
    pl_gguf_put_tensor(w, a);
    pl_gguf_put_tensor(w, b);
}

static pl_status write_file(void)
{
    pl_gguf_writer w;
    pl_gguf_tensor a, b;
    unsigned char bytes[COLS / 32 * 34];
    pl_status status = pl_gguf_begin(&w, path, buffer, &err);
    if (status)
        return status;
    plan(&w, &a, &b);
    for (int row = 0; row < ROWS && !status; row++) {
        pl_ggml_pack(PL_GGML_Q8_0, values + row * COLS, COLS, bytes);
        status = pl_gguf_data(&w, &a, (uint64_t)row * sizeof bytes, bytes,
                              sizeof bytes, &err);
    }
    if (!status)
        status = pl_gguf_data(&w, &b, 0, values, 5 * sizeof *values, &err);
    if (status) {
        pl_gguf_drop(&w);
        return status;
    }
    return pl_gguf_end(&w, &err);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    float back[COLS];
    unsigned char bytes[COLS / 32 * 34];
    pl_gguf_walk walk;
    int32_t id = 0;
    for (int i = 0; i < ROWS * COLS; i++)
        values[i] = (float)(i % 31) - 15.0f;
    assert_int_equal(write_file(), PL_OK);
    assert_int_equal(pl_gguf_open(&gguf, path, &heap, &err), PL_OK);
    assert_int_equal(gguf.key_count, 6);
    assert_int_equal(gguf.tensor_count, 2);
    assert_int_equal(gguf.data_at % 32, 0);
    assert_true((float)pl_gguf_find_key(&gguf, "eps")->real == 1e-5f);
    assert_int_equal(pl_gguf_walk_begin(&walk, &gguf, "ids", PL_GGUF_I32, &err),
                     PL_OK);
    assert_int_equal(pl_gguf_walk_i32(&walk, &id, &err), PL_OK);
    assert_int_equal(id, -3);
    const pl_gguf_tensor *a = pl_gguf_find(&gguf, "a");
    assert_int_equal(
        pl_gguf_read(&gguf, a, sizeof bytes, bytes, sizeof bytes, &err), PL_OK);
    pl_ggml_unpack(PL_GGML_Q8_0, bytes, COLS, back);
    for (int i = 0; i < COLS; i++)
        assert_true(fabsf(back[i] - values[COLS + i]) < 0.07f);
    const pl_gguf_tensor *b = pl_gguf_find(&gguf, "b");
    assert_int_equal(b->offset % 32, 0);
    assert_int_equal(pl_gguf_read(&gguf, b, 0, back, 20, &err), PL_OK);
    assert_memory_equal(back, values, 20);
    pl_gguf_close(&gguf);
}

static void a_write_that_fails_leaves_nothing(void **state)
{
    (void)state;
    int failures = 0;
    for (long nth = 1;; nth++) {
        pl_file_fail_at(nth, ENOSPC);
        pl_status status = write_file();
        int happened = pl_file_fault_happened();
        pl_file_fail_at(0, 0);
        if (!happened) {
            assert_int_equal(status, PL_OK);
            break;
        }
        assert_int_equal(status, PL_E_IO);
        assert_contains(err.text, "m.gguf");
        assert_false(scratch_has(path));
        failures++;
    }
    assert_true(failures >= 5);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    size_t bytes;
    assert_int_equal(write_file(), PL_OK);
    char *whole = scratch_read(path, &bytes);
    assert_true(bytes > 200);
    /* the last twelve are padding, without which the data is whole */
    for (size_t n = 0; n < bytes - 12; n++) {
        scratch_write(path, whole, n);
        pl_status status = pl_gguf_open(&gguf, path, &heap, &err);
        assert_true(status == PL_E_FORMAT);
    }
    free(whole);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_file_by_hand_is_read),
        TEST(a_missing_or_wrong_key_is_named),
        TEST(what_is_no_gguf_is_refused),
        TEST(huge_counts_are_refused),
        TEST(doubled_names_are_refused),
        TEST(wrong_types_are_refused),
        TEST(shapes_that_cannot_be_are_refused),
        TEST(overlaps_holes_and_short_files_are_refused),
        TEST(a_wrong_alignment_is_refused),
        TEST(what_is_written_is_read),
        TEST(a_write_that_fails_leaves_nothing),
        TEST(every_truncation_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
