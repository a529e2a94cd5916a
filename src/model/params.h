/* params.h: the one table of weights. Init, weight decay, gradients, moments,
 * checkpoint names and the printed count all read it. */
#ifndef PL_MODEL_PARAMS_H
#define PL_MODEL_PARAMS_H

#include "model/shape.h"

/* One row per kind of tensor. Its name, size and use are the row's; nothing
 * follows from the order of the rows but the numbers of slots.
 *
 * X(id,
 *   place:  ONCE in a model, in every LAYER, or the HEAD's, if that is its own
 *   rows, cols: PL_DIM_<that> of shape.h; vectors have one column. Matrices of
 *           a product are stored [in, out], as Hugging Face's GPT-2 stores
 *           them, so that a checkpoint is the arena's bytes
 *   init
 *   role:   PL_ROLE_<that>
 *   group:  PL_PARAM_<that>, the optimizer's
 *   bias:   the kind that is added to what this one computes, or PL_NO_PARAM
 *   present: whether a model of shape s has it
 *   hf:     its name in Hugging Face's GPT-2 and in our checkpoints
 *   gguf:   its name in llama.cpp's files
 *   llmc:   its place in llm.c's files, or -1) */
/* clang-format off */
#define PL_PARAM_TABLE(X)                                                      \
X(PL_WTE, ONCE, V, C, NORMAL, TABLE, DECAYED, PL_NO_PARAM, 1,                  \
  "wte.weight", "token_embd.weight", 0)                                        \
X(PL_WPE, ONCE, T, C, NORMAL, TABLE, DECAYED, PL_NO_PARAM, 1,                  \
  "wpe.weight", "position_embd.weight", 1)                                     \
X(PL_LN1_W, LAYER, C, 1, ONE, NORM, PLAIN, PL_LN1_B, 1,                        \
  "ln_1.weight", "attn_norm.weight", 2)                                        \
X(PL_LN1_B, LAYER, C, 1, ZERO, BIAS, PLAIN, PL_NO_PARAM, PL_HAS_SHIFT(s),      \
  "ln_1.bias", "attn_norm.bias", 3)                                            \
X(PL_QKV_W, LAYER, C, QKV, NORMAL, PRODUCT, DECAYED, PL_QKV_B, 1,              \
  "attn.c_attn.weight", "attn_qkv.weight", 4)                                  \
X(PL_QKV_B, LAYER, QKV, 1, ZERO, BIAS, PLAIN, PL_NO_PARAM, PL_HAS_BIAS(s),     \
  "attn.c_attn.bias", "attn_qkv.bias", 5)                                      \
X(PL_ATT_W, LAYER, A, C, RESIDUAL, PRODUCT, DECAYED, PL_ATT_B, 1,              \
  "attn.c_proj.weight", "attn_output.weight", 6)                               \
X(PL_ATT_B, LAYER, C, 1, ZERO, BIAS, PLAIN, PL_NO_PARAM, PL_HAS_BIAS(s),       \
  "attn.c_proj.bias", "attn_output.bias", 7)                                   \
X(PL_LN2_W, LAYER, C, 1, ONE, NORM, PLAIN, PL_LN2_B, 1,                        \
  "ln_2.weight", "ffn_norm.weight", 8)                                         \
X(PL_LN2_B, LAYER, C, 1, ZERO, BIAS, PLAIN, PL_NO_PARAM, PL_HAS_SHIFT(s),      \
  "ln_2.bias", "ffn_norm.bias", 9)                                             \
X(PL_FC_W, LAYER, C, MLP, NORMAL, PRODUCT, DECAYED, PL_FC_B, 1,                \
  "mlp.c_fc.weight", "ffn_up.weight", 10)                                      \
X(PL_FC_B, LAYER, MLP, 1, ZERO, BIAS, PLAIN, PL_NO_PARAM, PL_HAS_BIAS(s),      \
  "mlp.c_fc.bias", "ffn_up.bias", 11)                                          \
X(PL_MLP_W, LAYER, MLP, C, RESIDUAL, PRODUCT, DECAYED, PL_MLP_B, 1,            \
  "mlp.c_proj.weight", "ffn_down.weight", 12)                                  \
X(PL_MLP_B, LAYER, C, 1, ZERO, BIAS, PLAIN, PL_NO_PARAM, PL_HAS_BIAS(s),       \
  "mlp.c_proj.bias", "ffn_down.bias", 13)                                      \
X(PL_LNF_W, ONCE, C, 1, ONE, NORM, PLAIN, PL_LNF_B, 1,                         \
  "ln_f.weight", "output_norm.weight", 14)                                     \
X(PL_LNF_B, ONCE, C, 1, ZERO, BIAS, PLAIN, PL_NO_PARAM, PL_HAS_SHIFT(s),       \
  "ln_f.bias", "output_norm.bias", 15)                                         \
X(PL_HEAD_W, HEAD, V, C, NORMAL, TABLE, DECAYED, PL_NO_PARAM, 1,               \
  "lm_head.weight", "output.weight", -1)
/* clang-format on */

#define PL_HAS_BIAS(s) ((s)->bias == PL_BIAS_ALL)
/* A norm's bias: RMSNorm has none. */
#define PL_HAS_SHIFT(s) (PL_HAS_BIAS(s) && (s)->norm == PL_NORM_LAYER)

typedef enum pl_param_kind {
#define PL_PARAM_ENUM(id, ...) id,
    PL_PARAM_TABLE(PL_PARAM_ENUM)
#undef PL_PARAM_ENUM
        PL_PARAM_KINDS,
    PL_NO_PARAM = PL_PARAM_KINDS
} pl_param_kind;

/* What a kind is for. */
typedef enum pl_param_role {
    PL_ROLE_TABLE,   /* a row per token or position: [V or T, C] everywhere */
    PL_ROLE_PRODUCT, /* the matrix of a product, [in, out] here */
    PL_ROLE_NORM,    /* what a norm multiplies with */
    PL_ROLE_BIAS,
} pl_param_role;

/* What the optimizer does with it. */
typedef enum pl_param_group {
    PL_PARAM_PLAIN,   /* AdamW without weight decay */
    PL_PARAM_DECAYED, /* AdamW */
} pl_param_group;

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
    pl_param_role role;
    pl_param_group group;
    int is_bias; /* by its role */
    int is_2d;
} pl_param;

/* Slots: in the order of the table; kinds of a layer that stand together come
 * once per layer, layer after layer. Slots of absent kinds exist, so that a
 * number means the same in every model; but the head's only where it has
 * weights of its own. A slot's number is the key of its random numbers: a new
 * kind is a row at the end of the table, and moves no other. */
size_t pl_param_slots(const pl_shape *shape);
size_t pl_param_slot(const pl_shape *shape, pl_param_kind kind, int layer);
pl_param pl_param_at(const pl_shape *shape, size_t slot);
/* The kind that the classifier multiplies with: its own, or the tokens'. */
pl_param_kind pl_param_head(const pl_shape *shape);
/* Whether a product multiplies with it: not what is only looked up. */
int pl_param_is_factor(const pl_shape *shape, const pl_param *param);
/* The kind that is added to what `kind` computes, or PL_NO_PARAM. */
pl_param_kind pl_param_bias(pl_param_kind kind);
int pl_param_is_layered(pl_param_kind kind);

typedef struct pl_param_name {
    char text[PL_PARAM_NAME_BYTES];
} pl_param_name;

/* "transformer.h.3.attn.c_attn.weight" */
pl_param_name pl_param_name_of(const pl_param *param);
/* "blk.3.attn_qkv.weight" */
pl_param_name pl_param_gguf_name(const pl_param *param);
/* Which of llm.c's tensors it is, and which kind that is; -1 and PL_NO_PARAM:
 * none. */
int pl_param_llmc(pl_param_kind kind);
pl_param_kind pl_param_of_llmc(int at);

int pl_param_present(const pl_shape *shape, const pl_param *param);
/* Whether a file has it: where it isn't present, as zeros, since Hugging Face's
 * GPT-2 knows no model without biases. */
int pl_param_is_written(const pl_shape *shape, const pl_param *param);

/* All parameters, a tied head counted once; and without the position table, as
 * nanoGPT counts. */
size_t pl_param_count(const pl_shape *shape);
size_t pl_param_count_nanogpt(const pl_shape *shape);

/* Element i of a tensor at initialisation, for i in [first, first + count),
 * keyed by (seed, slot, i): the same whatever the order or slicing. */
void pl_param_init(const pl_shape *shape, size_t slot, unsigned seed,
                   size_t first, size_t count, float *out);

#endif
