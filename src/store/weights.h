/* weights.h: a model's weights in somebody's file, read in slices: a Hugging
 * Face folder (our checkpoints are such), a GGUF or a model of llm.c. Which
 * way round a matrix is stored, and in which order the rows of queries and keys
 * come, is settled here.
 *
 * Holds one buffer, whatever the model's size. */
#ifndef PL_STORE_WEIGHTS_H
#define PL_STORE_WEIGHTS_H

#include "base/arena.h"
#include "base/log.h"
#include "format/ggml_type.h"
#include "format/gguf.h"
#include "format/llmc_model.h"
#include "model/params.h"
#include "store/pretrained.h"
#include "text/tokenizer.h"

/* Which two channels of a head positions rotate together. */
typedef enum pl_weights_pairs {
    PL_PAIRS_HALVES,   /* i and i + D / 2: Hugging Face's, and ours */
    PL_PAIRS_ADJACENT, /* 2 i and 2 i + 1: llama.cpp's Llama */
} pl_weights_pairs;

/* How somebody's files keep the same weights. */
typedef struct pl_weights_form {
    pl_param_layout layout; /* of the matrices of products */
    pl_weights_pairs pairs; /* of the outputs that are queries and keys */
} pl_weights_form;

pl_weights_form pl_weights_form_hf(const pl_shape *shape);
pl_weights_form pl_weights_form_gguf(const pl_shape *shape);
pl_weights_form pl_weights_form_llmc(void);

/* Where a tensor's data lies. */
typedef struct pl_weights_entry {
    const pl_file *file; /* NULL: nowhere, they are zeros */
    uint64_t at;
    pl_ggml_type type;
} pl_weights_entry;

typedef struct pl_weights {
    char path[PL_PATH_BYTES]; /* of the file or folder, for messages */
    pl_shape shape;           /* absent biases can be read: they are zeros */
    double dropout;           /* to train it further with */
    pl_tokenizer tokenizer;   /* kind NONE: the file has none */
    int32_t end_token;        /* -1: none is known */
    pl_weights_form form;     /* of the file */
    pl_pretrained pretrained; /* one of these, the others are not open */
    pl_gguf gguf;
    pl_llmc llmc;
    pl_weights_entry *entries; /* by tensor */
    float *scratch;            /* PL_WEIGHTS_SCRATCH values, for turning */
} pl_weights;

enum { PL_WEIGHTS_SCRATCH = 256 * 1024 };

/* A Hugging Face folder, as pretrained.h reads it. */
PL_MUST_CHECK pl_status pl_weights_open_folder(pl_weights *weights,
                                               const char *folder,
                                               pl_heap *heap, pl_error *err);
/* A GGUF file or one of llm.c's, by its first bytes. */
PL_MUST_CHECK pl_status pl_weights_open_file(pl_weights *weights,
                                             const char *path,
                                             const pl_log *log, pl_heap *heap,
                                             pl_error *err);
void pl_weights_close(pl_weights *weights);

/* PL_BIAS_NONE, where a file says so and its biases are zeros; where they
 * aren't, that is told to the log. */
PL_MUST_CHECK pl_status pl_weights_find_bias(pl_weights *weights,
                                             const pl_log *log, pl_error *err);

/* For those who open: takes entries and scratch. shape is set. */
PL_MUST_CHECK pl_status pl_weights_take(pl_weights *weights, pl_heap *heap,
                                        pl_error *err);

/* ---- tensors ---- */

/* Those of files: the pieces of params.h, slot after slot. Where a slot has
 * fewer than the most there are, the rest aren't there. */
typedef struct pl_weights_tensor {
    size_t slot, piece;
    int is_there; /* what follows is set */
    int is_written;
    pl_param param;
    pl_param_piece own;
} pl_weights_tensor;

size_t pl_weights_count(const pl_shape *shape);
pl_weights_tensor pl_weights_at(const pl_shape *shape, size_t i);
size_t pl_weights_index(size_t slot, size_t piece);

typedef struct pl_weights_dims {
    size_t rows, cols; /* a vector has one row */
    int is_matrix;
} pl_weights_dims;

/* 0 rows: it isn't there. */
pl_weights_dims pl_weights_size(const pl_shape *shape, size_t i,
                                pl_param_layout layout);

/* Rows [first, first + rows) of a tensor in this form. */
PL_MUST_CHECK pl_status pl_weights_rows(const pl_weights *weights, size_t i,
                                        pl_weights_form form, size_t first,
                                        size_t rows, float *out, pl_error *err);

/* The key of a GGUF that says false where a model has no biases. */
#define PL_WEIGHTS_GGUF_BIAS "plimsoll.bias"

/* ---- vocabularies in GGUF ---- */

/* The keys tokenizer.ggml.*, for a model of `vocab` tokens. */
PL_MUST_CHECK pl_status pl_vocab_put(pl_gguf_writer *writer,
                                     const pl_weights *weights,
                                     const pl_log *log, pl_error *err);
/* Sets the weights' tokenizer from them; a kind that isn't known is told to
 * the log and left out. */
PL_MUST_CHECK pl_status pl_vocab_read(pl_weights *weights, const pl_log *log,
                                      pl_heap *heap, pl_error *err);

#endif
