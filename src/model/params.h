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
 *           a product are in, out. They are stored as Hugging Face stores them,
 *           so that a checkpoint is the arena's bytes: [in, out] in the family
 *           GPT-2, [out, in] in Llama and Qwen3
 *   init
 *   role:   PL_ROLE_<that>
 *   group:  PL_PARAM_<that>, the optimizer's
 *   bias:   the kind that is added to what this one computes, or PL_NO_PARAM
 *   present: whether a model of shape s has it
 *   hf:     its name in Hugging Face's GPT-2 and in our checkpoints of that
 *           family
 *   llama:  its name in their Llama and Qwen3, and in our checkpoints of these
 *           families. What they keep as several tensors is one here, and its
 *           name ours; PL_PART_TABLE has theirs
 *   gguf:   its name in llama.cpp's files
 *   llmc:   its place in llm.c's files, or -1)
 *
 * The names are those of the family, whatever else is set: a deviating model
 * has names that fit into it, of which other programs know nothing. */
/* clang-format off */
#define PL_PARAM_TABLE(X)                                                      \
X(PL_WTE, ONCE, V, C, NORMAL, TABLE, DECAYED, PL_NO_PARAM, 1,                  \
  "wte.weight", "embed_tokens.weight",                                         \
  "token_embd.weight", 0)                                                      \
X(PL_WPE, ONCE, T, C, NORMAL, TABLE, DECAYED, PL_NO_PARAM, PL_HAS_PLACES(s),   \
  "wpe.weight", "embed_positions.weight",                                      \
  "position_embd.weight", 1)                                                   \
X(PL_LN1_W, LAYER, C, 1, ONE, NORM, PLAIN, PL_LN1_B, 1,                        \
  "ln_1.weight", "input_layernorm.weight",                                     \
  "attn_norm.weight", 2)                                                       \
X(PL_LN1_B, LAYER, C, 1, ZERO, BIAS, PLAIN, PL_NO_PARAM, PL_HAS_SHIFT(s),      \
  "ln_1.bias", "input_layernorm.bias",                                         \
  "attn_norm.bias", 3)                                                         \
X(PL_QKV_W, LAYER, C, QKV, NORMAL, PRODUCT, DECAYED, PL_QKV_B, 1,              \
  "attn.c_attn.weight", "self_attn.qkv_proj.weight",                           \
  "attn_qkv.weight", 4)                                                        \
X(PL_QKV_B, LAYER, QKV, 1, ZERO, BIAS, PLAIN, PL_NO_PARAM, PL_HAS_BIAS(s),     \
  "attn.c_attn.bias", "self_attn.qkv_proj.bias",                               \
  "attn_qkv.bias", 5)                                                          \
X(PL_ATT_W, LAYER, A, C, RESIDUAL, PRODUCT, DECAYED, PL_ATT_B, 1,              \
  "attn.c_proj.weight", "self_attn.o_proj.weight",                             \
  "attn_output.weight", 6)                                                     \
X(PL_ATT_B, LAYER, C, 1, ZERO, BIAS, PLAIN, PL_NO_PARAM, PL_HAS_BIAS(s),       \
  "attn.c_proj.bias", "self_attn.o_proj.bias",                                 \
  "attn_output.bias", 7)                                                       \
X(PL_LN2_W, LAYER, C, 1, ONE, NORM, PLAIN, PL_LN2_B, 1,                        \
  "ln_2.weight", "post_attention_layernorm.weight",                            \
  "ffn_norm.weight", 8)                                                        \
X(PL_LN2_B, LAYER, C, 1, ZERO, BIAS, PLAIN, PL_NO_PARAM, PL_HAS_SHIFT(s),      \
  "ln_2.bias", "post_attention_layernorm.bias",                                \
  "ffn_norm.bias", 9)                                                          \
X(PL_FC_W, LAYER, C, FC, NORMAL, PRODUCT, DECAYED, PL_FC_B, 1,                 \
  "mlp.c_fc.weight", "mlp.gate_up_proj.weight",                                \
  "ffn_up.weight", 10)                                                         \
X(PL_FC_B, LAYER, FC, 1, ZERO, BIAS, PLAIN, PL_NO_PARAM, PL_HAS_BIAS(s),       \
  "mlp.c_fc.bias", "mlp.gate_up_proj.bias",                                    \
  "ffn_up.bias", 11)                                                           \
X(PL_MLP_W, LAYER, MLP, C, RESIDUAL, PRODUCT, DECAYED, PL_MLP_B, 1,            \
  "mlp.c_proj.weight", "mlp.down_proj.weight",                                 \
  "ffn_down.weight", 12)                                                       \
X(PL_MLP_B, LAYER, C, 1, ZERO, BIAS, PLAIN, PL_NO_PARAM, PL_HAS_BIAS(s),       \
  "mlp.c_proj.bias", "mlp.down_proj.bias",                                     \
  "ffn_down.bias", 13)                                                         \
X(PL_LNF_W, ONCE, C, 1, ONE, NORM, PLAIN, PL_LNF_B, 1,                         \
  "ln_f.weight", "norm.weight",                                                \
  "output_norm.weight", 14)                                                    \
X(PL_LNF_B, ONCE, C, 1, ZERO, BIAS, PLAIN, PL_NO_PARAM, PL_HAS_SHIFT(s),       \
  "ln_f.bias", "norm.bias",                                                    \
  "output_norm.bias", 15)                                                      \
X(PL_HEAD_W, HEAD, V, C, NORMAL, TABLE, DECAYED, PL_NO_PARAM, 1,               \
  "lm_head.weight", "lm_head.weight",                                          \
  "output.weight", -1)                                                         \
X(PL_QNORM_W, LAYER, D, 1, ONE, NORM, PLAIN, PL_NO_PARAM, PL_HAS_QK_NORM(s),   \
  "attn.q_norm.weight", "self_attn.q_norm.weight",                             \
  "attn_q_norm.weight", -1)                                                    \
X(PL_KNORM_W, LAYER, D, 1, ONE, NORM, PLAIN, PL_NO_PARAM, PL_HAS_QK_NORM(s),   \
  "attn.k_norm.weight", "self_attn.k_norm.weight",                             \
  "attn_k_norm.weight", -1)
/* clang-format on */

#define PL_HAS_BIAS(s)    ((s)->bias == PL_BIAS_ALL)
#define PL_HAS_PLACES(s)  ((s)->position == PL_POSITION_TABLE)
#define PL_HAS_QK_NORM(s) ((s)->qk_norm == PL_QK_NORM_RMS)
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
    PL_ROLE_PRODUCT, /* the matrix of a product */
    PL_ROLE_NORM,    /* what a norm multiplies with */
    PL_ROLE_BIAS,
} pl_param_role;

/* How a family stores the matrix of a product. */
typedef enum pl_param_layout {
    PL_LAYOUT_IN_OUT, /* [in, out], as a Conv1D of Hugging Face's GPT-2 */
    PL_LAYOUT_OUT_IN, /* [out, in], as a Linear */
} pl_param_layout;

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

typedef struct pl_param_name {
    char text[PL_PARAM_NAME_BYTES];
} pl_param_name;

typedef struct pl_param {
    pl_param_kind kind;
    int layer; /* -1: outside the blocks */
    pl_family family;
    size_t rows, cols;
    size_t in, out;         /* of a product: what it reads and makes; else 0 */
    pl_param_layout layout; /* of a product */
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

/* ---- parts ---- */

/* A kind that other programs keep as several tensors, one per part: queries,
 * keys and values; the gate of SwiGLU and what it is multiplied with. A part is
 * a run of outputs: of rows where the layout is [out, in], of columns where it
 * is [in, out], of elements of a bias.
 *
 * X(kind, size: PL_DIM_<that>, 0 where a model doesn't have it; rotated: 1 if
 *   positions rotate its heads; llama: its name in Hugging Face's Llama and
 *   Qwen3; gguf: in llama.cpp's files of these) */
/* clang-format off */
#define PL_PART_TABLE(X)                                                       \
X(PL_QKV_W, A, 1, "self_attn.q_proj.weight", "attn_q.weight")                  \
X(PL_QKV_W, KV, 1, "self_attn.k_proj.weight", "attn_k.weight")                 \
X(PL_QKV_W, KV, 0, "self_attn.v_proj.weight", "attn_v.weight")                 \
X(PL_QKV_B, A, 1, "self_attn.q_proj.bias", "attn_q.bias")                      \
X(PL_QKV_B, KV, 1, "self_attn.k_proj.bias", "attn_k.bias")                     \
X(PL_QKV_B, KV, 0, "self_attn.v_proj.bias", "attn_v.bias")                     \
X(PL_FC_W, GATE, 0, "mlp.gate_proj.weight", "ffn_gate.weight")                 \
X(PL_FC_W, MLP, 0, "mlp.up_proj.weight", "ffn_up.weight")                      \
X(PL_FC_B, GATE, 0, "mlp.gate_proj.bias", "ffn_gate.bias")                     \
X(PL_FC_B, MLP, 0, "mlp.up_proj.bias", "ffn_up.bias")
/* clang-format on */

enum { PL_PARAM_MAX_PARTS = 3 };

typedef struct pl_param_part {
    size_t first, count; /* of the outputs */
    int row;             /* of the table; -1: the kind has no parts */
} pl_param_part;

/* How many parts a tensor has, 1 at least, and which. The optimizer may treat
 * them apart in every family. */
size_t pl_param_parts(const pl_shape *shape, const pl_param *param);
pl_param_part pl_param_part_at(const pl_shape *shape, const pl_param *param,
                               size_t part);

/* How many tensors of files it is: its parts, where the family's files have
 * them apart, and they are contiguous in ours then. */
size_t pl_param_pieces(const pl_shape *shape, const pl_param *param);
/* Of such a tensor: its elements in ours are [first, first + rows * cols). */
typedef struct pl_param_piece {
    pl_param_name name, gguf;
    size_t first, rows, cols;
    int rotated; /* queries or keys: positions rotate their heads */
} pl_param_piece;
pl_param_piece pl_param_piece_at(const pl_shape *shape, const pl_param *param,
                                 size_t piece);

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
