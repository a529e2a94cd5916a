/* meta.h: the tokenizer as a readable file, meta.json.
 *
 *   {"tokenizer": "char", "vocab_size": 3, "characters": ["\n", "a", "b"]}
 *   {"tokenizer": "byte", "vocab_size": 256}
 *
 * The id of a character is its place in the list. Text in, text out: opens no
 * file. */
#ifndef PL_TEXT_META_H
#define PL_TEXT_META_H

#include "text/tokenizer.h"

enum { PL_META_MAX_BYTES = 2 * 1024 * 1024 }; /* 65536 characters fit */

/* Reads `bytes` bytes of JSON. `name` (a path) begins every message. An
 * unknown key, a missing one and a vocab_size that isn't the number of
 * characters are PL_E_FORMAT. */
PL_MUST_CHECK pl_status pl_meta_read(pl_tokenizer *tokenizer, const char *text,
                                     size_t bytes, const char *name,
                                     pl_heap *heap, pl_error *err);

/* The text for a char or byte tokenizer, with a zero behind it that *bytes
 * doesn't count. The same tokenizer gives the same bytes. */
PL_MUST_CHECK pl_status pl_meta_write(const pl_tokenizer *tokenizer,
                                      pl_heap *heap, const char **text,
                                      size_t *bytes, pl_error *err);

#endif
