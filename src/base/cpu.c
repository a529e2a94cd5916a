/* cpu.c: see cpu.h. Asks the compiler's CPUID helpers and the scheduler. */
#include "base/cpu.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const char *const isa_names[PL_ISA_COUNT] = {
    [PL_ISA_BASE] = "base",
#if PL_HAVE_ARM64
    [PL_ISA_NEON] = "neon",
#else
    [PL_ISA_AVX2] = "avx2",
    [PL_ISA_AVX512] = "avx512",
#endif
};

#if defined(__x86_64__)
/* clang 14 has no name for it that __builtin_cpu_supports would take. */
static int supports_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

/* Asks for all that CMakeLists.txt lets the compiler use. */
static pl_isa best_isa(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    int avx2 = __builtin_cpu_supports("avx2") &&
               __builtin_cpu_supports("fma") &&
               __builtin_cpu_supports("bmi2") && supports_f16c();
    int avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                 __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") &&
                 __builtin_cpu_supports("avx512vl");
    return avx512 ? PL_ISA_AVX512 : avx2 ? PL_ISA_AVX2 : PL_ISA_BASE;
#elif PL_HAVE_ARM64
    return PL_ISA_NEON; /* no 64-bit ARM is without it */
#else
    return PL_ISA_BASE;
#endif
}

pl_isa pl_cpu_isa(void)
{
    pl_isa best = best_isa();
    const char *wish = getenv("PLIMSOLL_ISA");
    for (int isa = 0; wish && isa < PL_ISA_COUNT; isa++)
        if (isa < (int)best && strcmp(wish, isa_names[isa]) == 0)
            return (pl_isa)isa;
    return best;
}

const char *pl_cpu_isa_name(pl_isa isa)
{
    return isa_names[isa];
}

int pl_cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    return 1;
}
