/* checkpoint_state.c: state.json, both ways. */
#include "base/file.h"
#include "base/json.h"
#include "format/jsontext.h"
#include "store/checkpoint.h"
#include "store/shape_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STATE_MAX_BYTES = 1024 * 1024 };

/* ---- writing ---- */

static void put_model(pl_json_text *j, const pl_shape *s)
{
    pl_json_text_open(j, "model", '{');
    for (int i = 0; i < PL_SHAPE_FIELDS; i++)
        pl_shape_json_put(j, s, (pl_shape_field)i, PL_IN_STATE);
    pl_json_text_close(j, '}');
}

static void put_config(pl_json_text *j, const pl_config *config)
{
    pl_json_text_open(j, "config", '{');
    for (int key = 0; key < PL_KEY_COUNT; key++) {
        char value[PL_CHECKPOINT_VALUE_BYTES];
        if (!pl_key_is_kept((pl_key)key))
            continue;
        pl_config_value_text(config, (pl_key)key, value, sizeof value);
        pl_json_text_string(j, pl_key_row((pl_key)key)->name, value);
    }
    pl_json_text_close(j, '}');
    pl_json_text_open(j, "set", '[');
    for (int key = 0; key < PL_KEY_COUNT; key++)
        if (pl_key_is_kept((pl_key)key) &&
            pl_config_was_set(config, (pl_key)key))
            pl_json_text_string(j, NULL, pl_key_row((pl_key)key)->name);
    pl_json_text_close(j, ']');
}

static void put_metrics(pl_json_text *j, pl_run *run)
{
    const pl_metrics_past past = pl_metrics_past_at(&run->metrics, run->step);
    pl_json_text_whole(j, "metrics_lines", past.lines);
    pl_json_text_whole(j, "metrics_evaluations", past.evals);
    pl_json_text_raw(j, "metrics_evaluated", past.evaluated ? "true" : "false");
    pl_json_text_string(j, "metrics_xxh128", past.chain.text);
}

pl_status pl_checkpoint_state_text(pl_run *run, size_t *bytes, pl_error *err)
{
    const pl_shard_set *shards = run->dataset.shards;
    pl_json_text j = pl_json_text_begin(run->text, PL_RUN_TEXT_BYTES);
    pl_json_text_string(&j, "plimsoll", PL_VERSION);
    pl_json_text_whole(&j, "arithmetic", run->gpt.layout.device.arithmetic);
    pl_json_text_whole(&j, "step", run->step);
    pl_json_text_real(&j, "val_loss", run->val_loss);
    pl_json_text_real(&j, "val_bpb", run->val_bpb);
    pl_json_text_real(&j, "best_val_loss", run->best_val_loss);
    pl_json_text_real(&j, "best_val_bpb", run->best_val_bpb);
    pl_json_text_whole(&j, "skipped", run->skipped);
    if (run->scaler.adaptive) {
        pl_json_text_real(&j, "loss_scale", run->scaler.scale);
        pl_json_text_whole(&j, "loss_scale_updates", run->scaler.good);
    }
    pl_json_text_whole(&j, "train_tokens", shards[PL_SPLIT_TRAIN].n_tokens);
    pl_json_text_whole(&j, "val_tokens", shards[PL_SPLIT_VAL].n_tokens);
    if (pl_gpt_workers(&run->gpt.layout))
        pl_json_text_whole(&j, "workers", pl_gpt_workers(&run->gpt.layout));
    put_metrics(&j, run);
    put_model(&j, &run->shape);
    put_config(&j, run->config);
    pl_status status = pl_json_text_end(&j, err);
    *bytes = j.used;
    return status;
}

/* ---- reading ---- */

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
    pl_status status = PL_OK;
    for (int i = 0; i < PL_SHAPE_FIELDS && !status; i++)
        status = pl_shape_json_read(model, shape, (pl_shape_field)i,
                                    PL_IN_STATE, path, err);
    if (status)
        return status;
    pl_shape_complete(shape);
    const char *wrong = pl_shape_wrong(shape);
    return wrong ? pl_fail(err, PL_E_FORMAT, "%s: \"model\": %s", path, wrong)
                 : PL_OK;
}

static pl_status want_scaler(const json_t *root, pl_scaler *scaler,
                             const char *path, pl_error *err)
{
    const json_t *scale = json_object_get(root, "loss_scale");
    size_t good = 0;
    *scaler = pl_scaler_make(scale ? PL_F16 : PL_F32, 1.0);
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

/* null: there is none. */
static double loss_of(const json_t *root, const char *key)
{
    const json_t *value = json_object_get(root, key);
    return json_is_number(value) ? json_number_value(value) : HUGE_VAL;
}

static void read_losses(pl_checkpoint_state *state, const json_t *root)
{
    state->best_val_loss = loss_of(root, "best_val_loss");
    state->best_val_bpb = loss_of(root, "best_val_bpb");
    state->val_loss = loss_of(root, "val_loss");
    state->val_bpb = loss_of(root, "val_bpb");
    /* Earlier versions didn't say it: here it was the best itself. */
    if (!json_object_get(root, "best_val_bpb") &&
        state->val_loss == state->best_val_loss)
        state->best_val_bpb = state->val_bpb;
}

/* What wrote no hash copied every line, and logged an evaluation if it had a
 * loss. */
static pl_status read_metrics(pl_checkpoint_state *state, const json_t *root,
                              const char *path, pl_error *err)
{
    pl_metrics_past *past = &state->metrics;
    const json_t *hash = json_object_get(root, "metrics_xxh128");
    size_t evals = 0;
    past->step = state->step;
    past->evaluated = isfinite(state->val_loss);
    if (!hash)
        return PL_OK;
    if (json_string_length(hash) != PL_HASH_TEXT_BYTES - 1 ||
        strlen(json_string_value(hash)) != PL_HASH_TEXT_BYTES - 1)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: \"metrics_xxh128\" must have %d digits", path,
                       PL_HASH_TEXT_BYTES - 1);
    memcpy(past->chain.text, json_string_value(hash), PL_HASH_TEXT_BYTES);
    past->evaluated = json_is_true(json_object_get(root, "metrics_evaluated"));
    pl_status status = want_size(root, "metrics_evaluations", &evals, path,
                                 err);
    past->evals = evals;
    return status;
}

/* What not every checkpoint says; `unsaid` stands for it then. */
static pl_status read_size(uint64_t *out, const json_t *root, const char *key,
                           size_t unsaid, const char *path, pl_error *err)
{
    size_t value = unsaid;
    pl_status status = PL_OK;
    if (json_object_get(root, key))
        status = want_size(root, key, &value, path, err);
    *out = value;
    return status;
}

static pl_status read_arithmetic(uint64_t *out, const json_t *root,
                                 const char *path, pl_error *err)
{
    return read_size(out, root, "arithmetic", PL_ARITHMETIC_UNSAID, path, err);
}

static pl_status read_state(pl_checkpoint_state *state, const json_t *root,
                            const char *path, pl_error *err)
{
    const struct {
        const char *key;
        uint64_t *out;
    } counts[] = {
        { "step", &state->step },
        { "skipped", &state->skipped },
        { "train_tokens", &state->train_tokens },
        { "val_tokens", &state->val_tokens },
        { "metrics_lines", &state->metrics.lines },
    };
    pl_status status = PL_OK;
    *state = (pl_checkpoint_state){ 0 };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && !status; i++) {
        size_t value = 0;
        status = want_size(root, counts[i].key, &value, path, err);
        *counts[i].out = value;
    }
    if (!status)
        status = read_arithmetic(&state->arithmetic, root, path, err);
    if (!status)
        status = read_size(&state->workers, root, "workers", 0, path, err);
    if (!status)
        status = want_model(root, &state->shape, path, err);
    if (!status)
        status = want_scaler(root, &state->scaler, path, err);
    read_losses(state, root);
    return status ? status : read_metrics(state, root, path, err);
}

pl_status pl_checkpoint_parse_state(pl_checkpoint_state *state,
                                    const char *text, size_t bytes,
                                    const char *name, pl_error *err)
{
    json_t *root = NULL;
    pl_status status = pl_json_parse(text, bytes, name, &root, err);
    if (!status)
        status = read_state(state, root, name, err);
    json_decref(root);
    return status;
}

/* Each is read as a line of a config file. A key of another version that this
 * one doesn't know stops it: its meaning is unknown. */
static pl_status read_values(pl_config *config, const json_t *root,
                             const char *name, pl_heap *heap, pl_error *err)
{
    const char *key;
    json_t *value;
    pl_status status = PL_OK;
    json_object_foreach(json_object_get(root, "config"), key, value)
    {
        char line[8192];
        const char *said = json_string_value(value);
        int used = snprintf(line, sizeof line, "%s = %s", key,
                            said ? said : "None");
        if (!said || used < 0 || (size_t)used >= sizeof line)
            status = pl_fail(err, PL_E_FORMAT,
                             "%s: config key %.80s has no value", name, key);
        else
            status = pl_config_parse(config, line, (size_t)used, name, heap,
                                     err);
        if (status)
            break;
    }
    return status;
}

/* Where nothing says what was set: what has its default's value counts as one.
 * Who set it to that gets a default's freedom, which changes no bit. */
static void guess_origins(pl_config *config)
{
    const pl_config standard = pl_config_make_default();
    for (int key = 0; key < PL_KEY_COUNT; key++) {
        char had[PL_CHECKPOINT_VALUE_BYTES], own[PL_CHECKPOINT_VALUE_BYTES];
        pl_config_value_text(config, (pl_key)key, had, sizeof had);
        pl_config_value_text(&standard, (pl_key)key, own, sizeof own);
        if (strcmp(had, own) == 0)
            pl_config_call_default(config, (pl_key)key);
    }
}

/* What was a default stays one, with the value that it had then. */
static pl_status read_origins(pl_config *config, const json_t *root,
                              const char *name, pl_error *err)
{
    const json_t *list = json_object_get(root, "set");
    char set[PL_KEY_COUNT] = { 0 };
    if (!list) {
        guess_origins(config);
        return PL_OK;
    }
    if (!json_is_array(list))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: \"set\" must be a list of config keys", name);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        pl_key key = text ? pl_key_find(text, strlen(text)) : PL_KEY_COUNT;
        if (key == PL_KEY_COUNT)
            return pl_fail(err, PL_E_FORMAT,
                           "%s: item %zu of \"set\" is no config key: %.80s",
                           name, i + 1, text ? text : "not a string");
        set[key] = 1;
    }
    for (int key = 0; key < PL_KEY_COUNT; key++)
        if (!set[key])
            pl_config_call_default(config, (pl_key)key);
    return PL_OK;
}

pl_status pl_checkpoint_parse_config(pl_config *config, const char *text,
                                     size_t bytes, const char *name,
                                     pl_heap *heap, pl_error *err)
{
    json_t *root = NULL;
    *config = pl_config_make_default();
    pl_status status = pl_json_parse(text, bytes, name, &root, err);
    if (!status)
        status = read_values(config, root, name, heap, err);
    if (!status)
        status = read_origins(config, root, name, err);
    if (!status)
        status = read_arithmetic(&config->kept_arithmetic, root, name, err);
    json_decref(root);
    return status;
}

static pl_status read_text(const char *folder, char path[PL_PATH_BYTES],
                           char **text, size_t *bytes, pl_heap *heap,
                           pl_error *err)
{
    pl_status status = pl_path_join(path, folder, "state.json", err);
    if (!status)
        status = pl_file_read_all(path, STATE_MAX_BYTES, heap, text, bytes,
                                  err);
    return status;
}

pl_status pl_checkpoint_read_state(pl_checkpoint_state *state,
                                   const char *folder, pl_heap *heap,
                                   pl_error *err)
{
    char path[PL_PATH_BYTES], *text;
    size_t bytes;
    pl_status status = read_text(folder, path, &text, &bytes, heap, err);
    if (!status)
        status = pl_checkpoint_parse_state(state, text, bytes, path, err);
    return status;
}

pl_status pl_checkpoint_read_config(pl_config *config, const char *folder,
                                    pl_heap *heap, pl_error *err)
{
    char path[PL_PATH_BYTES], *text;
    const char *name = NULL;
    size_t bytes;
    pl_status status = read_text(folder, path, &text, &bytes, heap, err);
    if (!status) /* origins keep it */
        status = pl_heap_text(heap, &name, path, strlen(path), err);
    if (!status)
        status = pl_checkpoint_parse_config(config, text, bytes, name, heap,
                                            err);
    return status;
}

pl_status pl_checkpoint_keep_arithmetic(pl_config *config, const char *folder,
                                        pl_heap *heap, pl_error *err)
{
    pl_checkpoint_state state;
    pl_status status = pl_checkpoint_read_state(&state, folder, heap, err);
    if (!status)
        config->kept_arithmetic = state.arithmetic;
    return status;
}
