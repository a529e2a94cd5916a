/* wellformed.c: see wellformed.h. */
#include "support/wellformed.h"

#include "base/utf8.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

enum { DEPTH = 64, NAMES = 32 };

typedef struct name {
    const char *text;
    size_t bytes;
} name;

typedef struct reader {
    const char *text;
    size_t bytes, at;
    name open[DEPTH];
    size_t depth, roots;
} reader;

static int looking_at(const reader *r, const char *what)
{
    const size_t n = strlen(what);
    return r->bytes - r->at >= n && memcmp(r->text + r->at, what, n) == 0;
}

static int same(const name *a, const name *b)
{
    return a->bytes == b->bytes && memcmp(a->text, b->text, a->bytes) == 0;
}

static name take_name(reader *r)
{
    name n = { r->text + r->at, 0 };
    while (r->at < r->bytes && (isalnum((unsigned char)r->text[r->at]) ||
                                strchr("-_:.", r->text[r->at]))) {
        r->at++;
        n.bytes++;
    }
    return n;
}

/* One character of text, or an entity. */
static const char *take_character(reader *r)
{
    static const char *const entities[] = { "&amp;",  "&lt;",   "&gt;",
                                            "&quot;", "&apos;", "&#10;" };
    uint32_t code = 0;
    if (looking_at(r, "&")) {
        for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
            if (looking_at(r, entities[i])) {
                r->at += strlen(entities[i]);
                return NULL;
            }
        return "an '&' that begins no entity";
    }
    const int length = pl_utf8_decode(r->text + r->at, r->bytes - r->at, &code);
    if (length <= 0)
        return "bytes that aren't UTF-8";
    if ((code < 0x20 && code != '\t' && code != '\n' && code != '\r') ||
        code == 0xFFFE || code == 0xFFFF)
        return "a character that XML refuses";
    if ((code >= 0x7F && code <= 0x9F) || (code >= 0x202A && code <= 0x202E) ||
        (code >= 0x2066 && code <= 0x2069))
        return "a control character";
    r->at += (size_t)length;
    return NULL;
}

static const char *take_attribute(reader *r, name *seen, size_t *count)
{
    const name n = take_name(r);
    const char *trouble = NULL;
    if (n.bytes == 0)
        return "no name where an attribute begins";
    for (size_t i = 0; i < *count; i++)
        if (same(&seen[i], &n))
            return "an attribute that stands there twice";
    if (*count < NAMES)
        seen[(*count)++] = n;
    if (!looking_at(r, "=\""))
        return "an attribute without a quoted value";
    for (r->at += 2; !trouble && !looking_at(r, "\"");) {
        if (r->at >= r->bytes || looking_at(r, "<"))
            return "a value without an end";
        trouble = take_character(r);
    }
    r->at += !trouble;
    return trouble;
}

static const char *take_open(reader *r)
{
    name seen[NAMES];
    size_t count = 0;
    r->at++;
    const name n = take_name(r);
    if (n.bytes == 0)
        return "a '<' that begins nothing";
    while (looking_at(r, " ")) {
        r->at++;
        const char *trouble = take_attribute(r, seen, &count);
        if (trouble)
            return trouble;
    }
    r->roots += r->depth == 0;
    if (looking_at(r, "/>")) {
        r->at += 2;
        return NULL;
    }
    if (!looking_at(r, ">") || r->depth == DEPTH)
        return "a tag without an end";
    r->at++;
    r->open[r->depth++] = n;
    return NULL;
}

static const char *take_close(reader *r)
{
    r->at += 2;
    const name n = take_name(r);
    if (r->depth == 0 || !same(&r->open[r->depth - 1], &n) ||
        !looking_at(r, ">"))
        return "an end that isn't that of the element before";
    r->depth--;
    r->at++;
    return NULL;
}

const char *wellformed_trouble(const char *text, size_t bytes, size_t *at)
{
    static const char doctype[] = "<!DOCTYPE html>";
    reader r = { .text = text, .bytes = bytes };
    const char *trouble = NULL;
    if (looking_at(&r, doctype))
        r.at = sizeof doctype - 1;
    while (r.at < r.bytes && !trouble) {
        if (looking_at(&r, "</"))
            trouble = take_close(&r);
        else if (looking_at(&r, "<"))
            trouble = take_open(&r);
        else if (r.depth == 0 && !isspace((unsigned char)text[r.at]))
            trouble = "text outside of the first element";
        else
            trouble = take_character(&r);
    }
    if (!trouble && (r.depth > 0 || r.roots != 1))
        trouble = "not one element that is closed";
    *at = r.at;
    return trouble;
}
