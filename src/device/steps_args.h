/* steps_args.h: a step's arguments as kernels take them. Private to the files
 * that fill in kernels' structs. */
#ifndef PL_DEVICE_STEPS_ARGS_H
#define PL_DEVICE_STEPS_ARGS_H

#include "device/steps.h"

typedef const pl_steps_context cx;

/* The memory of argument i, from its first row on; NULL where absent. */
static inline void *arg(cx *c, const pl_step *step, int i)
{
    const pl_arg *a = &step->args[i];
    if (a->buffer == PL_NO_BUFFER)
        return NULL;
    const pl_buffer *b = &c->graph->buffers[a->buffer];
    return (unsigned char *)c->memory[a->buffer] +
           a->row * b->shape.cols * pl_dtype_bytes(b->dtype);
}

/* How the kernels know the dtype of argument i. */
static inline pl_storage storage_of(cx *c, const pl_step *step, int i)
{
    switch (c->graph->buffers[step->args[i].buffer].dtype) {
    case PL_BF16:
        return PL_STORE_BF16;
    case PL_F16:
        return PL_STORE_F16;
    default:
        return PL_STORE_F32;
    }
}

static inline const pl_controls *controls_of(cx *c)
{
    return c->controls;
}

static inline int has(const pl_step *step, int i)
{
    return step->args[i].buffer != PL_NO_BUFFER;
}

/* Argument i from element `first` on; NULL where absent. */
static inline void *arg_from(cx *c, const pl_step *step, int i, size_t first)
{
    unsigned char *memory = arg(c, step, i);
    if (!memory)
        return NULL;
    return memory + first * pl_dtype_bytes(
                                c->graph->buffers[step->args[i].buffer].dtype);
}

/* Elements of one row of argument i. */
static inline size_t row_of(cx *c, const pl_step *step, int i)
{
    return c->graph->buffers[step->args[i].buffer].shape.cols;
}

static inline size_t rows_of(cx *c, const pl_step *step)
{
    if (step->flags & PL_STEP_LOGIT_ROWS)
        return controls_of(c)->logits;
    return step->flags & PL_STEP_RUN_ROWS ? controls_of(c)->rows : step->rows;
}

/* The first row of x that a norm before the logits reads. */
static inline size_t first_row_of(cx *c, const pl_step *step)
{
    const pl_controls *controls = controls_of(c);
    return step->flags & PL_STEP_LAST_ROW ? controls->rows - 1
           : step->flags & PL_STEP_LOGIT_ROWS
               ? controls->rows - controls->logits
               : 0;
}

/* Rows of each sequence of a round that serves. */
static inline size_t queries_of(cx *c)
{
    return controls_of(c)->rows / controls_of(c)->sequences;
}

static inline size_t position_of(cx *c, const pl_step *step)
{
    return step->flags & PL_STEP_RUN_ROWS ? controls_of(c)->position : 0;
}

#endif
