/* utf8.c: see utf8.h. */
#include "base/utf8.h"

#include "base/check.h"

#include <stdio.h>

int pl_utf8_is_scalar(uint32_t code)
{
    return code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
}

int pl_utf8_decode(const char *text, size_t bytes, uint32_t *code)
{
    const unsigned char *at = (const unsigned char *)text;
    if (bytes == 0)
        return PL_UTF8_CUT_OFF;
    uint32_t value = at[0];
    if (value < 0x80) {
        *code = value;
        return 1;
    }
    /* C0, C1 could only be overlong, F5 and up only too large. */
    if (value < 0xC2 || value > 0xF4)
        return PL_UTF8_INVALID;
    int length = value < 0xE0 ? 2 : value < 0xF0 ? 3 : 4;
    /* The second byte's range is what excludes the other overlong forms, the
     * surrogates and all above U+10FFFF (Unicode's table 3-7). */
    unsigned low = value == 0xE0 ? 0xA0 : value == 0xF0 ? 0x90 : 0x80;
    unsigned high = value == 0xED ? 0x9F : value == 0xF4 ? 0x8F : 0xBF;
    value &= 0x7Fu >> length;
    for (int i = 1; i < length; i++) {
        if ((size_t)i == bytes)
            return PL_UTF8_CUT_OFF;
        if (at[i] < low || at[i] > high)
            return PL_UTF8_INVALID;
        value = value << 6 | (at[i] & 0x3Fu);
        low = 0x80;
        high = 0xBF;
    }
    *code = value;
    return length;
}

int pl_utf8_encode(uint32_t code, char out[PL_UTF8_MAX_BYTES])
{
    PL_CHECK(pl_utf8_is_scalar(code));
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    int length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (int i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    out[0] = (char)((0xF00u >> length & 0xF0u) | code);
    return length;
}

size_t pl_utf8_text_bytes(const char *text, size_t bytes)
{
    size_t at = 0;
    uint32_t code;
    int length;
    while ((length = pl_utf8_decode(text + at, bytes - at, &code)) > 0 &&
           code != 0)
        at += (size_t)length;
    return at;
}

size_t pl_utf8_whole_bytes(const char *text, size_t bytes)
{
    uint32_t code;
    for (size_t back = 1; back < PL_UTF8_MAX_BYTES && back <= bytes; back++) {
        const char *at = text + bytes - back;
        if (pl_utf8_starts(*at))
            return pl_utf8_decode(at, back, &code) == PL_UTF8_CUT_OFF
                       ? bytes - back
                       : bytes;
    }
    return bytes;
}

int pl_utf8_is_valid(const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        uint32_t code;
        int length = pl_utf8_decode(text + at, bytes - at, &code);
        if (length <= 0)
            return 0;
        at += (size_t)length;
    }
    return 1;
}

/* Control characters above ASCII: C1, and those that turn the direction of a
 * line, by which a name can look like another one. */
static int is_control(uint32_t code)
{
    return (code >= 0x80 && code <= 0x9F) ||
           (code >= 0x202A && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069);
}

size_t pl_utf8_show(const char *text, size_t bytes, pl_utf8_breaks breaks,
                    char out[PL_UTF8_SHOWN_BYTES])
{
    uint32_t code = 0;
    int length = pl_utf8_decode(text, bytes, &code);
    const unsigned first = (unsigned char)text[0];
    const int is_break = code == '\n' || code == '\t';
    if (length <= 0) {
        snprintf(out, PL_UTF8_SHOWN_BYTES, "\\x%02x", first);
        return 1;
    }
    if (breaks == PL_UTF8_SHOW_BREAKS && (is_break || code == '\\'))
        snprintf(out, PL_UTF8_SHOWN_BYTES, "\\%c",
                 code == '\n'   ? 'n'
                 : code == '\t' ? 't'
                                : '\\');
    else if (!is_break && (code < ' ' || code == 0x7F))
        snprintf(out, PL_UTF8_SHOWN_BYTES, "\\x%02x", first);
    else if (is_control(code))
        snprintf(out, PL_UTF8_SHOWN_BYTES, "\\u%04x", (unsigned)code & 0xFFFFU);
    else
        snprintf(out, PL_UTF8_SHOWN_BYTES, "%.*s", length, text);
    return (size_t)length;
}

const char *pl_utf8_name(uint32_t code, char out[PL_UTF8_NAME_BYTES])
{
    char shown[PL_UTF8_MAX_BYTES + 1] = "";
    int visible = code > 0x20 && code != 0x7F && code != 0xA0 &&
                  !is_control(code) && pl_utf8_is_scalar(code);
    if (visible)
        shown[pl_utf8_encode(code, shown)] = '\0';
    snprintf(out, PL_UTF8_NAME_BYTES, visible ? "U+%04X '%s'" : "U+%04X",
             (unsigned)code, shown);
    return out;
}
