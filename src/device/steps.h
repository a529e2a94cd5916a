/* steps.h: from a step of the list to a call of a kernel, for every device
 * whose kernels take the arguments of kernels.h. Private to devices.
 *
 * Owns: which kernel an op is, and how its arguments follow from a step's. What
 * a pointer is only the kernels know: here they are added to, never followed.
 */
#ifndef PL_DEVICE_STEPS_H
#define PL_DEVICE_STEPS_H

#include "device/device.h"

/* Kernels, each called with the same worker. */
typedef struct pl_steps_calls {
#define PL_STEPS_SLOT(op) void (*op)(void *worker, const pl_##op *args);
    PL_KERNEL_TABLE(PL_STEPS_SLOT)
#undef PL_STEPS_SLOT
} pl_steps_calls;

typedef struct pl_steps_context {
    const pl_graph *graph;
    void *const *memory; /* per buffer: where the kernels find it */
    const pl_controls *controls;
    const pl_steps_calls *calls;
    pl_products products; /* of 16 bits */
    void *worker;
} pl_steps_context;

void pl_steps_run(const pl_steps_context *context, const pl_step *step);

#endif
