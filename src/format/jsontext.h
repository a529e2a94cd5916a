/* jsontext.h: JSON written into memory that the caller has, so that it works
 * after sealing. Indented, one member per line. Overflow is remembered, not
 * fatal: ask pl_json_text_end. The text always ends with a zero. */
#ifndef PL_FORMAT_JSONTEXT_H
#define PL_FORMAT_JSONTEXT_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct pl_json_text {
    char *text;
    size_t capacity, used;
    int depth, first; /* first: no member yet at this depth */
} pl_json_text;

pl_json_text pl_json_text_begin(char *memory, size_t capacity); /* "{" */

/* Members; `key` NULL inside a list. */
void pl_json_text_string(pl_json_text *out, const char *key, const char *value);
/* The same for a text that may be no UTF-8: what isn't becomes U+FFFD. Whoever
 * reads it back has another text then: for people only. */
void pl_json_text_shown(pl_json_text *out, const char *key, const char *value);
void pl_json_text_whole(pl_json_text *out, const char *key, uint64_t value);
/* 17 significant digits; not finite: null. */
void pl_json_text_real(pl_json_text *out, const char *key, double value);
/* `value` as it is: true, false, null, [1, 2]. */
void pl_json_text_raw(pl_json_text *out, const char *key, const char *value);
void pl_json_text_open(pl_json_text *out, const char *key, char bracket);
void pl_json_text_close(pl_json_text *out, char bracket);

/* Closes the object with "}\n". PL_E_MEMORY if it didn't fit. */
PL_MUST_CHECK pl_status pl_json_text_end(pl_json_text *out, pl_error *err);

#endif
