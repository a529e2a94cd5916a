/* decoder.h: writing several texts at once, as they come and go.
 *
 * A text waits until a slot is free, then its prompt is read in rounds of its
 * own, then it takes part in rounds that write one token of every text that is
 * that far; a round of reading and a round of writing take turns, so that a
 * long prompt doesn't stop the others. Each text has the tokens and scores that
 * it has alone, to the bit (slots.h), and with the same seed those of `sample`.
 *
 * Owns: the order of texts and the slots they are in. Texts are the caller's,
 * and stay where they are until they have ended. Takes no memory after it was
 * opened. */
#ifndef PL_TRAIN_DECODER_H
#define PL_TRAIN_DECODER_H

#include "train/sampler.h"
#include "train/score.h"

typedef enum pl_decoding_end {
    PL_DECODING_GOES_ON,
    PL_DECODING_LENGTH,   /* it has as many tokens as it may have */
    PL_DECODING_FINISHED, /* the model wrote end_token, or the taker had enough
                           */
} pl_decoding_end;

typedef struct pl_decoding pl_decoding;

/* What is told of a text: its tokens in order, each as soon as it is known.
 * `score` is NULL where none was asked for, and of the first token, which has
 * none. Returns PL_DECODING_GOES_ON, or PL_DECODING_FINISHED where it is
 * enough. `ended` comes last; the text is the caller's again. Both are called
 * from within pl_decoder_step, and may add texts and drop others, not this one.
 */
typedef struct pl_decoding_taker {
    void *context;
    pl_decoding_end (*token)(void *context, pl_decoding *text, size_t index,
                             const pl_score *score);
    void (*ended)(void *context, pl_decoding *text, pl_decoding_end end);
} pl_decoding_taker;

struct pl_decoding {
    /* set by the caller */
    int32_t *tokens; /* the prompt; room for `most` tokens */
    size_t count;    /* of the prompt, 1 at least; then of all */
    size_t most;     /* prompt and what is written: T at most */
    pl_sampling sampling;
    uint32_t sample; /* which text of a seed: part of the random numbers' key */
    int32_t end_token; /* ends the text, and is told of; -1: none */
    int scored;        /* the tokens that are written get scores */
    int prompt_scored; /* and those of the prompt are told of, with scores */
    size_t top;        /* likeliest tokens of each score */
    pl_decoding_taker taker;
    /* the decoder's own */
    pl_decoding *next;
    uint64_t number;
    size_t prompt, cached; /* tokens of the prompt; in the cache */
    int is_there;          /* it was added and has not ended */
};

typedef struct pl_decoder {
    pl_slots *slots;
    pl_decoding **in_slot;       /* [slots]: NULL where one is free */
    int32_t *tokens, *positions; /* of a round of writing */
    pl_decoding *first_waiting, *last_waiting;
    size_t waiting, running;
    uint64_t added;
    int read_last; /* the last round read a prompt */
} pl_decoder;

PL_MUST_CHECK pl_status pl_decoder_open(pl_decoder *decoder, pl_slots *slots,
                                        pl_heap *heap, pl_error *err);

/* The text waits, behind all others. */
void pl_decoder_add(pl_decoder *decoder, pl_decoding *text);

/* Forgets a text, wherever it is; `ended` isn't called. One that isn't there is
 * fine. Texts may be added and dropped in the middle of a round, too, by the
 * watch of its slots. */
void pl_decoder_drop(pl_decoder *decoder, pl_decoding *text);

/* Whether there is anything to do. */
int pl_decoder_busy(const pl_decoder *decoder);

/* One round, if there is anything to do. */
PL_MUST_CHECK pl_status pl_decoder_step(pl_decoder *decoder, pl_error *err);

#endif
