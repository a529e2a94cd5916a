/* Tests of web/choice: what is shown of a text, and when. */
#include "web/choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 64 };

/* A text of bytes, so that a token is a byte. */
typedef struct fixture {
    pl_heap heap;
    pl_completion wish;
    pl_tokenizer tokenizer;
    pl_choice choice;
    pl_json_line line;
} fixture;

static void begin(fixture *f, const char *stop, int logprobs)
{
    memset(f, 0, sizeof *f);
    f->heap = pl_heap_make(1 << 20);
    f->tokenizer = pl_tokenizer_make_byte();
    f->wish = (pl_completion){ .logprobs = logprobs };
    if (stop) {
        f->wish.stops[0] = stop;
        f->wish.stop_bytes[0] = strlen(stop);
        f->wish.stop_count = 1;
    }
    f->choice.text.most = MOST;
    f->choice.text.end_token = -1;
    assert_true(pl_choice_open(&f->choice, &f->wish, &f->tokenizer, &f->heap));
}

static void finish(fixture *f)
{
    pl_choice_close(&f->choice);
    pl_json_line_free(&f->line);
    pl_heap_close(&f->heap);
}

static pl_decoding_end take(fixture *f, char byte, int is_echo)
{
    return pl_choice_take(&f->choice, (unsigned char)byte, NULL, is_echo);
}

/* What is new, as JSON, with a zero behind it. */
static const char *shown(fixture *f)
{
    pl_json_line_empty(&f->line);
    pl_choice_put(&f->choice, &f->line);
    pl_json_line_raw(&f->line, "");
    assert_false(f->line.failed);
    static char text[4096];
    assert_true(f->line.used < sizeof text);
    memcpy(text, f->line.text, f->line.used);
    text[f->line.used] = '\0';
    return text;
}

static void expect_text(fixture *f, const char *text)
{
    const char *all = shown(f);
    if (!strstr(all, text))
        fail_msg("%s has no %s", all, text);
}

static void a_character_waits_for_its_last_byte(void **state)
{
    fixture f;
    (void)state;
    begin(&f, NULL, -1);
    assert_false(pl_choice_has_news(&f.choice));
    take(&f, 'a', 0);
    assert_true(pl_choice_has_news(&f.choice));
    expect_text(&f, "{\"text\": \"a\", ");
    for (const char *c = "\xf0\x9f\x98"; *c; c++) {
        take(&f, *c, 0);
        assert_false(pl_choice_has_news(&f.choice));
    }
    take(&f, '\x80', 0);
    assert_true(pl_choice_has_news(&f.choice));
    expect_text(&f, "{\"text\": \"\xf0\x9f\x98\x80\", \"index\": 0");
    take(&f, '\xe2', 0);
    assert_false(pl_choice_has_news(&f.choice));
    pl_choice_end(&f.choice, "length");
    expect_text(&f, "{\"text\": \"\xef\xbf\xbd\", "); /* it never came */
    finish(&f);
}

static void bytes_that_are_no_text_are_replaced(void **state)
{
    fixture f;
    (void)state;
    begin(&f, NULL, 0);
    take(&f, '\xff', 0);
    take(&f, '"', 0);
    take(&f, '\x1b', 0);
    pl_choice_end(&f.choice, "length");
    expect_text(&f, "{\"text\": \"\xef\xbf\xbd\\\"\\u001b\", \"index\": 0, "
                    "\"logprobs\": {\"tokens\": [\"bytes:\\\\xff\", \"\\\"\", "
                    "\"\\u001b\"], \"token_logprobs\": [null, null, null], "
                    "\"top_logprobs\": [null, null, null], \"text_offset\": "
                    "[0, 1, 2]}, \"finish_reason\": \"length\"}");
    finish(&f);
}

static void a_stop_is_cut_off_wherever_it_begins(void **state)
{
    fixture f;
    (void)state;
    begin(&f, "aab", 0);
    take(&f, 'x', 0);
    expect_text(&f, "\"x\"");
    assert_int_equal(take(&f, 'a', 0), PL_DECODING_GOES_ON);
    assert_false(pl_choice_has_news(&f.choice));
    take(&f, 'a', 0);
    assert_false(pl_choice_has_news(&f.choice));
    take(&f, 'a', 0); /* the first of them isn't its beginning */
    assert_true(pl_choice_has_news(&f.choice));
    expect_text(&f, "{\"text\": \"a\", \"index\": 0, \"logprobs\": "
                    "{\"tokens\": [\"a\"]");
    assert_int_equal(take(&f, 'b', 0), PL_DECODING_FINISHED);
    pl_choice_end(&f.choice, "stop");
    expect_text(&f, "{\"text\": \"\", \"index\": 0, \"logprobs\": "
                    "{\"tokens\": [], \"token_logprobs\": [], "
                    "\"top_logprobs\": [], \"text_offset\": []}, "
                    "\"finish_reason\": \"stop\"}");
    finish(&f);
}

static void what_might_be_a_stop_is_shown_at_the_end(void **state)
{
    fixture f;
    (void)state;
    begin(&f, "\n\n", -1);
    take(&f, 'a', 0);
    take(&f, '\n', 0);
    expect_text(&f, "{\"text\": \"a\", ");
    pl_choice_end(&f.choice, "length");
    expect_text(&f, "{\"text\": \"\\n\", ");
    finish(&f);
}

static void a_stop_in_the_prompt_stops_nothing(void **state)
{
    fixture f;
    (void)state;
    begin(&f, "ab", -1);
    assert_int_equal(take(&f, 'a', 1), PL_DECODING_GOES_ON);
    assert_int_equal(take(&f, 'b', 1), PL_DECODING_GOES_ON);
    assert_int_equal(take(&f, 'a', 1), PL_DECODING_GOES_ON);
    /* the one that begins there doesn't count either */
    assert_int_equal(take(&f, 'b', 0), PL_DECODING_GOES_ON);
    assert_int_equal(take(&f, 'a', 0), PL_DECODING_GOES_ON);
    assert_int_equal(take(&f, 'b', 0), PL_DECODING_FINISHED);
    pl_choice_end(&f.choice, "stop");
    expect_text(&f, "{\"text\": \"abab\", ");
    finish(&f);
}

/* The token that ends a text has a score, and no text. */
static void the_end_of_a_text_is_a_token_without_text(void **state)
{
    const pl_score score = { .own = { 'z', -0.5 },
                             .top_count = 1,
                             .top = { { 'y', -0.25 } } };
    fixture f;
    (void)state;
    begin(&f, NULL, 1);
    f.choice.text.end_token = 'z';
    take(&f, 'a', 0);
    pl_choice_take(&f.choice, 'z', &score, 0);
    pl_choice_end(&f.choice, "stop");
    expect_text(&f, "{\"text\": \"a\", \"index\": 0, \"logprobs\": "
                    "{\"tokens\": [\"a\", \"z\"], \"token_logprobs\": [null, "
                    "-0.5], \"top_logprobs\": [null, {\"y\": -0.25, \"z\": "
                    "-0.5}], \"text_offset\": [0, 1]}");
    finish(&f);
}

/* However a text is shown in parts, they make the whole. */
static void parts_are_the_whole(void **state)
{
    static const char text[] = "caf\xc3\xa9 \xe2\x82\xac\xff 100\n\nno";
    (void)state;
    for (int logprobs = -1; logprobs < 1; logprobs++) {
        char parts[256] = "";
        size_t tokens = 0;
        fixture f;
        begin(&f, "\n\nn", logprobs);
        for (const char *c = text; *c && f.choice.end == SIZE_MAX; c++) {
            take(&f, *c, 0);
            if (!pl_choice_has_news(&f.choice) || f.choice.end != SIZE_MAX)
                continue;
            const size_t before = f.choice.bytes_shown;
            shown(&f);
            strncat(parts, f.choice.bytes + before,
                    f.choice.bytes_shown - before);
            assert_true(f.choice.tokens_shown >= tokens);
            tokens = f.choice.tokens_shown;
        }
        pl_choice_end(&f.choice, "stop");
        const size_t before = f.choice.bytes_shown;
        shown(&f);
        strncat(parts, f.choice.bytes + before, f.choice.bytes_shown - before);
        assert_string_equal(parts, "caf\xc3\xa9 \xe2\x82\xac\xff 100");
        assert_int_equal(f.choice.tokens_shown, strlen(parts));
        finish(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_character_waits_for_its_last_byte),
        cmocka_unit_test(bytes_that_are_no_text_are_replaced),
        cmocka_unit_test(a_stop_is_cut_off_wherever_it_begins),
        cmocka_unit_test(what_might_be_a_stop_is_shown_at_the_end),
        cmocka_unit_test(a_stop_in_the_prompt_stops_nothing),
        cmocka_unit_test(the_end_of_a_text_is_a_token_without_text),
        cmocka_unit_test(parts_are_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
