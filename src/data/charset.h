/* charset.h: the characters of a text: found in it, and as a table from code
 * points to ids, the fast way for char tokenizers. */
#ifndef PL_DATA_CHARSET_H
#define PL_DATA_CHARSET_H

#include "base/arena.h"
#include "text/tokenizer.h"

enum { PL_CHARSET_CODES = 0x110000 };

typedef struct pl_charset {
    uint16_t *ids; /* by code point; while marking 1: it occurs */
} pl_charset;

enum { PL_CHARSET_BYTES = PL_CHARSET_CODES * (int)sizeof(uint16_t) };

/* An empty one; the table, PL_CHARSET_BYTES, comes from `heap`. */
PL_MUST_CHECK pl_status pl_charset_open(pl_charset *set, pl_heap *heap,
                                        pl_error *err);

/* Marks the characters of `text`. Returns how many bytes were valid UTF-8:
 * less than `bytes` where it isn't. */
size_t pl_charset_mark(pl_charset *set, const char *text, size_t bytes);

/* The tokenizer of all that were marked, ascending, as nanoGPT's
 * sorted(list(set(data))). PL_E_FORMAT if there are too many. */
PL_MUST_CHECK pl_status pl_charset_make(pl_charset *set,
                                        pl_tokenizer *tokenizer, pl_heap *heap,
                                        pl_error *err);

/* Makes it the table of a tokenizer. */
void pl_charset_fill(pl_charset *set, const pl_tokenizer *tokenizer);

/* Ids of all of `text`; returns how many bytes could be encoded, *count says
 * by how many ids: what follows is invalid, or no character of the
 * tokenizer's. */
size_t pl_charset_encode(const pl_charset *set, const pl_tokenizer *tokenizer,
                         const char *text, size_t bytes, int32_t *ids,
                         size_t *count);

#endif
