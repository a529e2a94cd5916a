/* Tests of model/dial and advise/horizon: what follows from `depth` and
 * `max_minutes`, by hand-computed values, and that nothing which was set is
 * touched. */
#include "advise/horizon.h"
#include "model/dial.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static pl_heap heap;
static pl_error err;

static pl_config read(const char *text)
{
    pl_config config = pl_config_make_default();
    if (pl_config_parse(&config, text, strlen(text), "test", &heap, &err))
        fail_msg("%s in:\n%s", err.text, text);
    return config;
}

static pl_config turn(const char *text, size_t vocab_size)
{
    pl_config config = read(text);
    if (pl_dial_set_model(&config, &err) ||
        pl_dial_set_run(&config, vocab_size, 0.0, PL_FROM_DEPTH, &err) ||
        pl_config_check(&config, &err))
        fail_msg("%s in:\n%s", err.text, text);
    return config;
}

static void check_near(double found, double wanted, double within)
{
    if (!(fabs(found - wanted) <= within * fabs(wanted)))
        fail_msg("%.9g, and %.9g was expected", found, wanted);
}

static void check_origin(const pl_config *config, pl_key key, const char *want)
{
    char text[80];
    pl_config_origin_text(config, key, text, sizeof text);
    assert_string_equal(text, want);
}

/* The model that the rules come from has the numbers that they come from. */
static void the_reference_is_what_was_published(void **state)
{
    (void)state;
    const pl_config c = turn("depth = 12\n", 32768);
    assert_int_equal(c.architecture, PL_ARCHITECTURE_QWEN3);
    assert_int_equal(c.n_layer, 12);
    assert_int_equal(c.n_embd, 768);
    assert_int_equal(c.n_head, 12);
    assert_int_equal(c.optimizer, PL_OPTIMIZER_MUON);
    assert_int_equal(c.schedule, PL_SCHEDULE_WSD);
    assert_int_equal(pl_config_update_tokens(&c), 524288);
    assert_int_equal(c.batch_size, 16);
    assert_int_equal(c.gradient_accumulation_steps, 32);
    check_near(c.learning_rate, 0.008, 1e-12);
    check_near(c.min_lr, 0.0004, 1e-12);
    check_near(c.muon_learning_rate, 0.02, 1e-12);
    /* 12 tokens for each of 110.1 million parameters, norms aside */
    check_near((double)c.max_iters, 12 * 110100480.0 / 524288, 1e-3);
    assert_int_equal(c.max_iters % c.eval_interval, 0);
    assert_int_equal(c.lr_decay_iters, c.max_iters);
    assert_int_equal(c.warmup_iters, 40);
    assert_int_equal(c.eval_interval, c.max_iters / 10);
    check_origin(&c, PL_KEY_max_iters, "depth 12");
    check_origin(&c, PL_KEY_norm, "architecture 'qwen3'");
    check_origin(&c, PL_KEY_dropout, "default");
}

/* 4 blocks of 256 with 8192 tokens: 3.21 + 2.10 million, 63.7 million tokens.
 * A batch of 524288 (63.7 / 1321)^0.383 = 164000 tokens would make 390 updates:
 * a thousandth of the tokens is taken, 128 sequences. Rates by the eighth root
 * of an eighth. */
static void a_small_one_follows_the_rules(void **state)
{
    (void)state;
    const pl_config c = turn("depth = 4\nblock_size = 512\n", 8192);
    assert_int_equal(c.n_embd, 256);
    assert_int_equal(c.n_head, 4);
    assert_int_equal(pl_config_update_tokens(&c), 65536);
    check_near(c.muon_learning_rate, 0.02 * pow(0.125, 0.125), 1e-12);
    check_near(c.learning_rate, 0.008 * pow(0.125, 0.125) * sqrt(3.0), 1e-12);
    check_near((double)c.max_iters, /* 972, less a few */
               12.0 * (4 * (4 * 256 * 256 + 3 * 256 * 704) + 8192 * 256) /
                   65536,
               0.01);
    /* a three-thousandth of them per evaluation and split */
    check_near((double)(c.eval_iters * c.batch_size * 512), 0.003 * 63.7e6,
               0.05);
}

/* Rates are the optimizer's: of GPT-3's smallest model where AdamW has
 * everything, and of updates as large as the spectral ones under 'rms'. */
static void rates_follow_the_optimizer(void **state)
{
    (void)state;
    const char *const lines[] = { "", "muon_scale = 'rms'\n",
                                  "optimizer = 'adamw'\n" };
    static const double adamw[] = { 0.008, 0.008, 0.0006 },
                        muon[] = { 0.02, 0.02 / (0.2 * 27.712812921102035),
                                   0.02 };
    for (int i = 0; i < 3; i++) {
        char text[80];
        snprintf(text, sizeof text, "depth = 12\n%s", lines[i]);
        const pl_config c = turn(text, 32768);
        check_near(c.learning_rate, adamw[i], 1e-12);
        check_near(c.min_lr, adamw[i] / 20, 1e-12);
        check_near(c.muon_learning_rate, muon[i], 1e-12);
    }
    const pl_config small = turn("depth = 4\nblock_size = 512\n"
                                 "optimizer = 'adamw'\n",
                                 8192);
    check_near(small.learning_rate, 0.0006 * pow(0.125, 0.125) * 3.0, 1e-12);
}

/* An untied classifier is counted once, and its token table not at all. */
static void tied_or_not_is_as_long(void **state)
{
    (void)state;
    const pl_config tied = turn("depth = 4\n", 8192),
                    own = turn("depth = 4\ntie_word_embeddings = False\n",
                               8192);
    assert_int_equal(tied.max_iters, own.max_iters);
    assert_int_equal(tied.batch_size, own.batch_size);
}

static void what_is_set_stays_and_is_followed(void **state)
{
    (void)state;
    pl_config c = turn("depth = 4\nn_embd = 200\narchitecture = 'llama'\n"
                       "optimizer = 'adamw'\nbatch_size = 6\n"
                       "learning_rate = 1e-3\nmax_iters = 77\n",
                       8192);
    assert_int_equal(c.n_embd, 200);
    assert_int_equal(c.n_head, 2); /* 3 don't divide it */
    assert_int_equal(c.architecture, PL_ARCHITECTURE_LLAMA);
    assert_int_equal(c.optimizer, PL_OPTIMIZER_ADAMW);
    assert_int_equal(c.batch_size, 6);
    assert_int_equal(c.gradient_accumulation_steps, 5); /* of 32 sequences */
    check_near(c.learning_rate, 1e-3, 0.0);
    check_near(c.min_lr, 5e-5, 1e-12);
    assert_int_equal(c.max_iters, 77);
    assert_int_equal(c.lr_decay_iters, 77);
    assert_int_equal(c.warmup_iters, 7);
    assert_int_equal(c.eval_interval, 7);
    c = turn("depth = 4\ngradient_accumulation_steps = 4\n", 8192);
    assert_int_equal(c.batch_size, 16);
    c = read("n_layer = 3\n"); /* no dial */
    assert_int_equal(pl_dial_set_model(&c, &err), PL_OK);
    assert_int_equal(pl_dial_set_run(&c, 8192, 0.0, PL_FROM_DEPTH, &err),
                     PL_OK);
    assert_int_equal(
        pl_config_difference(&c, &(pl_config[]){ read("n_layer = 3\n") }[0]),
        PL_EFFECT_CALL);
}

/* Every depth gives a config that can run, with heads that divide. */
static void every_depth_works(void **state)
{
    (void)state;
    for (int depth = 1; depth <= 64; depth++) {
        char text[32];
        snprintf(text, sizeof text, "depth = %d\n", depth);
        const pl_config c = turn(text, 50304);
        assert_int_equal(c.n_embd % c.n_head, 0);
        assert_int_equal(c.n_embd / c.n_head, 64);
        assert_true(c.max_iters >= 1 && c.eval_iters <= 200);
    }
}

/* ---- minutes ---- */

static pl_machine some_machine(void)
{
    return (pl_machine){ .budget_bytes = SIZE_MAX,
                         .host_budget_bytes = SIZE_MAX,
                         .rates = { pl_rates_built_in(2), pl_rates_built_in(2),
                                    pl_rates_built_in(2) } };
}

/* The run ends within the time, and some updates more would not: up to ten are
 * left out so that an evaluation stands at the end. */
static void check_horizon(const char *text)
{
    pl_config c = read(text);
    const pl_machine machine = some_machine();
    const pl_log silent = { 0 };
    pl_horizon found;
    pl_run_plan plan;
    if (pl_dial_set_model(&c, &err) ||
        pl_dial_set_run(&c, 1024, 0.0, PL_FROM_DEPTH, &err) ||
        pl_horizon_set(&found, &c, &machine, 1024, &err) ||
        pl_run_plan_make(&plan, &c, &machine, 1024, &silent, &heap, &err))
        fail_msg("%s in:\n%s", err.text, text);
    const double seconds = pl_horizon_run_seconds(&plan, &c, &machine);
    assert_int_equal(c.max_iters, found.updates);
    assert_int_equal(c.lr_decay_iters, found.updates);
    assert_true(seconds <= 60.0 * c.max_minutes * (1.0 + 1e-9));
    assert_true(seconds + 11.0 * found.update_seconds +
                    found.evaluation_seconds >
                60.0 * c.max_minutes);
    check_near(plan.update_seconds, found.update_seconds, 1e-9);
    check_origin(&c, PL_KEY_max_iters, "max_minutes 30");
}

static void minutes_become_updates(void **state)
{
    (void)state;
    check_horizon("max_minutes = 30\nn_layer = 2\nn_head = 2\nn_embd = 64\n"
                  "block_size = 64\nbatch_size = 4\neval_iters = 5\n"
                  "gradient_accumulation_steps = 2\n");
    check_horizon("max_minutes = 30\nn_layer = 2\nn_head = 2\nn_embd = 64\n"
                  "block_size = 64\nbatch_size = 4\neval_iters = 5\n"
                  "gradient_accumulation_steps = 2\neval_interval = 7\n");
    check_horizon("max_minutes = 30\ndepth = 2\nblock_size = 128\n");
}

/* With a dial, the batch is that of the tokens which there is time for. */
static void fewer_tokens_make_a_smaller_batch(void **state)
{
    (void)state;
    const pl_machine machine = some_machine();
    pl_horizon found;
    int64_t sizes[2];
    for (int i = 0; i < 2; i++) {
        pl_config c = read(i ? "depth = 2\nmax_minutes = 1\n"
                             : "depth = 2\nmax_minutes = 600\n");
        assert_int_equal(pl_dial_set_model(&c, &err), PL_OK);
        assert_int_equal(pl_dial_set_run(&c, 1024, 0.0, PL_FROM_DEPTH, &err),
                         PL_OK);
        assert_int_equal(pl_horizon_set(&found, &c, &machine, 1024, &err),
                         PL_OK);
        sizes[i] = pl_config_update_tokens(&c);
    }
    assert_true(sizes[1] < sizes[0]);
}

static void iterations_win_over_minutes(void **state)
{
    (void)state;
    const pl_machine machine = some_machine();
    pl_horizon found;
    pl_config c = read("max_minutes = 30\nmax_iters = 5\n");
    assert_int_equal(pl_horizon_set(&found, &c, &machine, 1024, &err), PL_OK);
    assert_int_equal(found.updates, 0);
    assert_int_equal(c.max_iters, 5);
    assert_int_equal(c.lr_decay_iters, 600000);
}

static void too_short_a_time_is_refused(void **state)
{
    (void)state;
    const pl_machine machine = some_machine();
    pl_horizon found;
    pl_config c = read("max_minutes = 0.001\n");
    assert_int_equal(pl_horizon_set(&found, &c, &machine, 50304, &err),
                     PL_E_CONFIG);
    assert_non_null(strstr(err.text, "max_minutes = 0.001 is too short"));
}

/* ---- going on ---- */

static void a_run_keeps_what_was_settled(void **state)
{
    (void)state;
    const pl_config began = turn("depth = 3\nmax_minutes = 30\nseed = 5\n",
                                 1024);
    pl_config now = read("depth = 3\nmax_minutes = 30\n");
    assert_int_equal(pl_dial_keep(&now, &began, "out/step-5", &err), PL_OK);
    assert_int_equal(now.max_iters, began.max_iters);
    assert_int_equal(now.batch_size, began.batch_size);
    assert_int_equal(now.n_embd, 192);
    assert_int_equal(now.seed, 1337); /* not the dial's business */
    check_near(now.learning_rate, began.learning_rate, 0.0);
    now = read("depth = 4\n");
    assert_int_equal(pl_dial_keep(&now, &began, "out/step-5", &err),
                     PL_E_CONFIG);
    assert_non_null(strstr(err.text, "depth was 3 when the run began, and 4"));
    now = read("depth = 3\nmax_minutes = 31\n");
    assert_int_equal(pl_dial_keep(&now, &began, "out/step-5", &err),
                     PL_E_CONFIG);
    assert_non_null(strstr(err.text, "max_minutes was 30.0 when"));
    now = read("depth = 3\nmax_minutes = 31\nmax_iters = 9\n");
    assert_int_equal(pl_dial_keep(&now, &began, "out/step-5", &err), PL_OK);
    assert_int_equal(now.max_iters, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_is_what_was_published),
        cmocka_unit_test(a_small_one_follows_the_rules),
        cmocka_unit_test(rates_follow_the_optimizer),
        cmocka_unit_test(tied_or_not_is_as_long),
        cmocka_unit_test(what_is_set_stays_and_is_followed),
        cmocka_unit_test(every_depth_works),
        cmocka_unit_test(minutes_become_updates),
        cmocka_unit_test(fewer_tokens_make_a_smaller_batch),
        cmocka_unit_test(iterations_win_over_minutes),
        cmocka_unit_test(too_short_a_time_is_refused),
        cmocka_unit_test(a_run_keeps_what_was_settled),
    };
    heap = pl_heap_make((size_t)1 << 30);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pl_heap_close(&heap);
    return failed;
}
