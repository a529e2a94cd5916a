/* Tests of store/metrics_thin: which lines are left, and that they follow from
 * the whole alone. */
#include "store/metrics_thin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static pl_heap heap;
static pl_error err;

static int set_up(void **state)
{
    (void)state;
    heap = pl_heap_make((size_t)64 << 20);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_heap_close(&heap);
    return 0;
}

static pl_thin make(void)
{
    pl_thin thin;
    if (pl_thin_make(&thin, &heap, &err))
        fail_msg("%s", err.text);
    return thin;
}

static size_t line_of(char text[128], uint64_t step, pl_thin_kind kind)
{
    return (size_t)snprintf(text, 128, "{\"step\": %llu, \"%s\": %llu}\n",
                            (unsigned long long)step,
                            kind == PL_THIN_UPDATE ? "loss" : "train_loss",
                            (unsigned long long)(step * 31 % 1009));
}

static void add(pl_thin *thin, uint64_t step, pl_thin_kind kind)
{
    char text[128];
    size_t bytes = line_of(text, step, kind);
    pl_thin_add(thin, text, bytes);
}

/* Updates [from, to), each multiple of `every` evaluated before. */
static void go(pl_thin *thin, uint64_t from, uint64_t to, uint64_t every)
{
    for (uint64_t i = from; i < to; i++) {
        if (i % every == 0)
            add(thin, i, PL_THIN_EVAL);
        add(thin, i, PL_THIN_UPDATE);
    }
}

/* What is written down in the header, from the whole. */
static void assert_thinned(const pl_thin *thin, uint64_t steps, uint64_t every)
{
    uint64_t evals = (steps + every - 1) / every, of_updates = 1, of_evals = 1;
    size_t at = 0;
    while ((steps + of_updates - 1) / of_updates > PL_THIN_MOST_LINES)
        of_updates *= 2;
    while ((evals + of_evals - 1) / of_evals > PL_THIN_MOST_LINES)
        of_evals *= 2;
    for (uint64_t i = 0; i < steps; i++)
        for (int kind = PL_THIN_EVAL; kind <= PL_THIN_UPDATE; kind++) {
            char text[128];
            if (kind == PL_THIN_UPDATE
                    ? i % of_updates != 0
                    : i % every != 0 || i / every % of_evals != 0)
                continue;
            size_t bytes = line_of(text, i, (pl_thin_kind)kind);
            assert_true(at + bytes <= thin->used);
            assert_memory_equal(thin->text + at, text, bytes);
            at += bytes;
        }
    assert_int_equal(at, thin->used);
    assert_int_equal(thin->lines, steps + evals);
}

static void every_so_many_updates_and_evaluations_are_left(void **state)
{
    (void)state;
    static const uint64_t steps[] = { 1,    2047, 2048,  2049,  4095,
                                      4096, 4097, 20000, 300000 };
    static const uint64_t every[] = { 1, 3, 100 };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        for (size_t k = 0; k < 3; k++) {
            pl_thin thin = make();
            go(&thin, 0, steps[i], every[k]);
            assert_thinned(&thin, steps[i], every[k]);
            assert_true(thin.used <= pl_thin_most_bytes(steps[i], steps[i]));
            pl_heap_close(&heap);
            heap = pl_heap_make((size_t)64 << 20);
        }
}

/* Put back from what a checkpoint has, at any step, it goes on to the same. */
static void a_copy_that_goes_on_is_the_copy_of_the_whole(void **state)
{
    (void)state;
    static const uint64_t ends[] = { 2049, 5000, 9000 };
    for (size_t i = 0; i < 3; i++)
        for (uint64_t cut = 1; cut < ends[i]; cut = cut * 5 / 4 + 1) {
            pl_thin whole = make(), again = make();
            go(&whole, 0, cut, 2);
            pl_thin_resume(&again, cut, whole.evals, whole.lines, &whole.chain);
            for (size_t at = 0; at < whole.used;) {
                const char *end = strchr(whole.text + at, '\n');
                size_t bytes = (size_t)(end + 1 - whole.text) - at;
                assert_true(pl_thin_put_back(&again, whole.text + at, bytes));
                at += bytes;
            }
            go(&whole, cut, ends[i], 2);
            go(&again, cut, ends[i], 2);
            assert_int_equal(again.used, whole.used);
            assert_memory_equal(again.text, whole.text, whole.used);
            assert_int_equal(again.evals, whole.evals);
            assert_int_equal(again.lines, whole.lines);
            assert_string_equal(again.chain.text, whole.chain.text);
            pl_heap_close(&heap);
            heap = pl_heap_make((size_t)64 << 20);
        }
}

static void the_chain_is_of_every_line_in_its_order(void **state)
{
    (void)state;
    static const pl_thin_kind kinds[] = { PL_THIN_EVAL, PL_THIN_UPDATE };
    char seen[4][PL_HASH_TEXT_BYTES];
    for (int i = 0; i < 4; i++) {
        pl_thin thin = make();
        add(&thin, 0, kinds[i & 1]);
        add(&thin, 1, kinds[i >> 1]);
        memcpy(seen[i], thin.chain.text, sizeof seen[i]);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(seen[i], seen[k]);
    }
    /* as the documentation has it */
    pl_thin one = make();
    char text[160];
    memset(text, '0', 32);
    size_t bytes = line_of(text + 32, 0, PL_THIN_UPDATE);
    add(&one, 0, PL_THIN_UPDATE);
    assert_string_equal(one.chain.text, pl_hash_of(text, 32 + bytes).text);
}

static void only_lines_of_ours_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int is_ours;
        uint64_t step;
        pl_thin_kind kind;
    } cases[] = {
        { "{\"step\": 7, \"loss\": 1}\n", 1, 7, PL_THIN_UPDATE },
        { "{\"step\": 70, \"train_loss\": 1}\n", 1, 70, PL_THIN_EVAL },
        { "{\"step\": 7, \"loss\": 1}", 0, 0, PL_THIN_EVAL },
        { "{\"step\": , \"loss\": 1}\n", 0, 0, PL_THIN_EVAL },
        { "{\"step\": -7, \"loss\": 1}\n", 0, 0, PL_THIN_EVAL },
        { "{\"step\": 7, \"lr\": 1}\n", 0, 0, PL_THIN_EVAL },
        { "{\"step\": 7}\n", 0, 0, PL_THIN_EVAL },
        { "{\"step\": 12345678901234567890, \"loss\": 1}\n", 0, 0,
          PL_THIN_EVAL },
        { "{\"step\": 7\n", 0, 0, PL_THIN_EVAL },
        { "\n", 0, 0, PL_THIN_EVAL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pl_thin_line line;
        assert_int_equal(
            pl_thin_read_line(cases[i].text, strlen(cases[i].text), &line),
            cases[i].is_ours);
        if (!cases[i].is_ours)
            continue;
        assert_int_equal(line.step, cases[i].step);
        assert_int_equal(line.kind, cases[i].kind);
    }
}

static void a_line_that_such_a_copy_lacks_is_not_put_back(void **state)
{
    (void)state;
    pl_thin thin = make();
    char text[128];
    pl_thin_resume(&thin, 5000, 0, 5000, &thin.chain); /* every 4th */
    size_t bytes = line_of(text, 2, PL_THIN_UPDATE);
    assert_false(pl_thin_put_back(&thin, text, bytes));
    bytes = line_of(text, 4, PL_THIN_UPDATE);
    assert_true(pl_thin_put_back(&thin, text, bytes));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_so_many_updates_and_evaluations_are_left),
        TEST(a_copy_that_goes_on_is_the_copy_of_the_whole),
        TEST(the_chain_is_of_every_line_in_its_order),
        TEST(only_lines_of_ours_are_read),
        TEST(a_line_that_such_a_copy_lacks_is_not_put_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
