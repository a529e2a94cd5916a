/* gpt2_config.c: see gpt2_config.h. */
#include "store/gpt2_config.h"
#include "base/file.h"
#include "base/json.h"
#include "config/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CONFIG_MAX_BYTES = 1024 * 1024 };

/* The names that transformers has for the two; the first is written. */
static const struct {
    const char *name;
    pl_activation activation;
} activations[] = {
    { "gelu_new", PL_ACT_GELU_TANH },
    { "gelu_pytorch_tanh", PL_ACT_GELU_TANH },
    { "gelu_fast", PL_ACT_GELU_TANH },
    { "gelu", PL_ACT_GELU },
    { "gelu_python", PL_ACT_GELU },
};
enum { ACTIVATIONS = sizeof activations / sizeof activations[0] };

/* ---- reading ---- */

static pl_status want_size(const json_t *root, const char *key, size_t most,
                           size_t *out, const char *name, pl_error *err)
{
    const json_t *value = json_object_get(root, key);
    if (!json_is_integer(value) || json_integer_value(value) < 1 ||
        (uint64_t)json_integer_value(value) > most)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: \"%s\" must be a whole number from 1 to %zu", name,
                       key, most);
    *out = (size_t)json_integer_value(value);
    return PL_OK;
}

/* Whether a key has, or leaves out, what this program computes. */
static int is_number(const json_t *root, const char *key, double want)
{
    const json_t *value = json_object_get(root, key);
    return !value || json_is_null(value) ||
           (json_is_number(value) &&
            fabs(json_number_value(value) - want) <= 1e-9 * fabs(want));
}

static int is_flag(const json_t *root, const char *key, int want)
{
    const json_t *value = json_object_get(root, key);
    return !value || json_is_null(value) ||
           (want ? json_is_true(value) : json_is_false(value));
}

static int has_text(const json_t *root, const char *key, const char *want)
{
    const char *text = json_string_value(json_object_get(root, key));
    return text && strcmp(text, want) == 0;
}

static pl_status refuse(const char *name, const char *key, const char *accepted,
                        pl_error *err)
{
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s: \"%s\" is something that Plimsoll's GPT-2 does not "
                   "compute: it must be %s",
                   name, key, accepted);
}

/* What changes the result and is fixed here. */
static pl_status check_fixed(const json_t *root, const pl_shape *shape,
                             const char *name, pl_error *err)
{
    if (!has_text(root, "model_type", "gpt2") &&
        !has_text(root, "model_type", "plimsoll_gpt2"))
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: \"model_type\" must be \"gpt2\": other models are "
                       "not read",
                       name);
    if (!is_number(root, "n_inner", 4.0 * (double)shape->C))
        return refuse(name, "n_inner", "null or 4 x n_embd", err);
    if (!is_flag(root, "scale_attn_weights", 1))
        return refuse(name, "scale_attn_weights", "true", err);
    if (!is_flag(root, "scale_attn_by_inverse_layer_idx", 0))
        return refuse(name, "scale_attn_by_inverse_layer_idx", "false", err);
    if (!is_flag(root, "add_cross_attention", 0))
        return refuse(name, "add_cross_attention", "false", err);
    return PL_OK;
}

static pl_status read_sizes(pl_shape *shape, const json_t *root,
                            const char *name, pl_error *err)
{
    const struct {
        const char *key;
        size_t most, *out;
    } sizes[] = {
        { "n_layer", PL_MAX_LAYERS, &shape->L },
        { "n_head", (size_t)1 << 20, &shape->H },
        { "n_embd", (size_t)1 << 24, &shape->C },
        { "vocab_size", (size_t)1 << 30, &shape->V },
        { "n_positions", (size_t)1 << 30, &shape->T },
    };
    pl_status status = PL_OK;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && !status; i++)
        status = want_size(root, sizes[i].key, sizes[i].most, sizes[i].out,
                           name, err);
    return status;
}

static pl_status read_heads(pl_shape *shape, const json_t *root,
                            const char *name, pl_error *err)
{
    pl_status status = PL_OK;
    shape->D = shape->C / shape->H;
    if (has_text(root, "model_type", "plimsoll_gpt2"))
        status = want_size(root, "head_dim", (size_t)1 << 24, &shape->D, name,
                           err);
    else if (shape->C % shape->H != 0)
        status = pl_fail(err, PL_E_FORMAT,
                         "%s: \"n_head\" %zu does not divide \"n_embd\" %zu",
                         name, shape->H, shape->C);
    shape->A = shape->H * shape->D;
    if (!status && shape->A > (size_t)1 << 28)
        status = pl_fail(err, PL_E_UNSUPPORTED,
                         "%s: attention %zu wide is more than this program "
                         "counts on",
                         name, shape->A);
    return status;
}

/* Left out, it is GPT-2's own. */
static pl_status read_activation(pl_shape *shape, const json_t *root,
                                 const char *name, pl_error *err)
{
    static const char key[] = "activation_function";
    shape->activation = activations[0].activation;
    if (!json_object_get(root, key))
        return PL_OK;
    for (size_t i = 0; i < ACTIVATIONS; i++)
        if (has_text(root, key, activations[i].name)) {
            shape->activation = activations[i].activation;
            return PL_OK;
        }
    return refuse(name, key, "\"gelu_new\" or \"gelu\"", err);
}

/* A number from 0 (or above it) up to 1; `unsaid` where there is none. */
static pl_status read_part(const json_t *root, const char *key, double unsaid,
                           double *out, const char *name, pl_error *err)
{
    const json_t *value = json_object_get(root, key);
    *out = unsaid;
    if (!value || json_is_null(value))
        return PL_OK;
    *out = json_number_value(value);
    if (json_is_number(value) && *out >= 0.0 && *out < 1.0)
        return PL_OK;
    return pl_fail(err, PL_E_FORMAT,
                   "%s: \"%s\" must be a number from 0 to below 1", name, key);
}

static pl_status read_root(pl_gpt2_config *config, const json_t *root,
                           const char *name, pl_error *err)
{
    pl_shape *shape = &config->shape;
    *config = (pl_gpt2_config){ .shape.bias = PL_BIAS_ALL, .end_token = -1 };
    pl_status status = read_sizes(shape, root, name, err);
    if (!status)
        status = check_fixed(root, shape, name, err);
    if (!status)
        status = read_activation(shape, root, name, err);
    if (!status)
        status = read_heads(shape, root, name, err);
    if (!status)
        status = read_part(root, "layer_norm_epsilon", 1e-5, &config->epsilon,
                           name, err);
    if (!status)
        status = read_part(root, "resid_pdrop", PL_GPT2_DROPOUT,
                           &config->dropout, name, err);
    if (json_is_false(json_object_get(root, "plimsoll_bias")))
        shape->bias = PL_BIAS_NONE;
    if (json_is_false(json_object_get(root, "tie_word_embeddings")))
        shape->head = PL_HEAD_OWN;
    const json_t *end = json_object_get(root, "eos_token_id");
    if (!status && json_is_integer(end) && json_integer_value(end) >= 0 &&
        (uint64_t)json_integer_value(end) < shape->V)
        config->end_token = (int32_t)json_integer_value(end);
    return status;
}

pl_status pl_gpt2_config_parse(pl_gpt2_config *config, const char *text,
                               size_t bytes, const char *name, pl_error *err)
{
    json_t *root = NULL;
    pl_status status = pl_json_parse(text, bytes, name, &root, err);
    if (!status)
        status = read_root(config, root, name, err);
    json_decref(root);
    return status;
}

pl_status pl_gpt2_config_read(pl_gpt2_config *config, const char *folder,
                              pl_heap *heap, pl_error *err)
{
    char path[PL_PATH_BYTES], *text;
    size_t bytes;
    pl_status status = pl_path_join(path, folder, "config.json", err);
    if (!status)
        status = pl_file_read_all(path, CONFIG_MAX_BYTES, heap, &text, &bytes,
                                  err);
    if (!status)
        status = pl_gpt2_config_parse(config, text, bytes, pl_path_shown(path),
                                      err);
    return status;
}

/* ---- writing ---- */

/* Hugging Face's GPT-2 can't say a head_dim of its own. */
static void put_kind(pl_json_text *j, const pl_shape *s)
{
    char note[256];
    if (s->A == s->C) {
        pl_json_text_string(j, "model_type", "gpt2");
        pl_json_text_raw(j, "architectures", "[\"GPT2LMHeadModel\"]");
        return;
    }
    pl_json_text_string(j, "model_type", "plimsoll_gpt2");
    snprintf(note, sizeof note,
             "GPT-2's attention is n_embd wide, this model's is %zu (%zu heads "
             "of %zu): only Plimsoll loads it. An n_head that divides n_embd "
             "would load anywhere.",
             s->A, s->H, s->D);
    pl_json_text_string(j, "note", note);
    pl_json_text_whole(j, "head_dim", s->D);
}

void pl_gpt2_config_put_end(pl_json_text *j, int32_t end_token)
{
    static const char *const keys[] = { "bos_token_id", "eos_token_id" };
    for (int i = 0; i < 2; i++)
        if (end_token >= 0)
            pl_json_text_whole(j, keys[i], (uint64_t)end_token);
        else
            pl_json_text_raw(j, keys[i], "null");
}

void pl_gpt2_config_put(pl_json_text *j, const pl_gpt2_config *config)
{
    static const char *const drops[] = { "embd_pdrop", "attn_pdrop",
                                         "resid_pdrop" };
    const pl_shape *s = &config->shape;
    char epsilon[32]; /* a file that keeps it as a float has six digits */
    size_t act = 0;
    while (activations[act].activation != s->activation)
        act++;
    put_kind(j, s);
    pl_json_text_string(j, "activation_function", activations[act].name);
    pl_json_text_whole(j, "vocab_size", s->V);
    pl_json_text_whole(j, "n_positions", s->T);
    pl_json_text_whole(j, "n_ctx", s->T);
    pl_json_text_whole(j, "n_embd", s->C);
    pl_json_text_whole(j, "n_layer", s->L);
    pl_json_text_whole(j, "n_head", s->H);
    pl_json_text_whole(j, "n_inner", 4 * s->C);
    snprintf(epsilon, sizeof epsilon, "%.6g", config->epsilon);
    pl_json_text_raw(j, "layer_norm_epsilon", epsilon);
    for (int i = 0; i < 3; i++)
        pl_json_text_real(j, drops[i], config->dropout);
    pl_json_text_raw(j, "tie_word_embeddings",
                     s->head == PL_HEAD_TIED ? "true" : "false");
    pl_json_text_string(j, "torch_dtype", config->dtype);
    pl_gpt2_config_put_end(j, config->end_token);
    if (s->bias == PL_BIAS_NONE) /* its biases are zeros, and stay so here */
        pl_json_text_raw(j, "plimsoll_bias", "false");
}
