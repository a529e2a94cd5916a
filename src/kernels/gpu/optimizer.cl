/* optimizer.cl: the gradient's norm by blocks, clipping, and AdamW. */
#include "kernels/gpu/double.clh"
#include "kernels/gpu/memory.clh"
#include "kernels/gpu/rounding.clh"
#include "kernels/vmath.h"

/* ---- the norm ---- */

enum { SUMSQ_BLOCK = 16384, SUMSQ_LANES = 8, SUMSQ_BLOCKS = 32, SUMSQ_WIDE = 32 };

/* A group has 32 blocks of 8 lanes. It reads 32 elements of each block at a
 * time, a block by a warp. */
KERNEL(sumsq, 256, gpu_sumsq)
{
    LOCAL float room[SUMSQ_BLOCKS * (SUMSQ_WIDE + 1)];
    LOCAL real64 sums[256];
    const uint32_t lane = ITEM % SUMSQ_LANES, own = ITEM / SUMSQ_LANES;
    const uint64_t first = (uint64_t)GROUP * SUMSQ_BLOCKS;
    GLOBAL const float *x = AT(float, g.x);
    real64 sum = real64_of(0.0f);
    /* of the longest block: most tensors of a model are shorter than one */
    const uint64_t left = g.count - first * SUMSQ_BLOCK;
    const uint32_t most = left < SUMSQ_BLOCK ? (uint32_t)left : SUMSQ_BLOCK;
    for (uint32_t c = 0; c < most; c += SUMSQ_WIDE) {
        for (uint32_t b = ITEM / SUMSQ_WIDE; b < SUMSQ_BLOCKS;
             b += 256 / SUMSQ_WIDE) {
            const uint64_t i = (first + b) * SUMSQ_BLOCK + c +
                               ITEM % SUMSQ_WIDE;
            float v = 0.0f; /* whose square changes no sum */
            if (i < g.count)
                v = READ(x + (g.cols ? i / g.cols * g.row + i % g.cols : i));
            PUT(room + b * (SUMSQ_WIDE + 1) + ITEM % SUMSQ_WIDE, v);
        }
        BARRIER();
        for (uint32_t i = lane; i < SUMSQ_WIDE; i += SUMSQ_LANES)
            sum = real64_add(sum, real64_square(TAKE(
                                      room + own * (SUMSQ_WIDE + 1) + i)));
        BARRIER();
    }
    PUT(sums + ITEM, sum);
    BARRIER();
    for (uint32_t w = SUMSQ_LANES / 2; w; w /= 2) {
        if (lane < w)
            PUT(sums + ITEM,
                real64_add(TAKE(sums + ITEM), TAKE(sums + ITEM + w)));
        BARRIER();
    }
    if (lane == 0 && (first + own) * SUMSQ_BLOCK < g.count)
        WRITE(AT(real64, g.partial) + first + own, TAKE(sums + ITEM));
}

/* A few thousand numbers, one after the other: the first item's. The others
 * bring them. */
KERNEL(clip, 64, gpu_clip)
{
    LOCAL real64 some[64];
    GLOBAL const real64 *partial = AT(real64, g.partial);
    const real64 one = real64_of(1.0f), scale = real64_bits(g.loss_scale),
                 least = real64_bits(0x3eb0c6f7a0b5ed8dUL); /* 1e-6 */
    real64 sum = real64_of(0.0f), factor = one;
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
    const real64 norm = real64_divide(real64_root(sum), scale),
                 ratio = real64_divide(real64_of(g.grad_clip),
                                       real64_add(norm, least));
    if (g.grad_clip > 0.0f && real64_less(ratio, one))
        factor = ratio;
    WRITE(AT(float, g.grad_norm), real64_float(norm));
    WRITE(AT(float, g.clip), real64_float(real64_divide(factor, scale)));
    WRITE(AT(uint32_t, g.skipped), real64_is_finite(norm) ? 0u : 1u);
}

/* ---- AdamW ---- */

PL_INLINE chances adamw_chances(const gpu_adamw *g)
{
    chances of;
    of.seed = g->seed;
    of.step = g->step;
    of.tensor = g->tensor;
    return of;
}

/* The step on one element; m and v go in and out. */
PL_INLINE void adamw_element(const gpu_adamw *g, GLOBAL uint8_t *w_at,
                             GLOBAL float *g_at, GLOBAL uint8_t *copy,
                             float clip, uint64_t i, float *m, float *v)
{
    const float grad = READ(g_at + i) * clip;
    const float mean = *m + (grad - *m) * g->beta1_rest;
    const float square = *v * g->beta2 + grad * grad * g->beta2_rest;
    const float root = sqrt1(square) / g->root_correction + g->eps;
    const float w = get(w_at, i, g->w_storage) * g->keep -
                    g->step_size * mean / root;
    WRITE(g_at + i, 0.0f);
    if (g->w_storage == PL_STORE_F32) {
        WRITE((GLOBAL float *)w_at + i, w);
    } else {
        WRITE((GLOBAL uint16_t *)w_at + i,
              bf16_by_chance(w, chance(adamw_chances(g), ROUNDED_WEIGHT,
                                       g->first + i)));
    }
    if (g->copy)
        set(copy, i, w, g->copy_storage);
    *m = mean;
    *v = square;
}

KERNEL(adamw, 256, gpu_adamw)
{
    const uint64_t i = (uint64_t)GROUP * 256 + ITEM;
    GLOBAL float *m_at = AT(float, g.m) + i, *v_at = AT(float, g.v) + i,
                 *g_at = AT(float, g.g);
    if (i >= g.count)
        return;
    if (g.skipped && READ(AT(uint32_t, g.skipped))) {
        WRITE(g_at + i, 0.0f);
        return;
    }
    float m = READ(m_at), v = READ(v_at);
    adamw_element(&g, AT(uint8_t, g.w), g_at, AT(uint8_t, g.copy),
                  g.clip ? READ(AT(float, g.clip)) : 1.0f, i, &m,
                  &v);
    WRITE(m_at, m);
    WRITE(v_at, v);
}

/* Moments of 8 bits: a group has a block of them. */
KERNEL(adamw_codes, 256, gpu_adamw)
{
    LOCAL float room[256];
    const uint64_t block = GROUP, i = block * 256 + ITEM;
    const int there = i < g.count;
    GLOBAL int8_t *m_at = AT(int8_t, g.m) + i;
    GLOBAL uint8_t *v_at = AT(uint8_t, g.v) + i;
    GLOBAL float *m_scales = AT(float, g.m_scales) + block,
                 *v_scales = AT(float, g.v_scales) + block;
    float m = 0.0f, v = 0.0f;
    if (g.skipped && READ(AT(uint32_t, g.skipped))) {
        if (there)
            WRITE(AT(float, g.g) + i, 0.0f);
        return; /* all of the group does */
    }
    if (there) {
        const int32_t r = READ(v_at);
        const float root = (float)(r * r) * (READ(v_scales) / 65025.0f);
        m = mean_of_code(READ(m_at), READ(m_scales));
        v = root * root;
        adamw_element(&g, AT(uint8_t, g.w), AT(float, g.g),
                      AT(uint8_t, g.copy), g.clip ? READ(AT(float, g.clip)) : 1.0f, i, &m,
                  &v);
    }
    const float size = abs1(m), root = sqrt1(v);
    const float m_scale = group_largest(room, size),
                v_scale = group_largest(room, root);
    if (there) {
        const chances of = adamw_chances(&g);
        const int32_t c = code_of(size, m_scale, 127,
                                  chance(of, ROUNDED_MEAN, g.first + i)),
                      r = code_of(root, v_scale, 255,
                                  chance(of, ROUNDED_SQUARE, g.first + i)),
                      least = v_scale > 0.0f && v > 0.0f ? 1 : 0;
        WRITE(m_at, (int8_t)(m < 0.0f ? -c : c));
        WRITE(v_at, (uint8_t)(r > least ? r : least));
    }
    BARRIER_ALL(); /* all have read the scales of before */
    if (ITEM == 0) {
        WRITE(m_scales, m_scale);
        WRITE(v_scales, v_scale);
    }
}
