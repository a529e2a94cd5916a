/* elementwise.cl: GELU and relu2, dropout alone, copies, and what measures the device. */
#include "kernels/gpu/gelu.clh"
#include "kernels/gpu/memory.clh"

KERNEL(gelu, 256, gpu_gelu)
{
    const uint64_t i = (uint64_t)GROUP * 256 + ITEM;
    if (i < g.count) {
        const float x = get(AT(uint8_t, g.x), i, g.x_storage);
        set(AT(uint8_t, g.y), i, gelu_of(x, g.gelu), g.y_storage);
    }
}

KERNEL(drop, 256, gpu_drop)
{
    const uint32_t r = GROUP, c = GROUP_Y * 256 + ITEM;
    if (c < g.C) {
        const uint64_t at = (uint64_t)r * g.C + c;
        set(AT(uint8_t, g.y), at,
            dropped(&g.dropout, 0, r % g.T, g.dropout.sequence + r / g.T, c,
                    READ(AT(float, g.x) + at)),
            g.y_storage);
    }
}

KERNEL(copy, 256, gpu_copy)
{
    const uint32_t r = GROUP, c = GROUP_Y * 256 + ITEM;
    if (c < g.C) {
        uint32_t place = r;
        if (g.positions) {
            const uint32_t sequence = r / g.queries;
            place = sequence * g.keys + r % g.queries +
                    (uint32_t)READ(AT(int32_t, g.positions) + sequence);
        }
        const uint64_t to = (uint64_t)place * g.y_row + c,
                       from = (uint64_t)r * g.x_row + c;
        if (g.bytes == 4)
            WRITE(AT(uint32_t, g.y) + to, READ(AT(uint32_t, g.x) + from));
        else
            WRITE(AT(uint16_t, g.y) + to, READ(AT(uint16_t, g.x) + from));
    }
}

/* ---- measuring ---- */

/* 32 chains of `rounds` multiply-adds in every item; they end in y. */
KERNEL(probe_flops, 256, gpu_probe)
{
    float acc[32], sum = 0.0f;
    const float a = 1.0f - 1e-7f * (float)ITEM, b = 1e-3f * (float)GROUP;
    UNROLL
    for (int i = 0; i < 32; i++)
        acc[i] = (float)i;
    for (uint32_t round = 0; round < g.rounds; round++) {
        UNROLL
        for (int i = 0; i < 32; i++)
            acc[i] = fma1(acc[i], a, b);
    }
    UNROLL
    for (int i = 0; i < 32; i++)
        sum = sum + acc[i];
    WRITE(AT(float, g.y) + (uint64_t)GROUP * 256 + ITEM, sum);
}

/* Reads x, in fours; something that depends on it ends in y. */
KERNEL(probe_reads, 256, gpu_probe)
{
    GLOBAL const uint4 *x = AT(uint4, g.x);
    uint32_t sum = 0;
    for (uint64_t i = (uint64_t)GROUP * 256 + ITEM; i < g.count;
         i += (uint64_t)g.rounds * 256) {
        const uint4 v = READ(x + i);
        sum ^= v.x ^ v.y ^ v.z ^ v.w;
    }
    WRITE(AT(uint32_t, g.y) + (uint64_t)GROUP * 256 + ITEM, sum);
}
