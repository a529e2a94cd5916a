/* nanogpt.h: what nanoGPT on PyTorch needs, found by a replay.
 *
 * The replay writes down, in nanoGPT's own order, every tensor that its
 * evaluation, its training step and AdamW take and release: what Python's
 * variables hold, what autograd saves for the backward pass, what operators
 * need for themselves. The peaks are then read off, not guessed. On the CPU in
 * float32 it is checked against PyTorch's profiler (docs/explain.md); with
 * autocast and on CUDA it follows PyTorch's source; compiled, it is an
 * estimate of what the compiler fuses. */
#ifndef PL_EXPLAIN_NANOGPT_H
#define PL_EXPLAIN_NANOGPT_H

#include "explain/tape.h"

typedef enum pl_torch_dtype {
    PL_TORCH_FLOAT32,
    PL_TORCH_BFLOAT16, /* autocast */
    PL_TORCH_FLOAT16,  /* autocast and a loss scaler */
} pl_torch_dtype;

typedef enum pl_torch_device { PL_TORCH_CPU, PL_TORCH_CUDA } pl_torch_device;
typedef enum pl_torch_mode { PL_TORCH_EAGER, PL_TORCH_COMPILED } pl_torch_mode;

typedef enum pl_torch_attention {
    PL_TORCH_FLASH,  /* scaled_dot_product_attention */
    PL_TORCH_SCORES, /* nanoGPT's own, for a PyTorch before 2.0 */
} pl_torch_attention;

typedef enum pl_torch_biases {
    PL_TORCH_NO_BIASES,
    PL_TORCH_BIASES
} pl_torch_biases;

/* Dropout is on or off: how much of it changes no byte. */
typedef enum pl_torch_dropout {
    PL_TORCH_NO_DROPOUT,
    PL_TORCH_DROPOUT
} pl_torch_dropout;

/* Which of the blocks' activations are saved. */
typedef enum pl_torch_checkpoint {
    PL_TORCH_SAVE_ALL,
    PL_TORCH_SAVE_INPUTS, /* torch.utils.checkpoint around each block */
} pl_torch_checkpoint;

/* How long `logits` stays bound after model(X, Y) has returned. */
typedef enum pl_torch_logits {
    PL_TORCH_KEEP_LOGITS,     /* until the next: nanoGPT */
    PL_TORCH_DEL_EVAL_LOGITS, /* `del logits` in estimate_loss() */
    PL_TORCH_DEL_ALL_LOGITS,  /* and in the training loop, before backward */
} pl_torch_logits;

typedef struct pl_nanogpt_job {
    size_t B, T, C, L, H, V; /* T: block_size; H divides C */
    size_t eval_B, eval_T;   /* nanoGPT: B and T */
    size_t accumulation;
    pl_torch_dtype dtype; /* on the CPU nanoGPT computes in float32 */
    pl_torch_device device;
    pl_torch_mode mode;
    pl_torch_attention attention;
    pl_torch_biases biases;
    pl_torch_dropout dropout;
    pl_torch_checkpoint checkpoint;
    pl_torch_logits logits;
    pl_cache_kind allocator; /* of CUDA */
    size_t threads;          /* of the CPU: attention's scratch */
    size_t limit_bytes;      /* for tensors; 0: none */
} pl_nanogpt_job;

enum { PL_NANOGPT_SAVED_ROWS = 24 };

/* A tensor that autograd keeps of each layer. */
typedef struct pl_nanogpt_saved {
    const char *name, *used_by;
    size_t bytes;
} pl_nanogpt_saved;

typedef struct pl_nanogpt_result {
    pl_tape_peak peaks[PL_TAPE_COUNT];
    pl_tape_failure failures[PL_TAPE_COUNT];
    pl_nanogpt_saved saved[PL_NANOGPT_SAVED_ROWS]; /* of one layer */
    size_t saved_count;
    size_t parameters;
    int reserved_known; /* 0: too many layers to model the allocator */
} pl_nanogpt_result;

/* Replays two evaluations, two updates, two evaluations. `watch` may be NULL.
 * PL_E_MEMORY where the sizes leave any address space. */
PL_MUST_CHECK pl_status pl_nanogpt_replay(const pl_nanogpt_job *job,
                                          pl_nanogpt_result *result,
                                          pl_tape_watch *watch, void *context,
                                          pl_error *err);

/* The least memory in which each phase runs, fragmentation included: as `job`
 * says, but under limits that are tried out, to 1/256. What is live where the
 * allocator is not modelled. */
PL_MUST_CHECK pl_status pl_nanogpt_need(const pl_nanogpt_job *job,
                                        const pl_nanogpt_result *result,
                                        size_t need_bytes[PL_TAPE_COUNT],
                                        pl_error *err);

/* The first thing for which there was no room, or NULL. */
const pl_tape_failure *pl_nanogpt_failure(const pl_nanogpt_result *result);

/* The larger of the two kinds of update. */
const pl_tape_peak *pl_nanogpt_train_peak(const pl_nanogpt_result *result);

/* Multiply-adds of a forward and backward pass per token; *again: those of the
 * blocks' forward pass, which checkpointing repeats. */
double pl_nanogpt_work(const pl_nanogpt_job *job, double *again);

#endif
