/* jsontext.c: see jsontext.h. */
#include "format/jsontext.h"
#include "base/units.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void put(pl_json_text *out, const char *text, size_t bytes)
{
    if (out->used + bytes < out->capacity)
        memcpy(out->text + out->used, text, bytes);
    out->used += bytes;
    if (out->used < out->capacity)
        out->text[out->used] = '\0';
}

static void put_text(pl_json_text *out, const char *text)
{
    put(out, text, strlen(text));
}

/* Quotes and backslashes escaped, control characters as \u00XX; bytes that are
 * not ASCII pass through, so UTF-8 stays UTF-8. */
static void put_escaped(pl_json_text *out, const char *text)
{
    char code[8];
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\') {
            put(out, "\\", 1);
            put(out, (const char *)c, 1);
        } else if (*c < 0x20) {
            snprintf(code, sizeof code, "\\u%04x", *c);
            put(out, code, 6);
        } else {
            put(out, (const char *)c, 1);
        }
    }
}

static void put_quoted(pl_json_text *out, const char *text)
{
    put(out, "\"", 1);
    put_escaped(out, text);
    put(out, "\"", 1);
}

static void put_key(pl_json_text *out, const char *key)
{
    put_text(out, out->first ? "\n" : ",\n");
    out->first = 0;
    for (int i = 0; i < out->depth; i++)
        put(out, "  ", 2);
    if (key) {
        put_quoted(out, key);
        put(out, ": ", 2);
    }
}

pl_json_text pl_json_text_begin(char *memory, size_t capacity)
{
    pl_json_text out = { .text = memory, .capacity = capacity };
    put(&out, "", 0); /* ended, even where nothing fits */
    put(&out, "{", 1);
    out.depth = out.first = 1;
    return out;
}

void pl_json_text_string(pl_json_text *out, const char *key, const char *value)
{
    put_key(out, key);
    put_quoted(out, value);
}

void pl_json_text_shown(pl_json_text *out, const char *key, const char *value)
{
    size_t left = strlen(value);
    put_key(out, key);
    put(out, "\"", 1);
    while (left) {
        char one[PL_UTF8_MAX_BYTES + 1] = "\xef\xbf\xbd";
        uint32_t code;
        int bytes = pl_utf8_decode(value, left, &code);
        if (bytes > 0) {
            memcpy(one, value, (size_t)bytes);
            one[bytes] = '\0';
        }
        put_escaped(out, one);
        value += bytes > 0 ? bytes : 1;
        left -= bytes > 0 ? (size_t)bytes : 1;
    }
    put(out, "\"", 1);
}

void pl_json_text_raw(pl_json_text *out, const char *key, const char *value)
{
    put_key(out, key);
    put_text(out, value);
}

void pl_json_text_whole(pl_json_text *out, const char *key, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    pl_json_text_raw(out, key, text);
}

void pl_json_text_real(pl_json_text *out, const char *key, double value)
{
    char text[40] = "null";
    if (isfinite(value))
        snprintf(text, sizeof text, "%.17g", value);
    pl_json_text_raw(out, key, text);
}

void pl_json_text_open(pl_json_text *out, const char *key, char bracket)
{
    put_key(out, key);
    put(out, &bracket, 1);
    out->depth++;
    out->first = 1;
}

void pl_json_text_close(pl_json_text *out, char bracket)
{
    out->depth--;
    out->first = 1; /* a newline, no comma */
    put_key(out, NULL);
    put(out, &bracket, 1);
    out->first = 0;
}

pl_status pl_json_text_end(pl_json_text *out, pl_error *err)
{
    put_text(out, "\n}\n");
    if (out->used >= out->capacity)
        return pl_fail(err, PL_E_MEMORY,
                       "%s of JSON do not fit the %s kept for it",
                       pl_units_exact(out->used + 1).text,
                       pl_units_exact(out->capacity).text);
    return PL_OK;
}
