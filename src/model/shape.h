/* shape.h: what a model is, as numbers. B T C H V L mean here and everywhere:
 * batch, sequence length, channels, heads, vocabulary, layers; D is the width
 * of a head and A = H * D that of attention (C, unless head_dim says else); KV
 * is the number of heads of keys and values, F the width of the MLP's middle.
 *
 * PL_SHAPE_TABLE is the one list of what can differ from model to model. The
 * config's keys, state.json, Hugging Face's config.json, the comparison with a
 * checkpoint and `inspect` all read it: a new field is a row, and a member of
 * pl_shape. */
#ifndef PL_MODEL_SHAPE_H
#define PL_MODEL_SHAPE_H

#include "config/keys.h"
#include "config/value.h"

#include <stddef.h>

typedef enum pl_bias { PL_BIAS_NONE, PL_BIAS_ALL } pl_bias;
typedef enum pl_activation { PL_ACT_GELU, PL_ACT_GELU_TANH } pl_activation;
typedef enum pl_norm { PL_NORM_LAYER, PL_NORM_RMS } pl_norm;
typedef enum pl_head { PL_HEAD_TIED, PL_HEAD_OWN } pl_head;
typedef enum pl_position { PL_POSITION_TABLE, PL_POSITION_ROTARY } pl_position;
typedef enum pl_mlp { PL_MLP_GELU, PL_MLP_SWIGLU, PL_MLP_RELU2 } pl_mlp;
typedef enum pl_qk_norm { PL_QK_NORM_NONE, PL_QK_NORM_RMS } pl_qk_norm;

/* Whose names and storage the weights have (params.h). All else that a family
 * is consists of the other fields. */
typedef enum pl_family {
    PL_FAMILY_GPT2,
    PL_FAMILY_LLAMA,
    PL_FAMILY_QWEN3,
} pl_family;

typedef struct pl_shape {
    size_t L, H, D, C, V, T;
    size_t KV; /* divides H */
    size_t F;
    size_t A; /* H * D */
    pl_bias bias;
    pl_norm norm;
    pl_activation activation;
    pl_head head; /* the classifier's matrix: the tokens', or one of its own */
    pl_family family;
    pl_position position;
    pl_mlp mlp;
    pl_qk_norm qk_norm;
    double norm_eps, rope_theta;
    double logit_softcap; /* 0: logits are as they are */
} pl_shape;

/* nanoGPT's vocabulary for GPT-2 tokens: 50257 padded to a multiple of 64. */
enum { PL_VOCAB_GPT2 = 50304 };

/* ---- the table ---- */

/* A SIZE is a whole number from 1 to the key's largest; a FLAG is true or
 * false; a CHOICE is a word; a REAL is a number in the key's range. */
typedef enum pl_shape_kind {
    PL_SHAPE_SIZE,
    PL_SHAPE_FLAG,
    PL_SHAPE_CHOICE,
    PL_SHAPE_REAL,
} pl_shape_kind;

/* What an absent entry of a file means, unless it is a value of the field. */
enum {
    PL_SHAPE_NEEDED = -1,  /* the file is wrong */
    PL_SHAPE_DERIVED = -2, /* it follows from others: pl_shape_complete, or
                            * whoever reads the file knows */
};
enum { PL_SHAPE_ANY = -1 };

#define PL_WORDS(...)                                                          \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

/* An entry of a file: its name, and what it means where there is none. Words
 * are those of the key unless the entry has its own, in the order of the
 * field's values: the first of several ("a|b") is written, and a value without
 * one ("", or behind the last) can't be said there. */
#define PL_AS(name, absent)                                                    \
    {                                                                          \
        name, { NULL }, absent                                                 \
    }
#define PL_AS_WORDS(name, absent, ...)                                         \
    {                                                                          \
        name, { __VA_ARGS__ }, absent                                          \
    }
/* No entry: all models of such files have this value; or none, since the field
 * means nothing there. */
#define PL_ALWAYS(value)  PL_AS(NULL, value)
#define PL_NOTHING(value) PL_AS("", value)

/* X(field of pl_shape, config key, kind,
 *   words:     of a FLAG and a CHOICE, in the order of the field's values: as
 *              the key has them
 *   absent:    what state.json means that has no such entry
 *   in_gpt2:   the entry in the config.json of Hugging Face's GPT-2, and of
 *              what is no model of theirs
 *   in_llama:  in that of their Llama
 *   in_qwen3:  in that of their Qwen3
 *   gpt2:      the only value that GPT-2's files can say, ANY, or DERIVED: the
 *              one that follows from others
 *   nanogpt:   the only value that nanoGPT computes, likewise) */
/* clang-format off */
#define PL_SHAPE_TABLE(X)                                                      \
X(L, n_layer, SIZE, PL_WORDS(NULL), PL_SHAPE_NEEDED,                           \
  PL_AS("n_layer", PL_SHAPE_NEEDED),                                           \
  PL_AS("num_hidden_layers", PL_SHAPE_NEEDED),                                 \
  PL_AS("num_hidden_layers", PL_SHAPE_NEEDED), PL_SHAPE_ANY, PL_SHAPE_ANY)     \
X(H, n_head, SIZE, PL_WORDS(NULL), PL_SHAPE_NEEDED,                            \
  PL_AS("n_head", PL_SHAPE_NEEDED),                                            \
  PL_AS("num_attention_heads", PL_SHAPE_NEEDED),                               \
  PL_AS("num_attention_heads", PL_SHAPE_NEEDED), PL_SHAPE_ANY, PL_SHAPE_ANY)   \
X(C, n_embd, SIZE, PL_WORDS(NULL), PL_SHAPE_NEEDED,                            \
  PL_AS("n_embd", PL_SHAPE_NEEDED),                                            \
  PL_AS("hidden_size", PL_SHAPE_NEEDED),                                       \
  PL_AS("hidden_size", PL_SHAPE_NEEDED), PL_SHAPE_ANY, PL_SHAPE_ANY)           \
X(D, head_dim, SIZE, PL_WORDS(NULL), PL_SHAPE_NEEDED,                          \
  PL_AS("head_dim", PL_SHAPE_DERIVED),                                         \
  PL_AS("head_dim", PL_SHAPE_DERIVED),                                         \
  PL_AS("head_dim", 128), PL_SHAPE_ANY, PL_SHAPE_ANY)                          \
X(T, block_size, SIZE, PL_WORDS(NULL), PL_SHAPE_NEEDED,                        \
  PL_AS("n_positions", PL_SHAPE_NEEDED),                                       \
  PL_AS("max_position_embeddings", 2048),                                      \
  PL_AS("max_position_embeddings", 32768), PL_SHAPE_ANY, PL_SHAPE_ANY)         \
X(V, vocab_size, SIZE, PL_WORDS(NULL), PL_SHAPE_NEEDED,                        \
  PL_AS("vocab_size", PL_SHAPE_NEEDED),                                        \
  PL_AS("vocab_size", PL_SHAPE_NEEDED),                                        \
  PL_AS("vocab_size", PL_SHAPE_NEEDED), PL_SHAPE_ANY, PL_SHAPE_ANY)            \
X(bias, bias, FLAG, PL_WORDS("False", "True"), PL_SHAPE_NEEDED,                \
  PL_AS("plimsoll_bias", PL_BIAS_ALL),                                         \
  PL_AS("attention_bias", PL_BIAS_NONE),                                       \
  PL_AS_WORDS("attention_bias", PL_BIAS_NONE, "False"),                        \
  PL_SHAPE_ANY, PL_SHAPE_ANY)                                                  \
X(head, tie_word_embeddings, FLAG, PL_WORDS("True", "False"), PL_HEAD_TIED,    \
  PL_AS("tie_word_embeddings", PL_HEAD_TIED),                                  \
  PL_AS("tie_word_embeddings", PL_HEAD_OWN),                                   \
  PL_AS("tie_word_embeddings", PL_HEAD_OWN), PL_SHAPE_ANY, PL_HEAD_TIED)       \
X(norm, norm, CHOICE, PL_WORDS("layernorm", "rmsnorm"), PL_NORM_LAYER,         \
  PL_AS("plimsoll_norm", PL_NORM_LAYER),                                       \
  PL_ALWAYS(PL_NORM_RMS), PL_ALWAYS(PL_NORM_RMS), PL_NORM_LAYER, PL_NORM_LAYER)\
X(activation, activation, CHOICE, PL_WORDS("gelu", "gelu_tanh"),               \
  PL_SHAPE_NEEDED,                                                             \
  PL_AS_WORDS("activation_function", PL_ACT_GELU_TANH, "gelu|gelu_python",     \
              "gelu_new|gelu_pytorch_tanh|gelu_fast"),                         \
  PL_NOTHING(PL_ACT_GELU), PL_NOTHING(PL_ACT_GELU), PL_SHAPE_ANY, PL_SHAPE_ANY)\
X(family, architecture, CHOICE, PL_WORDS("gpt2", "llama", "qwen3"),            \
  PL_FAMILY_GPT2, PL_AS("plimsoll_architecture", PL_FAMILY_GPT2),              \
  PL_ALWAYS(PL_FAMILY_LLAMA), PL_ALWAYS(PL_FAMILY_QWEN3),                      \
  PL_FAMILY_GPT2, PL_FAMILY_GPT2)                                              \
X(KV, n_kv_head, SIZE, PL_WORDS(NULL), PL_SHAPE_DERIVED,                       \
  PL_AS("plimsoll_n_kv_head", PL_SHAPE_DERIVED),                               \
  PL_AS("num_key_value_heads", PL_SHAPE_DERIVED),                              \
  PL_AS("num_key_value_heads", PL_SHAPE_NEEDED), PL_SHAPE_DERIVED,             \
  PL_SHAPE_DERIVED)                                                            \
X(position, position, CHOICE, PL_WORDS("learned", "rope"), PL_POSITION_TABLE,  \
  PL_AS("plimsoll_position", PL_POSITION_TABLE),                               \
  PL_ALWAYS(PL_POSITION_ROTARY), PL_ALWAYS(PL_POSITION_ROTARY),                \
  PL_POSITION_TABLE, PL_POSITION_TABLE)                                        \
X(rope_theta, rope_theta, REAL, PL_WORDS(NULL), 10000.0,                       \
  PL_AS("plimsoll_rope_theta", 10000.0), PL_AS("rope_theta", 10000.0),         \
  PL_AS("rope_theta", 10000.0), PL_SHAPE_ANY, PL_SHAPE_ANY)                    \
X(mlp, mlp, CHOICE, PL_WORDS("gelu", "swiglu", "relu2"), PL_MLP_GELU,          \
  PL_AS("plimsoll_mlp", PL_MLP_GELU),                                          \
  PL_AS_WORDS("hidden_act", PL_MLP_SWIGLU, "", "silu|swish"),                  \
  PL_AS_WORDS("hidden_act", PL_MLP_SWIGLU, "", "silu|swish"),                  \
  PL_MLP_GELU, PL_MLP_GELU)                                                    \
X(F, mlp_hidden, SIZE, PL_WORDS(NULL), PL_SHAPE_DERIVED,                       \
  PL_AS("plimsoll_mlp_hidden", PL_SHAPE_DERIVED),                              \
  PL_AS("intermediate_size", PL_SHAPE_NEEDED),                                 \
  PL_AS("intermediate_size", PL_SHAPE_NEEDED), PL_SHAPE_DERIVED,               \
  PL_SHAPE_DERIVED)                                                            \
X(qk_norm, qk_norm, FLAG, PL_WORDS("False", "True"), PL_QK_NORM_NONE,          \
  PL_AS("plimsoll_qk_norm", PL_QK_NORM_NONE),                                  \
  PL_ALWAYS(PL_QK_NORM_NONE), PL_ALWAYS(PL_QK_NORM_RMS),                       \
  PL_QK_NORM_NONE, PL_QK_NORM_NONE)                                            \
X(norm_eps, norm_eps, REAL, PL_WORDS(NULL), 1e-5,                              \
  PL_AS("layer_norm_epsilon", 1e-5), PL_AS("rms_norm_eps", 1e-6),              \
  PL_AS("rms_norm_eps", 1e-6), PL_SHAPE_ANY, 1e-5)                             \
X(logit_softcap, logit_softcap, REAL, PL_WORDS(NULL), 0.0,                     \
  PL_AS("plimsoll_logit_softcap", 0.0), PL_ALWAYS(0.0), PL_ALWAYS(0.0),        \
  0.0, 0.0)
/* clang-format on */

typedef enum pl_shape_field {
#define PL_SHAPE_ENUM(field, ...) PL_SHAPE_##field,
    PL_SHAPE_TABLE(PL_SHAPE_ENUM)
#undef PL_SHAPE_ENUM
        PL_SHAPE_FIELDS
} pl_shape_field;

/* The files that keep a shape. */
typedef enum pl_shape_file {
    PL_IN_STATE, /* our state.json */
    PL_IN_GPT2,  /* the config.json of Hugging Face's GPT-2 */
    PL_IN_LLAMA, /* ... of their Llama */
    PL_IN_QWEN3, /* ... of their Qwen3 */
    PL_SHAPE_FILES
} pl_shape_file;

enum { PL_SHAPE_MAX_WORDS = 4 };

typedef struct pl_shape_entry {
    const char *name;                      /* NULL: PL_ALWAYS; "": PL_NOTHING */
    const char *words[PL_SHAPE_MAX_WORDS]; /* several: "a|b" */
    double absent;
} pl_shape_entry;

typedef struct pl_shape_info {
    pl_key key;
    pl_shape_kind kind;
    const char *words[PL_SHAPE_MAX_WORDS]; /* up to the first NULL */
    pl_shape_entry in[PL_SHAPE_FILES];
    double gpt2, nanogpt;
} pl_shape_info;

const pl_shape_info *pl_shape_row(pl_shape_field field);
/* The field that a config key is; PL_SHAPE_FIELDS: it says nothing of a model.
 */
pl_shape_field pl_shape_find(pl_key key);

/* Any field as a number, to compare. */
double pl_shape_number(const pl_shape *shape, pl_shape_field field);
/* Of a SIZE, FLAG or CHOICE. */
size_t pl_shape_get(const pl_shape *shape, pl_shape_field field);
/* A is H * D: whoever sets one of these sets that too. Sizes and choices are
 * whole. */
void pl_shape_set(pl_shape *shape, pl_shape_field field, double value);

/* What follows from other fields: A, and KV and F where they are 0. */
void pl_shape_complete(pl_shape *shape);
/* What F is where nobody says it: 4 C; for SwiGLU, which has three matrices,
 * the multiple of 64 that is nearest to 8/3 C. */
size_t pl_shape_hidden(const pl_shape *shape);
/* NULL, or what no model can have of fields that are each in their range: a
 * text for the end of a message. For shapes that come from files. */
const char *pl_shape_wrong(const pl_shape *shape);
/* Whether D, KV or F is what follows from the others. */
int pl_shape_is_derived(const pl_shape *shape, pl_shape_field field);

/* The field as a value of its config key, and from one that the key accepts
 * (never None). */
pl_value pl_shape_value(const pl_shape *shape, pl_shape_field field);
void pl_shape_assign(pl_shape *shape, pl_shape_field field,
                     const pl_value *value);

/* The first field that GPT-2's files have no way to say; PL_SHAPE_FIELDS: it
 * is a GPT-2. Heads that are not n_embd / n_head wide are head_dim's. */
pl_shape_field pl_shape_not_gpt2(const pl_shape *shape);

/* The fields that the files of the shape's own family can't say, so that no
 * other program loads such a model, and how many there are; head_dim is the
 * last. */
size_t pl_shape_strangers(const pl_shape *shape,
                          pl_shape_field fields[PL_SHAPE_FIELDS]);
/* The first of them; PL_SHAPE_FIELDS: there is none. */
pl_shape_field pl_shape_stranger(const pl_shape *shape);
/* All of them, for a message: "mlp = 'relu2', qk_norm = True or head_dim = 40
 * (n_embd 768, n_head 12)". */
enum { PL_SHAPE_STRANGERS_BYTES = 1024 };
void pl_shape_strangers_text(const pl_shape *shape,
                             char text[PL_SHAPE_STRANGERS_BYTES]);

/* "GPT-2", "Llama", "Qwen3" */
const char *pl_shape_title(const pl_shape *shape);

/* The config.json of a family. */
pl_shape_file pl_shape_file_of(pl_family family);
/* What a file means that has no entry at all; what it needs stays. */
void pl_shape_set_absent(pl_shape *shape, pl_shape_file file);

/* ---- dimensions ---- */

/* The widths that tensors have, as a function of the shape s. */
#define PL_DIM_TABLE(X)                                                        \
    X(1, 1)                                                                    \
    X(V, s->V)                                                                 \
    X(T, s->T)                                                                 \
    X(C, s->C)                                                                 \
    X(H, s->H)                                                                 \
    X(A, s->A)                                                                 \
    X(D, s->D)                                                                 \
    X(KV, s->KV * s->D) /* keys, or values */                                  \
    X(QKV, s->A + 2 * s->KV * s->D)                                            \
    X(HEADS, s->H + s->KV) /* that qk_norm keeps a number of */                \
    X(MLP, s->F)                                                               \
    X(GATE, s->mlp == PL_MLP_SWIGLU ? s->F : 0)                                \
    X(FC, s->mlp == PL_MLP_SWIGLU ? 2 * s->F : s->F)                           \
    X(STATS, s->norm == PL_NORM_RMS ? 1 : 2) /* that a norm keeps of a row */

typedef enum pl_dim {
#define PL_DIM_ENUM(id, size) PL_DIM_##id,
    PL_DIM_TABLE(PL_DIM_ENUM)
#undef PL_DIM_ENUM
} pl_dim;

size_t pl_dim_size(const pl_shape *s, pl_dim dim);

#endif
