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

#endif
