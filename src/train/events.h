/* events.h: what a training tells those who watch it. */
#ifndef PL_TRAIN_EVENTS_H
#define PL_TRAIN_EVENTS_H

#include <stdint.h>

/* After an update. */
typedef struct pl_update_event {
    uint64_t step;  /* of this update: nanoGPT's iter */
    double loss;    /* mean over all tokens of the update */
    double step_ms; /* the update alone */
    double learning_rate, grad_norm;
    int skipped;       /* loss or gradients were not finite */
    double loss_scale; /* of the next update: smaller after an overflow */
    int diverged;      /* and no loss scale can be blamed for that */
} pl_update_event;

/* The loss on one split. */
typedef struct pl_eval {
    double loss;           /* mean over all tokens */
    double standard_error; /* of that mean, over sequences; NaN for one */
    uint64_t sequences, tokens;
} pl_eval;

/* After an evaluation. */
typedef struct pl_eval_event {
    uint64_t step;
    pl_eval train, val;
    int improved;
} pl_eval_event;

#endif
