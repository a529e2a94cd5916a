/* model_folder.c: which folder a name of a model means. The only user of the
 * variables that say where Hugging Face's libraries keep what they load. */
#include "base/file.h"
#include "cli/command.h"
#include "cli/term.h"
#include "config/special.h"
#include "store/checkpoint.h"
#include "store/pretrained.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REVISION_BYTES = 128 };

static pl_status is_kind(const char *path, pl_file_kind want, int *yes,
                         pl_error *err)
{
    pl_file_kind kind = PL_FILE_ABSENT;
    pl_status status = pl_file_look(path, &kind, err);
    *yes = kind == want;
    return status;
}

/* As huggingface_hub has it; "" where there is none. */
static pl_status hub_folder(char out[PL_PATH_BYTES], pl_error *err)
{
    static const struct {
        const char *variable, *below;
    } places[] = {
        { "HF_HUB_CACHE", "" },
        { "HF_HOME", "hub" },
        { "XDG_CACHE_HOME", "huggingface/hub" },
        { "HOME", ".cache/huggingface/hub" },
    };
    out[0] = '\0';
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *value = getenv(places[i].variable);
        if (value && value[0] == '/')
            return pl_path_join(out, value, places[i].below, err);
    }
    return PL_OK;
}

/* hub/models--<owner>--<name>/snapshots/<what refs/main says>; *found 0 if it
 * isn't there. */
static pl_status find_snapshot(char out[PL_PATH_BYTES], const char *hub,
                               const char *owner, const char *name, int *found,
                               pl_error *err)
{
    char model[512], path[PL_PATH_BYTES], revision[REVISION_BYTES];
    size_t bytes = 0;
    int used = snprintf(model, sizeof model, "models--%s%s", owner, name);
    *found = 0;
    if (used < 0 || (size_t)used >= sizeof model - 64)
        return PL_OK;
    for (char *slash = model; (slash = strchr(slash, '/'));) {
        memmove(slash + 2, slash + 1, strlen(slash + 1) + 1);
        memcpy(slash, "--", 2);
        if (strlen(model) > sizeof model - 64)
            return PL_OK;
    }
    used = (int)strlen(model);
    snprintf(model + used, sizeof model - (size_t)used, "/refs/main");
    pl_status status = pl_path_join(path, hub, model, err);
    if (!status)
        status = is_kind(path, PL_FILE_PLAIN, found, err);
    if (status || !*found)
        return status;
    status = pl_file_read_into(path, revision, sizeof revision, &bytes, err);
    if (status)
        return status;
    revision[strcspn(revision, "\n/")] = '\0';
    snprintf(model + used, sizeof model - (size_t)used, "/snapshots/%.48s",
             revision);
    status = pl_path_join(out, hub, model, err);
    return status ? status : is_kind(out, PL_FILE_FOLDER, found, err);
}

pl_status pl_cli_model_name(const char **name, pl_heap *heap, pl_error *err)
{
    static const char *const owners[] = { "", "openai-community--" };
    char hub[PL_PATH_BYTES], path[PL_PATH_BYTES];
    int found = 0;
    pl_status status = is_kind(*name, PL_FILE_FOLDER, &found, err);
    if (status || found || (*name)[0] == '\0')
        return status;
    status = hub_folder(hub, err);
    for (int i = 0; i < 2 && !status && !found && hub[0]; i++)
        status = find_snapshot(path, hub, owners[i], *name, &found, err);
    if (!status && found)
        status = pl_heap_text(heap, name, path, strlen(path), err);
    return status;
}

/* One of OpenAI's that isn't here: where it would be, how it gets there. */
static pl_status say_where(const char *name, pl_error *err)
{
    const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
    char hub[PL_PATH_BYTES];
    pl_status status = hub_folder(hub, err);
    if (status)
        return status;
    size_t bytes = strlen(hub);
    if (bytes > 1 && hub[bytes - 1] == '/')
        hub[bytes - 1] = '\0';
    return pl_fail(err, PL_E_IO,
                   "init_from = '%s': its weights are not on this disk. They "
                   "are looked for in %s/models--%s and "
                   "models--openai-community--%s, Hugging Face's cache: `hf "
                   "download openai-community/%s` brings them there. Or give "
                   "the path of a folder with config.json and "
                   "model.safetensors",
                   name, hub[0] ? pl_path_shown(hub) : "(no HOME is set)", base,
                   base, base);
}

pl_status pl_cli_init_from(pl_config *config, pl_model_use use, pl_heap *heap,
                           pl_error *err)
{
    int found = 0, known = 0;
    const pl_beginning beginning = pl_config_beginning(config);
    if (beginning == PL_BEGIN_RESUME && use != PL_MODEL_JUDGED)
        return pl_cli_resume_model(config, use, heap, err);
    if (beginning != PL_BEGIN_MODEL)
        return PL_OK;
    pl_status status = pl_cli_model_name(&config->init_from, heap, err);
    if (!status)
        status = is_kind(config->init_from, PL_FILE_FOLDER, &found, err);
    pl_shape shape;
    if (!status && !found)
        known = pl_pretrained_known(&shape, config->init_from);
    if (status)
        return status;
    if (known && (use == PL_MODEL_PLANNED || use == PL_MODEL_SHOWN))
        return pl_pretrained_apply_shape(config, &shape, config->init_from,
                                         &pl_term_log, heap, err);
    if (known)
        return say_where(config->init_from, err);
    return !found && use == PL_MODEL_SHOWN
               ? PL_OK
               : pl_pretrained_apply(config, config->init_from, &pl_term_log,
                                     heap, err);
}

pl_status pl_cli_model_folder(char folder[PL_PATH_BYTES], const char *name,
                              int *is_checkpoint, pl_heap *heap, pl_error *err)
{
    char path[PL_PATH_BYTES];
    const char *place = name;
    int has_config = 0, has_manifest = 0, found = 0;
    pl_shape shape;
    pl_status status = pl_cli_model_name(&place, heap, err);
    if (!status)
        status = is_kind(place, PL_FILE_FOLDER, &found, err);
    if (!status && !found && pl_pretrained_known(&shape, place))
        status = say_where(place, err);
    if (!status)
        status = pl_path_join(path, place, "config.json", err);
    if (!status)
        status = is_kind(path, PL_FILE_PLAIN, &has_config, err);
    if (!status)
        status = pl_checkpoint_is(place, &has_manifest, err);
    if (status)
        return status;
    *is_checkpoint = !has_config || has_manifest;
    if (!*is_checkpoint)
        return pl_path_add(folder, place, "", err);
    return pl_checkpoint_find(folder, place, PL_WANT_BEST, PL_SCOPE_MODEL,
                              &pl_term_log, heap, err);
}

pl_status pl_cli_model_wanted(const char **name, const pl_cli_args *args,
                              const char *command, pl_error *err)
{
    const pl_config *config = &args->config;
    if (args->path_count > 1)
        return pl_fail(err, PL_E_USAGE, "%s takes one folder, not %zu", command,
                       args->path_count);
    *name = args->path_count == 1                           ? args->paths[0]
            : pl_config_beginning(config) == PL_BEGIN_MODEL ? config->init_from
                                                            : config->out_dir;
    return PL_OK;
}

pl_status pl_cli_model_find(pl_cli_model *model, pl_cli_args *args,
                            const char *command, pl_heap *heap, pl_error *err)
{
    int is_checkpoint = 0;
    pl_status status = pl_cli_model_wanted(&model->name, args, command, err);
    if (!status)
        status = pl_cli_model_folder(model->folder, model->name, &is_checkpoint,
                                     heap, err);
    if (!status && is_checkpoint)
        status = pl_checkpoint_keep_arithmetic(&args->config, model->folder,
                                               heap, err);
    return status ? status
                  : pl_cli_machine(&model->machine, PL_MACHINE_RUN,
                                   &args->config, heap, err);
}
