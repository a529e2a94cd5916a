/* Tests of advise/remedies: each row, taken as it is written, fits. */
#include "advise/remedies.h"
#include "support/asserts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char story[] = "batch_size = 16\n"
                            "gradient_accumulation_steps = 32\n"
                            "n_embd = 576\n"
                            "threads = 2\n";

typedef struct planned {
    pl_heap heap;
    pl_config config;
    pl_machine machine;
    pl_run_plan plan;
} planned;

static pl_log silent;
static pl_error err;

static void plan_it(planned *p, const char *text, const char *more,
                    size_t budget)
{
    const char *parts[] = { text, more };
    p->heap = pl_heap_make((size_t)1 << 30);
    p->config = pl_config_make_default();
    for (int i = 0; i < 2; i++)
        if (pl_config_parse(&p->config, parts[i], strlen(parts[i]), "test",
                            &p->heap, &err))
            fail_msg("%s in:\n%s", err.text, parts[i]);
    p->machine = (pl_machine){ .budget_bytes = budget,
                               .rates = { pl_rates_built_in(2),
                                          pl_rates_built_in(2),
                                          pl_rates_built_in(2) } };
    if (pl_run_plan_make(&p->plan, &p->config, &p->machine, 50304, &silent,
                         &p->heap, &err))
        fail_msg("%s", err.text);
}

/* "a = 1, b = 2" as lines of a config. */
static void as_lines(char *out, size_t size, const char *settings)
{
    snprintf(out, size, "%s\n", settings);
    for (char *at = out; (at = strstr(at, ", ")) != NULL;)
        memcpy(at, " \n", 2);
}

/* All changes of a config that doesn't fit; each is tried. */
static size_t check_all(const char *text, size_t budget,
                        pl_remedy changes[PL_MAX_REMEDIES])
{
    planned p;
    size_t count = 0;
    plan_it(&p, text, "", budget);
    assert_false(p.plan.fits);
    if (pl_remedies_make(changes, &count, &p.plan, &p.config, &p.machine, 50304,
                         &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < count; i++) {
        char lines[256];
        planned q;
        as_lines(lines, sizeof lines, changes[i].settings);
        plan_it(&q, text, lines, budget);
        if (!q.plan.fits)
            fail_msg("%s: %zu bytes of %zu", changes[i].settings,
                     q.plan.total_bytes, budget);
        assert_int_equal(pl_param_count(&q.plan.gpt.shape),
                         changes[i].parameters);
        assert_int_equal(changes[i].total_bytes, q.plan.total_bytes);
        assert_true(changes[i].total_bytes <= budget);
        pl_heap_close(&q.heap);
    }
    pl_heap_close(&p.heap);
    return count;
}

static const pl_remedy *find(const pl_remedy *changes, size_t count,
                             const char *words)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(changes[i].settings, words))
            return &changes[i];
    return NULL;
}

static void every_row_fits_as_it_is_written(void **state)
{
    (void)state;
    pl_remedy changes[PL_MAX_REMEDIES];
    for (size_t budget = 100000000; budget <= 1300000000; budget += 240000000)
        assert_true(check_all(story, budget, changes) > 0);
}

static void the_model_is_made_no_smaller_than_it_must(void **state)
{
    (void)state;
    const size_t budget = 1000000000;
    pl_remedy changes[PL_MAX_REMEDIES];
    size_t count = check_all(story, budget, changes);
    const struct {
        const char *key;
        long unit;
    } keys[] = { { "n_layer = ", 1 }, { "n_embd = ", 24 } };
    for (int i = 0; i < 2; i++) {
        const pl_remedy *change = find(changes, count, keys[i].key);
        assert_non_null(change);
        long value = strtol(strstr(change->settings, keys[i].key) +
                                strlen(keys[i].key),
                            NULL, 10);
        char lines[64];
        planned p;
        snprintf(lines, sizeof lines, "%s%ld\n", keys[i].key,
                 value + keys[i].unit);
        plan_it(&p, story, lines, budget);
        assert_false(p.plan.fits);
        pl_heap_close(&p.heap);
    }
}

/* What is free is offered alone. */
static void another_layout_comes_before_another_model(void **state)
{
    (void)state;
    pl_remedy changes[PL_MAX_REMEDIES];
    char exact[256];
    snprintf(exact, sizeof exact, "%sfit = 'exact'\n", story);
    assert_int_equal(check_all(exact, 2000000000, changes), 1);
    assert_string_equal(changes[0].settings, "fit = 'auto'");
    assert_int_equal(changes[0].effect, PL_EFFECT_SAME);
    snprintf(exact, sizeof exact, "%sgrad_checkpoint = False\n", story);
    assert_int_equal(check_all(exact, 1450000000, changes), 1);
    assert_string_equal(changes[0].settings, "grad_checkpoint = True");
}

static void a_smaller_batch_is_the_same_run(void **state)
{
    (void)state;
    pl_remedy changes[PL_MAX_REMEDIES];
    assert_true(check_all(story, 1340000000, changes) > 0);
    assert_string_equal(changes[0].settings,
                        "batch_size = 8, gradient_accumulation_steps = 64");
    assert_int_equal(changes[0].effect, PL_EFFECT_NUMBERS);
    assert_true(changes[0].regroups);
}

static void as_many_groups_as_fit_are_offered(void **state)
{
    (void)state;
    const size_t budget = 2100000000;
    pl_remedy changes[PL_MAX_REMEDIES];
    char text[256];
    planned p;
    snprintf(text, sizeof text, "%sgradient_groups = 32\n", story);
    assert_int_equal(check_all(text, budget, changes), 1);
    assert_string_equal(changes[0].settings, "gradient_groups = 4");
    assert_int_equal(changes[0].effect, PL_EFFECT_NUMBERS);
    assert_false(changes[0].regroups);
    plan_it(&p, story, "gradient_groups = 8\n", budget);
    assert_false(p.plan.fits);
    pl_heap_close(&p.heap);
}

/* 3 batches of 4 can't be cut into 4 groups: neither said nor tried. */
static void a_smaller_batch_still_has_its_groups(void **state)
{
    (void)state;
    pl_remedy changes[PL_MAX_REMEDIES];
    static const char text[] = "batch_size = 12\n"
                               "gradient_accumulation_steps = 1\n"
                               "gradient_groups = 4\n"
                               "n_embd = 576\n"
                               "threads = 2\n";
    const size_t count = check_all(text, 1000000000, changes);
    assert_true(count > 0);
    assert_null(find(changes, count, "gradient_accumulation_steps = 3"));
}

static void where_nothing_helps_nothing_is_offered(void **state)
{
    (void)state;
    pl_remedy changes[PL_MAX_REMEDIES];
    assert_int_equal(check_all(story, 1000000, changes), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_fits_as_it_is_written),
        cmocka_unit_test(the_model_is_made_no_smaller_than_it_must),
        cmocka_unit_test(another_layout_comes_before_another_model),
        cmocka_unit_test(a_smaller_batch_is_the_same_run),
        cmocka_unit_test(as_many_groups_as_fit_are_offered),
        cmocka_unit_test(a_smaller_batch_still_has_its_groups),
        cmocka_unit_test(where_nothing_helps_nothing_is_offered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
