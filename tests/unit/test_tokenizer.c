#include "base/utf8.h"
#include "support/asserts.h"
#include "text/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static pl_heap heap;
static pl_error err;

static int set_up(void **state)
{
    (void)state;
    heap = pl_heap_make(4 << 20);
    memset(&err, 0, sizeof err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_heap_close(&heap);
    return 0;
}

static pl_tokenizer make_char(const uint32_t *codes, size_t count)
{
    pl_tokenizer tokenizer;
    if (pl_tokenizer_make_char(&tokenizer, codes, count, &heap, &err))
        fail_msg("%s", err.text);
    return tokenizer;
}

/* ---- utf8 ---- */

static void every_scalar_value_survives_utf8(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        char text[4];
        uint32_t back = UINT32_MAX;
        if (!pl_utf8_is_scalar(code)) {
            assert_in_range(code, 0xD800, 0xDFFF);
            continue;
        }
        int length = pl_utf8_encode(code, text);
        assert_int_equal(pl_utf8_decode(text, (size_t)length, &back), length);
        assert_int_equal(back, code);
        for (int cut = 0; cut < length; cut++)
            assert_int_equal(pl_utf8_decode(text, (size_t)cut, &back),
                             PL_UTF8_CUT_OFF);
    }
    assert_false(pl_utf8_is_scalar(0x110000));
}

/* Of all sequences of up to three bytes, exactly the encoded ones decode. */
static void nothing_else_decodes(void **state)
{
    (void)state;
    size_t valid[5] = { 0 };
    for (uint32_t n = 0; n < 1u << 24; n++) {
        char text[3] = { (char)(n >> 16), (char)(n >> 8), (char)n };
        uint32_t code;
        int length = pl_utf8_decode(text, 3, &code);
        if (length > 0) {
            char again[4];
            if (pl_utf8_encode(code, again) != length ||
                memcmp(text, again, (size_t)length) != 0)
                fail_msg("%06X decodes to U+%04X", n, code);
            valid[length]++;
        }
    }
    assert_int_equal(valid[1], 0x80u << 16);
    assert_int_equal(valid[2], (0x800 - 0x80) << 8);
    assert_int_equal(valid[3], 0x10000 - 0x800 - 0x800);
    uint32_t code;
    assert_int_equal(pl_utf8_decode("\xF4\x90\x80\x80", 4, &code),
                     PL_UTF8_INVALID);
    assert_int_equal(pl_utf8_decode("\xF0\x8F\xBF\xBF", 4, &code),
                     PL_UTF8_INVALID);
    assert_int_equal(pl_utf8_decode("\xF5", 1, &code), PL_UTF8_INVALID);
    assert_int_equal(pl_utf8_decode("\xE2\x82\x41", 3, &code), PL_UTF8_INVALID);
}

static void characters_are_named_for_people(void **state)
{
    (void)state;
    char name[PL_UTF8_NAME_BYTES];
    assert_string_equal(pl_utf8_name(0xE9, name), "U+00E9 'é'");
    assert_string_equal(pl_utf8_name('\t', name), "U+0009");
    assert_string_equal(pl_utf8_name(0x1F600, name), "U+1F600 '😀'");
    assert_string_equal(pl_utf8_name(0x9F, name), "U+009F");
}

/* ---- tokenizer ---- */

static void a_char_tokenizer_encodes_and_decodes(void **state)
{
    (void)state;
    static const uint32_t codes[] = { '\n', 'a', 'b', 0xE9, 0x1F600 };
    pl_tokenizer t = make_char(codes, 5);
    const char *text = "ab\né😀a";
    int32_t ids[16];
    size_t count = 0;
    assert_int_equal(t.vocab_size, 5);
    assert_int_equal(pl_tokenizer_encode(&t, text, strlen(text), "--start", ids,
                                         16, &count, &err),
                     PL_OK);
    static const int32_t expected[] = { 1, 2, 0, 3, 4, 1 };
    assert_int_equal(count, 6);
    assert_memory_equal(ids, expected, sizeof expected);
    char back[64 + PL_TOKENIZER_TOKEN_BYTES];
    size_t used = 0, bytes;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(
            pl_tokenizer_decode(&t, ids[i], back + used, &bytes, &err), PL_OK);
        used += bytes;
    }
    assert_int_equal(used, strlen(text));
    assert_memory_equal(back, text, used);
}

static void ids_follow_the_list_even_if_it_is_unsorted(void **state)
{
    (void)state;
    uint32_t codes[1000];
    for (uint32_t i = 0; i < 1000; i++)
        codes[i] = 0x4000 + i * 617 % 1000;
    pl_tokenizer t = make_char(codes, 1000);
    for (int32_t i = 0; i < 1000; i++)
        assert_int_equal(pl_tokenizer_id_of(&t, codes[i]), i);
    assert_int_equal(pl_tokenizer_id_of(&t, 0x3FFF), -1);
    assert_int_equal(pl_tokenizer_id_of(&t, 0x4000 + 1000), -1);
}

static void an_unknown_character_is_named_with_place_and_advice(void **state)
{
    (void)state;
    static const uint32_t codes[] = { '\n', 'a' };
    pl_tokenizer t = make_char(codes, 2);
    int32_t ids[16];
    size_t count;
    assert_int_equal(pl_tokenizer_encode(&t, "aa\na\nez", 7, "--start", ids, 16,
                                         &count, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "--start: line 3, byte 5:");
    assert_contains(err.text, "U+0065 'e'");
    assert_contains(err.text, "vocabulary of 2");
    assert_contains(err.text, "Leave it out");
}

static void invalid_utf8_is_named_with_place(void **state)
{
    (void)state;
    static const uint32_t codes[] = { '\n', 'a' };
    pl_tokenizer t = make_char(codes, 2);
    int32_t ids[16];
    size_t count;
    assert_int_equal(
        pl_tokenizer_encode(&t, "a\na\xFF", 4, "p.txt", ids, 16, &count, &err),
        PL_E_FORMAT);
    assert_contains(err.text, "p.txt: line 2, byte 3: 0xFF is not valid UTF-8");
    assert_int_equal(pl_tokenizer_encode(&t, "aa\xE2\x82", 4, "p.txt", ids, 16,
                                         &count, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "line 1, byte 2: 0xE2");
}

static void never_more_ids_than_there_is_room_for(void **state)
{
    (void)state;
    static const uint32_t codes[] = { 'a' };
    pl_tokenizer t = make_char(codes, 1), b = pl_tokenizer_make_byte();
    int32_t ids[4] = { 7, 7, 7, 7 };
    size_t count;
    assert_int_equal(
        pl_tokenizer_encode(&t, "aaaa", 4, "x", ids, 3, &count, &err),
        PL_E_USAGE);
    assert_int_equal(ids[3], 7);
    assert_int_equal(
        pl_tokenizer_encode(&b, "aaaa", 4, "x", ids, 3, &count, &err),
        PL_E_USAGE);
    assert_int_equal(ids[3], 7);
    assert_int_equal(
        pl_tokenizer_encode(&t, "aaaa", 4, "x", ids, 4, &count, &err), PL_OK);
    assert_int_equal(pl_tokenizer_encode(&t, "", 0, "x", ids, 0, &count, &err),
                     PL_OK);
    assert_int_equal(count, 0);
}

static void bytes_are_their_own_ids(void **state)
{
    (void)state;
    pl_tokenizer t = pl_tokenizer_make_byte();
    char text[256], out[PL_TOKENIZER_TOKEN_BYTES];
    int32_t ids[256];
    size_t count, bytes;
    for (int i = 0; i < 256; i++)
        text[i] = (char)i;
    assert_int_equal(
        pl_tokenizer_encode(&t, text, 256, "x", ids, 256, &count, &err), PL_OK);
    assert_int_equal(count, 256);
    for (int i = 0; i < 256; i++) {
        assert_int_equal(ids[i], i);
        assert_int_equal(pl_tokenizer_decode(&t, i, out, &bytes, &err), PL_OK);
        assert_int_equal(bytes, 1);
        assert_int_equal((unsigned char)out[0], i);
    }
}

static void gpt2_ids_without_a_tokenizer_have_no_text(void **state)
{
    (void)state;
    pl_tokenizer t = pl_tokenizer_make_none();
    int32_t ids[4];
    char out[PL_TOKENIZER_TOKEN_BYTES];
    size_t count;
    assert_int_equal(t.vocab_size, 50304);
    assert_int_equal(
        pl_tokenizer_encode(&t, "a", 1, "--start", ids, 4, &count, &err),
        PL_E_UNSUPPORTED);
    assert_contains(err.text, "meta.json");
    assert_int_equal(pl_tokenizer_decode(&t, 5, out, &count, &err),
                     PL_E_UNSUPPORTED);
}

static void an_id_outside_the_vocabulary_is_an_error(void **state)
{
    (void)state;
    static const uint32_t codes[] = { 'a', 'b' };
    pl_tokenizer t = make_char(codes, 2);
    char out[PL_TOKENIZER_TOKEN_BYTES];
    size_t bytes;
    assert_int_equal(pl_tokenizer_decode(&t, 2, out, &bytes, &err),
                     PL_E_FORMAT);
    assert_int_equal(pl_tokenizer_decode(&t, -1, out, &bytes, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "token -1 is outside the vocabulary of 2");
}

static void impossible_vocabularies_are_refused(void **state)
{
    (void)state;
    static const uint32_t twice[] = { 'b', 'a', 'b' };
    static const uint32_t surrogate[] = { 'a', 0xD800 };
    static uint32_t many[65537];
    pl_tokenizer t;
    assert_int_equal(pl_tokenizer_make_char(&t, twice, 3, &heap, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "U+0062 'b' twice");
    assert_int_equal(pl_tokenizer_make_char(&t, surrogate, 2, &heap, &err),
                     PL_E_FORMAT);
    assert_contains(err.text, "U+D800");
    assert_int_equal(pl_tokenizer_make_char(&t, twice, 0, &heap, &err),
                     PL_E_FORMAT);
    for (uint32_t i = 0; i < 65537; i++)
        many[i] = 0x20000 + i;
    assert_int_equal(pl_tokenizer_make_char(&t, many, 65537, &heap, &err),
                     PL_E_FORMAT);
    assert_int_equal(pl_tokenizer_make_char(&t, many, 65536, &heap, &err),
                     PL_OK);
    assert_int_equal(pl_tokenizer_id_of(&t, 0x20000 + 65535), 65535);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_scalar_value_survives_utf8),
        TEST(nothing_else_decodes),
        TEST(characters_are_named_for_people),
        TEST(a_char_tokenizer_encodes_and_decodes),
        TEST(ids_follow_the_list_even_if_it_is_unsorted),
        TEST(an_unknown_character_is_named_with_place_and_advice),
        TEST(invalid_utf8_is_named_with_place),
        TEST(never_more_ids_than_there_is_room_for),
        TEST(bytes_are_their_own_ids),
        TEST(gpt2_ids_without_a_tokenizer_have_no_text),
        TEST(an_id_outside_the_vocabulary_is_an_error),
        TEST(impossible_vocabularies_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
