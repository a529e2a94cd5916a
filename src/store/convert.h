/* convert.h: weights from somebody's file (weights.h) to somebody else's, in
 * slices, watched by the caller. Every file is written under a temporary
 * name, synced and renamed: there is the whole of it or nothing. */
#ifndef PL_STORE_CONVERT_H
#define PL_STORE_CONVERT_H

#include "store/weights.h"

/* Who watches a conversion: told after every slice how much of the output is
 * written. Not 0: it ends, and leaves nothing. */
typedef struct pl_convert_watch {
    void *context;
    int (*progress)(void *context, uint64_t done_bytes, uint64_t total_bytes);
} pl_convert_watch;

typedef struct pl_convert {
    const pl_weights *weights;
    const pl_log *log;
    float *slice; /* slice_count values: at least a row of any tensor */
    size_t slice_count;
    unsigned char *packed; /* 4 * slice_count bytes */
    pl_convert_watch watch;
    uint64_t done_bytes, total_bytes; /* of what is written */
} pl_convert;

/* Takes the slices. `weights` must last as long; `watch` is copied. */
PL_MUST_CHECK pl_status pl_convert_open(pl_convert *convert,
                                        const pl_weights *weights,
                                        const pl_convert_watch *watch,
                                        const pl_log *log, pl_heap *heap,
                                        pl_error *err);

/* PL_E_IO unless the disk under `path` has room for `bytes`; they are what
 * progress is measured against. */
PL_MUST_CHECK pl_status pl_convert_room(pl_convert *convert, const char *path,
                                        uint64_t bytes, pl_error *err);
/* So much more is written. PL_E_STOPPED if the watch ends it. */
PL_MUST_CHECK pl_status pl_convert_step(pl_convert *convert, uint64_t bytes,
                                        pl_error *err);

/* PL_E_UNSUPPORTED unless its family's files can say all of it: what another
 * program would compute otherwise isn't written for it. `program` is which. */
PL_MUST_CHECK pl_status pl_convert_check(const pl_convert *convert,
                                         const char *program, pl_error *err);

/* Rows of a tensor that fit into the slice, from `first` on. */
size_t pl_convert_rows(const pl_convert *convert, pl_weights_dims dims,
                       size_t first);

/* A file at `path`. q8_0 where rows aren't whole blocks is f16, as llama.cpp's
 * converter does it; positions and vectors are f32. */
PL_MUST_CHECK pl_status pl_convert_to_gguf(pl_convert *convert,
                                           const char *path, pl_ggml_type type,
                                           pl_heap *heap, pl_error *err);
PL_MUST_CHECK pl_status pl_convert_to_llmc(pl_convert *convert,
                                           const char *path, pl_ggml_type type,
                                           pl_error *err);
/* A folder at `path`, which must be absent or empty: model.safetensors,
 * config.json, and the tokenizer if there is one. A model that its family can't
 * describe gets a model_type of its own (hf_config.h). */
PL_MUST_CHECK pl_status pl_convert_to_folder(pl_convert *convert,
                                             const char *path,
                                             pl_ggml_type type, pl_heap *heap,
                                             pl_error *err);

#endif
