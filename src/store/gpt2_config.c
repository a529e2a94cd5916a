/* gpt2_config.c: see gpt2_config.h. */
#include "store/gpt2_config.h"
#include "base/file.h"
#include "base/json.h"
#include "config/config.h"
#include "store/shape_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CONFIG_MAX_BYTES = 1024 * 1024 };

/* ---- reading ---- */

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

/* A GPT-2 whose heads are as wide as they like, or that has other parts. */
static int is_ours(const json_t *root)
{
    return has_text(root, "model_type", "plimsoll_gpt2") ||
           has_text(root, "model_type", "plimsoll_gpt");
}

static pl_status check_type(const json_t *root, const char *name, pl_error *err)
{
    if (has_text(root, "model_type", "gpt2") || is_ours(root))
        return PL_OK;
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s: \"model_type\" must be \"gpt2\": other models are "
                   "not read",
                   name);
}

/* What changes the result and is fixed here. */
static pl_status check_fixed(const json_t *root, const pl_shape *shape,
                             const char *name, pl_error *err)
{
    if (!is_ours(root) &&
        !is_number(root, "n_inner", (double)pl_shape_hidden(shape)))
        return refuse(name, "n_inner", "null or 4 x n_embd", err);
    if (!is_flag(root, "scale_attn_weights", 1))
        return refuse(name, "scale_attn_weights", "true", err);
    if (!is_flag(root, "scale_attn_by_inverse_layer_idx", 0))
        return refuse(name, "scale_attn_by_inverse_layer_idx", "false", err);
    if (!is_flag(root, "add_cross_attention", 0))
        return refuse(name, "add_cross_attention", "false", err);
    return PL_OK;
}

/* Only a model_type of ours says head_dim; in others it is something else. */
static pl_status read_heads(pl_shape *shape, const json_t *root,
                            const char *name, pl_error *err)
{
    pl_status status = PL_OK;
    if (is_ours(root)) {
        shape->D = 0;
        status = pl_shape_json_read(root, shape, PL_SHAPE_D, PL_IN_HF, name,
                                    err);
        if (!status && shape->D == 0)
            return pl_fail(err, PL_E_FORMAT, "%s: there is no \"head_dim\"",
                           name);
    } else {
        shape->D = shape->C / shape->H;
        if (shape->C % shape->H != 0)
            status = pl_fail(
                err, PL_E_FORMAT,
                "%s: \"n_head\" %zu does not divide \"n_embd\" %zu", name,
                shape->H, shape->C);
    }
    pl_shape_complete(shape);
    if (!status && shape->A > (size_t)1 << 28)
        status = pl_fail(err, PL_E_UNSUPPORTED,
                         "%s: attention %zu wide is more than this program "
                         "counts on",
                         name, shape->A);
    const char *wrong = status ? NULL : pl_shape_wrong(shape);
    return wrong ? pl_fail(err, PL_E_FORMAT, "%s: %s", name, wrong) : status;
}

static pl_status read_shape(pl_shape *shape, const json_t *root,
                            const char *name, pl_error *err)
{
    pl_status status = check_type(root, name, err);
    for (int i = 0; i < PL_SHAPE_FIELDS && !status; i++)
        if (i != PL_SHAPE_D)
            status = pl_shape_json_read(root, shape, (pl_shape_field)i,
                                        PL_IN_HF, name, err);
    if (!status)
        status = check_fixed(root, shape, name, err);
    return status ? status : read_heads(shape, root, name, err);
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
    *config = (pl_gpt2_config){ .end_token = -1 };
    pl_status status = read_shape(shape, root, name, err);
    config->epsilon = shape->norm_eps;
    if (!status)
        status = read_part(root, "resid_pdrop", PL_GPT2_DROPOUT,
                           &config->dropout, name, err);
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

/* What Hugging Face's GPT-2 can't say has another model_type, so that others
 * refuse it instead of computing something else. */
static void put_kind(pl_json_text *j, const pl_shape *s)
{
    char note[256], why[PL_VALUE_BRIEF_BYTES];
    const pl_shape_field other = pl_shape_not_gpt2(s);
    if (other == PL_SHAPE_FIELDS) {
        pl_json_text_string(j, "model_type", "gpt2");
        pl_json_text_raw(j, "architectures", "[\"GPT2LMHeadModel\"]");
        return;
    }
    if (other == PL_SHAPE_D) {
        pl_json_text_string(j, "model_type", "plimsoll_gpt2");
        snprintf(note, sizeof note,
                 "GPT-2's attention is n_embd wide, this model's is %zu (%zu "
                 "heads of %zu): only Plimsoll loads it. An n_head that "
                 "divides n_embd would load anywhere.",
                 s->A, s->H, s->D);
    } else {
        pl_value value = pl_shape_value(s, other);
        pl_value_brief(&value, why);
        pl_json_text_string(j, "model_type", "plimsoll_gpt");
        snprintf(note, sizeof note,
                 "A GPT-2 has no %s = %s, this model has: only Plimsoll loads "
                 "it.",
                 pl_key_row(pl_shape_row(other)->key)->name, why);
    }
    pl_json_text_string(j, "note", note);
}

/* The entries that GPT-2 has itself are always written; the others where they
 * say something. */
static void put_shape(pl_json_text *j, const pl_shape *s)
{
    const int is_gpt2 = pl_shape_not_gpt2(s) == PL_SHAPE_FIELDS;
    for (int i = 0; i < PL_SHAPE_FIELDS; i++) {
        pl_shape_field field = (pl_shape_field)i;
        const pl_shape_entry *entry = &pl_shape_row(field)->in[PL_IN_HF];
        const int own = strncmp(entry->name, "plimsoll_", 9) == 0,
                  unsaid = own && (pl_shape_is_derived(s, field) ||
                                   pl_shape_number(s, field) == entry->absent);
        if (!unsaid && field != PL_SHAPE_norm_eps && /* below, as it is read */
            !(field == PL_SHAPE_D && is_gpt2))
            pl_shape_json_put(j, s, field, PL_IN_HF);
    }
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
    put_kind(j, s);
    put_shape(j, s);
    pl_json_text_whole(j, "n_ctx", s->T);
    pl_json_text_whole(j, "n_inner", pl_dim_size(s, PL_DIM_MLP));
    snprintf(epsilon, sizeof epsilon, "%.6g", config->epsilon);
    pl_json_text_raw(j, "layer_norm_epsilon", epsilon);
    for (int i = 0; i < 3; i++)
        pl_json_text_real(j, drops[i], config->dropout);
    pl_json_text_string(j, "torch_dtype", config->dtype);
    pl_gpt2_config_put_end(j, config->end_token);
}
