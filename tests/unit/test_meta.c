#include "base/json.h"
#include "text/meta.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static pl_heap heap;
static pl_tokenizer tokenizer;
static pl_error err;

static int set_up(void **state)
{
    (void)state;
    heap = pl_heap_make(8 << 20);
    memset(&err, 0, sizeof err);
    memset(&tokenizer, 0, sizeof tokenizer);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_arena_fail_at(0);
    pl_heap_close(&heap);
    return 0;
}

static pl_status read_text(const char *text)
{
    return pl_meta_read(&tokenizer, text, strlen(text), "data/x/meta.json",
                        &heap, &err);
}

static void assert_refused(const char *text, const char *part)
{
    assert_int_equal(read_text(text), PL_E_FORMAT);
    if (!strstr(err.text, part) || strncmp(err.text, "data/x/meta.json", 16))
        fail_msg("\"%s\" doesn't say \"%s\"", err.text, part);
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    uint32_t codes[0x300 + 3];
    size_t count = 0, bytes;
    const char *text;
    pl_tokenizer made;
    for (uint32_t code = 0; code < 0x300; code++) /* all that needs escapes */
        codes[count++] = code;
    codes[count++] = 0x2028;
    codes[count++] = 0xFEFF;
    codes[count++] = 0x10FFFF;
    assert_int_equal(pl_tokenizer_make_char(&made, codes, count, &heap, &err),
                     PL_OK);
    assert_int_equal(pl_meta_write(&made, &heap, &text, &bytes, &err), PL_OK);
    assert_int_equal(strlen(text), bytes);
    if (read_text(text))
        fail_msg("%s", err.text);
    assert_int_equal(tokenizer.kind, PL_TOKENIZER_CHAR);
    assert_int_equal(tokenizer.vocab_size, count);
    assert_memory_equal(tokenizer.codes, codes, sizeof codes);
}

static void the_largest_vocabulary_fits_the_bound_on_its_file(void **state)
{
    (void)state;
    static uint32_t codes[65536];
    size_t bytes;
    const char *text;
    pl_tokenizer made;
    for (uint32_t i = 0; i < 65536; i++)
        codes[i] = i < 0x20 ? i : 0x10000 + i;
    assert_int_equal(pl_tokenizer_make_char(&made, codes, 65536, &heap, &err),
                     PL_OK);
    assert_int_equal(pl_meta_write(&made, &heap, &text, &bytes, &err), PL_OK);
    assert_true(bytes <= PL_META_MAX_BYTES);
    assert_int_equal(read_text(text), PL_OK);
    assert_int_equal(tokenizer.vocab_size, 65536);
}

static void the_text_is_as_documented(void **state)
{
    (void)state;
    static const uint32_t codes[] = { '\n', '"', '\\', 'a', 0xE9 };
    const char *text;
    size_t bytes;
    pl_tokenizer made, byte = pl_tokenizer_make_byte();
    assert_int_equal(pl_tokenizer_make_char(&made, codes, 5, &heap, &err),
                     PL_OK);
    assert_int_equal(pl_meta_write(&made, &heap, &text, &bytes, &err), PL_OK);
    assert_string_equal(
        text, "{\"tokenizer\": \"char\", \"vocab_size\": 5, \"characters\": "
              "[\"\\n\", \"\\\"\", \"\\\\\", \"a\", \"é\"]}\n");
    assert_int_equal(pl_meta_write(&byte, &heap, &text, &bytes, &err), PL_OK);
    assert_string_equal(text, "{\"tokenizer\": \"byte\", \"vocab_size\": "
                              "256}\n");
    assert_int_equal(read_text(text), PL_OK);
    assert_int_equal(tokenizer.kind, PL_TOKENIZER_BYTE);
    assert_int_equal(tokenizer.vocab_size, 256);
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    assert_refused("", "not valid JSON");
    assert_refused("[]", "one JSON object");
    assert_refused("{}", "\"tokenizer\" must be");
    assert_refused("{\"tokenizer\": 5}", "\"tokenizer\" must be");
    assert_refused("{\"tokenizer\": \"bpe\", \"vocab_size\": 5}",
                   "\"char\" or \"byte\"");
    assert_refused("{\"tokenizer\": \"char\", \"characters\": []}",
                   "\"vocab_size\" must be there");
    assert_refused("{\"tokenizer\": \"byte\", \"vocab_size\": 256.0}",
                   "a whole number");
    assert_refused("{\"tokenizer\": \"byte\", \"vocab_size\": 255}", "of 256");
    assert_refused("{\"tokenizer\": \"byte\", \"vocab_size\": 256, "
                   "\"characters\": []}",
                   "no \"characters\"");
    assert_refused("{\"tokenizer\": \"char\", \"vocab_size\": 1}",
                   "needs \"characters\"");
    assert_refused("{\"tokenizer\": \"char\", \"vocab_size\": 2, "
                   "\"characters\": [\"a\"]}",
                   "is 2, but \"characters\" has 1");
    assert_refused("{\"tokenizer\": \"char\", \"vocab_size\": -1, "
                   "\"characters\": []}",
                   "is -1, but");
    assert_refused("{\"tokenizer\": \"char\", \"vocab_size\": 0, "
                   "\"characters\": []}",
                   "1 to 65536");
    assert_refused("{\"tokenizer\": \"char\", \"vocab_size\": 2, "
                   "\"characters\": [\"a\", \"bc\"]}",
                   "entry 1 of \"characters\"");
    assert_refused("{\"tokenizer\": \"char\", \"vocab_size\": 2, "
                   "\"characters\": [\"\", \"b\"]}",
                   "entry 0 of \"characters\"");
    assert_refused("{\"tokenizer\": \"char\", \"vocab_size\": 1, "
                   "\"characters\": [7]}",
                   "exactly one character");
    assert_refused("{\"tokenizer\": \"char\", \"vocab_size\": 2, "
                   "\"characters\": [\"b\", \"b\"]}",
                   "twice");
    assert_refused("{\"tokenizer\": \"byte\", \"vocab_size\": 256, \"x\": 1}",
                   "unknown key \"x\"");
}

static void json_errors_have_line_and_column(void **state)
{
    (void)state;
    assert_refused("{\n \"tokenizer\": oops}", "meta.json:2:");
    assert_refused("{\"tokenizer\": \"byte\", \"tokenizer\": \"char\"}",
                   "duplicate");
    assert_refused("{\"tokenizer\": \"\xFF\"}", "unable to decode byte 0xff");
}

static void json_is_bounded_before_it_is_parsed(void **state)
{
    (void)state;
    json_t *root;
    size_t n = PL_JSON_MAX_BYTES + 1;
    char *text = malloc(n);
    assert_non_null(text);
    memset(text, ' ', n);
    assert_int_equal(pl_json_parse(text, n, "x", &root, &err), PL_E_FORMAT);
    assert_non_null(strstr(err.text, "bytes of JSON are more"));
    for (size_t i = 0; i + 3 <= n; i += 3)
        memcpy(text + i, "{},", 3);
    text[0] = '[';
    assert_int_equal(pl_json_parse(text, n - 1, "x", &root, &err), PL_E_FORMAT);
    assert_non_null(strstr(err.text, "JSON values are more"));
    memset(text, '[', n);
    assert_int_equal(pl_json_parse(text, 100000, "x", &root, &err),
                     PL_E_FORMAT);
    assert_non_null(strstr(err.text, "depth"));
    /* Commas in a string are no values. */
    memset(text, ',', n);
    memcpy(text, "[\"\\\"", 4);
    memcpy(text + 3000000, "\"]", 2);
    assert_int_equal(pl_json_parse(text, 3000002, "x", &root, &err), PL_OK);
    json_decref(root);
    free(text);
}

static void running_out_of_memory_anywhere_is_an_error(void **state)
{
    (void)state;
    long nth = 1;
    for (;; nth++) {
        pl_arena_fail_at(nth);
        pl_status status = read_text("{\"tokenizer\": \"char\", \"vocab_size\""
                                     ": 1, \"characters\": [\"a\"]}");
        pl_arena_fail_at(0);
        if (status == PL_OK)
            break;
        assert_int_equal(status, PL_E_MEMORY);
    }
    assert_true(nth > 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read_back),
        TEST(the_largest_vocabulary_fits_the_bound_on_its_file),
        TEST(the_text_is_as_documented),
        TEST(what_is_wrong_is_said),
        TEST(json_errors_have_line_and_column),
        TEST(json_is_bounded_before_it_is_parsed),
        TEST(running_out_of_memory_anywhere_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
