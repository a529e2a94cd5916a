/* cpu_update.h: the ops between the gradients of a group and the next weights,
 * from a step to a call of a kernel. Private to cpu_steps.c, which says what
 * the arguments are. */
#ifndef PL_DEVICE_CPU_UPDATE_H
#define PL_DEVICE_CPU_UPDATE_H

#include "device/cpu_context.h"

void pl_cpu_add(const cpu_context *c, const pl_step *s, int ith, int nth);
void pl_cpu_move(const cpu_context *c, const pl_step *s, int ith, int nth);
void pl_cpu_sumsq(const cpu_context *c, const pl_step *s, int ith, int nth);
void pl_cpu_clip(const cpu_context *c, const pl_step *s, int ith, int nth);
void pl_cpu_adamw(const cpu_context *c, const pl_step *s, int ith, int nth);

#endif
