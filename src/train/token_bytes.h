/* token_bytes.h: how many bytes of text each token stands for: what turns a
 * loss into bits per byte.
 *
 * Raw bytes: those that decoding gives back. A special token stands for none,
 * nor does an id that is no token. */
#ifndef PL_TRAIN_TOKEN_BYTES_H
#define PL_TRAIN_TOKEN_BYTES_H

#include "text/tokenizer.h"

typedef struct pl_token_bytes {
    const uint16_t *of; /* [count], by id; NULL: the tokenizer isn't known */
    size_t count;
} pl_token_bytes;

PL_MUST_CHECK pl_status pl_token_bytes_make(pl_token_bytes *bytes,
                                            const pl_tokenizer *tokenizer,
                                            pl_heap *heap, pl_error *err);

/* What it takes of the heap: a plan counts it. */
size_t pl_token_bytes_room(const pl_tokenizer *tokenizer);

#endif
