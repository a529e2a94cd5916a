/* params.h: the one table of weights. Init, weight decay, gradients, moments,
 * checkpoint names and the printed count all read it. */
#ifndef PL_MODEL_PARAMS_H
#define PL_MODEL_PARAMS_H

#include "model/shape.h"

/* One row per kind of tensor. dims: what `rows` and `cols` are; vectors have
 * one column. Matrices of a product are stored [in, out], as Hugging Face's
 * GPT-2 stores them, so that a checkpoint is the arena's bytes.
 *   id, name, layer, rows, cols, init */
#define PL_PARAM_TABLE(X)                                                      \
    X(PL_WTE, "wte.weight", ONCE, V, C, NORMAL)                                \
    X(PL_WPE, "wpe.weight", ONCE, T, C, NORMAL)                                \
    X(PL_LN1_W, "ln_1.weight", LAYER, C, 1, ONE)                               \
    X(PL_LN1_B, "ln_1.bias", LAYER, C, 1, ZERO)                                \
    X(PL_QKV_W, "attn.c_attn.weight", LAYER, C, 3A, NORMAL)                    \
    X(PL_QKV_B, "attn.c_attn.bias", LAYER, 3A, 1, ZERO)                        \
    X(PL_ATT_W, "attn.c_proj.weight", LAYER, A, C, RESIDUAL)                   \
    X(PL_ATT_B, "attn.c_proj.bias", LAYER, C, 1, ZERO)                         \
    X(PL_LN2_W, "ln_2.weight", LAYER, C, 1, ONE)                               \
    X(PL_LN2_B, "ln_2.bias", LAYER, C, 1, ZERO)                                \
    X(PL_FC_W, "mlp.c_fc.weight", LAYER, C, 4C, NORMAL)                        \
    X(PL_FC_B, "mlp.c_fc.bias", LAYER, 4C, 1, ZERO)                            \
    X(PL_MLP_W, "mlp.c_proj.weight", LAYER, 4C, C, RESIDUAL)                   \
    X(PL_MLP_B, "mlp.c_proj.bias", LAYER, C, 1, ZERO)                          \
    X(PL_LNF_W, "ln_f.weight", ONCE, C, 1, ONE)                                \
    X(PL_LNF_B, "ln_f.bias", ONCE, C, 1, ZERO)                                 \
    X(PL_HEAD_W, "lm_head.weight", HEAD, V, C, NORMAL)

typedef enum pl_param_kind {
#define PL_PARAM_ENUM(id, name, layer, rows, cols, init) id,
    PL_PARAM_TABLE(PL_PARAM_ENUM)
#undef PL_PARAM_ENUM
        PL_PARAM_KINDS
} pl_param_kind;

/* N(0, 0.02), the same divided by sqrt(2 L), ones, zeros. */
typedef enum pl_init {
    PL_INIT_NORMAL,
    PL_INIT_RESIDUAL,
    PL_INIT_ONE,
    PL_INIT_ZERO
} pl_init;

enum { PL_PARAM_NAME_BYTES = 64 };

typedef struct pl_param {
    pl_param_kind kind;
    int layer; /* -1: outside the blocks */
    size_t rows, cols;
    pl_init init;
    int is_bias; /* absent from a model without biases */
    int is_2d;   /* weight decay applies */
} pl_param;

/* Slots: kinds outside the blocks once, the others once per layer, in the
 * order of the table with the blocks in the middle. Slots of absent biases
 * exist, so that an index means the same in every model; the last one, of the
 * head, only where the head has weights of its own. */
size_t pl_param_slots(const pl_shape *shape);
size_t pl_param_slot(const pl_shape *shape, pl_param_kind kind, int layer);
pl_param pl_param_at(const pl_shape *shape, size_t slot);
/* The kind that the classifier multiplies with: its own, or the tokens'. */
pl_param_kind pl_param_head(const pl_shape *shape);
/* "transformer.h.3.attn.c_attn.weight" */
typedef struct pl_param_name {
    char text[PL_PARAM_NAME_BYTES];
} pl_param_name;

pl_param_name pl_param_name_of(const pl_param *param);
int pl_param_present(const pl_shape *shape, const pl_param *param);

/* All parameters, a tied head counted once; and without the position table, as
 * nanoGPT counts. */
size_t pl_param_count(const pl_shape *shape);
size_t pl_param_count_nanogpt(const pl_shape *shape);

/* Element i of a tensor at initialisation, for i in [first, first + count),
 * keyed by (seed, slot, i): the same whatever the order or slicing. */
void pl_param_init(const pl_shape *shape, size_t slot, unsigned seed,
                   size_t first, size_t count, float *out);

#endif
