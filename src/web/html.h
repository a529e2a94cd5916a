/* html.h: a writer of HTML and SVG that is also well-formed XML.
 *
 * Elements and attributes are words of two lists; all else is text, and every
 * text is escaped on its way out. There is no call that writes text as it is,
 * so that no name, sample or path can become markup: control characters and
 * bytes that aren't UTF-8 are shown as a terminal shows them ("\x1b"). Whatever
 * is opened is closed in order, which is checked.
 *
 *     pl_html h = pl_html_begin(sink, context);
 *     pl_html_open(&h, PL_TAG_p);
 *     pl_html_attr(&h, PL_ATTR_class, "note");
 *     pl_html_text(&h, anything);
 *     pl_html_close(&h);
 *     pl_html_end(&h);
 *
 * The text that comes out depends on what went in and on nothing else. Takes no
 * memory. */
#ifndef PL_WEB_HTML_H
#define PL_WEB_HTML_H

#include "base/status.h"

#include <stddef.h>

/* clang-format off */

/* The elements. BLOCK: a line of its own; VOID: has no end. */
#define PL_TAG_TABLE(X)                                                        \
    X(html, BLOCK) X(head, BLOCK) X(meta, VOID) X(title, BLOCK)                \
    X(style, BLOCK) X(body, BLOCK) X(header, BLOCK) X(main, BLOCK)             \
    X(footer, BLOCK) X(section, BLOCK) X(h1, BLOCK) X(h2, BLOCK) X(h3, BLOCK)  \
    X(p, BLOCK) X(ul, BLOCK) X(li, BLOCK) X(div, BLOCK) X(span, INLINE)        \
    X(a, INLINE) X(b, INLINE) X(code, INLINE) X(pre, BLOCK) X(figure, BLOCK)   \
    X(figcaption, BLOCK) X(details, BLOCK) X(summary, BLOCK) X(table, BLOCK)   \
    X(caption, BLOCK) X(thead, BLOCK) X(tbody, BLOCK) X(tr, BLOCK)             \
    X(th, INLINE) X(td, INLINE) X(svg, BLOCK) X(desc, BLOCK) X(g, BLOCK)       \
    X(path, VOID) X(line, VOID) X(rect, VOID) X(circle, VOID) X(text, BLOCK)

/* The attributes: C name, name in the file. None can run a script or fetch
 * anything: href takes a place in the same page (pl_html_link). */
#define PL_ATTR_TABLE(X)                                                       \
    X(id, "id") X(class, "class") X(lang, "lang") X(charset, "charset")        \
    X(name, "name") X(content, "content") X(scope, "scope")                    \
    X(xmlns, "xmlns") X(role, "role") X(aria_label, "aria-label")              \
    X(aria_labelledby, "aria-labelledby") X(viewBox, "viewBox")                \
    X(width, "width") X(height, "height") X(x, "x") X(y, "y") X(x1, "x1")      \
    X(y1, "y1") X(x2, "x2") X(y2, "y2") X(cx, "cx") X(cy, "cy") X(r, "r")      \
    X(rx, "rx") X(d, "d") X(text_anchor, "text-anchor") X(open, "open")

/* clang-format on */

typedef enum pl_tag {
#define PL_TAG_ENUM(tag, kind) PL_TAG_##tag,
    PL_TAG_TABLE(PL_TAG_ENUM)
#undef PL_TAG_ENUM
        PL_TAG_COUNT
} pl_tag;

typedef enum pl_attr {
#define PL_ATTR_ENUM(attr, text) PL_ATTR_##attr,
    PL_ATTR_TABLE(PL_ATTR_ENUM)
#undef PL_ATTR_ENUM
        PL_ATTR_COUNT
} pl_attr;

/* Takes pieces of the file, in order. */
typedef void pl_html_sink(void *context, const char *text, size_t bytes);

enum { PL_HTML_DEPTH = 32, PL_HTML_BUFFER_BYTES = 4096 };

typedef struct pl_html {
    pl_html_sink *sink;
    void *context;
    size_t used; /* of the buffer */
    int depth;
    int in_tag;                         /* attributes may follow */
    unsigned char stack[PL_HTML_DEPTH]; /* of pl_tag */
    char buffer[PL_HTML_BUFFER_BYTES];
} pl_html;

pl_html pl_html_begin(pl_html_sink *sink, void *context);

/* "<!DOCTYPE html>", before anything else. */
void pl_html_doctype(pl_html *h);

void pl_html_open(pl_html *h, pl_tag tag);
/* Of the element that was opened last, before anything is in it. */
void pl_html_attr(pl_html *h, pl_attr attr, const char *value);
PL_PRINTF(3, 4)
void pl_html_attrf(pl_html *h, pl_attr attr, const char *fmt, ...);
/* One that is made piece by piece: nothing else comes between. */
void pl_html_attr_begin(pl_html *h, pl_attr attr);
PL_PRINTF(2, 3) void pl_html_attr_add(pl_html *h, const char *fmt, ...);
void pl_html_attr_end(pl_html *h);
/* href of an <a>: "#" and the name of a place in this page. */
void pl_html_link(pl_html *h, const char *place);

void pl_html_text(pl_html *h, const char *text);
void pl_html_bytes(pl_html *h, const char *text, size_t bytes);
/* Cut at 1023 bytes. */
PL_PRINTF(2, 3) void pl_html_textf(pl_html *h, const char *fmt, ...);

void pl_html_close(pl_html *h);
/* An element with one class and one text; `class` and `text` may be NULL. */
void pl_html_put(pl_html *h, pl_tag tag, const char *class, const char *text);

/* <style> with one of the sheets that are in the program (web/page.h). */
void pl_html_sheet(pl_html *h, const char *name);

/* Hands over what is left. Everything has to be closed. */
void pl_html_end(pl_html *h);

#endif
