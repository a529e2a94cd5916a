/* utf8.h: strict UTF-8, one code point at a time. Pure. */
#ifndef PL_BASE_UTF8_H
#define PL_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum { PL_UTF8_CUT_OFF = 0, PL_UTF8_INVALID = -1, PL_UTF8_MAX_BYTES = 4 };

/* The code point at the beginning of `bytes` bytes of `text`. Returns its
 * length, 1 to 4, or PL_UTF8_CUT_OFF if the bytes are the beginning of a valid
 * sequence (none counts as one), or PL_UTF8_INVALID. Overlong forms,
 * surrogates and values above U+10FFFF are invalid, as in Python. */
int pl_utf8_decode(const char *text, size_t bytes, uint32_t *code);

/* Writes `code`, a scalar value, and returns its length. No zero is added. */
int pl_utf8_encode(uint32_t code, char out[PL_UTF8_MAX_BYTES]);

/* Whether `code` is a Unicode scalar value: at most U+10FFFF, no surrogate. */
int pl_utf8_is_scalar(uint32_t code);

/* Whether this byte begins a character. */
static inline int pl_utf8_starts(char byte)
{
    return ((unsigned char)byte & 0xc0) != 0x80;
}

/* How many bytes of `text`, from its beginning, are valid and not zero. */
size_t pl_utf8_text_bytes(const char *text, size_t bytes);

/* `bytes`, less a last character of which only a part is there: for texts that
 * were cut to a size. */
size_t pl_utf8_whole_bytes(const char *text, size_t bytes);

/* Whether the whole of `text` is valid. */
int pl_utf8_is_valid(const char *text, size_t bytes);

typedef enum pl_utf8_breaks {
    PL_UTF8_KEEP_BREAKS, /* line ends and tabs stay */
    PL_UTF8_SHOW_BREAKS, /* they become "\\n" and "\\t", "\\" is doubled */
} pl_utf8_breaks;

enum { PL_UTF8_SHOWN_BYTES = 8 };

/* The character at the beginning of `bytes` > 0 bytes of `text` as a terminal
 * may see it, into `out` with a zero: itself, or an escape such as "\\x1b" and
 * "\\u009b" for a control character or a byte that isn't UTF-8. Returns how
 * many bytes of `text` that was. */
size_t pl_utf8_show(const char *text, size_t bytes, pl_utf8_breaks breaks,
                    char out[PL_UTF8_SHOWN_BYTES]);

enum { PL_UTF8_NAME_BYTES = 24 };

/* "U+00E9 'é'", or "U+0009" alone where it wouldn't show: for messages. */
const char *pl_utf8_name(uint32_t code, char out[PL_UTF8_NAME_BYTES]);

#endif
