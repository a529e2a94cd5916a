/* cpu_steps.c: see cpu_steps.h. */
#include "device/cpu_steps.h"
#include "device/steps.h"

typedef struct worker {
    const pl_kernels *kernels;
    int ith, nth;
} worker;

#define CALL(op)                                                               \
    static void call_##op(void *who, const pl_##op *args)                      \
    {                                                                          \
        const worker *w = who;                                                 \
        w->kernels->op(args, w->ith, w->nth);                                  \
    }
PL_KERNEL_TABLE(CALL)

/* Its thread's part of the packing room. */
static void call_gemm_with_room(void *who, const pl_gemm *args)
{
    const worker *w = who;
    pl_gemm gemm = *args;
    if (gemm.scratch)
        gemm.scratch += (size_t)w->ith * gemm.scratch_floats;
    call_gemm(who, &gemm);
}

void pl_cpu_run_step(const cpu_context *context, const pl_step *step, int ith,
                     int nth)
{
#define ENTRY(op) .op = call_##op,
    static const pl_steps_calls calls = { PL_KERNEL_TABLE(ENTRY) };
    worker w = { &context->kernels, ith, nth };
    pl_steps_calls with_room = calls;
    with_room.gemm = call_gemm_with_room;
    const pl_steps_context steps = {
        .graph = context->graph,
        .memory = context->memory,
        .controls = context->memory[context->graph->controls],
        .calls = &with_room,
        .products = context->products,
        .worker = &w
    };
    pl_steps_run(&steps, step);
}
