/* kernels.c: the tables of kernels. A set starts as the reference and is
 * overlaid; today every set has every op. */
#include "kernels/kernels.h"
#include "base/check.h"
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
}

static void overlay_avx512(pl_kernels *set)
{
#define PL_FILL(op) set->op = pl_avx512_##op;
    PL_KERNEL_TABLE(PL_FILL)
#undef PL_FILL
    set->peak = pl_avx512_peak;
    set->read = pl_avx512_read;
    set->name = "avx512";
}
#endif

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
#endif
    return set;
}
