/* dataset.h: a folder of tokens for training and validation, and their
 * tokenizer.
 *
 * The tokens are train.bin and val.bin (nanoGPT's, and ours). Where one of them
 * isn't there, they are all files of the folder whose names end in .bin and
 * have "train", or "val", in them, in the order of their names: so llm.c's
 * fineweb_train_000001.bin, ... are one long list.
 *
 * The tokenizer comes from meta.json or tokenizer.json (ours), else from
 * meta.pkl (nanoGPT's), else there is none and the tokens are GPT-2's, with a
 * vocabulary of 50304 (text/tokfile.h). */
#ifndef PL_DATA_DATASET_H
#define PL_DATA_DATASET_H

#include "data/shard_set.h"
#include "text/tokenizer.h"

typedef enum pl_split { PL_SPLIT_TRAIN, PL_SPLIT_VAL } pl_split;

typedef struct pl_dataset {
    pl_shard_set shards[2]; /* by pl_split */
    pl_tokenizer tokenizer;
    char folder[PL_PATH_BYTES];
} pl_dataset;

/* Opens the folder `name` in `parent` ("data"); an absolute name stands alone,
 * as in Python's os.path.join. All lists come from `heap`. On
 * failure nothing stays open. */
PL_MUST_CHECK pl_status pl_dataset_open(pl_dataset *dataset, const char *parent,
                                        const char *name, pl_heap *heap,
                                        pl_error *err);
void pl_dataset_close(pl_dataset *dataset);

/* The tokenizer alone, for whoever needs no tokens: to sample, or to count
 * parameters. */
PL_MUST_CHECK pl_status pl_dataset_read_tokenizer(pl_tokenizer *tokenizer,
                                                  const char *folder,
                                                  pl_heap *heap, pl_error *err);

#endif
