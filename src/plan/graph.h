/* graph.h: the step list.
 *
 * A graph is data: buffers (name, dtype, shape, class) and programs, which are
 * lists of steps (op, arguments with their access, constants). The planner
 * derives every lifetime from it, a device executes it, `plan` prints it.
 * Nobody types a lifetime, a size or an offset.
 *
 * Owns: the two tables, on the heap that was given. Never touches tensor
 * memory, and doesn't know what an op computes. */
#ifndef PL_PLAN_GRAPH_H
#define PL_PLAN_GRAPH_H

#include "base/arena.h"
#include "plan/tensor.h"

#include <stdint.h>

/* ---- buffers ---- */

#define PL_CLASS_TABLE(X)                                                      \
    X(PL_CLASS_WEIGHT, "weights", 1)                                           \
    X(PL_CLASS_COPY, "working copy", 1)                                        \
    X(PL_CLASS_GRADIENT, "gradients", 1)                                       \
    X(PL_CLASS_MOMENT, "moments", 1)                                           \
    X(PL_CLASS_CONTROL, "control", 1)                                          \
    X(PL_CLASS_PACKING, "packing", 1)                                          \
    X(PL_CLASS_SAVED, "saved activations", 0)                                  \
    X(PL_CLASS_TRANSIENT, "transient", 0)                                      \
    X(PL_CLASS_TOKENS, "tokens", 0)                                            \
    X(PL_CLASS_CACHE, "kv cache", 0)

/* The third column: lives throughout, over all programs. */
typedef enum pl_class {
#define PL_CLASS_ENUM(id, text, lives) id,
    PL_CLASS_TABLE(PL_CLASS_ENUM)
#undef PL_CLASS_ENUM
        PL_CLASS_COUNT
} pl_class;

const char *pl_class_name(pl_class class);
int pl_class_lives_throughout(pl_class class);

typedef int pl_buffer_id; /* index into graph->buffers */
enum { PL_NO_BUFFER = -1 };

/* What the host does with a buffer of a program: its lifetime then reaches to
 * the program's first or last step. The host writes before every round of a
 * loop, or once before all of them if a step after the loop reads it too. */
typedef enum pl_host_use {
    PL_HOST_NONE,
    PL_HOST_WRITES,
    PL_HOST_READS,
} pl_host_use;

typedef struct pl_buffer {
    const char *name;
    pl_dtype dtype;
    pl_extent shape;
    pl_class class;
    pl_host_use host;
    size_t bytes;
    /* derived by pl_graph_finish; meaningless for what lives throughout */
    int program;        /* the one that uses it, or -1 */
    size_t first, last; /* steps of that program, inclusive */
} pl_buffer;

/* ---- steps ---- */

/* Ops and their arguments, in order; every step may read the graph's scalars,
 * and clip writes them. r: read, w: written whole or in the rows
 * that it covers, u: updated (read and written), s: scratch of this step only.
 * "?" may be PL_NO_BUFFER. The constants that an op uses are in brackets. */
#define PL_OP_TABLE(X)                                                         \
    /* w x, r tokens, r wte, r wpe [rows T cols] */                            \
    X(PL_OP_EMBED, "embed")                                                    \
    /* u dwte, u dwpe, r dx, r tokens [rows T cols] */                         \
    X(PL_OP_EMBED_BWD, "embed.bwd")                                            \
    /* w y, w stats, r x, r weight, r? bias [rows cols] */                     \
    X(PL_OP_LAYERNORM, "layernorm")                                            \
    /* w|u dx, u dweight, u? dbias, r dy, r x, r stats, r weight               \
     * [rows cols] */                                                          \
    X(PL_OP_LAYERNORM_BWD, "layernorm.bwd")                                    \
    /* w y, r x, r w[inner, cols], r? bias, w? gelu, r? residual:              \
     * y = x w + bias; then gelu = GELU(y), or y = residual + drop(y)          \
     * [rows cols inner T] */                                                  \
    X(PL_OP_MATMUL, "matmul")                                                  \
    /* w y, r x, r w[cols, inner], r? fc: y = x w^T, then y *= GELU'(fc)       \
     * [rows cols inner] */                                                    \
    X(PL_OP_MATMUL_T, "matmul.t")                                              \
    /* u dw[inner, cols], r x[rows, inner], r dy[rows, cols]: dw += x^T dy */  \
    X(PL_OP_MATMUL_DW, "matmul.dw")                                            \
    /* u db, r dy [rows cols] */                                               \
    X(PL_OP_COLUMN_SUM, "column.sum")                                          \
    /* w att, w lse, r qkv, s scratch [rows T heads inner=D] */                \
    X(PL_OP_ATTENTION, "attention")                                            \
    /* w dqkv, r datt, r qkv, r att, r lse, s scratch */                       \
    X(PL_OP_ATTENTION_BWD, "attention.bwd")                                    \
    /* u cache, r qkv [T heads inner=D] */                                     \
    X(PL_OP_CACHE_APPEND, "cache.append")                                      \
    /* w att, r qkv, r cache, s scratch [T heads inner=D] */                   \
    X(PL_OP_ATTENTION_CACHED, "attention.cached")                              \
    /* w y, r x [rows cols] */                                                 \
    X(PL_OP_GELU, "gelu")                                                      \
    /* w y, r x: y = drop(x) [rows T cols] */                                  \
    X(PL_OP_DROP, "drop")                                                      \
    /* u y, r x: row block of the batch [rows cols T] */                       \
    X(PL_OP_CARRY, "carry")                                                    \
    /* u logits, w loss, r tokens [rows T cols=V] */                           \
    X(PL_OP_CROSS_ENTROPY, "cross.entropy")                                    \
    /* u sums, r loss [rows T] */                                              \
    X(PL_OP_LOSS_SUM, "loss.sum")                                              \
    /* w partial, r g [rows = elements] */                                     \
    X(PL_OP_SUMSQ, "sumsq")                                                    \
    /* r partial [rows = partials] */                                          \
    X(PL_OP_CLIP, "clip")                                                      \
    /* u w, u g, u m, u v, u? m's scales, u? v's scales, w? working copy       \
     * [rows = elements, inner = number of the tensor, the same in every       \
     * plan]: moments that have scales are of 8 bits */                        \
    X(PL_OP_ADAMW, "adamw")                                                    \
    /* w slice, r tensor: handed to the checkpoint's writer by the host */     \
    X(PL_OP_FETCH, "fetch")

typedef enum pl_op {
#define PL_OP_ENUM(id, text) id,
    PL_OP_TABLE(PL_OP_ENUM)
#undef PL_OP_ENUM
        PL_OP_COUNT
} pl_op;

const char *pl_op_name(pl_op op);

typedef enum pl_access { PL_READ, PL_WRITE, PL_UPDATE, PL_SCRATCH } pl_access;

typedef struct pl_arg {
    pl_buffer_id buffer;
    pl_access access;
    size_t row; /* first row that the step sees */
} pl_arg;

enum { PL_MAX_ARGS = 8 };

/* Bits of pl_step.flags. */
enum {
    PL_STEP_DECAY = 1,     /* adamw: weight decay applies */
    PL_STEP_GELU_TANH = 2, /* any GELU: OpenAI's form */
    PL_STEP_GRADIENT = 4,  /* cross.entropy: leave dlogits behind */
    PL_STEP_RUN_ROWS = 8,  /* rows and position are read from scalars */
    PL_STEP_LAST_ROW = 16, /* layernorm: one row, the last of x's such rows */
    /* matmul, matmul.t: weights kept as float32 are rounded as they are read */
    PL_STEP_ROUND_BF16 = 32,
    PL_STEP_ROUND_F16 = 64,
    PL_STEP_GELU = 128, /* matmul: y itself becomes GELU(y) */
};

typedef struct pl_step {
    pl_op op;
    int n_args;
    pl_arg args[PL_MAX_ARGS];
    size_t rows, cols, inner, T, heads; /* constants, per op */
    int layer;                          /* -1: none */
    unsigned site;                      /* dropout's, where there is one */
    unsigned flags;
    double dropout;
} pl_step;

/* ---- programs ---- */

#define PL_PROGRAM_TABLE(X)                                                    \
    X(PL_TRAIN, "train")                                                       \
    X(PL_UPDATE_WEIGHTS, "update")                                             \
    X(PL_EVAL, "eval")                                                         \
    X(PL_SAMPLE, "sample")                                                     \
    X(PL_SAVE, "save")

typedef enum pl_program_id {
#define PL_PROGRAM_ENUM(id, text) id,
    PL_PROGRAM_TABLE(PL_PROGRAM_ENUM)
#undef PL_PROGRAM_ENUM
        PL_PROGRAM_COUNT
} pl_program_id;

const char *pl_program_name(pl_program_id program);

/* The first `loop_steps` steps are repeated (once per micro-batch), the rest
 * run once afterwards. A buffer that a loop hands on, to its next round or to
 * the rest, lives through the whole loop. */
typedef struct pl_program {
    pl_step *steps;
    size_t n_steps, capacity, loop_steps;
} pl_program;

typedef struct pl_graph {
    pl_heap *heap;
    pl_buffer *buffers;
    size_t n_buffers, capacity;
    pl_program programs[PL_PROGRAM_COUNT];
    pl_buffer_id scalars; /* what changes between executions */
    pl_buffer_id packing; /* a row for each thread: scratch of any product */
    pl_step nowhere;      /* takes the steps that follow a failure */
    pl_status status; /* first failure while building; then all is ignored */
    pl_error error;
} pl_graph;

/* Building. Failures are kept in the graph and reported by pl_graph_finish, so
 * that a builder reads like the model it builds. `name` must live as long as
 * the graph. */
void pl_graph_begin(pl_graph *graph, pl_heap *heap);
pl_buffer_id pl_graph_buffer(pl_graph *graph, const char *name, pl_class class,
                             pl_dtype dtype, size_t rows, size_t cols);
void pl_graph_host(pl_graph *graph, pl_buffer_id buffer, pl_host_use use);

/* Appends a step; fill its arguments with pl_step_arg, its constants by hand.
 * The pointer is valid until the next pl_graph_step on the program. */
pl_step *pl_graph_step(pl_graph *graph, pl_program_id program, pl_op op);
void pl_step_arg(pl_step *step, pl_access access, pl_buffer_id buffer);
void pl_step_rows(pl_step *step, pl_access access, pl_buffer_id buffer,
                  size_t row);

/* Ends the repeated part of a program at what has been appended so far. */
void pl_graph_end_loop(pl_graph *graph, pl_program_id program);

/* Derives the lifetimes. A step that reads what nobody wrote, a buffer of two
 * programs, scratch that is used twice, a loop that was never ended, a row
 * outside its buffer: our own mistakes, PL_CHECK. */
PL_MUST_CHECK pl_status pl_graph_finish(pl_graph *graph, pl_error *err);

#endif
