/* value.c: making values and writing them as Python literals. */
#include "config/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

pl_value pl_value_none(void)
{
    return (pl_value){ .kind = PL_VALUE_NONE };
}

pl_value pl_value_flag(bool flag)
{
    return (pl_value){ .kind = PL_VALUE_FLAG, .flag = flag };
}

pl_value pl_value_int(int64_t whole)
{
    return (pl_value){ .kind = PL_VALUE_INT, .whole = whole };
}

pl_value pl_value_float(double real)
{
    return (pl_value){ .kind = PL_VALUE_FLOAT, .real = real };
}

pl_value pl_value_text(const char *text)
{
    return (pl_value){ .kind = PL_VALUE_TEXT, .text = text };
}

pl_value pl_value_list(const pl_value *items, size_t count)
{
    pl_value list = { .kind = PL_VALUE_LIST, .items = items, .count = count };
    for (size_t i = 0; i < count; i++) {
        const bool inner = items[i].kind == PL_VALUE_LIST;
        list.weight += inner ? items[i].weight : 1;
        if (inner && items[i].nesting > list.nesting)
            list.nesting = items[i].nesting;
    }
    list.nesting++;
    return list;
}

pl_value pl_value_tuple(const pl_value *items, size_t count)
{
    pl_value value = pl_value_list(items, count);
    value.tuple = true;
    return value;
}

pl_value pl_value_unknown(const char *why)
{
    return (pl_value){ .kind = PL_VALUE_UNKNOWN, .text = why };
}

const char *pl_value_kind_name(pl_value_kind kind)
{
    switch (kind) {
    case PL_VALUE_NONE:
        return "None";
    case PL_VALUE_FLAG:
        return "a bool";
    case PL_VALUE_INT:
        return "an int";
    case PL_VALUE_FLOAT:
        return "a float";
    case PL_VALUE_TEXT:
        return "a string";
    case PL_VALUE_LIST:
        return "a list";
    case PL_VALUE_UNKNOWN:
        break;
    }
    return "a value that is not known";
}

/* ---- writing ---- */

/* Counts everything, keeps what there is room for. */
typedef struct writer {
    char *text;
    size_t size;
    size_t used;
} writer;

static void put(writer *out, const char *bytes, size_t count)
{
    if (out->used < out->size) {
        size_t room = out->size - out->used;
        memcpy(out->text + out->used, bytes, count < room ? count : room);
    }
    out->used += count;
}

static size_t finish(writer *out)
{
    if (out->size > 0)
        out->text[out->used < out->size ? out->used : out->size - 1] = '\0';
    return out->used;
}

static void put_int(writer *out, int64_t whole)
{
    char digits[24];
    int bytes = snprintf(digits, sizeof digits, "%" PRId64, whole);
    put(out, digits, (size_t)bytes);
}

static void put_float(writer *out, double real)
{
    char digits[PL_FLOAT_TEXT_BYTES];
    if (isnan(real) || isinf(real)) {
        /* Literals that overflow are Python's only way to write these. */
        const char *text = isnan(real)  ? "(1e999 - 1e999)"
                           : real > 0.0 ? "1e999"
                                        : "-1e999";
        put(out, text, strlen(text));
        return;
    }
    put(out, digits, pl_float_text(real, digits));
}

/* A character that does not stand for itself. */
static void put_escape(writer *out, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    const char letter = c == '\n'   ? 'n'
                        : c == '\r' ? 'r'
                        : c == '\t' ? 't'
                                    : (char)c;
    const char coded[4] = { '\\', 'x', hex[c >> 4], hex[c & 15] };
    const char named[2] = { '\\', letter };
    if (c == '\\' || c == '\'' || letter != (char)c)
        put(out, named, sizeof named);
    else
        put(out, coded, sizeof coded);
}

static void put_text(writer *out, const char *text)
{
    put(out, "'", 1);
    while (*text) {
        const char *end = text;
        while ((unsigned char)*end >= 0x20 && *end != 0x7f && *end != '\\' &&
               *end != '\'')
            end++;
        put(out, text, (size_t)(end - text));
        if (*end)
            put_escape(out, (unsigned char)*end++);
        text = end;
    }
    put(out, "'", 1);
}

static void put_value(writer *out, const pl_value *value)
{
    switch (value->kind) {
    case PL_VALUE_NONE:
        put(out, "None", 4);
        break;
    case PL_VALUE_FLAG:
        put(out, value->flag ? "True" : "False", value->flag ? 4 : 5);
        break;
    case PL_VALUE_INT:
        put_int(out, value->whole);
        break;
    case PL_VALUE_FLOAT:
        put_float(out, value->real);
        break;
    case PL_VALUE_TEXT:
        put_text(out, value->text);
        break;
    case PL_VALUE_LIST:
        put(out, value->tuple ? "(" : "[", 1);
        for (size_t i = 0; i < value->count; i++) {
            if (i > 0)
                put(out, ", ", 2);
            put_value(out, &value->items[i]);
        }
        if (value->tuple && value->count == 1)
            put(out, ",", 1);
        put(out, value->tuple ? ")" : "]", 1);
        break;
    case PL_VALUE_UNKNOWN:
        put(out, "...", 3);
        break;
    }
}

size_t pl_value_write(const pl_value *value, char *text, size_t size)
{
    writer out = { text, size, 0 };
    put_value(&out, value);
    return finish(&out);
}

void pl_value_brief(const pl_value *value, char text[PL_VALUE_BRIEF_BYTES])
{
    size_t need = pl_value_write(value, text, PL_VALUE_BRIEF_BYTES);
    if (need < PL_VALUE_BRIEF_BYTES)
        return;
    size_t end = PL_VALUE_BRIEF_BYTES - 4;
    while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
        end--;
    memcpy(text + end, "...", 4);
}
