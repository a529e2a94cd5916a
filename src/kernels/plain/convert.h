/* convert.h: rows of stored values to float and back, eight or
 * sixteen at a time. The bits are those of storage.h. */
#ifndef PL_KERNELS_PLAIN_CONVERT_H
#define PL_KERNELS_PLAIN_CONVERT_H

#include "kernels/plain/vec.h"
#include "kernels/storage.h"

typedef uint16_t half8 __attribute__((vector_size(16)));
typedef uint32_t word8 __attribute__((vector_size(32)));
typedef int32_t signed8 __attribute__((vector_size(32)));

enum { EIGHT = 8 };

/* Eight of each: floats from halves, halves from floats. storage is constant
 * where these are inlined, and not float32. */
PL_INLINE void widen8(float *to, const uint16_t *from, pl_storage storage)
{
    if (storage == PL_STORE_BF16) {
        half8 h;
        memcpy(&h, from, sizeof h);
        const word8 w = __builtin_convertvector(h, word8) << 16;
        memcpy(to, &w, sizeof w);
        return;
    }
#if defined(__F16C__)
    _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128((const void *)from)));
#elif defined(PL_NEON)
    const float16x8_t h = vreinterpretq_f16_u16(vld1q_u16(from));
    vst1q_f32(to, vcvt_f32_f16(vget_low_f16(h)));
    vst1q_f32(to + 4, vcvt_high_f32_f16(h));
#else
    for (int i = 0; i < EIGHT; i++)
        to[i] = pl_f16_value(from[i]);
#endif
}

/* bfloat16s in the upper halves: pl_bf16_make. */
PL_INLINE void bf16_upper8(word8 *to, const float *from)
{
    word8 u;
    memcpy(&u, from, sizeof u);
    const word8 size = u & 0x7fffffffu;
    const word8 nan = (word8)((signed8)size > 0x7f800000);
    const word8 tiny = (word8)((signed8)size < PL_BF16_LEAST);
    const word8 up = 0x7fffu + (u >> 16 & 1u);
    /* tiny >> 1: all but the sign */
    *to = ((u + (up & ~nan)) | (nan & 0x400000u)) & ~(tiny >> 1);
}

#if defined(__AVX512F__) && defined(__FMA__)
/* The same of sixteen; the lower halves are zero. */
PL_INLINE __m512i bf16_upper16(__m512 x)
{
    const __m512i u = _mm512_castps_si512(x),
                  size = _mm512_and_si512(u, _mm512_set1_epi32(0x7fffffff)),
                  odd = _mm512_and_si512(_mm512_srli_epi32(u, 16),
                                         _mm512_set1_epi32(1)),
                  up = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q),
                    tiny = _mm512_cmplt_epi32_mask(
                        size, _mm512_set1_epi32(PL_BF16_LEAST));
    const __m512i rounded = _mm512_mask_or_epi32(
        _mm512_add_epi32(u, up), nan, u, _mm512_set1_epi32(0x400000));
    const __m512i kept = _mm512_mask_mov_epi32(
        _mm512_set1_epi32((int)0xffff0000u), tiny,
        _mm512_set1_epi32((int)0x80000000u));
    return _mm512_and_si512(rounded, kept);
}

PL_INLINE __m512 widen16(const uint16_t *from, pl_storage storage)
{
    const __m256i h = _mm256_loadu_si256((const void *)from);
    if (storage == PL_STORE_F16)
        return _mm512_cvtph_ps(h);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

PL_INLINE void narrow16(uint16_t *to, __m512 x, pl_storage storage)
{
    const __m256i h = storage == PL_STORE_F16
                          ? _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)
                          : _mm512_cvtepi32_epi16(
                                _mm512_srli_epi32(bf16_upper16(x), 16));
    _mm256_storeu_si256((void *)to, h);
}

PL_INLINE __m512 round16(__m512 x, pl_storage storage)
{
    if (storage == PL_STORE_F16)
        return _mm512_cvtph_ps(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
    return _mm512_castsi512_ps(bf16_upper16(x));
}
#endif

#if defined(__AVX512BF16__)
/* pl_bf16_make of 32 floats, in their order. */
PL_INLINE __m512i bf16_round32(__m512 first, __m512 second)
{
    const __m512i size = _mm512_set1_epi32(0x7fffffff),
                  least = _mm512_set1_epi32(PL_BF16_LEAST);
    const __mmask32 tiny = _mm512_kunpackw(
        _mm512_cmplt_epu32_mask(
            _mm512_and_si512(_mm512_castps_si512(second), size), least),
        _mm512_cmplt_epu32_mask(
            _mm512_and_si512(_mm512_castps_si512(first), size), least));
    const __m512i rounded = (__m512i)_mm512_cvtne2ps_pbh(second, first);
    return _mm512_mask_mov_epi16(
        rounded, tiny,
        _mm512_and_si512(rounded, _mm512_set1_epi16((short)0x8000)));
}
#endif

PL_INLINE void narrow8(uint16_t *to, const float *from, pl_storage storage)
{
    if (storage == PL_STORE_BF16) {
        word8 u;
        bf16_upper8(&u, from);
        const half8 h = __builtin_convertvector(u >> 16, half8);
        memcpy(to, &h, sizeof h);
        return;
    }
#if defined(__F16C__)
    _mm_storeu_si128((void *)to, _mm256_cvtps_ph(_mm256_loadu_ps(from),
                                                 _MM_FROUND_TO_NEAREST_INT));
#elif defined(PL_NEON)
    const float16x4_t low = vcvt_f16_f32(vld1q_f32(from));
    vst1q_u16(
        to, vreinterpretq_u16_f16(vcvt_high_f16_f32(low, vld1q_f32(from + 4))));
#else
    for (int i = 0; i < EIGHT; i++)
        to[i] = pl_f16_make(from[i]);
#endif
}

/* Floats to floats, as if they had been stored in between. */
PL_INLINE void round8(float *to, const float *from, pl_storage storage)
{
    uint16_t half[EIGHT];
    if (storage == PL_STORE_BF16) {
        word8 u;
        bf16_upper8(&u, from);
        u &= 0xffff0000u;
        memcpy(to, &u, sizeof u);
        return;
    }
    narrow8(half, from, storage);
    widen8(to, half, storage);
}

/* The last few go through a full eight on the stack: nothing is read or
 * written beyond the end. */
PL_INLINE void widen_row(float *restrict to, const uint16_t *restrict from,
                         size_t count, pl_storage storage)
{
    uint16_t part[EIGHT] = { 0 };
    float whole[EIGHT];
    size_t i = 0;
#if defined(__AVX512F__) && defined(__FMA__)
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(to + i, widen16(from + i, storage));
#endif
    for (; i + EIGHT <= count; i += EIGHT)
        widen8(to + i, from + i, storage);
    if (i < count) {
        memcpy(part, from + i, (count - i) * sizeof *part);
        widen8(whole, part, storage);
        memcpy(to + i, whole, (count - i) * sizeof *whole);
    }
}

PL_INLINE void narrow_row(uint16_t *restrict to, const float *restrict from,
                          size_t count, pl_storage storage)
{
    uint16_t part[EIGHT];
    float whole[EIGHT] = { 0 };
    size_t i = 0;
#if defined(__AVX512BF16__)
    for (; i + 32 <= count && storage == PL_STORE_BF16; i += 32)
        _mm512_storeu_si512(to + i,
                            bf16_round32(_mm512_loadu_ps(from + i),
                                         _mm512_loadu_ps(from + i + 16)));
#endif
#if defined(__AVX512F__) && defined(__FMA__)
    for (; i + 16 <= count; i += 16)
        narrow16(to + i, _mm512_loadu_ps(from + i), storage);
#endif
    for (; i + EIGHT <= count; i += EIGHT)
        narrow8(to + i, from + i, storage);
    if (i < count) {
        memcpy(whole, from + i, (count - i) * sizeof *whole);
        narrow8(part, whole, storage);
        memcpy(to + i, part, (count - i) * sizeof *part);
    }
}

PL_INLINE void round_row(float *restrict to, const float *restrict from,
                         size_t count, pl_storage storage)
{
    float whole[EIGHT] = { 0 };
    size_t i = 0;
#if defined(__AVX512F__) && defined(__FMA__)
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(to + i, round16(_mm512_loadu_ps(from + i), storage));
#endif
    for (; i + EIGHT <= count; i += EIGHT)
        round8(to + i, from + i, storage);
    if (i < count) {
        memcpy(whole, from + i, (count - i) * sizeof *whole);
        round8(whole, whole, storage);
        memcpy(to + i, whole, (count - i) * sizeof *whole);
    }
}

/* to[r * to_row + c] = from[r * from_row + c], read as `storage`. */
static inline void widen_rows(float *to, size_t to_row, const void *from,
                              size_t from_row, size_t rows, size_t count,
                              pl_storage storage)
{
    const uint16_t *half = from;
    const float *whole = from;
    if (storage == PL_STORE_F32)
        for (size_t r = 0; r < rows; r++)
            memcpy(to + r * to_row, whole + r * from_row, count * sizeof *to);
    else if (storage == PL_STORE_BF16)
        for (size_t r = 0; r < rows; r++)
            widen_row(to + r * to_row, half + r * from_row, count,
                      PL_STORE_BF16);
    else
        for (size_t r = 0; r < rows; r++)
            widen_row(to + r * to_row, half + r * from_row, count,
                      PL_STORE_F16);
}

/* The other way round: written as `storage`. */
static inline void narrow_rows(void *to, size_t to_row, const float *from,
                               size_t from_row, size_t rows, size_t count,
                               pl_storage storage)
{
    uint16_t *half = to;
    float *whole = to;
    if (storage == PL_STORE_F32)
        for (size_t r = 0; r < rows; r++)
            memcpy(whole + r * to_row, from + r * from_row,
                   count * sizeof *from);
    else if (storage == PL_STORE_BF16)
        for (size_t r = 0; r < rows; r++)
            narrow_row(half + r * to_row, from + r * from_row, count,
                       PL_STORE_BF16);
    else
        for (size_t r = 0; r < rows; r++)
            narrow_row(half + r * to_row, from + r * from_row, count,
                       PL_STORE_F16);
}

/* Floats to floats, rounded to `storage` on the way. */
static inline void round_rows(float *to, size_t to_row, const float *from,
                              size_t from_row, size_t rows, size_t count,
                              pl_storage storage)
{
    if (storage == PL_STORE_BF16)
        for (size_t r = 0; r < rows; r++)
            round_row(to + r * to_row, from + r * from_row, count,
                      PL_STORE_BF16);
    else
        for (size_t r = 0; r < rows; r++)
            round_row(to + r * to_row, from + r * from_row, count,
                      PL_STORE_F16);
}

static inline void widen(float *to, const void *from, size_t count,
                         pl_storage storage)
{
    widen_rows(to, 0, from, 0, 1, count, storage);
}

static inline void narrow(void *to, const float *from, size_t count,
                          pl_storage storage)
{
    narrow_rows(to, 0, from, 0, 1, count, storage);
}

/* Elements that are converted at a time, on the stack: whole LANES. */
enum { STACK_FLOATS = 256 };

/* How many of the elements from i on are converted next. */
static inline size_t stack_count(size_t i, size_t end)
{
    return end - i < STACK_FLOATS ? end - i : STACK_FLOATS;
}

/* `count` elements of x from `at` on as float32: in place, or in `room`. */
static inline const float *as_floats(float room[STACK_FLOATS], const void *x,
                                     size_t at, size_t count,
                                     pl_storage storage)
{
    const void *from = pl_storage_at(x, at, storage);
    if (storage == PL_STORE_F32)
        return from;
    widen(room, from, count, storage);
    return room;
}

#endif
