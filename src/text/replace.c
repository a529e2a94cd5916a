/* replace.c: see replace.h. */
#include "text/replace.h"

#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/* How many bytes are the beginning of a character, at least 1. */
static size_t subpart(const char *text, size_t bytes)
{
    uint32_t code;
    size_t length = 1;
    while (length < bytes && length < PL_UTF8_MAX_BYTES - 1 &&
           pl_utf8_decode(text, length + 1, &code) == PL_UTF8_CUT_OFF)
        length++;
    return length;
}

size_t pl_replace_invalid(const char *text, size_t bytes, char *out)
{
    size_t at = 0, used = 0;
    uint32_t code;
    while (at < bytes) {
        int length = pl_utf8_decode(text + at, bytes - at, &code);
        if (length > 0) {
            memcpy(out + used, text + at, (size_t)length);
            at += (size_t)length;
            used += (size_t)length;
        } else {
            memcpy(out + used, "\xEF\xBF\xBD", 3);
            at += subpart(text + at, bytes - at);
            used += 3;
        }
    }
    return used;
}
