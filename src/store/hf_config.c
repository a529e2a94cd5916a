/* hf_config.c: see hf_config.h. Entries that say the shape are in the table of
 * model/shape.h, a column for each family; here is the rest of a family's file.
 */
#include "store/hf_config.h"
#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "config/config.h"
#include "store/shape_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CONFIG_MAX_BYTES = 1024 * 1024, DROPOUTS = 3 };

/* What a file may be, by its model_type. */
typedef struct file_kind {
    const char *model_type;
    const char *class; /* transformers'; NULL: it is ours alone */
    pl_shape_file file;
    const char *dropouts[DROPOUTS]; /* up to the first NULL; the last is read */
    double dropout;                 /* where nothing is said of it */
} file_kind;

#define GPT2_DROPOUTS                                                          \
    {                                                                          \
        "embd_pdrop", "attn_pdrop", "resid_pdrop"                              \
    }

/* A family's own come in its order. */
static const file_kind kinds[] = {
    { "gpt2", "GPT2LMHeadModel", PL_IN_GPT2, GPT2_DROPOUTS, PL_GPT2_DROPOUT },
    { "llama", "LlamaForCausalLM", PL_IN_LLAMA, { "attention_dropout" }, 0.0 },
    { "qwen3", "Qwen3ForCausalLM", PL_IN_QWEN3, { "attention_dropout" }, 0.0 },
    /* heads are as wide as they like */
    { "plimsoll_gpt2", NULL, PL_IN_GPT2, GPT2_DROPOUTS, PL_GPT2_DROPOUT },
    /* anything else may differ too */
    { "plimsoll_gpt", NULL, PL_IN_GPT2, GPT2_DROPOUTS, PL_GPT2_DROPOUT },
};

enum {
    KINDS = sizeof kinds / sizeof kinds[0],
    KIND_OWN_HEADS = 3,
    KIND_OURS = 4,
};

/* What changes the result, has one value here, and means it where there is
 * none. */
typedef enum value_kind { IS_FALSE, IS_TRUE, IS_ONE, IS_NULL } value_kind;

enum {
    GPT2 = 1 << PL_IN_GPT2,
    LLAMA = 1 << PL_IN_LLAMA,
    QWEN3 = 1 << PL_IN_QWEN3,
};

static const struct {
    unsigned files;
    const char *entry;
    value_kind want;
} fixed[] = {
    { GPT2, "scale_attn_weights", IS_TRUE },
    { GPT2, "scale_attn_by_inverse_layer_idx", IS_FALSE },
    { GPT2, "add_cross_attention", IS_FALSE },
    { LLAMA | QWEN3, "use_sliding_window", IS_FALSE },
    { LLAMA | QWEN3, "rope_interleaved", IS_FALSE },
    { LLAMA | QWEN3, "partial_rotary_factor", IS_ONE },
    { GPT2 | LLAMA | QWEN3, "quantization_config", IS_NULL },
};

/* ---- reading ---- */

static int is_absent(const json_t *value)
{
    return !value || json_is_null(value);
}

static pl_status refuse(const char *name, const char *entry,
                        const json_t *found, const char *expected,
                        pl_error *err)
{
    char text[PL_JSON_BRIEF_BYTES];
    pl_json_brief(found, text);
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s: \"%s\" is %s, which Plimsoll doesn't compute. Expected "
                   "%s",
                   name, entry, text, expected);
}

static pl_status find_kind(const json_t *root, const char *name,
                           const file_kind **out, pl_error *err)
{
    const json_t *value = json_object_get(root, "model_type");
    const char *type = json_string_value(value);
    char text[PL_JSON_BRIEF_BYTES];
    for (int i = 0; type && i < KINDS; i++)
        if (strcmp(kinds[i].model_type, type) == 0) {
            *out = &kinds[i];
            return PL_OK;
        }
    pl_json_brief(value, text);
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s: \"model_type\" is %s: other models than \"gpt2\", "
                   "\"llama\" and \"qwen3\" are not read",
                   name, text);
}

static int is_one(const json_t *value)
{
    return json_is_number(value) &&
           fabs(json_number_value(value) - 1.0) <= 1e-9;
}

static pl_status check_value(const json_t *object, const char *entry,
                             value_kind want, const char *name, pl_error *err)
{
    static const char *const expected[] = { "false", "true", "1", "null" };
    const json_t *value = json_object_get(object, entry);
    if (is_absent(value) || (want == IS_TRUE && json_is_true(value)) ||
        (want == IS_FALSE && json_is_false(value)) ||
        (want == IS_ONE && is_one(value)))
        return PL_OK;
    return refuse(name, entry, value, expected[want], err);
}

/* Ours are biases in every product; theirs are said in two places. */
static pl_status check_biases(const json_t *root, const pl_shape *shape,
                              const char *name, pl_error *err)
{
    const json_t *value = json_object_get(root, "mlp_bias");
    const int has = json_is_true(value), all = shape->bias == PL_BIAS_ALL;
    if (!is_absent(value) && !json_is_boolean(value))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: \"mlp_bias\" must be true or false", name);
    if (has == all)
        return PL_OK;
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s: \"mlp_bias\" is %s and \"attention_bias\" is %s, which "
                   "Plimsoll doesn't compute. Expected the same in both: all "
                   "products have biases, or none",
                   name, has ? "true" : "false", all ? "true" : "false");
}

/* Qwen3's list of what each layer does. */
static pl_status check_layers(const json_t *root, const char *name,
                              pl_error *err)
{
    const json_t *list = json_object_get(root, "layer_types");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *type = json_string_value(json_array_get(list, i));
        if (!type || strcmp(type, "full_attention") != 0)
            return refuse(name, "layer_types", json_array_get(list, i),
                          "\"full_attention\" for every layer", err);
    }
    return PL_OK;
}

static pl_status check_fixed(const json_t *root, const file_kind *kind,
                             const pl_shape *shape, const char *name,
                             pl_error *err)
{
    const json_t *inner = json_object_get(root, "n_inner");
    const double hidden = (double)pl_shape_hidden(shape);
    pl_status status = PL_OK;
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0] && !status; i++)
        if (fixed[i].files & 1u << kind->file)
            status = check_value(root, fixed[i].entry, fixed[i].want, name,
                                 err);
    if (status)
        return status;
    if (kind->file == PL_IN_LLAMA)
        return check_biases(root, shape, name, err);
    if (kind->file == PL_IN_QWEN3)
        return check_layers(root, name, err);
    if (kind->class && !is_absent(inner) &&
        !(json_is_number(inner) &&
          fabs(json_number_value(inner) - hidden) <= 1e-9 * hidden))
        return refuse(name, "n_inner", inner, "null or 4 x n_embd", err);
    return PL_OK;
}

/* ---- rotations ---- */

/* One of the two objects that may say how positions rotate: only the plain way
 * is computed here. */
static pl_status check_rope(const json_t *rope, const char *entry,
                            const char *name, pl_error *err)
{
    char path[64];
    const char *key;
    json_t *value;
    if (!json_is_object(rope))
        return pl_fail(err, PL_E_FORMAT, "%s: \"%s\" must be null or an object",
                       name, entry);
    json_object_foreach((json_t *)(uintptr_t)rope, key, value)
    {
        const int type = strcmp(key, "rope_type") == 0 ||
                         strcmp(key, "type") == 0,
                  part = strcmp(key, "partial_rotary_factor") == 0;
        const char *text = json_string_value(value);
        snprintf(path, sizeof path, "%s.%.30s", entry, key);
        if (type && !(text && strcmp(text, "default") == 0))
            return refuse(name, path, value, "\"default\"", err);
        if (part && !is_absent(value) && !is_one(value))
            return refuse(name, path, value, "1", err);
        if (json_is_object(value))
            return refuse(name, path, value,
                          "one \"rope_theta\" for all layers", err);
    }
    return PL_OK;
}

/* transformers 5 keeps theta in "rope_parameters", older ones beside it. */
static pl_status read_rope(pl_shape *shape, const json_t *root,
                           pl_shape_file file, const char *name, pl_error *err)
{
    static const char *const entries[] = { "rope_scaling", "rope_parameters" };
    const json_t *beside = json_object_get(root, "rope_theta");
    pl_status status = PL_OK;
    for (int i = 0; i < 2 && !status; i++) {
        const json_t *rope = json_object_get(root, entries[i]);
        if (is_absent(rope))
            continue;
        status = check_rope(rope, entries[i], name, err);
        if (status || is_absent(json_object_get(rope, "rope_theta")))
            continue;
        status = pl_shape_json_read(rope, shape, PL_SHAPE_rope_theta, file,
                                    name, err);
        if (!status && !is_absent(beside) &&
            json_number_value(beside) != shape->rope_theta)
            status = pl_fail(err, PL_E_FORMAT,
                             "%s: \"rope_theta\" is %g in \"%s\" and %g beside "
                             "it",
                             name, shape->rope_theta, entries[i],
                             json_number_value(beside));
    }
    return status;
}

/* ---- the shape ---- */

/* Where nothing is said, heads share the channels; a GPT-2 says nothing, and a
 * file of our own must. */
static pl_status read_heads(pl_shape *shape, const json_t *root,
                            const file_kind *kind, const char *name,
                            pl_error *err)
{
    pl_status status = PL_OK;
    shape->D = 0;
    if (!kind->class || kind->file != PL_IN_GPT2)
        status = pl_shape_json_read(root, shape, PL_SHAPE_D, kind->file, name,
                                    err);
    if (status)
        return status;
    if (shape->D == 0 && !kind->class)
        return pl_fail(err, PL_E_FORMAT, "%s: there is no \"head_dim\"", name);
    if (shape->D == 0 && shape->C % shape->H != 0)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: \"%s\" %zu does not divide \"%s\" %zu", name,
                       pl_shape_row(PL_SHAPE_H)->in[kind->file].name, shape->H,
                       pl_shape_row(PL_SHAPE_C)->in[kind->file].name, shape->C);
    if (shape->D == 0)
        shape->D = shape->C / shape->H;
    pl_shape_complete(shape);
    if (shape->A > (size_t)1 << 28)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: attention %zu wide is more than this program "
                       "counts on",
                       name, shape->A);
    const char *wrong = pl_shape_wrong(shape);
    return wrong ? pl_fail(err, PL_E_FORMAT, "%s: %s", name, wrong) : PL_OK;
}

static pl_status read_shape(pl_shape *shape, const json_t *root,
                            const file_kind *kind, const char *name,
                            pl_error *err)
{
    pl_status status = PL_OK;
    for (int i = 0; i < PL_SHAPE_FIELDS && !status; i++)
        if (i != PL_SHAPE_D)
            status = pl_shape_json_read(root, shape, (pl_shape_field)i,
                                        kind->file, name, err);
    if (!status && kind->file != PL_IN_GPT2)
        status = read_rope(shape, root, kind->file, name, err);
    if (!status)
        status = check_fixed(root, kind, shape, name, err);
    return status ? status : read_heads(shape, root, kind, name, err);
}

/* A number from 0 (or above it) up to 1, where there is one. */
static pl_status read_dropout(const json_t *root, const file_kind *kind,
                              double *out, const char *name, pl_error *err)
{
    int last = 0;
    while (last + 1 < DROPOUTS && kind->dropouts[last + 1])
        last++;
    const json_t *value = json_object_get(root, kind->dropouts[last]);
    *out = kind->dropout;
    if (is_absent(value))
        return PL_OK;
    *out = json_number_value(value);
    if (json_is_number(value) && *out >= 0.0 && *out < 1.0)
        return PL_OK;
    return pl_fail(err, PL_E_FORMAT,
                   "%s: \"%s\" must be a number from 0 to below 1", name,
                   kind->dropouts[last]);
}

static pl_status read_root(pl_hf_config *config, const json_t *root,
                           const char *name, pl_error *err)
{
    pl_shape *shape = &config->shape;
    const file_kind *kind = NULL;
    *config = (pl_hf_config){ .end_token = -1 };
    pl_status status = find_kind(root, name, &kind, err);
    if (!status)
        status = read_shape(shape, root, kind, name, err);
    if (!status)
        status = read_dropout(root, kind, &config->dropout, name, err);
    const json_t *end = json_object_get(root, "eos_token_id");
    if (json_is_array(end)) /* several: the first is what ends a text */
        end = json_array_get(end, 0);
    if (!status && json_is_integer(end) && json_integer_value(end) >= 0 &&
        (uint64_t)json_integer_value(end) < shape->V)
        config->end_token = (int32_t)json_integer_value(end);
    return status;
}

pl_status pl_hf_config_parse(pl_hf_config *config, const char *text,
                             size_t bytes, const char *name, pl_error *err)
{
    json_t *root = NULL;
    pl_status status = pl_json_parse(text, bytes, name, &root, err);
    if (!status)
        status = read_root(config, root, name, err);
    json_decref(root);
    return status;
}

pl_status pl_hf_config_read(pl_hf_config *config, const char *folder,
                            pl_heap *heap, pl_error *err)
{
    char path[PL_PATH_BYTES], *text;
    size_t bytes;
    pl_status status = pl_path_join(path, folder, "config.json", err);
    if (!status)
        status = pl_file_read_all(path, CONFIG_MAX_BYTES, heap, &text, &bytes,
                                  err);
    if (!status)
        status = pl_hf_config_parse(config, text, bytes, pl_path_shown(path),
                                    err);
    return status;
}

/* ---- writing ---- */

/* What a family's files can't say has another model_type, so that others refuse
 * it instead of computing something else. */
static void put_note(pl_json_text *j, const pl_shape *s, pl_shape_field other)
{
    char note[PL_SHAPE_STRANGERS_BYTES + 80], all[PL_SHAPE_STRANGERS_BYTES];
    pl_shape_strangers_text(s, all);
    if (other == PL_SHAPE_D && s->family == PL_FAMILY_GPT2)
        snprintf(note, sizeof note,
                 "GPT-2's attention is n_embd wide, this model's is %zu (%zu "
                 "heads of %zu): only Plimsoll loads it. An n_head that "
                 "divides n_embd would load anywhere.",
                 s->A, s->H, s->D);
    else if (other == PL_SHAPE_D)
        snprintf(
            note, sizeof note,
            "A Llama's n_head divides its n_embd, this model's %zu doesn't "
            "divide %zu: only Plimsoll loads it.",
            s->H, s->C);
    else
        snprintf(note, sizeof note,
                 "A %s has no %s, this model has: only Plimsoll loads it.",
                 pl_shape_title(s), all);
    pl_json_text_string(j, "note", note);
}

static const file_kind *put_kind(pl_json_text *j, const pl_shape *s)
{
    const pl_shape_field other = pl_shape_stranger(s);
    char list[64];
    const file_kind *kind = other == PL_SHAPE_FIELDS ? &kinds[s->family]
                            : other == PL_SHAPE_D && s->family == PL_FAMILY_GPT2
                                ? &kinds[KIND_OWN_HEADS]
                                : &kinds[KIND_OURS];
    PL_CHECK(!kind->class || kind->file == pl_shape_file_of(s->family));
    pl_json_text_string(j, "model_type", kind->model_type);
    if (!kind->class) {
        put_note(j, s, other);
        return kind;
    }
    snprintf(list, sizeof list, "[\"%s\"]", kind->class);
    pl_json_text_raw(j, "architectures", list);
    return kind;
}

/* The entries that a family has itself are always written; our own where they
 * say something. */
static void put_shape(pl_json_text *j, const pl_shape *s, const file_kind *kind)
{
    for (int i = 0; i < PL_SHAPE_FIELDS; i++) {
        pl_shape_field field = (pl_shape_field)i;
        const pl_shape_entry *entry = &pl_shape_row(field)->in[kind->file];
        const int own = entry->name &&
                        strncmp(entry->name, "plimsoll_", 9) == 0,
                  unsaid = own && (pl_shape_is_derived(s, field) ||
                                   pl_shape_number(s, field) == entry->absent);
        if (!unsaid && field != PL_SHAPE_norm_eps && /* as it is read */
            !(field == PL_SHAPE_D && kind->class && kind->file == PL_IN_GPT2))
            pl_shape_json_put(j, s, field, kind->file);
    }
}

/* What a family's files have besides. */
static void put_besides(pl_json_text *j, const pl_shape *s,
                        const file_kind *kind)
{
    if (kind->file == PL_IN_GPT2) {
        pl_json_text_whole(j, "n_ctx", s->T);
        pl_json_text_whole(j, "n_inner", pl_dim_size(s, PL_DIM_MLP));
        return;
    }
    if (kind->file == PL_IN_LLAMA)
        pl_json_text_raw(j, "mlp_bias",
                         s->bias == PL_BIAS_ALL ? "true" : "false");
    pl_json_text_open(j, "rope_parameters", '{');
    pl_json_text_string(j, "rope_type", "default");
    pl_json_text_real(j, "rope_theta", s->rope_theta);
    pl_json_text_close(j, '}');
}

void pl_hf_config_put_end(pl_json_text *j, int32_t end_token)
{
    static const char *const keys[] = { "bos_token_id", "eos_token_id" };
    for (int i = 0; i < 2; i++)
        if (end_token >= 0)
            pl_json_text_whole(j, keys[i], (uint64_t)end_token);
        else
            pl_json_text_raw(j, keys[i], "null");
}

void pl_hf_config_put(pl_json_text *j, const pl_hf_config *config)
{
    const pl_shape *s = &config->shape;
    char epsilon[32]; /* a file that keeps it as a float has six digits */
    const file_kind *kind = put_kind(j, s);
    put_shape(j, s, kind);
    put_besides(j, s, kind);
    snprintf(epsilon, sizeof epsilon, "%.6g", s->norm_eps);
    pl_json_text_raw(j, pl_shape_row(PL_SHAPE_norm_eps)->in[kind->file].name,
                     epsilon);
    for (int i = 0; i < DROPOUTS && kind->dropouts[i]; i++)
        pl_json_text_real(j, kind->dropouts[i], config->dropout);
    pl_json_text_string(j, "torch_dtype", config->dtype);
    pl_hf_config_put_end(j, config->end_token);
}
