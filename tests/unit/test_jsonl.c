/* JSON lines: the wanted string of each, whatever the buffers cut through;
 * everything else of a line is checked and dropped. */
#include "base/units.h"
#include "data/jsonl.h"
#include "support/asserts.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM_BYTES = 1 << 20 };

static scratch dir;
static pl_error err;

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_close(&dir);
    return 0;
}

typedef struct lines {
    pl_status status;
    size_t count;
    char text[64][256]; /* with a zero behind */
    size_t bytes[64];
    uint64_t line[64], offset[64];
} lines;

/* All strings of `content`, read through buffers of `buffer_bytes`. */
static void read_lines(lines *l, const char *content, size_t bytes,
                       const char *field, size_t buffer_bytes,
                       size_t document_bytes)
{
    const char *path = scratch_path(&dir, "lines.jsonl"), *text;
    unsigned char packed[64], buffer[4096];
    pl_room room = pl_room_make(ROOM_BYTES);
    pl_unpack unpack;
    pl_stream stream;
    pl_jsonl jsonl;
    assert_in_range(buffer_bytes, 1, sizeof buffer);
    memset(&err, 0, sizeof err);
    l->count = 0;
    scratch_write(path, content, bytes);
    pl_unpack_open(&unpack, &room);
    assert_int_equal(pl_stream_open(&stream, path, packed, sizeof packed,
                                    &unpack, NULL, NULL, &err),
                     PL_OK);
    l->status = pl_jsonl_open(&jsonl, &stream, field, 0, document_bytes, buffer,
                              buffer_bytes, &room, &err);
    while (!l->status) {
        size_t n = l->count, got;
        l->status = pl_jsonl_next(&jsonl, &text, &got, &err);
        if (l->status || !text)
            break;
        assert_in_range(n, 0, 63);
        assert_in_range(got, 0, 255);
        memcpy(l->text[n], text, got);
        l->text[n][got] = '\0';
        l->bytes[n] = got;
        l->line[n] = jsonl.line;
        l->offset[n] = pl_jsonl_offset(&jsonl);
        l->count++;
    }
    pl_jsonl_close(&jsonl);
    pl_stream_close(&stream);
    pl_unpack_close(&unpack);
    assert_int_equal(room.taken_bytes, 0);
}

static void assert_one(const char *json, const char *expected, size_t bytes)
{
    static lines l;
    for (size_t buffer = 1; buffer < 20; buffer++) {
        read_lines(&l, json, strlen(json), "text", buffer, 255);
        if (l.status)
            fail_msg("%s: %s", json, err.text);
        assert_int_equal(l.count, 1);
        assert_int_equal(l.bytes[0], bytes);
        assert_memory_equal(l.text[0], expected, bytes);
    }
}

#define assert_text(json, expected)                                            \
    assert_one(json, expected, sizeof(expected) - 1)

static void assert_wrong(const char *content, const char *part)
{
    static lines l;
    for (size_t buffer = 1; buffer < 40; buffer += 7) {
        read_lines(&l, content, strlen(content), "text", buffer, 255);
        if (l.status != PL_E_FORMAT)
            fail_msg("%s: %s, expected an error", content,
                     pl_status_name(l.status));
        assert_contains(err.text, "lines.jsonl, line ");
        assert_contains(err.text, part);
    }
}

/* ---- strings ---- */

static void escapes_become_bytes(void **state)
{
    (void)state;
    assert_text("{\"text\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", "\"\\/\b\f\n\r\t");
    assert_text("{\"text\":\"\\u0041\\u00e9\\u6587\\u0000z\"}",
                "A\xC3\xA9\xE6\x96\x87\0z");
    assert_text("{\"te\\u0078t\":\"a key may be escaped\"}",
                "a key may be escaped");
}

static void surrogates_are_joined_and_halves_replaced(void **state)
{
    (void)state;
    assert_text("{\"text\":\"\\ud83d\\udea2!\"}", "\xF0\x9F\x9A\xA2!");
    assert_text("{\"text\":\"\\ud83d\"}", "\xEF\xBF\xBD");
    assert_text("{\"text\":\"\\udea2x\"}", "\xEF\xBF\xBDx");
    assert_text("{\"text\":\"\\ud83dx\"}", "\xEF\xBF\xBDx");
    assert_text("{\"text\":\"\\ud83d\\n\"}", "\xEF\xBF\xBD\n");
    assert_text("{\"text\":\"\\ud83d\\u0041\"}", "\xEF\xBF\xBD"
                                                 "A");
    assert_text("{\"text\":\"\\ud83d\\ud83d\\udea2\"}",
                "\xEF\xBF\xBD\xF0\x9F\x9A\xA2");
}

static void bytes_that_are_not_utf8_pass(void **state)
{
    (void)state;
    assert_text("{\"text\":\"\xFF\xFE\xC3 \x80\"}", "\xFF\xFE\xC3 \x80");
}

static void the_string_is_found_between_other_values(void **state)
{
    (void)state;
    assert_text("  { \"a\" : [ 1, -2.5e+3, 0, true, false, null, [], {} ] ,\t"
                "\"b\":{\"text\":\"no\",\"c\":[{\"text\":\"no\"}]},"
                "\"score\":NaN,\"x\":-Infinity,\"y\":Infinity,"
                "\"text\" : \"yes\" , \"z\":\"text\" } \r\n",
                "yes");
    assert_text("{\"texts\":\"a\",\"tex\":\"b\",\"text\":\"c\"}", "c");
}

static void a_long_key_matches_no_field(void **state)
{
    static char json[2000];
    (void)state;
    memset(json, 'k', sizeof json);
    memcpy(json, "{\"text", 6);
    snprintf(json + 1000, 100, "\":1,\"text\":\"short\"}");
    assert_text(json, "short");
}

static void a_field_may_be_nested(void **state)
{
    static lines l;
    const char *json = "{\"text\":\"top\",\"meta\":{\"a\":{},\"text\":\"deep\"}"
                       "}\n{\"meta.text\":\"dotted\"}\n";
    (void)state;
    read_lines(&l, json, strlen(json), "meta.text", 64, 255);
    assert_int_equal(l.status, PL_OK);
    assert_int_equal(l.count, 2);
    assert_string_equal(l.text[0], "deep");
    assert_string_equal(l.text[1], "dotted");
}

/* ---- lines ---- */

static void lines_are_counted_and_blank_ones_and_nulls_skipped(void **state)
{
    static lines l;
    const char *json = "\xEF\xBB\xBF{\"text\":\"one\"}\n\n  \r\n"
                       "{\"text\":null}\n{\"text\":\"five\"}\n{\"text\":\"\"}";
    (void)state;
    read_lines(&l, json, strlen(json), "text", 7, 255);
    assert_int_equal(l.status, PL_OK);
    assert_int_equal(l.count, 3);
    assert_int_equal(l.line[0], 1);
    assert_int_equal(l.line[1], 5);
    assert_int_equal(l.line[2], 6);
    assert_int_equal(l.offset[0], 18);
    assert_int_equal(l.offset[2], strlen(json));
    assert_int_equal(l.bytes[2], 0);
}

static void what_is_not_json_is_refused_with_its_column(void **state)
{
    (void)state;
    assert_wrong("{\"text\":\"a\"}\n{\"text\" \"b\"}",
                 "line 2, column 9: expected a colon behind the key, found "
                 "'\"'");
    assert_wrong("{\"text\":\"a", "found the end of the file");
    assert_wrong("{\"text\":\"a\n\"}", "found the end of the line");
    assert_wrong("{\"text\":\"a\tb\"}", "found byte 0x09");
    assert_wrong("{\"text\":\"\\x\"}", "found 'x'");
    assert_wrong("{\"text\":\"\\u12g4\"}", "found 'g'");
    assert_wrong("{\"text\":\"a\",}", "expected a key");
    assert_wrong("{\"text\":\"a\"} x", "behind the object");
    assert_wrong("{\"text\":\"a\"}{\"text\":\"b\"}", "behind the object");
    assert_wrong("{\"a\":01,\"text\":\"b\"}", "found '1'");
    assert_wrong("{\"a\":1.,\"text\":\"b\"}", "a digit");
    assert_wrong("{\"a\":-,\"text\":\"b\"}", "a digit");
    assert_wrong("{\"a\":1e,\"text\":\"b\"}", "a digit");
    assert_wrong("{\"a\":tru,\"text\":\"b\"}", "a JSON value");
    assert_wrong("{\"a\":[1 2],\"text\":\"b\"}", "a comma or ]");
    assert_wrong("{\"a\":[1,],\"text\":\"b\"}", "a JSON value");
    assert_wrong("{\"a\":,\"text\":\"b\"}", "a JSON value");
    assert_wrong("{text:\"b\"}", "a key in quotes");
    assert_wrong("plain text", "expected {");
}

static void json_in_another_shape_is_recognised(void **state)
{
    (void)state;
    assert_wrong("[{\"text\":\"a\"},\n{\"text\":\"b\"}]", "JSON array");
    assert_wrong("{\n  \"text\": \"a\"\n}", "one object on each line");
}

static void a_missing_field_lists_the_keys(void **state)
{
    (void)state;
    assert_wrong("{\"text\":\"a\"}\n{\"content\":\"b\",\"id\":{\"x\":1}}",
                 "line 2: there is no field \"text\". Its keys: content, id.");
    assert_wrong("{}", "The object is empty");
}

static void a_field_that_is_no_string_is_refused(void **state)
{
    (void)state;
    assert_wrong("{\"text\":7}", "is a number or a truth value");
    assert_wrong("{\"text\":[]}", "is an array");
    assert_wrong("{\"text\":{}}", "is an object");
    assert_wrong("{\"text\":\"a\",\"text\":\"b\"}", "twice");
}

static void nesting_is_bounded(void **state)
{
    static char json[2000];
    (void)state;
    memset(json, '[', sizeof json - 1);
    memcpy(json, "{\"a\":", 5);
    assert_wrong(json, "nested more than 200 deep");
}

static void a_document_above_the_limit_is_named(void **state)
{
    static lines l;
    const char *json = "{\"text\":\"short\"}\n{\"text\":\"too long\"}\n";
    (void)state;
    read_lines(&l, json, strlen(json), "text", 16, 7);
    assert_int_equal(l.status, PL_E_FORMAT);
    assert_int_equal(l.count, 1);
    assert_contains(err.text, "line 2: its document has 8 bytes; one of 7 ");
}

/* Its size is said, though it isn't kept. */
static void a_document_above_the_room_is_counted_to_its_end(void **state)
{
    static lines l;
    size_t bytes = 4 * ROOM_BYTES;
    char *json = malloc(bytes), expected[64];
    (void)state;
    assert_non_null(json);
    memset(json, 'x', bytes);
    memcpy(json, "{\"text\":\"", 9);
    memcpy(json + bytes - 4, "\"}\n", 4);
    read_lines(&l, json, bytes - 1, "text", 4096, SIZE_MAX);
    assert_int_equal(l.status, PL_E_MEMORY);
    snprintf(expected, sizeof expected, "its document has %.40s",
             pl_units_exact(bytes - 13).text);
    assert_contains(err.text, expected);
    free(json);
}

/* A line of which all but the wanted string is far larger than memory. */
static void what_is_not_wanted_takes_no_memory(void **state)
{
    static lines l;
    size_t bytes = 4 * ROOM_BYTES;
    char *json = malloc(bytes);
    (void)state;
    assert_non_null(json);
    memset(json, 'x', bytes);
    memcpy(json, "{\"a\":\"", 6);
    snprintf(json + bytes - 64, 64, "\",\"text\":\"small\"}");
    read_lines(&l, json, strlen(json), "text", 4096, 255);
    assert_int_equal(l.status, PL_OK);
    assert_string_equal(l.text[0], "small");
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_become_bytes),
        cmocka_unit_test(surrogates_are_joined_and_halves_replaced),
        cmocka_unit_test(bytes_that_are_not_utf8_pass),
        cmocka_unit_test(the_string_is_found_between_other_values),
        cmocka_unit_test(a_long_key_matches_no_field),
        cmocka_unit_test(a_field_may_be_nested),
        cmocka_unit_test(lines_are_counted_and_blank_ones_and_nulls_skipped),
        cmocka_unit_test(what_is_not_json_is_refused_with_its_column),
        cmocka_unit_test(json_in_another_shape_is_recognised),
        cmocka_unit_test(a_missing_field_lists_the_keys),
        cmocka_unit_test(a_field_that_is_no_string_is_refused),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(a_document_above_the_limit_is_named),
        cmocka_unit_test(a_document_above_the_room_is_counted_to_its_end),
        cmocka_unit_test(what_is_not_wanted_takes_no_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
