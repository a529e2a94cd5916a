/* thrift.c: see thrift.h. */
#include "data/thrift.h"
#include "base/units.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void pl_thrift_begin(pl_thrift *thrift, const pl_file *file, uint64_t at,
                     uint64_t end, pl_error *err)
{
    if (thrift->file != file)
        thrift->window_have = 0;
    thrift->file = file;
    thrift->at = at;
    thrift->end = end;
    thrift->status = PL_OK;
    thrift->err = err;
}

void pl_thrift_fail(pl_thrift *thrift, const char *fmt, ...)
{
    char text[256];
    va_list args;
    if (thrift->status)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    thrift->status = pl_fail(thrift->err, PL_E_FORMAT,
                             "%s (at byte %llu of the file)", text,
                             (unsigned long long)thrift->at);
}

/* ---- bytes ---- */

static uint64_t left(const pl_thrift *t)
{
    return t->end - t->at;
}

static int refill(pl_thrift *t)
{
    if (t->status)
        return 0;
    if (t->at >= t->end) {
        pl_thrift_fail(t, "the metadata ends too early");
        return 0;
    }
    size_t want = left(t) < sizeof t->window ? (size_t)left(t)
                                             : sizeof t->window;
    t->window_have = 0;
    t->status = pl_file_pread_exact(t->file, t->window, want, t->at, t->err);
    if (t->status)
        return 0;
    t->window_at = t->at;
    t->window_have = want;
    return 1;
}

static unsigned read_byte(pl_thrift *t)
{
    int inside = t->at >= t->window_at && t->at < t->end &&
                 t->at - t->window_at < t->window_have && !t->status;
    if (!inside && !refill(t))
        return 0;
    return t->window[t->at++ - t->window_at];
}

static void pass(pl_thrift *t, uint64_t bytes)
{
    if (t->status)
        return;
    if (bytes > left(t))
        pl_thrift_fail(t, "a value of %s doesn't fit into the metadata",
                       pl_units_exact(bytes).text);
    else
        t->at += bytes;
}

static uint64_t read_varint(pl_thrift *t)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        unsigned byte = read_byte(t);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return t->status ? 0 : value;
    }
    pl_thrift_fail(t, "a number of more than 64 bits");
    return 0;
}

static int64_t read_zigzag(pl_thrift *t)
{
    uint64_t raw = read_varint(t);
    return (int64_t)(raw >> 1 ^ (0 - (raw & 1)));
}

/* ---- fields ---- */

int pl_thrift_next(pl_thrift *thrift, pl_thrift_field *field)
{
    unsigned byte = read_byte(thrift);
    if (byte == 0)
        return 0; /* the struct's end, or a failure */
    unsigned delta = byte >> 4;
    int64_t id = delta ? field->id + (int64_t)delta : read_zigzag(thrift);
    field->type = (int)(byte & 15);
    if (id < INT16_MIN || id > INT16_MAX || field->type > PL_THRIFT_UUID ||
        field->type == 0)
        pl_thrift_fail(thrift, "there is no field %lld of type %d",
                       (long long)id, field->type);
    field->id = (int)id;
    return !thrift->status;
}

static int has_type(pl_thrift *t, const pl_thrift_field *field, int type)
{
    if (field->type == type)
        return 1;
    pl_thrift_fail(t, "field %d has type %d, expected %d", field->id,
                   field->type, type);
    return 0;
}

int64_t pl_thrift_int(pl_thrift *thrift, const pl_thrift_field *field)
{
    if (field->type == PL_THRIFT_I16 || field->type == PL_THRIFT_I32 ||
        field->type == PL_THRIFT_I64)
        return read_zigzag(thrift);
    has_type(thrift, field, PL_THRIFT_I64);
    return 0;
}

int pl_thrift_bool(pl_thrift *thrift, const pl_thrift_field *field)
{
    return field->type == PL_THRIFT_TRUE ||
           (field->type != PL_THRIFT_FALSE &&
            has_type(thrift, field, PL_THRIFT_TRUE));
}

static uint64_t read_list_head(pl_thrift *t, int *type)
{
    unsigned head = read_byte(t);
    uint64_t count = head >> 4 == 15 ? read_varint(t) : head >> 4;
    *type = (int)(head & 15);
    if (count > left(t))
        pl_thrift_fail(t,
                       "a list of %llu elements doesn't fit into the "
                       "metadata",
                       (unsigned long long)count);
    return t->status ? 0 : count;
}

uint64_t pl_thrift_list(pl_thrift *thrift, const pl_thrift_field *field,
                        int type)
{
    int found;
    if (!has_type(thrift, field, PL_THRIFT_LIST))
        return 0;
    uint64_t count = read_list_head(thrift, &found);
    if (count > 0 && found != type)
        pl_thrift_fail(thrift, "field %d lists type %d, expected %d", field->id,
                       found, type);
    return thrift->status ? 0 : count;
}

int pl_thrift_struct(pl_thrift *thrift, const pl_thrift_field *field)
{
    return has_type(thrift, field, PL_THRIFT_STRUCT);
}

uint64_t pl_thrift_text_element(pl_thrift *thrift, char *out, size_t capacity)
{
    uint64_t bytes = read_varint(thrift), kept = 0;
    if (bytes > left(thrift))
        pl_thrift_fail(thrift, "a text of %s doesn't fit into the metadata",
                       pl_units_exact(bytes).text);
    for (; kept < bytes && kept + 1 < capacity && !thrift->status; kept++)
        out[kept] = (char)read_byte(thrift);
    out[kept] = '\0';
    pass(thrift, bytes - kept);
    return thrift->status ? 0 : bytes;
}

uint64_t pl_thrift_text(pl_thrift *thrift, const pl_thrift_field *field,
                        char *out, size_t capacity)
{
    out[0] = '\0';
    return has_type(thrift, field, PL_THRIFT_BINARY)
               ? pl_thrift_text_element(thrift, out, capacity)
               : 0;
}

/* ---- passing over ---- */

static void skip_value(pl_thrift *t, int type, int depth);

static void skip_struct(pl_thrift *t, int depth)
{
    pl_thrift_field field = { 0, 0 };
    while (pl_thrift_next(t, &field))
        if (field.type != PL_THRIFT_TRUE && field.type != PL_THRIFT_FALSE)
            skip_value(t, field.type, depth);
}

static void skip_list(pl_thrift *t, int depth)
{
    int type;
    uint64_t count = read_list_head(t, &type);
    for (uint64_t i = 0; i < count && !t->status; i++)
        skip_value(t, type, depth);
}

static void skip_map(pl_thrift *t, int depth)
{
    uint64_t count = read_varint(t);
    if (count == 0)
        return;
    unsigned types = read_byte(t);
    for (uint64_t i = 0; i < count && !t->status; i++) {
        skip_value(t, (int)(types >> 4), depth);
        skip_value(t, (int)(types & 15), depth);
    }
}

/* A truth value here is a list's element, and a byte; a field's lies in its
 * type. */
static void skip_value(pl_thrift *t, int type, int depth)
{
    if (depth == PL_THRIFT_MAX_DEPTH) {
        pl_thrift_fail(t, "the metadata is nested more than %d deep", depth);
        return;
    }
    switch (type) {
    case PL_THRIFT_TRUE:
    case PL_THRIFT_FALSE:
    case PL_THRIFT_BYTE:
        pass(t, 1);
        return;
    case PL_THRIFT_I16:
    case PL_THRIFT_I32:
    case PL_THRIFT_I64:
        (void)read_varint(t);
        return;
    case PL_THRIFT_DOUBLE:
        pass(t, 8);
        return;
    case PL_THRIFT_BINARY:
        pass(t, read_varint(t));
        return;
    case PL_THRIFT_LIST:
    case PL_THRIFT_SET:
        skip_list(t, depth + 1);
        return;
    case PL_THRIFT_MAP:
        skip_map(t, depth + 1);
        return;
    case PL_THRIFT_STRUCT:
        skip_struct(t, depth + 1);
        return;
    case PL_THRIFT_UUID:
        pass(t, 16);
        return;
    default:
        pl_thrift_fail(t, "there is no type %d", type);
    }
}

void pl_thrift_skip(pl_thrift *thrift, const pl_thrift_field *field)
{
    if (field->type != PL_THRIFT_TRUE && field->type != PL_THRIFT_FALSE)
        skip_value(thrift, field->type, 0);
}
