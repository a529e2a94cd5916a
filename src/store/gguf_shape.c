/* gguf_shape.c: see gguf_shape.h. */
#include "store/gguf_shape.h"
#include "base/check.h"
#include "base/path.h"
#include "config/config.h"

#include <stdio.h>
#include <string.h>

/* In the order in which they are written. */
static const struct {
    pl_shape_field field;
    const char *gpt2, *others; /* behind the architecture; NULL: no such key */
} keys[] = {
    { PL_SHAPE_L, "block_count", "block_count" },
    { PL_SHAPE_T, "context_length", "context_length" },
    { PL_SHAPE_C, "embedding_length", "embedding_length" },
    { PL_SHAPE_F, "feed_forward_length", "feed_forward_length" },
    { PL_SHAPE_H, "attention.head_count", "attention.head_count" },
    { PL_SHAPE_KV, NULL, "attention.head_count_kv" },
    { PL_SHAPE_D, NULL, "attention.key_length" },
    { PL_SHAPE_D, NULL, "attention.value_length" },
    { PL_SHAPE_D, NULL, "rope.dimension_count" },
    { PL_SHAPE_V, "vocab_size", "vocab_size" },
    { PL_SHAPE_norm_eps, "attention.layer_norm_epsilon",
      "attention.layer_norm_rms_epsilon" },
    { PL_SHAPE_rope_theta, NULL, "rope.freq_base" },
};

enum { KEYS = sizeof keys / sizeof keys[0] };

/* What changes the result of Llama's and Qwen3's relatives. */
static const char *const unwanted[] = {
    "rope.scaling.type",   "rope.scale_linear",
    "rope.scaling.factor", "attention.sliding_window",
    "attention.clamp_kqv", "expert_count",
    "logit_scale",         "residual_scale",
    "embedding_scale",
};

typedef struct key_name {
    char text[PL_GGUF_KEY_BYTES];
} key_name;

static key_name name_of(pl_family family, const char *key)
{
    key_name name;
    snprintf(name.text, sizeof name.text, "%s.%s",
             pl_shape_row(PL_SHAPE_family)->words[family], key);
    return name;
}

static const char *key_of(int i, pl_family family)
{
    return family == PL_FAMILY_GPT2 ? keys[i].gpt2 : keys[i].others;
}

/* ---- writing ---- */

void pl_gguf_shape_put(pl_gguf_writer *writer, const pl_shape *shape)
{
    pl_gguf_put_text(writer, "general.architecture",
                     pl_shape_row(PL_SHAPE_family)->words[shape->family]);
    pl_gguf_put_text(writer, "general.type", "model");
    pl_gguf_put_text(writer, "general.name", "plimsoll");
    for (int i = 0; i < KEYS; i++) {
        const char *key = key_of(i, shape->family);
        const pl_shape_field field = keys[i].field;
        if (!key)
            continue;
        const key_name name = name_of(shape->family, key);
        if (pl_shape_row(field)->kind == PL_SHAPE_REAL)
            pl_gguf_put_f32(writer, name.text,
                            (float)pl_shape_number(shape, field));
        else
            pl_gguf_put_u32(writer, name.text,
                            (uint32_t)pl_shape_get(shape, field));
    }
}

/* ---- reading ---- */

static pl_status read_family(const pl_gguf *gguf, pl_family *family,
                             pl_error *err)
{
    const char *const *words = pl_shape_row(PL_SHAPE_family)->words;
    char text[64];
    pl_status status = pl_gguf_want_text(gguf, "general.architecture", text,
                                         sizeof text, err);
    for (int i = 0; !status && words[i]; i++)
        if (strcmp(words[i], text) == 0) {
            *family = (pl_family)i;
            return PL_OK;
        }
    if (status)
        return status;
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s: its architecture is %s, only gpt2, llama and qwen3 are "
                   "read",
                   pl_path_shown(gguf->file.path), text);
}

/* A size: what follows from others may be left out, and what is said again must
 * be the same. */
static pl_status read_size(const pl_gguf *gguf, pl_shape *shape,
                           pl_shape_field field, const char *name,
                           pl_error *err)
{
    const size_t have = pl_shape_get(shape, field);
    const int gpt2_hidden = shape->family == PL_FAMILY_GPT2 &&
                            field == PL_SHAPE_F,
              optional = gpt2_hidden || field == PL_SHAPE_D ||
                         field == PL_SHAPE_KV || field == PL_SHAPE_V;
    int64_t least = 1,
            most = (int64_t)pl_key_row(pl_shape_row(field)->key)->max, value;
    if (optional && !pl_gguf_find_key(gguf, name))
        return PL_OK;
    if (gpt2_hidden)
        least = most = (int64_t)pl_shape_hidden(shape);
    else if (have != 0)
        least = most = (int64_t)have;
    pl_status status = pl_gguf_want_whole(gguf, name, least, most, &value, err);
    if (!status)
        pl_shape_set(shape, field, (double)value);
    return status;
}

static pl_status read_real(const pl_gguf *gguf, pl_shape *shape,
                           pl_shape_field field, const char *name,
                           pl_error *err)
{
    const pl_key_info *row = pl_key_row(pl_shape_row(field)->key);
    const pl_gguf_key *key = pl_gguf_find_key(gguf, name);
    if (!key)
        return PL_OK;
    if ((key->type != PL_GGUF_F32 && key->type != PL_GGUF_F64) ||
        !(key->real > 0.0 && key->real >= row->min && key->real < row->max))
        return pl_fail(
            err, PL_E_FORMAT, "%s: %s must be a number from %g to below %g",
            pl_path_shown(gguf->file.path), name, row->min, row->max);
    pl_shape_set(shape, field, key->real);
    return PL_OK;
}

static pl_status check_unwanted(const pl_gguf *gguf, pl_family family,
                                pl_error *err)
{
    for (size_t i = 0; i < sizeof unwanted / sizeof unwanted[0]; i++) {
        const key_name name = name_of(family, unwanted[i]);
        const pl_gguf_key *key = pl_gguf_find_key(gguf, name.text);
        char text[64] = "some";
        if (!key || (key->type < PL_GGUF_F32 && key->whole == 0))
            continue;
        if (key->type == PL_GGUF_TEXT) {
            pl_status status = pl_gguf_want_text(gguf, name.text, text,
                                                 sizeof text, err);
            if (status)
                return status;
            if (strcmp(text, "none") == 0)
                continue;
        }
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: %s is %s, which Plimsoll doesn't compute. Expected "
                       "none",
                       pl_path_shown(gguf->file.path), name.text, text);
    }
    return PL_OK;
}

/* What the tensors say: the vocabulary, the head, and Llama's biases. */
static pl_status look_at_tensors(const pl_gguf *gguf, pl_shape *shape,
                                 pl_error *err)
{
    const pl_gguf_tensor *tokens = pl_gguf_find(gguf, "token_embd.weight");
    if (!tokens || tokens->rank != 2 || tokens->dims[1] > 1 << 30 ||
        tokens->dims[1] < 1)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: there is no matrix token_embd.weight",
                       pl_path_shown(gguf->file.path));
    shape->V = (size_t)tokens->dims[1];
    shape->head = pl_gguf_find(gguf, "output.weight") ? PL_HEAD_OWN
                                                      : PL_HEAD_TIED;
    if (shape->family == PL_FAMILY_LLAMA)
        shape->bias = pl_gguf_find(gguf, "blk.0.attn_output.bias")
                          ? PL_BIAS_ALL
                          : PL_BIAS_NONE;
    return PL_OK;
}

static pl_status check_heads(const pl_gguf *gguf, pl_shape *shape,
                             pl_error *err)
{
    const char *path = pl_path_shown(gguf->file.path);
    if (shape->D == 0 && shape->C % shape->H != 0)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: %zu channels can't be shared by %zu heads", path,
                       shape->C, shape->H);
    if (shape->D == 0)
        shape->D = shape->C / shape->H;
    pl_shape_complete(shape);
    if (shape->A > (size_t)1 << 28)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: attention %zu wide is more than this program "
                       "counts on",
                       path, shape->A);
    const char *wrong = pl_shape_wrong(shape);
    return wrong ? pl_fail(err, PL_E_FORMAT, "%s: %s", path, wrong) : PL_OK;
}

pl_status pl_gguf_shape_read(const pl_gguf *gguf, pl_shape *shape,
                             pl_error *err)
{
    pl_family family = PL_FAMILY_GPT2;
    pl_status status = read_family(gguf, &family, err);
    *shape = (pl_shape){ 0 };
    pl_shape_set_absent(shape, pl_shape_file_of(family));
    shape->T = shape->D = 0; /* keys say them, or others do */
    for (int i = 0; i < KEYS && !status; i++) {
        const char *key = key_of(i, family);
        if (!key)
            continue;
        const key_name name = name_of(family, key);
        status = pl_shape_row(keys[i].field)->kind == PL_SHAPE_REAL
                     ? read_real(gguf, shape, keys[i].field, name.text, err)
                     : read_size(gguf, shape, keys[i].field, name.text, err);
    }
    if (!status && family != PL_FAMILY_GPT2)
        status = check_unwanted(gguf, family, err);
    if (!status)
        status = look_at_tensors(gguf, shape, err);
    return status ? status : check_heads(gguf, shape, err);
}
