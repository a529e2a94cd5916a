/* gpu_set.c: see gpu_set.h. */
#define GPU_SET_ITSELF
#include "gpu_set.h"
#include "gpu/launch.h"

/* The tensor cores that a call asks for: the emulator has either. */
static pl_products products_of(const pl_products *products)
{
    if (products && *products)
        emulator.tensor_bits = pl_tensor_bits(*products);
    return products ? *products : PL_PRODUCTS_EXACT;
}

#define PRODUCTS(args)                                                         \
    _Generic((args),                                                           \
        const pl_gemm *: &((const pl_gemm *)(const void *)(args))->products,   \
        const pl_attention *:                                                  \
            &((const pl_attention *)(const void *)(args))->products,           \
        const pl_attention_bwd *:                                              \
            &((const pl_attention_bwd *)(const void *)(args))->products,       \
        default: NULL)

/* All of it is the first thread's. */
#define SLOT(op)                                                               \
    static void run_##op(const pl_##op *args, int ith, int nth)                \
    {                                                                          \
        pl_gpu_stream stream = { .launch = emulated_launch,                    \
                                 .tensor = products_of(PRODUCTS(args)) };      \
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
