/* session_prompts.h: what a training goes on from when it writes texts
 * (sample_prompts): read, encoded and given its memory before the first step,
 * so that all that can be wrong with it is found then. */
#ifndef PL_TRAIN_SESSION_PROMPTS_H
#define PL_TRAIN_SESSION_PROMPTS_H

#include "base/arena.h"
#include "store/run.h"

typedef struct pl_prompt {
    const char *text;
    size_t bytes;
    int32_t *tokens; /* at least one */
    size_t count;
} pl_prompt;

typedef struct pl_prompts {
    pl_prompt *items;
    size_t count;    /* 0: the run writes no texts */
    int32_t *tokens; /* room for the longest prompt and what follows it */
    size_t capacity;
    char *text; /* and for the text of that */
    size_t text_bytes;
} pl_prompts;

/* None unless sample_interval is set. PL_E_CONFIG and PL_E_FORMAT say which
 * prompt is wrong. */
PL_MUST_CHECK pl_status pl_prompts_open(pl_prompts *prompts, const pl_run *run,
                                        pl_error *err);

#endif
