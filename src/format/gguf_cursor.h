/* gguf_cursor.h: bytes, numbers and texts of a GGUF file's header, for gguf.c.
 * Nothing behind the cursor's end is read: PL_E_FORMAT. */
#ifndef PL_FORMAT_GGUF_CURSOR_H
#define PL_FORMAT_GGUF_CURSOR_H

#include "format/gguf.h"

/* The file's name, for messages. */
const char *pl_gguf_shown(const pl_gguf_cursor *c);

PL_MUST_CHECK pl_status pl_gguf_take(pl_gguf_cursor *c, void *out, size_t bytes,
                                     pl_error *err);
/* Little-endian, at most 8 bytes. */
PL_MUST_CHECK pl_status pl_gguf_take_whole(pl_gguf_cursor *c, size_t bytes,
                                           uint64_t *out, pl_error *err);
/* A text's length, which the header must be able to hold; `what` it is. */
PL_MUST_CHECK pl_status pl_gguf_take_length(pl_gguf_cursor *c, const char *what,
                                            uint64_t *bytes, pl_error *err);
/* A text with a zero behind it: valid, not empty, without zeros in it. */
PL_MUST_CHECK pl_status pl_gguf_take_name(pl_gguf_cursor *c, const char *what,
                                          char *out, size_t capacity,
                                          pl_error *err);

#endif
