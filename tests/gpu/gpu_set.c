/* gpu_set.c: see gpu_set.h. */
#define GPU_SET_ITSELF
#include "gpu_set.h"
#include "device/gpu_launch.h"
#include "gpu/emulator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static pl_status run(void *context, const pl_gpu_launch *launch, pl_error *err)
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

/* All of it is the first thread's. */
#define SLOT(op)                                                               \
    static void run_##op(const pl_##op *args, int ith, int nth)                \
    {                                                                          \
        pl_gpu_stream stream = { .launch = run };                              \
        (void)nth;                                                             \
        if (ith == 0)                                                          \
            pl_gpu_##op(&stream, args);                                        \
    }
PL_KERNEL_TABLE(SLOT)

static double no_peak(size_t rounds, float *sink)
{
    (void)rounds;
    *sink = 0.0f;
    return 0.0;
}

static void no_read(const float *x, size_t count, float *sink)
{
    (void)x, (void)count;
    *sink = 0.0f;
}

pl_isa gpu_set_last(void)
{
    return (pl_isa)(pl_cpu_isa() + 1);
}

pl_kernels gpu_set_for(pl_isa isa)
{
    if (isa <= pl_cpu_isa())
        return pl_kernels_for(isa);
#define FILL(op) .op = run_##op,
    return (pl_kernels){ .name = "gpu",
                         .arithmetic = PL_ARITHMETIC_FUSED,
                         PL_KERNEL_TABLE(FILL).peak = no_peak,
                         .read = no_read };
}
