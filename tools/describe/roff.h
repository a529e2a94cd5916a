/* roff.h: the texts of the program in the language of manual pages. */
#ifndef PL_DESCRIBE_ROFF_H
#define PL_DESCRIBE_ROFF_H

#include "describe/sheet.h"

#include <stddef.h>

/* Letters as they are: nothing in them is a command, and what was typed on a
 * keyboard can be copied back to one. */
void pl_roff_literal(pl_sheet *sheet, const char *text, size_t bytes);
/* A sentence; `like this` becomes bold, *this* slanted. */
void pl_roff_words(pl_sheet *sheet, const char *text, size_t bytes);
/* What --help prints: paragraphs, and lines that begin with a blank, which
 * stay as they are. */
void pl_roff_text(pl_sheet *sheet, const char *text);
/* The Markdown of docs/config.md: headings, paragraphs, lists, code, and the
 * tables of keys. */
void pl_roff_markdown(pl_sheet *sheet, const char *text);

#endif
