/* cpu_context.h: what steps run on, in a device that runs the processor's
 * kernels. */
#ifndef PL_DEVICE_CPU_CONTEXT_H
#define PL_DEVICE_CPU_CONTEXT_H

#include "kernels/kernels.h"
#include "plan/graph.h"

typedef struct cpu_context {
    const pl_graph *graph;
    void **memory; /* per buffer */
    pl_kernels kernels;
    pl_products products; /* of 16 bits */
} cpu_context;

#endif
