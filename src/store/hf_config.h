/* hf_config.h: the config.json of Hugging Face's GPT-2, Llama and Qwen3, both
 * ways. Touches the disk only to read one. */
#ifndef PL_STORE_HF_CONFIG_H
#define PL_STORE_HF_CONFIG_H

#include "base/arena.h"
#include "format/jsontext.h"
#include "model/shape.h"

#include <stdint.h>

typedef struct pl_hf_config {
    pl_shape shape;
    double dropout;    /* a GPT-2's: of the residuals */
    int32_t end_token; /* -1: none */
    const char *dtype; /* torch's name of it; only written */
} pl_hf_config;

/* GPT-2's dropout, where nothing is said of it. */
#define PL_GPT2_DROPOUT 0.1

/* The model that the text describes. `name` (a path) begins every message.
 * What its family can't be here (another activation, scaled rotations, a
 * sliding window, ...) is refused by its entry: found, expected. */
PL_MUST_CHECK pl_status pl_hf_config_parse(pl_hf_config *config,
                                           const char *text, size_t bytes,
                                           const char *name, pl_error *err);
/* That of a folder. */
PL_MUST_CHECK pl_status pl_hf_config_read(pl_hf_config *config,
                                          const char *folder, pl_heap *heap,
                                          pl_error *err);

/* All its entries, with those of older and newer versions of transformers. A
 * model that its family has no way to say (pl_shape_stranger) gets a model_type
 * of its own and a "note" that says why, so that others refuse it with a
 * reason. */
void pl_hf_config_put(pl_json_text *json, const pl_hf_config *config);
/* bos_token_id and eos_token_id, null where there is none. */
void pl_hf_config_put_end(pl_json_text *json, int32_t end_token);

#endif
