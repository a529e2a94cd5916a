/* options.c: what commands ask of a config that was read: keys without effect,
 * the machine. */
#include "advise/trust.h"
#include "cli/command.h"
#include "cli/term.h"
#include "device/choose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pl_status pl_cli_no_paths(const pl_cli_args *args, const char *wanted,
                          pl_error *err)
{
    if (args->path_count == 0)
        return PL_OK;
    return pl_fail(err, PL_E_USAGE,
                   "%s: not understood here. %s, settings are written "
                   "--key=value",
                   args->paths[0], wanted);
}

void pl_cli_say_ignored(const pl_config *config)
{
    pl_key keys[PL_KEY_COUNT];
    char names[512] = "";
    size_t used = 0, count = pl_config_without_effect(config, keys);

    for (size_t i = 0; i < count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                                 i ? ", " : "", pl_key_row(keys[i])->name);
    if (count)
        pl_log_say(&pl_term_log, PL_LOG_NOTE, "without effect here: %s", names);
}

pl_status pl_cli_cache_folder(const char **out, pl_heap *heap, pl_error *err)
{
    char folder[PL_PATH_BYTES];
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int used = -1;
    *out = NULL;
    if (cache && cache[0] == '/')
        used = snprintf(folder, sizeof folder, "%s/plimsoll", cache);
    else if (home && home[0] == '/')
        used = snprintf(folder, sizeof folder, "%s/.cache/plimsoll", home);
    if (used < 0 || (size_t)used >= sizeof folder)
        return PL_OK;
    return pl_heap_text(heap, out, folder, (size_t)used, err);
}

static void show(const char *text)
{
    if (text)
        pl_term_progress("%s", text);
    else
        pl_term_clear();
}

/* A file may be for another machine; what is typed is meant for this one. */
static pl_status check_device(const pl_config *config, pl_error *err)
{
    if (config->device.kind != PL_DEVICE_WISH_MPS ||
        config->origin[PL_KEY_device].source != PL_FROM_COMMAND_LINE)
        return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "--device=%s: this version has no such device. Cards are "
                   "used by CUDA or OpenCL: --device=cuda, opencl or auto. "
                   "`plimsoll devices` lists what is here",
                   config->device.text);
}

pl_status pl_cli_machine(pl_machine *machine, pl_machine_use use,
                         const pl_config *config, pl_heap *heap, pl_error *err)
{
    const char *folder;
    pl_status status = pl_cli_cache_folder(&folder, heap, err);
    if (!status && use != PL_MACHINE_HOST) {
        const pl_trust_wish wish = { folder, &pl_term_log, show };
        status = check_device(config, err);
        if (!status)
            status = pl_trust_device(config, &wish, heap, err);
    }
    if (status)
        return status;
    return pl_machine_make(machine, use, config, folder, heap, err);
}
