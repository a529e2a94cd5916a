/* slots.h: rounds of the program that serves (model/gpt_serve.c): several
 * sequences at once, each in a slot of the cache.
 *
 * What a row gets depends on its own sequence alone, to the bit: not on the
 * other slots, nor on how a prompt is cut into rounds. Knows no text, no queue
 * and no choice of tokens: decoder.h and score.h do. */
#ifndef PL_TRAIN_SLOTS_H
#define PL_TRAIN_SLOTS_H

#include "train/session.h"

typedef struct pl_slots {
    pl_session *session; /* opened by pl_session_open_serve */
    size_t count;        /* slots */
    size_t rows;         /* most rows of a round */
    size_t logits;       /* most of them whose logits can be asked for */
    size_t T, V;
    const pl_run_watch *watch; /* asked between steps whether to go on, or
                                * NULL */
} pl_slots;

pl_slots pl_slots_make(pl_session *session);

/* `queries` tokens of each of `sequences` sequences, which are in the slots
 * from `slot` on and whose tokens stand from positions[i] on; all before these
 * were there in earlier rounds. sequences * queries is at most `rows`, and no
 * sequence is longer than T. The logits of the last `logits` rows are asked
 * for, one at least. */
typedef struct pl_slots_round {
    size_t slot, sequences, queries, logits;
    const int32_t *tokens;    /* [sequences * queries] */
    const int32_t *positions; /* [sequences] */
} pl_slots_round;

/* PL_E_STOPPED if the watch ended it: nothing of the cache holds then. */
PL_MUST_CHECK pl_status pl_slots_run(pl_slots *slots,
                                     const pl_slots_round *round,
                                     pl_error *err);

/* The logits of row `row` of those that the last round was asked for: [V], the
 * caller's to change, valid until the next call. */
PL_MUST_CHECK pl_status pl_slots_logits(pl_slots *slots, size_t row,
                                        float **logits, pl_error *err);

#endif
