/* sets.c: the tables of kernels. A set starts as the reference and is
 * overlaid; today every set has every op. */
#include "base/check.h"
#include "kernels/kernels.h"
#include "kernels/plain/plain.h"
#include "kernels/ref/ref.h"

/* PL_KERNEL_TABLE once more for each set, since a macro has no parameters but
 * the op's. */
#define PL_REF(op)        .op = pl_ref_##op,
#define PL_BASE(op)       set->op = pl_base_##op;
#define PL_AVX2(op)       set->op = pl_avx2_##op;
#define PL_AVX512(op)     set->op = pl_avx512_##op;
#define PL_AVX512BF16(op) set->op = pl_avx512bf16_##op;
#define PL_AMX(op)        set->op = pl_amx_##op;
#define PL_NEON(op)       set->op = pl_neon_##op;

#define PL_OVERLAY(isa, fill, number)                                          \
    static void overlay_##isa(pl_kernels *set)                                 \
    {                                                                          \
        PL_KERNEL_TABLE(fill)                                                  \
        set->peak = pl_##isa##_peak;                                           \
        set->read = pl_##isa##_read;                                           \
        set->name = #isa;                                                      \
        set->arithmetic = (number);                                            \
    }

PL_OVERLAY(base, PL_BASE, PL_ARITHMETIC_BASE)
#if PL_HAVE_X86
PL_OVERLAY(avx2, PL_AVX2, PL_ARITHMETIC_FUSED)
PL_OVERLAY(avx512, PL_AVX512, PL_ARITHMETIC_FUSED)
#if PL_HAVE_AVX512BF16
PL_OVERLAY(avx512bf16, PL_AVX512BF16, PL_ARITHMETIC_FUSED)
#endif
#if PL_HAVE_AMX
PL_OVERLAY(amx, PL_AMX, PL_ARITHMETIC_FUSED)
#endif
#elif PL_HAVE_ARM64
PL_OVERLAY(neon, PL_NEON, PL_ARITHMETIC_FUSED)
#endif

pl_kernels pl_kernels_ref(void)
{
    return (pl_kernels){ .name = "ref", PL_KERNEL_TABLE(PL_REF) };
}

const char *pl_arithmetic_name(uint64_t arithmetic)
{
    static const char *const names[PL_ARITHMETIC_COUNT] = {
        [PL_ARITHMETIC_UNSAID] = "unknown",
        [PL_ARITHMETIC_BASE_1] = "base of an earlier version",
        [PL_ARITHMETIC_FUSED_1] = "avx2, avx512 and neon of an earlier version",
        [PL_ARITHMETIC_BASE] = "base",
        [PL_ARITHMETIC_FUSED] = "avx2, avx512, avx512bf16, amx and neon",
        [PL_ARITHMETIC_TENSOR24] = "the same with tensor24 products",
        [PL_ARITHMETIC_TENSOR25] = "the same with tensor25 products",
        [PL_ARITHMETIC_AMX] = "the same with amx products",
    };
    return names[arithmetic < PL_ARITHMETIC_COUNT ? arithmetic
                                                  : PL_ARITHMETIC_UNSAID];
}

/* Of each kind of products: its name, and the arithmetic that the fused sets
 * have with it. */
static const struct {
    const char *name;
    pl_arithmetic with;
} kinds[] = {
    [PL_PRODUCTS_EXACT] = { "exact", PL_ARITHMETIC_FUSED },
    [PL_PRODUCTS_TENSOR24] = { "tensor24", PL_ARITHMETIC_TENSOR24 },
    [PL_PRODUCTS_TENSOR25] = { "tensor25", PL_ARITHMETIC_TENSOR25 },
    [PL_PRODUCTS_AMX] = { "amx", PL_ARITHMETIC_AMX },
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

pl_arithmetic pl_arithmetic_with(pl_arithmetic set, pl_products products)
{
    if (products == PL_PRODUCTS_EXACT)
        return set;
    return set == PL_ARITHMETIC_FUSED ? kinds[products].with
                                      : PL_ARITHMETIC_UNSAID;
}

pl_products pl_arithmetic_products(uint64_t arithmetic)
{
    for (int i = 0; i < KINDS; i++)
        if (kinds[i].with == arithmetic)
            return (pl_products)i;
    return PL_PRODUCTS_EXACT;
}

const char *pl_products_name(pl_products products)
{
    return kinds[products].name;
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
#if PL_HAVE_AVX512BF16
    if (isa >= PL_ISA_AVX512BF16) {
        overlay_avx512bf16(&set);
        set.peak_bf16 = pl_avx512bf16_peak_bf16;
    }
#endif
#if PL_HAVE_AMX
    if (isa >= PL_ISA_AMX) {
        overlay_amx(&set);
        set.peak_bf16 = NULL;
        set.matrices = PL_PRODUCTS_AMX;
        set.peak_matrices = pl_amx_peak_matrices;
    }
#endif
#elif PL_HAVE_ARM64
    if (isa >= PL_ISA_NEON)
        overlay_neon(&set);
#endif
    return set;
}
