/* options.c: what commands ask of a config that was read: keys without effect,
 * the machine. */
#include "cli/command.h"
#include "cli/term.h"

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

/* $XDG_CACHE_HOME/plimsoll, else ~/.cache/plimsoll, else nowhere. */
static pl_status cache_folder(const char **out, pl_heap *heap, pl_error *err)
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

pl_status pl_cli_machine(pl_machine *machine, pl_machine_use use,
                         const pl_config *config, pl_heap *heap, pl_error *err)
{
    const char *folder;
    pl_status status = cache_folder(&folder, heap, err);
    if (status)
        return status;
    return pl_machine_make(machine, use, config, folder, heap, err);
}
