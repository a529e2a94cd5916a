/* dialect.h: the few words in which vmath.h, gelu.h and halves.h are written,
 * so that one text is compiled as C for every instruction set, as OpenCL C and
 * as CUDA, and computes the same bits in all of them.
 *
 * What this asks of a compiler: no contraction of multiplications and additions
 * (C: -ffp-contract=off; OpenCL: the pragma below; CUDA: -fmad=false), division
 * and square root correctly rounded, denormals kept. The text of a GPU's
 * program has no #include: cmake/gpu_source.cmake puts these files into one. */
#ifndef PL_KERNELS_DIALECT_H
#define PL_KERNELS_DIALECT_H

#if defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__)

#pragma OPENCL FP_CONTRACT OFF
#define PL_OPENCL 1
typedef uint uint32_t;
typedef int int32_t;
typedef ushort uint16_t;
typedef uchar uint8_t;
typedef char int8_t;
typedef ulong uint64_t;
typedef long int64_t;
/* -DPL_CARD: not a processor's compiler. What isn't inlined and unrolled there
 * has its arrays in memory. */
#ifdef PL_CARD
#define PL_INLINE static inline __attribute__((always_inline))
#else
#define PL_INLINE static inline
#endif

PL_INLINE uint32_t pl_float_bits(float x)
{
    return as_uint(x);
}

PL_INLINE float pl_bits_float(uint32_t u)
{
    return as_float(u);
}

PL_INLINE float fma1(float a, float b, float c)
{
    return fma(a, b, c);
}

PL_INLINE float sqrt1(float x)
{
    return sqrt(x);
}

#elif defined(__CUDACC__)

#define PL_CUDA   1
typedef unsigned int uint32_t;
typedef int int32_t;
typedef unsigned short uint16_t;
typedef unsigned char uint8_t;
typedef signed char int8_t;
typedef unsigned long uint64_t;
typedef long int64_t;
#define PL_INLINE static __device__ __forceinline__
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif

PL_INLINE uint32_t pl_float_bits(float x)
{
    return __float_as_uint(x);
}

PL_INLINE float pl_bits_float(uint32_t u)
{
    return __uint_as_float(u);
}

PL_INLINE float fma1(float a, float b, float c)
{
    return __fmaf_rn(a, b, c);
}

PL_INLINE float sqrt1(float x)
{
    return __fsqrt_rn(x);
}

#else

#include <math.h>
#include <stdint.h>
#include <string.h>

#define PL_INLINE static inline __attribute__((always_inline))

PL_INLINE uint32_t pl_float_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

PL_INLINE float pl_bits_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* a * b + c with one rounding where the set has it, with two elsewhere. */
PL_INLINE float fma1(float a, float b, float c)
{
#if defined(__FMA__) || defined(PL_NEON) || defined(PL_EMULATED)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

PL_INLINE float sqrt1(float x)
{
    return sqrtf(x);
}

#endif
#endif
