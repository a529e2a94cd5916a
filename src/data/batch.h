/* batch.h: which tokens a sequence is made of.
 *
 * A crop is looked up from its key, never drawn: sequence s of update n is the
 * same after a resume, in any micro-batch, for any number of threads.
 * Evaluation's sequence i depends on (seed, split, i) only, so a smaller
 * evaluation takes a prefix of one list. Starts are uniform over
 * [0, n_tokens - T), as nanoGPT's randint(len(data) - block_size). */
#ifndef PL_DATA_BATCH_H
#define PL_DATA_BATCH_H

#include "data/dataset.h"

/* PL_E_CONFIG if a shard of n_tokens has no room for a crop: it needs more
 * than T. `name` is the shard's path. */
PL_MUST_CHECK pl_status pl_batch_check(const char *name, uint64_t n_tokens,
                                       size_t T, pl_error *err);

/* First token of a crop of T + 1 tokens. n_tokens > T. */
uint64_t pl_batch_crop_train(uint32_t seed, uint32_t step, uint32_t sequence,
                             uint64_t n_tokens, size_t T);
uint64_t pl_batch_crop_eval(uint32_t seed, pl_split split, uint32_t i,
                            uint64_t n_tokens, size_t T);

typedef enum pl_batch_use { PL_BATCH_TRAIN, PL_BATCH_EVAL } pl_batch_use;

typedef struct pl_batch_key {
    pl_batch_use use;
    pl_split split; /* EVAL; training reads PL_SPLIT_TRAIN */
    uint32_t seed;
    uint32_t step; /* TRAIN: the update */
} pl_batch_key;

/* Tokens [from, from + count) of a sequence of the key's list, which has T + 1:
 * inputs are the first T, targets the last T. Allocates nothing. */
PL_MUST_CHECK pl_status pl_batch_read(const pl_dataset *dataset,
                                      const pl_batch_key *key,
                                      uint32_t sequence, size_t T, size_t from,
                                      size_t count, int32_t *tokens,
                                      pl_error *err);

#endif
