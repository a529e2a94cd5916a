/* gpt2_config.h: the config.json of Hugging Face's GPT-2, both ways. Touches
 * the disk only to read one. */
#ifndef PL_STORE_GPT2_CONFIG_H
#define PL_STORE_GPT2_CONFIG_H

#include "base/arena.h"
#include "format/jsontext.h"
#include "model/shape.h"

#include <stdint.h>

typedef struct pl_gpt2_config {
    pl_shape shape;
    double epsilon;    /* of the layernorms; 1e-5 is the one we compute with */
    double dropout;    /* of all three kinds: the residual's */
    int32_t end_token; /* -1: none */
    const char *dtype; /* torch's name of it; only written */
} pl_gpt2_config;

/* GPT-2's dropout, where nothing is said of it. */
#define PL_GPT2_DROPOUT 0.1

/* The model that the text describes. `name` (a path) begins every message.
 * What a GPT-2 can't be here (another activation, another width of the MLP,
 * ...) is refused by its key. */
PL_MUST_CHECK pl_status pl_gpt2_config_parse(pl_gpt2_config *config,
                                             const char *text, size_t bytes,
                                             const char *name, pl_error *err);
/* That of a folder. */
PL_MUST_CHECK pl_status pl_gpt2_config_read(pl_gpt2_config *config,
                                            const char *folder, pl_heap *heap,
                                            pl_error *err);

/* All its keys. A model that GPT-2 has no way to say (heads that aren't n_embd
 * / n_head wide) gets a model_type of its own and a "note" that says why, so
 * that others refuse it with a reason. */
void pl_gpt2_config_put(pl_json_text *json, const pl_gpt2_config *config);
/* bos_token_id and eos_token_id, null where there is none. */
void pl_gpt2_config_put_end(pl_json_text *json, int32_t end_token);

#endif
