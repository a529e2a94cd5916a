/* special.c: see special.h. */
#include "config/special.h"

#include <string.h>

static bool is(const char *text, const char *word)
{
    return strcmp(text, word) == 0;
}

pl_beginning pl_config_beginning(const pl_config *cfg)
{
    return is(cfg->init_from, "scratch")  ? PL_BEGIN_SCRATCH
           : is(cfg->init_from, "resume") ? PL_BEGIN_RESUME
                                          : PL_BEGIN_MODEL;
}

pl_tokenizer_wish pl_config_tokenizer(const pl_config *cfg)
{
    return is(cfg->tokenizer, "")       ? PL_TOKENIZER_WISH_NONE
           : is(cfg->tokenizer, "char") ? PL_TOKENIZER_WISH_CHAR
           : is(cfg->tokenizer, "byte") ? PL_TOKENIZER_WISH_BYTE
           : is(cfg->tokenizer, "gpt2") ? PL_TOKENIZER_WISH_GPT2
                                        : PL_TOKENIZER_WISH_PATH;
}

bool pl_config_states_memory(const pl_config *cfg)
{
    return !is(cfg->memory, "auto");
}

bool pl_config_states_host_memory(const pl_config *cfg)
{
    return !is(cfg->host_memory, "auto");
}

static const char *file_of(const char *text)
{
    static const char mark[] = "FILE:";
    const size_t bytes = sizeof mark - 1;
    return strncmp(text, mark, bytes) == 0 ? text + bytes : NULL;
}

const char *pl_config_start_file(const pl_config *cfg)
{
    return file_of(cfg->start);
}

const char *pl_config_prompt_file(const pl_config *cfg, size_t at)
{
    return file_of(pl_texts_at(&cfg->sample_prompts, at));
}
