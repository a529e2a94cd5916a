/* emulated_device.h: a GPU that the emulator is, as a device: device/gpu.c and
 * its launches over memory of this program, in banks of a size that a test
 * chooses. */
#ifndef PL_TESTS_GPU_EMULATED_DEVICE_H
#define PL_TESTS_GPU_EMULATED_DEVICE_H

#include "device/gpu.h"

extern const pl_gpu_kind emulated_device;

/* What it has, and gives at once; what was taken, and is. */
extern size_t emulated_memory_bytes, emulated_bank_bytes;
size_t emulated_taken_bytes(void);

/* The nth call from now on fails, and all after it; 0: none. */
void emulated_fail_at(long nth);
long emulated_calls(void);

#endif
