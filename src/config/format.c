/* format.c: texts made of values, as Python's str(), format() and % make
 * them. What is rarely used is refused, never approximated. */
#include "config/value.h"

#include "base/units.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a text that is being made ---- */

pl_status pl_text_add(pl_text *text, const char *bytes, size_t count,
                      pl_error *err)
{
    if (text->used + count > PL_VALUE_MAX_BYTES)
        return pl_fail(err, PL_E_CONFIG, "the string is longer than %s",
                       pl_units_exact(PL_VALUE_MAX_BYTES).text);
    pl_status status = pl_heap_grow(text->heap, &text->bytes, &text->capacity,
                                    text->used + count + 1, 1, err);
    if (status != PL_OK)
        return status;
    memcpy(text->bytes + text->used, bytes, count);
    text->used += count;
    text->bytes[text->used] = '\0';
    return PL_OK;
}

pl_status pl_text_end(pl_text *text, pl_value *out, pl_error *err)
{
    pl_status status = pl_text_add(text, "", 0, err);
    if (status == PL_OK)
        *out = pl_value_text(text->bytes);
    return status;
}

/* ---- floats ---- */

/* The C library writes the locale's decimal point: Python's is a point. */
static void mend_point(char *digits)
{
    const char *comma = localeconv()->decimal_point;
    size_t wide = strlen(comma);
    char *point = strstr(digits, comma);
    if (!point)
        return;
    *point = '.';
    memmove(point + 1, point + wide, strlen(point + wide) + 1);
}

size_t pl_float_text(double real, char text[PL_FLOAT_TEXT_BYTES])
{
    char digits[PL_FLOAT_TEXT_BYTES];
    int precision = 0;
    if (isnan(real) || isinf(real))
        return (size_t)snprintf(text, PL_FLOAT_TEXT_BYTES, "%s",
                                isnan(real)  ? "nan"
                                : real > 0.0 ? "inf"
                                             : "-inf");
    for (; precision < 17; precision++) { /* the fewest that read back */
        snprintf(digits, sizeof digits, "%.*e", precision, real);
        if (strtod(digits, NULL) == real)
            break;
    }
    int exponent = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
    mend_point(digits);
    if (exponent < -4 || exponent >= 16)
        return (size_t)snprintf(text, PL_FLOAT_TEXT_BYTES, "%s", digits);
    int places = precision - exponent;
    snprintf(text, PL_FLOAT_TEXT_BYTES, "%.*f", places > 1 ? places : 1, real);
    mend_point(text);
    return strlen(text);
}

pl_status pl_text_add_value(pl_text *text, const pl_value *value, bool quoted,
                            pl_error *err)
{
    char digits[PL_FLOAT_TEXT_BYTES];
    char *written = NULL;
    if (value->kind == PL_VALUE_TEXT && !quoted)
        return pl_text_add(text, value->text, strlen(value->text), err);
    if (value->kind == PL_VALUE_FLOAT)
        return pl_text_add(text, digits, pl_float_text(value->real, digits),
                           err);
    size_t bytes = pl_value_write(value, NULL, 0);
    if (bytes > PL_VALUE_MAX_BYTES)
        return pl_fail(err, PL_E_CONFIG, "the string is longer than %s",
                       pl_units_exact(PL_VALUE_MAX_BYTES).text);
    pl_status status = pl_heap_take(text->heap, &written, bytes + 1, 1, err);
    if (status != PL_OK)
        return status;
    pl_value_write(value, written, bytes + 1);
    return pl_text_add(text, written, bytes, err);
}

/* ---- format specs: [[fill]align][sign][0][width][,][.precision][type] ---- */

typedef struct format_spec {
    const char *fill; /* one character */
    size_t fill_bytes;
    char align;           /* < > ^ = or 0 */
    char sign;            /* + - or a blank, or 0 */
    char group;           /* , _ or 0 */
    char type;            /* or 0 */
    int width, precision; /* precision -1: none */
} format_spec;

enum { MAX_WIDTH = 1000, MAX_PRECISION = 100, BODY_BYTES = 1024 };

static pl_status not_evaluated(const char *spec, size_t bytes, pl_error *err)
{
    return pl_fail(err, PL_E_CONFIG,
                   "the format '%.*s' is not evaluated for such a value: of "
                   "formats [align][sign][0][width][,][.precision] and one of "
                   "d x o e f g %% s are",
                   bytes < 40 ? (int)bytes : 40, spec);
}

/* A number of at most `most` at *at; -1 where there is none or a larger. */
static int read_number(const char *spec, size_t bytes, size_t *at, int most)
{
    int number = -1;
    for (; *at < bytes && spec[*at] >= '0' && spec[*at] <= '9'; *at += 1) {
        number = (number < 0 ? 0 : number) * 10 + (spec[*at] - '0');
        if (number > most)
            return -1;
    }
    return number;
}

static bool is_one_of(char c, const char *list)
{
    return c != '\0' && strchr(list, c) != NULL;
}

static bool read_spec(const char *spec, size_t bytes, format_spec *out)
{
    size_t at = 0, first = bytes > 0 ? 1 : 0;
    *out = (format_spec){ .fill = " ", .fill_bytes = 1, .precision = -1 };
    while (first < bytes && !pl_utf8_starts(spec[first]))
        first++;
    if (first > 0 && first < bytes && is_one_of(spec[first], "<>^=")) {
        out->fill = spec;
        out->fill_bytes = first;
        out->align = spec[first];
        at = first + 1;
    } else if (bytes > 0 && is_one_of(spec[0], "<>^=")) {
        out->align = spec[at++];
    }
    if (at < bytes && is_one_of(spec[at], "+- "))
        out->sign = spec[at++];
    if (at < bytes && spec[at] == '0') {
        if (!out->align) {
            out->align = '=';
            out->fill = "0";
        }
        at++;
    }
    if (at < bytes && spec[at] >= '0' && spec[at] <= '9') {
        out->width = read_number(spec, bytes, &at, MAX_WIDTH);
        if (out->width < 0)
            return false;
    }
    if (at < bytes && is_one_of(spec[at], ",_"))
        out->group = spec[at++];
    if (at < bytes && spec[at] == '.') {
        at++;
        out->precision = read_number(spec, bytes, &at, MAX_PRECISION);
        if (out->precision < 0)
            return false;
    }
    if (at < bytes)
        out->type = spec[at++];
    return at == bytes;
}

/* `number`, whose digits begin at `begin`, with a separator every three. */
static void group_digits(char *number, char separator)
{
    size_t whole = strspn(number, "0123456789");
    for (size_t at = whole; at > 3;) {
        at -= 3;
        memmove(number + at + 1, number + at, strlen(number + at) + 1);
        number[at] = separator;
    }
}

/* The digits of a number without its sign; false where it isn't done. */
static bool number_body(const pl_value *value, const format_spec *spec,
                        char body[BODY_BYTES], bool *negative)
{
    const bool whole = value->kind != PL_VALUE_FLOAT;
    int64_t number = value->kind == PL_VALUE_FLAG ? value->flag
                     : whole                      ? value->whole
                                                  : 0;
    double real = whole ? (double)number : value->real;
    const uint64_t size = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    char type = spec->type ? spec->type : whole ? 'd' : 'r';
    *negative = whole ? number < 0 : signbit(real) && !isnan(real);
    if (is_one_of(type, "dxXo")) {
        if (!whole || spec->precision >= 0 || (spec->group && type != 'd'))
            return false;
        snprintf(body, BODY_BYTES,
                 type == 'd'   ? "%" PRIu64
                 : type == 'x' ? "%" PRIx64
                 : type == 'X' ? "%" PRIX64
                               : "%" PRIo64,
                 size);
    } else if (type == 'r') {
        if (spec->precision >= 0)
            return false;
        pl_float_text(fabs(real), body);
    } else if (is_one_of(type, "eEfFgG%")) {
        char pattern[] = "%.*f";
        pattern[3] = type == '%' ? 'f' : type;
        snprintf(body, BODY_BYTES - 2, pattern,
                 spec->precision < 0 ? 6 : spec->precision,
                 fabs(type == '%' ? real * 100.0 : real));
        mend_point(body);
        if (type == '%')
            memcpy(body + strlen(body), "%", 2);
    } else {
        return false;
    }
    if (spec->group && strlen(body) < BODY_BYTES / 2)
        group_digits(body, spec->group);
    return true;
}

static pl_status add_fill(pl_text *text, const format_spec *spec, size_t count,
                          pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t i = 0; i < count && status == PL_OK; i++)
        status = pl_text_add(text, spec->fill, spec->fill_bytes, err);
    return status;
}

/* `sign` and `body` in the width; columns are characters. */
static pl_status add_aligned(pl_text *text, const format_spec *spec,
                             const char *sign, const char *body, size_t bytes,
                             char align, pl_error *err)
{
    size_t wide = strlen(sign), left = 0, right = 0;
    for (size_t i = 0; i < bytes; i++)
        wide += pl_utf8_starts(body[i]) ? 1 : 0;
    size_t room = (size_t)spec->width > wide ? (size_t)spec->width - wide : 0;
    if (align == '<')
        right = room;
    else if (align == '^')
        left = room / 2, right = room - room / 2;
    else
        left = room;
    pl_status status = PL_OK;
    if (align == '=')
        status = pl_text_add(text, sign, strlen(sign), err);
    if (status == PL_OK)
        status = add_fill(text, spec, left, err);
    if (status == PL_OK && align != '=')
        status = pl_text_add(text, sign, strlen(sign), err);
    if (status == PL_OK)
        status = pl_text_add(text, body, bytes, err);
    return status == PL_OK ? add_fill(text, spec, right, err) : status;
}

static pl_status add_spec(pl_text *text, const pl_value *value,
                          const format_spec *spec, bool *done, pl_error *err)
{
    char body[BODY_BYTES];
    bool negative = false;
    *done = true;
    if (value->kind == PL_VALUE_TEXT) {
        size_t bytes = 0,
               left = spec->precision < 0 ? SIZE_MAX : (size_t)spec->precision;
        for (; value->text[bytes]; bytes++)
            if (pl_utf8_starts(value->text[bytes]) && left-- == 0)
                break;
        *done = (!spec->type || spec->type == 's') && !spec->sign &&
                !spec->group && spec->align != '=';
        return *done ? add_aligned(text, spec, "", value->text, bytes,
                                   spec->align ? spec->align : '<', err)
                     : PL_OK;
    }
    *done = value->kind != PL_VALUE_NONE && value->kind != PL_VALUE_LIST &&
            number_body(value, spec, body, &negative);
    if (!*done)
        return PL_OK;
    const char *sign = negative            ? "-"
                       : spec->sign == '+' ? "+"
                       : spec->sign == ' ' ? " "
                                           : "";
    return add_aligned(text, spec, sign, body, strlen(body),
                       spec->align ? spec->align : '>', err);
}

pl_status pl_text_add_format(pl_text *text, const pl_value *value,
                             const char *spec, size_t spec_bytes, pl_error *err)
{
    format_spec read;
    bool done = false;
    if (spec_bytes == 0)
        return pl_text_add_value(text, value, false, err);
    pl_status status = PL_OK;
    /* zeros between a sign and commas are counted otherwise */
    if (read_spec(spec, spec_bytes, &read) &&
        !(read.group && read.align == '='))
        status = add_spec(text, value, &read, &done, err);
    if (status == PL_OK && !done)
        status = not_evaluated(spec, spec_bytes, err);
    return status;
}

/* ---- % ---- */

/* The spec of "%-08.3f" behind its %; *at ends behind it. */
static bool read_percent(const char *pattern, size_t *at, format_spec *out)
{
    size_t bytes = strlen(pattern);
    bool zero = false;
    *out = (format_spec){
        .fill = " ", .fill_bytes = 1, .precision = -1, .align = '>'
    };
    for (; is_one_of(pattern[*at], "-+ 0"); *at += 1) {
        if (pattern[*at] == '-')
            out->align = '<';
        else if (pattern[*at] == '0')
            zero = true;
        else if (out->sign != '+')
            out->sign = pattern[*at];
    }
    if (pattern[*at] >= '0' && pattern[*at] <= '9')
        out->width = read_number(pattern, bytes, at, MAX_WIDTH);
    if (pattern[*at] == '.') {
        *at += 1;
        out->precision = read_number(pattern, bytes, at, MAX_PRECISION);
        if (out->precision < 0)
            return false;
    }
    out->type = pattern[*at];
    *at += out->type != '\0';
    if (zero && out->align == '>' && !is_one_of(out->type, "sr")) {
        out->align = '=';
        out->fill = "0";
    }
    return out->width >= 0 && is_one_of(out->type, "diuxXoeEfFgGsr");
}

static pl_status add_percent(pl_text *text, const pl_value *value,
                             const format_spec *given, const char *shown,
                             pl_error *err)
{
    format_spec spec = *given;
    pl_value plain = *value;
    bool done = false;
    pl_status status = PL_OK;
    if (is_one_of(spec.type, "sr")) {
        pl_text inner = { .heap = text->heap };
        status = pl_text_add_value(&inner, value, spec.type == 'r', err);
        if (status == PL_OK)
            status = pl_text_end(&inner, &plain, err);
        spec.type = 's';
        spec.sign = '\0';
    } else if (is_one_of(spec.type, "diu")) {
        spec.type = 'd';
        if (value->kind == PL_VALUE_FLOAT && fabs(value->real) < 9e18)
            plain = pl_value_int((int64_t)value->real);
    }
    if (status == PL_OK && (plain.kind != PL_VALUE_TEXT || given->type == 's' ||
                            given->type == 'r'))
        status = add_spec(text, &plain, &spec, &done, err);
    if (status == PL_OK && !done)
        status = not_evaluated(shown, strlen(shown), err);
    return status;
}

pl_status pl_value_percent(pl_value *out, const char *pattern,
                           const pl_value *operand, pl_heap *heap,
                           pl_error *err)
{
    const bool many = operand->kind == PL_VALUE_LIST && operand->tuple;
    const pl_value *items = many ? operand->items : operand;
    size_t count = many ? operand->count : 1, next = 0, at = 0;
    pl_text text = { .heap = heap };
    pl_status status = PL_OK;
    while (status == PL_OK && pattern[at]) {
        format_spec spec;
        size_t plain = strcspn(pattern + at, "%"), begin = at + plain;
        status = pl_text_add(&text, pattern + at, plain, err);
        at = begin;
        if (status != PL_OK || !pattern[at])
            break;
        at++;
        if (pattern[at] == '%') {
            status = pl_text_add(&text, "%", 1, err);
            at++;
        } else if (!read_percent(pattern, &at, &spec)) {
            status = not_evaluated(pattern + begin, at - begin, err);
        } else if (next == count) {
            status = pl_fail(err, PL_E_CONFIG,
                             "'%.40s' %% has more places than the %zu value%s "
                             "behind it",
                             pattern, count, count == 1 ? "" : "s");
        } else {
            status = add_percent(&text, &items[next++], &spec, pattern + begin,
                                 err);
        }
    }
    if (status == PL_OK && next < count)
        status = pl_fail(err, PL_E_CONFIG,
                         "'%.40s' %% has fewer places than the %zu value%s "
                         "behind it",
                         pattern, count, count == 1 ? "" : "s");
    return status == PL_OK ? pl_text_end(&text, out, err) : status;
}
