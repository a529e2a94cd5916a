/* storage.h: how a value is kept in memory: float32, or one of two 16-bit
 * formats that halve what is stored. Arithmetic is always float32.
 *
 * Rounding is to nearest, ties to even, as IEEE 754 has it. bfloat16 is the
 * upper half of a float32; float16 has 5 bits of exponent, and its denormals
 * are kept. What is too large becomes infinite. NaN stays NaN: quiet, with its
 * sign and its upper bits, which is what the processors' own conversions do;
 * sets that have those give the same bits as the functions here.
 *
 * What is below 2^-56 in magnitude becomes a bfloat16 zero of its sign. So
 * every bfloat16 is a multiple of 2^-63, and every sum of products of two of
 * them is a multiple of 2^-126: zero or a normal float32, in whatever order it
 * is added up. Instructions that take denormals for zero then give the same
 * bits as those that don't. A sum that begins with another number needs that
 * number to be such a multiple too: pl_sum_start. float16 needs no such rule,
 * its products being multiples of 2^-48. */
#ifndef PL_KERNELS_STORAGE_H
#define PL_KERNELS_STORAGE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum pl_storage {
    PL_STORE_F32,
    PL_STORE_BF16,
    PL_STORE_F16,
} pl_storage;

static inline size_t pl_storage_bytes(pl_storage storage)
{
    return storage == PL_STORE_F32 ? 4 : 2;
}

/* Where element i of x lies. */
static inline void *pl_storage_at(const void *x, size_t i, pl_storage storage)
{
    return (unsigned char *)x + i * pl_storage_bytes(storage);
}

static inline uint32_t pl_float_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float pl_bits_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* The bits of 2^-56 and 2^-102. */
enum { PL_BF16_LEAST = 0x23800000, PL_SUM_LEAST = 0x0c800000 };

static inline uint16_t pl_bf16_make(float x)
{
    const uint32_t u = pl_float_bits(x), a = u & 0x7fffffffu;
    const uint32_t even = u + 0x7fffu + (u >> 16 & 1u);
    const uint32_t quiet = u | 0x400000u;
    uint32_t h = a > 0x7f800000u ? quiet : even;
    h = a < PL_BF16_LEAST ? u & 0x80000000u : h;
    return (uint16_t)(h >> 16);
}

/* x, or a zero of its sign if it is below 2^-102: from there on every float32
 * is a multiple of 2^-126. */
static inline float pl_sum_start(float x)
{
    const uint32_t u = pl_float_bits(x);
    return pl_bits_float((u & 0x7fffffffu) < PL_SUM_LEAST ? u & 0x80000000u
                                                          : u);
}

static inline float pl_bf16_value(uint16_t x)
{
    return pl_bits_float((uint32_t)x << 16);
}

/* Without branches, so that loops vectorise. Below 2^-14, adding 1/2 leaves
 * the multiple of float16's smallest number in the low bits, rounded by the
 * addition; above, 0xfff and the last kept bit round as they carry. */
static inline uint16_t pl_f16_make(float x)
{
    const uint32_t u = pl_float_bits(x), a = u & 0x7fffffffu;
    const uint32_t tiny = pl_float_bits(pl_bits_float(a) + 0.5f) - 0x3f000000u;
    const uint32_t normal = (a - 0x38000000u + 0xfffu + (a >> 13 & 1u)) >> 13;
    const uint32_t nan = 0x7e00u | (a >> 13 & 0x3ffu);
    uint32_t h = a < 0x38800000u ? tiny : normal;
    h = a >= 0x47800000u ? 0x7c00u : h;
    h = a > 0x7f800000u ? nan : h;
    return (uint16_t)(h | (u >> 16 & 0x8000u));
}

/* A denormal is made as if it had the implied bit, which is taken off again by
 * an exact subtraction. */
static inline float pl_f16_value(uint16_t x)
{
    const uint32_t h = x, sign = (h & 0x8000u) << 16, a = (h & 0x7fffu) << 13;
    const float tiny = pl_bits_float(a + 0x38800000u) - 0x1p-14f;
    uint32_t u = a + 0x38000000u;
    u = a >= 0x0f800000u ? a + 0x70000000u : u;
    u = a > 0x0f800000u ? u | 0x400000u : u;
    u = a < 0x00800000u ? pl_float_bits(tiny) : u;
    return pl_bits_float(u | sign);
}

/* Element i of x. */
static inline float pl_storage_get(const void *x, size_t i, pl_storage storage)
{
    const void *at = pl_storage_at(x, i, storage);
    uint16_t half;
    float whole;
    if (storage == PL_STORE_F32) {
        memcpy(&whole, at, sizeof whole);
        return whole;
    }
    memcpy(&half, at, sizeof half);
    return storage == PL_STORE_BF16 ? pl_bf16_value(half) : pl_f16_value(half);
}

static inline void pl_storage_put(void *x, size_t i, float value,
                                  pl_storage storage)
{
    void *at = pl_storage_at(x, i, storage);
    if (storage == PL_STORE_F32) {
        memcpy(at, &value, sizeof value);
        return;
    }
    const uint16_t half = storage == PL_STORE_BF16 ? pl_bf16_make(value)
                                                   : pl_f16_make(value);
    memcpy(at, &half, sizeof half);
}

/* What is left of `value` after it was stored. */
static inline float pl_storage_round(float value, pl_storage storage)
{
    float rounded = value;
    if (storage != PL_STORE_F32) {
        uint16_t half;
        pl_storage_put(&half, 0, value, storage);
        rounded = pl_storage_get(&half, 0, storage);
    }
    return rounded;
}

#endif
