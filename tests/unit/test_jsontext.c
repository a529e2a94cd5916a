#include "format/jsontext.h"
#include "support/asserts.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char memory[8192];
static pl_json_text out;
static pl_error err;

static int set_up(void **state)
{
    (void)state;
    memset(memory, 'x', sizeof memory);
    memset(&err, 0, sizeof err);
    out = pl_json_text_begin(memory, sizeof memory);
    return 0;
}

/* Ends the text and reads it with somebody else's parser. */
static json_t *parsed(void)
{
    json_error_t what;
    if (pl_json_text_end(&out, &err))
        fail_msg("%s", err.text);
    assert_int_equal(strlen(memory), out.used);
    json_t *root = json_loads(memory, JSON_REJECT_DUPLICATES, &what);
    if (!root)
        fail_msg("%s in %s", what.text, memory);
    return root;
}

static void what_is_no_utf8_is_shown_as_such(void **state)
{
    (void)state;
    pl_json_text_shown(&out, "text",
                       "a\xff\xc3\xa9 \"\\ \x1b \xe2\x82 \xc0\x80");
    json_t *root = parsed();
    assert_string_equal(json_string_value(json_object_get(root, "text")),
                        "a\xef\xbf\xbd\xc3\xa9 \"\\ \x1b "
                        "\xef\xbf\xbd\xef\xbf\xbd "
                        "\xef\xbf\xbd\xef\xbf\xbd");
    json_decref(root);
}

static void an_object_is_written_line_by_line(void **state)
{
    (void)state;
    pl_json_text_string(&out, "name", "x");
    pl_json_text_whole(&out, "step", 2000);
    pl_json_text_open(&out, "programs", '{');
    pl_json_text_whole(&out, "train", 1);
    pl_json_text_open(&out, "list", '[');
    pl_json_text_whole(&out, NULL, 1);
    pl_json_text_string(&out, NULL, "two");
    pl_json_text_close(&out, ']');
    pl_json_text_close(&out, '}');
    pl_json_text_raw(&out, "bias", "false");
    assert_int_equal(pl_json_text_end(&out, &err), PL_OK);
    assert_string_equal(memory, "{\n"
                                "  \"name\": \"x\",\n"
                                "  \"step\": 2000,\n"
                                "  \"programs\": {\n"
                                "    \"train\": 1,\n"
                                "    \"list\": [\n"
                                "      1,\n"
                                "      \"two\"\n"
                                "    ]\n"
                                "  },\n"
                                "  \"bias\": false\n"
                                "}\n");
}

static void every_character_comes_back(void **state)
{
    (void)state;
    char text[256];
    size_t used = 0;
    for (int c = 1; c < 128; c++)
        text[used++] = (char)c;
    memcpy(text + used, "é€😀", 10);
    pl_json_text_string(&out, text, text);
    json_t *root = parsed();
    assert_string_equal(json_string_value(json_object_get(root, text)), text);
    json_decref(root);
    assert_non_null(strstr(memory, "é€😀"));
    assert_non_null(strstr(memory, "\\u0001"));
    assert_non_null(strstr(memory, "\\u001f"));
}

static void quotes_cannot_break_out_of_a_text(void **state)
{
    (void)state;
    pl_json_text_string(&out, "a", "\", \"b\": \"");
    pl_json_text_string(&out, "c\"", "\\");
    json_t *root = parsed();
    assert_int_equal(json_object_size(root), 2);
    assert_string_equal(json_string_value(json_object_get(root, "a")),
                        "\", \"b\": \"");
    assert_string_equal(json_string_value(json_object_get(root, "c\"")), "\\");
    json_decref(root);
}

static void nesting_comes_back(void **state)
{
    (void)state;
    enum { DEPTH = 30 };
    pl_json_text_open(&out, "empty object", '{');
    pl_json_text_close(&out, '}');
    pl_json_text_open(&out, "empty list", '[');
    pl_json_text_close(&out, ']');
    for (int i = 0; i < DEPTH; i++) {
        pl_json_text_whole(&out, "before", (uint64_t)i);
        pl_json_text_open(&out, "deeper", '{');
    }
    pl_json_text_raw(&out, "bottom", "null");
    for (int i = 0; i < DEPTH; i++) {
        pl_json_text_close(&out, '}');
        pl_json_text_whole(&out, "after", (uint64_t)i);
    }
    json_t *root = parsed(), *at = root;
    assert_true(json_is_object(json_object_get(root, "empty object")));
    assert_true(json_is_array(json_object_get(root, "empty list")));
    assert_int_equal(json_object_size(root), 5);
    for (int i = 0; i < DEPTH; i++) {
        assert_int_equal(json_integer_value(json_object_get(at, "before")), i);
        assert_int_equal(json_integer_value(json_object_get(at, "after")),
                         DEPTH - 1 - i);
        at = json_object_get(at, "deeper");
    }
    assert_true(json_is_null(json_object_get(at, "bottom")));
    json_decref(root);
}

static void lists_of_objects_come_back(void **state)
{
    (void)state;
    pl_json_text_open(&out, "list", '[');
    for (uint64_t i = 0; i < 3; i++) {
        pl_json_text_open(&out, NULL, '{');
        pl_json_text_whole(&out, "i", i);
        pl_json_text_close(&out, '}');
    }
    pl_json_text_close(&out, ']');
    json_t *root = parsed(), *list = json_object_get(root, "list");
    assert_int_equal(json_array_size(list), 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(
            json_integer_value(json_object_get(json_array_get(list, i), "i")),
            i);
    json_decref(root);
}

static void numbers_come_back_to_the_last_bit(void **state)
{
    (void)state;
    static const double reals[] = { 0.1,
                                    1.0 / 3,
                                    6e-4,
                                    -1e300,
                                    5e-324,
                                    1e22,
                                    0,
                                    2,
                                    -7.25,
                                    0x1p-53,
                                    1.7976931348623157e308 };
    enum { REALS = sizeof reals / sizeof reals[0] };
    pl_json_text_whole(&out, "most", INT64_MAX);
    pl_json_text_whole(&out, "none", 0);
    pl_json_text_open(&out, "reals", '[');
    for (size_t i = 0; i < REALS; i++)
        pl_json_text_real(&out, NULL, reals[i]);
    pl_json_text_close(&out, ']');
    json_t *root = parsed(), *list = json_object_get(root, "reals");
    assert_int_equal(json_integer_value(json_object_get(root, "most")),
                     INT64_MAX);
    assert_int_equal(json_integer_value(json_object_get(root, "none")), 0);
    for (size_t i = 0; i < REALS; i++)
        assert_true(json_number_value(json_array_get(list, i)) == reals[i]);
    json_decref(root);
}

static void the_largest_whole_number_is_written_whole(void **state)
{
    (void)state;
    pl_json_text_whole(&out, "u", UINT64_MAX);
    assert_int_equal(pl_json_text_end(&out, &err), PL_OK);
    assert_string_equal(memory, "{\n  \"u\": 18446744073709551615\n}\n");
}

static void what_is_not_finite_is_null(void **state)
{
    (void)state;
    pl_json_text_real(&out, "nan", (double)NAN);
    pl_json_text_real(&out, "inf", (double)INFINITY);
    pl_json_text_real(&out, "-inf", (double)-INFINITY);
    json_t *root = parsed();
    assert_true(json_is_null(json_object_get(root, "nan")));
    assert_true(json_is_null(json_object_get(root, "inf")));
    assert_true(json_is_null(json_object_get(root, "-inf")));
    json_decref(root);
}

static void an_object_without_members_is_an_object(void **state)
{
    (void)state;
    json_t *root = parsed();
    assert_int_equal(json_object_size(root), 0);
    json_decref(root);
}

static pl_status write_into(char *where, size_t capacity)
{
    out = pl_json_text_begin(where, capacity);
    pl_json_text_string(&out, "key", "a \"value\"");
    pl_json_text_open(&out, "list", '[');
    for (uint64_t i = 0; i < 5; i++)
        pl_json_text_whole(&out, NULL, i * i);
    pl_json_text_close(&out, ']');
    pl_json_text_real(&out, "r", 0.5);
    return pl_json_text_end(&out, &err);
}

/* In memory of exactly the capacity, so that a sanitizer sees every byte
 * behind it. */
static void overflow_is_remembered_at_every_capacity(void **state)
{
    (void)state;
    char whole[512];
    assert_int_equal(write_into(whole, sizeof whole), PL_OK);
    size_t need = strlen(whole) + 1;
    for (size_t capacity = 0; capacity < need; capacity++) {
        char *exact = malloc(capacity + 1);
        assert_non_null(exact);
        memset(exact, '~', capacity + 1);
        char *less = malloc(capacity ? capacity : 1);
        assert_non_null(less);
        assert_int_equal(write_into(exact, capacity), PL_E_MEMORY);
        assert_int_equal(write_into(less, capacity), PL_E_MEMORY);
        assert_int_equal(exact[capacity], '~');
        if (capacity > 0) { /* a beginning, ended */
            size_t kept = strlen(exact);
            assert_true(kept < capacity);
            assert_memory_equal(exact, whole, kept);
        }
        free(exact);
        free(less);
    }
    assert_int_equal(write_into(memory, need), PL_OK);
    assert_string_equal(memory, whole);
    write_into(memory, 10);
    assert_contains(err.text, "bytes of JSON do not fit the 10 bytes kept");
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_object_is_written_line_by_line),
        TEST(what_is_no_utf8_is_shown_as_such),
        TEST(every_character_comes_back),
        TEST(quotes_cannot_break_out_of_a_text),
        TEST(nesting_comes_back),
        TEST(lists_of_objects_come_back),
        TEST(numbers_come_back_to_the_last_bit),
        TEST(the_largest_whole_number_is_written_whole),
        TEST(what_is_not_finite_is_null),
        TEST(an_object_without_members_is_an_object),
        TEST(overflow_is_remembered_at_every_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
