/* Tests of train/request: the tokens of a candidate, as lm-eval cuts them. */
#include "text/bpe_read.h"
#include "train/request.h"

#include "support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    scratch folder;
    pl_heap heap;
    pl_config config;
    pl_tokenizer tokenizer;
    pl_requests requests;
    pl_request request;
    pl_error err;
} fixture;

static int set_up(void **state)
{
    static const uint32_t codes[] = { 'a', 'b', 'c', 'd', ' ', '\n', 0x3000 };
    fixture *f = calloc(1, sizeof *f);
    scratch_open(&f->folder);
    f->heap = pl_heap_make(64 << 20);
    f->config = pl_config_make_default();
    if (pl_tokenizer_make_char(&f->tokenizer, codes, 7, &f->heap, &f->err))
        fail_msg("%s", f->err.text);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    pl_heap_close(&f->heap);
    scratch_close(&f->folder);
    free(f);
    return 0;
}

static void read_items(fixture *f, const char *text, size_t T)
{
    const char *path;
    const char *there = scratch_path(&f->folder, "one.jsonl");
    scratch_write(there, text, strlen(text));
    if (pl_heap_text(&f->heap, &path, there, strlen(there), &f->err) ||
        pl_requests_open(&f->requests, &f->config, &path, 1, T, &f->tokenizer,
                         &f->heap, &f->err))
        fail_msg("%s", f->err.text);
}

static pl_status encode(fixture *f, size_t item, size_t at)
{
    return pl_request_encode(&f->request, &f->requests,
                             &f->requests.tasks.tasks[0], item, at,
                             &f->tokenizer, &f->err);
}

/* The tokens, with a bar before the continuation. */
static void assert_request(fixture *f, const char *want)
{
    char text[512];
    size_t used = 0, bytes;
    for (size_t i = 0; i < f->request.count; i++) {
        if (i == f->request.from)
            text[used++] = '|';
        if (pl_tokenizer_decode(&f->tokenizer, f->request.tokens[i],
                                text + used, &bytes, &f->err))
            fail_msg("%s", f->err.text);
        used += bytes;
    }
    text[used] = '\0';
    assert_string_equal(text, want);
}

#define QUERY(query) "{\"query\": \"" query "\", \"choices\": [\"c\", \"dd\"], "
#define LINE(query)  QUERY(query) "\"gold\": 1}\n"

static void a_delimiter_stands_before_the_continuation(void **state)
{
    fixture *f = *state;
    read_items(f, LINE("ab"), 100);
    assert_int_equal(encode(f, 0, 1), PL_OK);
    assert_request(f, "ab| dd");
    assert_false(f->request.cut);
    f->config.continuation_delimiter = "";
    read_items(f, LINE("ab"), 100);
    assert_int_equal(encode(f, 0, 0), PL_OK);
    assert_request(f, "ab|c");
}

static void white_space_at_the_end_belongs_to_the_continuation(void **state)
{
    fixture *f = *state;
    read_items(f, LINE("a b \\n\\u3000"), 100);
    assert_int_equal(encode(f, 0, 0), PL_OK);
    assert_request(f, "a b| \n\u3000 c");
}

static void shots_stand_before_it_with_their_answers(void **state)
{
    fixture *f = *state;
    f->config.shots = 2;
    read_items(f, LINE("a") LINE("b") LINE("aa"), 100);
    assert_int_equal(encode(f, 1, 0), PL_OK);
    assert_request(f, "a dd\n\naa dd\n\nb| c");
    f->config.example_delimiter = "\n";
    read_items(f,
               "{\"context_options\": [\"a\", \"b\"], \"continuation\": \"c\", "
               "\"gold\": 1}\n{\"context_options\": [\"ab\", \"bb\"], "
               "\"continuation\": \"d\", \"gold\": 0}\n{\"context_options\": "
               "[\"d\", \"a\"], \"continuation\": \"a\", \"gold\": 0}\n",
               100);
    assert_int_equal(encode(f, 0, 1), PL_OK);
    assert_request(f, "ab d\nd a\nb| c");
}

static void what_is_too_long_loses_its_beginning(void **state)
{
    fixture *f = *state;
    read_items(f, LINE("abcd"), 4);
    assert_int_equal(encode(f, 0, 1), PL_OK);
    assert_request(f, "cd| dd"); /* T + 1: nothing is behind the last */
    assert_true(f->request.cut);
    assert_int_equal(encode(f, 0, 0), PL_OK);
    assert_request(f, "bcd| c");
    read_items(f, LINE("abcd"), 3);
    assert_int_equal(encode(f, 0, 1), PL_OK);
    assert_request(f, "d| dd");
    read_items(f, LINE("abcd"), 2);
    assert_int_equal(encode(f, 0, 1), PL_E_FORMAT);
    assert_non_null(strstr(f->err.text, "one.jsonl:1: candidate 2"));
    assert_non_null(strstr(f->err.text, "continuation of 3 tokens"));
    assert_int_equal(
        pl_requests_check(&f->requests, &f->tokenizer, NULL, NULL, &f->err),
        PL_E_FORMAT);
}

static void an_empty_continuation_is_refused(void **state)
{
    fixture *f = *state;
    f->config.continuation_delimiter = "";
    read_items(f, "{\"query\": \"a\", \"choices\": [\"c\", \"\"], \"gold\": 0}",
               100);
    assert_int_equal(encode(f, 0, 0), PL_OK);
    assert_int_equal(encode(f, 0, 1), PL_E_FORMAT);
    assert_non_null(strstr(f->err.text, "empty continuation"));
}

static void an_empty_context_needs_a_special_token(void **state)
{
    fixture *f = *state;
    pl_bpe *bpe;
    read_items(f, LINE("") LINE("  ") LINE("a"), 100);
    assert_int_equal(encode(f, 0, 0), PL_E_FORMAT);
    assert_non_null(strstr(f->err.text, "no special token"));
    if (pl_bpe_load(&bpe, "tests/golden/tokens.json", &f->heap, &f->err))
        fail_msg("%s", f->err.text);
    f->tokenizer = pl_tokenizer_make_bpe(bpe);
    const int32_t first = pl_bpe_special_at(bpe, 0);
    assert_true(first >= 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(encode(f, i, 0), PL_OK);
        assert_int_equal(f->request.from, 1);
        assert_int_equal(f->request.tokens[0], first);
    }
    assert_int_equal(encode(f, 2, 0), PL_OK);
    assert_int_not_equal(f->request.tokens[0], first);
}

static void an_unknown_character_is_refused_with_its_line(void **state)
{
    fixture *f = *state;
    read_items(f, LINE("a") LINE("x"), 100);
    assert_int_equal(
        pl_requests_check(&f->requests, &f->tokenizer, NULL, NULL, &f->err),
        PL_E_FORMAT);
    assert_non_null(strstr(f->err.text, "one.jsonl:2"));
}

/* NFC may make a text longer: there is room for more ids than bytes. */
static void a_tokenizer_that_normalizes_has_room(void **state)
{
    fixture *f = *state;
    pl_bpe *bpe;
    if (pl_bpe_load(&bpe, "tests/golden/patterns/qwen2.json", &f->heap,
                    &f->err))
        fail_msg("%s", f->err.text);
    f->tokenizer = pl_tokenizer_make_bpe(bpe);
    assert_true(pl_tokenizer_most_ids(&f->tokenizer, 1) > 1);
    read_items(f, LINE("ab"), 100);
    assert_int_equal(encode(f, 0, 1), PL_OK);
    assert_request(f, "ab| dd");
    /* one character of three bytes, which is two of three each */
    read_items(f, LINE("\\u0958\\u0958\\u0958\\u0958"), 100);
    assert_int_equal(encode(f, 0, 1), PL_OK);
    assert_request(f, "\u0915\u093c\u0915\u093c\u0915\u093c\u0915\u093c| dd");
}

static int at_once(void *context)
{
    (void)context;
    return 1;
}

static void what_there_is_to_do_is_counted(void **state)
{
    fixture *f = *state;
    read_items(f, LINE("a") LINE("abcd"), 4);
    if (pl_requests_check(&f->requests, &f->tokenizer, NULL, NULL, &f->err))
        fail_msg("%s", f->err.text);
    assert_int_equal(f->requests.items, 2);
    assert_int_equal(f->requests.requests, 4);
    assert_int_equal(f->requests.tokens, 3 + 4 + 5 + 5);
    assert_int_equal(f->requests.cut, 2);
    assert_true(f->requests.bytes > 0);
    assert_int_equal(
        pl_requests_check(&f->requests, &f->tokenizer, at_once, NULL, &f->err),
        PL_E_STOPPED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_delimiter_stands_before_the_continuation),
        TEST(white_space_at_the_end_belongs_to_the_continuation),
        TEST(shots_stand_before_it_with_their_answers),
        TEST(what_is_too_long_loses_its_beginning),
        TEST(an_empty_continuation_is_refused),
        TEST(an_empty_context_needs_a_special_token),
        TEST(an_unknown_character_is_refused_with_its_line),
        TEST(a_tokenizer_that_normalizes_has_room),
        TEST(what_there_is_to_do_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
