#include "model/from_config.h"
#include "model/params.h"
#include "support/asserts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static pl_config cfg;
static pl_shape shape;
static pl_error err;
static int notes;
static char note[4096];

static void listen(void *context, pl_log_level level, const char *text)
{
    (void)context;
    assert_int_equal(level, PL_LOG_NOTE);
    notes++;
    snprintf(note, sizeof note, "%s", text);
}

static const pl_log ear = { listen, NULL };

static int set_up(void **state)
{
    (void)state;
    cfg = pl_config_make_default();
    memset(&shape, 0xFF, sizeof shape);
    memset(&err, 0, sizeof err);
    notes = 0;
    return 0;
}

static void make(void)
{
    if (pl_shape_make(&shape, &cfg, PL_VOCAB_GPT2, &ear, &err))
        fail_msg("%s", err.text);
}

static void make_wide(int64_t n_embd, int64_t n_head)
{
    cfg.n_embd = n_embd;
    cfg.n_head = n_head;
    make();
}

static void the_defaults_are_gpt2(void **state)
{
    (void)state;
    make();
    assert_int_equal(shape.L, 12);
    assert_int_equal(shape.H, 12);
    assert_int_equal(shape.C, 768);
    assert_int_equal(shape.D, 64);
    assert_int_equal(shape.A, 768);
    assert_int_equal(shape.V, 50304);
    assert_int_equal(shape.T, 1024);
    assert_int_equal(shape.bias, PL_BIAS_NONE);
    assert_int_equal(shape.activation, PL_ACT_GELU);
    assert_int_equal(notes, 0);
}

static void every_key_reaches_the_shape(void **state)
{
    (void)state;
    cfg.n_layer = 3;
    cfg.n_head = 5;
    cfg.n_embd = 35;
    cfg.block_size = 17;
    cfg.bias = true;
    cfg.activation = PL_ACTIVATION_GELU_TANH;
    cfg.vocab_size = 60000;
    make();
    assert_int_equal(shape.L, 3);
    assert_int_equal(shape.H, 5);
    assert_int_equal(shape.C, 35);
    assert_int_equal(shape.D, 7); /* whole, so it stays odd */
    assert_int_equal(shape.A, 35);
    assert_int_equal(shape.V, 60000);
    assert_int_equal(shape.T, 17);
    assert_int_equal(shape.bias, PL_BIAS_ALL);
    assert_int_equal(shape.activation, PL_ACT_GELU_TANH);
    assert_int_equal(notes, 0);
}

static void heads_that_do_not_divide_get_the_nearest_even_width(void **state)
{
    (void)state;
    static const struct {
        int64_t n_embd, n_head;
        size_t head_dim;
    } cases[] = {
        { 512, 12, 42 }, /* 42.67 */
        { 448, 12, 38 }, /* 37.33 */
        { 100, 3, 34 },  /* 33.33 */
        { 101, 3, 34 },  /* 33.67 */
        { 10, 4, 2 },    /* 2.5 */
        { 14, 4, 4 },    /* 3.5 */
        { 3, 2, 2 },     /* 1.5 */
        { 5, 6, 2 },     /* less than one: the least there is */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        notes = 0;
        make_wide(cases[i].n_embd, cases[i].n_head);
        assert_int_equal(shape.D, cases[i].head_dim);
        assert_int_equal(shape.A, cases[i].head_dim * (size_t)cases[i].n_head);
        assert_int_equal(shape.C, cases[i].n_embd);
        assert_int_equal(notes, 1);
    }
}

static void such_heads_are_said_once_with_what_would_divide(void **state)
{
    (void)state;
    char count[64];
    make_wide(512, 12);
    assert_int_equal(notes, 1);
    assert_contains(note, "n_embd 512 / n_head 12 is not whole");
    assert_contains(note, "heads are 42 wide, attention is 504 wide");
    assert_contains(note, "63844864 parameters");
    assert_contains(note, "n_head = 8 divides 512 (head_dim 64): "
                          "64041472 parameters");
    assert_contains(note, "will refuse this model");
    assert_int_equal(pl_param_count(&shape), 63844864);

    make_wide(448, 12);
    assert_int_equal(notes, 2);
    assert_contains(note, "heads are 38 wide, attention is 456 wide");
    assert_contains(note, "n_head = 8 divides 448 (head_dim 56)");
    snprintf(count, sizeof count, "%zu parameters", pl_param_count(&shape));
    assert_contains(note, count);
    pl_shape divided = shape;
    divided.H = divided.KV = 8;
    divided.D = 56;
    divided.A = 448;
    snprintf(count, sizeof count, "%zu parameters", pl_param_count(&divided));
    assert_contains(note, count);
}

static void no_advice_is_given_where_there_is_none(void **state)
{
    (void)state;
    make_wide(101, 3); /* prime and odd: no even width divides it */
    assert_int_equal(notes, 1);
    assert_null(strstr(note, "divides"));
}

static void a_width_that_was_asked_for_is_taken_silently(void **state)
{
    (void)state;
    cfg.head_dim = 40;
    make_wide(512, 12);
    assert_int_equal(shape.D, 40);
    assert_int_equal(shape.A, 480);
    make_wide(768, 12);
    assert_int_equal(shape.D, 40);
    assert_int_equal(notes, 0);
}

static void nobody_has_to_listen(void **state)
{
    (void)state;
    cfg.n_embd = 512;
    assert_int_equal(pl_shape_make(&shape, &cfg, 100, NULL, &err), PL_OK);
    assert_int_equal(shape.D, 42);
}

static void the_vocabulary_is_the_tokenizers_or_a_larger_one(void **state)
{
    (void)state;
    assert_int_equal(pl_shape_make(&shape, &cfg, 65, &ear, &err), PL_OK);
    assert_int_equal(shape.V, 65);
    cfg.vocab_size = 65;
    assert_int_equal(pl_shape_make(&shape, &cfg, 65, &ear, &err), PL_OK);
    assert_int_equal(shape.V, 65);
    cfg.vocab_size = 128;
    assert_int_equal(pl_shape_make(&shape, &cfg, 65, &ear, &err), PL_OK);
    assert_int_equal(shape.V, 128);
}

static void a_vocabulary_below_the_tokenizers_is_refused(void **state)
{
    (void)state;
    cfg.vocab_size = 64;
    assert_int_equal(pl_shape_make(&shape, &cfg, 65, &ear, &err), PL_E_CONFIG);
    assert_contains(err.text, "vocab_size = 64 is less than the tokenizer's "
                              "65: set it to 65 or more, or leave it out");
}

static void attention_of_absurd_width_is_refused(void **state)
{
    (void)state;
    cfg.n_head = 1 << 20;
    cfg.head_dim = 1 << 24;
    assert_int_equal(pl_shape_make(&shape, &cfg, 65, &ear, &err), PL_E_CONFIG);
    assert_contains(err.text, "n_head 1048576 x head_dim 16777216");
    cfg.n_head = 1 << 8;
    cfg.head_dim = 1 << 20;
    assert_int_equal(pl_shape_make(&shape, &cfg, 65, &ear, &err), PL_OK);
}

/* ---- the table ---- */

static void the_table_s_words_are_what_its_keys_take(void **state)
{
    (void)state;
    for (int i = 0; i < PL_SHAPE_FIELDS; i++) {
        const pl_shape_info *row = pl_shape_row((pl_shape_field)i);
        const char *const *words = row->words;
        size_t count = 0;
        while (count < PL_SHAPE_MAX_WORDS && words[count])
            count++;
        assert_int_equal(pl_shape_find(row->key), i);
        switch (row->kind) {
        case PL_SHAPE_SIZE:
        case PL_SHAPE_REAL:
            assert_int_equal(count, 0);
            break;
        case PL_SHAPE_FLAG:
            assert_int_equal(count, 2);
            break;
        case PL_SHAPE_CHOICE:
            for (size_t w = 0; w < count; w++)
                assert_string_equal(pl_key_row(row->key)->choices[w], words[w]);
            assert_null(pl_key_row(row->key)->choices[count]);
            break;
        }
    }
}

static void a_field_is_its_key_s_value_and_back(void **state)
{
    (void)state;
    make();
    for (int i = 0; i < PL_SHAPE_FIELDS; i++) {
        pl_shape_field field = (pl_shape_field)i;
        const pl_shape_info *row = pl_shape_row(field);
        pl_shape other = shape;
        pl_value value = pl_shape_value(&shape, field);
        pl_value held = pl_config_get(&cfg, row->key);
        if (held.kind != PL_VALUE_NONE)
            assert_int_equal(value.kind, held.kind);
        const double number = pl_shape_number(&shape, field);
        pl_shape_set(&other, field, number > 0.0 ? 0.0 : 1.0);
        assert_false(pl_shape_number(&other, field) == number);
        pl_shape_assign(&other, field, &value);
        assert_true(pl_shape_number(&other, field) == number);
    }
    assert_int_equal(pl_shape_find(PL_KEY_dropout), PL_SHAPE_FIELDS);
}

static void what_gpt2_can_t_say_is_named(void **state)
{
    (void)state;
    cfg.bias = true;
    cfg.tie_word_embeddings = false;
    make();
    assert_int_equal(pl_shape_not_gpt2(&shape), PL_SHAPE_FIELDS);
    cfg.head_dim = 40;
    make();
    assert_int_equal(pl_shape_not_gpt2(&shape), PL_SHAPE_D);
    shape.norm = PL_NORM_RMS; /* before the heads: these alone are a GPT-2's */
    assert_int_equal(pl_shape_not_gpt2(&shape), PL_SHAPE_norm);
}

static void a_family_s_own_models_are_no_strangers(void **state)
{
    (void)state;
    const pl_value llama = pl_value_text("llama"),
                   qwen3 = pl_value_text("qwen3");
    const pl_config_origin origin = { PL_FROM_COMMAND_LINE, NULL, 0, 0 };
    assert_int_equal(
        pl_config_set(&cfg, PL_KEY_architecture, &llama, origin, NULL, &err),
        PL_OK);
    cfg.n_kv_head = 4;
    make();
    assert_int_equal(notes, 0);
    assert_int_equal(shape.family, PL_FAMILY_LLAMA);
    assert_int_equal(shape.KV, 4);
    assert_int_equal(shape.F, 2048); /* 8/3 of 768 */
    assert_int_equal(pl_shape_stranger(&shape), PL_SHAPE_FIELDS);
    assert_int_equal(pl_shape_not_gpt2(&shape), PL_SHAPE_norm);
    shape.bias = PL_BIAS_ALL; /* transformers' Llama may have them */
    assert_int_equal(pl_shape_stranger(&shape), PL_SHAPE_FIELDS);
    cfg.qk_norm = true;
    make();
    assert_int_equal(notes, 1);
    assert_contains(note, "family llama has no qk_norm = True");
    assert_int_equal(pl_shape_stranger(&shape), PL_SHAPE_qk_norm);
    cfg.qk_norm = false;
    assert_int_equal(
        pl_config_set(&cfg, PL_KEY_architecture, &qwen3, origin, NULL, &err),
        PL_OK);
    make();
    assert_int_equal(pl_shape_stranger(&shape), PL_SHAPE_FIELDS);
    shape.logit_softcap = 30;
    assert_int_equal(pl_shape_stranger(&shape), PL_SHAPE_logit_softcap);
}

static void a_gpt2_with_other_parts_is_named(void **state)
{
    (void)state;
    cfg.mlp = PL_MLP_WORD_RELU2;
    make();
    assert_int_equal(notes, 1);
    assert_contains(note, "family gpt2 has no mlp = 'relu2': only");
    assert_int_equal(shape.F, 4 * 768);
}

/* In one sentence, heads that are as wide as they like among them. */
static void all_that_belongs_to_no_family_is_named(void **state)
{
    (void)state;
    const pl_value llama = pl_value_text("llama");
    const pl_config_origin origin = { PL_FROM_COMMAND_LINE, NULL, 0, 0 };
    cfg.mlp = PL_MLP_WORD_RELU2;
    cfg.logit_softcap = 30.0;
    make();
    assert_int_equal(notes, 1);
    assert_contains(note, "family gpt2 has no mlp = 'relu2' or logit_softcap "
                          "= 30.0: only Plimsoll loads this one");
    cfg.qk_norm = true;
    cfg.head_dim = 40;
    notes = 0;
    make();
    assert_int_equal(notes, 1);
    assert_contains(note,
                    "family gpt2 has no mlp = 'relu2', qk_norm = True, "
                    "logit_softcap = 30.0 or head_dim = 40 (n_embd 768, n_head "
                    "12): only Plimsoll loads this one");
    /* whose files say how wide heads are, but n_head must divide n_embd */
    cfg = pl_config_make_default();
    assert_int_equal(
        pl_config_set(&cfg, PL_KEY_architecture, &llama, origin, NULL, &err),
        PL_OK);
    cfg.head_dim = 40;
    notes = 0;
    make();
    assert_int_equal(notes, 0);
    cfg.n_embd = 770;
    notes = 0;
    make();
    assert_int_equal(notes, 1);
    assert_contains(note, "family llama has no head_dim = 40 (n_embd 770, "
                          "n_head 12): only");
}

static void there_is_room_to_name_everything(void **state)
{
    (void)state;
    char text[PL_SHAPE_STRANGERS_BYTES];
    pl_shape_field fields[PL_SHAPE_FIELDS];
    make();
    shape.D = shape.A = (size_t)1 << 27;
    shape.KV = shape.F = (size_t)1 << 27;
    shape.norm = PL_NORM_RMS;
    shape.position = PL_POSITION_ROTARY;
    shape.mlp = PL_MLP_SWIGLU;
    shape.qk_norm = PL_QK_NORM_RMS;
    shape.logit_softcap = 1.2345678901234567e-5;
    assert_int_equal(pl_shape_strangers(&shape, fields), 8);
    assert_int_equal(fields[7], PL_SHAPE_D);
    pl_shape_strangers_text(&shape, text);
    assert_contains(text, "norm = 'rmsnorm', n_kv_head = 134217728, ");
    assert_contains(text, " or head_dim = 134217728 (n_embd 768, n_head 12)");
}

static void odd_heads_can_t_be_rotated(void **state)
{
    (void)state;
    cfg.position = PL_POSITION_ROPE;
    cfg.n_embd = 35;
    cfg.n_head = 7;
    assert_int_equal(pl_shape_make(&shape, &cfg, 65, &ear, &err), PL_E_CONFIG);
    assert_contains(err.text, "heads are 5 wide");
    cfg.head_dim = 6;
    assert_int_equal(pl_shape_make(&shape, &cfg, 65, &ear, &err), PL_OK);
}

static void the_mlp_s_width_follows_a_rule(void **state)
{
    (void)state;
    static const struct {
        size_t C, hidden;
    } cases[] = { { 1, 64 },     { 24, 64 },     { 36, 128 },  { 128, 320 },
                  { 576, 1536 }, { 1024, 2752 }, { 768, 2048 } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pl_shape s = { .C = cases[i].C, .mlp = PL_MLP_SWIGLU };
        assert_int_equal(pl_shape_hidden(&s), cases[i].hidden);
        s.mlp = PL_MLP_RELU2;
        assert_int_equal(pl_shape_hidden(&s), 4 * cases[i].C);
    }
}

static void dimensions_are_those_of_the_shape(void **state)
{
    (void)state;
    cfg.head_dim = 10;
    make_wide(48, 4);
    static const struct {
        pl_dim dim;
        size_t size;
    } cases[] = { { PL_DIM_1, 1 },     { PL_DIM_V, PL_VOCAB_GPT2 },
                  { PL_DIM_T, 1024 },  { PL_DIM_C, 48 },
                  { PL_DIM_H, 4 },     { PL_DIM_A, 40 },
                  { PL_DIM_QKV, 120 }, { PL_DIM_MLP, 192 },
                  { PL_DIM_STATS, 2 }, { PL_DIM_D, 10 },
                  { PL_DIM_KV, 40 },   { PL_DIM_HEADS, 8 },
                  { PL_DIM_FC, 192 },  { PL_DIM_GATE, 0 } };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(pl_dim_size(&shape, cases[i].dim), cases[i].size);
    shape.norm = PL_NORM_RMS; /* has no mean to keep */
    assert_int_equal(pl_dim_size(&shape, PL_DIM_STATS), 1);
    shape.KV = 2;
    shape.mlp = PL_MLP_SWIGLU;
    assert_int_equal(pl_dim_size(&shape, PL_DIM_QKV), 80);
    assert_int_equal(pl_dim_size(&shape, PL_DIM_HEADS), 6);
    assert_int_equal(pl_dim_size(&shape, PL_DIM_FC), 384);
    assert_int_equal(pl_dim_size(&shape, PL_DIM_GATE), 192);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_defaults_are_gpt2),
        TEST(every_key_reaches_the_shape),
        TEST(heads_that_do_not_divide_get_the_nearest_even_width),
        TEST(such_heads_are_said_once_with_what_would_divide),
        TEST(no_advice_is_given_where_there_is_none),
        TEST(a_width_that_was_asked_for_is_taken_silently),
        TEST(nobody_has_to_listen),
        TEST(the_vocabulary_is_the_tokenizers_or_a_larger_one),
        TEST(a_vocabulary_below_the_tokenizers_is_refused),
        TEST(attention_of_absurd_width_is_refused),
        TEST(the_table_s_words_are_what_its_keys_take),
        TEST(a_field_is_its_key_s_value_and_back),
        TEST(what_gpt2_can_t_say_is_named),
        TEST(a_family_s_own_models_are_no_strangers),
        TEST(a_gpt2_with_other_parts_is_named),
        TEST(all_that_belongs_to_no_family_is_named),
        TEST(there_is_room_to_name_everything),
        TEST(odd_heads_can_t_be_rotated),
        TEST(the_mlp_s_width_follows_a_rule),
        TEST(dimensions_are_those_of_the_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
