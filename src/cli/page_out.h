/* page_out.h: a page or a picture on its way to a file or to standard output.
 *
 * A file is written whole or not at all, and only over one that Plimsoll wrote
 * before: what somebody else made isn't replaced. */
#ifndef PL_CLI_PAGE_OUT_H
#define PL_CLI_PAGE_OUT_H

#include "base/status.h"

#include <stddef.h>

typedef struct pl_page_out {
    const char *path; /* NULL: standard output */
    char *text;
    size_t used, capacity;
    pl_status status; /* of what was taken so far */
    pl_error err;
} pl_page_out;

/* `path` may be NULL or "-": standard output. PL_E_IO where something is there
 * that isn't ours to replace. */
PL_MUST_CHECK pl_status pl_page_out_open(pl_page_out *out, const char *path,
                                         pl_error *err);
/* A sink, for web/html.h among others; `context` is the pl_page_out. */
void pl_page_out_take(void *context, const char *text, size_t bytes);
/* Writes and closes; says where the file is. */
PL_MUST_CHECK pl_status pl_page_out_close(pl_page_out *out, pl_error *err);

#endif
