/* test_selftest.c: every kernel on the emulated card has the processor's bits,
 * also on one without double; and a card that hasn't is seen. */
#include "base/arena.h"
#include "card/which.h"
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
    assert_int_equal(which_card()->api->list(cards, &count, &err), PL_OK);
    if (count != 1 || strcmp(cards[0].name, "Emulated card") != 0)
        fail_msg("no emulated card: is it in the environment?");
    if (pl_selftest_run(&result, &cards[0], &wish, &heap, &err))
        fail_msg("%s", err.text);
    pl_heap_close(&heap);
    assert_int_equal(result.cases + result.tensor_cases, all->cases);
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
    assert_int_equal(result.failed + result.tensor_failed, 0);
    assert_true(result.tensor_cases == 0 || is_cuda());
    assert_true(result.tensor_cases > 30 || !is_cuda());
}

/* Hopper and Blackwell add up 16 products at once; Turing has no such cores. */
static void other_generations_have_them_too(void **state)
{
    seen all = { 0 }, older = { 0 };
    (void)state;
    if (!is_cuda() ||
        !getenv("PL_TEST_LONG")) /* else card.cuda_tensor has it */
        return;
    const pl_selftest_result result = run("cc=120,blind", &all);
    if (all.different)
        fail_msg("%s: %zu bytes differ", all.text, all.different);
    assert_true(result.tensor_cases > 30);
    assert_int_equal(run("cc=75,blind", &older).tensor_cases, 0);
    assert_int_equal(older.different, 0);
}

static void a_card_without_double_has_them_too(void **state)
{
    seen all = { 0 };
    (void)state;
    if (is_cuda())
        return;              /* all of CUDA's have it */
    run("soft,blind", &all); /* the accesses are the same */
    if (all.different)
        fail_msg("%s: %zu bytes differ", all.text, all.different);
}

static void one_wrong_bit_is_seen(void **state)
{
    seen all = { 0 };
    (void)state;
    if (is_cuda() && !getenv("PL_TEST_LONG"))
        return; /* it is the same test */
    const pl_selftest_result result = run("wrong=rmsnorm,blind", &all);
    assert_int_equal(result.failed, 3); /* in each storage */
    assert_int_equal(all.different, 3);
    assert_true(strncmp(result.first, "rmsnorm, float32: 1 of ", 23) == 0);
}

static void a_wrong_bit_of_tensor_cores_is_seen(void **state)
{
    seen all = { 0 };
    (void)state;
    if (!is_cuda())
        return;
    const pl_selftest_result result = run("wrong=tensor_thin,blind", &all);
    assert_int_equal(result.failed, 0);
    assert_int_equal(result.tensor_failed, 4); /* both cases, both storages */
    if (!strstr(result.first, ", bfloat16, tensor24: 1 of "))
        fail_msg("%s", result.first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_has_the_processors_bits),
        cmocka_unit_test(a_card_without_double_has_them_too),
        cmocka_unit_test(other_generations_have_them_too),
        cmocka_unit_test(one_wrong_bit_is_seen),
        cmocka_unit_test(a_wrong_bit_of_tensor_cores_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
