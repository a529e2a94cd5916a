/* cpu.h: what this machine can do, asked once. */
#ifndef PL_BASE_CPU_H
#define PL_BASE_CPU_H

/* The instruction sets that kernels are built for, worst first: those of the
 * kind of processor that this was compiled for. */
typedef enum pl_isa {
    PL_ISA_BASE,
#if PL_HAVE_ARM64
    PL_ISA_NEON,
#else
    PL_ISA_AVX2,
    PL_ISA_AVX512,
#if PL_HAVE_AVX512BF16
    PL_ISA_AVX512BF16,
#endif
#if PL_HAVE_AMX
    PL_ISA_AMX,
#endif
#endif
    PL_ISA_COUNT
} pl_isa;

/* The best one that this processor and operating system support; avx512bf16 and
 * amx only where they round as they should, avx512bf16 only where it is found
 * to be faster (cpu_bf16.h, cpu_amx.h). The environment variable PLIMSOLL_ISA
 * (base, avx2, avx512, avx512bf16, amx, neon) names another that they support.
 */
pl_isa pl_cpu_isa(void);
const char *pl_cpu_isa_name(pl_isa isa);

/* Processors this process may run on: affinity mask; at least 1. */
int pl_cpu_count(void);

#endif
