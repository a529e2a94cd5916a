/* replace.h: text with its invalid UTF-8 replaced by U+FFFD, as Python's
 * decode("utf-8", errors="replace") does it: what a caller of tiktoken has to
 * give it. Plimsoll's own tokenizers don't need it. Pure. */
#ifndef PL_TEXT_REPLACE_H
#define PL_TEXT_REPLACE_H

#include <stddef.h>

enum { PL_REPLACE_GROWTH = 3 }; /* one invalid byte becomes three */

/* Writes at most PL_REPLACE_GROWTH * bytes bytes to `out`, returns how many.
 * The bytes that could begin a character but don't go on as one are replaced
 * together (Unicode's "maximal subpart"), any other invalid byte alone. */
size_t pl_replace_invalid(const char *text, size_t bytes, char *out);

#endif
