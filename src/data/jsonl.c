/* jsonl.c: see jsonl.h. Owns the grammar of a line. A pull parser with a
 * sticky failure: after the first one peek() says END, which ends every
 * loop. */
#include "data/jsonl.h"

#include "base/check.h"
#include "base/units.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { END = -1 };
enum { MISSING, IS_NULL, IS_TEXT };

typedef enum keep { KEEP_NOTHING, KEEP_KEY, KEEP_TEXT } keep;

/* ---- bytes ---- */

static int refill(pl_jsonl *j)
{
    if (j->status)
        return END;
    j->at = j->have = 0;
    j->status = pl_stream_read(j->stream, j->buffer, j->buffer_bytes, &j->have,
                               j->err);
    return j->status || j->have == 0 ? END : j->buffer[0];
}

/* The next byte, which stays; END at the end and after a failure. */
static inline int peek(pl_jsonl *j)
{
    return j->at < j->have && !j->status ? j->buffer[j->at] : refill(j);
}

uint64_t pl_jsonl_offset(const pl_jsonl *jsonl)
{
    return jsonl->stream->offset - (jsonl->have - jsonl->at);
}

/* ---- failures ---- */

/* "expected ..., found ..." at the next byte. */
static void expected(pl_jsonl *j, const char *what)
{
    int byte = peek(j);
    char found[64] = "the end of the file";
    if (j->status)
        return;
    if (byte == '\n')
        snprintf(found, sizeof found, "the end of the line");
    else if (byte > ' ' && byte < 0x7f)
        snprintf(found, sizeof found, "'%c'", byte);
    else if (byte != END)
        snprintf(found, sizeof found, "byte 0x%02X", (unsigned)byte);
    int spread = byte == '\n' && j->line == 1;
    j->status = pl_fail(
        j->err, PL_E_FORMAT,
        spread ? "%s, line %llu, column %llu: expected %s, found %s. Is it one "
                 "JSON text over many lines? JSON lines have one object on "
                 "each line"
               : "%s, line %llu, column %llu: expected %s, found %s",
        pl_path_shown(j->stream->file.path), (unsigned long long)j->line,
        (unsigned long long)(pl_jsonl_offset(j) - j->line_start + 1), what,
        found);
}

PL_PRINTF(2, 3)
static void wrong(pl_jsonl *j, const char *fmt, ...)
{
    char text[512];
    va_list args;
    if (j->status)
        return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    j->status = pl_fail(j->err, PL_E_FORMAT, "%s, line %llu: %s",
                        pl_path_shown(j->stream->file.path),
                        (unsigned long long)j->line, text);
}

static void skip_blanks(pl_jsonl *j)
{
    int byte;
    while ((byte = peek(j)) == ' ' || byte == '\t' || byte == '\r')
        j->at++;
}

static int is_next(pl_jsonl *j, int byte)
{
    return peek(j) == byte;
}

/* Takes the byte if it is next. */
static int take(pl_jsonl *j, int byte)
{
    int is = is_next(j, byte);
    j->at += (size_t)is;
    return is;
}

/* ---- strings ---- */

/* What is read of a string that doesn't fit, to know its size. */
static const uint64_t count_on_bytes = (uint64_t)1 << 30;

static size_t most_text(const pl_jsonl *j)
{
    size_t most = pl_room_most(j->room, &j->text);
    return most < j->document_bytes ? most : j->document_bytes;
}

typedef enum extent { AT_LEAST, EXACTLY } extent;

static void too_large(pl_jsonl *j, extent known)
{
    if (j->status)
        return;
    int limited = j->document_bytes <= pl_room_most(j->room, &j->text);
    if (!limited)
        pl_room_want(j->room, &j->text, j->text_bytes);
    j->status = pl_fail(
        j->err, limited ? PL_E_FORMAT : PL_E_MEMORY,
        known == EXACTLY
            ? "%s, line %llu: its document has %s; one of %s can be read. Give "
              "more memory, or cut that document up"
            : "%s, line %llu: its document has more than %s; one of %s can be "
              "read. Give more memory, or cut that document up",
        pl_path_shown(j->stream->file.path), (unsigned long long)j->line,
        pl_units_exact(j->text_bytes).text, pl_units_exact(most_text(j)).text);
}

static void keep_text(pl_jsonl *j, const void *bytes, size_t count)
{
    if (j->status)
        return;
    uint64_t need = j->text_bytes + count;
    if (!j->overflows && need > j->text.bytes) {
        j->overflows = need > most_text(j);
        pl_status status = j->overflows
                               ? PL_OK
                               : pl_room_grow(j->room, &j->text, (size_t)need,
                                              "the document", j->err);
        if (status) {
            j->status = pl_fail_in(j->err, status, "%s, line %llu: ",
                                   pl_path_shown(j->stream->file.path),
                                   (unsigned long long)j->line);
            return;
        }
    }
    if (!j->overflows)
        memcpy(j->text.data + j->text_bytes, bytes, count);
    j->text_bytes = need;
    if (j->overflows && need - most_text(j) > count_on_bytes)
        too_large(j, AT_LEAST);
}

/* A key that is too long for its buffer matches no field: its length says
 * so. */
static void keep_key(pl_jsonl *j, const void *bytes, size_t count)
{
    size_t rest = j->key_bytes < sizeof j->key ? sizeof j->key - j->key_bytes
                                               : 0;
    memcpy(j->key + (sizeof j->key - rest), bytes, count < rest ? count : rest);
    j->key_bytes += count;
}

static void keep_bytes(pl_jsonl *j, keep to, const void *bytes, size_t count)
{
    if (to == KEEP_TEXT)
        keep_text(j, bytes, count);
    else if (to == KEEP_KEY)
        keep_key(j, bytes, count);
}

static void keep_code(pl_jsonl *j, keep to, uint32_t code)
{
    char bytes[PL_UTF8_MAX_BYTES];
    keep_bytes(j, to, bytes, (size_t)pl_utf8_encode(code, bytes));
}

static uint32_t read_hex(pl_jsonl *j)
{
    uint32_t code = 0;
    for (int i = 0; i < 4; i++) {
        int byte = peek(j), digit = -1;
        if (byte >= '0' && byte <= '9')
            digit = byte - '0';
        else if ((byte | 32) >= 'a' && (byte | 32) <= 'f' && byte > 0)
            digit = (byte | 32) - 'a' + 10;
        if (digit < 0) {
            expected(j, "a hexadecimal digit of \\u");
            return 0;
        }
        code = code * 16 + (uint32_t)digit;
        j->at++;
    }
    return code;
}

/* Behind a backslash. The first half of a surrogate pair waits for the second;
 * what comes instead is an escape of its own. */
static void read_escape(pl_jsonl *j, keep to)
{
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    const uint32_t replacement = 0xFFFD;
    uint32_t first = 0;
    while (take(j, 'u')) {
        uint32_t code = read_hex(j);
        int is_second = code >= 0xDC00 && code < 0xE000;
        if (first && is_second) {
            keep_code(j, to,
                      0x10000 + ((first - 0xD800) << 10) + (code - 0xDC00));
            return;
        }
        if (first)
            keep_code(j, to, replacement);
        first = code >= 0xD800 && code < 0xDC00 ? code : 0;
        if (!first) {
            keep_code(j, to, is_second ? replacement : code);
            return;
        }
        if (!take(j, '\\')) {
            keep_code(j, to, replacement);
            return;
        }
    }
    if (first)
        keep_code(j, to, replacement);
    int byte = peek(j);
    const char *name = byte > 0 ? strchr(names, byte) : NULL;
    if (!name) {
        expected(j, "one of \" \\ / b f n r t u behind a backslash");
        return;
    }
    j->at++;
    keep_bytes(j, to, &bytes[name - names], 1);
}

/* How many of these bytes, from the first, stand for themselves in a string:
 * all but quotes, backslashes and control characters. Eight at a time. */
static size_t plain_bytes(const unsigned char *bytes, size_t count)
{
    const uint64_t ones = 0x0101010101010101u, tops = ones << 7;
    size_t at = 0;
    for (; at + 8 <= count; at += 8) {
        uint64_t word, quote, slash;
        memcpy(&word, bytes + at, 8);
        quote = word ^ ones * '"';
        slash = word ^ ones * '\\';
        if ((((word - ones * 0x20) & ~word) | ((quote - ones) & ~quote) |
             ((slash - ones) & ~slash)) &
            tops)
            break;
    }
    while (at < count && bytes[at] >= 0x20 && bytes[at] != '"' &&
           bytes[at] != '\\')
        at++;
    return at;
}

/* At a quote. */
static void read_string(pl_jsonl *j, keep to)
{
    j->at++;
    for (;;) {
        int byte = peek(j);
        if (byte == '"') {
            j->at++;
            return;
        }
        if (byte == '\\') {
            j->at++;
            read_escape(j, to);
            continue;
        }
        if (byte < 0x20) {
            expected(j, "the quote that ends a string");
            return;
        }
        size_t count = plain_bytes(j->buffer + j->at, j->have - j->at);
        keep_bytes(j, to, j->buffer + j->at, count);
        j->at += count;
    }
}

/* ---- other values ---- */

static void read_word(pl_jsonl *j, const char *word)
{
    for (const char *c = word; *c; c++)
        if (!take(j, *c)) {
            expected(j, "a JSON value");
            return;
        }
}

static void read_digits(pl_jsonl *j)
{
    if (peek(j) < '0' || peek(j) > '9')
        expected(j, "a digit");
    while (peek(j) >= '0' && peek(j) <= '9')
        j->at++;
}

static void read_number(pl_jsonl *j)
{
    if (take(j, '-') && is_next(j, 'I')) {
        read_word(j, "Infinity");
        return;
    }
    if (!take(j, '0'))
        read_digits(j);
    if (take(j, '.'))
        read_digits(j);
    if (take(j, 'e') || take(j, 'E')) {
        if (!take(j, '+'))
            take(j, '-');
        read_digits(j);
    }
}

static void read_value(pl_jsonl *j, const char *rest, int depth);

static void read_array(pl_jsonl *j, int depth)
{
    j->at++;
    skip_blanks(j);
    if (take(j, ']'))
        return;
    do {
        read_value(j, NULL, depth);
        skip_blanks(j);
    } while (take(j, ','));
    if (!take(j, ']'))
        expected(j, "a comma or ] in an array");
}

static void note_key(pl_jsonl *j)
{
    size_t bytes = j->key_bytes < sizeof j->key ? j->key_bytes : sizeof j->key;
    size_t whole = pl_utf8_text_bytes(j->key, bytes);
    if (j->keys_bytes + whole + 3 > sizeof j->keys)
        return;
    int put = snprintf(j->keys + j->keys_bytes, sizeof j->keys - j->keys_bytes,
                       "%s%.*s", j->keys_bytes ? ", " : "", (int)whole, j->key);
    j->keys_bytes += (size_t)put;
}

/* What of the path `rest` is left behind this key: "" where it is the wanted
 * field, NULL where it leads elsewhere. */
static const char *behind_key(const pl_jsonl *j, const char *rest)
{
    size_t bytes = j->key_bytes;
    if (!rest || bytes > strlen(rest) || memcmp(rest, j->key, bytes) != 0)
        return NULL;
    if (rest[bytes] == '.')
        return rest + bytes + 1;
    return rest[bytes] == '\0' ? rest + bytes : NULL;
}

static void read_object(pl_jsonl *j, const char *rest, int depth)
{
    j->at++;
    skip_blanks(j);
    if (take(j, '}'))
        return;
    do {
        skip_blanks(j);
        if (!is_next(j, '"')) {
            expected(j, "a key in quotes");
            return;
        }
        j->key_bytes = 0;
        read_string(j, rest ? KEEP_KEY : KEEP_NOTHING);
        const char *behind = rest ? behind_key(j, rest) : NULL;
        if (depth == 1)
            note_key(j);
        skip_blanks(j);
        if (!take(j, ':')) {
            expected(j, "a colon behind the key");
            return;
        }
        read_value(j, behind, depth);
        skip_blanks(j);
    } while (take(j, ','));
    if (!take(j, '}'))
        expected(j, "a comma or } in an object");
}

/* The value of the field itself. */
static void read_wanted(pl_jsonl *j, int depth)
{
    if (j->found != MISSING) {
        wrong(j, "the field \"%s\" stands there twice", j->field);
        return;
    }
    switch (peek(j)) {
    case '"':
        read_string(j, KEEP_TEXT);
        if (j->overflows)
            too_large(j, EXACTLY);
        j->found = IS_TEXT;
        return;
    case 'n':
        read_word(j, "null");
        j->found = IS_NULL;
        return;
    case '{':
    case '[':
        wrong(j, "the field \"%s\" is an %s; a string is expected", j->field,
              peek(j) == '[' ? "array" : "object");
        return;
    default:
        read_value(j, NULL, depth);
        wrong(j,
              "the field \"%s\" is a number or a truth value; a string is "
              "expected",
              j->field);
    }
}

/* `rest`: the path from here to the wanted field, "" if it is this value, NULL
 * if it isn't below. `depth` counts what is open around it. */
static void read_value(pl_jsonl *j, const char *rest, int depth)
{
    skip_blanks(j);
    if (rest && *rest == '\0') {
        read_wanted(j, depth);
        return;
    }
    int byte = peek(j);
    if ((byte == '{' || byte == '[') && depth == PL_JSONL_MAX_DEPTH) {
        wrong(j, "its JSON is nested more than %d deep", depth);
        return;
    }
    switch (byte) {
    case '{':
        read_object(j, rest, depth + 1);
        return;
    case '[':
        read_array(j, depth + 1);
        return;
    case '"':
        read_string(j, KEEP_NOTHING);
        return;
    case 't':
        read_word(j, "true");
        return;
    case 'f':
        read_word(j, "false");
        return;
    case 'n':
        read_word(j, "null");
        return;
    case 'N':
        read_word(j, "NaN");
        return;
    case 'I':
        read_word(j, "Infinity");
        return;
    default:
        if (byte != '-' && (byte < '0' || byte > '9'))
            expected(j, "a JSON value");
        else
            read_number(j);
    }
}

/* ---- lines ---- */

/* One line that isn't blank. */
static void read_line(pl_jsonl *j)
{
    j->found = MISSING;
    j->text_bytes = j->keys_bytes = 0;
    j->overflows = 0;
    j->keys[0] = '\0';
    if (!is_next(j, '{')) {
        expected(j, j->line == 1 && is_next(j, '[')
                        ? "{, an object on each line (this looks like a JSON "
                          "array)"
                        : "{, an object on each line");
        return;
    }
    read_value(j, j->field, 0);
    skip_blanks(j);
    if (peek(j) != END && !take(j, '\n'))
        expected(j, "the end of the line behind the object");
    if (j->found == MISSING && j->keys_bytes)
        wrong(j, "there is no field \"%s\". Its keys: %s. Choose with --field",
              j->field, j->keys);
    else if (j->found == MISSING)
        wrong(j, "there is no field \"%s\". The object is empty", j->field);
}

pl_status pl_jsonl_open(pl_jsonl *jsonl, pl_stream *stream, const char *field,
                        uint64_t line, size_t document_bytes,
                        unsigned char *buffer, size_t buffer_bytes,
                        pl_room *room, pl_error *err)
{
    size_t bytes = strlen(field);
    *jsonl = (pl_jsonl){ .stream = stream,
                         .room = room,
                         .document_bytes = document_bytes,
                         .buffer = buffer,
                         .buffer_bytes = buffer_bytes,
                         .line = line };
    if (bytes == 0 || bytes >= sizeof jsonl->field)
        return pl_fail(err, PL_E_CONFIG,
                       "the name of a field has 1 to %s, not %s",
                       pl_units_exact(sizeof jsonl->field - 1).text,
                       pl_units_exact(bytes).text);
    memcpy(jsonl->field, field, bytes + 1);
    return PL_OK;
}

void pl_jsonl_close(pl_jsonl *jsonl)
{
    if (jsonl->room)
        pl_room_give_back(jsonl->room, &jsonl->text);
    jsonl->room = NULL;
}

static void skip_byte_order_mark(pl_jsonl *j)
{
    if (pl_jsonl_offset(j) == 0 && is_next(j, 0xEF) && j->have - j->at >= 3 &&
        !memcmp(j->buffer + j->at, "\xEF\xBB\xBF", 3))
        j->at += 3;
}

pl_status pl_jsonl_next(pl_jsonl *jsonl, const char **text, size_t *bytes,
                        pl_error *err)
{
    pl_jsonl *j = jsonl;
    j->err = err;
    *text = NULL;
    *bytes = 0;
    skip_byte_order_mark(j);
    while (!j->status && peek(j) != END) {
        j->line++;
        j->line_start = pl_jsonl_offset(j);
        skip_blanks(j);
        if (peek(j) == END || take(j, '\n'))
            continue;
        read_line(j);
        if (!j->status && j->found == IS_TEXT) {
            *text = j->text_bytes ? (const char *)j->text.data : "";
            *bytes = (size_t)j->text_bytes;
            break;
        }
    }
    j->err = NULL;
    return j->status;
}
