/* Tests of web/completions: what a request may say, and what it is told. */
#include "web/completions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const pl_completion_limits limits = { .vocabulary = 100,
                                             .most_top = 20 };

/* Reads a body; it and its heap stay until the next. */
static int read_body(pl_completion *out, const char *body, pl_complaint *why)
{
    static pl_heap heap;
    pl_heap_close(&heap);
    heap = pl_heap_make(1 << 20);
    return pl_completion_read(out, body, strlen(body), &limits, &heap, why);
}

static pl_completion read_good(const char *body)
{
    pl_completion out;
    pl_complaint why;
    if (!read_body(&out, body, &why))
        fail_msg("%s: %s", body, why.message);
    return out;
}

static void expect_refusal(const char *body, const char *param,
                           const char *words)
{
    pl_completion out;
    pl_complaint why;
    if (read_body(&out, body, &why))
        fail_msg("%s was taken", body);
    assert_int_equal(why.status, 400);
    assert_string_equal(why.type, "invalid_request_error");
    if (strcmp(why.param, param) != 0 || !strstr(why.message, words))
        fail_msg("%s: %s: %s", body, why.param, why.message);
    assert_int_equal(why.message[strlen(why.message) - 1], '.');
}

static void what_isnt_said_is_openais(void **state)
{
    (void)state;
    const pl_completion c = read_good("{}");
    assert_int_equal(c.prompt_count, 1);
    assert_string_equal(c.prompts[0].text, "");
    assert_int_equal(c.max_tokens, 16);
    assert_int_equal(c.n, 1);
    assert_true(c.temperature == 1.0);
    assert_true(c.top_p == 0.0 && c.top_k == 0);
    assert_int_equal(c.logprobs, -1);
    assert_false(c.stream || c.echo || c.has_seed || c.include_usage);
    assert_int_equal(c.stop_count, 0);
}

static void null_is_as_good_as_absent(void **state)
{
    (void)state;
    const pl_completion c = read_good(
        "{\"prompt\": null, \"max_tokens\": null, \"stop\": null, \"n\": null, "
        "\"logprobs\": null, \"seed\": null, \"unheard\": null}");
    assert_int_equal(c.max_tokens, 16);
    assert_false(c.has_seed);
}

static void a_prompt_has_four_forms(void **state)
{
    (void)state;
    pl_completion c = read_good("{\"prompt\": \"a\\u0000b\"}");
    assert_int_equal(c.prompts[0].bytes, 3);
    assert_memory_equal(c.prompts[0].text, "a\0b", 4);
    c = read_good("{\"prompt\": [\"one\", \"\"]}");
    assert_int_equal(c.prompt_count, 2);
    assert_string_equal(c.prompts[0].text, "one");
    assert_int_equal(c.prompts[1].bytes, 0);
    c = read_good("{\"prompt\": [7, 99, 0]}");
    assert_int_equal(c.prompt_count, 1);
    assert_null(c.prompts[0].text);
    assert_int_equal(c.prompts[0].count, 3);
    assert_int_equal(c.prompts[0].tokens[1], 99);
    c = read_good("{\"prompt\": [[1, 2], [3]]}");
    assert_int_equal(c.prompt_count, 2);
    assert_int_equal(c.prompts[1].tokens[0], 3);
    expect_refusal("{\"prompt\": []}", "prompt", "empty");
    expect_refusal("{\"prompt\": [[1], \"a\"]}", "prompt", "not both");
    expect_refusal("{\"prompt\": [1, \"a\"]}", "prompt", "whole numbers");
    expect_refusal("{\"prompt\": [100]}", "prompt", "from 0 to 99");
    expect_refusal("{\"prompt\": [-1]}", "prompt", "from 0 to 99");
    expect_refusal("{\"prompt\": [1.5]}", "prompt", "text");
    expect_refusal("{\"prompt\": {}}", "prompt", "text");
    expect_refusal("{\"prompt\": 5}", "prompt", "text");
}

static void too_many_prompts_are_refused(void **state)
{
    char body[4096];
    size_t used = (size_t)snprintf(body, sizeof body, "{\"prompt\": [\"a\"");
    (void)state;
    for (int i = 0; i < PL_COMPLETION_PROMPTS; i++)
        used += (size_t)snprintf(body + used, sizeof body - used, ", \"a\"");
    snprintf(body + used, sizeof body - used, "]}");
    expect_refusal(body, "prompt", "257 prompts");
}

static void numbers_have_bounds(void **state)
{
    (void)state;
    const pl_completion c = read_good(
        "{\"max_tokens\": 0, \"temperature\": 0, \"top_p\": 0.5, \"top_k\": 7, "
        "\"seed\": -3, \"n\": 128, \"logprobs\": 20, \"best_of\": 128}");
    assert_int_equal(c.max_tokens, 0);
    assert_true(c.temperature == 0.0 && c.top_p == 0.5);
    assert_int_equal(c.top_k, 7);
    assert_true(c.has_seed && c.seed == -3);
    assert_int_equal(c.n, 128);
    assert_int_equal(c.logprobs, 20);
    assert_int_equal(read_good("{\"top_k\": -1}").top_k, 0);
    assert_int_equal(read_good("{\"top_k\": 9, \"top_p\": 0}").top_k, 1);
    assert_int_equal(read_good("{\"top_p\": 0.0, \"top_k\": 9}").top_k, 1);
    expect_refusal("{\"max_tokens\": -1}", "max_tokens", "whole number");
    expect_refusal("{\"max_tokens\": 1.0}", "max_tokens", "whole number");
    expect_refusal("{\"temperature\": 2.1}", "temperature", "0 to 2");
    expect_refusal("{\"temperature\": \"1\"}", "temperature", "0 to 2");
    expect_refusal("{\"top_p\": 1.01}", "top_p", "0 to 1");
    expect_refusal("{\"n\": 0}", "n", "1 to 128");
    expect_refusal("{\"logprobs\": 21}", "logprobs", "0 to 20");
    expect_refusal("{\"logprobs\": true}", "logprobs", "0 to 20");
    expect_refusal("{\"seed\": 1e3}", "seed", "whole number");
    expect_refusal("{\"stream\": 1}", "stream", "true or false");
}

static void stops_are_texts(void **state)
{
    (void)state;
    pl_completion c = read_good("{\"stop\": \"\\n\"}");
    assert_int_equal(c.stop_count, 1);
    assert_string_equal(c.stops[0], "\n");
    c = read_good("{\"stop\": [\"a\", \"bc\", \"d\", \"e\"]}");
    assert_int_equal(c.stop_count, 4);
    assert_int_equal(c.stop_bytes[1], 2);
    assert_int_equal(read_good("{\"stop\": []}").stop_count, 0);
    expect_refusal("{\"stop\": [\"a\", \"b\", \"c\", \"d\", \"e\"]}", "stop",
                   "at most 4");
    expect_refusal("{\"stop\": \"\"}", "stop", "1 to 256 bytes");
    expect_refusal("{\"stop\": [7]}", "stop", "text");
}

static void keys_that_change_the_result_are_refused_by_name(void **state)
{
    (void)state;
    expect_refusal("{\"presence_penalty\": 0.5}", "presence_penalty",
                   "would change");
    expect_refusal("{\"logit_bias\": {\"5\": 1}}", "logit_bias",
                   "would change");
    expect_refusal("{\"suffix\": \"end\"}", "suffix", "would change");
    expect_refusal("{\"repetition_penalty\": 1.1}", "repetition_penalty",
                   "would change");
    expect_refusal("{\"best_of\": 3}", "best_of", "would change");
    expect_refusal("{\"temprature\": 1}", "temprature", "Unknown key");
    expect_refusal("{\"a\\u001b[2Jb\": 1}", "a\\x1b[2Jb", "Unknown key");
    read_good(
        "{\"presence_penalty\": 0, \"frequency_penalty\": 0.0, "
        "\"logit_bias\": {}, \"suffix\": \"\", \"best_of\": 1, "
        "\"repetition_penalty\": 1, \"ignore_eos\": false, "
        "\"user\": \"me\", \"model\": \"any\", \"metadata\": {\"a\": 1}}");
}

static void streams_may_have_usage(void **state)
{
    (void)state;
    pl_completion c = read_good("{\"stream\": true, \"stream_options\": "
                                "{\"include_usage\": true}, \"echo\": true}");
    assert_true(c.stream && c.include_usage && c.echo);
    c = read_good("{\"stream_options\": {}}");
    assert_false(c.include_usage);
    expect_refusal("{\"stream_options\": 3}", "stream_options", "object");
}

static void what_isnt_json_is_refused(void **state)
{
    static char many[200000];
    size_t used = (size_t)snprintf(many, sizeof many, "{\"prompt\": [0");
    (void)state;
    expect_refusal("", "", "not valid JSON");
    expect_refusal("{", "", "not valid JSON");
    expect_refusal("[]", "", "one JSON object");
    expect_refusal("{\"n\": 1, \"n\": 2}", "", "not valid JSON");
    expect_refusal("{\"prompt\": \"\xff\"}", "", "not valid JSON");
    for (int i = 0; i < PL_COMPLETION_VALUES; i++)
        used += (size_t)snprintf(many + used, sizeof many - used, ",0");
    snprintf(many + used, sizeof many - used, "]}");
    expect_refusal(many, "", "JSON values");
}

/* A request that has no room says so instead of failing. */
static void memory_that_isnt_there_is_a_complaint(void **state)
{
    pl_completion out;
    pl_complaint why;
    const char body[] = "{\"prompt\": [1, 2, 3]}";
    pl_heap heap = pl_heap_make(16);
    (void)state;
    assert_false(
        pl_completion_read(&out, body, sizeof body - 1, &limits, &heap, &why));
    assert_int_equal(why.status, 503);
    assert_string_equal(why.type, "server_error");
    pl_heap_close(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_isnt_said_is_openais),
        cmocka_unit_test(null_is_as_good_as_absent),
        cmocka_unit_test(a_prompt_has_four_forms),
        cmocka_unit_test(too_many_prompts_are_refused),
        cmocka_unit_test(numbers_have_bounds),
        cmocka_unit_test(stops_are_texts),
        cmocka_unit_test(keys_that_change_the_result_are_refused_by_name),
        cmocka_unit_test(streams_may_have_usage),
        cmocka_unit_test(what_isnt_json_is_refused),
        cmocka_unit_test(memory_that_isnt_there_is_a_complaint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
