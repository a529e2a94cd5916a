#include "text/nfc.h"

#include "base/rng.h"
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The text lies at the end of its memory, and so does the result. */
static void assert_nfc(const char *text, const char *want)
{
    size_t bytes = strlen(text);
    char *exact = malloc(bytes + !bytes);
    char *out = malloc(PL_NFC_ROOM * bytes + 1);
    memcpy(exact, text, bytes);
    size_t length = pl_nfc_write(exact, bytes, out);
    assert_int_equal(length, strlen(want));
    assert_memory_equal(out, want, length);
    if (pl_nfc_quick(exact, bytes))
        assert_string_equal(text, want);
    free(out);
    free(exact);
}

static void letters_and_marks_are_composed(void **state)
{
    (void)state;
    assert_nfc("", "");
    assert_nfc("plain text", "plain text");
    assert_nfc("e\u0301te\u0301", "\u00e9t\u00e9");
    assert_nfc("\u0301a", "\u0301a");
    assert_nfc("A\u030a\u212b\u2126", "\u00c5\u00c5\u03a9");
    assert_nfc("q\u0323\u0307", "q\u0323\u0307");
    /* the nearer class first, whatever came first */
    assert_nfc("s\u0307\u0323", "\u1e69");
    assert_nfc("a\u0301\u0327", "\u00e1\u0327");
    /* a mark of the same class is in the way, one of a lower isn't */
    assert_nfc("a\u0315\u0300\u05ae\u0300b", "\u00e0\u05ae\u0300\u0315b");
    assert_nfc("\u1e0b\u0323", "\u1e0d\u0307");
    assert_nfc(">\u0338", "\u226f");
    assert_nfc("\u09c7\u09be\u09c7x\u09be", "\u09cb\u09c7x\u09be");
}

static void syllables_of_hangul_are_composed(void **state)
{
    (void)state;
    assert_nfc("\u1100\u1161\u11a8", "\uac01");
    assert_nfc("\uac00\u11a8\uac01\u11a8", "\uac01\uac01\u11a8");
    assert_nfc("\u1100\u1100\u1161", "\u1100\uac00");
    assert_nfc("\u1112\u1175\u11c2", "\ud7a3");
    assert_nfc("\u1100\u11a8", "\u1100\u11a8");
    assert_nfc("\uac00\u11a7", "\uac00\u11a7"); /* just below the first */
}

static void some_characters_are_taken_apart(void **state)
{
    (void)state;
    assert_nfc("\u0958", "\u0915\u093c");
    assert_nfc("\u0344", "\u0308\u0301");
    assert_nfc("x\U0001d160", "x\U0001d158\U0001d165\U0001d16e");
    assert_nfc("\ufb2c", "\u05e9\u05bc\u05c1");
    assert_true(pl_nfc_keeps('a') && pl_nfc_keeps(0xe9));
    assert_true(pl_nfc_keeps(0x301) && pl_nfc_keeps(0x110000));
    assert_false(pl_nfc_keeps(0x958) || pl_nfc_keeps(0x344));
    assert_false(pl_nfc_keeps(0x212b));
}

static void the_tables_are_of_unicode_9(void **state)
{
    (void)state;
    /* U+0898 has a class since Unicode 14: it isn't moved. */
    assert_nfc("a\u0898\u0316", "a\u0898\u0316");
    assert_nfc("q\u0301\u0316", "q\u0316\u0301");
}

static void bytes_that_are_no_text_stay(void **state)
{
    (void)state;
    assert_nfc("\xff\u0301", "\xff\u0301");
    assert_nfc("e\xcc", "e\xcc");
    assert_nfc("\xe2\x82"
               "e\u0301\x80",
               "\xe2\x82\u00e9\x80");
    assert_nfc("\xcc\xcc\x81", "\xcc\xcc\x81");
}

static void what_is_in_the_form_already_is_seen_at_once(void **state)
{
    (void)state;
    const char *plain =
        "na\u00efve \u4e2d\u6587 \uac01 \u05d0\u05b8\u0e01\u0e38";
    assert_true(pl_nfc_quick(plain, strlen(plain)));
    assert_true(pl_nfc_quick("", 0));
    assert_false(pl_nfc_quick("e\u0301", 3));
    assert_false(pl_nfc_quick("\u0e38\u05b0", 5)); /* 103 before 10 */
    assert_false(pl_nfc_quick("\u212b", 3));
}

static uint32_t pick(uint32_t seed, uint32_t i, uint32_t of)
{
    uint32_t words[4];
    pl_rng_words(PL_RNG_SAMPLE, seed, i, 0, 0, 0, words);
    return words[0] % of;
}

/* Normalizing twice is normalizing once, and no text outgrows its room. */
static void the_form_is_final(void **state)
{
    (void)state;
    static const uint32_t codes[] = { 'a',    'e',     0x301,  0x316,  0x327,
                                      0x345,  0x338,   0x1100, 0x1161, 0x11a8,
                                      0xac00, 0x344,   0x958,  0x1f82, 0x390,
                                      0x212b, 0x1d160, 0x5b0,  0x5c1,  0xfb2c };
    enum { MOST = 64, COUNT = sizeof codes / sizeof *codes };
    char text[4 * MOST], once[PL_NFC_ROOM * 4 * MOST];
    char twice[PL_NFC_GROWTH * PL_NFC_ROOM * 4 * MOST];
    for (uint32_t seed = 0; seed < 3000; seed++) {
        size_t bytes = 0, count = 1 + pick(seed, MOST, MOST);
        for (uint32_t i = 0; i < count; i++)
            bytes += (size_t)pl_utf8_encode(codes[pick(seed, i, COUNT)],
                                            text + bytes);
        size_t length = pl_nfc_write(text, bytes, once);
        assert_in_range(length, 1, PL_NFC_GROWTH * bytes);
        assert_true(pl_utf8_is_valid(once, length));
        assert_int_equal(pl_nfc_write(once, length, twice), length);
        assert_memory_equal(once, twice, length);
    }
}

static void a_long_row_of_marks_takes_no_longer(void **state)
{
    (void)state;
    enum { MARKS = 200000 };
    char *text = malloc(4 * MARKS), *out = malloc(PL_NFC_ROOM * 4 * MARKS);
    for (size_t i = 0; i < MARKS; i++)
        memcpy(text + 4 * i, "\u0301\u0316", 4);
    assert_int_equal(pl_nfc_write(text, 4 * MARKS, out), 4 * MARKS);
    assert_memory_equal(out, "\u0316\u0316", 4);
    assert_memory_equal(out + 4 * MARKS - 4, "\u0301\u0301", 4);
    free(out);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_and_marks_are_composed),
        cmocka_unit_test(syllables_of_hangul_are_composed),
        cmocka_unit_test(some_characters_are_taken_apart),
        cmocka_unit_test(the_tables_are_of_unicode_9),
        cmocka_unit_test(bytes_that_are_no_text_stay),
        cmocka_unit_test(what_is_in_the_form_already_is_seen_at_once),
        cmocka_unit_test(the_form_is_final),
        cmocka_unit_test(a_long_row_of_marks_takes_no_longer),
    };
    return cmocka_run_group_tests_name("nfc", tests, NULL, NULL);
}
