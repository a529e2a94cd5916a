/* graph.h: the step list.
 *
 * A graph is data: buffers (name, dtype, shape, class) and programs, which are
 * lists of steps (op, arguments with their access, constants). The planner
 * derives every lifetime from it, a device executes it, and `plan` prints it.
 * No lifetime, size or offset is written by hand.
 *
 * Owns: the two tables, on the heap that was given. Never touches tensor
 * memory, and doesn't know what an op computes. */
#ifndef PL_PLAN_GRAPH_H
#define PL_PLAN_GRAPH_H

#include "base/arena.h"
#include "plan/ops.h"
#include "plan/tensor.h"

#include <stdint.h>

/* ---- buffers ---- */

#define PL_CLASS_TABLE(X)                                                      \
    X(PL_CLASS_WEIGHT, "weights", 1)                                           \
    X(PL_CLASS_COPY, "working copy", 1)                                        \
    X(PL_CLASS_GRADIENT, "gradients", 1)                                       \
    X(PL_CLASS_MOMENT, "moments", 1)                                           \
    X(PL_CLASS_OUTER, "outer state", 1)                                        \
    X(PL_CLASS_CONTROL, "control", 1)                                          \
    X(PL_CLASS_PACKING, "packing", 1)                                          \
    X(PL_CLASS_ROTARY, "rotary table", 1)                                      \
    X(PL_CLASS_SAVED, "saved activations", 0)                                  \
    X(PL_CLASS_TRANSIENT, "transient", 0)                                      \
    X(PL_CLASS_TOKENS, "tokens", 0)                                            \
    X(PL_CLASS_CACHE, "kv cache", 0)

/* The third column: whether it lives throughout the run, in all programs. */
typedef enum pl_class {
#define PL_CLASS_ENUM(id, text, lives) id,
    PL_CLASS_TABLE(PL_CLASS_ENUM)
#undef PL_CLASS_ENUM
        PL_CLASS_COUNT
} pl_class;

const char *pl_class_name(pl_class class);
int pl_class_lives_throughout(pl_class class);

/* What the host (the code that calls a device) does with a buffer of a program:
 * its lifetime then reaches to the program's first or last step. The host
 * writes before every round of a loop, or once before all of them if a step
 * after the loop reads the buffer too. */
typedef enum pl_host_use {
    PL_HOST_NONE,
    PL_HOST_WRITES,
    PL_HOST_READS,
} pl_host_use;

/* Whose memory a buffer lies in. What no device's op touches is the host's: it
 * has a pointer to it, and the device writes it only where the host asks. */
typedef enum pl_space { PL_SPACE_DEVICE, PL_SPACE_HOST } pl_space;

typedef struct pl_buffer {
    const char *name;
    pl_dtype dtype;
    pl_space space;
    pl_extent shape;
    pl_class class;
    pl_host_use host;
    size_t bytes;
    /* derived by pl_graph_finish; meaningless for what lives throughout */
    int program;        /* the one that uses it, or -1 */
    size_t first, last; /* steps of that program, inclusive */
} pl_buffer;

/* ---- programs ---- */

#define PL_PROGRAM_TABLE(X)                                                    \
    X(PL_TRAIN, "train")                                                       \
    X(PL_ADD_GROUPS, "groups")                                                 \
    X(PL_UPDATE_WEIGHTS, "update")                                             \
    X(PL_SYNC, "sync")                                                         \
    X(PL_EVAL, "eval")                                                         \
    X(PL_SAMPLE, "sample")                                                     \
    X(PL_SAVE, "save")                                                         \
    X(PL_SERVE, "serve")

typedef enum pl_program_id {
#define PL_PROGRAM_ENUM(id, text) id,
    PL_PROGRAM_TABLE(PL_PROGRAM_ENUM)
#undef PL_PROGRAM_ENUM
        PL_PROGRAM_COUNT
} pl_program_id;

const char *pl_program_name(pl_program_id program);

/* The first `loop_steps` steps are repeated (once per micro-batch, or per carry
 * of the groups' counter), the rest run once afterwards. A buffer that a loop
 * hands on, to its next round or to the rest, lives through the whole loop. */
typedef struct pl_program {
    pl_step *steps;
    size_t n_steps, capacity, loop_steps;
} pl_program;

typedef struct pl_graph {
    pl_heap *heap;
    pl_buffer *buffers;
    size_t n_buffers, capacity;
    pl_program programs[PL_PROGRAM_COUNT];
    pl_buffer_id controls; /* what changes between executions */
    pl_buffer_id packing;  /* a row for each thread: scratch of any product */
    pl_step nowhere;       /* takes the steps that follow a failure */
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
/* In the host's space instead of the device's; fetch is the only op for it. */
void pl_graph_in_host(pl_graph *graph, pl_buffer_id buffer);

/* Appends a step; fill its arguments with pl_step_arg (ops.h), its constants by
 * hand. The pointer is valid until the next pl_graph_step on the program. */
pl_step *pl_graph_step(pl_graph *graph, pl_program_id program, pl_op op);

/* Ends the repeated part of a program at what has been appended so far. */
void pl_graph_end_loop(pl_graph *graph, pl_program_id program);

/* Derives the lifetimes. A step that isn't as its op's signature says (its
 * arguments, their dtypes and sizes, its constants and flags), a step that
 * reads what nobody wrote, a buffer of two programs, scratch that is used
 * twice, a loop that was never ended, a row outside its buffer, an op on what
 * is the host's: our own mistakes, PL_CHECK. */
PL_MUST_CHECK pl_status pl_graph_finish(pl_graph *graph, pl_error *err);

#endif
