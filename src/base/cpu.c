/* cpu.c: see cpu.h. Asks the compiler's CPUID helpers and the scheduler. */
#include "base/cpu.h"
#include "base/cpu_amx.h"
#include "base/cpu_bf16.h"

#include <sched.h>
#include <stdatomic.h>
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
#if PL_HAVE_AVX512BF16
    [PL_ISA_AVX512BF16] = "avx512bf16",
#endif
#if PL_HAVE_AMX
    [PL_ISA_AMX] = "amx",
#endif
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

#if PL_HAVE_AVX512BF16
/* What is found out once: any thread may be the first, all find the same. */
typedef enum verdict { UNASKED, NO, YES } verdict;

static int once(atomic_int *known, int (*ask)(void))
{
    int unasked = UNASKED;
    if (atomic_load(known) == UNASKED)
        atomic_compare_exchange_strong(known, &unasked, ask() ? YES : NO);
    return atomic_load(known) == YES;
}

static int is_named(pl_isa isa, const char *wish)
{
    return wish && strcmp(wish, isa_names[isa]) == 0;
}

/* By AMX bfloat16 has an arithmetic of its own, so that no stopwatch may
 * decide: the same processor has to find the same set every time. It multiplies
 * several times faster than anything else wherever it is. */
#if PL_HAVE_AMX
static int has_amx(const char *wish)
{
    static atomic_int has, rounds;
    return !is_named(PL_ISA_AVX512BF16, wish) && once(&has, pl_cpu_has_amx) &&
           once(&rounds, pl_cpu_amx_rounds);
}
#endif

/* What a wish names is asked of the processor, and of a stopwatch only without
 * one. */
static int has_bf16(const char *wish)
{
    static atomic_int rounds, fast;
    return pl_cpu_has_bf16() && once(&rounds, pl_cpu_bf16_rounds) &&
           (is_named(PL_ISA_AVX512BF16, wish) ||
            once(&fast, pl_cpu_bf16_is_fast));
}

static pl_isa raised(pl_isa best, const char *wish)
{
    if (best != PL_ISA_AVX512)
        return best;
#if PL_HAVE_AMX
    if (has_amx(wish))
        return PL_ISA_AMX;
#endif
    return has_bf16(wish) ? PL_ISA_AVX512BF16 : best;
}
#else
static pl_isa raised(pl_isa best, const char *wish)
{
    (void)wish;
    return best;
}
#endif

pl_isa pl_cpu_isa(void)
{
    const char *wish = getenv("PLIMSOLL_ISA");
    const pl_isa best = best_isa();
    for (int isa = 0; wish && isa <= (int)best; isa++)
        if (strcmp(wish, isa_names[isa]) == 0)
            return (pl_isa)isa;
    return raised(best, wish);
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
