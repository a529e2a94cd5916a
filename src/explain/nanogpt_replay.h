/* nanogpt_replay.h: what the parts of the replay share. Private to explain/. */
#ifndef PL_EXPLAIN_NANOGPT_REPLAY_H
#define PL_EXPLAIN_NANOGPT_REPLAY_H

#include "explain/nanogpt.h"

typedef enum pl_replay_matrix {
    PL_REPLAY_QKV,
    PL_REPLAY_ATT,
    PL_REPLAY_FC,
    PL_REPLAY_MLP,
    PL_REPLAY_MATRICES,
} pl_replay_matrix;

enum { PL_REPLAY_NORMS = PL_REPLAY_MATRICES, PL_REPLAY_WEIGHTS };

/* What is held of one layer: for its backward pass, and of its weights. */
typedef struct pl_replay_layer {
    pl_taken x, ln1, stats1, qkv, q, k, v, mask, softmax, noise, dropped,
        scores16, lse, att, drop1, mid, ln2, stats2, fc, gelu, drop2;
    pl_taken copy[PL_REPLAY_MATRICES]; /* 16-bit */
    pl_taken grad[PL_REPLAY_WEIGHTS];
} pl_replay_layer;

/* What the backward pass needs outside the layers. */
typedef struct pl_replay_head {
    pl_taken drop, x, stats, ln, copy, logprobs, logprobs32, tokens;
} pl_replay_head;

typedef struct pl_replay {
    const pl_nanogpt_job *job;
    pl_tape tape;
    pl_nanogpt_result *result;
    pl_replay_layer *layers;
    pl_replay_head head;
    pl_taken kept;                       /* the training loop's `logits` */
    pl_taken grad_wte, grad_wpe, grad_f; /* f: the last norm */
} pl_replay;

/* One pass of the model: its rows, and whether autograd saves. */
typedef struct pl_replay_pass {
    pl_replay *r;
    size_t B, T;
    int training; /* dropout is on */
    int saves;
    int notes; /* writes result->saved */
} pl_replay_pass;

/* ---- sizes ---- */

static inline int pl_replay_autocast(const pl_nanogpt_job *job)
{
    return job->dtype != PL_TORCH_FLOAT32 && job->device == PL_TORCH_CUDA;
}

/* Bytes of what matrix products read and write. */
static inline size_t pl_replay_s(const pl_nanogpt_job *job)
{
    return pl_replay_autocast(job) ? 2 : 4;
}

static inline int pl_replay_fused(const pl_nanogpt_job *job)
{
    return job->mode == PL_TORCH_COMPILED;
}

static inline int pl_replay_drops(const pl_replay_pass *p)
{
    return p->training && p->r->job->dropout == PL_TORCH_DROPOUT;
}

/* q, k and v have to be copied for a batched product unless they are views
 * that it can read. */
static inline int pl_replay_clones(const pl_replay_pass *p)
{
    return p->B > 1 && p->r->job->H > 1;
}

/* SDPA on the CPU has no fast kernel with dropout. */
static inline int pl_replay_math(const pl_replay_pass *p)
{
    return p->r->job->attention == PL_TORCH_FLASH &&
           p->r->job->device == PL_TORCH_CPU && pl_replay_drops(p);
}

/* Elements of a layer's weight, its bias included; of both norms. */
size_t pl_replay_weight(const pl_nanogpt_job *job, int index);

/* ---- the parts ---- */

pl_taken pl_replay_take(const pl_replay_pass *p, pl_item item, const char *name,
                        size_t bytes);
void pl_replay_release(const pl_replay_pass *p, pl_taken *held);

/* The block's output, given its input, which the layer keeps if it saves. */
pl_taken pl_replay_block(const pl_replay_pass *p, pl_replay_layer *a,
                         pl_taken x);

/* Attention proper: from a->qkv to what the output projection reads. */
pl_taken pl_replay_attention(const pl_replay_pass *p, pl_replay_layer *a,
                             pl_taken *scores);
/* And back: the gradient of qkv. */
pl_taken pl_replay_attention_backward(const pl_replay_pass *p,
                                      pl_replay_layer *a, pl_taken *datt);

/* Gradients of a block; *dx is that of its output and becomes that of its
 * input. */
void pl_replay_block_backward(const pl_replay_pass *p, pl_replay_layer *a,
                              pl_taken *dx);

/* The gradient of a weight of `count` elements has been computed; it becomes
 * *grad or is added to it. */
void pl_replay_accumulate(const pl_replay_pass *p, pl_taken *grad, pl_taken dw);

/* Says that autograd keeps `held` for `used_by`. */
void pl_replay_note(const pl_replay_pass *p, const char *name,
                    const char *used_by, pl_taken held);

#endif
