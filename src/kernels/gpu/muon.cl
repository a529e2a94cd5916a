/* muon.cl: what Muon computes beside its products. */
#include "kernels/gpu/double.clh"
#include "kernels/gpu/memory.clh"
#include "kernels/gpu/rounding.clh"
#include "kernels/vmath.h"

/* ---- the moment ---- */

/* The gradient becomes Nesterov's blend; the moment goes in and out. */
PL_INLINE float muon_blend(const gpu_muon_moment *g, GLOBAL float *g_at,
                           float clip, float m)
{
    const float grad = READ(g_at) * clip;
    const float mean = m + (grad - m) * g->momentum_rest;
    WRITE(g_at, grad + (mean - grad) * g->momentum);
    return mean;
}

KERNEL(muon_moment, 256, gpu_muon_moment)
{
    const uint64_t i = (uint64_t)GROUP * 256 + ITEM;
    GLOBAL float *m_at = AT(float, g.m) + i, *g_at = AT(float, g.g) + i;
    if (i >= g.count)
        return;
    if (g.skipped && READ(AT(uint32_t, g.skipped))) {
        WRITE(g_at, 0.0f);
        return;
    }
    WRITE(m_at, muon_blend(&g, g_at, g.clip ? READ(AT(float, g.clip)) : 1.0f,
                           READ(m_at)));
}

/* A moment of 8 bits: a group has a block of it. */
KERNEL(muon_moment_codes, 256, gpu_muon_moment)
{
    LOCAL float room[256];
    const uint64_t block = GROUP, i = block * 256 + ITEM;
    const int there = i < g.count;
    GLOBAL int8_t *m_at = AT(int8_t, g.m) + i;
    GLOBAL float *g_at = AT(float, g.g) + i,
                 *scales = AT(float, g.m_scales) + block;
    float m = 0.0f;
    if (g.skipped && READ(AT(uint32_t, g.skipped))) {
        if (there)
            WRITE(g_at, 0.0f);
        return; /* all of the group does */
    }
    if (there)
        m = muon_blend(&g, g_at, g.clip ? READ(AT(float, g.clip)) : 1.0f,
                       mean_of_code(READ(m_at), READ(scales)));
    const float size = abs1(m), scale = group_largest(room, size);
    if (there) {
        chances of;
        of.seed = g.seed;
        of.step = g.step;
        of.tensor = g.tensor;
        const int32_t c = code_of(size, scale, 127,
                                  chance(of, ROUNDED_MEAN, i));
        WRITE(m_at, (int8_t)(m < 0.0f ? -c : c));
    }
    BARRIER_ALL(); /* all have read the scale of before */
    if (ITEM == 0)
        WRITE(scales, scale);
}

/* ---- around the products ---- */

/* A few hundred numbers, one after the other: the first item's. The others
 * bring them. */
KERNEL(muon_norm, 64, gpu_muon_norm)
{
    LOCAL real64 some[64];
    GLOBAL const real64 *partial = AT(real64, g.partial);
    real64 sum = real64_of(0.0f);
    for (uint64_t i0 = 0; i0 < g.count; i0 += 64) {
        BARRIER();
        if (i0 + ITEM < g.count)
            PUT(some + ITEM, READ(partial + i0 + ITEM));
        BARRIER();
        for (uint32_t i = 0; i < 64 && i0 + i < g.count && ITEM == 0; i++)
            sum = real64_add(sum, TAKE(some + i));
    }
    if (ITEM)
        return;
    const real64 least = real64_bits(0x3e7ad7f29abcaf48UL); /* 1e-7 */
    WRITE(AT(float, g.factor),
          real64_float(real64_divide(real64_of(1.0f),
                                     real64_add(real64_root(sum), least))));
}

/* A group has a tile of 32 x 32, which it reads along whatever lies together.
 */
KERNEL(muon_part, 256, gpu_muon_part)
{
    enum { SIDE = 32, ROW = SIDE + 1 };
    LOCAL float room[SIDE * ROW];
    const int turned = g.x_col != 1;
    const uint32_t r0 = GROUP_Y * SIDE, c0 = GROUP * SIDE, at = ITEM % SIDE;
    const float factor = g.factor ? READ(AT(float, g.factor)) : 1.0f;
    for (uint32_t i = ITEM / SIDE; i < SIDE; i += 256 / SIDE) {
        const uint32_t r = turned ? at : i, c = turned ? i : at;
        if (r0 + r < g.rows && c0 + c < g.cols) {
            float x = get(AT(uint8_t, g.x),
                          (uint64_t)(r0 + r) * g.x_row +
                              (uint64_t)(c0 + c) * g.x_col,
                          g.x_storage) *
                      g.scale;
            if (g.factor)
                x = x * factor;
            PUT(room + r * ROW + c, x);
        }
    }
    BARRIER();
    for (uint32_t i = ITEM / SIDE; i < SIDE; i += 256 / SIDE)
        if (r0 + i < g.rows && c0 + at < g.cols)
            set(AT(uint8_t, g.y), (uint64_t)(r0 + i) * g.y_row + c0 + at,
                TAKE(room + i * ROW + at), g.y_storage);
}

KERNEL(muon_poly, 256, gpu_muon_poly)
{
    const uint32_t r = GROUP, c = GROUP_Y * 256 + ITEM;
    if (c < g.n) {
        const uint64_t at = (uint64_t)r * g.n + c;
        const float a = get(AT(uint8_t, g.a), at, g.storage),
                    b = get(AT(uint8_t, g.b), at, g.storage);
        float sum = g.linear * a + g.square * b;
        if (r == c)
            sum = sum + g.unit;
        set(AT(uint8_t, g.b), at, sum, g.storage);
    }
}

/* ---- the weights ---- */

KERNEL(muon_apply, 256, gpu_muon_apply)
{
    const uint64_t i = (uint64_t)GROUP * 256 + ITEM;
    GLOBAL float *g_at = AT(float, g.g) + i;
    GLOBAL uint8_t *w_at = AT(uint8_t, g.w);
    if (i >= g.count)
        return;
    const float step = g.rate * READ(g_at);
    WRITE(g_at, 0.0f);
    if (g.skipped && READ(AT(uint32_t, g.skipped)))
        return;
    const float w = get(w_at, i, g.w_storage) * g.keep - step;
    if (g.w_storage == PL_STORE_F32) {
        WRITE((GLOBAL float *)w_at + i, w);
    } else {
        chances of;
        of.seed = g.seed;
        of.step = g.step;
        of.tensor = g.tensor;
        WRITE((GLOBAL uint16_t *)w_at + i,
              bf16_by_chance(w, chance(of, ROUNDED_WEIGHT, i)));
    }
    if (g.copy)
        set(AT(uint8_t, g.copy), i, w, g.copy_storage);
}
