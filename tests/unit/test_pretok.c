#include "text/pretok.h"

#include "base/rng.h"
#include "text/replace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The pieces of `text` with "|" between them are `want`. The text lies at the
 * end of its memory, so that a sanitizer sees what is read behind it. */
static void assert_cut(pl_pattern pattern, const char *text, const char *want)
{
    char cut[512] = "";
    size_t bytes = strlen(text), used = 0;
    char *exact = malloc(bytes);
    memcpy(exact, text, bytes);
    for (size_t at = 0; at < bytes;) {
        size_t length = pl_pretok_next(pattern, exact + at, bytes - at);
        assert_in_range(length, 1, bytes - at);
        used += (size_t)snprintf(cut + used, sizeof cut - used, "%s%.*s",
                                 at ? "|" : "", (int)length, exact + at);
        at += length;
    }
    assert_string_equal(cut, want);
    free(exact);
}

static void assert_pieces(const char *text, const char *want)
{
    assert_cut(PL_PATTERN_GPT2, text, want);
}

static void words_take_the_blank_before_them(void **state)
{
    (void)state;
    assert_pieces("Hello world", "Hello| world");
    assert_pieces("a 1 ! b", "a| 1| !| b");
    assert_pieces("abc123def", "abc|123|def");
    assert_pieces("x==y", "x|==|y");
    assert_pieces(" averylongwordofmanyletters9",
                  " averylongwordofmanyletters|9");
    /* The neighbours of letters, in all places of eight bytes. */
    assert_pieces("zzzzzzzz{aaa`AZAZA@ZZZZZZZ[azAZazA9AAAAAAAAA:az",
                  "zzzzzzzz|{|aaa|`|AZAZA|@|ZZZZZZZ|[|azAZazA|9|AAAAAAAAA|:|"
                  "az");
}

static void contractions_are_pieces(void **state)
{
    (void)state;
    assert_pieces("it's we'll they've you're I'm don't he'd",
                  "it|'s| we|'ll| they|'ve| you|'re| I|'m| don|'t| he|'d");
    assert_pieces("'sx", "'s|x");
    assert_pieces("IT'S", "IT|'|S");
    assert_pieces("x 's", "x| '|s");
    assert_pieces("'l", "'|l");
    assert_pieces("''s", "''|s");
    assert_pieces("'", "'");
}

static void white_space_leaves_its_last_to_the_word(void **state)
{
    (void)state;
    assert_pieces("a   b", "a|  | b");
    assert_pieces("a\n\nb", "a|\n|\n|b");
    assert_pieces("a\n b", "a|\n| b");
    assert_pieces("a \nb", "a| |\n|b");
    assert_pieces("a   ", "a|   ");
    assert_pieces(" ", " ");
    assert_pieces("  \n\t ", "  \n\t ");
    assert_pieces("a\u3000\u3000b", "a|\u3000|\u3000|b");
    assert_pieces("a\u00a0b", "a|\u00a0|b");
}

static void letters_of_all_scripts_go_together(void **state)
{
    (void)state;
    assert_pieces("été да水", "été| да水");
    assert_pieces("a\u0301b", "a|\u0301|b"); /* a mark is no letter */
    assert_pieces("x²y٣3", "x|²|y|٣3");
    assert_pieces("hi😀!", "hi|😀!");
}

static void invalid_bytes_are_cut_like_the_character_for_them(void **state)
{
    (void)state;
    assert_pieces("a\xff"
                  "b",
                  "a|\xff|b");
    assert_pieces("a \xc3 \x80!\xe2\x82", "a| \xc3| \x80!\xe2\x82");
    assert_pieces("\xed\xa0\x80x", "\xed\xa0\x80|x"); /* a surrogate */
    assert_pieces("\xc3", "\xc3");
}

/* ---- other patterns ---- */

static void modern_words_take_any_character_before_them(void **state)
{
    (void)state;
    assert_cut(PL_PATTERN_LLAMA3, "Hello world\tthere", "Hello| world|\tthere");
    assert_cut(PL_PATTERN_LLAMA3, "(a _b ..c -1 !d", "(a| _|b| ..|c| -|1| !|d");
    assert_cut(PL_PATTERN_LLAMA3, "\u3000a  b \u00e9", "\u3000a| | b| \u00e9");
    assert_cut(PL_PATTERN_LLAMA3, "\na\rb", "\n|a|\r|b");
    assert_cut(PL_PATTERN_LLAMA3, "a\u0301b", "a|\u0301b");
}

static void modern_contractions_are_found_in_any_case(void **state)
{
    (void)state;
    for (int i = PL_PATTERN_LLAMA3; i <= PL_PATTERN_QWEN2; i++) {
        pl_pattern p = (pl_pattern)i;
        assert_cut(p, "it's IT'Sx we'LL I'Mx don't he'd",
                   "it|'s| IT|'S|x| we|'LL| I|'M|x| don|'t| he|'d");
        assert_cut(p, "they'Vex you'rEx 'la 'xs '",
                   "they|'Ve|x| you|'rE|x| '|"
                   "la| '|xs| '");
        assert_cut(p, "a'\u017fa", "a|'\u017f|a"); /* the long s */
        assert_cut(p, "'\u00dfa'", "'\u00dfa|'");
    }
    assert_cut(PL_PATTERN_SMOLLM2, "it's IT'S", "it|'s| IT|'|S");
}

static void digits_go_by_threes_or_alone(void **state)
{
    (void)state;
    assert_cut(PL_PATTERN_LLAMA3, "12345678 9\u0663\u00b20",
               "123|456|78| |9\u0663\u00b2|0");
    assert_cut(PL_PATTERN_QWEN2, "123 4a5", "1|2|3| |4|a|5");
    assert_cut(PL_PATTERN_SMOLLM2, "123 4a  5\n\n6 b\u00b2",
               "1|2|3| |4|a|  |5|\n\n|6| b|\u00b2");
    /* numbers for Rust since Unicode 17, for regular expressions not yet */
    assert_cut(PL_PATTERN_SMOLLM2, "!!\U00011de0\U00016ff4? \U00016ff6",
               "!!|\U00011de0|\U00016ff4|?| |\U00016ff6");
    assert_cut(PL_PATTERN_GPT2, "!!\U00011de0", "!!\U00011de0");
}

static void line_ends_join_punctuation_and_blanks(void **state)
{
    (void)state;
    assert_cut(PL_PATTERN_LLAMA3, "a!\n\r\n b", "a|!\n\r\n| b");
    assert_cut(PL_PATTERN_LLAMA3, "a  \n \n  b", "a|  \n \n| | b");
    assert_cut(PL_PATTERN_LLAMA3, "a\n", "a|\n");
    assert_cut(PL_PATTERN_LLAMA3, "a \n\t", "a| \n|\t");
    assert_cut(PL_PATTERN_QWEN2, ".\n\n  ", ".\n\n|  ");
    assert_cut(PL_PATTERN_QWEN2, "a   ", "a|   ");
    assert_cut(PL_PATTERN_QWEN2, "1 \n2", "1| \n|2");
}

static void a_cut_off_character_is_one_before_a_word(void **state)
{
    (void)state;
    assert_cut(PL_PATTERN_LLAMA3, "\xe2\x82w", "\xe2\x82w");
    assert_cut(PL_PATTERN_LLAMA3, "\x80\x80w", "\x80\x80|w");
}

/* Text of `bytes` bytes from few, awkward characters, whole or not. */
static size_t make_text(char *out, size_t bytes, uint32_t seed)
{
    static const char *const parts[] = {
        "a", "b",      "s",      "'",      " ",    " ",    "\n",   "\t",   "1",
        "!", "\u00e9", "\u3000", "\u00a0", "\xff", "\xe2", "\x80", "\xc2", "\r"
    };
    size_t used = 0;
    for (uint32_t i = 0; used + 4 < bytes; i++) {
        uint32_t words[4];
        pl_rng_words(PL_RNG_SAMPLE, seed, i, 0, 0, 0, words);
        const char *part = parts[words[0] % (sizeof parts / sizeof *parts)];
        memcpy(out + used, part, strlen(part));
        used += strlen(part);
    }
    return used;
}

static void pieces_are_those_of_the_replaced_text(void **state)
{
    (void)state;
    char text[64], replaced[192], copy[192];
    for (uint32_t seed = 0; seed < 3000; seed++) {
        pl_pattern p = (pl_pattern)(seed % PL_PATTERN_COUNT);
        size_t bytes = make_text(text, 40, seed);
        size_t all = pl_replace_invalid(text, bytes, replaced), at = 0,
               seen = 0;
        while (at < bytes) {
            size_t one = pl_pretok_next(p, text + at, bytes - at);
            size_t other = pl_pretok_next(p, replaced + seen, all - seen);
            size_t again = pl_replace_invalid(text + at, one, copy);
            assert_int_equal(again, other);
            assert_memory_equal(copy, replaced + seen, other);
            at += one;
            seen += other;
        }
        assert_int_equal(seen, all);
    }
}

static void a_cut_changes_no_piece(void **state)
{
    (void)state;
    char text[64];
    int cuts = 0;
    for (uint32_t seed = 0; seed < 3000; seed++) {
        pl_pattern p = (pl_pattern)(seed % PL_PATTERN_COUNT);
        size_t bytes = make_text(text, 40, seed), before = 0, after = 0;
        for (size_t part = 1; part <= bytes; part++) {
            size_t cut = pl_pretok_cut(p, text, part);
            assert_in_range(cut, 0, part - 1);
            if (cut == 0)
                continue;
            cuts++;
            for (before = 0; before < cut;)
                before += pl_pretok_next(p, text + before, cut - before);
            for (after = 0; after < cut;) {
                size_t whole = pl_pretok_next(p, text + after, bytes - after);
                assert_int_equal(whole,
                                 pl_pretok_next(p, text + after, cut - after));
                after += whole;
            }
            assert_int_equal(after, cut);
        }
    }
    assert_true(cuts > 1000);
}

static void a_text_without_a_place_to_cut_says_so(void **state)
{
    (void)state;
    assert_int_equal(pl_pretok_cut(PL_PATTERN_GPT2, "abc", 3), 0);
    assert_int_equal(pl_pretok_cut(PL_PATTERN_GPT2, "", 0), 0);
    assert_int_equal(pl_pretok_cut(PL_PATTERN_GPT2, " \n ", 3), 0);
    assert_int_equal(pl_pretok_cut(PL_PATTERN_GPT2, "\u00a0 b", 4), 0);
    assert_int_equal(pl_pretok_cut(PL_PATTERN_GPT2, "a b  c", 6), 3);
    assert_int_equal(pl_pretok_cut(PL_PATTERN_GPT2, "a b.\nc", 6), 4);
    assert_int_equal(pl_pretok_cut(PL_PATTERN_LLAMA3, "a b.\nc", 6), 1);
    assert_int_equal(pl_pretok_cut(PL_PATTERN_LLAMA3, "a b\nc", 5), 3);
    /* U+0958 becomes a letter and a mark by NFC */
    assert_int_equal(pl_pretok_cut(PL_PATTERN_QWEN2, "a \u0958\nc", 7), 1);
}

static void assert_replaced(const char *text, const char *want)
{
    char out[64];
    size_t bytes = pl_replace_invalid(text, strlen(text), out);
    assert_int_equal(bytes, strlen(want));
    assert_memory_equal(out, want, bytes);
}

static void invalid_bytes_are_replaced_as_python_does(void **state)
{
    (void)state;
    assert_replaced("caf\u00e9", "caf\u00e9");
    assert_replaced("a\xff", "a\uFFFD");
    assert_replaced("\x80\x80", "\uFFFD\uFFFD");
    assert_replaced("\xe2\x82", "\uFFFD");
    assert_replaced("\xe2\x82x", "\uFFFDx");
    assert_replaced("\xf0\x9f\x98", "\uFFFD");
    assert_replaced("\xf0\x9f\x98\xf0", "\uFFFD\uFFFD");
    assert_replaced("\xe0\x80\x80", "\uFFFD\uFFFD\uFFFD");
    assert_replaced("\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD");
    assert_replaced("\xf4\x90", "\uFFFD\uFFFD");
    assert_replaced("\xc3\xc3\xa9", "\uFFFD\u00e9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_take_the_blank_before_them),
        cmocka_unit_test(contractions_are_pieces),
        cmocka_unit_test(white_space_leaves_its_last_to_the_word),
        cmocka_unit_test(letters_of_all_scripts_go_together),
        cmocka_unit_test(invalid_bytes_are_cut_like_the_character_for_them),
        cmocka_unit_test(modern_words_take_any_character_before_them),
        cmocka_unit_test(modern_contractions_are_found_in_any_case),
        cmocka_unit_test(digits_go_by_threes_or_alone),
        cmocka_unit_test(line_ends_join_punctuation_and_blanks),
        cmocka_unit_test(a_cut_off_character_is_one_before_a_word),
        cmocka_unit_test(pieces_are_those_of_the_replaced_text),
        cmocka_unit_test(a_cut_changes_no_piece),
        cmocka_unit_test(a_text_without_a_place_to_cut_says_so),
        cmocka_unit_test(invalid_bytes_are_replaced_as_python_does),
    };
    return cmocka_run_group_tests_name("pretok", tests, NULL, NULL);
}
