/* glu.cl: SwiGLU, forward and, in place, backward: a row in each group, four of
 * its columns in each item. */
#include "kernels/gpu/memory.clh"
#include "kernels/swiglu.h"

KERNEL(glu, 256, gpu_glu)
{
    const uint32_t c = 4 * (GROUP_Y * 256 + ITEM), F = g.F;
    const uint64_t at = 2 * (uint64_t)GROUP * F + c;
    GLOBAL const uint8_t *x = AT(uint8_t, g.x);
    float gate[4], up[4];
    if (c >= F)
        return;
    get4(gate, x, at, F - c, g.x_storage, g.vector, 0.0f);
    get4(up, x, at + F, F - c, g.x_storage, g.vector, 0.0f);
    for (int i = 0; i < 4; i++)
        gate[i] = swiglu1(gate[i], up[i]);
    set4(AT(uint8_t, g.y), (uint64_t)GROUP * F + c, gate, F - c, g.y_storage,
         g.vector);
}

KERNEL(glu_bwd, 256, gpu_glu)
{
    const uint32_t c = 4 * (GROUP_Y * 256 + ITEM), F = g.F;
    const uint64_t at = 2 * (uint64_t)GROUP * F + c;
    GLOBAL uint8_t *x = AT(uint8_t, g.x);
    float gate[4], up[4], dy[4];
    if (c >= F)
        return;
    get4(gate, x, at, F - c, g.x_storage, g.vector, 0.0f);
    get4(up, x, at + F, F - c, g.x_storage, g.vector, 0.0f);
    get4(dy, AT(uint8_t, g.dy), (uint64_t)GROUP * F + c, F - c, g.dy_storage,
         g.vector, 0.0f);
    for (int i = 0; i < 4; i++) {
        float dup;
        gate[i] = swiglu_slopes1(gate[i], up[i], dy[i], &dup);
        up[i] = dup;
    }
    set4(x, at, gate, F - c, g.x_storage, g.vector);
    set4(x, at + F, up, F - c, g.x_storage, g.vector);
}
