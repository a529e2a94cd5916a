/* test_tensor.c: tensor arithmetic against MMA-Sim's tensor cores, bit by bit,
 * with every kernel set of the machine. The cases: make_tensor.py. */
#include "golden/fixture.h"
#include "kernels/kernels.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { KINDS = 8, ROWS = 16, COLUMNS = 8, GROUP = PL_TENSOR_GROUP };

static const struct {
    const char *name;
    pl_products products;
    pl_storage storage;
} cases[] = {
    { "tensor24.bf16", PL_PRODUCTS_TENSOR24, PL_STORE_BF16 },
    { "tensor24.f16", PL_PRODUCTS_TENSOR24, PL_STORE_F16 },
    { "tensor25.bf16", PL_PRODUCTS_TENSOR25, PL_STORE_BF16 },
    { "tensor25.f16", PL_PRODUCTS_TENSOR25, PL_STORE_F16 },
};

static const float *part(fixture *f, const char *of, const char *which,
                         size_t count)
{
    char name[64];
    snprintf(name, sizeof name, "%s.%s", of, which);
    return fixture_floats(f, name, count);
}

static void expect_bits(const char *set, const char *name, size_t kind,
                        const float *found, const float *expected)
{
    for (size_t i = 0; i < (size_t)ROWS * COLUMNS; i++) {
        const uint32_t a = pl_float_bits(found[i]),
                       b = pl_float_bits(expected[i]);
        if (a != b && !(isnan(found[i]) && isnan(expected[i])))
            fail_msg("%s, %s, kind %zu: element %zu is %a, not %a", set, name,
                     kind, i, (double)found[i], (double)expected[i]);
    }
}

/* The kinds of one class and dtype, each as one product of a set's. */
static void check_case(fixture *f, const pl_kernels *set, size_t i)
{
    const size_t in_a = (size_t)ROWS * GROUP, in_b = (size_t)GROUP * COLUMNS,
                 in_c = (size_t)ROWS * COLUMNS;
    const char *name = cases[i].name;
    const pl_storage storage = cases[i].storage;
    const float *a = part(f, name, "a", KINDS * in_a),
                *b = part(f, name, "b", KINDS * in_b),
                *c = part(f, name, "c", KINDS * in_c),
                *d = part(f, name, "d", KINDS * in_c);
    for (size_t kind = 0; kind < KINDS; kind++) {
        uint16_t half_a[ROWS * GROUP], half_b[GROUP * COLUMNS];
        float sums[ROWS * COLUMNS];
        for (size_t j = 0; j < in_a; j++)
            pl_storage_put(half_a, j, a[kind * in_a + j], storage);
        for (size_t j = 0; j < in_b; j++)
            pl_storage_put(half_b, j, b[kind * in_b + j], storage);
        memcpy(sums, c + kind * in_c, sizeof sums);
        const pl_gemm g = { .M = ROWS,
                            .N = COLUMNS,
                            .K = GROUP,
                            .a = half_a,
                            .a_row = GROUP,
                            .a_col = 1,
                            .b = half_b,
                            .b_row = COLUMNS,
                            .b_col = 1,
                            .c = sums,
                            .c_row = COLUMNS,
                            .start = PL_GEMM_KEEP,
                            .a_storage = storage,
                            .b_storage = storage,
                            .products = cases[i].products };
        set->gemm(&g, 0, 1);
        expect_bits(set->name, name, kind, sums, d + kind * in_c);
    }
}

static void check_set(const pl_kernels *set)
{
    fixture f;
    fixture_open(&f, "tensor");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&f, set, i);
    fixture_close(&f);
}

static void the_reference_has_the_bits_of_tensor_cores(void **state)
{
    const pl_kernels ref = pl_kernels_ref();
    (void)state;
    check_set(&ref);
}

static void every_set_has_the_bits_of_tensor_cores(void **state)
{
    (void)state;
    for (int isa = PL_ISA_BASE; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = pl_kernels_for((pl_isa)isa);
        check_set(&set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_has_the_bits_of_tensor_cores),
        cmocka_unit_test(every_set_has_the_bits_of_tensor_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
