/* same_model.c: the keys that say which model it is, against a checkpoint. */
#include "cli/command.h"
#include "store/checkpoint.h"

#include <string.h>

static int is_model_key(pl_key key)
{
    return pl_key_row(key)->effect == PL_EFFECT_MODEL;
}

static pl_status compare(const pl_config *config, const pl_shape *shape,
                         pl_key key, const char *folder, pl_error *err)
{
    char has[PL_VALUE_BRIEF_BYTES], wants[PL_VALUE_BRIEF_BYTES], where[256];
    pl_value asked = pl_config_get(config, key),
             held = pl_shape_value(shape, pl_shape_find(key));
    if (asked.kind == PL_VALUE_NONE)
        return PL_OK; /* as the model has it */
    pl_value_brief(&held, has);
    pl_value_brief(&asked, wants);
    if (strcmp(has, wants) == 0)
        return PL_OK;
    pl_config_origin_text(config, key, where, sizeof where);
    return pl_fail(err, PL_E_CONFIG,
                   "%s: %s is %s in the checkpoint and %s (%s). A checkpoint "
                   "has the model it was made with: leave the key out%s",
                   folder, pl_key_row(key)->name, has, wants, where,
                   key == PL_KEY_block_size
                       ? "; eval_block_size evaluates with a shorter context"
                       : ", or start anew with another out_dir");
}

pl_status pl_cli_same_model(const pl_config *config, const char *folder,
                            pl_heap *heap, pl_error *err)
{
    pl_checkpoint_state state;
    pl_status status = pl_checkpoint_read_state(&state, folder, heap, err);
    for (int key = 0; key < PL_KEY_COUNT && !status; key++)
        if (is_model_key((pl_key)key) && pl_config_was_set(config, (pl_key)key))
            status = compare(config, &state.shape, (pl_key)key, folder, err);
    return status;
}

/* Sets a key as the checkpoint has it. */
static pl_status adopt(pl_config *config, pl_key key, const pl_value *value,
                       const char *folder, pl_heap *heap, pl_error *err)
{
    pl_config_origin origin = { PL_FROM_FILE, NULL, 0, 0 };
    pl_status status = pl_heap_text(heap, &origin.name, folder, strlen(folder),
                                    err);
    return status ? status
                  : pl_config_set(config, key, value, origin, heap, err);
}

pl_status pl_cli_resume_model(pl_config *config, pl_model_use use,
                              pl_heap *heap, pl_error *err)
{
    char folder[PL_PATH_BYTES];
    pl_checkpoint_state state;
    pl_config *had = NULL;
    pl_status status = pl_checkpoint_find(folder, config->out_dir,
                                          PL_WANT_NEWEST, PL_SCOPE_SETTINGS,
                                          NULL, heap, err);
    if (status == PL_E_IO && use == PL_MODEL_SHOWN)
        return PL_OK;
    if (!status)
        status = pl_cli_same_model(config, folder, heap, err);
    if (!status)
        status = pl_checkpoint_read_state(&state, folder, heap, err);
    if (!status)
        status = pl_heap_take(heap, &had, 1, sizeof *had, err);
    if (!status)
        status = pl_checkpoint_read_config(had, folder, heap, err);
    for (int key = 0; key < PL_KEY_COUNT && !status; key++) {
        if (!is_model_key((pl_key)key) ||
            pl_config_was_set(config, (pl_key)key))
            continue;
        /* a run finds its vocabulary in the data; a plan may have none */
        pl_value value = key == PL_KEY_vocab_size && use != PL_MODEL_RUN
                             ? pl_shape_value(&state.shape, PL_SHAPE_V)
                             : pl_config_get(had, (pl_key)key);
        status = adopt(config, (pl_key)key, &value, folder, heap, err);
    }
    return status;
}
