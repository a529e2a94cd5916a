/* literal.c: what number and string tokens are worth. */
#include "config/lexer.h"

#include "base/check.h"
#include "base/utf8.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 32);
    return c >= 'a' && c <= 'z' ? c - 'a' + 10 : 99;
}

/* Reads digits of `base` from *at on, underscores between them; returns how
 * many there were. They are copied to `out` without the underscores. */
static size_t read_digits(const pl_lexer *lexer, size_t *at, size_t end,
                          int base, char *out)
{
    size_t count = 0;
    while (*at < end) {
        size_t here = *at;
        if (lexer->text[here] == '_' && count > 0)
            here++;
        if (here == end || digit_value(lexer->text[here]) >= base)
            break;
        out[count++] = lexer->text[here];
        *at = here + 1;
    }
    return count;
}

static pl_status whole_number(const pl_lexer *lexer, pl_token token,
                              const char *digits, size_t count, int base,
                              pl_value *out, pl_error *err)
{
    int64_t whole = 0;
    for (size_t i = 0; i < count; i++)
        if (__builtin_mul_overflow(whole, (int64_t)base, &whole) ||
            __builtin_add_overflow(whole, (int64_t)digit_value(digits[i]),
                                   &whole))
            return pl_lexer_fail(lexer, token.begin, err,
                                 "this number does not fit 64 bits: the "
                                 "largest is 9223372036854775807");
    *out = pl_value_int(whole);
    return PL_OK;
}

enum { MAX_DIGITS = 400 }; /* of each part of a number */

static pl_status not_a_number(const pl_lexer *lexer, size_t at, pl_error *err)
{
    return pl_lexer_fail(lexer, at, err,
                         "this is not a number: expected one such as 12, "
                         "1_000, 0x1f, 0.5 or 6e-4");
}

/* The part of a float behind its first digits, in the C library's spelling.
 * `used` grows by what is written to `digits`. */
static pl_status read_float_tail(const pl_lexer *lexer, pl_token token,
                                 size_t *at, char *digits, size_t *used,
                                 pl_error *err)
{
    const char *point = localeconv()->decimal_point;
    const char *text = lexer->text;
    if (*at < token.end && text[*at] == '.') {
        *at += 1;
        memcpy(digits + *used, point, strlen(point));
        *used += strlen(point);
        *used += read_digits(lexer, at, token.end, 10, digits + *used);
    }
    if (*at < token.end && (text[*at] | 32) == 'e') {
        digits[(*used)++] = 'e';
        *at += 1;
        if (*at < token.end && (text[*at] == '+' || text[*at] == '-'))
            digits[(*used)++] = text[(*at)++];
        size_t count = read_digits(lexer, at, token.end, 10, digits + *used);
        if (count == 0)
            return not_a_number(lexer, *at, err);
        *used += count;
    }
    return PL_OK;
}

pl_status pl_lexer_number(const pl_lexer *lexer, pl_token token, pl_value *out,
                          pl_error *err)
{
    char digits[3 * MAX_DIGITS];
    const char *text = lexer->text;
    size_t at = token.begin, used;
    if (token.end - token.begin > MAX_DIGITS)
        return pl_lexer_fail(lexer, token.begin, err,
                             "a number of more than %d characters", MAX_DIGITS);
    char mark = token.end - at > 2 && text[at] == '0'
                    ? (char)(text[at + 1] | 32)
                    : '\0';
    if (mark == 'x' || mark == 'o' || mark == 'b') {
        int base = mark == 'x' ? 16 : mark == 'o' ? 8 : 2;
        at += text[at + 2] == '_' ? 3 : 2;
        used = read_digits(lexer, &at, token.end, base, digits);
        if (used == 0 || at < token.end)
            return not_a_number(lexer, at, err);
        return whole_number(lexer, token, digits, used, base, out, err);
    }
    used = read_digits(lexer, &at, token.end, 10, digits);
    digits[used] = '\0';
    if (at == token.end) {
        if (used > 1 && digits[0] == '0' && strspn(digits, "0") < used)
            return pl_lexer_fail(lexer, token.begin, err,
                                 "a whole number does not begin with 0: write "
                                 "it without the zero");
        return whole_number(lexer, token, digits, used, 10, out, err);
    }
    pl_status status = read_float_tail(lexer, token, &at, digits, &used, err);
    if (status != PL_OK)
        return status;
    if (at < token.end)
        return not_a_number(lexer, at, err);
    digits[used] = '\0';
    char *stop = NULL;
    *out = pl_value_float(strtod(digits, &stop));
    PL_CHECK(*stop == '\0');
    return PL_OK;
}

/* ---- strings ---- */

typedef struct unquoter {
    const pl_lexer *lexer;
    size_t at, end; /* between the quotes */
    char *out;
    size_t used;
    pl_error *err;
} unquoter;

/* \x, \u and \U with exactly `count` hex digits, or up to three octal ones. */
static pl_status unquote_code(unquoter *u, size_t count, int base)
{
    size_t begin = u->at, escape = begin - 1;
    uint32_t point = 0;
    while (u->at < u->end && u->at - begin < count &&
           digit_value(u->lexer->text[u->at]) < base)
        point = point * (uint32_t)base +
                (uint32_t)digit_value(u->lexer->text[u->at++]);
    if (base == 16 && u->at - begin < count)
        return pl_lexer_fail(u->lexer, escape, u->err,
                             "this escape needs %zu hex digits", count);
    if (point == 0 || !pl_utf8_is_scalar(point)) /* texts end with zero */
        return pl_lexer_fail(u->lexer, escape, u->err,
                             "no string here can hold the character U+%04X",
                             (unsigned)point);
    u->used += (size_t)pl_utf8_encode(point, u->out + u->used);
    return PL_OK;
}

/* What follows a backslash. Python leaves those that it doesn't know. */
static pl_status unquote_escape(unquoter *u)
{
    static const char known[] = "abfnrtv\\'\"", meant[] = "\a\b\f\n\r\t\v\\'\"";
    const char *text = u->lexer->text;
    char c = u->at < u->end ? text[u->at] : '\0'; /* before a field */
    const char *simple = c ? strchr(known, c) : NULL;
    if (simple) {
        u->at++;
        u->out[u->used++] = meant[simple - known];
        return PL_OK;
    }
    if (c == '\n' || c == '\r') {
        u->at += c == '\r' && u->at + 1 < u->end && text[u->at + 1] == '\n' ? 2
                                                                            : 1;
        return PL_OK;
    }
    if (c >= '0' && c <= '7')
        return unquote_code(u, 3, 8);
    u->at++;
    if (c == 'x' || c == 'u' || c == 'U')
        return unquote_code(u, c == 'x' ? 2 : c == 'u' ? 4 : 8, 16);
    if (c == 'N')
        return pl_lexer_fail(u->lexer, u->at - 1, u->err,
                             "\\N{...} is not accepted: write the character "
                             "itself or \\uNNNN");
    u->out[u->used++] = '\\';
    u->at--;
    return PL_OK;
}

static pl_status unquote(unquoter *u, bool raw)
{
    const char *text = u->lexer->text;
    while (u->at < u->end) {
        char c = text[u->at];
        pl_status status = PL_OK;
        if (c == '\\' && !raw) {
            u->at++;
            status = unquote_escape(u);
        } else if (c == '\r') {
            u->at += u->at + 1 < u->end && text[u->at + 1] == '\n' ? 2 : 1;
            u->out[u->used++] = '\n';
        } else {
            u->out[u->used++] = c;
            u->at++;
        }
        if (status != PL_OK)
            return status;
    }
    return PL_OK;
}

pl_status pl_lexer_quotes(const pl_lexer *lexer, pl_token token, pl_quoted *out,
                          pl_error *err)
{
    const char *text = lexer->text;
    size_t begin = token.begin;
    *out = (pl_quoted){ 0, 0, false, false };
    for (; text[begin] != '\'' && text[begin] != '"'; begin++) {
        char prefix = (char)(text[begin] | 32);
        out->raw |= prefix == 'r';
        out->format |= prefix == 'f';
        if (prefix == 'b')
            return pl_lexer_fail(lexer, token.begin, err,
                                 "a bytes literal is not accepted: write a "
                                 "plain string");
    }
    size_t wide = token.end - begin >= 6 && text[begin + 1] == text[begin] &&
                          text[begin + 2] == text[begin]
                      ? 3
                      : 1;
    out->begin = begin + wide;
    out->end = token.end - wide;
    return PL_OK;
}

pl_status pl_lexer_string(const pl_lexer *lexer, size_t begin, size_t end,
                          bool raw, pl_value *out, pl_heap *heap, pl_error *err)
{
    unquoter u = { lexer, begin, end, NULL, 0, err };
    /* The longest growth: an escape of two bytes (\1) gives at most two. */
    pl_status status = pl_heap_take(heap, &u.out, end - begin + 4, 1, err);
    if (status != PL_OK)
        return status;
    status = unquote(&u, raw);
    if (status != PL_OK)
        return status;
    u.out[u.used] = '\0';
    *out = pl_value_text(u.out);
    return PL_OK;
}
