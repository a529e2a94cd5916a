/* checkpoint_load.c: reading what checkpoint.c wrote. */
#include "base/file.h"
#include "base/json.h"
#include "format/safetensors.h"
#include "train/checkpoint.h"
#include "train/tensors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STATE_MAX_BYTES = 1024 * 1024 };

/* ---- state.json ---- */

static pl_status want_size(const json_t *object, const char *key, size_t *out,
                           const char *path, pl_error *err)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return pl_fail(err, PL_E_FORMAT, "%s: \"%s\" must be a whole number",
                       path, key);
    *out = (size_t)json_integer_value(value);
    return PL_OK;
}

static pl_status want_model(const json_t *root, pl_shape *shape,
                            const char *path, pl_error *err)
{
    const json_t *model = json_object_get(root, "model");
    const struct {
        const char *key;
        size_t *out;
    } sizes[] = {
        { "n_layer", &shape->L },    { "n_head", &shape->H },
        { "head_dim", &shape->D },   { "n_embd", &shape->C },
        { "vocab_size", &shape->V }, { "block_size", &shape->T },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        pl_status status = want_size(model, sizes[i].key, sizes[i].out, path,
                                     err);
        if (status)
            return status;
        if (*sizes[i].out == 0 || *sizes[i].out > (size_t)1 << 30)
            return pl_fail(err, PL_E_FORMAT, "%s: \"%s\" of %zu is no size",
                           path, sizes[i].key, *sizes[i].out);
    }
    const char *activation = json_string_value(
        json_object_get(model, "activation"));
    const json_t *bias = json_object_get(model, "bias");
    if (!json_is_boolean(bias) || !activation ||
        (strcmp(activation, "gelu") != 0 &&
         strcmp(activation, "gelu_tanh") != 0))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: \"model\" needs \"bias\" true or false and "
                       "\"activation\" gelu or gelu_tanh",
                       path);
    shape->bias = json_is_true(bias) ? PL_BIAS_ALL : PL_BIAS_NONE;
    shape->activation = strcmp(activation, "gelu") == 0 ? PL_ACT_GELU
                                                        : PL_ACT_GELU_TANH;
    shape->A = shape->H * shape->D;
    return PL_OK;
}

static pl_status want_scaler(const json_t *root, pl_scaler *scaler,
                             const char *path, pl_error *err)
{
    const json_t *scale = json_object_get(root, "loss_scale");
    size_t good = 0;
    *scaler = pl_scaler_make(scale != NULL);
    if (!scale)
        return PL_OK;
    pl_status status = want_size(root, "loss_scale_updates", &good, path, err);
    if (status)
        return status;
    scaler->scale = json_number_value(scale);
    scaler->good = (uint32_t)good;
    if (!pl_scaler_is_valid(scaler->scale) || good >= PL_SCALER_GROWTH_UPDATES)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: \"loss_scale\" must be a power of two from 1 to "
                       "2^24, \"loss_scale_updates\" below %d",
                       path, PL_SCALER_GROWTH_UPDATES);
    return PL_OK;
}

static pl_status parse_state(pl_checkpoint_state *state, const json_t *root,
                             const char *path, pl_error *err)
{
    size_t step = 0, skipped = 0;
    *state = (pl_checkpoint_state){ 0 };
    pl_status status = want_size(root, "step", &step, path, err);
    if (!status)
        status = want_size(root, "skipped", &skipped, path, err);
    if (!status)
        status = want_model(root, &state->shape, path, err);
    if (!status)
        status = want_scaler(root, &state->scaler, path, err);
    state->step = step;
    state->skipped = skipped;
    const json_t *best = json_object_get(root, "best_val_loss");
    state->best_val_loss = json_is_number(best) ? json_number_value(best)
                                                : HUGE_VAL;
    return status;
}

static pl_status open_state(json_t **root, char path[PL_PATH_BYTES],
                            const char *folder, pl_heap *heap, pl_error *err)
{
    char *text;
    size_t bytes;
    pl_status status = pl_path_join(path, folder, "state.json", err);
    if (!status)
        status = pl_file_read_all(path, STATE_MAX_BYTES, heap, &text, &bytes,
                                  err);
    if (!status)
        status = pl_json_parse(text, bytes, path, root, err);
    return status;
}

pl_status pl_checkpoint_read_state(pl_checkpoint_state *state,
                                   const char *folder, pl_heap *heap,
                                   pl_error *err)
{
    char path[PL_PATH_BYTES];
    json_t *root = NULL;
    pl_status status = open_state(&root, path, folder, heap, err);
    if (!status)
        status = parse_state(state, root, path, err);
    json_decref(root);
    return status;
}

pl_status pl_checkpoint_read_config(pl_config *config, const char *folder,
                                    pl_heap *heap, pl_error *err)
{
    char path[PL_PATH_BYTES];
    const char *key;
    json_t *root = NULL, *value;

    *config = pl_config_make_default();
    pl_status status = open_state(&root, path, folder, heap, err);
    if (status)
        goto free_json;
    json_object_foreach(json_object_get(root, "config"), key, value)
    {
        char line[8192];
        const char *text = json_string_value(value);
        int used = snprintf(line, sizeof line, "%s = %s", key,
                            text ? text : "None");
        if (!text || used < 0 || (size_t)used >= sizeof line)
            status = pl_fail(err, PL_E_FORMAT, "%s: config key %s has no value",
                             path, key);
        else
            status = pl_config_parse(config, line, (size_t)used, path, heap,
                                     err);
        if (status)
            break;
    }
free_json:
    json_decref(root);
    return status;
}

/* ---- which folder ---- */

static pl_status has_state(const char *folder, int *yes, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_file_kind kind;
    pl_status status = pl_path_join(path, folder, "state.json", err);
    if (!status)
        status = pl_file_look(path, &kind, err);
    *yes = !status && kind == PL_FILE_PLAIN;
    return status;
}

/* Of two complete checkpoints: the best is preferred for sampling, the one
 * with more updates for resuming. */
static pl_status choose(const char *newest, const char *best,
                        pl_checkpoint_wish wish, pl_heap *heap,
                        const char **chosen, pl_error *err)
{
    pl_checkpoint_state a, b;
    *chosen = best;
    if (wish == PL_WANT_BEST)
        return PL_OK;
    pl_status status = pl_checkpoint_read_state(&a, newest, heap, err);
    if (!status)
        status = pl_checkpoint_read_state(&b, best, heap, err);
    if (!status && a.step >= b.step)
        *chosen = newest;
    return status;
}

pl_status pl_checkpoint_find(char folder[PL_PATH_BYTES], const char *out_dir,
                             pl_checkpoint_wish wish, pl_heap *heap,
                             pl_error *err)
{
    char newest[PL_PATH_BYTES], best[PL_PATH_BYTES];
    int itself = 0, has_newest = 0, has_best = 0;
    const char *chosen = NULL;

    pl_status status = pl_path_join(newest, out_dir, PL_CHECKPOINT_NEWEST, err);
    if (!status)
        status = pl_path_join(best, out_dir, PL_CHECKPOINT_BEST, err);
    if (!status)
        status = has_state(out_dir, &itself, err);
    if (!status)
        status = has_state(newest, &has_newest, err);
    if (!status)
        status = has_state(best, &has_best, err);
    if (status)
        return status;
    if (itself)
        chosen = out_dir;
    else if (has_newest && has_best)
        status = choose(newest, best, wish, heap, &chosen, err);
    else if (has_newest || has_best)
        chosen = has_newest ? newest : best;
    if (status)
        return status;
    if (!chosen)
        return pl_fail(err, PL_E_IO,
                       "%s: no checkpoint here (looked for state.json in it, "
                       "in %s and in %s). Train one with: plimsoll train "
                       "CONFIG --out_dir=%s",
                       out_dir, newest, best, out_dir);
    snprintf(folder, PL_PATH_BYTES, "%s", chosen);
    return PL_OK;
}

/* ---- tensors ---- */

/* What a dtype says about the key that chose it. */
static const char *reason_of(const pl_tensors_row *row)
{
    return row->is_weight ? "weights" : "optimizer_state";
}

static pl_status find_tensor(const pl_safetensors *st,
                             const pl_tensors_row *row,
                             const pl_tensor_info **out, pl_error *err)
{
    const pl_tensor_info *want = &row->info,
                         *info = pl_safetensors_find(st, want->name);
    if (!info)
        return pl_fail(err, PL_E_FORMAT, "%s: tensor %s is missing",
                       st->file.path, want->name);
    if (info->rank != want->rank || info->dims[0] != want->dims[0] ||
        (want->rank == 2 && info->dims[1] != want->dims[1]))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: tensor %s: expected %zu x %zu, found %zu x %zu",
                       st->file.path, want->name, want->dims[0],
                       want->rank > 1 ? want->dims[1] : 1,
                       info->rank > 0 ? info->dims[0] : 0,
                       info->rank > 1 ? info->dims[1] : 1);
    if (info->dtype != want->dtype)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: tensor %s: expected dtype %s, found %s. The key "
                       "'%s' must be as it was when the checkpoint was written",
                       st->file.path, want->name,
                       pl_tensor_dtype_name(want->dtype),
                       pl_tensor_dtype_name(info->dtype), reason_of(row));
    *out = info;
    return PL_OK;
}

/* A tensor, and the working copy of a weight that has one. */
static pl_status load_tensor(pl_session *session, const pl_safetensors *st,
                             const pl_tensor_info *info,
                             const pl_tensors_row *row, pl_error *err)
{
    pl_status status = PL_OK;
    for (uint64_t at = 0; at < info->bytes && !status;) {
        uint64_t left = info->bytes - at;
        size_t bytes = left < PL_SESSION_STAGE_BYTES ? (size_t)left
                                                     : PL_SESSION_STAGE_BYTES;
        status = pl_safetensors_read(st, info, at, session->stage, bytes, err);
        if (!status)
            pl_device_write(session->device, row->buffer, (size_t)at,
                            session->stage, bytes);
        if (!status && row->is_weight && info->dtype == PL_TENSOR_F32)
            pl_session_write_copy(session, row->slot,
                                  (size_t)at / sizeof(float),
                                  bytes / sizeof(float));
        at += bytes;
    }
    return status;
}

/* Finds every tensor of a file; loads it too, or only looks. */
static pl_status visit_file(pl_session *loader, const pl_session *session,
                            const pl_safetensors *st, pl_tensors_file file,
                            pl_error *err)
{
    const pl_gpt *gpt = &session->gpt;
    pl_status status = PL_OK;
    for (size_t i = 0; i < pl_tensors_rows(gpt, file) && !status; i++) {
        pl_tensors_row row = pl_tensors_at(gpt, file, i);
        const pl_tensor_info *info = NULL;
        if (row.buffer == PL_NO_BUFFER)
            continue;
        status = find_tensor(st, &row, &info, err);
        if (!status && loader)
            status = load_tensor(loader, st, info, &row, err);
    }
    return status;
}

static pl_status open_part(pl_safetensors *st, const char *folder,
                           const char *file, pl_heap *heap, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_status status = pl_path_join(path, folder, file, err);
    if (status)
        return status;
    return pl_safetensors_open(st, path, heap, err);
}

static pl_status visit(pl_session *loader, const pl_session *session,
                       const char *folder, pl_error *err)
{
    const pl_gpt *gpt = &session->gpt;
    pl_safetensors st;
    pl_status status = open_part(&st, folder, "model.safetensors",
                                 session->heap, err);
    if (status)
        return status;
    status = visit_file(loader, session, &st, PL_TENSORS_MODEL, err);
    pl_safetensors_close(&st);
    if (status || gpt->layout.purpose == PL_FOR_SAMPLING)
        return status;
    status = open_part(&st, folder, "optimizer.safetensors", session->heap,
                       err);
    if (status)
        return status;
    status = visit_file(loader, session, &st, PL_TENSORS_OPTIMIZER, err);
    pl_safetensors_close(&st);
    return status;
}

pl_status pl_checkpoint_check(const pl_session *session, const char *folder,
                              pl_error *err)
{
    return visit(NULL, session, folder, err);
}

pl_status pl_checkpoint_load(pl_session *session, const char *folder,
                             pl_error *err)
{
    return visit(session, session, folder, err);
}

/* Whether the folder has this file with exactly these bytes; both may be
 * absent. */
static pl_status same_file(const pl_session *session, const char *folder,
                           const char *name, int *same, pl_error *err)
{
    const pl_tokenizer_text *want = &session->tokenizer_file;
    char path[PL_PATH_BYTES], *text;
    size_t bytes;
    pl_file_kind kind;
    int wanted = want->name && strcmp(want->name, name) == 0;
    pl_status status = pl_path_join(path, folder, name, err);
    if (!status)
        status = pl_file_look(path, &kind, err);
    if (status)
        return status;
    *same = wanted == (kind != PL_FILE_ABSENT);
    if (!wanted || !*same)
        return PL_OK;
    pl_heap scratch = pl_heap_make(PL_TOKENIZER_MAX_BYTES + 2);
    status = pl_file_read_all(path, PL_TOKENIZER_MAX_BYTES, &scratch, &text,
                              &bytes, err);
    if (!status)
        *same = bytes == want->bytes && memcmp(text, want->text, bytes) == 0;
    pl_heap_close(&scratch);
    return status;
}

pl_status pl_checkpoint_check_tokenizer(const pl_session *session,
                                        const char *folder, pl_error *err)
{
    static const char *const names[] = { PL_TOKENIZER_META, PL_TOKENIZER_JSON };
    for (int i = 0; i < 2; i++) {
        int same = 0;
        pl_status status = same_file(session, folder, names[i], &same, err);
        if (status)
            return status;
        if (!same)
            return pl_fail(err, PL_E_CONFIG,
                           "%s/%s: the checkpoint's vocabulary is not that of "
                           "%s: the same token would mean something else. "
                           "Resume with the data it was trained on, or start "
                           "anew in another out_dir",
                           folder, names[i], session->dataset.folder);
    }
    return PL_OK;
}
