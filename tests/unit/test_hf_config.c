/* Tests of store/hf_config: the config.json of three families, theirs and
 * ours. */
#include "config/config.h"
#include "store/hf_config.h"
#include "support/asserts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char openai[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 12, \"n_head\": 12, \"n_embd\": "
    "768, \"vocab_size\": 50257, \"n_positions\": 1024, \"n_ctx\": 1024, "
    "\"activation_function\": \"gelu_new\", \"layer_norm_epsilon\": 1e-05, "
    "\"attn_pdrop\": 0.1, \"task_specific_params\": {\"x\": []}}";

/* As SmolLM2-135M is published. */
static const char smollm2[] =
    "{\"architectures\": [\"LlamaForCausalLM\"], \"attention_bias\": false, "
    "\"attention_dropout\": 0.0, \"bos_token_id\": 0, \"eos_token_id\": 0, "
    "\"hidden_act\": \"silu\", \"hidden_size\": 576, \"initializer_range\": "
    "0.041666666666666664, \"intermediate_size\": 1536, \"is_llama_config\": "
    "true, \"max_position_embeddings\": 8192, \"model_type\": \"llama\", "
    "\"num_attention_heads\": 9, \"num_hidden_layers\": 30, "
    "\"num_key_value_heads\": 3, \"pretraining_tp\": 1, \"rms_norm_eps\": "
    "1e-05, \"rope_interleaved\": false, \"rope_scaling\": null, "
    "\"rope_theta\": 100000, \"tie_word_embeddings\": true, \"torch_dtype\": "
    "\"bfloat16\", \"use_cache\": true, \"vocab_size\": 49152}";

/* As Qwen3-0.6B is published. */
static const char qwen3[] =
    "{\"architectures\": [\"Qwen3ForCausalLM\"], \"attention_bias\": false, "
    "\"attention_dropout\": 0.0, \"bos_token_id\": 151643, \"eos_token_id\": "
    "151645, \"head_dim\": 128, \"hidden_act\": \"silu\", \"hidden_size\": "
    "1024, \"intermediate_size\": 3072, \"max_position_embeddings\": 40960, "
    "\"max_window_layers\": 28, \"model_type\": \"qwen3\", "
    "\"num_attention_heads\": 16, \"num_hidden_layers\": 28, "
    "\"num_key_value_heads\": 8, \"rms_norm_eps\": 1e-06, \"rope_scaling\": "
    "null, \"rope_theta\": 1000000, \"sliding_window\": null, "
    "\"tie_word_embeddings\": true, \"use_sliding_window\": false, "
    "\"vocab_size\": 151936}";

static pl_error err;

static pl_hf_config parsed(const char *text)
{
    pl_hf_config config;
    if (pl_hf_config_parse(&config, text, strlen(text), "config.json", &err))
        fail_msg("%s", err.text);
    return config;
}

/* `text` with its first `before` replaced. */
static const char *changed(const char *text, const char *before,
                           const char *after)
{
    static char other[2048];
    const char *at = strstr(text, before);
    assert_non_null(at);
    snprintf(other, sizeof other, "%.*s%s%s", (int)(at - text), text, after,
             at + strlen(before));
    return other;
}

static void openai_s_config_is_read(void **state)
{
    (void)state;
    const pl_hf_config config = parsed(openai);
    const pl_shape s = config.shape;
    assert_true(s.norm_eps == 1e-5 && config.dropout == 0.1);
    assert_int_equal(config.end_token, -1);
    assert_int_equal(s.family, PL_FAMILY_GPT2);
    assert_int_equal(s.head, PL_HEAD_TIED);
    assert_int_equal(s.L, 12);
    assert_int_equal(s.H, 12);
    assert_int_equal(s.C, 768);
    assert_int_equal(s.D, 64);
    assert_int_equal(s.A, 768);
    assert_int_equal(s.V, 50257);
    assert_int_equal(s.T, 1024);
    assert_int_equal(s.bias, PL_BIAS_ALL);
    assert_int_equal(s.activation, PL_ACT_GELU_TANH);
}

static void smollm2_s_config_is_read(void **state)
{
    (void)state;
    const pl_hf_config config = parsed(smollm2);
    const pl_shape s = config.shape;
    assert_int_equal(s.family, PL_FAMILY_LLAMA);
    assert_int_equal(s.L, 30);
    assert_int_equal(s.H, 9);
    assert_int_equal(s.KV, 3);
    assert_int_equal(s.C, 576);
    assert_int_equal(s.D, 64);
    assert_int_equal(s.F, 1536);
    assert_int_equal(s.V, 49152);
    assert_int_equal(s.T, 8192);
    assert_int_equal(s.head, PL_HEAD_TIED);
    assert_int_equal(s.bias, PL_BIAS_NONE);
    assert_int_equal(s.norm, PL_NORM_RMS);
    assert_int_equal(s.position, PL_POSITION_ROTARY);
    assert_int_equal(s.mlp, PL_MLP_SWIGLU);
    assert_int_equal(s.qk_norm, PL_QK_NORM_NONE);
    assert_true(s.norm_eps == 1e-5 && s.rope_theta == 100000.0);
    assert_int_equal(config.end_token, 0);
    assert_true(config.dropout == 0.0);
    assert_int_equal(pl_shape_stranger(&s), PL_SHAPE_FIELDS);
}

static void qwen3_s_config_is_read(void **state)
{
    (void)state;
    const pl_hf_config config = parsed(qwen3);
    const pl_shape s = config.shape;
    assert_int_equal(s.family, PL_FAMILY_QWEN3);
    assert_int_equal(s.D, 128);
    assert_int_equal(s.A, 2048);
    assert_int_equal(s.KV, 8);
    assert_int_equal(s.T, 40960);
    assert_int_equal(s.qk_norm, PL_QK_NORM_RMS);
    assert_true(s.norm_eps == 1e-6 && s.rope_theta == 1e6);
    assert_int_equal(config.end_token, 151645);
    assert_int_equal(pl_shape_stranger(&s), PL_SHAPE_FIELDS);
}

/* Each line is another way to say, or not to say, the same. */
static void what_is_absent_is_as_in_their_classes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *before, *after;
        pl_shape_field field;
        double value;
    } cases[] = {
        { smollm2, "\"rope_theta\": 100000",
          "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": "
          "5e5}",
          PL_SHAPE_rope_theta, 5e5 },
        { smollm2, "\"rope_scaling\": null",
          "\"rope_parameters\": {\"rope_theta\": 100000.0}",
          PL_SHAPE_rope_theta, 1e5 },
        { smollm2, "\"rope_scaling\": null",
          "\"rope_scaling\": {\"type\": \"default\"}", PL_SHAPE_rope_theta,
          1e5 },
        { smollm2, "\"rope_theta\": 100000", "\"x\": 1", PL_SHAPE_rope_theta,
          1e4 },
        { smollm2, "\"rms_norm_eps\": 1e-05", "\"x\": 1", PL_SHAPE_norm_eps,
          1e-6 },
        { smollm2, "\"num_key_value_heads\": 3", "\"x\": 1", PL_SHAPE_KV, 9 },
        { smollm2, "\"tie_word_embeddings\": true", "\"x\": 1", PL_SHAPE_head,
          PL_HEAD_OWN },
        { smollm2, "\"max_position_embeddings\": 8192", "\"x\": 1", PL_SHAPE_T,
          2048 },
        { smollm2, "\"attention_bias\": false",
          "\"attention_bias\": true, \"mlp_bias\": true", PL_SHAPE_bias,
          PL_BIAS_ALL },
        { smollm2, "\"silu\"", "\"swish\"", PL_SHAPE_mlp, PL_MLP_SWIGLU },
        { qwen3, "\"head_dim\": 128", "\"x\": 1", PL_SHAPE_D, 128 },
        { qwen3, "\"max_position_embeddings\": 40960", "\"x\": 1", PL_SHAPE_T,
          32768 },
        { qwen3, "\"sliding_window\": null", "\"sliding_window\": 4096",
          PL_SHAPE_T, 40960 }, /* not used: it says so */
        { qwen3, "\"max_window_layers\": 28",
          "\"layer_types\": [\"full_attention\", \"full_attention\"]",
          PL_SHAPE_L, 28 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const pl_hf_config config = parsed(
            changed(cases[i].text, cases[i].before, cases[i].after));
        if (pl_shape_number(&config.shape, cases[i].field) != cases[i].value)
            fail_msg("%s: %g", cases[i].after,
                     pl_shape_number(&config.shape, cases[i].field));
    }
    const pl_hf_config several = parsed(
        changed(smollm2, "\"eos_token_id\": 0", "\"eos_token_id\": [17, 18]"));
    assert_int_equal(several.end_token, 17);
}

static void what_is_not_computed_is_refused_by_its_entry(void **state)
{
    (void)state;
    static const struct {
        const char *text, *before, *after;
        const char *words; /* entry, found and expected, as far as they are */
    } cases[] = {
        { openai, "\"gpt2\"", "\"qwen2\"", "\"model_type\" is \"qwen2\"" },
        { openai, "\"gelu_new\"", "\"relu\"",
          "\"activation_function\" is \"relu\"" },
        { openai, "\"n_head\": 12", "\"n_head\": 7", "does not divide" },
        { openai, "\"n_layer\": 12", "\"n_layer\": 0", "n_layer" },
        { openai, "\"n_layer\": 12", "\"n_layer\": -12", "n_layer" },
        { openai, "\"n_embd\": 768", "\"n_embd\": 768.5", "n_embd" },
        { openai, "\"n_embd\": 768", "\"n_embd\": 99999999999", "n_embd" },
        { openai, "\"n_ctx\": 1024", "\"n_inner\": 1024",
          "\"n_inner\" is 1024, which Plimsoll doesn't compute. Expected null "
          "or 4 x n_embd" },
        { openai, "1e-05", "1.5", "layer_norm_epsilon" },
        { openai, "1e-05", "\"small\"", "layer_norm_epsilon" },
        { openai, "\"n_ctx\": 1024", "\"scale_attn_weights\": false",
          "\"scale_attn_weights\" is false, which Plimsoll doesn't compute. "
          "Expected true" },
        { openai, "\"n_ctx\": 1024",
          "\"scale_attn_by_inverse_layer_idx\": true", "inverse_layer" },
        { openai, "\"n_ctx\": 1024", "\"add_cross_attention\": true", "cross" },
        { openai, "{\"model", "[\"model", "JSON" },
        { smollm2, "\"silu\"", "\"gelu\"",
          "\"hidden_act\" is \"gelu\", which Plimsoll doesn't compute. "
          "Expected \"silu\"" },
        { smollm2, "\"rope_scaling\": null",
          "\"rope_scaling\": {\"factor\": 32.0, \"rope_type\": \"llama3\"}",
          "\"rope_scaling.rope_type\" is \"llama3\", which Plimsoll doesn't "
          "compute. Expected \"default\"" },
        { smollm2, "\"rope_scaling\": null",
          "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.0}",
          "\"rope_scaling.type\" is \"linear\"" },
        { smollm2, "\"rope_scaling\": null",
          "\"rope_parameters\": {\"rope_type\": \"yarn\"}",
          "\"rope_parameters.rope_type\" is \"yarn\"" },
        { smollm2, "\"rope_scaling\": null",
          "\"rope_parameters\": {\"partial_rotary_factor\": 0.5}",
          "\"rope_parameters.partial_rotary_factor\" is 0.5" },
        { smollm2, "\"rope_scaling\": null",
          "\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 1e4}}",
          "one \"rope_theta\" for all layers" },
        { smollm2, "\"rope_scaling\": null", "\"rope_scaling\": 2",
          "\"rope_scaling\" must be null or an object" },
        { smollm2, "\"rope_scaling\": null",
          "\"rope_parameters\": {\"rope_theta\": 7e4}",
          "\"rope_theta\" is 70000 in \"rope_parameters\" and 100000 beside" },
        { smollm2, "\"rope_interleaved\": false", "\"rope_interleaved\": true",
          "\"rope_interleaved\" is true" },
        { smollm2, "\"pretraining_tp\": 1", "\"partial_rotary_factor\": 0.25",
          "\"partial_rotary_factor\" is 0.25" },
        { smollm2, "\"pretraining_tp\": 1",
          "\"quantization_config\": {\"bits\": 4}",
          "\"quantization_config\" is an object" },
        { smollm2, "\"attention_bias\": false", "\"attention_bias\": true",
          "\"mlp_bias\" is false and \"attention_bias\" is true" },
        { smollm2, "\"attention_bias\": false", "\"mlp_bias\": true",
          "\"mlp_bias\" is true and \"attention_bias\" is false" },
        { smollm2, "\"num_key_value_heads\": 3", "\"num_key_value_heads\": 2",
          "n_kv_head doesn't divide n_head" },
        { smollm2, "\"num_attention_heads\": 9", "\"num_attention_heads\": 7",
          "\"num_attention_heads\" 7 does not divide \"hidden_size\" 576" },
        { smollm2, "\"intermediate_size\": 1536", "\"x\": 1",
          "\"intermediate_size\" must be" },
        { smollm2, "\"attention_dropout\": 0.0", "\"attention_dropout\": 2",
          "attention_dropout" },
        { qwen3, "\"attention_bias\": false", "\"attention_bias\": true",
          "\"attention_bias\" is true, which Plimsoll doesn't compute in such "
          "a model. Expected false" },
        { qwen3, "\"use_sliding_window\": false",
          "\"use_sliding_window\": true", "\"use_sliding_window\" is true" },
        { qwen3, "\"max_window_layers\": 28",
          "\"layer_types\": [\"full_attention\", \"sliding_attention\"]",
          "\"layer_types\" is \"sliding_attention\"" },
        { qwen3, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": null",
          "num_key_value_heads" },
        { qwen3, "\"head_dim\": 128", "\"head_dim\": 127",
          "heads of an odd width" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pl_hf_config config;
        const char *text = changed(cases[i].text, cases[i].before,
                                   cases[i].after);
        if (!pl_hf_config_parse(&config, text, strlen(text), "config.json",
                                &err))
            fail_msg("%s is read", cases[i].after);
        assert_contains(err.text, cases[i].words);
        assert_contains(err.text, "config.json");
    }
}

/* ---- both ways ---- */

static const char *written(const pl_hf_config *config)
{
    static char text[4096];
    pl_json_text j = pl_json_text_begin(text, sizeof text);
    pl_hf_config_put(&j, config);
    assert_int_equal(pl_json_text_end(&j, &err), PL_OK);
    return text;
}

static void assert_same(const pl_hf_config *a, const pl_hf_config *b)
{
    for (int i = 0; i < PL_SHAPE_FIELDS; i++)
        if (pl_shape_number(&a->shape, (pl_shape_field)i) !=
            pl_shape_number(&b->shape, (pl_shape_field)i))
            fail_msg("%s: %g and %g",
                     pl_key_row(pl_shape_row((pl_shape_field)i)->key)->name,
                     pl_shape_number(&a->shape, (pl_shape_field)i),
                     pl_shape_number(&b->shape, (pl_shape_field)i));
    assert_int_equal(a->end_token, b->end_token);
    assert_true(a->dropout == b->dropout);
}

static void what_is_written_is_read_as_the_same(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        pl_shape_field field; /* that is changed; or PL_SHAPE_FIELDS */
        double value;
        const char *type, *architecture, *note;
    } cases[] = {
        { openai, PL_SHAPE_FIELDS, 0, "\"gpt2\"", "[\"GPT2LMHeadModel\"]",
          NULL },
        { smollm2, PL_SHAPE_FIELDS, 0, "\"llama\"", "[\"LlamaForCausalLM\"]",
          NULL },
        { smollm2, PL_SHAPE_bias, PL_BIAS_ALL, "\"llama\"",
          "\"mlp_bias\": true", NULL },
        { smollm2, PL_SHAPE_D, 32, "\"llama\"", "\"head_dim\": 32", NULL },
        { qwen3, PL_SHAPE_FIELDS, 0, "\"qwen3\"", "[\"Qwen3ForCausalLM\"]",
          NULL },
        { qwen3, PL_SHAPE_rope_theta, 12345.0, "\"qwen3\"",
          "\"rope_type\": \"default\"", NULL },
        { smollm2, PL_SHAPE_mlp, PL_MLP_RELU2, "\"plimsoll_gpt\"", NULL,
          "A Llama has no mlp = 'relu2'" },
        { qwen3, PL_SHAPE_logit_softcap, 30.0, "\"plimsoll_gpt\"", NULL,
          "A Qwen3 has no logit_softcap = 30" },
        { qwen3, PL_SHAPE_bias, PL_BIAS_ALL, "\"plimsoll_gpt\"", NULL,
          "A Qwen3 has no bias = True" },
        { smollm2, PL_SHAPE_C, 577, "\"plimsoll_gpt\"", NULL,
          "this model's 9 doesn't divide 577" },
        { openai, PL_SHAPE_norm, PL_NORM_RMS, "\"plimsoll_gpt\"", NULL,
          "A GPT-2 has no norm = 'rmsnorm'" },
        { openai, PL_SHAPE_D, 32, "\"plimsoll_gpt2\"", NULL,
          "GPT-2's attention is n_embd wide" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pl_hf_config config = parsed(cases[i].text);
        char type[64];
        config.dtype = "float32";
        if (cases[i].field != PL_SHAPE_FIELDS)
            pl_shape_set(&config.shape, cases[i].field, cases[i].value);
        pl_shape_complete(&config.shape);
        const char *text = written(&config);
        snprintf(type, sizeof type, "\"model_type\": %s", cases[i].type);
        assert_contains(text, type);
        if (cases[i].architecture)
            assert_contains(text, cases[i].architecture);
        else
            assert_null(strstr(text, "architectures"));
        if (cases[i].note)
            assert_contains(text, cases[i].note);
        const pl_hf_config back = parsed(text);
        assert_same(&config, &back);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(openai_s_config_is_read),
        cmocka_unit_test(smollm2_s_config_is_read),
        cmocka_unit_test(qwen3_s_config_is_read),
        cmocka_unit_test(what_is_absent_is_as_in_their_classes),
        cmocka_unit_test(what_is_not_computed_is_refused_by_its_entry),
        cmocka_unit_test(what_is_written_is_read_as_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
