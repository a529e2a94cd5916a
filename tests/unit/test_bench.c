/* Tests of train/bench: what is measured is all there, and adds up. How fast it
 * is is no matter of tests. */
#include "train/bench.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static pl_heap heap;
static pl_config config;
static pl_machine machine;
static pl_session session;
static pl_bench bench;
static pl_error err;
static const pl_log silent;

static int set_up(void **state)
{
    (void)state;
    heap = pl_heap_make(1 << 26);
    config = pl_config_make_default();
    config.n_layer = 2;
    config.n_head = 2;
    config.n_embd = 24;
    config.block_size = 16;
    config.batch_size = 4;
    config.gradient_accumulation_steps = 6;
    config.gradient_groups = 2;
    config.threads = 2;
    machine = (pl_machine){ .budget_bytes = SIZE_MAX,
                            .rates = { pl_rates_built_in(2),
                                       pl_rates_built_in(2),
                                       pl_rates_built_in(2) } };
    if (pl_session_open_bench(&session, &config, &machine, PL_NEW_RANDOM, 61,
                              &silent, &heap, &err))
        fail_msg("%s", err.text);
    pl_bench_begin(&bench, &session);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_session_close(&session);
    pl_heap_close(&heap);
    return 0;
}

static void the_flops_of_a_token_are_counted(void **state)
{
    (void)state;
    const double N = 12.0 * 2 * 24 * 24 + 61.0 * 24;
    assert_true(pl_bench_eval_flops(&session.run.shape, 16) ==
                2 * N + 2.0 * 2 * 24 * 16);
    assert_true(pl_bench_train_flops(&session.run.shape) ==
                6 * N + 6.0 * 2 * 24 * 16);
    pl_shape wide = session.run.shape; /* attention that isn't C wide */
    wide.D = 10;
    wide.A = wide.H * wide.D;
    const double A = (double)wide.A,
                 own = 2 * (4 * A * 24 + 8 * 24 * 24) + 61.0 * 24;
    assert_true(pl_bench_eval_flops(&wide, 16) == 2 * own + 2.0 * 2 * A * 16);
}

/* All matrices but the positions, and half a window of keys and values. */
static void the_bytes_of_a_token_are_counted(void **state)
{
    (void)state;
    assert_true(pl_bench_sample_bytes(&session.run.gpt) ==
                4 * (12.0 * 2 * 24 * 24 + 61.0 * 24) + 4 * 8 * 2 * 24 * 2);
}

static void rounds_are_kept_but_for_the_first(void **state)
{
    (void)state;
    assert_int_equal(pl_bench_run_round(&bench, &err), PL_OK);
    assert_int_equal(bench.count, 0);
    assert_int_equal(pl_bench_run_round(&bench, &err), PL_OK);
    assert_int_equal(pl_bench_run_round(&bench, &err), PL_OK);
    assert_int_equal(bench.count, 2);
    pl_bench_finish(&bench);
    const pl_bench_round *r = bench.rounds, *m = &bench.median;
    assert_true(m->train_tokens ==
                0.5 * (r[0].train_tokens + r[1].train_tokens));
    for (int i = 0; i < 2; i++) {
        assert_true(r[i].peak_flops > 0 && r[i].read_bytes > 0);
        assert_true(r[i].eval_tokens > 0 && r[i].sample_tokens > 0);
        /* 6 batches of 4 sequences of 16 tokens */
        double tokens = r[i].train_tokens * r[i].update_seconds;
        assert_true(fabs(tokens - 6 * 4 * 16) < 1e-6);
    }
}

static void the_shares_add_up_to_an_update(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pl_bench_run_round(&bench, &err), PL_OK);
    pl_bench_finish(&bench);
    double sum = 0.0, fastest = INFINITY, slowest = 0.0;
    for (int op = 0; op < PL_OP_COUNT; op++)
        sum += bench.op_seconds[op];
    for (int i = 0; i < bench.count; i++) {
        fastest = fmin(fastest, bench.rounds[i].update_seconds);
        slowest = fmax(slowest, bench.rounds[i].update_seconds);
    }
    assert_true(bench.op_seconds[PL_OP_ADD] > 0.0 &&
                bench.op_seconds[PL_OP_MOVE] > 0.0);
    /* between the rounds, less what lies between the steps */
    assert_true(sum > 0.3 * fastest && sum < 1.1 * slowest);
}

static void every_product_of_the_step_is_listed(void **state)
{
    (void)state;
    assert_int_equal(pl_bench_run_round(&bench, &err), PL_OK);
    assert_int_equal(pl_bench_run_round(&bench, &err), PL_OK);
    pl_bench_finish(&bench);
    const pl_program *train = &session.run.gpt.graph.programs[PL_TRAIN];
    size_t steps = 0, listed = 0;
    for (size_t i = 0; i < train->n_steps; i++)
        steps += train->steps[i].op == PL_OP_MATMUL ||
                 train->steps[i].op == PL_OP_MATMUL_T ||
                 train->steps[i].op == PL_OP_MATMUL_DW;
    for (size_t i = 0; i < bench.n_products; i++) {
        listed += bench.products[i].count;
        assert_true(bench.products[i].seconds > 0.0);
        for (size_t k = 0; k < i; k++)
            assert_false(bench.products[i].op == bench.products[k].op &&
                         bench.products[i].rows == bench.products[k].rows &&
                         bench.products[i].cols == bench.products[k].cols &&
                         bench.products[i].inner == bench.products[k].inner);
    }
    assert_int_equal(listed, steps);
    assert_int_equal(pl_machine_rates(&session.machine)->source,
                     PL_RATES_MEASURED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_flops_of_a_token_are_counted),
        TEST(the_bytes_of_a_token_are_counted),
        TEST(rounds_are_kept_but_for_the_first),
        TEST(the_shares_add_up_to_an_update),
        TEST(every_product_of_the_step_is_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
