/* test_family.c: the defaults that `architecture` sets. */
#include "config/config.h"
#include "config/family.h"
#include "support/asserts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static pl_config cfg;
static pl_heap heap;
static pl_error err;

static int set_up(void **state)
{
    (void)state;
    cfg = pl_config_make_default();
    heap = pl_heap_make(1 << 20);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_heap_close(&heap);
    return 0;
}

static void set(const char *argument)
{
    if (pl_config_override(&cfg, argument, PL_FOR_TRAIN, &heap, &err))
        fail_msg("%s", err.text);
}

static void parse(const char *text)
{
    if (pl_config_parse(&cfg, text, strlen(text), "x.py", &heap, &err))
        fail_msg("%s", err.text);
}

static void assert_origin(pl_key key, const char *want)
{
    char text[64];
    pl_config_origin_text(&cfg, key, text, sizeof text);
    assert_string_equal(text, want);
}

static void a_family_sets_what_nobody_has_set(void **state)
{
    (void)state;
    set("--architecture=llama");
    assert_int_equal(cfg.norm, PL_NORM_RMSNORM);
    assert_true(cfg.norm_eps == 1e-5 && cfg.rope_theta == 10000.0);
    assert_int_equal(cfg.position, PL_POSITION_ROPE);
    assert_int_equal(cfg.mlp, PL_MLP_WORD_SWIGLU);
    assert_false(cfg.qk_norm || cfg.bias || cfg.tie_word_embeddings);
    assert_true(cfg.n_kv_head == PL_NONE && cfg.mlp_hidden == PL_NONE);
    assert_origin(PL_KEY_norm, "architecture 'llama'");
    assert_origin(PL_KEY_architecture, "command line");
    assert_origin(PL_KEY_logit_softcap, "default");
    assert_false(pl_config_was_set(&cfg, PL_KEY_norm));
    assert_true(pl_config_was_set(&cfg, PL_KEY_architecture));
    set("--architecture=qwen3");
    assert_true(cfg.norm_eps == 1e-6 && cfg.rope_theta == 1000000.0);
    assert_true(cfg.qk_norm && cfg.tie_word_embeddings && !cfg.bias);
    assert_origin(PL_KEY_qk_norm, "architecture 'qwen3'");
}

static void a_key_that_was_set_wins_before_and_after(void **state)
{
    (void)state;
    parse("bias = True\nnorm = 'layernorm'\narchitecture = 'llama'\n"
          "mlp = 'gelu'\n");
    assert_true(cfg.bias);
    assert_int_equal(cfg.norm, PL_NORM_LAYERNORM);
    assert_int_equal(cfg.mlp, PL_MLP_WORD_GELU);
    assert_int_equal(cfg.position, PL_POSITION_ROPE);
    assert_origin(PL_KEY_norm, "x.py:2:1");
    set("--architecture=qwen3");
    assert_true(cfg.bias && cfg.qk_norm);
    assert_int_equal(cfg.norm, PL_NORM_LAYERNORM);
    assert_origin(PL_KEY_position, "architecture 'qwen3'");
}

static void the_way_back_leads_to_the_defaults(void **state)
{
    const pl_config standard = pl_config_make_default();
    (void)state;
    set("--architecture=qwen3");
    assert_int_equal(pl_config_difference(&cfg, &standard), PL_EFFECT_MODEL);
    set("--architecture=gpt2");
    for (pl_key key = 0; key < PL_KEY_COUNT; key++) {
        assert_true(pl_config_same_value(&cfg, &standard, key));
        if (pl_family_has(key))
            assert_origin(key, "default");
    }
}

/* Whatever is in the table, its key takes. */
static void every_default_is_one_that_its_key_takes(void **state)
{
    (void)state;
    int rows = 0;
    for (pl_key key = 0; key < PL_KEY_COUNT; key++) {
        if (!pl_family_has(key))
            continue;
        rows++;
        assert_int_equal(pl_key_row(key)->effect, PL_EFFECT_MODEL);
        assert_null(pl_family_default(key, PL_ARCHITECTURE_GPT2));
        for (int family = PL_ARCHITECTURE_LLAMA;
             family <= PL_ARCHITECTURE_QWEN3; family++)
            assert_int_equal(
                pl_config_set(
                    &cfg, key,
                    pl_family_default(key, (pl_architecture_choice)family),
                    (pl_config_origin){ .source = PL_FROM_DEFAULT }, &heap,
                    &err),
                PL_OK);
    }
    assert_int_equal(rows, 8);
}

static void heads_that_can_t_be_shared_are_refused(void **state)
{
    (void)state;
    set("--n_head=6");
    set("--n_kv_head=4");
    assert_int_equal(pl_config_check(&cfg, &err), PL_E_CONFIG);
    assert_contains(err.text, "n_kv_head = 4 (command line) doesn't divide");
    set("--n_kv_head=3");
    assert_int_equal(pl_config_check(&cfg, &err), PL_OK);
    set("--norm_eps=0.0");
    assert_int_equal(pl_config_check(&cfg, &err), PL_E_CONFIG);
    assert_contains(err.text, "norm_eps");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_family_sets_what_nobody_has_set),
        TEST(a_key_that_was_set_wins_before_and_after),
        TEST(the_way_back_leads_to_the_defaults),
        TEST(every_default_is_one_that_its_key_takes),
        TEST(heads_that_can_t_be_shared_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
