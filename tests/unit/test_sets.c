/* Tests of kernels/sets: which ops a set has, and whose bits they give. */
#include "kernels/kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* The reference computes with libm: none of it may be left in a run. */
static void no_set_has_an_op_of_the_reference(void **state)
{
    const pl_kernels ref = pl_kernels_ref();
    (void)state;
    for (int isa = PL_ISA_BASE; isa < PL_ISA_COUNT; isa++) {
        const pl_kernels set = pl_kernels_for((pl_isa)isa);
#define ITS_OWN(op) assert_true(set.op &&set.op != ref.op);
        PL_KERNEL_TABLE(ITS_OWN)
#undef ITS_OWN
    }
}

static void all_sets_but_base_have_one_number(void **state)
{
    (void)state;
    assert_int_equal(pl_kernels_for(PL_ISA_BASE).arithmetic, 3);
#if PL_HAVE_X86 || PL_HAVE_ARM64
    for (int isa = PL_ISA_BASE + 1; isa < PL_ISA_COUNT; isa++)
        assert_int_equal(pl_kernels_for((pl_isa)isa).arithmetic, 4);
#endif
    assert_int_equal(pl_kernels_ref().arithmetic, PL_ARITHMETIC_UNSAID);
}

static void products_make_another_number_of_it(void **state)
{
    const pl_products tensor24 = PL_PRODUCTS_TENSOR24,
                      tensor25 = PL_PRODUCTS_TENSOR25;
    (void)state;
    assert_int_equal(pl_arithmetic_with(PL_ARITHMETIC_FUSED, tensor24), 5);
    assert_int_equal(pl_arithmetic_with(PL_ARITHMETIC_FUSED, tensor25), 6);
    assert_int_equal(pl_arithmetic_with(PL_ARITHMETIC_FUSED, PL_PRODUCTS_AMX),
                     7);
    assert_int_equal(pl_arithmetic_with(PL_ARITHMETIC_BASE, tensor24), 0);
    assert_int_equal(pl_arithmetic_with(PL_ARITHMETIC_BASE, PL_PRODUCTS_EXACT),
                     3);
    assert_int_equal(pl_arithmetic_products(5), tensor24);
    assert_int_equal(pl_arithmetic_products(6), tensor25);
    assert_int_equal(pl_arithmetic_products(7), PL_PRODUCTS_AMX);
    assert_int_equal(pl_arithmetic_products(4), PL_PRODUCTS_EXACT);
    assert_int_equal(pl_arithmetic_products(99), PL_PRODUCTS_EXACT);
}

/* A checkpoint may have any of them. */
static void every_number_that_was_used_has_a_name(void **state)
{
    (void)state;
    for (int i = 1; i < PL_ARITHMETIC_COUNT; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(pl_arithmetic_name((uint64_t)i),
                                    pl_arithmetic_name((uint64_t)j));
    assert_string_equal(pl_arithmetic_name(0), "unknown");
    assert_string_equal(pl_arithmetic_name(PL_ARITHMETIC_COUNT), "unknown");
    assert_string_equal(pl_arithmetic_name(UINT64_MAX), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_set_has_an_op_of_the_reference),
        cmocka_unit_test(all_sets_but_base_have_one_number),
        cmocka_unit_test(products_make_another_number_of_it),
        cmocka_unit_test(every_number_that_was_used_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
