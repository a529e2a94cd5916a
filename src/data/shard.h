/* shard.h: a file of token ids. Three kinds, told apart by their first bytes:
 *
 *   nanoGPT  headerless little-endian uint16
 *   llm.c    a header of 256 little-endian int32, then uint16:
 *            magic 20240520, version 1, number of tokens
 *   wide     the same with uint32, as llm.c has it for Llama 3, for
 *            vocabularies above 65536: magic 20240801, version 7
 *
 * llm.c counts up to 2^31 - 1 tokens; above that the header's fourth number
 * has the upper 32 bits of the count, which llm.c leaves 0.
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

typedef enum pl_shard_kind {
    PL_SHARD_NANOGPT,
    PL_SHARD_LLMC,
    PL_SHARD_WIDE,
} pl_shard_kind;

enum {
    PL_SHARD_TOKEN_BYTES = 2, /* nanoGPT's and llm.c's */
    PL_SHARD_WIDE_BYTES = 4,
    PL_SHARD_HEADER_BYTES = 1024,
    PL_SHARD_NARROW_VOCAB = 65536, /* the largest that 16 bits hold */
};

typedef struct pl_shard {
    pl_file file;
    pl_shard_kind kind;
    uint64_t n_tokens;
} pl_shard;

/* PL_E_FORMAT for a file without a token, of a size that is no number of
 * tokens, or other than its header says; and for a header like llm.c's with
 * another magic. */
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

/* "nanoGPT's uint16", "llm.c's uint16" or "llm.c's uint32". */
const char *pl_shard_kind_name(pl_shard_kind kind);
/* Bytes of a token, and of the header before them. */
size_t pl_shard_token_bytes(pl_shard_kind kind);
size_t pl_shard_header_bytes(pl_shard_kind kind);

/* ---- writing ---- */

typedef struct pl_shard_writer {
    pl_file *file;
    pl_shard_kind kind;
    int32_t vocab_size;
    uint64_t n_tokens;
    unsigned char *buffer;
    size_t buffer_bytes, used_bytes;
} pl_shard_writer;

/* Writes to `file`, which is empty and open for pl_file_append. `buffer`
 * (a header's bytes at least) is used until the end. A vocabulary above 65536
 * needs PL_SHARD_WIDE. */
PL_MUST_CHECK pl_status pl_shard_writer_begin(pl_shard_writer *writer,
                                              pl_file *file, pl_shard_kind kind,
                                              int32_t vocab_size,
                                              unsigned char *buffer,
                                              size_t buffer_bytes,
                                              pl_error *err);
/* Goes on with a shard of `n_tokens` tokens: `file` ends behind the last of
 * them. */
void pl_shard_writer_go_on(pl_shard_writer *writer, pl_file *file,
                           pl_shard_kind kind, int32_t vocab_size,
                           uint64_t n_tokens, unsigned char *buffer,
                           size_t buffer_bytes);
/* An id outside the vocabulary is a broken invariant: ours to avoid. */
PL_MUST_CHECK pl_status pl_shard_writer_put(pl_shard_writer *writer,
                                            const int32_t *ids, size_t count,
                                            pl_error *err);
/* Hands what is left to the file. */
PL_MUST_CHECK pl_status pl_shard_writer_flush(pl_shard_writer *writer,
                                              pl_error *err);
/* Writes what is left, and the count into the header. The file stays open. */
PL_MUST_CHECK pl_status pl_shard_writer_end(pl_shard_writer *writer,
                                            pl_error *err);

#endif
