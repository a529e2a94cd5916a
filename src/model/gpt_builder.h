/* gpt_builder.h: what the files that write step lists share. Private to
 * model/. */
#ifndef PL_MODEL_GPT_BUILDER_H
#define PL_MODEL_GPT_BUILDER_H

#include "model/gpt.h"

#include <stddef.h>

/* What a block may keep for its backward pass, besides its input x. The
 * statistics of a layernorm and of attention stay with what they belong to. */
typedef enum kept {
    KEEP_LN1 = 1,
    KEEP_QKV = 2,
    KEEP_ATT = 4,
    KEEP_MID = 8,
    KEEP_LN2 = 16,
    KEEP_FC = 32,
    KEEP_GELU = 64,
    KEEP_X = 128,
} kept;

/* One program being written. */
typedef struct builder {
    pl_gpt *gpt;
    pl_graph *graph;
    const pl_shape *s;
    pl_program_id program;
    size_t rows, T;      /* rows of a round, rows of a sequence */
    size_t row, chunk;   /* steps are written for `chunk` rows from `row` on;
                          * chunk 0: for all of them */
    unsigned keeps;      /* what is being written now is kept: bits of kept */
    unsigned flags;      /* of every step */
    double dropout;      /* 0 outside training */
    pl_buffer_id *cache; /* decoding: keys and values per layer, or NULL */
} builder;

/* The activations of one block; PL_NO_BUFFER: not there (any more). */
typedef struct block {
    pl_buffer_id x, ln1, stat1, qkv, att, lse, mid, ln2, stat2, fc, gelu;
} block;

/* ---- builder.c ---- */

/* A buffer "h.<layer>.<what>", or "<program>.<what>" if layer < 0. */
pl_buffer_id pl_build_buffer(builder *b, int layer, const char *what,
                             pl_class class, pl_dtype dtype, size_t rows,
                             size_t cols);
/* An activation, saved or transient as b->keeps says. Of all b->rows rows,
 * except in a chunk: there what isn't kept has only the chunk's. */
pl_buffer_id pl_build_activation(builder *b, int layer, const char *what,
                                 kept what_bit, pl_dtype dtype, size_t cols);

pl_buffer_id pl_build_weight(const builder *b, pl_param_kind kind, int layer);
/* A weight as products read it: its working copy, if there is one. */
pl_buffer_id pl_build_factor(const builder *b, pl_param_kind kind, int layer);
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

/* Scratch for a step of attention, an `op`; PL_NO_BUFFER where the device needs
 * none. */
pl_buffer_id pl_build_scratch(builder *b, int layer, pl_op op);

/* ---- gpt_forward.c: each stage makes its buffers and appends its steps ----
 */

pl_buffer_id pl_build_embed(builder *b, pl_buffer_id tokens);
void pl_build_ln1(builder *b, int layer, block *k);
void pl_build_qkv(builder *b, int layer, block *k);
void pl_build_att(builder *b, int layer, block *k);
void pl_build_mid(builder *b, int layer, block *k);
/* The MLP's stages may be written in chunks of rows: with b->row and b->chunk
 * set they make what isn't there yet, and append steps for those rows. */
void pl_build_ln2(builder *b, int layer, block *k);
void pl_build_fc(builder *b, int layer, block *k); /* and its GELU */
void pl_build_gelu(builder *b, int layer, block *k);
/* All of them; returns the block's output. */
pl_buffer_id pl_build_block(builder *b, int layer, pl_buffer_id x, block *k);
/* y = layernorm of x by ln_f, with its statistics. */
pl_buffer_id pl_build_lnf(builder *b, pl_buffer_id x, size_t rows,
                          pl_buffer_id *stats);

/* ---- gpt_backward.c ---- */

/* dx += the layernorm's gradient, or (PL_WRITE) is that; its weights' gradients
 * are added to. */
void pl_build_layernorm_backward(builder *b, int layer, pl_param_kind weight,
                                 pl_access how, pl_buffer_id dx,
                                 pl_buffer_id dy, pl_buffer_id x,
                                 pl_buffer_id stats);

/* Computes again what the level did not keep, then the block's gradients.
 * dx comes in as the gradient of the block's output and goes out as that of
 * its input. */
void pl_build_block_backward(builder *b, int layer, block *k, pl_buffer_id dx);

#endif
