#include "support/scratch.h"
#include "text/pickle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static pl_heap heap;
static pl_tokenizer tokenizer;
static pl_error err;

static int set_up(void **state)
{
    (void)state;
    heap = pl_heap_make(8 << 20);
    memset(&err, 0, sizeof err);
    memset(&tokenizer, 0, sizeof tokenizer);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_arena_fail_at(0);
    pl_heap_close(&heap);
    return 0;
}

/* The file of tests/support/make_pickles.py, cut to `bytes` if not 0. */
static pl_status read_cut(const char *name, size_t bytes)
{
    char path[256];
    size_t size;
    snprintf(path, sizeof path, "tests/fuzz/corpus/pickle/%s", name);
    char *data = scratch_read(path, &size);
    assert_non_null(data);
    /* A copy of exactly that size, so that over-reads show. */
    size_t length = bytes ? bytes : size;
    char *exact = malloc(length);
    assert_non_null(exact);
    memcpy(exact, data, length);
    pl_status status = pl_pickle_read_meta(&tokenizer, exact, length,
                                           "meta.pkl", &heap, &err);
    free(exact);
    free(data);
    return status;
}

static pl_status load(const char *name)
{
    return read_cut(name, 0);
}

static pl_status parse(const char *program, size_t bytes)
{
    return pl_pickle_read_meta(&tokenizer, program, bytes, "meta.pkl", &heap,
                               &err);
}

static void assert_refused(const char *name, const char *part)
{
    assert_int_equal(load(name), PL_E_FORMAT);
    if (!strstr(err.text, part) || strncmp(err.text, "meta.pkl: ", 10) != 0)
        fail_msg("%s: \"%s\" doesn't say \"%s\"", name, err.text, part);
}

static void every_protocol_gives_the_same_vocabulary(void **state)
{
    (void)state;
    static const uint32_t small[] = { 0,   '\n', '\r', 0x1A, ' ',    '\\',
                                      'a', 'z',  0x7F, 0xE9, 0x20AC, 0x1F600 };
    for (int protocol = 0; protocol <= 5; protocol++) {
        char name[32];
        snprintf(name, sizeof name, "small_%d.pkl", protocol);
        if (load(name))
            fail_msg("%s: %s", name, err.text);
        assert_int_equal(tokenizer.kind, PL_TOKENIZER_CHAR);
        assert_int_equal(tokenizer.vocab_size, 12);
        assert_memory_equal(tokenizer.codes, small, sizeof small);
    }
}

static void
large_vocabularies_with_batches_and_long_memos_are_read(void **state)
{
    (void)state;
    const char *names[] = { "large_0.pkl", "large_2.pkl", "large_4.pkl" };
    for (int n = 0; n < 3; n++) {
        if (load(names[n]))
            fail_msg("%s: %s", names[n], err.text);
        assert_int_equal(tokenizer.vocab_size, 1050);
        for (uint32_t i = 0; i < 1050; i++)
            assert_int_equal(tokenizer.codes[i], 0x3000 + i);
    }
}

static void ids_keep_the_order_of_the_file(void **state)
{
    (void)state;
    assert_int_equal(load("unsorted.pkl"), PL_OK);
    assert_int_equal(pl_tokenizer_id_of(&tokenizer, 'z'), 0);
    assert_int_equal(pl_tokenizer_id_of(&tokenizer, 'a'), 1);
    assert_int_equal(pl_tokenizer_id_of(&tokenizer, 'm'), 2);
}

static void other_keys_are_ignored(void **state)
{
    (void)state;
    assert_int_equal(load("more_keys.pkl"), PL_OK);
    assert_int_equal(tokenizer.vocab_size, 2);
}

static void what_could_execute_is_refused_by_name_and_offset(void **state)
{
    (void)state;
    assert_refused("evil_0.pkl", "(GLOBAL)");
    assert_refused("evil_0.pkl", "byte ");
    assert_refused("evil_4.pkl", "(STACK_GLOBAL)");
    assert_false(scratch_has("executed"));
}

static void everything_but_a_vocabulary_is_refused(void **state)
{
    (void)state;
    assert_refused("list.pkl", "(EMPTY_LIST)");
    assert_refused("float_size.pkl", "(BINFLOAT)");
    assert_refused("bool_size.pkl", "True or False");
    assert_refused("wrong_size.pkl", "itos has 2 entries, vocab_size is 3");
    assert_refused("two_characters.pkl", "isn't one character");
    assert_refused("not_inverse.pkl", "stoi isn't the inverse of itos");
    assert_refused("twice.pkl", "isn't the inverse");
    assert_refused("no_stoi.pkl", "it needs vocab_size");
    assert_refused("surrogate.pkl", "UTF-8");
    assert_refused("surrogate_0.pkl", "escape");
    assert_refused("big_number.pkl", "between 1 and 65536");
}

static void every_truncation_is_an_error(void **state)
{
    (void)state;
    const char *names[] = { "small_0.pkl", "small_2.pkl", "small_4.pkl" };
    for (int n = 0; n < 3; n++) {
        char path[256];
        size_t size;
        snprintf(path, sizeof path, "tests/fuzz/corpus/pickle/%s", names[n]);
        free(scratch_read(path, &size));
        for (size_t bytes = 1; bytes < size; bytes++)
            assert_int_equal(read_cut(names[n], bytes), PL_E_FORMAT);
    }
    assert_int_equal(parse("", 0), PL_E_FORMAT);
}

static void programs_that_break_the_machine_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *program;
        size_t bytes;
        const char *says;
    } cases[] = {
        { "s.", 2, "fewer than three values" },
        { "u.", 2, "no mark" },
        { "(u.", 3, "no dict to put items into" },
        { "d.", 2, "no mark" },
        { "}(K\1u.", 6, "a key without a value" },
        { "}K\1(s.", 6, "a mark where a value should be" },
        { "K\1K\1K\1s.", 8, "no dict to put items into" },
        { "}}K\1s.", 6, "neither string nor number" },
        { "h\7.", 3, "an empty memo place" },
        { "g-1\n.", 5, "a negative memo place" },
        { "q\0.", 3, "nothing on the stack" },
        { "(q\0.", 4, "nothing on the stack" },
        { "}r\377\377\377\377.", 7, "a memo place beyond" },
        { "X\377\377\377\377a.", 7, "a string longer than the rest" },
        { "\x8d\377\377\377\377\377\377\377\377a.", 11,
          "longer than the rest" },
        { "\x95\377\377\377\377\377\377\377\377.", 10, "a frame longer" },
        { "\x80\6.", 3, "a pickle protocol newer" },
        { "Ia\n.", 4, "not a whole number" },
        { "I\n.", 3, "not a whole number" },
        { "I9999999999999999999999\n.", 25, "accepted range" },
        { "\x8a\10\1\1\1\1\1\1\1\1.", 11, "a number larger" },
        { "Vab\\x00\n.", 9, "a wrong escape" },
        { "V\\u12\n.", 7, "a wrong escape" },
        { "V\\U99999999\n.", 13, "a wrong escape" },
        { "K\1.", 3, "the result isn't one dict" },
        { "}}.", 3, "the result isn't one dict" },
        { ".", 1, "the result isn't one dict" },
        { "}.}", 3, "more bytes follow" },
        { "}.", 2, "it needs vocab_size" },
        { "\377", 1, "no pickle instruction" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(parse(cases[i].program, cases[i].bytes), PL_E_FORMAT);
        if (!strstr(err.text, cases[i].says))
            fail_msg("case %zu: \"%s\" doesn't say \"%s\"", i, err.text,
                     cases[i].says);
    }
}

static void numbers_of_every_width_are_understood(void **state)
{
    (void)state;
    /* {'vocab_size': 1L, 'itos': {0: 'a'}, 'stoi': {'a': 0}}, each number
     * written another way. */
    static const char program[] =
        "}(\x8c\nvocab_size\x8a\1\1\x8c\4itos}M\0\0\x8c\1as"
        "\x8c\4stoi}\x8c\1aJ\0\0\0\0su.";
    assert_int_equal(parse(program, sizeof program - 1), PL_OK);
    assert_int_equal(tokenizer.vocab_size, 1);
    static const char text[] = "(Vvocab_size\nL1L\nVitos\n(I0\nVa\ndVstoi\n"
                               "(Va\nL0L\ndd.";
    assert_int_equal(parse(text, sizeof text - 1), PL_OK);
    static const char negative[] = "(Vvocab_size\nI1\nVitos\n(I-1\nVa\nd"
                                   "Vstoi\n(Va\nI0\ndd.";
    assert_int_equal(parse(negative, sizeof negative - 1), PL_E_FORMAT);
    assert_non_null(strstr(err.text, "the id -1"));
}

static void stack_memo_entries_and_dicts_are_bounded(void **state)
{
    (void)state;
    enum { MANY = 7 << 20 };
    char *program = malloc(MANY);
    assert_non_null(program);
    memset(program, '(', MANY);
    assert_int_equal(parse(program, MANY), PL_E_FORMAT);
    assert_non_null(strstr(err.text, "more values on the stack"));
    memset(program, '}', MANY);
    assert_int_equal(parse(program, MANY), PL_E_FORMAT);
    assert_non_null(strstr(err.text, "more dicts"));
    program[1] = '(';
    for (size_t i = 2; i + 5 < MANY; i += 5)
        memcpy(program + i, "K\1K\1s", 5);
    assert_int_equal(parse(program, MANY), PL_E_FORMAT);
    program[0] = '}';
    for (size_t i = 1; i + 5 < MANY; i += 5)
        memcpy(program + i, "K\1K\1s", 5);
    assert_int_equal(parse(program, MANY), PL_E_FORMAT);
    assert_non_null(strstr(err.text, "more dict entries"));
    assert_int_equal(parse(program, PL_PICKLE_MAX_BYTES + 1), PL_E_FORMAT);
    assert_non_null(strstr(err.text, "more than the"));
    free(program);
}

static void running_out_of_memory_anywhere_is_an_error(void **state)
{
    (void)state;
    long nth = 1;
    for (;; nth++) {
        pl_arena_fail_at(nth);
        pl_status status = load("small_4.pkl");
        pl_arena_fail_at(0);
        if (status == PL_OK)
            break;
        assert_int_equal(status, PL_E_MEMORY);
    }
    assert_true(nth > 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_protocol_gives_the_same_vocabulary),
        TEST(large_vocabularies_with_batches_and_long_memos_are_read),
        TEST(ids_keep_the_order_of_the_file),
        TEST(other_keys_are_ignored),
        TEST(what_could_execute_is_refused_by_name_and_offset),
        TEST(everything_but_a_vocabulary_is_refused),
        TEST(every_truncation_is_an_error),
        TEST(programs_that_break_the_machine_are_refused),
        TEST(numbers_of_every_width_are_understood),
        TEST(stack_memo_entries_and_dicts_are_bounded),
        TEST(running_out_of_memory_anywhere_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
