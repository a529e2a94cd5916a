/* kind.h: what a file is that isn't text, by its first bytes. Pure. */
#ifndef PL_DATA_KIND_H
#define PL_DATA_KIND_H

#include <stddef.h>

enum { PL_KIND_BYTES = 4096 }; /* that are worth looking at */

/* "a bzip2 file", "a PDF", ...: of what is known and can't be read; else NULL,
 * also for what is packed in a way that can. */
const char *pl_kind_refused(const unsigned char *begin, size_t bytes);

/* Whether these bytes are UTF-8 (its last character may be cut off) without
 * zeros. */
int pl_kind_is_text(const unsigned char *begin, size_t bytes);

#endif
