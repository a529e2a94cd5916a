/* ops.h: the signatures of all ops, as data.
 *
 * An op is known by its row of PL_OP_TABLE and by its list of arguments,
 * PL_ARGS_<id>. All else is generated from these: the numbers by which builder
 * and devices name arguments (PL_ARG_MATMUL_W), the checks of pl_graph_finish,
 * the cost of a step, what `plan --steps` prints.
 *
 * Owns: the tables. Doesn't know what an op computes: kernels.h does. */
#ifndef PL_PLAN_OPS_H
#define PL_PLAN_OPS_H

#include "plan/tensor.h"

/* What a step does with an argument. A signature may allow several. */
typedef enum pl_access {
    PL_READ = 1,
    PL_WRITE = 2,   /* whole, or in the rows that it covers */
    PL_UPDATE = 4,  /* read and written */
    PL_SCRATCH = 8, /* of this step only */
} pl_access;

/* Whether an argument may be PL_NO_BUFFER. */
typedef enum pl_need { PL_NEEDED, PL_OPTIONAL } pl_need;

/* The constants of a step. A step of an op that uses one has it, and it is not
 * 0; but FIRST, TENSOR, DROPOUT and CAP may be, and EPS where there is no norm
 * in the step. What an op doesn't use is 0. */
enum {
    PL_ROWS = 1, /* rows that the step covers, or elements of a tensor */
    PL_COLS = 2,
    PL_INNER = 4, /* a product's sum; in attention, the width of a head */
    PL_T = 8,     /* rows of one sequence */
    PL_HEADS = 16,
    PL_FIRST = 32,    /* the first row in the batch, or element of the tensor */
    PL_TENSOR = 64,   /* the number of the tensor, the same in every plan */
    PL_DROPOUT = 128, /* site and dropout */
    PL_KV = 256,      /* heads of keys and values; `heads` are the queries' */
    PL_EPS = 512,     /* that a norm adds to a mean square */
    PL_CAP = 1024,    /* of logits; 0: none */
    PL_STRIDE = 2048, /* from row to row of the tensor that a part lies in */
};

/* Bits of pl_step.flags. */
enum {
    PL_STEP_DECAY = 1,     /* weight decay applies */
    PL_STEP_GELU_TANH = 2, /* any GELU: OpenAI's form */
    PL_STEP_GRADIENT = 4,  /* leave dlogits behind */
    PL_STEP_RUN_ROWS = 8,  /* rows and position are read from controls */
    PL_STEP_LAST_ROW = 16, /* one row, the last of x's such rows */
    /* operands kept as float32 are rounded as they are read: a MATMUL's
     * weights, both operands of the other products */
    PL_STEP_ROUND_BF16 = 32,
    PL_STEP_ROUND_F16 = 64,
    PL_STEP_GELU = 128,       /* y itself becomes GELU(y) */
    PL_STEP_LOGIT_ROWS = 256, /* as many rows as controls want logits of, the
                               * last of x's */
    PL_STEP_RELU2 = 512,      /* any GELU: relu2 in its place */
    PL_STEP_OUT_IN = 1024,    /* a MATMUL's weights are stored [cols, inner], a
                               * MATMUL_T's [inner, cols], Muon's out x in */
    PL_STEP_MATCH_RMS = 2048, /* Muon: updates are as large as AdamW's */
    PL_STEP_ACTIVATION = PL_STEP_GELU_TANH | PL_STEP_RELU2,
    /* what a product with weights may have */
    PL_STEP_PRODUCT = PL_STEP_ACTIVATION | PL_STEP_ROUND_BF16 |
                      PL_STEP_ROUND_F16 | PL_STEP_OUT_IN,
};

/* Sets of dtypes that an argument may have. */
enum {
    PL_IS_F32 = 1 << PL_F32,
    PL_IS_HALF = 1 << PL_BF16 | 1 << PL_F16,
    PL_IS_STORED = PL_IS_F32 | PL_IS_HALF,
    PL_IS_WEIGHT = PL_IS_F32 | 1 << PL_BF16,
    PL_IS_MOMENT = PL_IS_F32 | 1 << PL_U8,
    PL_IS_SUM = 1 << PL_F64,
    PL_IS_TOKEN = 1 << PL_I32,
    PL_IS_BYTES = 1 << PL_U8,
    PL_IS_ANY = (1 << (PL_U8 + 1)) - 1,
};

/* What clip says of an update, and AdamW reads: device.h's pl_outcome. */
enum { PL_OUTCOME_BYTES = 12 };

/* A product with few rows spends more of its time packing weights: so many
 * rows cost what the packing does. */
#define PL_PACKING_ROWS 8.0

/* Every step may read the graph's controls.
 *
 *   id, name, constants, flags that it may have, units of work as a function of
 *   the constants (flops for products and attention, where half of T keys count
 *   with 2 flops each, elements for the rest), and units per second of one AVX2
 *   core at 3 GHz, of which only the ratios matter until the machine is
 *   measured */
#define PL_OP_TABLE(X)                                                         \
    X(EMBED, "embed", PL_ROWS | PL_COLS | PL_T | PL_DROPOUT, PL_STEP_RUN_ROWS, \
      rows * cols, 1.0e9)                                                      \
    X(EMBED_BWD, "embed.bwd", PL_ROWS | PL_COLS | PL_T | PL_DROPOUT, 0,        \
      rows * cols, 0.5e9)                                                      \
    X(LAYERNORM, "layernorm", PL_ROWS | PL_COLS | PL_EPS,                      \
      PL_STEP_RUN_ROWS | PL_STEP_LAST_ROW | PL_STEP_LOGIT_ROWS, rows * cols,   \
      1.2e9)                                                                   \
    X(LAYERNORM_BWD, "layernorm.bwd", PL_ROWS | PL_COLS, 0, rows * cols,       \
      0.5e9)                                                                   \
    X(RMSNORM, "rmsnorm", PL_ROWS | PL_COLS | PL_EPS,                          \
      PL_STEP_RUN_ROWS | PL_STEP_LAST_ROW | PL_STEP_LOGIT_ROWS, rows * cols,   \
      1.6e9)                                                                   \
    X(RMSNORM_BWD, "rmsnorm.bwd", PL_ROWS | PL_COLS, 0, rows * cols, 0.6e9)    \
    X(MATMUL, "matmul", PL_ROWS | PL_COLS | PL_INNER | PL_T | PL_DROPOUT,      \
      PL_STEP_RUN_ROWS | PL_STEP_PRODUCT | PL_STEP_GELU,                       \
      2.0 * (rows + PL_PACKING_ROWS) * cols * inner, 80e9)                     \
    X(MATMUL_T, "matmul.t", PL_ROWS | PL_COLS | PL_INNER,                      \
      PL_STEP_PRODUCT | PL_STEP_LOGIT_ROWS,                                    \
      2.0 * (rows + PL_PACKING_ROWS) * cols * inner, 80e9)                     \
    X(MATMUL_DW, "matmul.dw", PL_ROWS | PL_COLS | PL_INNER,                    \
      PL_STEP_ROUND_BF16 | PL_STEP_ROUND_F16, 2.0 * rows * cols * inner, 80e9) \
    X(COLUMN_SUM, "column.sum", PL_ROWS | PL_COLS, 0, rows * cols, 2.0e9)      \
    X(QK, "qk", PL_ROWS | PL_T | PL_HEADS | PL_KV | PL_INNER | PL_EPS,         \
      PL_STEP_RUN_ROWS, rows * (heads + kv) * inner, 1.2e9)                    \
    X(QK_BWD, "qk.bwd", PL_ROWS | PL_T | PL_HEADS | PL_KV | PL_INNER, 0,       \
      rows * (heads + kv) * inner, 0.8e9)                                      \
    X(QK_DW, "qk.dw", PL_ROWS | PL_T | PL_HEADS | PL_KV | PL_INNER, 0,         \
      rows * (heads + kv) * inner, 1.0e9)                                      \
    X(ATTENTION, "attention",                                                  \
      PL_ROWS | PL_T | PL_HEADS | PL_KV | PL_INNER | PL_DROPOUT, 0,            \
      2.0 * rows * T * heads * inner, 40e9)                                    \
    X(ATTENTION_BWD, "attention.bwd",                                          \
      PL_ROWS | PL_T | PL_HEADS | PL_KV | PL_INNER | PL_DROPOUT, 0,            \
      5.0 * rows * T * heads * inner, 50e9)                                    \
    X(CACHE_APPEND, "cache.append",                                            \
      PL_ROWS | PL_T | PL_HEADS | PL_KV | PL_INNER, PL_STEP_RUN_ROWS,          \
      rows * kv * inner, 2.0e9)                                                \
    X(ATTENTION_CACHED, "attention.cached",                                    \
      PL_ROWS | PL_T | PL_HEADS | PL_KV | PL_INNER, PL_STEP_RUN_ROWS,          \
      2.0 * rows * T * heads * inner, 10e9)                                    \
    X(GELU, "gelu", PL_ROWS | PL_COLS, PL_STEP_RUN_ROWS | PL_STEP_ACTIVATION,  \
      rows * cols, 0.8e9)                                                      \
    X(GLU, "glu", PL_ROWS | PL_COLS, PL_STEP_RUN_ROWS, rows * cols, 0.8e9)     \
    X(GLU_BWD, "glu.bwd", PL_ROWS | PL_COLS, 0, rows * cols, 0.5e9)            \
    X(SOFTCAP, "softcap", PL_ROWS | PL_COLS | PL_CAP, PL_STEP_LOGIT_ROWS,      \
      rows * cols, 0.8e9)                                                      \
    X(DROP, "drop", PL_ROWS | PL_COLS | PL_T | PL_DROPOUT, 0, rows * cols,     \
      1.0e9)                                                                   \
    X(CARRY, "carry", PL_ROWS | PL_COLS | PL_T, 0, rows * cols, 2.0e9)         \
    X(CROSS_ENTROPY, "cross.entropy",                                          \
      PL_ROWS | PL_COLS | PL_T | PL_FIRST | PL_CAP, PL_STEP_GRADIENT,          \
      rows * cols, 0.6e9)                                                      \
    X(LOSS_SUM, "loss.sum", PL_ROWS | PL_T, 0, rows, 1.0e9)                    \
    X(SUMSQ, "sumsq", PL_ROWS | PL_FIRST, 0, rows, 2.5e9)                      \
    X(CLIP, "clip", PL_ROWS, 0, rows, 1.0e9)                                   \
    X(ADAMW, "adamw", PL_ROWS | PL_FIRST | PL_TENSOR, PL_STEP_DECAY, rows,     \
      0.7e9)                                                                   \
    X(MUON_MOMENT, "muon.moment", PL_ROWS | PL_TENSOR, 0, rows, 1.0e9)         \
    X(MUON_SUMSQ, "muon.sumsq", PL_ROWS | PL_COLS | PL_FIRST | PL_STRIDE, 0,   \
      rows * cols, 2.0e9)                                                      \
    X(MUON_NORM, "muon.norm", PL_ROWS, 0, rows, 1.0e9)                         \
    X(MUON_TAKE, "muon.take", PL_ROWS | PL_COLS | PL_FIRST | PL_STRIDE, 0,     \
      rows * cols, 0.8e9)                                                      \
    X(MUON_POLY, "muon.poly", PL_ROWS, 0, (rows * rows), 1.5e9)                \
    X(MUON_PUT, "muon.put", PL_ROWS | PL_COLS | PL_FIRST | PL_STRIDE,          \
      PL_STEP_OUT_IN | PL_STEP_MATCH_RMS, rows * cols, 0.8e9)                  \
    X(MUON_APPLY, "muon.apply", PL_ROWS | PL_TENSOR, PL_STEP_DECAY, rows,      \
      1.0e9)                                                                   \
    X(ADD, "add", PL_ROWS, 0, rows, 1.0e9)                                     \
    X(MOVE, "move", PL_ROWS, 0, rows, 1.0e9)                                   \
    X(COPY, "copy", PL_ROWS | PL_COLS, 0, rows * cols, 1.0e9)                  \
    X(OUTER, "outer", PL_ROWS | PL_FIRST, 0, rows, 0.7e9)                      \
    X(FETCH, "fetch", 0, 0, 0.0, 0.0)

/* The arguments of each op, in order:
 *   op, id, name, access, whether it is needed, dtypes, and how many elements,
 *   from its first row on, the step touches at least. How much scratch a step
 *   needs, if any, is the device's to say (pl_device_scratch). */

#define PL_ARGS_EMBED(A)                                                       \
    A(EMBED, X, "x", PL_WRITE, PL_NEEDED, PL_IS_F32, (rows * cols))            \
    A(EMBED, TOKENS, "tokens", PL_READ, PL_NEEDED, PL_IS_TOKEN, rows)          \
    A(EMBED, WTE, "wte", PL_READ, PL_NEEDED, PL_IS_WEIGHT, cols)               \
    A(EMBED, WPE, "wpe", PL_READ, PL_OPTIONAL, PL_IS_WEIGHT, (T * cols))       \
    A(EMBED, POSITIONS, "positions", PL_READ, PL_OPTIONAL, PL_IS_TOKEN, 1)

#define PL_ARGS_EMBED_BWD(A)                                                   \
    A(EMBED_BWD, DWTE, "dwte", PL_UPDATE, PL_NEEDED, PL_IS_F32, cols)          \
    A(EMBED_BWD, DWPE, "dwpe", PL_UPDATE, PL_OPTIONAL, PL_IS_F32, (T * cols))  \
    A(EMBED_BWD, DX, "dx", PL_READ, PL_NEEDED, PL_IS_F32, (rows * cols))       \
    A(EMBED_BWD, TOKENS, "tokens", PL_READ, PL_NEEDED, PL_IS_TOKEN, rows)

#define PL_ARGS_LAYERNORM(A)                                                   \
    A(LAYERNORM, Y, "y", PL_WRITE, PL_NEEDED, PL_IS_STORED, (rows * cols))     \
    A(LAYERNORM, STATS, "stats", PL_WRITE, PL_NEEDED, PL_IS_F32, 2 * rows)     \
    A(LAYERNORM, X, "x", PL_READ, PL_NEEDED, PL_IS_F32, (rows * cols))         \
    A(LAYERNORM, WEIGHT, "weight", PL_READ, PL_NEEDED, PL_IS_F32, cols)        \
    A(LAYERNORM, BIAS, "bias", PL_READ, PL_OPTIONAL, PL_IS_F32, cols)

/* dx is updated, or written where it begins. */
#define PL_ARGS_LAYERNORM_BWD(A)                                               \
    A(LAYERNORM_BWD, DX, "dx", PL_UPDATE | PL_WRITE, PL_NEEDED, PL_IS_F32,     \
      rows * cols)                                                             \
    A(LAYERNORM_BWD, DWEIGHT, "dweight", PL_UPDATE, PL_NEEDED, PL_IS_F32,      \
      cols)                                                                    \
    A(LAYERNORM_BWD, DBIAS, "dbias", PL_UPDATE, PL_OPTIONAL, PL_IS_F32, cols)  \
    A(LAYERNORM_BWD, DY, "dy", PL_READ, PL_NEEDED, PL_IS_STORED,               \
      (rows * cols))                                                           \
    A(LAYERNORM_BWD, X, "x", PL_READ, PL_NEEDED, PL_IS_F32, (rows * cols))     \
    A(LAYERNORM_BWD, STATS, "stats", PL_READ, PL_NEEDED, PL_IS_F32, 2 * rows)  \
    A(LAYERNORM_BWD, WEIGHT, "weight", PL_READ, PL_NEEDED, PL_IS_F32, cols)

#define PL_ARGS_RMSNORM(A)                                                     \
    A(RMSNORM, Y, "y", PL_WRITE, PL_NEEDED, PL_IS_STORED, (rows * cols))       \
    A(RMSNORM, RSTD, "rstd", PL_WRITE, PL_NEEDED, PL_IS_F32, rows)             \
    A(RMSNORM, X, "x", PL_READ, PL_NEEDED, PL_IS_F32, (rows * cols))           \
    A(RMSNORM, WEIGHT, "weight", PL_READ, PL_NEEDED, PL_IS_F32, cols)

/* As with layernorm, what dx held is added to, or isn't read. */
#define PL_ARGS_RMSNORM_BWD(A)                                                 \
    A(RMSNORM_BWD, DX, "dx", PL_UPDATE | PL_WRITE, PL_NEEDED, PL_IS_F32,       \
      (rows * cols))                                                           \
    A(RMSNORM_BWD, DWEIGHT, "dweight", PL_UPDATE, PL_NEEDED, PL_IS_F32, cols)  \
    A(RMSNORM_BWD, DY, "dy", PL_READ, PL_NEEDED, PL_IS_STORED, (rows * cols))  \
    A(RMSNORM_BWD, X, "x", PL_READ, PL_NEEDED, PL_IS_F32, (rows * cols))       \
    A(RMSNORM_BWD, RSTD, "rstd", PL_READ, PL_NEEDED, PL_IS_F32, rows)          \
    A(RMSNORM_BWD, WEIGHT, "weight", PL_READ, PL_NEEDED, PL_IS_F32, cols)

/* y = x w[inner, cols] + bias; then gelu = GELU(y), or y = residual + drop(y)
 */
#define PL_ARGS_MATMUL(A)                                                      \
    A(MATMUL, Y, "y", PL_WRITE, PL_NEEDED, PL_IS_STORED, (rows * cols))        \
    A(MATMUL, X, "x", PL_READ, PL_NEEDED, PL_IS_STORED, (rows * inner))        \
    A(MATMUL, W, "w", PL_READ, PL_NEEDED, PL_IS_STORED, (inner * cols))        \
    A(MATMUL, BIAS, "bias", PL_READ, PL_OPTIONAL, PL_IS_F32, cols)             \
    A(MATMUL, GELU, "gelu", PL_WRITE, PL_OPTIONAL, PL_IS_STORED,               \
      (rows * cols))                                                           \
    A(MATMUL, RESIDUAL, "residual", PL_READ, PL_OPTIONAL, PL_IS_F32,           \
      (rows * cols))

/* y = x w[cols, inner]^T, then y *= GELU'(fc) */
#define PL_ARGS_MATMUL_T(A)                                                    \
    A(MATMUL_T, Y, "y", PL_WRITE, PL_NEEDED, PL_IS_STORED, (rows * cols))      \
    A(MATMUL_T, X, "x", PL_READ, PL_NEEDED, PL_IS_STORED, (rows * inner))      \
    A(MATMUL_T, W, "w", PL_READ, PL_NEEDED, PL_IS_STORED, (inner * cols))      \
    A(MATMUL_T, FC, "fc", PL_READ, PL_OPTIONAL, PL_IS_STORED, (rows * cols))   \
    A(MATMUL_T, SCRATCH, "scratch", PL_SCRATCH, PL_OPTIONAL, PL_IS_F32, 1)

/* dw[inner, cols] += x[rows, inner]^T dy[rows, cols] */
#define PL_ARGS_MATMUL_DW(A)                                                   \
    A(MATMUL_DW, DW, "dw", PL_UPDATE, PL_NEEDED, PL_IS_F32, (inner * cols))    \
    A(MATMUL_DW, X, "x", PL_READ, PL_NEEDED, PL_IS_STORED, (rows * inner))     \
    A(MATMUL_DW, DY, "dy", PL_READ, PL_NEEDED, PL_IS_STORED, (rows * cols))    \
    A(MATMUL_DW, SCRATCH, "scratch", PL_SCRATCH, PL_OPTIONAL, PL_IS_F32, 1)

#define PL_ARGS_COLUMN_SUM(A)                                                  \
    A(COLUMN_SUM, SUM, "sum", PL_UPDATE, PL_NEEDED, PL_IS_F32, cols)           \
    A(COLUMN_SUM, X, "x", PL_READ, PL_NEEDED, PL_IS_STORED, (rows * cols))

/* y = the heads of queries and keys of x, normed and rotated, and its values;
 * without x in place of y, rotated alone. */
#define PL_ARGS_QK(A)                                                          \
    A(QK, Y, "y", PL_WRITE | PL_UPDATE, PL_NEEDED, PL_IS_STORED,               \
      rows * (heads + 2 * kv) * inner)                                         \
    A(QK, X, "x", PL_READ, PL_OPTIONAL, PL_IS_STORED,                          \
      rows *(heads + 2 * kv) * inner)                                          \
    A(QK, RSTD, "rstd", PL_WRITE, PL_OPTIONAL, PL_IS_F32, rows *(heads + kv))  \
    A(QK, TABLE, "table", PL_READ, PL_OPTIONAL, PL_IS_F32, (T * inner))        \
    A(QK, Q_WEIGHT, "q_weight", PL_READ, PL_OPTIONAL, PL_IS_F32, inner)        \
    A(QK, K_WEIGHT, "k_weight", PL_READ, PL_OPTIONAL, PL_IS_F32, inner)        \
    A(QK, POSITIONS, "positions", PL_READ, PL_OPTIONAL, PL_IS_TOKEN, 1)

#define PL_ARGS_QK_BWD(A)                                                      \
    A(QK_BWD, D, "d", PL_UPDATE, PL_NEEDED, PL_IS_STORED,                      \
      rows *(heads + 2 * kv) * inner)                                          \
    A(QK_BWD, X, "x", PL_READ, PL_OPTIONAL, PL_IS_STORED,                      \
      rows *(heads + 2 * kv) * inner)                                          \
    A(QK_BWD, RSTD, "rstd", PL_READ, PL_OPTIONAL, PL_IS_F32,                   \
      rows *(heads + kv))                                                      \
    A(QK_BWD, TABLE, "table", PL_READ, PL_OPTIONAL, PL_IS_F32, (T * inner))    \
    A(QK_BWD, Q_WEIGHT, "q_weight", PL_READ, PL_OPTIONAL, PL_IS_F32, inner)    \
    A(QK_BWD, K_WEIGHT, "k_weight", PL_READ, PL_OPTIONAL, PL_IS_F32, inner)

#define PL_ARGS_QK_DW(A)                                                       \
    A(QK_DW, DQ_WEIGHT, "dq_weight", PL_UPDATE, PL_NEEDED, PL_IS_F32, inner)   \
    A(QK_DW, DK_WEIGHT, "dk_weight", PL_UPDATE, PL_NEEDED, PL_IS_F32, inner)   \
    A(QK_DW, D, "d", PL_READ, PL_NEEDED, PL_IS_STORED,                         \
      rows *(heads + 2 * kv) * inner)                                          \
    A(QK_DW, X, "x", PL_READ, PL_NEEDED, PL_IS_STORED,                         \
      rows *(heads + 2 * kv) * inner)                                          \
    A(QK_DW, RSTD, "rstd", PL_READ, PL_NEEDED, PL_IS_F32, rows *(heads + kv))  \
    A(QK_DW, TABLE, "table", PL_READ, PL_OPTIONAL, PL_IS_F32, (T * inner))

#define PL_ARGS_ATTENTION(A)                                                   \
    A(ATTENTION, ATT, "att", PL_WRITE, PL_NEEDED, PL_IS_STORED,                \
      (rows * heads * inner))                                                  \
    A(ATTENTION, LSE, "lse", PL_WRITE, PL_NEEDED, PL_IS_F32, (rows * heads))   \
    A(ATTENTION, QKV, "qkv", PL_READ, PL_NEEDED, PL_IS_STORED,                 \
      rows *(heads + 2 * kv) * inner)                                          \
    A(ATTENTION, SCRATCH, "scratch", PL_SCRATCH, PL_OPTIONAL, PL_IS_F32, 1)

#define PL_ARGS_ATTENTION_BWD(A)                                               \
    A(ATTENTION_BWD, DQKV, "dqkv", PL_WRITE, PL_NEEDED, PL_IS_STORED,          \
      rows *(heads + 2 * kv) * inner)                                          \
    A(ATTENTION_BWD, DATT, "datt", PL_READ, PL_NEEDED, PL_IS_STORED,           \
      (rows * heads * inner))                                                  \
    A(ATTENTION_BWD, QKV, "qkv", PL_READ, PL_NEEDED, PL_IS_STORED,             \
      rows *(heads + 2 * kv) * inner)                                          \
    A(ATTENTION_BWD, ATT, "att", PL_READ, PL_NEEDED, PL_IS_STORED,             \
      (rows * heads * inner))                                                  \
    A(ATTENTION_BWD, LSE, "lse", PL_READ, PL_NEEDED, PL_IS_F32,                \
      (rows * heads))                                                          \
    A(ATTENTION_BWD, SCRATCH, "scratch", PL_SCRATCH, PL_OPTIONAL, PL_IS_F32, 1)

/* The cache has T rows of keys, then T rows of values. Where there are
 * positions it has so many of each for every slot, keys of all of them first;
 * the rows are those of several sequences in as many slots, and each begins at
 * its own position. */
#define PL_ARGS_CACHE_APPEND(A)                                                \
    A(CACHE_APPEND, CACHE, "cache", PL_UPDATE, PL_NEEDED, PL_IS_STORED,        \
      2 * T * kv * inner)                                                      \
    A(CACHE_APPEND, QKV, "qkv", PL_READ, PL_NEEDED, PL_IS_STORED,              \
      rows *(heads + 2 * kv) * inner)                                          \
    A(CACHE_APPEND, POSITIONS, "positions", PL_READ, PL_OPTIONAL, PL_IS_TOKEN, \
      1)

#define PL_ARGS_ATTENTION_CACHED(A)                                            \
    A(ATTENTION_CACHED, ATT, "att", PL_WRITE, PL_NEEDED, PL_IS_STORED,         \
      (rows * heads * inner))                                                  \
    A(ATTENTION_CACHED, QKV, "qkv", PL_READ, PL_NEEDED, PL_IS_STORED,          \
      rows *(heads + 2 * kv) * inner)                                          \
    A(ATTENTION_CACHED, CACHE, "cache", PL_READ, PL_NEEDED, PL_IS_STORED,      \
      2 * T * kv * inner)                                                      \
    A(ATTENTION_CACHED, SCRATCH, "scratch", PL_SCRATCH, PL_OPTIONAL,           \
      PL_IS_F32, 1)                                                            \
    A(ATTENTION_CACHED, POSITIONS, "positions", PL_READ, PL_OPTIONAL,          \
      PL_IS_TOKEN, 1)

#define PL_ARGS_GELU(A)                                                        \
    A(GELU, Y, "y", PL_WRITE, PL_NEEDED, PL_IS_STORED, (rows * cols))          \
    A(GELU, X, "x", PL_READ, PL_NEEDED, PL_IS_STORED, (rows * cols))

/* x[rows, 2 * cols]: a gate and what it is multiplied with. */
#define PL_ARGS_GLU(A)                                                         \
    A(GLU, Y, "y", PL_WRITE, PL_NEEDED, PL_IS_STORED, (rows * cols))           \
    A(GLU, X, "x", PL_READ, PL_NEEDED, PL_IS_STORED, 2 * rows * cols)

/* x becomes its own gradient. */
#define PL_ARGS_GLU_BWD(A)                                                     \
    A(GLU_BWD, X, "x", PL_UPDATE, PL_NEEDED, PL_IS_STORED, 2 * rows * cols)    \
    A(GLU_BWD, DY, "dy", PL_READ, PL_NEEDED, PL_IS_STORED, (rows * cols))

#define PL_ARGS_SOFTCAP(A)                                                     \
    A(SOFTCAP, X, "x", PL_UPDATE, PL_NEEDED, PL_IS_F32, (rows * cols))

#define PL_ARGS_DROP(A)                                                        \
    A(DROP, Y, "y", PL_WRITE, PL_NEEDED, PL_IS_STORED, (rows * cols))          \
    A(DROP, X, "x", PL_READ, PL_NEEDED, PL_IS_F32, (rows * cols))

/* The rows of the micro-batch, in those of the batch. */
#define PL_ARGS_CARRY(A)                                                       \
    A(CARRY, BATCH, "batch", PL_UPDATE, PL_NEEDED, PL_IS_F32, (rows * cols))   \
    A(CARRY, X, "x", PL_READ, PL_NEEDED, PL_IS_F32, (rows * cols))

#define PL_ARGS_CROSS_ENTROPY(A)                                               \
    A(CROSS_ENTROPY, LOGITS, "logits", PL_UPDATE, PL_NEEDED, PL_IS_STORED,     \
      (rows * cols))                                                           \
    A(CROSS_ENTROPY, LOSS, "loss", PL_WRITE, PL_NEEDED, PL_IS_F32,             \
      first + rows)                                                            \
    A(CROSS_ENTROPY, TOKENS, "tokens", PL_READ, PL_NEEDED, PL_IS_TOKEN,        \
      first + rows + 1)

#define PL_ARGS_LOSS_SUM(A)                                                    \
    A(LOSS_SUM, SUMS, "sums", PL_UPDATE, PL_NEEDED, PL_IS_SUM, rows / T)       \
    A(LOSS_SUM, LOSS, "loss", PL_READ, PL_NEEDED, PL_IS_F32, rows)

#define PL_ARGS_SUMSQ(A)                                                       \
    A(SUMSQ, PARTIAL, "partial", PL_WRITE, PL_NEEDED, PL_IS_SUM, 1)            \
    A(SUMSQ, G, "g", PL_READ, PL_NEEDED, PL_IS_F32, first + rows)

#define PL_ARGS_CLIP(A)                                                        \
    A(CLIP, OUTCOME, "outcome", PL_WRITE, PL_NEEDED, PL_IS_BYTES,              \
      PL_OUTCOME_BYTES)                                                        \
    A(CLIP, PARTIAL, "partial", PL_READ, PL_NEEDED, PL_IS_SUM, rows)

/* Elements from `first` on, whose moments begin with that one. Moments that
 * have scales are of 8 bits. */
#define PL_ARGS_ADAMW(A)                                                       \
    A(ADAMW, W, "w", PL_UPDATE, PL_NEEDED, PL_IS_WEIGHT, first + rows)         \
    A(ADAMW, G, "g", PL_UPDATE, PL_NEEDED, PL_IS_F32, first + rows)            \
    A(ADAMW, M, "m", PL_UPDATE, PL_NEEDED, PL_IS_MOMENT, rows)                 \
    A(ADAMW, V, "v", PL_UPDATE, PL_NEEDED, PL_IS_MOMENT, rows)                 \
    A(ADAMW, M_SCALES, "m_scales", PL_UPDATE, PL_OPTIONAL, PL_IS_F32, 1)       \
    A(ADAMW, V_SCALES, "v_scales", PL_UPDATE, PL_OPTIONAL, PL_IS_F32, 1)       \
    A(ADAMW, COPY, "copy", PL_WRITE, PL_OPTIONAL, PL_IS_HALF, first + rows)    \
    A(ADAMW, OUTCOME, "outcome", PL_READ, PL_NEEDED, PL_IS_BYTES,              \
      PL_OUTCOME_BYTES)

/* Muon's steps on a matrix: its moment, and in place of the gradient what is to
 * be orthogonalized; of each part of the matrix that is one of its own, rows x
 * cols from element `first` on in rows of `stride`, the norm, the part divided
 * by that (as a wide matrix: transposed where it is tall), the polynomial of
 * every iteration, and the result in its place; then the weights. */
#define PL_ARGS_MUON_MOMENT(A)                                                 \
    A(MUON_MOMENT, G, "g", PL_UPDATE, PL_NEEDED, PL_IS_F32, rows)              \
    A(MUON_MOMENT, M, "m", PL_UPDATE, PL_NEEDED, PL_IS_MOMENT, rows)           \
    A(MUON_MOMENT, M_SCALES, "m_scales", PL_UPDATE, PL_OPTIONAL, PL_IS_F32, 1) \
    A(MUON_MOMENT, OUTCOME, "outcome", PL_READ, PL_NEEDED, PL_IS_BYTES,        \
      PL_OUTCOME_BYTES)

#define PL_ARGS_MUON_SUMSQ(A)                                                  \
    A(MUON_SUMSQ, PARTIAL, "partial", PL_WRITE, PL_NEEDED, PL_IS_SUM, 1)       \
    A(MUON_SUMSQ, G, "g", PL_READ, PL_NEEDED, PL_IS_F32,                       \
      first + (rows - 1) * stride + cols)

#define PL_ARGS_MUON_NORM(A)                                                   \
    A(MUON_NORM, FACTOR, "factor", PL_WRITE, PL_NEEDED, PL_IS_F32, 1)          \
    A(MUON_NORM, PARTIAL, "partial", PL_READ, PL_NEEDED, PL_IS_SUM, rows)

#define PL_ARGS_MUON_TAKE(A)                                                   \
    A(MUON_TAKE, X, "x", PL_WRITE, PL_NEEDED, PL_IS_STORED, (rows * cols))     \
    A(MUON_TAKE, G, "g", PL_READ, PL_NEEDED, PL_IS_F32,                        \
      first + (rows - 1) * stride + cols)                                      \
    A(MUON_TAKE, FACTOR, "factor", PL_READ, PL_NEEDED, PL_IS_F32, 1)

#define PL_ARGS_MUON_POLY(A)                                                   \
    A(MUON_POLY, B, "b", PL_UPDATE, PL_NEEDED, PL_IS_STORED, (rows * rows))    \
    A(MUON_POLY, GRAM, "gram", PL_READ, PL_NEEDED, PL_IS_STORED, (rows * rows))

#define PL_ARGS_MUON_PUT(A)                                                    \
    A(MUON_PUT, G, "g", PL_UPDATE, PL_NEEDED, PL_IS_F32,                       \
      first + (rows - 1) * stride + cols)                                      \
    A(MUON_PUT, X, "x", PL_READ, PL_NEEDED, PL_IS_STORED, (rows * cols))

#define PL_ARGS_MUON_APPLY(A)                                                  \
    A(MUON_APPLY, W, "w", PL_UPDATE, PL_NEEDED, PL_IS_WEIGHT, rows)            \
    A(MUON_APPLY, G, "g", PL_UPDATE, PL_NEEDED, PL_IS_F32, rows)               \
    A(MUON_APPLY, COPY, "copy", PL_WRITE, PL_OPTIONAL, PL_IS_HALF, rows)       \
    A(MUON_APPLY, OUTCOME, "outcome", PL_READ, PL_NEEDED, PL_IS_BYTES,         \
      PL_OUTCOME_BYTES)

/* g = sums[digit] + g, where controls say which digit; a digit has `rows`
 * elements. */
#define PL_ARGS_ADD(A)                                                         \
    A(ADD, G, "g", PL_UPDATE, PL_NEEDED, PL_IS_F32, rows)                      \
    A(ADD, SUMS, "sums", PL_READ, PL_NEEDED, PL_IS_F32, rows)

/* sums[digit] = g, g = 0 */
#define PL_ARGS_MOVE(A)                                                        \
    A(MOVE, SUMS, "sums", PL_UPDATE, PL_NEEDED, PL_IS_F32, rows)               \
    A(MOVE, G, "g", PL_UPDATE, PL_NEEDED, PL_IS_F32, rows)

#define PL_ARGS_COPY(A)                                                        \
    A(COPY, Y, "y", PL_WRITE, PL_NEEDED, PL_IS_F32, (rows * cols))             \
    A(COPY, X, "x", PL_READ, PL_NEEDED, PL_IS_F32, (rows * cols))

/* Elements from `first` on of weights and the sum of all workers'; anchor and
 * momentum begin with that one. */
#define PL_ARGS_OUTER(A)                                                       \
    A(OUTER, W, "w", PL_UPDATE, PL_NEEDED, PL_IS_F32, first + rows)            \
    A(OUTER, G, "g", PL_UPDATE, PL_NEEDED, PL_IS_F32, first + rows)            \
    A(OUTER, ANCHOR, "anchor", PL_UPDATE, PL_NEEDED, PL_IS_F32, rows)          \
    A(OUTER, B, "b", PL_UPDATE, PL_NEEDED, PL_IS_F32, rows)                    \
    A(OUTER, COPY, "copy", PL_WRITE, PL_OPTIONAL, PL_IS_HALF, first + rows)

/* What the host reads after the program, or between its steps. */
#define PL_ARGS_FETCH(A)                                                       \
    A(FETCH, TO, "to", PL_WRITE, PL_NEEDED, PL_IS_ANY, 1)                      \
    A(FETCH, FROM, "from", PL_READ, PL_NEEDED, PL_IS_ANY, 1)

typedef enum pl_op {
#define PL_OP_ENUM(id, ...) PL_OP_##id,
    PL_OP_TABLE(PL_OP_ENUM)
#undef PL_OP_ENUM
        PL_OP_COUNT
} pl_op;

/* PL_ARG_EMBED_X = 0, PL_ARG_EMBED_TOKENS = 1, ...; PL_ARGS_OF_EMBED = 4 */
#define PL_ARG_ENUM(op, id, ...) PL_ARG_##op##_##id,
#define PL_ARGS_ENUM(id, ...)                                                  \
    enum { PL_ARGS_##id(PL_ARG_ENUM) PL_ARGS_OF_##id };
PL_OP_TABLE(PL_ARGS_ENUM)
#undef PL_ARGS_ENUM
#undef PL_ARG_ENUM

enum { PL_MAX_ARGS = 8 };

typedef struct pl_arg_info {
    const char *name;
    unsigned access; /* those allowed */
    pl_need need;
    unsigned dtypes; /* those allowed: 1 << dtype */
} pl_arg_info;

typedef struct pl_op_info {
    const char *name;
    unsigned constants, flags;
    double per_second; /* units of work, as the table says */
    int n_args;
    pl_arg_info args[PL_MAX_ARGS];
} pl_op_info;

const pl_op_info *pl_op_of(pl_op op);
const char *pl_op_name(pl_op op);

/* ---- steps ---- */

typedef int pl_buffer_id; /* index into graph->buffers */
enum { PL_NO_BUFFER = -1 };

typedef struct pl_arg {
    pl_buffer_id buffer;
    pl_access access;
    size_t row; /* first row that the step sees */
} pl_arg;

typedef struct pl_step {
    pl_op op;
    pl_arg args[PL_MAX_ARGS]; /* by PL_ARG_<op>_<id> */
    /* constants */
    size_t rows, cols, inner, T, heads, kv, first, tensor, stride;
    int layer;     /* -1: none */
    unsigned site; /* dropout's, where there is one */
    unsigned flags;
    double dropout, eps, cap;
} pl_step;

/* A step of `op` without arguments and constants. */
pl_step pl_step_make(pl_op op);

/* Argument `arg` (PL_ARG_<op>_<id>) of the step is `buffer`, from its first row
 * or from `row` on. What the step does with it is the signature's; where that
 * allows several, pl_step_access says which. */
void pl_step_arg(pl_step *step, int arg, pl_buffer_id buffer);
void pl_step_rows(pl_step *step, int arg, pl_buffer_id buffer, size_t row);
void pl_step_access(pl_step *step, int arg, pl_access access);

/* Units of work of a step. */
double pl_step_work(const pl_step *step);
/* Elements that a step touches of an argument, at least. */
size_t pl_step_elements(const pl_step *step, int arg);
/* NULL, or what is wrong with the step's constants, flags and set of arguments:
 * a text that names the constant or the argument. */
const char *pl_step_wrong(const pl_step *step);

#endif
