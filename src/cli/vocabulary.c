/* vocabulary.c: how many tokens a model has, before its data is opened. */
#include "base/file.h"
#include "cli/command.h"
#include "config/special.h"
#include "data/dataset.h"
#include "model/shape.h"
#include "store/checkpoint.h"
#include "text/tokfile.h"
#include "train/session.h"

#include <stdio.h>
#include <string.h>

/* The name in data/ that `dataset` looks like, or NULL. */
static pl_status nearest_dataset(const char **out, const char *dataset,
                                 pl_heap *heap, pl_error *err)
{
    const char *const *names;
    size_t count;
    pl_file_kind kind;
    *out = NULL;
    pl_status status = pl_file_look("data", &kind, err);
    if (status || kind != PL_FILE_FOLDER)
        return status;
    status = pl_folder_list("data", heap, &names, &count, err);
    for (size_t i = 0; i < count && !status && !*out; i++)
        if (pl_name_is_near(dataset, strlen(dataset), names[i]))
            *out = names[i];
    return status;
}

/* No folder of that name: planning goes on before the data is there, and says
 * so; a name on the command line that looks like another was misspelled. */
static pl_status say_absent(const char **from, const pl_config *config,
                            const char *folder, pl_heap *heap, pl_error *err)
{
    char text[512];
    const char *near = NULL;
    pl_status status = PL_OK;
    if (config->origin[PL_KEY_dataset].source == PL_FROM_DEFAULT)
        return PL_OK;
    if (config->origin[PL_KEY_dataset].source == PL_FROM_COMMAND_LINE)
        status = nearest_dataset(&near, config->dataset, heap, err);
    if (status)
        return status;
    if (near)
        return pl_fail(err, PL_E_IO,
                       "dataset: %s is not there: did you mean '%s'? (Before "
                       "the data is prepared a plan needs --vocab_size)",
                       pl_path_shown(folder), near);
    snprintf(text, sizeof text,
             "%s is not there: GPT-2's 50257 tokens, padded, are assumed",
             pl_path_shown(folder));
    return pl_heap_text(heap, from, text, strlen(text), err);
}

/* That of a model which is taken from somewhere. */
static pl_status say_model(const char **from, const pl_config *config,
                           pl_heap *heap, pl_error *err)
{
    char text[512];
    const char *origin = config->origin[PL_KEY_vocab_size].name;
    pl_file_kind kind = PL_FILE_FOLDER;
    const pl_beginning beginning = pl_config_beginning(config);
    *from = "vocab_size";
    if (config->origin[PL_KEY_vocab_size].source != PL_FROM_FILE ||
        beginning == PL_BEGIN_SCRATCH)
        return PL_OK;
    pl_status status = PL_OK;
    if (beginning == PL_BEGIN_MODEL)
        status = pl_file_look(config->init_from, &kind, err);
    if (status)
        return status;
    if (kind == PL_FILE_FOLDER)
        snprintf(text, sizeof text, "the model of %s", pl_path_shown(origin));
    else
        snprintf(text, sizeof text,
                 "the shape of %s, whose weights are not on this disk; "
                 "training needs them",
                 config->init_from);
    return pl_heap_text(heap, from, text, strlen(text), err);
}

/* What a tokenizer takes, read and in files. */
static pl_status measure(pl_cli_tokenizer_room *room,
                         const pl_tokenizer *tokenizer, pl_heap *heap,
                         pl_error *err)
{
    pl_tokenizer_text own, hf;
    pl_status status = pl_tokenizer_write(tokenizer, heap, &own, err);
    if (!status)
        status = pl_tokenizer_write_hf(tokenizer, heap, &hf, err);
    if (status)
        return status;
    room->memory_bytes = pl_tokenizer_memory_bytes(tokenizer) +
                         pl_token_bytes_room(tokenizer);
    room->file_bytes = pl_checkpoint_tokenizer_bytes(&own, &hf);
    return PL_OK;
}

pl_status pl_cli_vocabulary(const pl_config *config, pl_heap *heap,
                            size_t *vocab_size, pl_cli_tokenizer_room *room,
                            const char **from, pl_error *err)
{
    char folder[PL_PATH_BYTES];
    pl_file_kind kind;
    pl_tokenizer tokenizer;
    pl_session_quiz quiz = { .results = NULL };
    const int set = config->vocab_size != PL_NONE;
    pl_status status = PL_OK;

    if (room)
        *room = (pl_cli_tokenizer_room){ 0 };
    *vocab_size = set ? (size_t)config->vocab_size : PL_VOCAB_GPT2;
    *from = "GPT-2's 50257 padded, as nanoGPT does";
    if (set)
        status = say_model(from, config, heap, err);
    if (status || (set && !room))
        return status;
    status = pl_path_join(folder, "data", config->dataset, err);
    if (!status)
        status = pl_file_look(folder, &kind, err);
    if (!status && kind != PL_FILE_FOLDER)
        return set ? PL_OK : say_absent(from, config, folder, heap, err);
    if (status)
        return status;
    pl_heap scratch = pl_heap_make(heap->limit_bytes);
    status = pl_dataset_read_tokenizer(&tokenizer, folder, &scratch, err);
    if (!status && room)
        status = measure(room, &tokenizer, &scratch, err);
    if (!status && room && !config->eval_only)
        status = pl_session_quiz_open(&quiz, config, &tokenizer, folder,
                                      &scratch, err);
    if (!status && room)
        room->memory_bytes += quiz.requests.bytes;
    pl_heap_close(&scratch); /* only its size is asked for */
    if (status)
        return status;
    *vocab_size = pl_session_vocabulary(config, &tokenizer);
    if (!set && tokenizer.kind != PL_TOKENIZER_NONE)
        *from = "the dataset's tokenizer";
    return PL_OK;
}
