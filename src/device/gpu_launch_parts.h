/* gpu_launch_parts.h: what gpu_launch.c and its like share. Private to them. */
#ifndef PL_DEVICE_GPU_LAUNCH_PARTS_H
#define PL_DEVICE_GPU_LAUNCH_PARTS_H

#include "base/check.h"
#include "base/rng.h"
#include "device/gpu_launch.h"

/* `groups` times `groups_y` groups of a kernel; none is fine. */
static inline void launch(pl_gpu_stream *stream, pl_gpu_kernel kernel,
                          size_t groups, size_t groups_y, const void *args)
{
    const pl_gpu_launch it = { .kernel = kernel,
                               .groups = (uint32_t)groups,
                               .groups_y = (uint32_t)groups_y,
                               .args = args };
    if (stream->status || groups == 0 || groups_y == 0)
        return;
    /* what CUDA and ROCm take: y has 16 bits, items in x 32 */
    PL_CHECK(groups_y < 65536 &&
             groups < ((uint64_t)1 << 32) / pl_gpu_kernels[kernel].items);
    stream->status = stream->launch(stream->context, &it, stream->err);
}

static inline size_t ceil_div(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

static inline uint64_t address(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static inline uint32_t word(size_t count)
{
    PL_CHECK(count <= UINT32_MAX);
    return (uint32_t)count;
}

/* Whether fours from p on, `row` elements from row to row, can be accessed at
 * once. */
static inline int is_aligned(const void *p, pl_storage storage, size_t row)
{
    return address(p) % (4 * pl_storage_bytes(storage)) == 0 && row % 4 == 0;
}

static inline gpu_dropout dropout_of(const pl_dropout *d)
{
    return (gpu_dropout){ .threshold = d->threshold,
                          .scale = d->scale,
                          .seed = d->seed,
                          .step = d->step,
                          .key = (uint32_t)PL_RNG_DROPOUT | d->site << 8 |
                                 d->layer << 16,
                          .sequence = d->sequence };
}

enum { LANE_ROWS = 16 }; /* of a group of lanes.clh */

#endif
