/* Tests of advise/rankplan: each rank's plan is what that rank would make, and
 * an update's work is the model's. */
#include "advise/rankplan.h"
#include "support/asserts.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char small[] = "n_layer = 3\n"
                            "n_head = 2\n"
                            "n_embd = 128\n"
                            "block_size = 64\n"
                            "batch_size = 4\n"
                            "gradient_accumulation_steps = 8\n"
                            "gradient_groups = 8\n"
                            "threads = 2\n";
enum { V = 1024 };

typedef struct planned {
    pl_heap heap;
    pl_config config;
    pl_machine machine;
    pl_rank_plans plans;
} planned;

static const pl_log silent;
static pl_error err;

static pl_status try_it(planned *p, const char *more, size_t ranks)
{
    const char *parts[] = { small, more };
    p->heap = pl_heap_make((size_t)1 << 30);
    p->config = pl_config_make_default();
    for (int i = 0; i < 2; i++)
        if (pl_config_parse(&p->config, parts[i], strlen(parts[i]), "test",
                            &p->heap, &err))
            fail_msg("%s in:\n%s", err.text, parts[i]);
    p->machine = (pl_machine){ .budget_bytes = SIZE_MAX,
                               .host_budget_bytes = SIZE_MAX,
                               .ranks = ranks,
                               .rates = { pl_rates_built_in(2),
                                          pl_rates_built_in(2),
                                          pl_rates_built_in(2) } };
    return pl_rank_plans_make(&p->plans, &p->config, &p->machine, V, &p->heap,
                              &err);
}

static void plan_it(planned *p, const char *more, size_t ranks)
{
    if (try_it(p, more, ranks))
        fail_msg("%s", err.text);
}

static void each_plan_is_that_of_its_rank(void **state)
{
    static const char *const kinds[] = { "", "optimizer = 'muon'\n",
                                         "optimizer_state = '8bit'\n" };
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        planned p;
        uint64_t moments = 0, total = 0;
        plan_it(&p, kinds[k], 8);
        for (size_t rank = 0; rank < 8; rank++) {
            const pl_rank_bytes *own = &p.plans.each[rank];
            pl_run_plan plan;
            p.machine.rank = rank;
            pl_status status = pl_run_plan_make(&plan, &p.config, &p.machine, V,
                                                &silent, &p.heap, &err);
            assert_int_equal(status, PL_OK);
            assert_int_equal(own->total, plan.total_bytes);
            assert_int_equal(own->weights + own->gradients + own->moments +
                                 own->rest,
                             own->total);
            assert_true(plan.update_seconds <= p.plans.work.compute_seconds);
            assert_true(own->total <=
                        p.plans.each[p.plans.range.largest].total);
            assert_true(own->total >=
                        p.plans.each[p.plans.range.smallest].total);
            moments += own->moments;
            total += own->total;
        }
        assert_int_equal(p.plans.range.all.total, total);
        assert_int_equal(p.plans.range.all.moments, moments);
        if (k == 0) /* whose slices are even, and need no padding */
            assert_int_equal(moments, p.plans.one.moments);
        assert_true(p.plans.one.gradients ==
                    4 * p.plans.each[0].gradients); /* 1 + log2 8 */
        pl_heap_close(&p.heap);
    }
}

/* Ranks share an evaluation: each keeps what is found of all sequences. */
static void evaluations_are_counted(void **state)
{
    planned few, many;
    (void)state;
    const uint64_t more = (uint64_t)(60000 - 1) * 64 * 24;
    plan_it(&few, "eval_iters = 1\neval_batch_size = 64\n", 4);
    plan_it(&many, "eval_iters = 60000\neval_batch_size = 64\n", 4);
    for (size_t rank = 0; rank < 4; rank++)
        assert_int_equal(many.plans.each[rank].total,
                         few.plans.each[rank].total + more);
    assert_int_equal(many.plans.one.total, few.plans.one.total);
    pl_heap_close(&few.heap);
    pl_heap_close(&many.heap);
}

/* Blocks but the first travel early; the tables, tied or not, come last. */
static void work_is_what_the_model_has(void **state)
{
    planned p;
    (void)state;
    const double C = 128.0, block = 12.0 * C * C + 13.0 * C,
                 tables = V * C + 64.0 * C, last = 2.0 * C;
    plan_it(&p, "bias = True\n", 4);
    assert_true(p.plans.work.early_bytes == 4.0 * (2.0 * block + last));
    assert_true(p.plans.work.late_bytes == 4.0 * (block + tables));
    assert_true(p.plans.work.weight_bytes ==
                4.0 * (3.0 * block + tables + last));
    assert_true(p.plans.work.uneven >= 1.0 && p.plans.work.uneven < 1.1);
    assert_true(p.plans.work.add_seconds > 0.0);
    assert_true(p.plans.work.all_seconds > 0.0);
    /* two groups each, which are added first */
    assert_true(p.plans.work.backward_seconds == 0.0);
    pl_heap_close(&p.heap);
    plan_it(&p, "bias = True\ntie_word_embeddings = False\nweights = 'bf16'\n",
            8);
    assert_true(p.plans.work.early_bytes == 4.0 * (2.0 * block + last + V * C));
    assert_true(p.plans.work.late_bytes == 4.0 * (block + tables));
    assert_true(p.plans.work.weight_bytes <
                0.52 * (p.plans.work.early_bytes + p.plans.work.late_bytes));
    assert_true(p.plans.work.backward_seconds > 0.0 &&
                p.plans.work.backward_seconds < p.plans.work.compute_seconds);
    pl_heap_close(&p.heap);
}

/* A card is told what to do, and isn't done with it then. */
static void a_card_sends_after_its_backward_pass(void **state)
{
    planned p;
    (void)state;
    plan_it(&p, "device = 'cpu'\n", 8);
    assert_true(p.plans.work.backward_seconds > 0.0);
    pl_heap_close(&p.heap);
    plan_it(&p, "gpu = 'RTX 4090'\n", 8);
    assert_true(p.plans.work.backward_seconds == 0.0);
    assert_true(p.plans.work.early_bytes > 0.0);
    pl_heap_close(&p.heap);
}

/* Each updates all weights, sends once in five updates what one update sends,
 * and is compared with a machine that makes the whole update. */
static void workers_meet_once_in_their_interval(void **state)
{
    const pl_network slow = { .bytes_per_second = 1e6,
                              .latency_seconds = 0.01 };
    planned p, shared;
    (void)state;
    plan_it(&p, "sync_interval = 5\n", 8);
    plan_it(&shared, "", 8);
    const pl_rank_plans *plans = &p.plans;
    const pl_network_work *work = &plans->work;
    const pl_network_times t = pl_rank_plans_times(plans, &slow),
                           of_shared = pl_rank_plans_times(&shared.plans,
                                                           &slow);
    assert_int_equal(plans->interval, 5);
    assert_int_equal(shared.plans.interval, 1);
    assert_true(plans->one_seconds == shared.plans.one_seconds);
    assert_memory_equal(&plans->one, &shared.plans.one, sizeof plans->one);
    assert_true(work->all_seconds == 0.0 && work->backward_seconds == 0.0);
    assert_true(work->compute_seconds > shared.plans.work.compute_seconds);
    assert_true(work->compute_seconds < plans->one_seconds);
    assert_true(t.compute > work->compute_seconds && t.hidden == 0.0);
    assert_true(of_shared.hidden > 0.0);
    const double all = of_shared.waiting + of_shared.hidden;
    assert_true(fabs(5.0 * t.waiting - all) < 1e-9 * all);
    assert_true(pl_network_efficiency(&t, 8, plans->one_seconds) < 1.0);
    for (size_t rank = 0; rank < 8; rank++)
        assert_true(plans->each[rank].moments >= plans->one.moments);
    pl_heap_close(&p.heap);
    pl_heap_close(&shared.heap);
    assert_int_equal(try_it(&p, "sync_interval = 5\n", 4), PL_E_CONFIG);
    assert_non_null(strstr(err.text,
                           "4 processes were started, sync_interval = 5 and "
                           "gradient_groups = 8"));
    pl_heap_close(&p.heap);
}

/* All of the moments, and an eighth of two more copies of the model. */
static void diloco_keeps_all_moments(void **state)
{
    planned p;
    (void)state;
    plan_it(&p, "", 8);
    const pl_rank_bytes *most = &p.plans.each[p.plans.range.largest];
    const double model = p.plans.work.early_bytes + p.plans.work.late_bytes;
    const uint64_t found = pl_rank_plans_diloco_bytes(&p.plans);
    assert_true(fabs((double)(found - most->total + most->moments -
                              p.plans.one.moments) -
                     model / 4.0) < 1.0);
    pl_heap_close(&p.heap);
}

static void so_many_cannot_share_it(void **state)
{
    planned p;
    (void)state;
    assert_int_equal(try_it(&p, "", 3), PL_E_CONFIG);
    assert_non_null(strstr(err.text, "a power of two of them can"));
    pl_heap_close(&p.heap);
    assert_int_equal(try_it(&p, "", 16), PL_E_CONFIG);
    assert_non_null(strstr(err.text, "With --gradient_groups=16 the run"));
    pl_heap_close(&p.heap);
}

static void one_rank_is_one_machine(void **state)
{
    planned p;
    (void)state;
    plan_it(&p, "", 1);
    assert_memory_equal(&p.plans.each[0], &p.plans.one, sizeof p.plans.one);
    assert_true(p.plans.work.compute_seconds == p.plans.one_seconds);
    pl_heap_close(&p.heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_plan_is_that_of_its_rank),
        cmocka_unit_test(evaluations_are_counted),
        cmocka_unit_test(work_is_what_the_model_has),
        cmocka_unit_test(a_card_sends_after_its_backward_pass),
        cmocka_unit_test(workers_meet_once_in_their_interval),
        cmocka_unit_test(diloco_keeps_all_moments),
        cmocka_unit_test(so_many_cannot_share_it),
        cmocka_unit_test(one_rank_is_one_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
