/* pretrained.c: the config.json of a GPT-2; see pretrained.h. */
#include "train/pretrained.h"
#include "base/file.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CONFIG_MAX_BYTES = 1024 * 1024 };

/* ---- reading ---- */

static pl_status want_size(const json_t *root, const char *key, size_t *out,
                           const char *name, pl_error *err)
{
    const json_t *value = json_object_get(root, key);
    if (!json_is_integer(value) || json_integer_value(value) < 1 ||
        json_integer_value(value) > (json_int_t)1 << 30)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: \"%s\" must be a whole number from 1 to 2^30", name,
                       key);
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
    if (!is_number(root, "layer_norm_epsilon", 1e-5))
        return refuse(name, "layer_norm_epsilon", "1e-05", err);
    if (!is_flag(root, "scale_attn_weights", 1))
        return refuse(name, "scale_attn_weights", "true", err);
    if (!is_flag(root, "scale_attn_by_inverse_layer_idx", 0))
        return refuse(name, "scale_attn_by_inverse_layer_idx", "false", err);
    if (!is_flag(root, "add_cross_attention", 0))
        return refuse(name, "add_cross_attention", "false", err);
    return PL_OK;
}

static pl_status read_activation(const json_t *root, pl_shape *shape,
                                 const char *name, pl_error *err)
{
    static const char key[] = "activation_function";
    if (!json_object_get(root, key) || has_text(root, key, "gelu_new") ||
        has_text(root, key, "gelu_pytorch_tanh"))
        shape->activation = PL_ACT_GELU_TANH; /* GPT-2's, and the default */
    else if (has_text(root, key, "gelu"))
        shape->activation = PL_ACT_GELU;
    else
        return refuse(name, key, "\"gelu_new\" or \"gelu\"", err);
    return PL_OK;
}

static pl_status read_root(pl_shape *shape, const json_t *root,
                           const char *name, pl_error *err)
{
    const struct {
        const char *key;
        size_t *out;
    } sizes[] = {
        { "n_layer", &shape->L },     { "n_head", &shape->H },
        { "n_embd", &shape->C },      { "vocab_size", &shape->V },
        { "n_positions", &shape->T },
    };
    pl_status status = PL_OK;
    *shape = (pl_shape){ .bias = PL_BIAS_ALL };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && !status; i++)
        status = want_size(root, sizes[i].key, sizes[i].out, name, err);
    if (!status)
        status = check_fixed(root, shape, name, err);
    if (!status)
        status = read_activation(root, shape, name, err);
    if (status)
        return status;
    if (json_is_false(json_object_get(root, "plimsoll_bias")))
        shape->bias = PL_BIAS_NONE;
    shape->D = shape->C / shape->H;
    if (has_text(root, "model_type", "plimsoll_gpt2"))
        status = want_size(root, "head_dim", &shape->D, name, err);
    else if (shape->C % shape->H != 0)
        status = pl_fail(err, PL_E_FORMAT,
                         "%s: \"n_head\" %zu does not divide \"n_embd\" %zu",
                         name, shape->H, shape->C);
    shape->A = shape->H * shape->D;
    if (!status && (shape->L > PL_MAX_LAYERS || shape->A > (size_t)1 << 28))
        status = pl_fail(err, PL_E_UNSUPPORTED,
                         "%s: %zu layers or attention %zu wide are more than "
                         "this program counts on",
                         name, shape->L, shape->A);
    return status;
}

pl_status pl_pretrained_parse(pl_shape *shape, const char *text, size_t bytes,
                              const char *name, pl_error *err)
{
    json_t *root = NULL;
    pl_status status = pl_json_parse(text, bytes, name, &root, err);
    if (!status)
        status = read_root(shape, root, name, err);
    json_decref(root);
    return status;
}

pl_status pl_pretrained_shape(pl_shape *shape, const char *folder,
                              pl_heap *heap, pl_error *err)
{
    char path[PL_PATH_BYTES], *text;
    size_t bytes;
    pl_file_kind kind;
    pl_status status = pl_file_look(folder, &kind, err);
    if (!status && kind != PL_FILE_FOLDER)
        status = pl_fail(err, PL_E_IO,
                         "init_from = '%s': neither 'scratch', nor 'resume', "
                         "nor a folder with a GPT-2 in it (config.json and "
                         "model.safetensors). A model of the Hugging Face hub "
                         "must be on this disk: download it with `hf download "
                         "%s`, or give the path of its folder",
                         folder, folder);
    if (!status)
        status = pl_path_join(path, folder, "config.json", err);
    if (!status)
        status = pl_file_read_all(path, CONFIG_MAX_BYTES, heap, &text, &bytes,
                                  err);
    if (!status)
        status = pl_pretrained_parse(shape, text, bytes, path, err);
    return status;
}

/* ---- a config that fits ---- */

typedef struct applying {
    pl_config *config;
    pl_config_origin origin;
    const pl_log *log;
    pl_heap *heap;
} applying;

static pl_status set(const applying *a, pl_key key, pl_value value,
                     pl_error *err)
{
    char before[PL_VALUE_BRIEF_BYTES], after[PL_VALUE_BRIEF_BYTES];
    pl_value old = pl_config_get(a->config, key);
    const int was_set = a->config->origin[key].source != PL_FROM_DEFAULT;
    pl_value_brief(&old, before);
    pl_value_brief(&value, after);
    if (was_set && strcmp(before, after) != 0)
        pl_log_say(a->log, PL_LOG_NOTE, "%s is %s in %s: %s has no effect",
                   pl_key_row(key)->name, after, a->origin.name, before);
    return pl_config_set(a->config, key, &value, a->origin, a->heap, err);
}

/* Positions may be left out; more than there are can't be made up. */
static pl_status set_block_size(const applying *a, const pl_shape *shape,
                                pl_error *err)
{
    const pl_config *config = a->config;
    const int was_set = config->origin[PL_KEY_block_size].source !=
                        PL_FROM_DEFAULT;
    if (was_set && (size_t)config->block_size <= shape->T)
        return PL_OK;
    if (was_set)
        return pl_fail(err, PL_E_CONFIG,
                       "block_size = %lld, but the model in %s has %zu "
                       "positions: set it to at most that, or leave it out",
                       (long long)config->block_size, a->origin.name, shape->T);
    return set(a, PL_KEY_block_size, pl_value_int((int64_t)shape->T), err);
}

pl_status pl_pretrained_apply(pl_config *config, const char *folder,
                              const pl_log *log, pl_heap *heap, pl_error *err)
{
    pl_shape shape;
    applying a = { .config = config, .log = log, .heap = heap };
    pl_status status = pl_pretrained_shape(&shape, folder, heap, err);
    if (!status)
        status = pl_heap_text(heap, &a.origin.name, folder, strlen(folder),
                              err);
    if (status)
        return status;
    a.origin.source = PL_FROM_FILE;
    a.origin.line = a.origin.column = 1;
    const struct {
        pl_key key;
        pl_value value;
    } values[] = {
        { PL_KEY_n_layer, pl_value_int((int64_t)shape.L) },
        { PL_KEY_n_head, pl_value_int((int64_t)shape.H) },
        { PL_KEY_n_embd, pl_value_int((int64_t)shape.C) },
        { PL_KEY_head_dim, shape.A == shape.C
                               ? pl_value_none()
                               : pl_value_int((int64_t)shape.D) },
        { PL_KEY_vocab_size, pl_value_int((int64_t)shape.V) },
        { PL_KEY_bias, pl_value_flag(shape.bias == PL_BIAS_ALL) },
        { PL_KEY_activation,
          pl_value_text(shape.activation == PL_ACT_GELU ? "gelu"
                                                        : "gelu_tanh") },
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0] && !status; i++)
        status = set(&a, values[i].key, values[i].value, err);
    if (!status)
        status = set_block_size(&a, &shape, err);
    return status;
}
