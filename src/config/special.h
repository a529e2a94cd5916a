/* special.h: texts of which some words have a meaning of their own. What they
 * mean is decided here; nobody else compares a setting with a word. */
#ifndef PL_CONFIG_SPECIAL_H
#define PL_CONFIG_SPECIAL_H

#include "config/config.h"

/* init_from */
typedef enum pl_beginning {
    PL_BEGIN_SCRATCH,
    PL_BEGIN_RESUME, /* from the newest checkpoint in out_dir */
    PL_BEGIN_MODEL,  /* from the model that it names */
} pl_beginning;

pl_beginning pl_config_beginning(const pl_config *cfg);

/* tokenizer */
typedef enum pl_tokenizer_wish {
    PL_TOKENIZER_WISH_NONE, /* '' */
    PL_TOKENIZER_WISH_CHAR,
    PL_TOKENIZER_WISH_BYTE,
    PL_TOKENIZER_WISH_GPT2, /* or a file of that name */
    PL_TOKENIZER_WISH_PATH,
} pl_tokenizer_wish;

pl_tokenizer_wish pl_config_tokenizer(const pl_config *cfg);

/* memory, host_memory: whether it is a budget, and not 'auto'. */
bool pl_config_states_memory(const pl_config *cfg);
bool pl_config_states_host_memory(const pl_config *cfg);

/* start: the file that it is read from ('FILE:path'), or NULL. */
const char *pl_config_start_file(const pl_config *cfg);
/* The same of one of sample_prompts. */
const char *pl_config_prompt_file(const pl_config *cfg, size_t at);

#endif
