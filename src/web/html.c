/* html.c: see html.h. */
#include "web/html.h"
#include "base/check.h"
#include "base/utf8.h"
#include "web/page.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef enum kind { BLOCK, INLINE, VOID } kind;

static const struct {
    const char *name;
    kind kind;
} tags[PL_TAG_COUNT] = {
#define ROW(tag, kind) [PL_TAG_##tag] = { #tag, kind },
    PL_TAG_TABLE(ROW)
#undef ROW
};

static const char *const attrs[PL_ATTR_COUNT] = {
#define ROW(attr, text) [PL_ATTR_##attr] = (text),
    PL_ATTR_TABLE(ROW)
#undef ROW
};

/* ---- out ---- */

static void flush(pl_html *h)
{
    if (h->used > 0)
        h->sink(h->context, h->buffer, h->used);
    h->used = 0;
}

static void raw(pl_html *h, const char *text, size_t bytes)
{
    while (bytes > 0) {
        const size_t room = sizeof h->buffer - h->used,
                     some = bytes < room ? bytes : room;
        memcpy(h->buffer + h->used, text, some);
        h->used += some;
        text += some;
        bytes -= some;
        if (h->used == sizeof h->buffer)
            flush(h);
    }
}

static void raw_text(pl_html *h, const char *text)
{
    raw(h, text, strlen(text));
}

/* What a file that is also XML can't have, even escaped. */
static int is_refused(const char *shown)
{
    return memcmp(shown, "\xef\xbf\xbe", 3) == 0 ||
           memcmp(shown, "\xef\xbf\xbf", 3) == 0;
}

static void escaped(pl_html *h, const char *text, size_t bytes,
                    const char *line_end)
{
    for (size_t at = 0; at < bytes;) {
        char shown[PL_UTF8_SHOWN_BYTES] = "";
        at += pl_utf8_show(text + at, bytes - at, PL_UTF8_KEEP_BREAKS, shown);
        switch (shown[1] == '\0' ? shown[0] : '\0') {
        case '&':
            raw_text(h, "&amp;");
            break;
        case '<':
            raw_text(h, "&lt;");
            break;
        case '>':
            raw_text(h, "&gt;");
            break;
        case '"':
            raw_text(h, "&quot;");
            break;
        case '\n':
            raw_text(h, line_end);
            break;
        default:
            raw_text(h, is_refused(shown) ? "\xef\xbf\xbd" : shown);
            break;
        }
    }
}

/* ---- elements ---- */

pl_html pl_html_begin(pl_html_sink *sink, void *context)
{
    pl_html h;
    h.sink = sink;
    h.context = context;
    h.used = 0;
    h.depth = h.in_tag = 0;
    return h;
}

void pl_html_doctype(pl_html *h)
{
    PL_CHECK(h->depth == 0);
    raw_text(h, "<!DOCTYPE html>\n");
}

static void end_tag(pl_html *h)
{
    if (h->in_tag)
        raw(h, ">", 1);
    h->in_tag = 0;
}

static int is_block(pl_tag tag)
{
    return tags[tag].kind != INLINE;
}

void pl_html_open(pl_html *h, pl_tag tag)
{
    PL_CHECK(tag < PL_TAG_COUNT && h->depth < PL_HTML_DEPTH);
    const int inside_tag = h->in_tag;
    end_tag(h);
    if (inside_tag && is_block(tag) && h->stack[h->depth - 1] != PL_TAG_pre)
        raw(h, "\n", 1);
    raw(h, "<", 1);
    raw_text(h, tags[tag].name);
    h->stack[h->depth++] = (unsigned char)tag;
    h->in_tag = 1;
}

void pl_html_attr_begin(pl_html *h, pl_attr attr)
{
    PL_CHECK(h->in_tag && attr < PL_ATTR_COUNT);
    raw(h, " ", 1);
    raw_text(h, attrs[attr]);
    raw(h, "=\"", 2);
}

void pl_html_attr_add(pl_html *h, const char *fmt, ...)
{
    char text[1024];
    va_list list;
    va_start(list, fmt);
    vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    escaped(h, text, strlen(text), "&#10;");
}

void pl_html_attr_end(pl_html *h)
{
    raw(h, "\"", 1);
}

void pl_html_attr(pl_html *h, pl_attr attr, const char *value)
{
    pl_html_attr_begin(h, attr);
    escaped(h, value, strlen(value), "&#10;");
    pl_html_attr_end(h);
}

void pl_html_attrf(pl_html *h, pl_attr attr, const char *fmt, ...)
{
    char text[1024];
    va_list list;
    va_start(list, fmt);
    vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    pl_html_attr(h, attr, text);
}

void pl_html_link(pl_html *h, const char *place)
{
    PL_CHECK(h->in_tag && h->stack[h->depth - 1] == PL_TAG_a);
    raw_text(h, " href=\"#");
    escaped(h, place, strlen(place), "&#10;");
    raw(h, "\"", 1);
}

void pl_html_bytes(pl_html *h, const char *text, size_t bytes)
{
    PL_CHECK(h->depth > 0 && tags[h->stack[h->depth - 1]].kind != VOID);
    end_tag(h);
    escaped(h, text, bytes, "\n");
}

void pl_html_text(pl_html *h, const char *text)
{
    pl_html_bytes(h, text, strlen(text));
}

void pl_html_textf(pl_html *h, const char *fmt, ...)
{
    char text[1024];
    va_list list;
    va_start(list, fmt);
    vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    pl_html_text(h, text);
}

/* An element without content is written as one that has none: browsers take
 * "<div/>" for an open one. */
void pl_html_close(pl_html *h)
{
    PL_CHECK(h->depth > 0);
    const pl_tag tag = (pl_tag)h->stack[--h->depth];
    if (tags[tag].kind == VOID) {
        PL_CHECK(h->in_tag);
        raw_text(h, "/>");
        h->in_tag = 0;
    } else {
        end_tag(h);
        raw_text(h, "</");
        raw_text(h, tags[tag].name);
        raw(h, ">", 1);
    }
    if (is_block(tag))
        raw(h, "\n", 1);
}

void pl_html_put(pl_html *h, pl_tag tag, const char *class, const char *text)
{
    pl_html_open(h, tag);
    if (class)
        pl_html_attr(h, PL_ATTR_class, class);
    if (text)
        pl_html_text(h, text);
    pl_html_close(h);
}

/* The one text that isn't escaped, since browsers don't read it so: it is part
 * of the program, and has no character that would matter. */
void pl_html_sheet(pl_html *h, const char *name)
{
    const pl_page_file *sheet = pl_page_find(name);
    PL_CHECK(sheet && !memchr(sheet->bytes, '<', sheet->n) &&
             !memchr(sheet->bytes, '&', sheet->n));
    pl_html_open(h, PL_TAG_style);
    end_tag(h);
    raw(h, "\n", 1);
    raw(h, (const char *)sheet->bytes, sheet->n);
    pl_html_close(h);
}

void pl_html_end(pl_html *h)
{
    PL_CHECK(h->depth == 0);
    flush(h);
}
