/* vec.h: one native vector of floats, for the loops where the accumulators
 * must stay in registers whatever the compiler thinks. Everything elementwise
 * is plain C instead, which compilers vectorise well.
 *
 * Intrinsics appear where no operator means the instruction: with
 * -ffp-contract=off none is a fused multiply-add, and none is a maximum. */
#ifndef PL_KERNELS_PLAIN_VEC_H
#define PL_KERNELS_PLAIN_VEC_H

#include "kernels/dialect.h"

/* PL_NEON: this is the set neon; every 64-bit ARM has its instructions, so
 * that no macro of the compiler's tells it from base. */
#if defined(__FMA__)
#include <immintrin.h>
#elif defined(PL_NEON)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__) && defined(__FMA__)
enum { VL = 16 };
#elif defined(__FMA__)
enum { VL = 8 };
#else
enum { VL = 4 };
#endif

typedef float vf __attribute__((vector_size(VL * sizeof(float))));
typedef int32_t vi __attribute__((vector_size(VL * sizeof(int32_t))));
typedef uint32_t vu __attribute__((vector_size(VL * sizeof(uint32_t))));

#if defined(__clang__)
#define PL_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PL_UNROLL _Pragma("GCC unroll 16")
#endif

PL_INLINE vf v_fma(vf a, vf b, vf c)
{
#if defined(__AVX512F__) && defined(__FMA__)
    return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
    return _mm256_fmadd_ps(a, b, c);
#elif defined(PL_NEON)
    return vfmaq_f32(c, a, b);
#else
    return a * b + c;
#endif
}

/* a > b ? a : b, so that a NaN in b is handed on. */
PL_INLINE vf v_max(vf a, vf b)
{
#if defined(__AVX512F__) && defined(__FMA__)
    return _mm512_max_ps(a, b);
#elif defined(__FMA__)
    return _mm256_max_ps(a, b);
#elif defined(PL_NEON)
    return vbslq_f32(vcgtq_f32(a, b), a, b);
#else
    for (int i = 0; i < VL; i++)
        b[i] = a[i] > b[i] ? a[i] : b[i];
    return b;
#endif
}

PL_INLINE vf v_load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

PL_INLINE void v_store(float *p, vf v)
{
    memcpy(p, &v, sizeof v);
}

/* x in every element; subtracting +0 keeps every value, -0 too. */
PL_INLINE vf v_all(float x)
{
    return x - (vf){ 0 };
}

/* a where a bit is set, b where it isn't. */
PL_INLINE vf v_select(vi where, vf a, vf b)
{
    return (vf)(((vi)a & where) | ((vi)b & ~where));
}

/* Toward zero to integers, which must be able to hold it. */
PL_INLINE vi v_cut(vf x)
{
    return __builtin_convertvector(x, vi);
}

/* Whether an element has its highest bit set. */
PL_INLINE int v_any(vi x)
{
#if defined(__AVX512F__) && defined(__FMA__)
    return _mm512_movepi32_mask((__m512i)x) != 0;
#elif defined(__FMA__)
    return _mm256_movemask_ps((__m256)x) != 0;
#else
    int32_t all = 0;
    for (int i = 0; i < VL; i++)
        all |= x[i];
    return all < 0;
#endif
}

#endif
