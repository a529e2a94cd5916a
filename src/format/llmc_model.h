/* llmc_model.h: llm.c's model files (gpt2_124M.bin, gpt2_124M_bf16.bin).
 *
 * Layout, little-endian: 256 int32 of header (magic 20240326, version 3 for
 * float32 or 5 for bfloat16, T, V, L, H, C, padded V), then 16 tensors without
 * gaps, those of a block once per layer. Matrices of a product are [out, in].
 * Rows of the vocabulary's padding are there, and zero. Everything has biases,
 * GELU is tanh's, the classifier is the token table.
 *
 * The header's last word, which llm.c writes as 0 and never reads, is 1 in our
 * files of models without biases: theirs are zeros. */
#ifndef PL_FORMAT_LLMC_MODEL_H
#define PL_FORMAT_LLMC_MODEL_H

#include "base/file.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef enum pl_llmc_version {
    PL_LLMC_F32 = 3,
    PL_LLMC_BF16 = 5
} pl_llmc_version;

/* The last word of the header. */
typedef enum pl_llmc_biases {
    PL_LLMC_BIASES = 0,
    PL_LLMC_NO_BIASES = 1
} pl_llmc_biases;

enum {
    PL_LLMC_TENSORS = 16,
    PL_LLMC_HEADER_BYTES = 1024,
    PL_LLMC_VOCAB_ROUND = 128, /* llm.c pads the vocabulary to a multiple */
    PL_LLMC_MAX_LAYERS = 100000,
};

typedef struct pl_llmc_shape {
    size_t T, V, L, H, C;
    size_t padded_V;
} pl_llmc_shape;

/* Tensor i of a file: wte, wpe, ln1w, ln1b, qkvw, qkvb, attprojw, attprojb,
 * ln2w, ln2b, fcw, fcb, fcprojw, fcprojb, lnfw, lnfb. */
typedef struct pl_llmc_tensor {
    const char *name;
    size_t layers, rows, cols; /* vectors have one row */
    uint64_t first;            /* element of the file */
} pl_llmc_tensor;

pl_llmc_tensor pl_llmc_tensor_at(const pl_llmc_shape *shape, size_t i);

/* PL_E_FORMAT, naming `path`, unless it is a model whose sizes can be counted:
 * the other functions need one. */
PL_MUST_CHECK pl_status pl_llmc_check(const pl_llmc_shape *shape,
                                      const char *path, pl_error *err);
/* Bytes of the file. */
uint64_t pl_llmc_bytes(const pl_llmc_shape *shape, pl_llmc_version version);

typedef struct pl_llmc {
    pl_file file;
    pl_llmc_version version;
    pl_llmc_biases biases;
    pl_llmc_shape shape;
    uint64_t written, unsynced; /* elements, bytes */
} pl_llmc;

/* ---- reading ---- */

/* Whether the file begins like one; PL_OK with 0 if it is shorter. */
PL_MUST_CHECK pl_status pl_llmc_is_one(const char *path, int *yes,
                                       pl_error *err);
/* Checks the header and that the file has exactly the bytes that it says. */
PL_MUST_CHECK pl_status pl_llmc_open(pl_llmc *llmc, const char *path,
                                     pl_error *err);
/* Elements [first, first + count) of the file as float32. */
PL_MUST_CHECK pl_status pl_llmc_read(const pl_llmc *llmc, uint64_t first,
                                     size_t count, float *out, pl_error *err);
void pl_llmc_close(pl_llmc *llmc);

/* ---- writing ---- */

/* A new file at `path` (the caller renames). */
PL_MUST_CHECK pl_status pl_llmc_begin(pl_llmc *llmc, const char *path,
                                      const pl_llmc_shape *shape,
                                      pl_llmc_version version,
                                      pl_llmc_biases biases, pl_error *err);
/* The next elements. `values` is scratch afterwards. */
PL_MUST_CHECK pl_status pl_llmc_append(pl_llmc *llmc, float *values,
                                       size_t count, pl_error *err);
/* Everything was appended, and is on the disk. On failure the file is gone. */
PL_MUST_CHECK pl_status pl_llmc_end(pl_llmc *llmc, pl_error *err);
/* Instead of the end: removes the file. */
void pl_llmc_drop(pl_llmc *llmc);

#endif
