#include "store/shape_json.h"
#include "support/asserts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static pl_error err;

static json_t *parse(const char *text)
{
    json_t *root = NULL;
    assert_int_equal(pl_json_parse(text, strlen(text), "x", &root, &err),
                     PL_OK);
    return root;
}

/* The values that a field may have; of numbers, some. */
static size_t count_values(pl_shape_field field)
{
    const pl_shape_info *row = pl_shape_row(field);
    size_t n = 0;
    while (n < PL_SHAPE_MAX_WORDS && row->words[n])
        n++;
    return n ? n : 3;
}

/* One of them. */
static double value_of(pl_shape_field field, size_t v)
{
    return field == PL_SHAPE_norm_eps                   ? 0.1 * (double)v
           : pl_shape_row(field)->kind == PL_SHAPE_REAL ? 1.1 * (double)v
                                                        : (double)v;
}

/* Whether a file has an entry, and a word, for this value. */
static int has_words(pl_shape_field field, pl_shape_file file, size_t v)
{
    const pl_shape_entry *entry = &pl_shape_row(field)->in[file];
    return entry->name && entry->name[0] &&
           (!entry->words[0] || (entry->words[v] && entry->words[v][0]));
}

static void every_value_comes_back_from_every_file(void **state)
{
    (void)state;
    for (int file = 0; file < PL_SHAPE_FILES; file++)
        for (int i = 0; i < PL_SHAPE_FIELDS; i++) {
            pl_shape_field field = (pl_shape_field)i;
            size_t first = pl_shape_row(field)->words[0] == NULL;
            for (size_t v = first; v < first + count_values(field); v++) {
                char text[256];
                pl_shape shape = { 0 }, back = { 0 };
                if (!has_words(field, (pl_shape_file)file, v))
                    continue;
                pl_json_text j = pl_json_text_begin(text, sizeof text);
                pl_shape_set(&shape, field, value_of(field, v));
                pl_shape_json_put(&j, &shape, field, (pl_shape_file)file);
                assert_int_equal(pl_json_text_end(&j, &err), PL_OK);
                json_t *root = parse(text);
                pl_shape_set(&back, field, value_of(field, v + 1));
                assert_int_equal(pl_shape_json_read(root, &back, field,
                                                    (pl_shape_file)file, "x",
                                                    &err),
                                 PL_OK);
                assert_true(pl_shape_number(&back, field) ==
                            value_of(field, v));
                json_decref(root);
            }
        }
}

static void absent_entries_mean_what_earlier_versions_had(void **state)
{
    (void)state;
    static const struct {
        pl_shape_field field;
        pl_shape_file file;
        double value; /* or PL_SHAPE_NEEDED */
    } cases[] = {
        { PL_SHAPE_L, PL_IN_STATE, PL_SHAPE_NEEDED },
        { PL_SHAPE_bias, PL_IN_STATE, PL_SHAPE_NEEDED },
        { PL_SHAPE_activation, PL_IN_STATE, PL_SHAPE_NEEDED },
        { PL_SHAPE_head, PL_IN_STATE, PL_HEAD_TIED },
        { PL_SHAPE_norm, PL_IN_STATE, PL_NORM_LAYER },
        { PL_SHAPE_norm, PL_IN_GPT2, PL_NORM_LAYER },
        { PL_SHAPE_T, PL_IN_GPT2, PL_SHAPE_NEEDED },
        { PL_SHAPE_bias, PL_IN_GPT2, PL_BIAS_ALL },
        { PL_SHAPE_activation, PL_IN_GPT2, PL_ACT_GELU_TANH },
        { PL_SHAPE_head, PL_IN_GPT2, PL_HEAD_TIED },
        { PL_SHAPE_family, PL_IN_STATE, PL_FAMILY_GPT2 },
        { PL_SHAPE_family, PL_IN_GPT2, PL_FAMILY_GPT2 },
        { PL_SHAPE_position, PL_IN_STATE, PL_POSITION_TABLE },
        { PL_SHAPE_rope_theta, PL_IN_STATE, 10000.0 },
        { PL_SHAPE_mlp, PL_IN_STATE, PL_MLP_GELU },
        { PL_SHAPE_qk_norm, PL_IN_STATE, PL_QK_NORM_NONE },
        { PL_SHAPE_norm_eps, PL_IN_STATE, 1e-5 },
        { PL_SHAPE_norm_eps, PL_IN_GPT2, 1e-5 },
        { PL_SHAPE_logit_softcap, PL_IN_STATE, 0.0 },
        { PL_SHAPE_KV, PL_IN_STATE, 7.0 }, /* what it was: it follows */
        { PL_SHAPE_F, PL_IN_STATE, 7.0 },
        { PL_SHAPE_F, PL_IN_LLAMA, PL_SHAPE_NEEDED },
        { PL_SHAPE_KV, PL_IN_LLAMA, 7.0 },
        { PL_SHAPE_KV, PL_IN_QWEN3, PL_SHAPE_NEEDED },
        { PL_SHAPE_D, PL_IN_QWEN3, 128.0 },
        { PL_SHAPE_head, PL_IN_LLAMA, PL_HEAD_OWN },
        { PL_SHAPE_norm_eps, PL_IN_QWEN3, 1e-6 },
        { PL_SHAPE_mlp, PL_IN_LLAMA, PL_MLP_SWIGLU },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int null = 0; null < 2; null++) {
            pl_shape shape = { 0 };
            char text[128];
            const pl_shape_info *row = pl_shape_row(cases[i].field);
            snprintf(text, sizeof text, "{\"%s\": null}",
                     null ? row->in[cases[i].file].name : "other");
            json_t *root = parse(text);
            pl_shape_set(&shape, cases[i].field, 7);
            pl_status status = pl_shape_json_read(root, &shape, cases[i].field,
                                                  cases[i].file, "x", &err);
            json_decref(root);
            if (cases[i].value == PL_SHAPE_NEEDED) {
                assert_int_equal(status, PL_E_FORMAT);
                assert_contains(err.text, row->in[cases[i].file].name);
                continue;
            }
            assert_int_equal(status, PL_OK);
            assert_true(pl_shape_number(&shape, cases[i].field) ==
                        cases[i].value);
        }
}

static void what_a_file_has_no_entry_for_is_always_the_same(void **state)
{
    (void)state;
    json_t *root = parse("{\"\": 1}");
    for (int i = 0; i < PL_SHAPE_FIELDS; i++) {
        const pl_shape_field field = (pl_shape_field)i;
        const pl_shape_entry *entry = &pl_shape_row(field)->in[PL_IN_QWEN3];
        pl_shape shape = { 0 };
        char text[64];
        if (entry->name && entry->name[0])
            continue;
        pl_json_text j = pl_json_text_begin(text, sizeof text);
        pl_shape_json_put(&j, &shape, field, PL_IN_QWEN3);
        assert_int_equal(pl_json_text_end(&j, &err), PL_OK);
        assert_null(strchr(text, ':'));
        pl_shape_set(&shape, field, 9);
        assert_int_equal(
            pl_shape_json_read(root, &shape, field, PL_IN_QWEN3, "x", &err),
            PL_OK);
        assert_true(pl_shape_number(&shape, field) == entry->absent);
    }
    json_decref(root);
}

static void what_is_no_value_is_refused_by_its_entry(void **state)
{
    (void)state;
    static const struct {
        pl_shape_field field;
        pl_shape_file file;
        const char *text, *words;
        pl_status status;
    } cases[] = {
        { PL_SHAPE_L, PL_IN_STATE, "{\"n_layer\": 0}",
          "\"n_layer\" must be a whole number from 1 to 1000", PL_E_FORMAT },
        { PL_SHAPE_L, PL_IN_STATE, "{\"n_layer\": 1001}", "from 1 to 1000",
          PL_E_FORMAT },
        { PL_SHAPE_V, PL_IN_STATE, "{\"vocab_size\": 2000000000}",
          "from 1 to 1073741824", PL_E_FORMAT },
        { PL_SHAPE_T, PL_IN_GPT2, "{\"n_positions\": \"8\"}", "\"n_positions\"",
          PL_E_FORMAT },
        { PL_SHAPE_bias, PL_IN_STATE, "{\"bias\": 1}",
          "\"bias\" must be true or false", PL_E_FORMAT },
        { PL_SHAPE_head, PL_IN_GPT2, "{\"tie_word_embeddings\": \"no\"}",
          "\"tie_word_embeddings\" must be true or false", PL_E_FORMAT },
        { PL_SHAPE_activation, PL_IN_STATE, "{\"activation\": \"gelu_new\"}",
          "\"activation\" must be \"gelu\" or \"gelu_tanh\"", PL_E_FORMAT },
        { PL_SHAPE_activation, PL_IN_GPT2,
          "{\"activation_function\": \"relu\"}", "\"gelu\" or \"gelu_new\"",
          PL_E_UNSUPPORTED },
        { PL_SHAPE_activation, PL_IN_GPT2, "{\"activation_function\": \"gel\"}",
          "activation_function", PL_E_UNSUPPORTED },
        { PL_SHAPE_mlp, PL_IN_QWEN3, "{\"hidden_act\": \"gelu\"}",
          "\"hidden_act\" is \"gelu\"", PL_E_UNSUPPORTED },
        { PL_SHAPE_bias, PL_IN_QWEN3, "{\"attention_bias\": true}",
          "Expected false", PL_E_UNSUPPORTED },
        { PL_SHAPE_norm_eps, PL_IN_STATE, "{\"norm_eps\": 0}",
          "\"norm_eps\" must be a number", PL_E_FORMAT },
        { PL_SHAPE_norm_eps, PL_IN_STATE, "{\"norm_eps\": \"1\"}",
          "from 0 to below 1", PL_E_FORMAT },
        { PL_SHAPE_rope_theta, PL_IN_STATE, "{\"rope_theta\": 0.5}",
          "\"rope_theta\"", PL_E_FORMAT },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pl_shape shape = { 0 };
        json_t *root = parse(cases[i].text);
        assert_int_equal(pl_shape_json_read(root, &shape, cases[i].field,
                                            cases[i].file, "a/b.json", &err),
                         cases[i].status);
        assert_contains(err.text, cases[i].words);
        assert_contains(err.text, "a/b.json: ");
        json_decref(root);
    }
}

static void other_names_of_the_same_activation_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        pl_activation activation;
    } cases[] = {
        { "gelu_fast", PL_ACT_GELU_TANH },
        { "gelu_pytorch_tanh", PL_ACT_GELU_TANH },
        { "gelu_python", PL_ACT_GELU },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pl_shape shape = { 0 };
        char text[128];
        snprintf(text, sizeof text, "{\"activation_function\": \"%s\"}",
                 cases[i].word);
        json_t *root = parse(text);
        assert_int_equal(pl_shape_json_read(root, &shape, PL_SHAPE_activation,
                                            PL_IN_GPT2, "x", &err),
                         PL_OK);
        assert_int_equal(shape.activation, cases[i].activation);
        json_decref(root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_comes_back_from_every_file),
        cmocka_unit_test(absent_entries_mean_what_earlier_versions_had),
        cmocka_unit_test(what_a_file_has_no_entry_for_is_always_the_same),
        cmocka_unit_test(what_is_no_value_is_refused_by_its_entry),
        cmocka_unit_test(other_names_of_the_same_activation_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
