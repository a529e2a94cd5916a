/* json_line.c: see json_line.h. */
#include "web/json_line.h"
#include "base/arena.h"
#include "base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void put(pl_json_line *line, const char *text, size_t bytes)
{
    if (line->failed || bytes > PL_JSON_LINE_MOST - line->used) {
        line->failed = 1;
        return;
    }
    if (line->used + bytes > line->capacity) {
        const size_t capacity = 2 * (line->used + bytes) + 256;
        if (pl_lump_resize(&line->text, capacity, NULL)) {
            line->failed = 1;
            return;
        }
        line->capacity = capacity;
    }
    memcpy(line->text + line->used, text, bytes);
    line->used += bytes;
}

void pl_json_line_raw(pl_json_line *line, const char *text)
{
    put(line, text, strlen(text));
}

void pl_json_line_format(pl_json_line *line, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put(line, text, strlen(text));
}

/* The escape of a character, or NULL where it stands for itself. */
static const char *escape_of(unsigned char c, char room[8])
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    default:
        break;
    }
    if (c >= 0x20 && c != 0x7f)
        return NULL;
    snprintf(room, 8, "\\u%04x", c);
    return room;
}

void pl_json_line_string(pl_json_line *line, const char *text, size_t bytes)
{
    char room[8];
    put(line, "\"", 1);
    for (size_t at = 0; at < bytes;) {
        uint32_t code;
        const int length = pl_utf8_decode(text + at, bytes - at, &code);
        const char *escape = length == 1
                                 ? escape_of((unsigned char)text[at], room)
                                 : NULL;
        if (length <= 0)
            put(line, "\xef\xbf\xbd", 3);
        else if (escape)
            put(line, escape, strlen(escape));
        else
            put(line, text + at, (size_t)length);
        at += length > 0 ? (size_t)length : 1;
    }
    put(line, "\"", 1);
}

void pl_json_line_real(pl_json_line *line, double value)
{
    if (isfinite(value))
        pl_json_line_format(line, "%.17g", value);
    else
        pl_json_line_raw(line, "null");
}

void pl_json_line_empty(pl_json_line *line)
{
    line->used = 0;
    line->failed = 0;
}

void pl_json_line_free(pl_json_line *line)
{
    pl_lump_free(line->text);
    *line = (pl_json_line){ 0 };
}
