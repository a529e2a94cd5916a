/* optimizer.cl: the gradient's norm by blocks, clipping, and AdamW. */
#include "kernels/gpu/double.clh"
#include "kernels/gpu/memory.clh"
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
                v = READ(x + i);
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

enum { ROUNDED_WEIGHT, ROUNDED_MEAN, ROUNDED_SQUARE };

/* The random word of an element's stochastic rounding. */
PL_INLINE uint32_t chance(const gpu_adamw *g, uint32_t what, uint64_t element)
{
    const uint32_t counter[4] = { (uint32_t)((g->first + element) / 4),
                                  g->tensor, what, g->step };
    const uint32_t key[2] = { g->seed, 6u }; /* PL_RNG_ROUND */
    uint32_t words[4];
    pl_philox(counter, key, words);
    return word_of(words, (uint32_t)element & 3u);
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
        const uint32_t u = pl_float_bits(w),
                       number = u + (chance(g, ROUNDED_WEIGHT, i) >> 16),
                       nan = u | 0x400000u;
        uint32_t h = w == w ? number : nan;
        h = (h & 0x7fffffffu) < PL_BF16_LEAST ? h & 0x80000000u : h;
        WRITE((GLOBAL uint16_t *)w_at + i, (uint16_t)(h >> 16));
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

/* The largest of a group's x >= 0, and 0 if that is below 1e-30. */
PL_INLINE float group_largest(LOCAL_PTR float *room, float x)
{
    BARRIER();
    PUT(room + ITEM, x > 0.0f ? x : 0.0f);
    BARRIER();
    for (uint32_t w = 128; w; w /= 2) {
        if (ITEM < w) {
            const float a = TAKE(room + ITEM), b = TAKE(room + ITEM + w);
            PUT(room + ITEM, b > a ? b : a);
        }
        BARRIER();
    }
    float all = TAKE(room);
    all = all > 3.40282347e+38f ? 3.40282347e+38f : all;
    return all < 1e-30f ? 0.0f : all;
}

PL_INLINE int32_t code_of(float x, float scale, int32_t most, uint32_t word)
{
    const float end = (float)(most * most),
                factor = scale > 0.0f ? end / scale : 0.0f;
    const float y = x * factor, bounded = y <= end ? y : end;
    const int32_t c = (int32_t)sqrt1(bounded);
    const float part = (bounded - (float)(c * c)) / (float)(2 * c + 1);
    const float luck = (float)(int32_t)(word >> 8) * 5.9604644775390625e-08f;
    const int32_t up = luck < part ? 1 : 0;
    return c + up < most ? c + up : most;
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
        const int32_t c = READ(m_at), r = READ(v_at);
        const float size = (float)(c * c) * (READ(m_scales) / 16129.0f);
        const float root = (float)(r * r) * (READ(v_scales) / 65025.0f);
        m = c < 0 ? -size : size;
        v = root * root;
        adamw_element(&g, AT(uint8_t, g.w), AT(float, g.g),
                      AT(uint8_t, g.copy), g.clip ? READ(AT(float, g.clip)) : 1.0f, i, &m,
                  &v);
    }
    const float size = abs1(m), root = sqrt1(v);
    const float m_scale = group_largest(room, size),
                v_scale = group_largest(room, root);
    if (there) {
        const int32_t c = code_of(size, m_scale, 127,
                                  chance(&g, ROUNDED_MEAN, i)),
                      r = code_of(root, v_scale, 255,
                                  chance(&g, ROUNDED_SQUARE, i)),
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
