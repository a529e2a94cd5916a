/* weights_folder.c: a Hugging Face GPT-2 folder as weights. */
#include "base/file.h"
#include "base/json.h"
#include "cli/weights.h"
#include "text/tokenizer_file.h"

#include <stdio.h>
#include <string.h>

enum { CONFIG_MAX_BYTES = 1024 * 1024, PREFIX = sizeof "transformer." - 1 };

/* ---- config.json ---- */

static pl_status want_size(const json_t *root, const char *key, size_t most,
                           size_t *out, const char *path, pl_error *err)
{
    const json_t *value = json_object_get(root, key);
    if (!json_is_integer(value) || json_integer_value(value) < 1 ||
        (uint64_t)json_integer_value(value) > most)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: \"%s\" must be a whole number from 1 to %zu", path,
                       key, most);
    *out = (size_t)json_integer_value(value);
    return PL_OK;
}

/* What makes a GPT-2 that other formats and programs don't compute. */
static pl_status refuse_others(const json_t *root, const pl_shape *shape,
                               const char *path, pl_error *err)
{
    const char *type = json_string_value(json_object_get(root, "model_type"));
    const json_t *inner = json_object_get(root, "n_inner");
    const int own = type && strcmp(type, "plimsoll_gpt2") == 0;
    const json_t *scaled = json_object_get(root, "scale_attn_weights");
    if (own || shape->C % shape->H != 0)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: this model has a head_dim of its own: n_head %zu "
                       "heads don't share its n_embd %zu channels, as GPT-2's "
                       "do, so no other program could run it. Train with "
                       "n_embd a multiple of n_head, and no head_dim",
                       path, shape->H, shape->C);
    if (!type || strcmp(type, "gpt2") != 0)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: \"model_type\" is %s, only gpt2 is converted", path,
                       type ? type : "missing");
    if (json_is_integer(inner) &&
        (uint64_t)json_integer_value(inner) != 4 * shape->C)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: \"n_inner\" must be 4 * n_embd, %zu", path,
                       4 * shape->C);
    if (json_is_false(scaled) ||
        json_is_true(json_object_get(root, "scale_attn_by_inverse_layer_idx")))
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: attention is scaled in another way than GPT-2's",
                       path);
    return PL_OK;
}

static pl_status want_activation(const json_t *root, pl_shape *shape,
                                 const char *path, pl_error *err)
{
    static const struct {
        const char *name;
        pl_activation activation;
    } names[] = {
        { "gelu_new", PL_ACT_GELU_TANH },
        { "gelu_pytorch_tanh", PL_ACT_GELU_TANH },
        { "gelu_fast", PL_ACT_GELU_TANH },
        { "gelu", PL_ACT_GELU },
        { "gelu_python", PL_ACT_GELU },
    };
    const json_t *value = json_object_get(root, "activation_function");
    const char *name = value ? json_string_value(value) : "gelu_new";
    for (size_t i = 0; name && i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i].name) == 0) {
            shape->activation = names[i].activation;
            return PL_OK;
        }
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s: \"activation_function\" is %s, expected gelu_new or "
                   "gelu",
                   path, name ? name : "no text");
}

static pl_status read_config(pl_weights *w, const json_t *root,
                             const char *path, pl_error *err)
{
    pl_shape *s = &w->shape;
    const struct {
        const char *key;
        size_t most, *out;
    } sizes[] = {
        { "n_layer", PL_MAX_LAYERS, &s->L }, { "n_head", 1 << 20, &s->H },
        { "n_embd", 1 << 24, &s->C },        { "vocab_size", 1 << 30, &s->V },
        { "n_positions", 1 << 30, &s->T },
    };
    pl_status status = PL_OK;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && !status; i++)
        status = want_size(root, sizes[i].key, sizes[i].most, sizes[i].out,
                           path, err);
    if (!status)
        status = refuse_others(root, s, path, err);
    if (!status)
        status = want_activation(root, s, path, err);
    if (status)
        return status;
    s->D = s->C / s->H;
    s->A = s->C;
    s->bias = PL_BIAS_ALL;
    const json_t *epsilon = json_object_get(root, "layer_norm_epsilon");
    w->epsilon = epsilon ? json_number_value(epsilon) : 1e-5;
    if (!(w->epsilon > 0.0 && w->epsilon < 1.0))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: \"layer_norm_epsilon\" must be between 0 and 1",
                       path);
    w->has_head = json_is_false(json_object_get(root, "tie_word_embeddings"));
    const json_t *end = json_object_get(root, "eos_token_id");
    w->end_token = -1;
    if (json_is_integer(end) && json_integer_value(end) >= 0 &&
        (uint64_t)json_integer_value(end) < s->V)
        w->end_token = (int32_t)json_integer_value(end);
    return PL_OK;
}

static pl_status open_config(pl_weights *w, const char *folder, pl_heap *heap,
                             pl_error *err)
{
    char path[PL_PATH_BYTES], *text;
    size_t bytes;
    json_t *root = NULL;
    pl_status status = pl_path_join(path, folder, "config.json", err);
    if (!status)
        status = pl_file_read_all(path, CONFIG_MAX_BYTES, heap, &text, &bytes,
                                  err);
    if (!status)
        status = pl_json_parse(text, bytes, path, &root, err);
    if (!status)
        status = read_config(w, root, pl_path_shown(path), err);
    json_decref(root);
    return status;
}

/* ---- model.safetensors ---- */

static pl_status set_type(pl_weights_entry *entry, const pl_tensor_info *info,
                          const char *path, pl_error *err)
{
    switch (info->dtype) {
    case PL_TENSOR_F32:
        entry->type = PL_GGML_F32;
        return PL_OK;
    case PL_TENSOR_F16:
        entry->type = PL_GGML_F16;
        return PL_OK;
    case PL_TENSOR_BF16:
        entry->type = PL_GGML_BF16;
        return PL_OK;
    default:
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: tensor %s is %s, expected F32, F16 or BF16", path,
                       info->name, pl_tensor_dtype_name(info->dtype));
    }
}

static pl_status enter(pl_weights *w, size_t slot, pl_error *err)
{
    const char *path = pl_path_shown(w->st.file.path);
    pl_param_name name = { "lm_head.weight" };
    pl_weights_dims dims = pl_weights_size(w, slot, PL_WEIGHTS_IN_OUT);
    if (slot != pl_weights_head(w)) {
        pl_param param = pl_param_at(&w->shape, slot);
        name = pl_param_name_of(&param);
    }
    const pl_tensor_info *info = pl_safetensors_find(&w->st, name.text);
    if (!info && slot != pl_weights_head(w))
        info = pl_safetensors_find(&w->st, name.text + PREFIX);
    if (!info)
        return pl_fail(err, PL_E_FORMAT, "%s: there is no tensor %s", path,
                       name.text);
    int fits = dims.is_matrix ? info->rank == 2 && info->dims[0] == dims.rows &&
                                    info->dims[1] == dims.cols
                              : info->rank == 1 && info->dims[0] == dims.cols;
    if (!fits)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: tensor %s isn't of the shape that config.json "
                       "says, %zu x %zu",
                       path, info->name, dims.rows, dims.cols);
    w->entries[slot].at = w->st.data_at + info->offset;
    return set_type(&w->entries[slot], info, path, err);
}

static pl_status open_tensors(pl_weights *w, const char *folder, pl_heap *heap,
                              pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_file_kind kind = PL_FILE_PLAIN;
    pl_status status = pl_path_join(path, folder, "model.safetensors", err);
    if (!status)
        status = pl_file_look(path, &kind, err);
    if (!status && kind == PL_FILE_ABSENT)
        return pl_fail(err, PL_E_IO,
                       "%s has no model.safetensors. Pickled weights "
                       "(pytorch_model.bin) aren't read; a model in several "
                       "files isn't either",
                       pl_path_shown(folder));
    if (!status)
        status = pl_safetensors_open(&w->st, path, heap, err);
    if (!status)
        status = pl_weights_take(w, heap, err);
    for (size_t slot = 0; slot < pl_weights_slots(w) && !status; slot++)
        status = enter(w, slot, err);
    return status;
}

pl_status pl_weights_open_folder(pl_weights *weights, const char *folder,
                                 pl_heap *heap, pl_error *err)
{
    *weights = (pl_weights){
        .st.file = PL_FILE_CLOSED,
        .gguf.file = PL_FILE_CLOSED,
        .llmc.file = PL_FILE_CLOSED,
        .layout = PL_WEIGHTS_IN_OUT,
    };
    weights->file = &weights->st.file;
    pl_status status = pl_path_add(weights->path, folder, "", err);
    if (!status)
        status = open_config(weights, folder, heap, err);
    if (!status)
        status = open_tensors(weights, folder, heap, err);
    if (!status)
        status = pl_tokenizer_find(&weights->tokenizer, folder, heap, err);
    if (!status && weights->tokenizer.kind != PL_TOKENIZER_NONE &&
        (size_t)weights->tokenizer.vocab_size > weights->shape.V)
        status = pl_fail(err, PL_E_FORMAT,
                         "%s: the tokenizer has %d tokens, the model %zu",
                         pl_path_shown(folder),
                         (int)weights->tokenizer.vocab_size, weights->shape.V);
    if (status)
        pl_weights_close(weights);
    return status;
}
