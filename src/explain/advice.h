/* advice.h: what people tell each other to do against running out of memory,
 * and what each piece of it buys, found by replaying nanoGPT with it. */
#ifndef PL_EXPLAIN_ADVICE_H
#define PL_EXPLAIN_ADVICE_H

#include "explain/nanogpt.h"

enum { PL_ADVICE_MAX = 16, PL_ADVICE_NAME = 64, PL_ADVICE_NOTE = 128 };

typedef struct pl_advice {
    char name[PL_ADVICE_NAME];
    char note[PL_ADVICE_NOTE]; /* its price, or why it buys nothing */
    /* After it: training, evaluation at step 0, later; of live tensors. */
    size_t train_bytes, eval_first_bytes, eval_later_bytes;
    int fits; /* under the job's limit, if it has one */
} pl_advice;

typedef struct pl_advice_list {
    pl_advice rows[PL_ADVICE_MAX];
    size_t count;
} pl_advice_list;

/* `heads` is what the config asks for, where the job had to take fewer;
 * `eval_iters` is the config's. */
PL_MUST_CHECK pl_status pl_advice_make(pl_advice_list *list,
                                       const pl_nanogpt_job *job, size_t heads,
                                       size_t eval_iters, pl_error *err);

/* The largest number of heads, at most H, that divides C. */
size_t pl_advice_heads(size_t C, size_t H);

#endif
