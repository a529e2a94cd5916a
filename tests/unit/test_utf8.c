/* Decoding, encoding and names are in test_tokenizer.c; here: whole texts. */
#include "base/utf8.h"
#include "support/asserts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char mixed[] = "a\0\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z";
enum { MIXED_BYTES = sizeof mixed - 1 };

static void a_text_is_valid_at_the_ends_of_its_characters_only(void **state)
{
    (void)state;
    static const int ends[MIXED_BYTES + 1] = { 1, 1, 1, 0, 1, 0, 0,
                                               1, 0, 0, 0, 1, 1 };
    for (size_t bytes = 0; bytes <= MIXED_BYTES; bytes++)
        assert_int_equal(pl_utf8_is_valid(mixed, bytes), ends[bytes]);
    for (size_t from = 0; from < MIXED_BYTES; from++)
        assert_int_equal(pl_utf8_is_valid(mixed + from, MIXED_BYTES - from),
                         ends[from]);
}

static void one_wrong_byte_makes_a_text_invalid(void **state)
{
    (void)state;
    for (size_t at = 0; at < MIXED_BYTES; at++) {
        char text[MIXED_BYTES];
        memcpy(text, mixed, MIXED_BYTES);
        text[at] = (char)0xFF;
        assert_false(pl_utf8_is_valid(text, MIXED_BYTES));
    }
}

static void text_ends_at_a_zero_or_at_what_is_invalid(void **state)
{
    (void)state;
    assert_int_equal(pl_utf8_text_bytes("", 0), 0);
    assert_int_equal(pl_utf8_text_bytes("abc", 3), 3);
    assert_int_equal(pl_utf8_text_bytes("abc", 2), 2);
    assert_int_equal(pl_utf8_text_bytes(mixed, MIXED_BYTES), 1);
    assert_int_equal(pl_utf8_text_bytes(mixed + 2, MIXED_BYTES - 2), 10);
    assert_int_equal(pl_utf8_text_bytes(mixed + 2, MIXED_BYTES - 3), 9);
    assert_int_equal(pl_utf8_text_bytes(mixed + 2, MIXED_BYTES - 4), 5);
    assert_int_equal(pl_utf8_text_bytes("ab\xFFz", 4), 2);
    assert_int_equal(pl_utf8_text_bytes("\x80z", 2), 0);
}

static void a_last_character_that_was_cut_is_dropped(void **state)
{
    (void)state;
    static const char text[] = "z\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
    static const size_t whole[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10 };
    for (size_t bytes = 0; bytes <= 10; bytes++)
        assert_int_equal(pl_utf8_whole_bytes(text, bytes), whole[bytes]);
    /* what is invalid anyway is left alone */
    assert_int_equal(pl_utf8_whole_bytes("\x80\x80\x80\x80", 4), 4);
    assert_int_equal(pl_utf8_whole_bytes("\x80", 1), 1);
    assert_int_equal(pl_utf8_whole_bytes("a\xFF", 2), 2);
    assert_int_equal(pl_utf8_whole_bytes("\xED\xA0", 2), 2);
}

static void a_character_starts_where_no_byte_continues_one(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++)
        assert_int_equal(pl_utf8_starts((char)byte),
                         byte < 0x80 || byte > 0xBF);
}

static void what_is_no_scalar_has_a_number_and_no_picture(void **state)
{
    (void)state;
    static const struct {
        uint32_t code;
        const char *name;
    } names[] = {
        { 0, "U+0000" },
        { 0x20, "U+0020" },
        { 0x21, "U+0021 '!'" },
        { 0x7E, "U+007E '~'" },
        { 0x7F, "U+007F" },
        { 0xA0, "U+00A0" },
        { 0xD800, "U+D800" },
        { 0x110000, "U+110000" },
        { UINT32_MAX, "U+FFFFFFFF" },
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char out[PL_UTF8_NAME_BYTES];
        assert_string_equal(pl_utf8_name(names[i].code, out), names[i].name);
    }
}

static void encode(void *context)
{
    char out[PL_UTF8_MAX_BYTES];
    pl_utf8_encode(*(uint32_t *)context, out);
}

static void encoding_what_is_no_scalar_is_a_bug(void **state)
{
    (void)state;
    uint32_t wrong[] = { 0xD800, 0xDFFF, 0x110000 };
    for (int i = 0; i < 3; i++)
        assert_dies(encode, &wrong[i], "pl_utf8_is_scalar");
}

static void assert_shown(const char *text, size_t bytes, pl_utf8_breaks breaks,
                         const char *want)
{
    char all[256] = "";
    for (size_t at = 0; at < bytes;) {
        char shown[PL_UTF8_SHOWN_BYTES];
        size_t taken = pl_utf8_show(text + at, bytes - at, breaks, shown);
        assert_in_range(taken, 1, bytes - at);
        strcat(all, shown);
        at += taken;
    }
    assert_string_equal(all, want);
}

static void control_characters_are_shown_and_not_sent(void **state)
{
    (void)state;
    static const char text[] = "a\033[31m\r\007\177\302\205\302\233z";
    assert_shown(text, sizeof text - 1, PL_UTF8_KEEP_BREAKS,
                 "a\\x1b[31m\\x0d\\x07\\x7f\\u0085\\u009bz");
    assert_shown("\0", 1, PL_UTF8_KEEP_BREAKS, "\\x00");
    /* those that turn a line's direction: their first, their last, and the
     * neighbours, which are punctuation */
    assert_shown("\342\200\252\342\200\256\342\200\247\342\200\257", 12,
                 PL_UTF8_KEEP_BREAKS, "\\u202a\\u202e\342\200\247\342\200\257");
    assert_shown("\342\201\246\342\201\251", 6, PL_UTF8_KEEP_BREAKS,
                 "\\u2066\\u2069");
}

static void bytes_that_are_no_text_are_shown_each(void **state)
{
    (void)state;
    assert_shown("\233m\377", 3, PL_UTF8_KEEP_BREAKS, "\\x9bm\\xff");
    assert_shown("\302", 1, PL_UTF8_KEEP_BREAKS, "\\xc2"); /* cut off */
}

static void what_people_write_stays(void **state)
{
    (void)state;
    static const char text[] =
        "gr\303\266\303\237e \347\214\253 \360\237\220\261"
        "\302\240\\";
    assert_shown(text, sizeof text - 1, PL_UTF8_KEEP_BREAKS, text);
}

static void line_ends_stay_or_are_shown(void **state)
{
    (void)state;
    assert_shown("a\n\tb\\", 5, PL_UTF8_KEEP_BREAKS, "a\n\tb\\");
    assert_shown("a\n\tb\\", 5, PL_UTF8_SHOW_BREAKS, "a\\n\\tb\\\\");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_valid_at_the_ends_of_its_characters_only),
        cmocka_unit_test(one_wrong_byte_makes_a_text_invalid),
        cmocka_unit_test(text_ends_at_a_zero_or_at_what_is_invalid),
        cmocka_unit_test(a_last_character_that_was_cut_is_dropped),
        cmocka_unit_test(a_character_starts_where_no_byte_continues_one),
        cmocka_unit_test(what_is_no_scalar_has_a_number_and_no_picture),
        cmocka_unit_test(encoding_what_is_no_scalar_is_a_bug),
        cmocka_unit_test(control_characters_are_shown_and_not_sent),
        cmocka_unit_test(bytes_that_are_no_text_are_shown_each),
        cmocka_unit_test(what_people_write_stays),
        cmocka_unit_test(line_ends_stay_or_are_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
