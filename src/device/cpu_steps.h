/* cpu_steps.h: a step on the processor, this thread's share of it. Private to
 * device/cpu.c. */
#ifndef PL_DEVICE_CPU_STEPS_H
#define PL_DEVICE_CPU_STEPS_H

#include "device/cpu_context.h"

/* This thread's share of `step`. The caller has all threads meet afterwards. */
void pl_cpu_run_step(const cpu_context *context, const pl_step *step, int ith,
                     int nth);

#endif
