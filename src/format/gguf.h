/* gguf.h: llama.cpp's files: facts (keys with typed values) and named tensors.
 *
 * Layout, all little-endian: "GGUF", u32 version, u64 tensors, u64 keys; each
 * key as text, u32 type, value; each tensor as name, u32 rank, u64 dims (the
 * contiguous one first), u32 type, u64 offset; zeros up to the alignment (32,
 * or general.alignment); the data, each tensor padded likewise. A text is its
 * u64 length and its bytes. An array is u32 type of its elements, u64 count,
 * elements.
 *
 * Version 3 is written, 2 and 3 are read. Knows nothing of models. Holds keys
 * and the table of tensors, never arrays or data. */
#ifndef PL_FORMAT_GGUF_H
#define PL_FORMAT_GGUF_H

#include "base/arena.h"
#include "base/file.h"
#include "format/ggml_type.h"

#include <stddef.h>
#include <stdint.h>

typedef enum pl_gguf_type {
    PL_GGUF_U8,
    PL_GGUF_I8,
    PL_GGUF_U16,
    PL_GGUF_I16,
    PL_GGUF_U32,
    PL_GGUF_I32,
    PL_GGUF_F32,
    PL_GGUF_BOOL,
    PL_GGUF_TEXT,
    PL_GGUF_ARRAY,
    PL_GGUF_U64,
    PL_GGUF_I64,
    PL_GGUF_F64,
    PL_GGUF_TYPES
} pl_gguf_type;

enum {
    PL_GGUF_MAX_RANK = 4,
    PL_GGUF_NAME_BYTES = 64, /* of a tensor, with its zero: ggml's limit */
    PL_GGUF_KEY_BYTES = 256, /* with its zero */
    PL_GGUF_MAX_KEYS = 4096,
    PL_GGUF_MAX_TENSORS = 100000,
    PL_GGUF_MAX_HEADER = 256 * 1024 * 1024,
    PL_GGUF_ALIGN = 32,
    PL_GGUF_BUFFER_BYTES = 64 * 1024,
};

typedef struct pl_gguf_tensor {
    char name[PL_GGUF_NAME_BYTES];
    pl_ggml_type type;
    size_t rank;
    uint64_t dims[PL_GGUF_MAX_RANK]; /* the contiguous one first; behind rank
                                        they are 1 */
    uint64_t offset, bytes;          /* in the data */
} pl_gguf_tensor;

/* ---- reading ---- */

typedef struct pl_gguf_key {
    const char *name;
    pl_gguf_type type, element; /* element: of an array */
    int64_t whole;              /* integers and bool; u64 beyond it: as -1 */
    double real;                /* f32, f64 */
    uint64_t at;                /* where a text or an array's elements begin */
    uint64_t count;             /* bytes of a text, elements of an array */
} pl_gguf_key;

/* A place in the file, read through a buffer. */
typedef struct pl_gguf_cursor {
    const pl_file *file;
    uint64_t at;    /* of the next byte */
    uint64_t end;   /* nothing behind it is read */
    uint64_t first; /* of the buffer's bytes, `ready` of them */
    size_t ready;
    unsigned char *buffer; /* PL_GGUF_BUFFER_BYTES */
} pl_gguf_cursor;

typedef struct pl_gguf {
    pl_file file;
    pl_gguf_key *keys;
    size_t key_count;
    pl_gguf_tensor *tensors;
    size_t tensor_count;
    uint64_t data_at;
    uint32_t *index; /* tensors by name: place + 1 */
    size_t index_mask;
    unsigned char *buffer;
} pl_gguf;

/* Checks everything but the data: every length against the file and the limits
 * above, doubled names, unknown types, offsets that overlap or leave holes.
 * PL_E_FORMAT says what and where; PL_E_UNSUPPORTED for a version, byte order
 * or type of tensor that isn't read. */
PL_MUST_CHECK pl_status pl_gguf_open(pl_gguf *gguf, const char *path,
                                     pl_heap *heap, pl_error *err);
void pl_gguf_close(pl_gguf *gguf);

/* NULL if there is none. */
const pl_gguf_key *pl_gguf_find_key(const pl_gguf *gguf, const char *name);
const pl_gguf_tensor *pl_gguf_find(const pl_gguf *gguf, const char *name);

/* A whole number of any integer type, from `min` to `max`; a text with a zero
 * behind it; PL_E_FORMAT if the key is absent or something else. */
PL_MUST_CHECK pl_status pl_gguf_want_whole(const pl_gguf *gguf,
                                           const char *name, int64_t min,
                                           int64_t max, int64_t *out,
                                           pl_error *err);
PL_MUST_CHECK pl_status pl_gguf_want_text(const pl_gguf *gguf, const char *name,
                                          char *out, size_t capacity,
                                          pl_error *err);

/* An array's elements, one after the other; one walk at a time. */
typedef struct pl_gguf_walk {
    const pl_gguf_key *key;
    pl_gguf_cursor cursor;
    uint64_t left; /* elements */
} pl_gguf_walk;

/* PL_E_FORMAT unless there is an array of `element` under this name. */
PL_MUST_CHECK pl_status pl_gguf_walk_begin(pl_gguf_walk *walk,
                                           const pl_gguf *gguf,
                                           const char *name,
                                           pl_gguf_type element, pl_error *err);
/* The next one; there must be one left. A text gets a zero behind it, which
 * *bytes doesn't count; PL_E_FORMAT if it doesn't fit. */
PL_MUST_CHECK pl_status pl_gguf_walk_text(pl_gguf_walk *walk, char *out,
                                          size_t capacity, size_t *bytes,
                                          pl_error *err);
PL_MUST_CHECK pl_status pl_gguf_walk_i32(pl_gguf_walk *walk, int32_t *out,
                                         pl_error *err);

/* Bytes [at, at + bytes) of a tensor's data, as stored. */
PL_MUST_CHECK pl_status pl_gguf_read(const pl_gguf *gguf,
                                     const pl_gguf_tensor *tensor, uint64_t at,
                                     void *out, size_t bytes, pl_error *err);

/* ---- writing ---- */

/* In this order: begin; put ... (an array's elements right behind it); tensor
 * ...; then each tensor's data in pieces, in the same order; end. Takes no
 * memory. Failures of put and tensor are remembered and told by the next
 * function that returns a status. */
typedef struct pl_gguf_writer {
    pl_file file;
    unsigned char *buffer; /* PL_GGUF_BUFFER_BYTES */
    size_t used;
    uint64_t written; /* bytes of the file, with those in the buffer */
    uint64_t keys, tensors, due; /* due: elements of the array at hand */
    uint64_t data_at, planned;   /* planned: bytes of data, padded */
    uint64_t unsynced;
    pl_status status;
    pl_error err;
} pl_gguf_writer;

/* A new file at `path` (the caller renames). */
PL_MUST_CHECK pl_status pl_gguf_begin(pl_gguf_writer *writer, const char *path,
                                      void *buffer, pl_error *err);
void pl_gguf_put_u32(pl_gguf_writer *writer, const char *key, uint32_t value);
void pl_gguf_put_f32(pl_gguf_writer *writer, const char *key, float value);
void pl_gguf_put_bool(pl_gguf_writer *writer, const char *key, int value);
void pl_gguf_put_text(pl_gguf_writer *writer, const char *key,
                      const char *text);
void pl_gguf_put_array(pl_gguf_writer *writer, const char *key,
                       pl_gguf_type element, uint64_t count);
void pl_gguf_element_text(pl_gguf_writer *writer, const char *text,
                          size_t bytes);
void pl_gguf_element_i32(pl_gguf_writer *writer, int32_t value);

/* Fills offset and bytes; the first of `dims` is the contiguous one. */
void pl_gguf_put_tensor(pl_gguf_writer *writer, pl_gguf_tensor *tensor);

/* A piece of the data; `tensor` as pl_gguf_put_tensor left it, `at` where its
 * last piece ended. The last piece is padded. */
PL_MUST_CHECK pl_status pl_gguf_data(pl_gguf_writer *writer,
                                     const pl_gguf_tensor *tensor, uint64_t at,
                                     const void *data, size_t bytes,
                                     pl_error *err);
/* Everything is on the disk. */
PL_MUST_CHECK pl_status pl_gguf_end(pl_gguf_writer *writer, pl_error *err);
/* Instead of the end: removes the file. */
void pl_gguf_drop(pl_gguf_writer *writer);

#endif
