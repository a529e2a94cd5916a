/* hash.h: checksums of bytes as they pass: XXH3 with 128 bits, the same number
 * that `xxhsum -H128` prints. Against damage, not against malice. Allocates
 * nothing. */
#ifndef PL_BASE_HASH_H
#define PL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { PL_HASH_TEXT_BYTES = 33 }; /* 32 hexadecimal digits and a zero */

typedef struct pl_hash {
    _Alignas(64) unsigned char state[576]; /* the library's */
} pl_hash;

typedef struct pl_hash_text {
    char text[PL_HASH_TEXT_BYTES];
} pl_hash_text;

void pl_hash_begin(pl_hash *hash);
void pl_hash_add(pl_hash *hash, const void *data, size_t bytes);
/* Of what was added so far; more may be added afterwards. */
pl_hash_text pl_hash_end(const pl_hash *hash);

/* Makes usable here what another process has begun, byte for byte as it was
 * there. Only one version of the library knows the other's: processes whose
 * pl_hash_version differ may not hand anything over. */
void pl_hash_adopt(pl_hash *hash);
unsigned pl_hash_version(void);

/* All at once. */
pl_hash_text pl_hash_of(const void *data, size_t bytes);

/* 64 bits for these bytes behind those that gave `before` (0: none). How the
 * bytes were cut counts too. */
uint64_t pl_hash_chain(uint64_t before, const void *data, size_t bytes);

#endif
