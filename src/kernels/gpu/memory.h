/* memory.h: elements of global memory in any storage, one and four at a time,
 * and masks. */
#ifndef PL_KERNELS_GPU_MEMORY_H
#define PL_KERNELS_GPU_MEMORY_H

#include "base/philox.h"
#include "kernels/gpu/args.h"
#include "kernels/gpu/gpu.h"
#include "kernels/halves.h"

PL_INLINE uint32_t bytes_of(const uint32_t storage)
{
    return storage == PL_STORE_F32 ? 4u : 2u;
}

PL_INLINE float half_value(uint32_t half, const uint32_t storage)
{
    return storage == PL_STORE_BF16 ? pl_bf16_value((uint16_t)half)
                                    : pl_f16_value((uint16_t)half);
}

PL_INLINE uint32_t half_make(float x, const uint32_t storage)
{
    return storage == PL_STORE_BF16 ? pl_bf16_make(x) : pl_f16_make(x);
}

/* What is left of x in a storage. */
PL_INLINE float rounded(float x, const uint32_t storage)
{
    return storage == PL_STORE_F32 ? x
                                   : half_value(half_make(x, storage), storage);
}

PL_INLINE float get(GLOBAL const uint8_t *p, uint64_t i, const uint32_t storage)
{
    if (storage == PL_STORE_F32)
        return READ((GLOBAL const float *)p + i);
    return half_value(READ((GLOBAL const uint16_t *)p + i), storage);
}

PL_INLINE void set(GLOBAL uint8_t *p, uint64_t i, float x,
                   const uint32_t storage)
{
    if (storage == PL_STORE_F32)
        WRITE((GLOBAL float *)p + i, x);
    else
        WRITE((GLOBAL uint16_t *)p + i, (uint16_t)half_make(x, storage));
}

/* Elements i .. i + 3, of which the first `count` are there; `pad` is the rest.
 * At once where that can be. */
PL_INLINE void get4(float v[4], GLOBAL const uint8_t *p, uint64_t i,
                    uint32_t count, const uint32_t storage, uint32_t vector,
                    float pad)
{
    if (vector && count >= 4 && storage == PL_STORE_F32) {
        const float4 f = READ(
            (GLOBAL const float4 *)((GLOBAL const float *)p + i));
        v[0] = f.x;
        v[1] = f.y;
        v[2] = f.z;
        v[3] = f.w;
    } else if (vector && count >= 4) {
        const uint2 h = READ(
            (GLOBAL const uint2 *)((GLOBAL const uint16_t *)p + i));
        v[0] = half_value(h.x & 0xffffu, storage);
        v[1] = half_value(h.x >> 16, storage);
        v[2] = half_value(h.y & 0xffffu, storage);
        v[3] = half_value(h.y >> 16, storage);
    } else {
        for (uint32_t e = 0; e < 4; e++)
            v[e] = e < count ? get(p, i + e, storage) : pad;
    }
}

PL_INLINE void set4(GLOBAL uint8_t *p, uint64_t i, const float v[4],
                    uint32_t count, const uint32_t storage, uint32_t vector)
{
    if (vector && count >= 4 && storage == PL_STORE_F32) {
        WRITE((GLOBAL float4 *)((GLOBAL float *)p + i),
              MAKE4(v[0], v[1], v[2], v[3]));
    } else if (vector && count >= 4) {
        WRITE((GLOBAL uint2 *)((GLOBAL uint16_t *)p + i),
              MAKE_WORDS2(half_make(v[0], storage) |
                              half_make(v[1], storage) << 16,
                          half_make(v[2], storage) |
                              half_make(v[3], storage) << 16));
    } else {
        for (uint32_t e = 0; e < 4 && e < count; e++)
            set(p, i + e, v[e], storage);
    }
}

PL_INLINE void take4(float v[4], LOCAL_PTR const float *p)
{
    const float4 f = TAKE((LOCAL_PTR const float4 *)p);
    v[0] = f.x;
    v[1] = f.y;
    v[2] = f.z;
    v[3] = f.w;
}

PL_INLINE void put4(LOCAL_PTR float *p, float a, float b, float c, float d)
{
    PUT((LOCAL_PTR float4 *)p, MAKE4(a, b, c, d));
}

/* ---- masks ---- */

PL_INLINE uint32_t word_of(const uint32_t words[4], uint32_t i)
{
    return i == 0 ? words[0] : i == 1 ? words[1] : i == 2 ? words[2] : words[3];
}

/* The words of columns 4 * quad .. of one row. */
PL_INLINE void mask_words(const gpu_dropout *d, uint32_t high, uint32_t row,
                          uint32_t sequence, uint32_t quad, uint32_t words[4])
{
    const uint32_t counter[4] = { high | quad, row, sequence, d->step };
    const uint32_t key[2] = { d->seed, d->key };
    pl_philox(counter, key, words);
}

PL_INLINE float kept(const gpu_dropout *d, uint32_t word, float x)
{
    const float scaled = x * d->scale;
    return word >= d->threshold ? scaled : 0.0f;
}

/* drop(x) of one element. */
PL_INLINE float dropped(const gpu_dropout *d, uint32_t high, uint32_t row,
                        uint32_t sequence, uint32_t column, float x)
{
    uint32_t words[4];
    if (!d->threshold)
        return x;
    mask_words(d, high, row, sequence, column / 4, words);
    return kept(d, word_of(words, column & 3u), x);
}

/* drop(x) of columns 4 * quad .. 4 * quad + 3. */
PL_INLINE void dropped4(const gpu_dropout *d, uint32_t row, uint32_t sequence,
                        uint32_t quad, float v[4])
{
    uint32_t words[4];
    if (!d->threshold)
        return;
    mask_words(d, 0, row, sequence, quad, words);
    for (int i = 0; i < 4; i++)
        v[i] = kept(d, words[i], v[i]);
}

#endif
