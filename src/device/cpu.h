/* cpu.h: the processor as a device: it works in the host's memory. */
#ifndef PL_DEVICE_CPU_H
#define PL_DEVICE_CPU_H

#include "device/device_kind.h"

extern const pl_device_kind pl_device_cpu;

/* Besides the instruction sets (base/cpu.h), as a variant: the reference. */
enum { PL_CPU_REF = -1 };

/* `threads` threads with the kernels of an instruction set, or the reference's.
 */
pl_device_info pl_cpu_info(int variant, size_t threads);
pl_kernels pl_cpu_kernels(const pl_device_info *info);

#endif
