/* medium.h: whether the files of a run lie in memory: an out_dir on tmpfs. Then
 * they take their share of the budget, and a plan counts them. */
#ifndef PL_TRAIN_MEDIUM_H
#define PL_TRAIN_MEDIUM_H

#include "advise/machine.h"
#include "store/outdir.h"

typedef struct pl_medium {
    uint64_t tokenizer_bytes; /* as pl_checkpoint_tokenizer_bytes says */
    uint64_t held_bytes;      /* of the files, by a run that goes on */
} pl_medium;

/* Lets plans for `machine` count the files of a run that trains, if they take
 * memory. The machine borrows `medium`. */
PL_MUST_CHECK pl_status pl_medium_count(pl_medium *medium, pl_machine *machine,
                                        const pl_config *config,
                                        uint64_t tokenizer_bytes,
                                        pl_error *err);

/* What a run's files take at most, on a disk too. */
pl_outdir_need pl_medium_need(const pl_config *config, const pl_gpt *gpt,
                              uint64_t tokenizer_bytes);

#endif
