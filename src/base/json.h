/* json.h: JSON from outside, within bounds.
 *
 * A thin gate before jansson: the size, the number of values and (by jansson:
 * 2048) the depth are bounded before anything is built; duplicate keys and
 * invalid UTF-8 are errors. What comes out is jansson's, to be given back with
 * json_decref. Opens no file. */
#ifndef PL_BASE_JSON_H
#define PL_BASE_JSON_H

#include "base/status.h"

#include <jansson.h>
#include <stddef.h>

enum {
    PL_JSON_MAX_BYTES = 32 * 1024 * 1024,
    PL_JSON_MAX_VALUES = 2 * 1024 * 1024,
};

/* Parses an object or an array. `name` (a path) begins the message, followed
 * by line and column. A string may hold U+0000, so where that matters compare
 * json_string_length too.
 *
 * Memory is the C library's, not a pl_heap's: at most 360 bytes per value and
 * 3 bytes per byte of text (measured on the worst case, empty objects as
 * members of an object), so less than 900 MB within the bounds above and about
 * 30 times the text for the files we write. Parse before sealing. */
PL_MUST_CHECK pl_status pl_json_parse(const char *bytes, size_t n,
                                      const char *name, json_t **out,
                                      pl_error *err);
/* The same of one line of a file, by its number. */
PL_MUST_CHECK pl_status pl_json_parse_line(const char *bytes, size_t n,
                                           const char *name, size_t line,
                                           json_t **out, pl_error *err);
/* The same of at most `most` values: for requests, of which many come. */
PL_MUST_CHECK pl_status pl_json_parse_few(const char *bytes, size_t n,
                                          const char *name, size_t most,
                                          json_t **out, pl_error *err);

enum { PL_JSON_BRIEF_BYTES = 64 };

/* A value for a message: "yarn", 0.25, null, a list; NULL: nothing. */
void pl_json_brief(const json_t *value, char text[PL_JSON_BRIEF_BYTES]);

#endif
