/* sets.c: the tables of kernels. A set starts as the reference and is
 * overlaid; today every set has every op. */
#include "base/check.h"
#include "kernels/kernels.h"
#include "kernels/plain/plain.h"
#include "kernels/ref/ref.h"

pl_kernels pl_kernels_ref(void)
{
#define PL_FILL(op) .op = pl_ref_##op,
    return (pl_kernels){ .name = "ref", PL_KERNEL_TABLE(PL_FILL) };
#undef PL_FILL
}

static void overlay_base(pl_kernels *set)
{
#define PL_FILL(op) set->op = pl_base_##op;
    PL_KERNEL_TABLE(PL_FILL)
#undef PL_FILL
    set->peak = pl_base_peak;
    set->read = pl_base_read;
    set->name = "base";
    set->arithmetic = PL_ARITHMETIC_BASE;
}

#if PL_HAVE_X86
static void overlay_avx2(pl_kernels *set)
{
#define PL_FILL(op) set->op = pl_avx2_##op;
    PL_KERNEL_TABLE(PL_FILL)
#undef PL_FILL
    set->peak = pl_avx2_peak;
    set->read = pl_avx2_read;
    set->name = "avx2";
    set->arithmetic = PL_ARITHMETIC_FUSED;
}

static void overlay_avx512(pl_kernels *set)
{
#define PL_FILL(op) set->op = pl_avx512_##op;
    PL_KERNEL_TABLE(PL_FILL)
#undef PL_FILL
    set->peak = pl_avx512_peak;
    set->read = pl_avx512_read;
    set->name = "avx512";
    set->arithmetic = PL_ARITHMETIC_FUSED;
}
#elif PL_HAVE_ARM64
static void overlay_neon(pl_kernels *set)
{
#define PL_FILL(op) set->op = pl_neon_##op;
    PL_KERNEL_TABLE(PL_FILL)
#undef PL_FILL
    set->peak = pl_neon_peak;
    set->read = pl_neon_read;
    set->name = "neon";
    set->arithmetic = PL_ARITHMETIC_FUSED;
}
#endif

const char *pl_arithmetic_name(uint64_t arithmetic)
{
    static const char *const names[PL_ARITHMETIC_COUNT] = {
        [PL_ARITHMETIC_UNSAID] = "unknown",
        [PL_ARITHMETIC_BASE] = "base",
        [PL_ARITHMETIC_FUSED] = "avx2, avx512 and neon",
    };
    return names[arithmetic < PL_ARITHMETIC_COUNT ? arithmetic
                                                  : PL_ARITHMETIC_UNSAID];
}

pl_kernels pl_kernels_for(pl_isa isa)
{
    pl_kernels set = pl_kernels_ref();
    PL_CHECK(isa >= PL_ISA_BASE && isa < PL_ISA_COUNT);
    overlay_base(&set);
#if PL_HAVE_X86
    if (isa >= PL_ISA_AVX2)
        overlay_avx2(&set);
    if (isa >= PL_ISA_AVX512)
        overlay_avx512(&set);
#elif PL_HAVE_ARM64
    if (isa >= PL_ISA_NEON)
        overlay_neon(&set);
#endif
    return set;
}
