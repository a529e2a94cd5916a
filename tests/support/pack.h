/* pack.h: packs bytes as gzip and zstd do, for tests of unpacking. */
#ifndef PL_TESTS_SUPPORT_PACK_H
#define PL_TESTS_SUPPORT_PACK_H

#include <stddef.h>

typedef enum pack_kind { PACK_GZIP, PACK_ZSTD } pack_kind;

/* malloc'ed; the length in *packed. */
char *pack_bytes(pack_kind kind, const void *data, size_t bytes,
                 size_t *packed);

#endif
