/* inspect.h: the parts of `inspect`. Each shows one thing: printed for people,
 * or as an item of a JSON list. */
#ifndef PL_CLI_INSPECT_H
#define PL_CLI_INSPECT_H

#include "base/arena.h"
#include "config/config.h"
#include "format/jsontext.h"

typedef struct pl_inspect {
    const pl_config *config;
    pl_heap *heap;
    pl_json_text *json; /* NULL: for people */
} pl_inspect;

/* An item: {"path": ..., "kind": ...; the caller closes it with '}'. */
void pl_inspect_begin(const pl_inspect *in, const char *path, const char *kind);

/* "the\\n cat": on one line and UTF-8, whatever the bytes are. Cut to what
 * fits; `out` ends with a zero. */
void pl_inspect_escape(char *out, size_t size, const char *text, size_t bytes);

/* ---- models: inspect_model.c ---- */

PL_MUST_CHECK pl_status pl_inspect_safetensors(const pl_inspect *in,
                                               const char *path, pl_error *err);
PL_MUST_CHECK pl_status pl_inspect_gguf(const pl_inspect *in, const char *path,
                                        pl_error *err);
PL_MUST_CHECK pl_status pl_inspect_llmc(const pl_inspect *in, const char *path,
                                        pl_error *err);
/* What a file is, by its first bytes. */
typedef enum pl_inspect_model {
    PL_INSPECT_OTHER,
    PL_INSPECT_GGUF,
    PL_INSPECT_LLMC,
    PL_INSPECT_PICKLE, /* weights as PyTorch saves them */
} pl_inspect_model;
PL_MUST_CHECK pl_status pl_inspect_which(const char *path,
                                         pl_inspect_model *model,
                                         pl_error *err);
/* The newest whole checkpoint in an out_dir, or the one that it is. */
PL_MUST_CHECK pl_status pl_inspect_checkpoint(const pl_inspect *in,
                                              const char *out_dir,
                                              pl_error *err);
/* A folder's config.json: what model it has. */
PL_MUST_CHECK pl_status pl_inspect_config(const pl_inspect *in,
                                          const char *folder, pl_error *err);

/* ---- data: inspect_data.c ---- */

PL_MUST_CHECK pl_status pl_inspect_shard(const pl_inspect *in, const char *path,
                                         pl_error *err);
PL_MUST_CHECK pl_status pl_inspect_tokenizer(const pl_inspect *in,
                                             const char *path, pl_error *err);
/* The one in a folder, if it has one. */
PL_MUST_CHECK pl_status pl_inspect_tokenizer_of(const pl_inspect *in,
                                                const char *folder,
                                                pl_error *err);
PL_MUST_CHECK pl_status pl_inspect_source(const pl_inspect *in,
                                          const char *path, pl_error *err);

#endif
