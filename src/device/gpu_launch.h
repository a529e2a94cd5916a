/* gpu_launch.h: from a kernel's arguments (kernels.h) to launches of a GPU's
 * kernels (kernels/gpu). Pointers are a GPU's addresses here, and never
 * followed.
 *
 * Owns: which kernel serves which shape, and grids. Doesn't know whose GPU. */
#ifndef PL_DEVICE_GPU_LAUNCH_H
#define PL_DEVICE_GPU_LAUNCH_H

#include "base/status.h"
#include "kernels/gpu/args.h"
#include "kernels/kernels.h"

typedef enum pl_gpu_kernel {
#define PL_GPU_ID(name, items, type) PL_GPU_##name,
    PL_GPU_KERNELS(PL_GPU_ID) PL_GPU_TENSOR_KERNELS(PL_GPU_ID)
#undef PL_GPU_ID
        PL_GPU_KERNEL_COUNT
} pl_gpu_kernel;

/* "gemm_nn", items of a group, bytes of its argument. */
typedef struct pl_gpu_kernel_info {
    const char *name;
    uint32_t items;
    uint32_t bytes;
    uint32_t is_tensor;   /* not every card has it */
    uint32_t local_bytes; /* of local memory that a launch asks for */
} pl_gpu_kernel_info;

extern const pl_gpu_kernel_info pl_gpu_kernels[PL_GPU_KERNEL_COUNT];

typedef struct pl_gpu_launch {
    pl_gpu_kernel kernel;
    uint32_t groups, groups_y;
    const void *args;
} pl_gpu_launch;

/* Where launches go. The first that fails ends the stream: later ones are
 * dropped, and `status` and `err` say why. */
typedef struct pl_gpu_stream {
    void *context;
    pl_products tensor; /* the arithmetic of its tensor cores; exact: none */
    pl_status (*launch)(void *context, const pl_gpu_launch *launch,
                        pl_error *err);
    pl_status status;
    pl_error *err;
} pl_gpu_stream;

/* Bytes of scratch that a product of these sizes can use: its smaller operand
 * transposed, where it has b transposed and is large. */
size_t pl_gpu_gemm_scratch(size_t M, size_t N, size_t K);

/* The same in tensor arithmetic: an operand of so many elements in 16 bits,
 * where it is kept in float32. */
size_t pl_gpu_tensor_scratch(size_t elements, pl_storage storage);

/* Bytes of scratch of attention's gradients. */
size_t pl_gpu_attention_bwd_scratch(size_t B, size_t T, size_t H);

#define PL_GPU_DECLARE(op)                                                     \
    void pl_gpu_##op(pl_gpu_stream *stream, const pl_##op *args);
PL_KERNEL_TABLE(PL_GPU_DECLARE)
#undef PL_GPU_DECLARE

#endif
