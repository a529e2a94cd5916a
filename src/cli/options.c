/* options.c: from argv to a config. Files and overrides apply in the order in
 * which they stand: later wins. */
#include "base/file.h"
#include "cli/command.h"
#include "cli/term.h"
#include "data/dataset.h"
#include "model/shape.h"
#include "text/tokenizer_file.h"
#include "train/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static pl_status read_file(pl_cli_args *args, const char *path, pl_heap *heap,
                           pl_error *err)
{
    char *text;
    size_t bytes;
    pl_status status = pl_file_read_all(path, PL_CONFIG_MAX_BYTES, heap, &text,
                                        &bytes, err);
    if (status)
        return status;
    return pl_config_parse(&args->config, text, bytes, path, heap, err);
}

/* A flag of the command's own: "--json". */
static int take_flag(pl_cli_args *args, const pl_command *command,
                     const char *argument)
{
    for (unsigned i = 0; command->flags && command->flags[i]; i++)
        if (strcmp(argument, command->flags[i]) == 0) {
            args->flags |= 1u << i;
            return 1;
        }
    return 0;
}

static pl_status read_one(pl_cli_args *args, const pl_command *command,
                          const char *argument, pl_heap *heap, pl_error *err)
{
    if (strncmp(argument, "--", 2) == 0) {
        if (take_flag(args, command, argument))
            return PL_OK;
        return pl_config_override(&args->config, argument, command->keys, heap,
                                  err);
    }
    if (argument[0] == '-' && argument[1] != '\0')
        return pl_fail(err, PL_E_USAGE,
                       "%s: options are written --key=value. `plimsoll %s "
                       "--help` lists the keys",
                       argument, command->name);
    if (command->reads_configs && ends_with(argument, ".py"))
        return read_file(args, argument, heap, err);
    args->paths[args->path_count++] = argument;
    return PL_OK;
}

pl_status pl_cli_read(pl_cli_args *args, const pl_command *command, int argc,
                      char **argv, pl_heap *heap, pl_error *err)
{
    *args = (pl_cli_args){ .config = pl_config_make_default() };
    if (argc > PL_CLI_MAX_PATHS)
        return pl_fail(err, PL_E_USAGE, "%d arguments, at most %d are read",
                       argc, PL_CLI_MAX_PATHS);
    pl_status status = pl_heap_take(heap, &args->paths, (size_t)argc,
                                    sizeof *args->paths, err);
    for (int i = 0; i < argc && !status; i++)
        status = read_one(args, command, argv[i], heap, err);
    if (!status && (command->keys & PL_FOR_TRAIN))
        status = pl_cli_init_from(&args->config, heap, err);
    if (!status)
        status = pl_config_check(&args->config, err);
    return status;
}

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

pl_status pl_cli_vocabulary(const pl_config *config, pl_heap *heap,
                            size_t *vocab_size, size_t *held_bytes,
                            const char **from, pl_error *err)
{
    char folder[PL_PATH_BYTES];
    pl_file_kind kind;
    pl_tokenizer tokenizer;
    const int set = config->vocab_size != PL_NONE;

    if (held_bytes)
        *held_bytes = 0;
    *vocab_size = set ? (size_t)config->vocab_size : PL_VOCAB_GPT2;
    *from = set ? "vocab_size" : "GPT-2's 50257 padded, as nanoGPT does";
    if (set && !held_bytes)
        return PL_OK;
    pl_status status = pl_path_join(folder, "data", config->dataset, err);
    if (!status)
        status = pl_file_look(folder, &kind, err);
    if (status || kind != PL_FILE_FOLDER)
        return status;
    pl_heap scratch = pl_heap_make(heap->limit_bytes);
    status = pl_dataset_read_tokenizer(&tokenizer, folder, &scratch, err);
    pl_heap_close(&scratch); /* only its size is asked for */
    if (status)
        return status;
    *vocab_size = pl_session_vocabulary(config, &tokenizer);
    if (held_bytes)
        *held_bytes = pl_tokenizer_held_bytes(&tokenizer);
    if (!set && tokenizer.kind != PL_TOKENIZER_NONE)
        *from = "the dataset's tokenizer";
    return PL_OK;
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
