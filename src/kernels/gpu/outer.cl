/* outer.cl: DiLoCo's outer step. */
#include "kernels/gpu/memory.clh"

KERNEL(outer, 256, gpu_outer)
{
    const uint64_t i = (uint64_t)GROUP * 256 + ITEM;
    GLOBAL float *g_at = AT(float, g.g) + i, *anchor_at = AT(float, g.anchor) + i,
                 *b_at = AT(float, g.b) + i;
    if (i >= g.count)
        return;
    const float anchor = READ(anchor_at);
    const float pulled = anchor - READ(g_at) * g.share;
    const float b = READ(b_at) * g.momentum + pulled;
    const float w = anchor - g.rate * (pulled + g.momentum * b);
    WRITE(b_at, b);
    WRITE(anchor_at, w);
    WRITE(AT(float, g.w) + i, w);
    WRITE(g_at, 0.0f);
    if (g.copy)
        set(AT(uint8_t, g.copy), i, w, g.copy_storage);
}
