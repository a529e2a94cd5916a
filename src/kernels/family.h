/* family.h: the contracts of the ops that blocks of Llama and Qwen3 have beside
 * GPT-2's. A part of kernels.h, whose words they are written in. */
#ifndef PL_KERNELS_FAMILY_H
#define PL_KERNELS_FAMILY_H

#include "kernels/storage.h"

#include <stddef.h>
#include <stdint.h>

/* ---- queries and keys, before attention ---- */

/* What is done to the H heads of queries and the KV heads of keys in rows of
 * qkv, which are (H + 2*KV)*D wide: queries, then keys, then values. Of each
 * head, with x its D elements:
 *   n = x, or with weights (queries' or keys'): rstd = 1 / sqrt(LANES(x^2) / D
 *       + eps), n = (x * rstd) * weight
 *   y = n, or with a table, which needs an even D: for i < D/2 and j = i + D/2,
 *       y_i = fma(n_i, c, -(n_j * s)),  y_j = fma(n_j, c, n_i * s)
 *       where c = table[p * D + i] and s = table[p * D + j] are the cosine and
 *       sine of position p's angle: p = first + r % T, first as in pl_embed.
 * n is never rounded to the storage. Values are copied. In place (y is x)
 * without weights: then values stay as they are. rstd[r * (H + KV) + head] is
 * for the way back; NULL without weights. One of weights and table is there. */
typedef struct pl_qk {
    void *y;
    const void *x;                    /* [rows, (H + 2*KV)*D] as y */
    float *rstd;                      /* [rows, H + KV], or NULL */
    const float *q_weight, *k_weight; /* [D] each, or NULL both */
    const float *table;               /* [positions, D], or NULL */
    size_t rows, T, H, KV, D;
    size_t position;
    const int32_t *positions; /* [rows / T], or NULL */
    float eps;
    pl_storage storage; /* of x and y */
} pl_qk;

/* The way back, in place: d holds the gradient of y and gets that of x. Row r
 * is at position r % T. Of each head of queries and keys:
 *   dn = d, or with a table: dn_i = fma(d_i, c, d_j * s),
 *        dn_j = fma(d_j, c, -(d_i * s))
 *   d  = dn, or with weights: h = x * rstd, g = dn * weight,
 *        d = (g - h * (LANES(g * h) / D)) * rstd
 * dn is never rounded. Values stay. */
typedef struct pl_qk_bwd {
    void *d;       /* [rows, (H + 2*KV)*D] */
    const void *x; /* likewise: what pl_qk read; NULL without weights */
    const float *rstd, *q_weight, *k_weight, *table;
    size_t rows, T, H, KV, D;
    pl_storage d_storage, x_storage;
} pl_qk_bwd;

/* The gradients of both weights, from what pl_qk_bwd will read:
 *   dq_weight[c] += CHAIN(r, head) dn * h over the heads of queries,
 *   dk_weight[c] likewise over those of keys,
 * rows in ascending order and in each its heads. It is apart since d is written
 * in place of what other threads still would have to read here. */
typedef struct pl_qk_dw {
    float *dq_weight, *dk_weight; /* [D] */
    const void *d, *x;
    const float *rstd, *table;
    size_t rows, T, H, KV, D;
    pl_storage d_storage, x_storage;
} pl_qk_dw;

/* ---- elementwise ---- */

/* SwiGLU: rows of x are a gate g and u, F elements each;
 *   s = 1 / (1 + exp(-g)),  y = (g * s) * u. */
typedef struct pl_glu {
    void *y;       /* [rows, F] */
    const void *x; /* [rows, 2*F] */
    size_t rows, F;
    pl_storage y_storage, x_storage;
} pl_glu;

/* The way back, in place: x becomes the gradient of the gate and that of u,
 *   dg = (dy * u) * (s * fma(g, 1 - s, 1)),  du = dy * (g * s). */
typedef struct pl_glu_bwd {
    void *x;        /* [rows, 2*F] */
    const void *dy; /* [rows, F] */
    size_t rows, F;
    pl_storage x_storage, dy_storage;
} pl_glu_bwd;

/* x[i] = cap * tanh(x[i] * (1 / cap)). */
typedef struct pl_softcap {
    float *x;
    size_t count;
    float cap;
} pl_softcap;

#endif
