/* add.cl: sums of groups, and zeros. */
#include "kernels/gpu/memory.clh"

KERNEL(add, 256, gpu_floats)
{
    const uint64_t i = (uint64_t)GROUP * 256 + ITEM;
    GLOBAL float *y = AT(float, g.y) + i;
    if (i < g.count)
        WRITE(y, READ(AT(float, g.x) + i) + READ(y));
}

KERNEL(move, 256, gpu_floats)
{
    const uint64_t i = (uint64_t)GROUP * 256 + ITEM;
    GLOBAL float *x = AT(float, g.x) + i;
    if (i < g.count) {
        WRITE(AT(float, g.y) + i, READ(x));
        WRITE(x, 0.0f);
    }
}

KERNEL(clear, 256, gpu_floats)
{
    const uint64_t i = (uint64_t)GROUP * 256 + ITEM;
    if (i < g.count)
        WRITE(AT(float, g.x) + i, 0.0f);
}
