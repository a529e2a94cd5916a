/* gpu.h: the words in which the kernels of this folder are written, one text
 * for three compilers:
 *
 *   OpenCL C 1.2   one memory in up to four banks (a device may refuse to give
 *                  more than a quarter of it in one piece); an address is
 *                  bank + 1 in its upper 16 bits, and an offset
 *   CUDA           an address is a pointer
 *   C              tests/gpu/emulator.c: every work-item is a fibre, every
 *                  access to memory is looked at
 *
 * So that the emulator can look, memory is accessed by READ and WRITE (global)
 * and by TAKE and PUT (local) alone. Groups are one-dimensional; a grid has two
 * dimensions. There are no atomics, no sub-groups, and no transcendental
 * function but those of vmath.h: what a kernel computes is what kernels.h
 * says. */
#ifndef PL_KERNELS_GPU_GPU_H
#define PL_KERNELS_GPU_GPU_H

#include "kernels/dialect.h"

#if defined(PL_OPENCL)

#ifndef PL_SOFT_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define KERNEL(name, items, type)                                              \
    __kernel __attribute__((reqd_work_group_size(items, 1, 1))) void name(     \
        __global uint8_t *bank0, __global uint8_t *bank1,                      \
        __global uint8_t *bank2, __global uint8_t *bank3, const type g)
#define GLOBAL     __global
#define LOCAL      __local
#define LOCAL_PTR  __local
#define ALIGNED_16 __attribute__((aligned(16)))
#define BARRIER()  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define ITEM       ((uint32_t)get_local_id(0))
#define GROUP      ((uint32_t)get_group_id(0))
#define GROUP_Y    ((uint32_t)get_group_id(1))
/* PoCL runs what it doesn't unroll faster, and compiles it in a fifth of the
 * time; others unroll what they should by themselves. */
#define UNROLL
#define NO_UNROLL
#define MAKE4(a, b, c, d) ((float4)(a, b, c, d))
#define MAKE_WORDS4(a, b, c, d) ((uint4)(a, b, c, d))
#define MAKE_WORDS2(a, b)       ((uint2)(a, b))
#define AT(type, address)                                                      \
    ((GLOBAL type *)(bank_of(address, bank0, bank1, bank2, bank3) +            \
                     ((address) & 0xffffffffffffUL)))

PL_INLINE GLOBAL uint8_t *bank_of(uint64_t address, GLOBAL uint8_t *bank0,
                                  GLOBAL uint8_t *bank1, GLOBAL uint8_t *bank2,
                                  GLOBAL uint8_t *bank3)
{
    const uint32_t bank = (uint32_t)(address >> 48);
    return bank == 2 ? bank1 : bank == 3 ? bank2 : bank == 4 ? bank3 : bank0;
}

#elif defined(PL_CUDA)

#define KERNEL(name, items, type)                                              \
    extern "C" __global__ void __launch_bounds__(items) name(const type g)
#define GLOBAL
#define LOCAL     __shared__
#define LOCAL_PTR
#define ALIGNED_16 __align__(16)
#define BARRIER() __syncthreads()
#define ITEM      ((uint32_t)threadIdx.x)
#define GROUP     ((uint32_t)blockIdx.x)
#define GROUP_Y   ((uint32_t)blockIdx.y)
#define UNROLL    _Pragma("unroll")
#define NO_UNROLL _Pragma("unroll 1")
#define MAKE4(a, b, c, d)       make_float4(a, b, c, d)
#define MAKE_WORDS4(a, b, c, d) make_uint4(a, b, c, d)
#define MAKE_WORDS2(a, b)       make_uint2(a, b)
#define AT(type, address)       ((type *)(address))

#else

#include "gpu/emulated.h"

#endif

#ifndef PL_EMULATED
#define READ(p)         (*(p))
#define WRITE(p, value) (*(p) = (value))
#define TAKE(p)         (*(p))
#define PUT(p, value)   (*(p) = (value))
#endif

#endif
