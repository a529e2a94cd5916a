/* completions.h: what a request to /v1/completions asks for, in OpenAI's
 * words.
 *
 * Everything that comes from outside is checked here. A key that would change
 * the result and isn't understood is refused by its name; what changes nothing
 * (`user`) is taken. Knows no model: what depends on one is given as limits. */
#ifndef PL_WEB_COMPLETIONS_H
#define PL_WEB_COMPLETIONS_H

#include "base/arena.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PL_COMPLETION_BODY_BYTES = 1024 * 1024,
    PL_COMPLETION_VALUES = 48 * 1024, /* of its JSON */
    PL_COMPLETION_PROMPTS = 256,
    PL_COMPLETION_N = 128,
    PL_COMPLETION_STOPS = 4,
    PL_COMPLETION_STOP_BYTES = 256,
};

/* A text, or tokens. */
typedef struct pl_completion_prompt {
    const char *text; /* NULL: tokens */
    size_t bytes;
    const int32_t *tokens;
    size_t count;
} pl_completion_prompt;

typedef struct pl_completion {
    pl_completion_prompt *prompts;
    size_t
        prompt_count; /* 1 at least; a text of 0 bytes where none was given */
    size_t max_tokens, n, top_k;
    double temperature, top_p; /* top_p 0: all */
    int has_seed;
    int64_t seed;
    const char *stops[PL_COMPLETION_STOPS];
    size_t stop_bytes[PL_COMPLETION_STOPS], stop_count;
    int stream, include_usage, echo;
    int logprobs; /* likeliest tokens of each place; -1: no logprobs at all */
} pl_completion;

/* What a request may not exceed. */
typedef struct pl_completion_limits {
    size_t vocabulary; /* tokens are below it */
    size_t most_top;
} pl_completion_limits;

/* An answer that says what is wrong, in OpenAI's shape. */
typedef struct pl_complaint {
    int status;       /* of HTTP */
    const char *type; /* "invalid_request_error" */
    const char *code; /* or NULL */
    char param[64];   /* the key; "": none */
    char message[512];
} pl_complaint;

/* Fills it; returns 0, so that whoever complains can `return` it. */
PL_PRINTF(4, 5)
int pl_complain(pl_complaint *complaint, int status, const char *param,
                const char *format, ...);

/* Reads a body. All that it holds is copied to `heap`. 0: `complaint` says
 * why. */
PL_MUST_CHECK int pl_completion_read(pl_completion *out, const char *body,
                                     size_t bytes,
                                     const pl_completion_limits *limits,
                                     pl_heap *heap, pl_complaint *complaint);

#endif
