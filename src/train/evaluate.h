/* evaluate.h: the loss on a split, on the same sequences every time. */
#ifndef PL_TRAIN_EVALUATE_H
#define PL_TRAIN_EVALUATE_H

#include "data/batch.h"
#include "store/events.h"
#include "train/session.h"

/* How an evaluation is watched, and asked to stop; may be NULL. Both are called
 * between steps, by the caller's thread, and must leave the session alone;
 * progress after the first step, and then now and then. */
typedef struct pl_eval_watch {
    void *context;
    void (*progress)(void *context, pl_split split,
                     const pl_progress *progress);
    int (*stop)(void *context); /* not 0: here */
} pl_eval_watch;

/* eval_iters batches of eval_batch_size sequences of eval_block_size tokens:
 * a prefix of one list that depends on the seed and the split alone.
 * Where the tokenizer is known, also bits per byte: the losses of the tokens
 * that stand for text, in bits, over the bytes of that text. Special tokens
 * stand for none and are left out on both sides, as in nanochat.
 * PL_E_STOPPED if the watch asked for it: then nothing is known, and nothing
 * has changed. */
PL_MUST_CHECK pl_status pl_evaluate(pl_session *session, pl_split split,
                                    const pl_eval_watch *watch, pl_eval *result,
                                    pl_error *err);

#endif
