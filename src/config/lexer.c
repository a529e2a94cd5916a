/* lexer.c: see lexer.h. Owns how a text is cut into tokens and how a message
 * points into it. */
#include "config/lexer.h"

#include "base/units.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- messages ---- */

void pl_lexer_locate(const pl_lexer *lexer, size_t offset, int *line,
                     int *column)
{
    const char *text = lexer->text;
    *line = *column = 1;
    for (size_t i = 0; i < offset && i < lexer->bytes; i++) {
        if (text[i] == '\n' || (text[i] == '\r' && (i + 1 == lexer->bytes ||
                                                    text[i + 1] != '\n'))) {
            *line += 1;
            *column = 1;
        } else if (pl_utf8_starts(text[i])) {
            *column += 1;
        }
    }
}

/* The line around `offset` and a caret below it, appended to the message.
 * Of a long line only the part that matters; tabs and control characters
 * become one column each, so that the caret stands right. */
static void show_line(const pl_lexer *lexer, size_t offset, pl_error *err)
{
    enum { BEFORE = 60, SHOWN = 96 };
    const char *text = lexer->text;
    size_t begin = offset, end = offset, used = strlen(err->text);
    while (begin > 0 && offset - begin < BEFORE && text[begin - 1] != '\n' &&
           text[begin - 1] != '\r')
        begin--;
    while (begin < offset && !pl_utf8_starts(text[begin]))
        begin++;
    while (end < lexer->shown && text[end] != '\n' && text[end] != '\r' &&
           (end - begin < SHOWN || !pl_utf8_starts(text[end])))
        end++;
    char line[2 * SHOWN + 16], caret[2 * SHOWN + 16];
    size_t shown = 0, spaces = 0;
    if (begin > 0 && text[begin - 1] != '\n' && text[begin - 1] != '\r') {
        memcpy(line, "...", 3);
        shown = spaces = 3;
    }
    for (size_t i = begin; i < end && shown + 4 < sizeof line; i++) {
        unsigned char c = (unsigned char)text[i];
        line[shown++] = c == '\t' ? ' ' : c < 0x20 || c == 0x7f ? '?' : (char)c;
        spaces += i < offset && pl_utf8_starts(text[i]);
    }
    line[shown] = '\0';
    memset(caret, ' ', spaces);
    memcpy(caret + spaces, "^", 2);
    snprintf(err->text + used, sizeof err->text - used, "\n    %s\n    %s",
             line, caret);
}

pl_status pl_lexer_place(const pl_lexer *lexer, size_t offset, pl_status status,
                         pl_error *err)
{
    int line, column;
    if (!err || status == PL_E_MEMORY)
        return status;
    pl_lexer_locate(lexer, offset, &line, &column);
    if (lexer->name)
        pl_fail_in(err, status, "%s:%d:%d: ", lexer->name, line, column);
    else
        pl_fail_in(err, status, "command line: ");
    show_line(lexer, offset, err);
    return status;
}

pl_status pl_lexer_fail(const pl_lexer *lexer, size_t offset, pl_error *err,
                        const char *fmt, ...)
{
    char message[PL_ERROR_TEXT_BYTES / 2];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    pl_status status = pl_fail(err, PL_E_CONFIG, "%s", message);
    return pl_lexer_place(lexer, offset, status, err);
}

/* ---- tokens ---- */

pl_status pl_lexer_open(pl_lexer *lexer, const char *name, const char *text,
                        size_t bytes, pl_error *err)
{
    *lexer = (pl_lexer){ .name = name, .text = text, .bytes = bytes };
    if (bytes > PL_VALUE_MAX_BYTES)
        return pl_fail(err, PL_E_CONFIG, "%s: has %s, but at most %s are read",
                       name ? name : "command line", pl_units_exact(bytes).text,
                       pl_units_exact(PL_VALUE_MAX_BYTES).text);
    if (bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        lexer->text += 3;
        lexer->bytes -= 3;
    }
    lexer->shown = lexer->bytes;
    size_t valid = pl_utf8_text_bytes(lexer->text, lexer->bytes);
    if (valid < lexer->bytes) {
        unsigned byte = (unsigned char)lexer->text[valid];
        lexer->shown = valid;
        return pl_lexer_fail(lexer, valid, err,
                             "the byte 0x%02x is not UTF-8 text, which is all "
                             "that is read",
                             byte);
    }
    return PL_OK;
}

bool pl_lexer_is(const pl_lexer *lexer, pl_token token, const char *text)
{
    size_t bytes = strlen(text);
    return (token.kind == PL_TOKEN_SIGN || token.kind == PL_TOKEN_NAME) &&
           token.end - token.begin == bytes &&
           memcmp(lexer->text + token.begin, text, bytes) == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_part(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           is_digit(c);
}

/* The character at `at`, or a zero behind the end. */
static char peek(const pl_lexer *lexer, size_t at)
{
    return at < lexer->bytes ? lexer->text[at] : '\0';
}

static bool is_newline(char c)
{
    return c == '\n' || c == '\r';
}

static void skip_newline(pl_lexer *lexer)
{
    if (peek(lexer, lexer->at) == '\r' && peek(lexer, lexer->at + 1) == '\n')
        lexer->at++;
    lexer->at++;
}

/* Spaces, comments, continued lines and, inside brackets, newlines. */
static void skip_blank(pl_lexer *lexer)
{
    for (;;) {
        char c = peek(lexer, lexer->at);
        if (c == ' ' || c == '\t' || c == '\f') {
            lexer->at++;
        } else if (c == '#') {
            while (lexer->at < lexer->bytes &&
                   !is_newline(lexer->text[lexer->at]))
                lexer->at++;
        } else if (c == '\\' && is_newline(peek(lexer, lexer->at + 1))) {
            lexer->at++;
            skip_newline(lexer);
        } else if (lexer->depth > 0 && is_newline(c)) {
            skip_newline(lexer);
        } else {
            return;
        }
    }
}

/* From the opening quote at `at` to behind the closing one. */
static pl_status scan_string(pl_lexer *lexer, size_t begin, pl_error *err)
{
    char quote = lexer->text[lexer->at];
    size_t wide = peek(lexer, lexer->at + 1) == quote &&
                          peek(lexer, lexer->at + 2) == quote
                      ? 3
                      : 1;
    lexer->at += wide;
    while (lexer->at < lexer->bytes) {
        char c = lexer->text[lexer->at];
        if (c == '\\' && lexer->at + 1 < lexer->bytes) {
            lexer->at++;
            if (is_newline(lexer->text[lexer->at]))
                skip_newline(lexer);
            else
                lexer->at++;
        } else if (c == quote &&
                   (wide == 1 || (peek(lexer, lexer->at + 1) == quote &&
                                  peek(lexer, lexer->at + 2) == quote))) {
            lexer->at += wide;
            return PL_OK;
        } else if (wide == 1 && is_newline(c)) {
            break;
        } else {
            lexer->at++;
        }
    }
    return pl_lexer_fail(lexer, begin, err, "this string is never closed: %s",
                         wide == 3 ? "expected three quotes at its end"
                                   : "expected a quote on the same line");
}

/* Digits, letters, points, and the sign of a decimal exponent: what it is
 * worth is literal.c's business. */
static void scan_number(pl_lexer *lexer)
{
    size_t begin = lexer->at;
    bool hex = peek(lexer, begin) == '0' &&
               (peek(lexer, begin + 1) | 32) == 'x';
    while (is_name_part(peek(lexer, lexer->at)) ||
           peek(lexer, lexer->at) == '.') {
        char c = lexer->text[lexer->at++], sign = peek(lexer, lexer->at);
        if (!hex && (c | 32) == 'e' && (sign == '+' || sign == '-'))
            lexer->at++;
    }
}

static size_t sign_bytes(const pl_lexer *lexer)
{
    static const char *const wide[] = {
        "**=", "//=", ">>=", "<<=", "...", "**", "//", "==",
        "!=",  "<=",  ">=",  "->",  "+=",  "-=", "*=", "/=",
        "%=",  "@=",  "&=",  "|=",  "^=",  ":=", "<<", ">>"
    };
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        size_t bytes = strlen(wide[i]);
        if (lexer->bytes - lexer->at >= bytes &&
            memcmp(lexer->text + lexer->at, wide[i], bytes) == 0)
            return bytes;
    }
    return strchr("()[]{}+-*/%=,;:.@&|^~<>!", lexer->text[lexer->at]) ? 1 : 0;
}

/* Keeps the stack of open brackets; they must match. */
static pl_status follow_brackets(pl_lexer *lexer, size_t at, pl_error *err)
{
    static const char opening[] = "([{", closing[] = ")]}";
    char c = lexer->text[at];
    if (strchr(opening, c)) {
        if (lexer->depth == PL_MAX_NESTING)
            return pl_lexer_fail(lexer, at, err,
                                 "more than %d brackets inside each other",
                                 PL_MAX_NESTING);
        lexer->opened[lexer->depth++] = at;
    } else if (strchr(closing, c)) {
        const char *match = strchr(closing, c);
        if (lexer->depth == 0)
            return pl_lexer_fail(lexer, at, err, "'%c' closes nothing", c);
        char open = lexer->text[lexer->opened[--lexer->depth]];
        if (open != opening[match - closing])
            return pl_lexer_fail(lexer, at, err, "'%c' does not close '%c'", c,
                                 open);
    }
    return PL_OK;
}

static pl_status next_sign(pl_lexer *lexer, pl_token *out, pl_error *err)
{
    size_t begin = lexer->at, bytes = sign_bytes(lexer);
    if (bytes == 0) {
        size_t end = begin + 1;
        while (end < lexer->bytes && !pl_utf8_starts(lexer->text[end]))
            end++;
        if ((unsigned char)lexer->text[begin] < 0x20)
            return pl_lexer_fail(lexer, begin, err,
                                 "a control character (0x%02x) stands here",
                                 (unsigned)lexer->text[begin]);
        return pl_lexer_fail(lexer, begin, err,
                             "'%.*s' is not accepted outside of strings and "
                             "comments",
                             (int)(end - begin), lexer->text + begin);
    }
    pl_status status = follow_brackets(lexer, begin, err);
    if (status != PL_OK)
        return status;
    lexer->at += bytes;
    *out = (pl_token){ PL_TOKEN_SIGN, begin, lexer->at };
    return PL_OK;
}

pl_status pl_lexer_next(pl_lexer *lexer, pl_token *out, pl_error *err)
{
    skip_blank(lexer);
    size_t begin = lexer->at;
    char c = peek(lexer, begin);
    if (begin >= lexer->bytes) {
        if (lexer->depth > 0)
            return pl_lexer_fail(lexer, lexer->opened[lexer->depth - 1], err,
                                 "this bracket is never closed");
        *out = (pl_token){ PL_TOKEN_END, begin, begin };
        return PL_OK;
    }
    if (is_newline(c)) {
        skip_newline(lexer);
        *out = (pl_token){ PL_TOKEN_NEWLINE, begin, lexer->at };
        return PL_OK;
    }
    if (is_digit(c) || (c == '.' && is_digit(peek(lexer, begin + 1)))) {
        scan_number(lexer);
        *out = (pl_token){ PL_TOKEN_NUMBER, begin, lexer->at };
        return PL_OK;
    }
    while (is_name_part(peek(lexer, lexer->at)))
        lexer->at++;
    size_t letters = lexer->at - begin;
    c = peek(lexer, lexer->at);
    if ((c == '\'' || c == '"') && letters <= 2 &&
        strspn(lexer->text + begin, "rRbBuUfF") >= letters) {
        pl_status status = scan_string(lexer, begin, err);
        *out = (pl_token){ PL_TOKEN_STRING, begin, lexer->at };
        return status;
    }
    if (letters > 0) {
        *out = (pl_token){ PL_TOKEN_NAME, begin, lexer->at };
        return PL_OK;
    }
    return next_sign(lexer, out, err);
}
