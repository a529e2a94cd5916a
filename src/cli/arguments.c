/* arguments.c: from argv to a config. Files apply in the order in which they
 * stand, then the settings, also in theirs: the command line wins wherever it
 * stands. */
#include "base/file.h"
#include "cli/command.h"
#include "cli/term.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    pl_cli_args *args;
    const pl_command *command;
    const char **settings; /* "--key=value", applied behind all files */
    size_t setting_count;
    int only_names; /* "--" was there */
    pl_heap *heap;
} reader;

static int ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static int is_config(const reader *r, const char *argument)
{
    return r->command->reads_configs && ends_with(argument, ".py");
}

/* ---- files ---- */

/* A file that a config names; there may be none. */
static pl_status read_other(void *context, const char *path, char **text,
                            size_t *bytes, pl_heap *heap, pl_error *err)
{
    pl_file_kind kind;
    (void)context;
    *text = NULL;
    pl_status status = pl_file_look(path, &kind, err);
    if (status || kind != PL_FILE_PLAIN)
        return status;
    return pl_file_read_all(path, PL_CONFIG_MAX_BYTES, heap, text, bytes, err);
}

static const char *variable(void *context, const char *name)
{
    (void)context;
    return getenv(name);
}

/* The examples' config/demo.py: an installed program has it elsewhere, and says
 * where. */
static pl_status check_is_there(const char *path, pl_error *err)
{
    char folder[PL_PATH_BYTES], own[PL_PATH_BYTES];
    pl_file_kind kind;
    pl_status status = pl_file_look(path, &kind, err);
    if (status || kind != PL_FILE_ABSENT || strncmp(path, "config/", 7) != 0)
        return status;
    status = pl_link_read("/proc/self/exe", own, err);
    if (status || own[0] == '\0')
        return status;
    pl_path_cut_to_parent(own);
    pl_path_cut_to_parent(own);
    status = pl_path_join(folder, own, "share/plimsoll", err);
    if (!status)
        status = pl_path_join(own, folder, path, err);
    if (!status)
        status = pl_file_look(own, &kind, err);
    if (status || kind != PL_FILE_PLAIN)
        return status;
    return pl_fail(err, PL_E_IO,
                   "there is no %s in this folder. The one that came with "
                   "plimsoll is %s: give that name, or copy it",
                   path, pl_path_quoted(own).text);
}

static pl_status read_file(const reader *r, const char *path, pl_error *err)
{
    char *text;
    size_t bytes;
    pl_status status = check_is_there(path, err);
    if (status)
        return status;
    status = pl_file_read_all(path, PL_CONFIG_MAX_BYTES, r->heap, &text, &bytes,
                              err);
    if (status)
        return status;
    const pl_config_host host = { read_other, variable, NULL, &pl_term_log };
    return pl_config_read(&r->args->config, text, bytes, path, &host, r->heap,
                          err);
}

/* A name: of a config file, or of what the command works on. */
static pl_status read_name(const reader *r, const char *argument, pl_error *err)
{
    if (is_config(r, argument))
        return read_file(r, argument, err);
    r->args->paths[r->args->path_count++] = argument;
    return PL_OK;
}

/* ---- flags ---- */

/* A flag of the command's own: "--json"; one that is listed with "=" at its
 * end may have a name behind that, one with "=VALUE" a value. *taken says
 * whether it is one. */
static pl_status read_flag(const reader *r, const char *argument, int *taken,
                           pl_error *err)
{
    const char *const *flags = r->command->flags;
    *taken = 0;
    for (unsigned i = 0; flags && flags[i]; i++) {
        size_t bytes = strcspn(flags[i], "=");
        char end = strncmp(argument, flags[i], bytes) == 0 ? argument[bytes]
                                                           : 'x';
        if (end != '\0' && end != '=')
            continue;
        if (end == '=' && flags[i][bytes] != '=')
            return pl_fail(err, PL_E_USAGE, "%s takes no value: write %s alone",
                           flags[i], flags[i]);
        if (end == '=' && argument[bytes + 1] == '\0')
            return pl_fail(err, PL_E_USAGE,
                           flags[i][bytes + 1] ? "%s has no value"
                                               : "%s names no folder",
                           argument);
        if (end == '=' && ends_with(flags[i], "..."))
            r->args->listed[r->args->listed_count++] = argument + bytes + 1;
        else if (end == '=' && flags[i][bytes + 1])
            r->args->flag_values[i] = argument + bytes + 1;
        else if (end == '=')
            r->args->paths[r->args->path_count++] = argument + bytes + 1;
        r->args->flags |= 1u << i;
        *taken = 1;
        return PL_OK;
    }
    return PL_OK;
}

/* PL_E_USAGE where a name that is no key's was meant to be a flag. */
static pl_status suggest_flag(const reader *r, const char *argument,
                              size_t bytes, pl_error *err)
{
    const char *const *flags = r->command->flags;
    for (unsigned i = 0; flags && flags[i]; i++) {
        char known[64];
        snprintf(known, sizeof known, "%.*s", (int)strcspn(flags[i], "=") - 2,
                 flags[i] + 2);
        if (pl_name_is_near(argument + 2, bytes, known))
            return pl_fail(err, PL_E_USAGE,
                           "command line: unknown key '%.*s': did you mean "
                           "'--%s'?",
                           (int)bytes, argument + 2, known);
    }
    return PL_OK;
}

/* ---- settings ---- */

/* "--key value": *value is what follows, unless that is something else. */
static pl_status find_value(const reader *r, pl_key key, const char *next,
                            pl_error *err)
{
    const pl_key_info *row = pl_key_row(key);
    char takes[PL_TAKES_BYTES];
    pl_key_takes(key, takes, sizeof takes);
    if (next && strncmp(next, "--", 2) != 0 && !is_config(r, next))
        return PL_OK;
    const int flag = row->type == PL_TYPE_FLAG || row->type == PL_TYPE_IGNORED;
    if (flag)
        pl_fail(err, PL_E_USAGE,
                "command line: '--%s' has no value: write --%s=True or another",
                row->name, row->name);
    else
        pl_fail(err, PL_E_USAGE,
                "command line: '--%s' has no value: write --%s=VALUE, which is "
                "%s",
                row->name, row->name, takes);
    if (next && err) {
        size_t used = strlen(err->text);
        snprintf(err->text + used, sizeof err->text - used,
                 " ('%.200s' is %s; as a value it is written --%s=%.200s)",
                 next,
                 is_config(r, next) ? "a config file"
                                    : "a setting of "
                                      "its own",
                 row->name, next);
    }
    return PL_E_USAGE;
}

/* One setting at argv[*i], with its value there or in the next one. */
static pl_status read_setting(reader *r, int argc, char **argv, int *i,
                              pl_error *err)
{
    const char *argument = argv[*i];
    size_t bytes = strcspn(argument, "=");
    int taken;
    pl_status status = read_flag(r, argument, &taken, err);
    if (status || taken)
        return status;
    pl_key key = pl_key_find(argument + 2, bytes - 2);
    if (key == PL_KEY_COUNT && argument[bytes] == '=' &&
        strncmp(argument, "--wandb_", 8) == 0 &&
        (r->command->keys & PL_FOR_TRAIN)) {
        pl_log_say(&pl_term_log, PL_LOG_NOTE, "without effect here: %.*s",
                   (int)bytes - 2, argument + 2);
        return PL_OK;
    }
    if (key == PL_KEY_COUNT)
        status = suggest_flag(r, argument, bytes - 2, err);
    if (!status && key != PL_KEY_COUNT && argument[bytes] == '\0' &&
        (pl_key_row(key)->commands & r->command->keys)) {
        const char *value = *i + 1 < argc ? argv[*i + 1] : NULL;
        status = find_value(r, key, value, err);
        char *joined = NULL;
        size_t size = bytes + 2 + (value ? strlen(value) : 0);
        if (!status)
            status = pl_heap_take(r->heap, &joined, size, 1, err);
        if (status)
            return status;
        snprintf(joined, size, "%s=%s", argument, value);
        argument = joined;
        *i += 1;
    }
    r->settings[r->setting_count++] = argument;
    return status;
}

static pl_status read_one(reader *r, int argc, char **argv, int *i,
                          pl_error *err)
{
    const char *argument = argv[*i];
    if (r->only_names || argument[0] != '-' || argument[1] == '\0')
        return read_name(r, argument, err);
    if (strcmp(argument, "--") == 0) {
        r->only_names = 1;
        return PL_OK;
    }
    if (argument[1] == '-')
        return read_setting(r, argc, argv, i, err);
    return pl_fail(err, PL_E_USAGE,
                   "%s: options are written --key=value. `plimsoll %s "
                   "--help` lists the keys",
                   argument, r->command->name);
}

pl_status pl_cli_read(pl_cli_args *args, const pl_command *command, int argc,
                      char **argv, pl_heap *heap, pl_error *err)
{
    reader r = { .args = args, .command = command, .heap = heap };
    *args = (pl_cli_args){ .config = pl_config_make_default(),
                           .words = argv,
                           .word_count = (size_t)argc };
    if (argc > PL_CLI_MAX_PATHS)
        return pl_fail(err, PL_E_USAGE, "%d arguments, at most %d are read",
                       argc, PL_CLI_MAX_PATHS);
    pl_status status = pl_heap_take(heap, &args->paths, (size_t)argc,
                                    sizeof *args->paths, err);
    if (!status)
        status = pl_heap_take(heap, &args->listed, (size_t)argc,
                              sizeof *args->listed, err);
    if (!status)
        status = pl_heap_take(heap, &r.settings, (size_t)argc,
                              sizeof *r.settings, err);
    for (int i = 0; i < argc && !status; i++)
        status = read_one(&r, argc, argv, &i, err);
    for (size_t i = 0; i < r.setting_count && !status; i++)
        status = pl_config_override(&args->config, r.settings[i], command->keys,
                                    heap, err);
    if (!status && (command->keys & PL_FOR_TRAIN))
        status = pl_cli_init_from(&args->config, command->model, heap, err);
    if (!status)
        status = pl_config_check(&args->config, err);
    return status;
}
