/* optimizer.h: the contracts of the ops between the gradients of an update and
 * the next weights. Part of kernels.h, whose words are used here. */
#ifndef PL_KERNELS_OPTIMIZER_H
#define PL_KERNELS_OPTIMIZER_H

#include "kernels/storage.h"

#include <stddef.h>
#include <stdint.h>

/* ---- the norm of the gradients ---- */

/* Squares are summed over fixed blocks of this many elements, block after
 * block, each in double by 8 lanes (lane i over elements i, i+8, ...; then
 * lanes i and i+4, i+2, i+1). */
enum { PL_SUMSQ_BLOCK = 16384 };

/* partial[j] = sum of x^2 over block j of x[count]. Of a part of a matrix,
 * which has `cols` columns and lies in rows of `row` elements, the elements are
 * those of one row after the other; cols 0: they are contiguous. */
typedef struct pl_sumsq {
    double *partial; /* [ceil(count / PL_SUMSQ_BLOCK)] */
    const float *x;
    size_t count;
    size_t cols, row;
} pl_sumsq;

/* What AdamW multiplies the gradients with, from the squares of all of them,
 * which still carry the loss scale: PyTorch's clip_grad_norm_, whose factor
 * here also takes the loss scale off. In double, the sum in ascending order
 * from +0:
 *   norm   = sqrt(partial[0] + partial[1] + ...) / loss_scale
 *   factor = min(1, grad_clip / (norm + 1e-6)), or 1 if grad_clip is 0
 *   *grad_norm = norm and *clip = factor / loss_scale, each rounded once
 *   *skipped = 1 if norm isn't finite, else 0 */
typedef struct pl_clip {
    float *grad_norm, *clip;
    uint32_t *skipped;
    const double *partial;
    size_t count;
    double loss_scale;
    float grad_clip;
} pl_clip;

/* ---- AdamW ---- */

/* One AdamW step as PyTorch computes it, on g * *clip:
 *   w *= 1 - lr * decay;  m += (g - m) * (1 - beta1)
 *   v = v * beta2 + g * g * (1 - beta2)
 *   w -= lr / correction1 * m / (sqrt(v) / sqrt(correction2) + eps)
 * and leaves g zero for the next update, which is all that is left of it where
 * *skipped isn't 0. All arithmetic float32; the constants are rounded once.
 * Elements are independent.
 *
 * Weights kept as bfloat16, or moments in 8 bits, are float32 for the step and
 * rounded after it by stochastic rounding: up or down at random, with the
 * probability that makes the expected value right. So a small update still
 * moves a weight, and a slow mean still moves. The random word is
 * word[element % 4] of pl_philox(counter, key),
 *     key     = { seed, PL_RNG_ROUND }
 *     counter = { element / 4, tensor, what is rounded, step }
 * bfloat16: the upper half of the float32's bits + word >> 16, and then a zero
 * of its sign if it is below 2^-56, as all bfloat16 is (halves.h).
 *
 * A working copy of the weights, rounded to nearest, is written in the same
 * pass where one is kept.
 *
 * A call may cover a part of a tensor: `first` is the element that all pointers
 * stand at (scales: its block), a multiple of PL_QUANT_BLOCK. The parts'
 * results are those of the whole.
 *
 * 8 bits: blocks of PL_QUANT_BLOCK elements from the tensor's first on, each
 * with a scale, the largest magnitude. A code c stands for
 *     m       = sign(c) c^2 / 127^2 * scale,  c = -127 .. 127
 *     sqrt(v) =         c^2 / 255^2 * scale,  c = 0 .. 255, 0 only for v = 0
 * Squares, since magnitudes in a block differ by orders: the smallest steps
 * are 6e-5 and 1.5e-5 of the scale, the largest 1.6 % and 0.8 %. The root of v,
 * since that is what divides: it is never rounded to 0, where an update would
 * explode. With y = magnitude * (c_max^2 / scale) and c = floor(sqrt(y)), the
 * code is c + 1 if (word >> 8) * 2^-24 < (y - c^2) / (2c + 1), else c; at most
 * c_max. A scale below 1e-30 is 0, and so are its codes. */
typedef enum pl_rounded {
    PL_ROUNDED_WEIGHT,
    PL_ROUNDED_MEAN,
    PL_ROUNDED_SQUARE,
} pl_rounded;

enum { PL_QUANT_BLOCK = 256 };

typedef struct pl_adamw {
    float *w, *g, *m, *v;
    size_t first, count; /* first + count at most 2^34 */
    float keep;          /* 1 - lr * decay */
    float beta1_rest, beta2, beta2_rest;
    float step_size;       /* lr / correction1 */
    float root_correction; /* sqrt(correction2) */
    float eps;
    const float *clip;       /* pl_clip's; NULL: 1 */
    const uint32_t *skipped; /* likewise; NULL: 0 */
    /* where these are not NULL, they stand for w, and for m and v */
    uint16_t *w_bf16;
    int8_t *m_codes;
    uint8_t *v_codes;
    float *m_scales, *v_scales; /* [ceil(count / PL_QUANT_BLOCK)] */
    uint16_t *copy;             /* w as the products read it, or NULL */
    pl_storage copy_storage;    /* one of 16 bits */
    uint32_t seed, step, tensor;
} pl_adamw;

/* ---- Muon ---- */

/* Muon (docs/optimizers.md) replaces the update of a matrix by one with the
 * same singular vectors whose singular values are all about 1. What is computed
 * of a matrix, apart from the products of the iteration:
 *
 * Its one moment, and Nesterov's blend of it in place of the gradient. With
 * grad = g * *clip:
 *   m += (grad - m) * (1 - momentum)
 *   g = grad + (m - grad) * momentum
 * in float32, no operation fused, the constants rounded once. Where *skipped
 * isn't 0 m stays, and g becomes zero. A moment in 8 bits is kept as AdamW's
 * first one is, with the same chances. */
typedef struct pl_muon_moment {
    float *g, *m;
    size_t count;                  /* at most 2^34 */
    float momentum, momentum_rest; /* 1 - momentum */
    const float *clip;             /* pl_clip's; NULL: 1 */
    const uint32_t *skipped;       /* likewise; NULL: 0 */
    int8_t *m_codes;               /* where it isn't NULL it stands for m */
    float *m_scales;               /* [ceil(count / PL_QUANT_BLOCK)] */
    uint32_t seed, step, tensor;
} pl_muon_moment;

/* *factor = 1 / (sqrt(partial[0] + partial[1] + ...) + 1e-7), in double, the
 * sum in ascending order from +0, the result rounded once. */
typedef struct pl_muon_norm {
    float *factor;
    const double *partial;
    size_t count;
} pl_muon_norm;

/* y[r * y_row + c] = x[r * x_row + c * x_col] * scale * *factor, multiplied in
 * this order; factor NULL: without it. One of x's strides is 1. */
typedef struct pl_muon_part {
    void *y;
    const void *x;
    size_t rows, cols, y_row, x_row, x_col;
    float scale;
    const float *factor;
    pl_storage y_storage, x_storage;
} pl_muon_part;

/* b = linear * a + square * b, and + unit on the diagonal, for a and b of
 * [n, n]: with b = a a a polynomial of a. float32, no operation fused. */
typedef struct pl_muon_poly {
    void *b;
    const void *a;
    size_t n;
    float unit, linear, square;
    pl_storage storage; /* of both */
} pl_muon_poly;

/* w = w * keep - rate * g, then g = 0, which is all that is left of it where
 * *skipped isn't 0. Weights of 16 bits and copies are as AdamW's. */
typedef struct pl_muon_apply {
    float *w, *g;
    size_t count; /* at most 2^34 */
    float keep;   /* 1 - rate * decay */
    float rate;
    const uint32_t *skipped; /* pl_clip's; NULL: 0 */
    uint16_t *w_bf16;        /* where it isn't NULL it stands for w */
    uint16_t *copy;          /* w as the products read it, or NULL */
    pl_storage copy_storage; /* one of 16 bits */
    uint32_t seed, step, tensor;
} pl_muon_apply;

/* ---- DiLoCo's outer step ---- */

/* Where the workers of a run meet (docs/ranks.md): the mean of their weights
 * pulls those that all of them began with, the anchor, by Nesterov's momentum
 * as PyTorch's SGD has it. g is the sum of the workers' weights:
 *   d = anchor - g * share;  b = b * momentum + d
 *   w = anchor - rate * (d + momentum * b);  anchor = w;  g = 0
 * float32, no operation fused, the constants rounded once; share is one over
 * the number of workers, a power of two. Copies are as AdamW's. Nothing
 * overlaps, and elements are independent. */
typedef struct pl_outer {
    float *w, *g, *anchor, *b;
    size_t count;
    float share, momentum, rate;
    uint16_t *copy;          /* w as the products read it, or NULL */
    pl_storage copy_storage; /* one of 16 bits */
} pl_outer;

#endif
