/* checkpoint.h: a run as a folder, written whole or not at all.
 *
 *   model.safetensors      weights, in Hugging Face's GPT-2 names and layout;
 *                          a model without biases has zeros there, since that
 *                          format knows no other way
 *   config.json            for programs that load GPT-2 from a folder
 *   optimizer.safetensors  AdamW's moments, "m." and "v." before the names
 *   state.json             step, best loss, model, every config key
 *   meta.json or           the tokenizer, if there is one
 *   tokenizer.json
 *
 * A checkpoint is written beside its place and then swapped in. */
#ifndef PL_TRAIN_CHECKPOINT_H
#define PL_TRAIN_CHECKPOINT_H

#include "train/session.h"

/* The newest state, for resuming; and the one with the best validation loss,
 * kept apart when always_save_checkpoint is off. */
#define PL_CHECKPOINT_NEWEST "ckpt"
#define PL_CHECKPOINT_BEST   "best"

/* The longest value of a key that a checkpoint can hold, with its zero. */
enum { PL_CHECKPOINT_VALUE_BYTES = 4096 };

/* What state.json says. */
typedef struct pl_checkpoint_state {
    uint64_t step, skipped;
    double best_val_loss;
    pl_scaler scaler; /* active if the run had one */
    pl_shape shape;
} pl_checkpoint_state;

/* Writes <out_dir>/<name>. Allocates nothing. */
PL_MUST_CHECK pl_status pl_checkpoint_save(pl_session *session,
                                           const char *name, pl_error *err);

/* Finds the folder to resume or to sample from in `out_dir`, which may be a
 * checkpoint itself. */
typedef enum pl_checkpoint_wish {
    PL_WANT_NEWEST,
    PL_WANT_BEST
} pl_checkpoint_wish;
PL_MUST_CHECK pl_status pl_checkpoint_find(char folder[PL_PATH_BYTES],
                                           const char *out_dir,
                                           pl_checkpoint_wish wish,
                                           pl_heap *heap, pl_error *err);

PL_MUST_CHECK pl_status pl_checkpoint_read_state(pl_checkpoint_state *state,
                                                 const char *folder,
                                                 pl_heap *heap, pl_error *err);

/* Every key as it was when the checkpoint was written, as if set by a file. */
PL_MUST_CHECK pl_status pl_checkpoint_read_config(pl_config *config,
                                                  const char *folder,
                                                  pl_heap *heap, pl_error *err);

/* PL_E_FORMAT unless the checkpoint has every tensor that the session's model
 * needs, in the right sizes. To be asked before memory is taken. */
PL_MUST_CHECK pl_status pl_checkpoint_check(const pl_session *session,
                                            const char *folder, pl_error *err);

/* PL_E_CONFIG if the folder's tokenizer isn't the session's. */
PL_MUST_CHECK pl_status pl_checkpoint_check_tokenizer(const pl_session *session,
                                                      const char *folder,
                                                      pl_error *err);

/* Bytes on disk of a checkpoint, about: its tensors. */
uint64_t pl_checkpoint_bytes(pl_session *session);

/* Fills the device's weights and, if the session trains, moments. */
PL_MUST_CHECK pl_status pl_checkpoint_load(pl_session *session,
                                           const char *folder, pl_error *err);

#endif
