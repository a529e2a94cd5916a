/* session_prompts.c: see session_prompts.h. */
#include "train/session_prompts.h"
#include "base/file.h"
#include "base/units.h"
#include "config/special.h"
#include "store/samples.h"

#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 64 };

/* "sample_prompts", or "sample_prompts, item 2". */
static void name_of(const pl_config *config, size_t at, char name[NAME_BYTES])
{
    if (config->sample_prompts.list)
        snprintf(name, NAME_BYTES, "sample_prompts, item %zu", at + 1);
    else
        snprintf(name, NAME_BYTES, "sample_prompts");
}

/* The words themselves, or those of the file that they name. */
static pl_status read_text(pl_prompt *prompt, const pl_run *run, size_t at,
                           const char *name, pl_error *err)
{
    const char *file = pl_config_prompt_file(run->config, at);
    prompt->text = pl_texts_at(&run->config->sample_prompts, at);
    prompt->bytes = strlen(prompt->text);
    if (file) {
        char *text = NULL;
        pl_status status = pl_file_read_all(file, PL_SAMPLES_PROMPT_BYTES,
                                            run->heap, &text, &prompt->bytes,
                                            err);
        if (status)
            return pl_fail_in(err, status, "%s: ", name);
        prompt->text = text;
    }
    if (prompt->bytes > PL_SAMPLES_PROMPT_BYTES)
        return pl_fail(err, PL_E_CONFIG,
                       "%s has %s, and a prompt may have %s while a model "
                       "trains",
                       name, pl_units_exact(prompt->bytes).text,
                       pl_units_exact(PL_SAMPLES_PROMPT_BYTES).text);
    return PL_OK;
}

static pl_status encode(pl_prompt *prompt, const pl_run *run, const char *name,
                        pl_error *err)
{
    const int given = run->config->origin[PL_KEY_sample_prompts].source !=
                      PL_FROM_DEFAULT;
    const size_t room = pl_tokenizer_most_ids(&run->tokenizer, prompt->bytes);
    pl_status status = pl_heap_take(run->heap, &prompt->tokens, room + 1,
                                    sizeof *prompt->tokens, err);
    if (!status)
        status = pl_tokenizer_encode(&run->tokenizer, prompt->text,
                                     prompt->bytes, name, prompt->tokens, room,
                                     &prompt->count, err);
    if (status == PL_E_FORMAT && !given)
        return pl_fail_in(err, status,
                          "sample_prompts is a line end unless it is set, "
                          "which this data's tokenizer doesn't know. Set it\n");
    if (!status && prompt->count == 0)
        status = pl_fail(err, PL_E_CONFIG,
                         "%s is empty: a model goes on from at least one token",
                         name);
    return status;
}

static pl_status check(const pl_run *run, pl_error *err)
{
    const pl_config *config = run->config;
    if (run->tokenizer.kind == PL_TOKENIZER_NONE)
        return pl_fail(err, PL_E_CONFIG,
                       "sample_interval = %lld, but %s has token ids without a "
                       "tokenizer: no prompt can be read and no text written. "
                       "Put the tokenizer beside the data, or set "
                       "sample_interval = 0",
                       (long long)config->sample_interval, run->dataset.folder);
    if (config->sample_prompts.count > PL_SAMPLES_MOST_PROMPTS)
        return pl_fail(err, PL_E_CONFIG,
                       "sample_prompts has %zu texts, and a training goes on "
                       "from %d at the most",
                       config->sample_prompts.count, PL_SAMPLES_MOST_PROMPTS);
    if (config->max_new_tokens > PL_SAMPLES_MOST_TOKENS)
        return pl_fail(err, PL_E_CONFIG,
                       "max_new_tokens = %lld, and with sample_interval a text "
                       "has %d tokens at the most",
                       (long long)config->max_new_tokens,
                       PL_SAMPLES_MOST_TOKENS);
    return PL_OK;
}

pl_status pl_prompts_open(pl_prompts *prompts, const pl_run *run, pl_error *err)
{
    const pl_config *config = run->config;
    size_t longest = 0;
    *prompts = (pl_prompts){ 0 };
    if (config->sample_interval == 0)
        return PL_OK;
    pl_status status = check(run, err);
    if (!status)
        status = pl_heap_take(run->heap, &prompts->items,
                              config->sample_prompts.count,
                              sizeof *prompts->items, err);
    for (size_t i = 0; i < config->sample_prompts.count && !status; i++) {
        pl_prompt *prompt = &prompts->items[i];
        char name[NAME_BYTES];
        name_of(config, i, name);
        status = read_text(prompt, run, i, name, err);
        if (!status)
            status = encode(prompt, run, name, err);
        if (!status && prompt->count > longest)
            longest = prompt->count;
    }
    prompts->capacity = longest + (size_t)config->max_new_tokens;
    prompts->text_bytes = pl_samples_text_bytes(config);
    if (!status)
        status = pl_heap_take(run->heap, &prompts->tokens, prompts->capacity,
                              sizeof *prompts->tokens, err);
    if (!status)
        status = pl_heap_take(run->heap, &prompts->text, prompts->text_bytes, 1,
                              err);
    prompts->count = config->sample_prompts.count;
    return status;
}
