/* safetensors.h: named tensors as bytes in a file.
 *
 * Layout: u64 little-endian N, N bytes of JSON, then the data.
 *   {"__metadata__": {"format": "pt"},
 *    "name": {"dtype": "F32", "shape": [r, c], "data_offsets": [b, e]}, ...}
 * Offsets count from the data's start; tensors lie without holes or overlaps,
 * row-major, little-endian. The JSON begins with '{' and is padded with spaces
 * so that the data starts at a multiple of 8.
 *
 * Knows nothing of models. Writing allocates nothing and may follow sealing;
 * reading parses the header before it. */
#ifndef PL_FORMAT_SAFETENSORS_H
#define PL_FORMAT_SAFETENSORS_H

#include "base/arena.h"
#include "base/file.h"
#include "base/hash.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PL_TENSOR_NAME_BYTES = 128,
    PL_TENSOR_MAX_RANK = 4,
    PL_TENSOR_MAX_COUNT = 100000,
    PL_SAFETENSORS_MAX_HEADER = 16 * 1024 * 1024,
};

/* dtypes that are read and written. */
typedef enum pl_tensor_dtype {
    PL_TENSOR_F32,
    PL_TENSOR_F64,
    PL_TENSOR_F16,
    PL_TENSOR_BF16,
    PL_TENSOR_I32,
    PL_TENSOR_I64,
    PL_TENSOR_U8,
    PL_TENSOR_BOOL,
} pl_tensor_dtype;

const char *pl_tensor_dtype_name(pl_tensor_dtype dtype); /* "BF16" */
size_t pl_tensor_dtype_bytes(pl_tensor_dtype dtype);

typedef struct pl_tensor_info {
    char name[PL_TENSOR_NAME_BYTES];
    pl_tensor_dtype dtype;
    size_t rank;
    size_t dims[PL_TENSOR_MAX_RANK];
    uint64_t offset, bytes; /* in the data; filled by the reader */
} pl_tensor_info;

/* ---- writing ---- */

/* How a tensor's data goes on from somewhere: so many bytes are written by one
 * of the processes. */
typedef struct pl_tensor_part {
    uint64_t bytes;
    size_t writer;
} pl_tensor_part;

/* What is to be written, told piece by piece so that nothing has to be
 * collected: `describe` fills name, dtype, rank and dims of tensor i, or leaves
 * rank 0 where there is none; `read` yields bytes [at, at + bytes) of its data.
 *
 * Where several processes write one file, `writer` is this one, `part` says how
 * the data goes on from byte `at`, which lies at `place` in the file, and `sum`
 * adds to the checksum a part that another one writes. `part` NULL: this
 * process writes all of it. */
typedef struct pl_tensor_source {
    void *context;
    size_t count;
    void (*describe)(void *context, size_t i, pl_tensor_info *info);
    pl_status (*read)(void *context, size_t i, size_t at, void *out,
                      size_t bytes, pl_error *err);
    size_t writer;
    pl_tensor_part (*part)(void *context, size_t i, uint64_t at,
                           uint64_t place);
    pl_status (*sum)(void *context, size_t i, size_t at,
                     const pl_tensor_part *part, pl_hash *hash, pl_error *err);
} pl_tensor_source;

/* Writes and syncs a new file at `path` (the caller renames); the data goes
 * through `slice`. On failure the file is removed. */
PL_MUST_CHECK pl_status pl_safetensors_write(const char *path,
                                             const pl_tensor_source *source,
                                             void *slice, size_t slice_bytes,
                                             pl_error *err);

/* The same; every byte is added to `hash`, which was begun. The places of what
 * other processes write stay empty. */
PL_MUST_CHECK pl_status pl_safetensors_write_summed(
    const char *path, const pl_tensor_source *source, void *slice,
    size_t slice_bytes, pl_hash *hash, pl_error *err);

/* Writes what this process has of a file into the one at `path`, which another
 * has written like that, and syncs it. *bytes: how many. */
PL_MUST_CHECK pl_status pl_safetensors_fill(const char *path,
                                            const pl_tensor_source *source,
                                            void *slice, size_t slice_bytes,
                                            uint64_t *bytes, pl_error *err);

/* Bytes of the file that would be written. */
uint64_t pl_safetensors_size(const pl_tensor_source *source);

/* ---- reading ---- */

typedef struct pl_safetensors {
    pl_file file;
    uint64_t data_at;
    pl_tensor_info *tensors;
    size_t count;
} pl_safetensors;

/* Checks the whole header: bounds, overlaps, holes, duplicates. */
PL_MUST_CHECK pl_status pl_safetensors_open(pl_safetensors *st,
                                            const char *path, pl_heap *heap,
                                            pl_error *err);
void pl_safetensors_close(pl_safetensors *st);

/* NULL if there is none of that name. */
const pl_tensor_info *pl_safetensors_find(const pl_safetensors *st,
                                          const char *name);
/* Bytes [at, at + bytes) of a tensor's data, as stored. */
PL_MUST_CHECK pl_status pl_safetensors_read(const pl_safetensors *st,
                                            const pl_tensor_info *info,
                                            uint64_t at, void *out,
                                            size_t bytes, pl_error *err);

#endif
