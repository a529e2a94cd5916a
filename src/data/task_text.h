/* task_text.h: what lm-eval does to the texts of some data sets before a model
 * sees them. Pure; in place, since no text becomes longer. */
#ifndef PL_DATA_TASK_TEXT_H
#define PL_DATA_TASK_TEXT_H

#include <stddef.h>

/* How many bytes at the end of a text are white space, as Python's str.rstrip
 * has it; and at its beginning. */
size_t pl_task_text_tail(const char *text, size_t bytes);
size_t pl_task_text_head(const char *text, size_t bytes);

/* HellaSwag's: white space at both ends goes, " [title]" becomes ". ", anything
 * else in brackets goes, then of two blanks one. Returns the bytes that are
 * left, at the beginning of `text`. */
size_t pl_task_text_clean(char *text, size_t bytes);

/* Python's str.capitalize of letters that are ASCII or Latin-1: the first one
 * becomes large, all others small. Other characters stay. */
void pl_task_text_capitalize(char *text, size_t bytes);

/* Characters of a text; a byte that isn't UTF-8 is one. */
size_t pl_task_text_characters(const char *text, size_t bytes);

#endif
