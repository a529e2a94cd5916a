/* test_config_value.c: expressions in config files have the value that Python
 * gives them. */
#include "unit/config_fixture.h"

#include <locale.h>

/* The int that an expression is. */
static void int_is(fixture *f, const char *expression, int64_t expected)
{
    char text[4096];
    snprintf(text, sizeof text, "seed = %s", expression);
    parses(f, text);
    if (f->cfg.seed != expected)
        fail_msg("%s is %lld", expression, (long long)f->cfg.seed);
}

static void float_is(fixture *f, const char *expression, double expected)
{
    char text[256];
    snprintf(text, sizeof text, "learning_rate = %s", expression);
    parses(f, text);
    if (f->cfg.learning_rate != expected)
        fail_msg("%s is %.17g", expression, f->cfg.learning_rate);
}

static void text_is(fixture *f, const char *expression, const char *expected)
{
    char text[512];
    snprintf(text, sizeof text, "start = %s", expression);
    parses(f, text);
    assert_string_equal(f->cfg.start, expected);
}

/* ---- numbers ---- */

static void ints_are_read_as_python_reads_them(void **state)
{
    fixture *f = *state;
    int_is(f, "0", 0);
    int_is(f, "00", 0);
    int_is(f, "1_000_000", 1000000);
    int_is(f, "0xfF", 255);
    int_is(f, "0x_ff", 255);
    int_is(f, "0o17", 15);
    int_is(f, "0b101", 5);
    int_is(f, "9223372036854775807 - 9223372036854775806", 1);
    refused(f, "seed = 9223372036854775808", "x.py:1:8: this number does not");
    refused(f, "seed = 0x10000000000000000", "does not fit 64 bits");
    refused(f, "seed = 012", "does not begin with 0");
    refused(f, "seed = 1__0", "x.py:1:9: this is not a number");
    refused(f, "seed = 1_", "not a number");
    refused(f, "seed = 0x", "not a number");
    refused(f, "seed = 0xg", "not a number");
    refused(f, "seed = 12ab", "not a number");
    refused(f, "seed = 2j", "not a number");
}

static void floats_are_read_as_python_reads_them(void **state)
{
    fixture *f = *state;
    float_is(f, "6e-4", 6e-4);
    float_is(f, ".5", 0.5);
    float_is(f, "5.", 5.0);
    float_is(f, "1_0.2_5e+0_1", 102.5);
    float_is(f, "1E2", 100.0);
    float_is(f, "01.5", 1.5);
    float_is(f, "3", 3.0);
    float_is(f, "1e-400", 0.0);
    refused(f, "learning_rate = 1e", "not a number");
    refused(f, "learning_rate = 1.2.3", "x.py:1:20: this is not a number");
    refused(f, "learning_rate = 1e999", "found 1e999");
    refused(f, "learning_rate = 1e999 - 1e999", "at least 0");
}

static void a_decimal_comma_of_the_locale_changes_nothing(void **state)
{
    fixture *f = *state;
    char text[32];
    static const char *const names[] = { "de_DE.UTF-8", "fr_FR.UTF-8",
                                         "de_DE.utf8" };
    for (size_t i = 0; i < 3; i++)
        if (setlocale(LC_NUMERIC, names[i]))
            break;
    float_is(f, "0.25", 0.25);
    pl_config_value_text(&f->cfg, PL_KEY_learning_rate, text, sizeof text);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(text, "0.25");
}

static void arithmetic_is_python_s(void **state)
{
    fixture *f = *state;
    int_is(f, "2 + 3 * 4", 14);
    int_is(f, "(2 + 3) * 4", 20);
    int_is(f, "10 - 3 - 2", 5);
    int_is(f, "-7 // 2 + 10", 6);
    int_is(f, "7 // -2 + 10", 6);
    int_is(f, "-7 % 3", 2);
    int_is(f, "7 % -3 + 10", 8);
    int_is(f, "-2 ** 2 + 10", 6);
    int_is(f, "2 ** 3 ** 2", 512);
    int_is(f, "2 ** 0", 1);
    int_is(f, "- -3", 3);
    int_is(f, "+3", 3);
    int_is(f, "True + 1", 2);
    int_is(f, "(-9223372036854775807 - 1) % -1", 0);
    float_is(f, "1 / 4", 0.25);
    float_is(f, "2 ** -1", 0.5);
    float_is(f, "7.5 // 2", 3.0);
    float_is(f, "8599.0 // 2.23", 3856.0);
    float_is(f, "-7.5 // 2 + 10", 6.0);
    float_is(f, "-7.5 % 2", 0.5);
    float_is(f, "1 - 0.9", 1 - 0.9);
    float_is(f, "4 ** 0.5", 2.0);
    float_is(f, "--0.5", 0.5);
}

static void arithmetic_that_has_no_result_is_an_error_at_its_place(void **state)
{
    fixture *f = *state;
    refused(f, "n_layer = 1 // 0", "x.py:1:13: division by zero");
    refused(f, "n_layer = 1 % 0", "division by zero");
    refused(f, "dropout = 1 / 0", "division by zero");
    refused(f, "dropout = 1.0 % 0.0", "division by zero");
    refused(f, "dropout = 0 ** -1", "division by zero");
    refused(f, "dropout = (-2) ** 0.5", "not a real number");
    refused(f, "dropout = 10.0 ** 400", "too large");
    refused(f, "seed = 2 ** 63", "does not fit");
    refused(f, "seed = 9223372036854775807 + 1", "does not fit");
    refused(f, "seed = -9223372036854775807 - 2", "does not fit");
    refused(f, "seed = 4611686018427387904 * 2", "does not fit");
    refused(f, "seed = (-9223372036854775807 - 1) // -1", "does not fit");
    refused(f, "seed = 'a' + 1", "a string + an int is not defined");
    refused(f, "seed = 1 - 'a'", "an int - a string is not defined");
    refused(f, "seed = -'a'", "a sign needs a number");
    refused(f, "seed = None + 1", "None + an int");
}

static void names_are_the_values_that_keys_have_by_now(void **state)
{
    fixture *f = *state;
    parses(f, "max_iters = 3000\n"
              "lr_decay_iters = max_iters\n"
              "warmup_iters = max_iters // 100\n"
              "min_lr = learning_rate / 10\n"
              "max_iters = 7\n"
              "out_dir = 'out-' + dataset\n"
              "eval_batch_size = head_dim\n"
              "eval_only = bias\n");
    assert_int_equal(f->cfg.lr_decay_iters, 3000);
    assert_int_equal(f->cfg.warmup_iters, 30);
    assert_true(f->cfg.min_lr == 6e-4 / 10);
    assert_string_equal(f->cfg.out_dir, "out-openwebtext");
    assert_int_equal(f->cfg.eval_batch_size, PL_NONE);
    assert_false(f->cfg.eval_only);
    refused(f, "n_layer = nlayer", "did you mean 'n_layer'");
    refused(f, "n_layer = quux", "unknown name 'quux'");
    refused(f, "bias = true", "write True");
    refused(f, "head_dim = null", "write None");
}

/* ---- strings and lists ---- */

static void strings_have_python_s_quotes_and_escapes(void **state)
{
    fixture *f = *state;
    text_is(f, "''", "");
    text_is(f, "''''''", "");
    text_is(f, "'a\"b'", "a\"b");
    text_is(f, "\"a'b\"", "a'b");
    text_is(f, "'a\\n\\t\\r\\\\\\'\\\"b'", "a\n\t\r\\'\"b");
    text_is(f, "'\\a\\b\\f\\v'", "\a\b\f\v");
    text_is(f, "'\\x41\\u00e9\\U0001F600\\101'",
            "A\xc3\xa9\xf0\x9f\x98\x80"
            "A");
    text_is(f, "'\\x41b\\1017\\u00e9a'",
            "Ab"
            "A7"
            "\xc3\xa9"
            "a");
    text_is(f, "'\\d\\.'", "\\d\\.");
    text_is(f, "'a\\\nb'", "ab");
    text_is(f, "'a\\\r\nb'", "ab");
    text_is(f, "r'a\\n\\'b'", "a\\n\\'b");
    text_is(f, "R\"\\d\"", "\\d");
}

static void strings_may_have_several_lines_and_parts(void **state)
{
    fixture *f = *state;
    text_is(f, "'''a\nb\r\nc'd'''", "a\nb\nc'd");
    text_is(f, "\"\"\"a\\\"\"\"b\"\"\"", "a\"\"\"b");
    text_is(f, "'a' \"b\" r'\\c'", "ab\\c");
    text_is(f, "('a'\n 'b')", "ab");
    text_is(f, "'a' + 'b' + \"c\"", "abc");
    text_is(f, "u'h\xc3\xa9'", "h\xc3\xa9");
}

static void strings_that_cannot_be_are_refused(void **state)
{
    fixture *f = *state;
    refused(f, "start = 'abc\nn_layer = 3", "x.py:1:9: this string is never");
    refused(f, "start = '''abc\n", "expected three quotes");
    refused(f, "start = 'abc\\", "never closed");
    refused(f, "start = 'a\\x4'", "x.py:1:12: this escape needs 2 hex digits");
    refused(f, "start = '\\u12'", "needs 4 hex digits");
    refused(f, "start = '\\0'", "U+0000");
    refused(f, "start = '\\ud800'", "U+D800");
    refused(f, "start = '\\U00110000'", "U+110000");
    refused(f, "start = '\\N{DASH}'", "\\N{...} is not accepted");
    refused(f, "start = b'x'", "a bytes literal is not accepted");
}

static void lists_join_and_repeat(void **state)
{
    fixture *f = *state;
    parses(f, "grad_checkpoint = [0] * 2 + 2 * [1 + 2, 1]\n");
    const pl_checkpointing *levels = &f->cfg.grad_checkpoint;
    static const int64_t expected[] = { 0, 0, 3, 1, 3, 1 };
    assert_int_equal(levels->kind, PL_CHECKPOINTING_LIST);
    assert_int_equal(levels->count, 6);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(levels->levels[i].whole, expected[i]);
    parses(f, "grad_checkpoint = [] * 9000000000 + [1] * -1 + [2]");
    assert_int_equal(levels->count, 1);
    refused(f, "grad_checkpoint = [1] * 10001", "more than 10000 items");
    refused(f, "grad_checkpoint = [1, 1] * 9223372036854775807",
            "more than 10000 items");
    refused(f, "grad_checkpoint = [0, 1.0]", "item 2 of the list is 1.0");
    refused(f, "grad_checkpoint = [0, [1]]", "item 2 of the list is [1]");
    refused(f, "grad_checkpoint = [0 1]", "expected , or ]");
    refused(f, "grad_checkpoint = [,]", "is not accepted");
}

static void a_string_that_grows_without_end_is_refused(void **state)
{
    fixture *f = *state;
    char text[1024] = "start = 'abcdefgh'\n";
    for (int i = 0; i < 20; i++)
        strcat(text, "start = start + start\n");
    refused(f, text, "longer than 65,536 bytes");
}

/* "--key=value" is taken; or refused, with this in the message. */
static void argued(fixture *f, const char *argument, const char *refusal)
{
    pl_status status = pl_config_override(&f->cfg, argument, PL_FOR_ALL,
                                          &f->heap, &f->err);
    if (!refusal && status != PL_OK)
        fail_msg("refused: %s\n%s", argument, f->err.text);
    if (refusal && (status != PL_E_CONFIG || !strstr(f->err.text, refusal)))
        fail_msg("%s: expected '%s' in:\n%s", argument, refusal, f->err.text);
}

static void prompts_are_a_text_or_a_list_of_texts(void **state)
{
    fixture *f = *state;
    const pl_texts *prompts = &f->cfg.sample_prompts;
    char text[64];
    assert_int_equal(prompts->count, 1);
    assert_string_equal(pl_texts_at(prompts, 0), "\n");
    parses(f, "a = 'One'\nsample_prompts = [a, 'two' * 2, '[3]']");
    assert_int_equal(prompts->count, 3);
    assert_string_equal(pl_texts_at(prompts, 1), "twotwo");
    pl_config_value_text(&f->cfg, PL_KEY_sample_prompts, text, sizeof text);
    assert_string_equal(text, "['One', 'twotwo', '[3]']");
    parses(f, "sample_prompts = 'one'");
    assert_null(prompts->list);
    argued(f, "--sample_prompts=one, two", NULL);
    assert_string_equal(pl_texts_at(prompts, 0), "one, two");
    argued(f, "--sample_prompts=['one', 'two']", NULL);
    assert_string_equal(pl_texts_at(prompts, 1), "two");
    argued(f, "--sample_prompts='[one'", NULL);
    assert_string_equal(pl_texts_at(prompts, 0), "[one");
    argued(f, "--sample_prompts=[one",
           "sample_prompts is a string or a list of strings");
    argued(f, "--sample_prompts=[]", "is empty");
    argued(f, "--sample_prompts=['a', 2]", "item 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ints_are_read_as_python_reads_them),
        TEST(floats_are_read_as_python_reads_them),
        TEST(a_decimal_comma_of_the_locale_changes_nothing),
        TEST(arithmetic_is_python_s),
        TEST(arithmetic_that_has_no_result_is_an_error_at_its_place),
        TEST(names_are_the_values_that_keys_have_by_now),
        TEST(strings_have_python_s_quotes_and_escapes),
        TEST(strings_may_have_several_lines_and_parts),
        TEST(strings_that_cannot_be_are_refused),
        TEST(lists_join_and_repeat),
        TEST(a_string_that_grows_without_end_is_refused),
        TEST(prompts_are_a_text_or_a_list_of_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
