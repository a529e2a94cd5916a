/* tape.h: tensors that are taken and released, in the order in which a program
 * would, and what that adds up to.
 *
 * A replay (nanogpt.h) writes the tape; the tape finds the peaks: of live
 * bytes, split by item, and of what PyTorch's allocator would have reserved
 * for them (cache.h). Holds numbers only, never a tensor. */
#ifndef PL_EXPLAIN_TAPE_H
#define PL_EXPLAIN_TAPE_H

#include "base/arena.h"
#include "explain/cache.h"

/* What a tensor is there for: id, name for people, key for scripts. */
#define PL_ITEM_TABLE(X)                                                       \
    X(PL_ITEM_WEIGHTS, "weights", "weights")                                   \
    X(PL_ITEM_GRADIENTS, "gradients", "gradients")                             \
    X(PL_ITEM_MOMENTS, "AdamW moments", "moments")                             \
    X(PL_ITEM_COPIES, "16-bit copies of weights", "weight_copies")             \
    X(PL_ITEM_MASKS, "causal masks", "masks")                                  \
    X(PL_ITEM_SAVED, "saved activations", "saved_activations")                 \
    X(PL_ITEM_SCORES, "attention scores", "attention_scores")                  \
    X(PL_ITEM_TEMPORARY, "passing activations", "temporaries")                 \
    X(PL_ITEM_LOGITS, "logits", "logits")                                      \
    X(PL_ITEM_KEPT, "kept older logits", "kept_logits")                        \
    X(PL_ITEM_LOGPROBS, "log-probabilities", "logprobs")                       \
    X(PL_ITEM_LOGPROBS32, "their fp32 copy", "logprobs_fp32")                  \
    X(PL_ITEM_DLOGPROBS, "gradient of these", "logprobs_gradient")             \
    X(PL_ITEM_DLOGITS, "gradient of logits", "logits_gradient")                \
    X(PL_ITEM_DWEIGHTS, "gradients under way", "gradients_under_way")          \
    X(PL_ITEM_OPTIMIZER, "optimizer temporaries", "optimizer_temporaries")     \
    X(PL_ITEM_TOKENS, "tokens", "tokens")

typedef enum pl_item {
#define PL_ITEM_ENUM(id, name, key) id,
    PL_ITEM_TABLE(PL_ITEM_ENUM)
#undef PL_ITEM_ENUM
        PL_ITEM_COUNT
} pl_item;

const char *pl_item_name(pl_item item);
const char *pl_item_key(pl_item item);

/* The parts of nanoGPT's loop, in its order. */
typedef enum pl_tape_phase {
    PL_TAPE_BUILD,
    PL_TAPE_EVAL_FIRST, /* estimate_loss() before the first update */
    PL_TAPE_UPDATE_FIRST,
    PL_TAPE_UPDATE,     /* a later one: AdamW's moments are there */
    PL_TAPE_EVAL_LATER, /* and so are the training loop's logits */
    PL_TAPE_COUNT,
} pl_tape_phase;

typedef struct pl_tape_peak {
    size_t live_bytes;           /* of tensors, at the worst moment */
    size_t reserved_bytes;       /* by the allocator, at its worst moment */
    size_t items[PL_ITEM_COUNT]; /* live then */
    const char *line;            /* of the program, then */
    const char *name;            /* of the tensor that made it the peak */
} pl_tape_peak;

/* The first tensor for which there was no room. */
typedef struct pl_tape_failure {
    int happened;
    pl_tape_phase phase;
    const char *line, *name;
    size_t wanted_bytes, live_bytes, reserved_bytes;
} pl_tape_failure;

typedef struct pl_tape_slot {
    const char *name;
    pl_item item;
    size_t bytes, block; /* block: of the cache */
} pl_tape_slot;

typedef size_t pl_taken; /* a tensor that is held; 0: none */

typedef struct pl_tape pl_tape;

/* Sees every event: taken (+1) or released (-1). */
typedef void pl_tape_watch(void *context, const pl_tape *tape, int sign,
                           const char *name, size_t bytes);

struct pl_tape {
    pl_tape_slot *slots; /* 0 is none */
    size_t *free_slots;
    size_t capacity, free_count;
    size_t live_bytes, limit_bytes; /* limit 0: none */
    size_t items[PL_ITEM_COUNT];
    pl_tape_phase phase;
    const char *line;
    pl_cache *cache; /* NULL: nothing is reserved beyond what is live */
    pl_tape_peak peaks[PL_TAPE_COUNT];
    pl_tape_failure failures[PL_TAPE_COUNT]; /* the first of each */
    pl_tape_watch *watch;                    /* may be NULL */
    void *context;
};

/* For at most `capacity` tensors at a time. */
PL_MUST_CHECK pl_status pl_tape_open(pl_tape *tape, size_t capacity,
                                     size_t limit_bytes, pl_cache *cache,
                                     pl_heap *heap, pl_error *err);

/* From here on `phase`; what is live counts for it. After a failure the
 * allocator begins with what is live alone, as a new process would. */
void pl_tape_begin(pl_tape *tape, pl_tape_phase phase);

pl_taken pl_tape_take(pl_tape *tape, pl_item item, const char *name,
                      size_t bytes);
/* Releases *held, if any, and forgets it. */
void pl_tape_release(pl_tape *tape, pl_taken *held);
/* From here on it is there for something else. */
void pl_tape_relabel(pl_tape *tape, pl_taken held, pl_item item);

#endif
