/* test_tensor_attention.c: attention in tensor arithmetic: forward, backward
 * and out of a cache. What kernels.h promises of it is the oracle's. */
#include "attention_decoding.h"
#include "attention_judge.h"

static const pl_products classes[] = { PL_PRODUCTS_TENSOR24,
                                       PL_PRODUCTS_TENSOR25, PL_PRODUCTS_AMX };
enum { CLASSES = 3 };

/* Storages of qkv, out, dout and dqkv; with the last, which has dout in another
 * storage, backward has no tensor arithmetic. */
static const pl_storage halves[][4] = {
    { PL_STORE_BF16, PL_STORE_BF16, PL_STORE_BF16, PL_STORE_BF16 },
    { PL_STORE_F16, PL_STORE_F16, PL_STORE_F16, PL_STORE_F16 },
    { PL_STORE_BF16, PL_STORE_F32, PL_STORE_BF16, PL_STORE_F32 },
    { PL_STORE_BF16, PL_STORE_BF16, PL_STORE_F32, PL_STORE_F32 },
};
enum { HALVES = sizeof halves / sizeof *halves };

static void judge_tensor(const pass *p, const size_t n[5], int first)
{
    for (int form = 0; form < HALVES; form++)
        for (int i = first; i < CLASSES; i++) {
            shape s = make_shape(n, halves[form], (form + i) % 2);
            s.products = classes[i];
            if (s.T > 500 && (SANITIZED_ADDRESS || form != i % 2))
                continue; /* slow to judge */
            judge_bits(p, &s, p == &forward ? s.out : s.dqkv);
        }
}

/* Widths and lengths around groups of 16 and 32, heads that share keys, blocks
 * of queries of either length. */
static const size_t shapes[][5] = {
    { 0, 7, 2, 2, 8 },
    { 1, 0, 2, 1, 8 },
    { 1, 1, 1, 1, 1 },
    { 2, 15, 2, 2, 15 },
    { 1, 16, 2, 1, 16 },
    { 1, 17, 4, 2, 17 },
    { 2, 33, 2, 1, 32 },
    { 1, 67, 3, 3, 38 },
    { 1, 49, 6, 1, 48 },
    { 1, 9, 2, 2, 0 },
    { 1, 90, 1, 1, 67 },
    { 1, 517, 2, 1, 5 },
    /* for AMX alone, whose blocks they are about: */
    { 1, 64, 2, 1, 64 },
    { 1, 65, 1, 1, 80 },
    { 1, 33, 1, 1, 288 },
};
enum { SHAPES = sizeof shapes / sizeof *shapes, OF_AMX = SHAPES - 3 };

static void attention_has_the_bits_of_the_contract(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++)
        judge_tensor(&forward, shapes[i], i < OF_AMX ? 0 : CLASSES - 1);
}

static void gradients_have_the_bits_of_the_contract(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++)
        judge_tensor(&backward, shapes[i], i < OF_AMX ? 0 : CLASSES - 1);
}

static void decoding_gives_the_rows_of_the_whole_to_the_bit(void **state)
{
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int form = 0; form < 2; form++)
            for (int i = 0; i < CLASSES; i++) {
                const pl_kernels set = pl_kernels_for((pl_isa)isa);
                shape s = make_shape((size_t[]){ 2, 67, 2, 1, 37 },
                                     halves[form], (form + i) % 2);
                s.products = classes[i];
                expect_decoding(&set, &s);
            }
}

/* Otherwise the other tests would say nothing about tensor arithmetic. */
static void it_is_another_arithmetic(void **state)
{
    const pl_products all[] = { PL_PRODUCTS_EXACT, PL_PRODUCTS_TENSOR24,
                                PL_PRODUCTS_TENSOR25, PL_PRODUCTS_AMX };
    enum { ALL = 4 };
    const pl_kernels set = pl_kernels_for(pl_cpu_isa());
    outcome o[ALL] = { 0 };
    (void)state;
    for (int i = 0; i < ALL; i++) {
        shape s = make_shape((size_t[]){ 1, 67, 2, 2, 38 }, halves[2], 0);
        s.products = all[i];
        o[i] = run_case(forward_case, &set, &s, 1);
    }
    for (int i = 0; i < ALL; i++)
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(o[i].values, o[j].values,
                                    o[i].count * sizeof(double));
    for (int i = 0; i < ALL; i++)
        free(o[i].values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_has_the_bits_of_the_contract),
        cmocka_unit_test(gradients_have_the_bits_of_the_contract),
        cmocka_unit_test(decoding_gives_the_rows_of_the_whole_to_the_bit),
        cmocka_unit_test(it_is_another_arithmetic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
