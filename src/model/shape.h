/* shape.h: what a model is, as numbers. B T C H V L mean here and everywhere:
 * batch, sequence length, channels, heads, vocabulary, layers; D is the width
 * of a head and A = H * D that of attention (C, unless head_dim says else). */
#ifndef PL_MODEL_SHAPE_H
#define PL_MODEL_SHAPE_H

#include <stddef.h>

typedef enum pl_bias { PL_BIAS_NONE, PL_BIAS_ALL } pl_bias;
typedef enum pl_activation { PL_ACT_GELU, PL_ACT_GELU_TANH } pl_activation;

typedef enum pl_head { PL_HEAD_TIED, PL_HEAD_OWN } pl_head;

typedef struct pl_shape {
    size_t L, H, D, C, V, T;
    size_t A; /* H * D */
    pl_bias bias;
    pl_activation activation;
    pl_head head; /* the classifier's matrix: the tokens', or one of its own */
} pl_shape;

/* nanoGPT's vocabulary for GPT-2 tokens: 50257 padded to a multiple of 64. */
enum { PL_VOCAB_GPT2 = 50304 };

#endif
