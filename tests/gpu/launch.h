/* launch.h: a stream whose launches the emulator runs, on memory of this
 * program; what a kernel does wrong fails the test. */
#ifndef PL_TESTS_GPU_LAUNCH_H
#define PL_TESTS_GPU_LAUNCH_H

#include "device/gpu_launch.h"
#include "gpu/emulator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static inline pl_status
emulated_launch(void *context, const pl_gpu_launch *launch, pl_error *err)
{
    const pl_gpu_kernel_info *kernel = &pl_gpu_kernels[launch->kernel];
    (void)context, (void)err;
    const char *wrong = emulator_run(kernel->name, launch->groups,
                                     launch->groups_y, launch->args,
                                     kernel->bytes);
    if (wrong)
        fail_msg("%s", wrong);
    return PL_OK;
}

#endif
