/* gpt_builder.h: what the files that write step lists share. Private to
 * model/. */
#ifndef PL_MODEL_GPT_BUILDER_H
#define PL_MODEL_GPT_BUILDER_H

#include "model/gpt.h"

#include <stddef.h>

/* ---- the block ---- */

/* A block is a row of stages. Forward they run in order; backward in the
 * opposite order, each after those stages have been computed again whose output
 * it needs and whose level didn't keep it.
 *
 * X(id, functions: pl_build_<that> and pl_build_<that>_backward
 *   branch: that its output is added to the residual stream with
 *   reads:  the stages whose output it reads
 *   levels: of checkpointing that keep its output: bits
 *   needs:  the stages whose output its backward pass reads
 *   gradient, dim: the name and width of what its backward pass makes; NULL:
 *           it adds to the residual stream's, or is part of another's) */
/* clang-format off */
#define PL_STAGE_TABLE(X)                                                      \
X(NORM1, norm1, ATTENTION, 0, AT(0), BIT(NORM1), NULL, 1)                      \
X(QKV, qkv, ATTENTION, BIT(NORM1), AT(0) | AT(1) | AT(2), BIT(NORM1),          \
  "dln1", C)                                                                   \
X(QK, qk, ATTENTION, BIT(QKV), AT(0), BIT(QKV) | BIT(QK), NULL, 1)             \
X(ATT, att, ATTENTION, BIT(QK), AT(0) | AT(1) | AT(2),                         \
  BIT(QKV) | BIT(QK) | BIT(ATT), "dqkv", QKV)                                  \
X(MID, mid, ATTENTION, BIT(ATT), AT(0) | AT(1) | AT(2), BIT(ATT), "datt", A)   \
X(NORM2, norm2, MLP, BIT(MID), AT(0), BIT(NORM2), NULL, 1)                     \
X(FC, fc, MLP, BIT(NORM2), AT(0) | AT(1), BIT(NORM2), "dln2", C)               \
X(GELU, gelu, MLP, BIT(FC), AT(0), 0, NULL, 1)                                 \
X(OUT, out, MLP, BIT(GELU) | BIT(MID), AT(0) | AT(1) | AT(2) | AT(3),          \
  BIT(FC) | BIT(GELU), "dfc", MLP)

/* What stages make. X(id, name, stage, storage: the layout's dtype or F32, how
 * wide a row is: PL_DIM_<that>) */
#define PL_ACT_TABLE(X)                                                        \
X(LN1, "ln1", NORM1, DTYPE, C)                                                 \
X(STAT1, "ln1.stats", NORM1, F32, STATS)                                       \
X(QKV, "qkv", QKV, DTYPE, QKV)                                                 \
X(QK, "qk", QK, DTYPE, QKV)                                                    \
X(ROOTS, "qk.rstd", QK, F32, HEADS)                                            \
X(ATT, "att", ATT, DTYPE, A)                                                   \
X(LSE, "att.lse", ATT, F32, H)                                                 \
X(MID, "mid", MID, F32, C)                                                     \
X(LN2, "ln2", NORM2, DTYPE, C)                                                 \
X(STAT2, "ln2.stats", NORM2, F32, STATS)                                       \
X(FC, "fc", FC, DTYPE, FC)                                                     \
X(GELU, "gelu", GELU, DTYPE, MLP)                                              \
X(OUT, "out", OUT, F32, C)
/* clang-format on */

typedef enum stage {
#define STAGE_ENUM(id, ...) STAGE_##id,
    PL_STAGE_TABLE(STAGE_ENUM)
#undef STAGE_ENUM
        STAGES
} stage;

typedef enum act {
#define ACT_ENUM(id, ...) ACT_##id,
    PL_ACT_TABLE(ACT_ENUM)
#undef ACT_ENUM
        ACT_X, /* the block's input: kept whatever the level */
    ACTS
} act;

/* One program being written. */
typedef struct builder {
    pl_gpt *gpt;
    pl_graph *graph;
    const pl_shape *s;
    pl_program_id program;
    size_t rows, T;         /* rows of a round, rows of a sequence */
    size_t row, chunk;      /* steps are written for `chunk` rows from `row` on;
                             * chunk 0: for all of them */
    unsigned keeps;         /* stages whose output is kept: bits 1 << stage */
    int again;              /* what wasn't kept is being computed again */
    unsigned flags;         /* of every step */
    double dropout;         /* 0 outside training */
    pl_buffer_id *cache;    /* decoding: keys and values per layer, or NULL */
    pl_buffer_id positions; /* serving: where each sequence's rows begin, else
                             * PL_NO_BUFFER */
} builder;

/* The activations of one block; PL_NO_BUFFER: not there (any more). */
typedef struct block {
    pl_buffer_id act[ACTS];
    unsigned have; /* stages whose output is there for the present rows: bits */
} block;

/* The gradients on their way through a block. */
typedef struct flow {
    pl_buffer_id dx;        /* of the residual stream: read and added to */
    pl_buffer_id dy;        /* of what the stage made; then of what it read */
    pl_buffer_id d[STAGES]; /* what each stage makes, once it is there */
} flow;

/* ---- gpt_builder.c ---- */

/* A buffer "<program>.h.<layer>.<what>", or "<program>.<what>" if layer < 0. */
pl_buffer_id pl_build_buffer(builder *b, int layer, const char *what,
                             pl_class class, pl_dtype dtype, size_t rows,
                             size_t cols);
/* What `from` makes, saved or transient as b->keeps says. Of all b->rows rows,
 * except in a chunk: there what isn't kept has only the chunk's. */
pl_buffer_id pl_build_activation(builder *b, int layer, const char *what,
                                 stage from, pl_dtype dtype, size_t cols);

/* PL_NO_BUFFER of PL_NO_PARAM, and of what the model doesn't have. */
pl_buffer_id pl_build_weight(const builder *b, pl_param_kind kind, int layer);
/* A weight as the operand of a product: its working copy, if there is one. */
pl_buffer_id pl_build_operand(const builder *b, pl_param_kind kind, int layer);
pl_buffer_id pl_build_gradient(const builder *b, pl_param_kind kind, int layer);

/* Rows of a chunk where there should be `most` at most (0: any number). */
size_t pl_build_chunk(const builder *b, size_t most);
/* Sets b->chunk for the MLP of this round, where chunks are worth it. */
void pl_build_begin_chunks(builder *b);
/* The next chunk; 0 after the last. */
int pl_build_next_chunk(builder *b);

/* An argument that has rows: the step sees those that it is written for. */
void pl_build_rows(const builder *b, pl_step *step, int arg,
                   pl_buffer_id buffer);

/* Appends a step with the builder's rows, T and flags, as far as its op has
 * them. */
pl_step *pl_build_step(builder *b, pl_op op, int layer);
/* The same, with a mask keyed by `site` (a pl_dropout_site). */
pl_step *pl_build_dropped(builder *b, pl_op op, int layer, unsigned site);

/* dw += x^T dy and, with biases, db += sum of dy. */
void pl_build_matmul_gradients(builder *b, int layer, pl_param_kind weight,
                               pl_buffer_id x, pl_buffer_id dy);

/* Scratch for a step of attention, an `op` that writes `result`; PL_NO_BUFFER
 * where the device needs none. */
pl_buffer_id pl_build_scratch(builder *b, int layer, pl_op op,
                              pl_buffer_id result);

/* What the device wants beside a product whose constants are set: argument
 * `arg`, where `operand` is the one that pl_device_scratch asks for. */
void pl_build_product_scratch(builder *b, int layer, pl_step *step, int arg,
                              pl_buffer_id operand);

/* ---- gpt_block.c: what the tables say ---- */

/* The stages whose output a level keeps: bits. */
unsigned pl_build_keeps(unsigned level);
/* The buffer of an activation, made where it isn't there yet. */
pl_buffer_id pl_build_act(builder *b, int layer, block *k, act id);
/* Likewise of the gradient that a stage makes. */
pl_buffer_id pl_build_flow(builder *b, int layer, flow *g, stage id);
/* All stages; returns the block's output. */
pl_buffer_id pl_build_block(builder *b, int layer, pl_buffer_id x, block *k);
/* What its level didn't keep is not there any more. */
void pl_build_forget(block *k, unsigned keeps);
/* Computes again what the level did not keep, then the block's gradients.
 * dx comes in as the gradient of the block's output and goes out as that of
 * its input. */
void pl_build_block_backward(builder *b, int layer, block *k, pl_buffer_id dx);

/* ---- gpt_forward.c, gpt_backward.c: the stages ---- */

/* A stage makes its buffers and appends its steps: for b->chunk rows from
 * b->row on, where that is set. */
#define STAGE_FUNCTIONS(id, name, ...)                                         \
    void pl_build_##name(builder *b, int layer, block *k);                     \
    void pl_build_##name##_backward(builder *b, int layer, block *k, flow *g);
PL_STAGE_TABLE(STAGE_FUNCTIONS)
#undef STAGE_FUNCTIONS

pl_buffer_id pl_build_embed(builder *b, pl_buffer_id tokens);
/* Logits that tokens are chosen by, capped where the model caps them: their
 * b->rows rows. In training and evaluation the loss does it. */
void pl_build_softcap(builder *b, pl_buffer_id logits);
/* y = the norm of x by ln_f, with its statistics. */
pl_buffer_id pl_build_lnf(builder *b, pl_buffer_id x, size_t rows,
                          pl_buffer_id *stats);

/* ---- gpt_heads.c ---- */

/* Rotates the queries and keys of qkv in place, where the model rotates and
 * doesn't normalise them first. */
void pl_build_rotation(builder *b, int layer, pl_buffer_id qkv);
/* What attention reads: qkv, or what qk_norm made of it. */
pl_buffer_id pl_build_heads(const builder *b, const block *k);
/* Constants of a step that knows heads. */
void pl_build_head_sizes(const builder *b, pl_step *step);
/* dqkv, the gradient of what attention read, becomes that of the product. */
void pl_build_heads_backward(builder *b, int layer, const block *k,
                             pl_buffer_id dqkv);

/* ---- gpt_serve.c ---- */

/* Decoding and scoring of several sequences. */
void pl_build_serve(builder *b);

/* ---- gpt_groups.c ---- */

/* The program that adds the groups of an update, and what it keeps of them. */
void pl_build_groups(builder *b);

/* ---- gpt_update.c ---- */

/* Whether Muon updates it. */
int pl_build_is_muon(const builder *b, const pl_param *param);
/* The program that turns gradients into the next weights. */
void pl_build_update(builder *b);
void pl_build_sync(builder *b);

/* ---- gpt_norm.c ---- */

/* y = the norm of x by `weight` and its bias; stats for the way back. The norms
 * of queries and keys are gpt_heads.c's. */
void pl_build_norm(builder *b, int layer, pl_param_kind weight, pl_buffer_id y,
                   pl_buffer_id stats, pl_buffer_id x);
/* dx += the norm's gradient, or (PL_WRITE) is that; its weights' gradients are
 * added to. */
void pl_build_norm_backward(builder *b, int layer, pl_param_kind weight,
                            pl_access how, pl_buffer_id dx, pl_buffer_id dy,
                            pl_buffer_id x, pl_buffer_id stats);

#endif
