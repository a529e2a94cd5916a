/* options.c: what commands ask of a config that was read: keys without effect,
 * the machine. */
#include "advise/trust.h"
#include "base/memory.h"
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

/* Drivers that were opened for nothing stay in memory. */
static pl_status count_drivers(pl_machine *machine, size_t before, size_t after,
                               pl_error *err)
{
    if (machine->device.memory.spaces == PL_SPACES_APART || after <= before)
        return PL_OK;
    machine->opened_bytes = after - before;
    return pl_machine_take_off(machine, machine->opened_bytes,
                               "looking for cards", err);
}

static size_t peak_bytes(void)
{
    size_t peak;
    return pl_memory_peak_bytes(&peak, NULL) ? 0 : peak;
}

/* Makes sure that the device may be used. */
static pl_status trust(const pl_config *config, const char *folder,
                       pl_heap *heap, pl_error *err)
{
    const pl_trust_wish wish = { .folder = folder,
                                 .log = &pl_term_log,
                                 .progress = show,
                                 .no_cards = !pl_cli_may_have_card() };
    pl_status status = check_device(config, err);
    return status ? status : pl_trust_device(config, &wish, heap, err);
}

pl_status pl_cli_machine(pl_machine *machine, pl_machine_use use,
                         const pl_config *config, pl_heap *heap, pl_error *err)
{
    const char *folder;
    const size_t before = peak_bytes();
    size_t after = before;
    pl_status status = pl_cli_cache_folder(&folder, heap, err);
    if (!status && use != PL_MACHINE_HOST) {
        status = trust(config, folder, heap, err);
        after = pl_device_asks(config) == PL_DEVICE_ASKS_ANY &&
                        pl_cli_may_have_card()
                    ? peak_bytes()
                    : before;
    }
    if (!status)
        status = pl_machine_make(machine, use, config, folder, heap, err);
    return status ? status : count_drivers(machine, before, after, err);
}
