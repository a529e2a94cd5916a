/* test_selftest.c: every kernel on the emulated card has the processor's bits,
 * also on one without double; and a card that hasn't is seen. */
#include "base/arena.h"
#include "device/opencl.h"
#include "device/selftest.h"
#include "support/asserts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct seen {
    size_t cases, different;
    char text[160];
} seen;

static void see(void *context, const pl_selftest_case *it)
{
    seen *s = context;
    s->cases++;
    if (it->different && !s->different)
        snprintf(s->text, sizeof s->text, "%s, %s, %s", it->op, it->what,
                 it->storage);
    s->different += it->different;
}

static pl_selftest_result run(const char *card, seen *all)
{
    pl_heap heap = pl_heap_make(64 << 20);
    pl_error err = { 0 };
    pl_gpu_card cards[PL_GPU_MAX_CARDS];
    pl_selftest_result result;
    size_t count;
    const pl_selftest_wish wish = { .seen = see, .context = all };
    setenv("PL_CARD", card, 1);
    assert_int_equal(pl_opencl_api.list(cards, &count, &err), PL_OK);
    if (count != 1 || strcmp(cards[0].name, "Emulated card") != 0)
        fail_msg("no emulated card: is its folder in LD_LIBRARY_PATH?");
    if (pl_selftest_run(&result, &pl_opencl_api, &cards[0], &wish, &heap, &err))
        fail_msg("%s", err.text);
    pl_heap_close(&heap);
    assert_int_equal(result.cases, all->cases);
    assert_true(result.cases > 80);
    return result;
}

static void every_kernel_has_the_processors_bits(void **state)
{
    seen all = { 0 };
    (void)state;
    const pl_selftest_result result = run("", &all);
    if (all.different)
        fail_msg("%s: %zu bytes differ", all.text, all.different);
    assert_int_equal(result.failed, 0);
}

static void a_card_without_double_has_them_too(void **state)
{
    seen all = { 0 };
    (void)state;
    run("soft", &all);
    if (all.different)
        fail_msg("%s: %zu bytes differ", all.text, all.different);
}

static void one_wrong_bit_is_seen(void **state)
{
    seen all = { 0 };
    (void)state;
    const pl_selftest_result result = run("wrong=rmsnorm", &all);
    assert_int_equal(result.failed, 3); /* in each storage */
    assert_int_equal(all.different, 3);
    assert_true(strncmp(result.first, "rmsnorm, float32: 1 of ", 23) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_has_the_processors_bits),
        cmocka_unit_test(a_card_without_double_has_them_too),
        cmocka_unit_test(one_wrong_bit_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
