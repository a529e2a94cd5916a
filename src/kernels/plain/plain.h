/* plain.h: the threaded C kernels, compiled once per instruction set.
 *
 * Every file of this folder is compiled with PL_ISA = base, and avx2, avx512,
 * avx512bf16 and amx or neon, and that set's flags; PL_K(gemm) is the set's
 * symbol, pl_avx2_gemm say. All else is static, so that nothing compiled for
 * one set can be linked into another. Needs -ffp-contract=off: multiply-adds
 * are written as fma1 or v_fma, never left to the compiler. Wants
 * -fno-math-errno -fno-trapping-math, which change no result: without them GCC
 * vectorises neither sqrt nor selections. */
#ifndef PL_KERNELS_PLAIN_PLAIN_H
#define PL_KERNELS_PLAIN_PLAIN_H

#include "kernels/kernels.h"

#define PL_K_JOIN(isa, op) pl_##isa##_##op
#define PL_K_NAME(isa, op) PL_K_JOIN(isa, op)

/* sets.c has no PL_ISA: it names the sets itself. */
#ifdef PL_ISA
#define PL_K(op) PL_K_NAME(PL_ISA, op)
#endif

#define PL_PLAIN_BASE(op)                                                      \
    void pl_base_##op(const pl_##op *args, int ith, int nth);
#define PL_PLAIN_AVX2(op)                                                      \
    void pl_avx2_##op(const pl_##op *args, int ith, int nth);
#define PL_PLAIN_AVX512(op)                                                    \
    void pl_avx512_##op(const pl_##op *args, int ith, int nth);
#define PL_PLAIN_AVX512BF16(op)                                                \
    void pl_avx512bf16_##op(const pl_##op *args, int ith, int nth);
#define PL_PLAIN_AMX(op)                                                       \
    void pl_amx_##op(const pl_##op *args, int ith, int nth);
#define PL_PLAIN_NEON(op)                                                      \
    void pl_neon_##op(const pl_##op *args, int ith, int nth);
PL_KERNEL_TABLE(PL_PLAIN_BASE)
PL_KERNEL_TABLE(PL_PLAIN_AVX2)
PL_KERNEL_TABLE(PL_PLAIN_AVX512)
PL_KERNEL_TABLE(PL_PLAIN_AVX512BF16)
PL_KERNEL_TABLE(PL_PLAIN_AMX)
PL_KERNEL_TABLE(PL_PLAIN_NEON)
double pl_base_peak(size_t rounds, float *sink);
void pl_base_read(const float *x, size_t count, float *sink);
double pl_avx2_peak(size_t rounds, float *sink);
void pl_avx2_read(const float *x, size_t count, float *sink);
double pl_avx512_peak(size_t rounds, float *sink);
void pl_avx512_read(const float *x, size_t count, float *sink);
double pl_avx512bf16_peak(size_t rounds, float *sink);
double pl_avx512bf16_peak_bf16(size_t rounds, float *sink);
void pl_avx512bf16_read(const float *x, size_t count, float *sink);
double pl_amx_peak(size_t rounds, float *sink);
double pl_amx_peak_matrices(size_t rounds, float *sink);
void pl_amx_read(const float *x, size_t count, float *sink);
double pl_neon_peak(size_t rounds, float *sink);
void pl_neon_read(const float *x, size_t count, float *sink);
#undef PL_PLAIN_BASE
#undef PL_PLAIN_AVX2
#undef PL_PLAIN_AVX512
#undef PL_PLAIN_AVX512BF16
#undef PL_PLAIN_AMX
#undef PL_PLAIN_NEON

#endif
