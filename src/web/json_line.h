/* json_line.h: JSON on one line, in a lump that grows: answers that are as long
 * as what was asked for. Text that isn't UTF-8 becomes U+FFFD, byte by byte.
 * Failure is remembered: see `failed` at the end. */
#ifndef PL_WEB_JSON_LINE_H
#define PL_WEB_JSON_LINE_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct pl_json_line {
    char *text; /* a lump, `used` bytes of it; NULL at first */
    size_t used, capacity;
    int failed; /* no memory was left, or it grew too long */
} pl_json_line;

enum { PL_JSON_LINE_MOST = 64 * 1024 * 1024 };

/* `text` as it is. */
void pl_json_line_raw(pl_json_line *line, const char *text);
/* printf's. At most 512 bytes. */
PL_PRINTF(2, 3)
void pl_json_line_format(pl_json_line *line, const char *format, ...);
/* Quoted; control characters, quotes and backslashes are escaped. */
void pl_json_line_string(pl_json_line *line, const char *text, size_t bytes);
/* 17 significant digits; not finite: null. */
void pl_json_line_real(pl_json_line *line, double value);

/* Begins anew, in the same memory. */
void pl_json_line_empty(pl_json_line *line);
void pl_json_line_free(pl_json_line *line);

#endif
