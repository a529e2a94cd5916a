/* pretrained.c: a config for the model in a folder; see pretrained.h. */
#include "store/pretrained.h"
#include "base/file.h"
#include "store/hf_config.h"

#include <string.h>

pl_status pl_pretrained_shape(pl_shape *shape, const char *folder,
                              pl_heap *heap, pl_error *err)
{
    pl_hf_config config;
    pl_file_kind kind;
    pl_status status = pl_file_look(folder, &kind, err);
    if (!status && kind != PL_FILE_FOLDER)
        status = pl_fail(err, PL_E_IO,
                         "init_from = '%s': neither 'scratch', nor 'resume', "
                         "nor a folder with a model in it (config.json and "
                         "model.safetensors). A model of the Hugging Face hub "
                         "must be on this disk: download it with `hf download "
                         "%s`, or give the path of its folder",
                         folder, folder);
    if (!status)
        status = pl_hf_config_read(&config, folder, heap, err);
    if (status)
        return status;
    *shape = config.shape;
    return PL_OK;
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
    const int was_set = pl_config_was_set(a->config, key);
    pl_value_brief(&old, before);
    pl_value_brief(&value, after);
    if (was_set && strcmp(before, after) != 0)
        pl_log_say(a->log, PL_LOG_NOTE, "%s is %s in %s: %s has no effect",
                   pl_key_row(key)->name, after, a->origin.name, before);
    return pl_config_set(a->config, key, &value, a->origin, a->heap, err);
}

/* Positions may be left out. More than a table has can't be made up; rotations
 * go on, and a model that was made for many is trained with the default unless
 * somebody asks for more. */
static pl_status set_block_size(const applying *a, const pl_shape *shape,
                                pl_error *err)
{
    const pl_config *config = a->config;
    const int was_set = pl_config_was_set(config, PL_KEY_block_size),
              rotates = shape->position == PL_POSITION_ROTARY,
              enough = (size_t)config->block_size <= shape->T;
    if ((was_set || rotates) && enough)
        return PL_OK;
    if (was_set && rotates) {
        pl_log_say(a->log, PL_LOG_NOTE,
                   "block_size = %lld: the model in %s was made for %zu "
                   "positions, and knows nothing of those behind them",
                   (long long)config->block_size, a->origin.name, shape->T);
        return PL_OK;
    }
    if (was_set)
        return pl_fail(err, PL_E_CONFIG,
                       "block_size = %lld, but the model in %s has %zu "
                       "positions: set it to at most that, or leave it out",
                       (long long)config->block_size, a->origin.name, shape->T);
    return set(a, PL_KEY_block_size, pl_value_int((int64_t)shape->T), err);
}

pl_status pl_pretrained_apply_shape(pl_config *config, const pl_shape *shape,
                                    const char *name, const pl_log *log,
                                    pl_heap *heap, pl_error *err)
{
    applying a = { .config = config, .log = log, .heap = heap };
    pl_status status = pl_heap_text(heap, &a.origin.name, name, strlen(name),
                                    err);
    if (status)
        return status;
    a.origin.source = PL_FROM_FILE;
    a.origin.line = a.origin.column = 1;
    for (int i = 0; i < PL_SHAPE_FIELDS && !status; i++) {
        pl_shape_field field = (pl_shape_field)i;
        const int derived = pl_shape_is_derived(shape, field);
        if (field != PL_SHAPE_T)
            status = set(
                &a, pl_shape_row(field)->key,
                derived ? pl_value_none() : pl_shape_value(shape, field), err);
    }
    if (!status)
        status = set_block_size(&a, shape, err);
    return status;
}

pl_status pl_pretrained_apply(pl_config *config, const char *folder,
                              const pl_log *log, pl_heap *heap, pl_error *err)
{
    pl_shape shape;
    pl_status status = pl_pretrained_shape(&shape, folder, heap, err);
    return status ? status
                  : pl_pretrained_apply_shape(config, &shape, folder, log, heap,
                                              err);
}

int pl_pretrained_known(pl_shape *shape, const char *name)
{
    static const struct {
        const char *name;
        size_t L, H, C;
    } known[] = {
        { "gpt2", 12, 12, 768 },
        { "gpt2-medium", 24, 16, 1024 },
        { "gpt2-large", 36, 20, 1280 },
        { "gpt2-xl", 48, 25, 1600 },
    };
    static const char owner[] = "openai-community/";
    if (strncmp(name, owner, sizeof owner - 1) == 0)
        name += sizeof owner - 1;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(name, known[i].name) == 0) {
            *shape = (pl_shape){ .L = known[i].L,
                                 .H = known[i].H,
                                 .D = known[i].C / known[i].H,
                                 .C = known[i].C,
                                 .V = 50257,
                                 .T = 1024,
                                 .norm_eps = 1e-5,
                                 .rope_theta = 10000.0,
                                 .bias = PL_BIAS_ALL,
                                 .activation = PL_ACT_GELU_TANH,
                                 .head = PL_HEAD_TIED };
            pl_shape_complete(shape);
            return 1;
        }
    return 0;
}
