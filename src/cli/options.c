/* options.c: what commands ask of a config that was read, and signals. */
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
