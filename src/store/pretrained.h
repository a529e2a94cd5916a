/* pretrained.h: a GPT-2, Llama or Qwen3 in a folder as Hugging Face's libraries
 * keep it, ours among them: config.json and model.safetensors, or several files
 * and model.safetensors.index.json.
 *
 * Names with or without "transformer." or "model.", float32, float16, bfloat16
 * or float64. Buffers that are no weights (attn.bias, attn.masked_bias) are
 * left out. The head has weights of its own where config.json says so; else it
 * must be wte itself, or the same bit for bit. */
#ifndef PL_STORE_PRETRAINED_H
#define PL_STORE_PRETRAINED_H

#include "format/safetensors.h"
#include "store/run.h"

/* ---- config.json ---- */

/* The model in the folder. */
PL_MUST_CHECK pl_status pl_pretrained_shape(pl_shape *shape, const char *folder,
                                            pl_heap *heap, pl_error *err);

/* Makes the config's model that of the folder, as nanoGPT's init_from='gpt2'
 * does: layers, heads, channels, vocabulary, biases, activation; and
 * block_size, unless that was set to less. Where positions rotate, block_size
 * stays: it is at most the folder's unless it was set to more, which is said,
 * as is what was set to something else. */
PL_MUST_CHECK pl_status pl_pretrained_apply(pl_config *config,
                                            const char *folder,
                                            const pl_log *log, pl_heap *heap,
                                            pl_error *err);

/* The same for a model of which only the shape is there; `name` is what the
 * origins of its keys say. */
PL_MUST_CHECK pl_status pl_pretrained_apply_shape(pl_config *config,
                                                  const pl_shape *shape,
                                                  const char *name,
                                                  const pl_log *log,
                                                  pl_heap *heap, pl_error *err);

/* The shape of one that OpenAI published, by its name on the hub: 'gpt2',
 * 'gpt2-medium', 'gpt2-large', 'gpt2-xl'. 0 for any other name. */
int pl_pretrained_known(pl_shape *shape, const char *name);

/* ---- weights ---- */

typedef struct pl_pretrained {
    pl_safetensors *files;
    size_t count;
} pl_pretrained;

enum { PL_PRETRAINED_MAX_FILES = 256 };

/* Opens the files; their headers come from `heap`. */
PL_MUST_CHECK pl_status pl_pretrained_open(pl_pretrained *pretrained,
                                           const char *folder, pl_heap *heap,
                                           pl_error *err);
void pl_pretrained_close(pl_pretrained *pretrained);

typedef struct pl_pretrained_tensor {
    const pl_safetensors *st;
    const pl_tensor_info *info;
} pl_pretrained_tensor;

/* Where a weight lies; PL_E_FORMAT unless it is there, as numbers, in its size
 * (of positions there may be more). */
PL_MUST_CHECK pl_status pl_pretrained_find(const pl_pretrained *pretrained,
                                           const pl_shape *shape, size_t slot,
                                           size_t piece,
                                           pl_pretrained_tensor *out,
                                           pl_error *err);

/* A tied head that is written out must be the embedding, bit for bit. */
PL_MUST_CHECK pl_status pl_pretrained_check_head(
    const pl_pretrained *pretrained, const pl_shape *shape, pl_error *err);

/* Where the shape has no biases, those that are written out must be zeros:
 * another program that trains the model gives it some. */
PL_MUST_CHECK pl_status pl_pretrained_check_biases(
    const pl_pretrained *pretrained, const pl_shape *shape, pl_error *err);

/* PL_E_FORMAT unless it has every weight of `gpt`, in its sizes (of positions
 * there may be more). To be asked before memory is
 * taken. */
PL_MUST_CHECK pl_status pl_pretrained_check(const pl_pretrained *pretrained,
                                            const pl_gpt *gpt, pl_error *err);

/* Fills the run's weights, rounded to how it keeps them. */
PL_MUST_CHECK pl_status pl_pretrained_load(const pl_pretrained *pretrained,
                                           pl_run *run, pl_error *err);

#endif
