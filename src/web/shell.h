/* shell.h: what every page of ours begins and ends with, and pieces that they
 * share. A page is one file: its style is inside, and it asks for nothing. */
#ifndef PL_WEB_SHELL_H
#define PL_WEB_SHELL_H

#include "web/html.h"

#include "config/config.h"

/* By this line of its head a page of ours is known again. */
#define PL_SHELL_GENERATOR "Plimsoll"
/* And by this one a page of Markdown. */
#define PL_SHELL_MARKDOWN "<!-- written by plimsoll report -->"

/* From the doctype to the open <main>, with `title` as its first heading; and
 * from there to the end. */
void pl_shell_begin(pl_html *h, const char *title, const char *under);
void pl_shell_end(pl_html *h);

/* <section> with a heading; closed by pl_html_close. */
void pl_shell_section(pl_html *h, const char *id, const char *heading);

/* <tr> of two cells: a name and a text. */
void pl_shell_row(pl_html *h, const char *name, const char *text);

/* A cell of a table's head. */
void pl_shell_head(pl_html *h, const char *scope, const char *class,
                   const char *text);

/* The keys that were set, and where; those that weren't are folded away. */
void pl_shell_config(pl_html *h, const pl_config *config, unsigned commands);

#endif
