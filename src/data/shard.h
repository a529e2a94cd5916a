/* shard.h: a file of token ids, as nanoGPT writes them: headerless
 * little-endian uint16.
 *
 * Read with pread into the caller's memory, never mapped, nothing read ahead.
 * Allocates nothing. Every id is checked against the vocabulary, always: an id
 * that is too large would read past the embedding. */
#ifndef PL_DATA_SHARD_H
#define PL_DATA_SHARD_H

#include "base/file.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum { PL_SHARD_TOKEN_BYTES = 2 };

typedef struct pl_shard {
    pl_file file;
    uint64_t n_tokens;
} pl_shard;

/* PL_E_FORMAT for an empty file or an odd number of bytes. */
PL_MUST_CHECK pl_status pl_shard_open(pl_shard *shard, const char *path,
                                      pl_error *err);
void pl_shard_close(pl_shard *shard);

/* out[0..count) = tokens [first, first + count), which must lie within the
 * shard. `out` is the only memory used. An id of vocab_size or more is
 * PL_E_FORMAT with the file, the position and the id. May be called from
 * several threads at once. */
PL_MUST_CHECK pl_status pl_shard_read(const pl_shard *shard, uint64_t first,
                                      size_t count, int32_t *out,
                                      int32_t vocab_size, pl_error *err);

#endif
