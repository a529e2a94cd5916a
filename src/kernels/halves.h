/* halves.h: how a value is kept in memory: float32, or one of two 16-bit
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
#ifndef PL_KERNELS_HALVES_H
#define PL_KERNELS_HALVES_H

#include "kernels/dialect.h"

typedef enum pl_storage {
    PL_STORE_F32,
    PL_STORE_BF16,
    PL_STORE_F16,
} pl_storage;

/* The bits of 2^-56 and 2^-102. */
enum { PL_BF16_LEAST = 0x23800000, PL_SUM_LEAST = 0x0c800000 };

PL_INLINE uint16_t pl_bf16_make(float x)
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
PL_INLINE float pl_sum_start(float x)
{
    const uint32_t u = pl_float_bits(x);
    return pl_bits_float((u & 0x7fffffffu) < PL_SUM_LEAST ? u & 0x80000000u
                                                          : u);
}

PL_INLINE float pl_bf16_value(uint16_t x)
{
    return pl_bits_float((uint32_t)x << 16);
}

/* Without branches, so that loops vectorise. Below 2^-14, adding 1/2 leaves
 * the multiple of float16's smallest number in the low bits, rounded by the
 * addition; above, 0xfff and the last kept bit round as they carry. */
PL_INLINE uint16_t pl_f16_make(float x)
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
PL_INLINE float pl_f16_value(uint16_t x)
{
    const uint32_t h = x, sign = (h & 0x8000u) << 16, a = (h & 0x7fffu) << 13;
    const float tiny = pl_bits_float(a + 0x38800000u) - 0x1p-14f;
    uint32_t u = a + 0x38000000u;
    u = a >= 0x0f800000u ? a + 0x70000000u : u;
    u = a > 0x0f800000u ? u | 0x400000u : u;
    u = a < 0x00800000u ? pl_float_bits(tiny) : u;
    return pl_bits_float(u | sign);
}

#endif
