/* events.h: what a training tells those who watch it. */
#ifndef PL_STORE_EVENTS_H
#define PL_STORE_EVENTS_H

#include <stddef.h>
#include <stdint.h>

/* After an update. */
typedef struct pl_update_event {
    uint64_t step;  /* of this update: nanoGPT's iter */
    double loss;    /* mean over all tokens of the update */
    double step_ms; /* the update alone */
    double learning_rate, grad_norm;
    int skipped;       /* loss or gradients were not finite */
    double loss_scale; /* of the next update: smaller after an overflow */
    int arithmetic;    /* a pl_arithmetic: whose bits these are */
    int diverged;      /* and no loss scale can be blamed for that */
} pl_update_event;

/* While an update or the evaluation of a split is under way. */
typedef struct pl_progress {
    uint64_t step;
    uint64_t done, total; /* micro-batches of an update, evaluated sequences */
    double share;         /* of the work, from 0 to 1 */
    double tokens_per_second, seconds_left; /* so far; as expected */
} pl_progress;

/* The loss on one split. */
typedef struct pl_eval {
    double loss;           /* mean over all tokens */
    double standard_error; /* of that mean, over sequences; NaN for one */
    uint64_t sequences, tokens;
    uint64_t bytes; /* of text that the tokens stand for; 0: unknown */
    double bpb;     /* bits per byte: of the tokens that stand for any; NaN */
} pl_eval;

/* After an evaluation. */
typedef struct pl_eval_event {
    uint64_t step;
    pl_eval train, val;
    int improved;
} pl_eval_event;

/* After a training has gone on from a prompt. */
typedef struct pl_sample_event {
    uint64_t step;
    size_t index, count; /* which prompt, from 0, and of how many */
    const char *prompt;  /* both as they are, perhaps no UTF-8 */
    const char *text;    /* without the prompt */
    size_t prompt_bytes, text_bytes;
    size_t tokens;
    size_t line_bytes; /* what it may take in samples.jsonl */
    int is_cut;        /* the text ends too early: it took too many bytes */
} pl_sample_event;

/* How the likeliest candidate of a task is found: X(id, name). By the log
 * probability of a continuation as it is; by its characters, which is what
 * lm-eval's acc_norm divides by; by its bytes; by its tokens, as CORE does. */
#define PL_MEASURE_TABLE(X)                                                    \
    X(PL_MEASURE_WHOLE, "acc")                                                 \
    X(PL_MEASURE_CHARACTERS, "acc_norm")                                       \
    X(PL_MEASURE_BYTES, "acc_bytes")                                           \
    X(PL_MEASURE_TOKENS, "acc_tokens")

typedef enum pl_measure {
#define PL_MEASURE_ENUM(id, name) id,
    PL_MEASURE_TABLE(PL_MEASURE_ENUM)
#undef PL_MEASURE_ENUM
        PL_MEASURES
} pl_measure;

/* A number that was measured, and its standard error; NaN: there is none. */
typedef struct pl_measured {
    double value, error;
} pl_measured;

/* After the items of a task were put to the model (train/ask.h). */
typedef struct pl_task_result {
    const char *label, *kind;
    uint64_t items, cut; /* asked; of which contexts lost their beginning */
    pl_measured accuracy[PL_MEASURES];
    pl_measured perplexity; /* of the continuations of a language task */
    double chance;          /* of guessing right */
    double centred;         /* CORE's: (accuracy - chance) / (1 - chance) */
} pl_task_result;

/* After a training has asked. */
typedef struct pl_task_event {
    uint64_t step;
    size_t index, count; /* which task, from 0, and of how many */
    const pl_task_result *result;
} pl_task_event;

#endif
