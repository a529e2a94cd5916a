#include "model/matrices.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Heads that are wider together than the residual stream. */
static const pl_shape shape = { .L = 2,
                                .H = 3,
                                .D = 5,
                                .C = 8,
                                .V = 11,
                                .T = 4,
                                .KV = 3,
                                .F = 32,
                                .A = 15,
                                .bias = PL_BIAS_ALL };

static size_t matrices_of(pl_param_kind kind, int layer,
                          pl_matrix matrices[PL_MAX_MATRICES])
{
    const pl_param param = pl_param_at(&shape,
                                       pl_param_slot(&shape, kind, layer));
    return pl_param_matrices(&shape, &param, matrices);
}

static void queries_keys_and_values_are_three(void **state)
{
    pl_matrix m[PL_MAX_MATRICES];
    (void)state;
    assert_int_equal(matrices_of(PL_QKV_W, 1, m), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(m[i].first_row, 0);
        assert_int_equal(m[i].rows, 8);
        assert_int_equal(m[i].first_col, 15 * i);
        assert_int_equal(m[i].cols, 15);
        assert_int_equal(m[i].layout, PL_LAYOUT_IN_OUT);
    }
}

static void others_are_whole(void **state)
{
    static const pl_param_kind kinds[] = { PL_ATT_W, PL_FC_W, PL_MLP_W };
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const pl_param param = pl_param_at(&shape,
                                           pl_param_slot(&shape, kinds[i], 0));
        pl_matrix m[PL_MAX_MATRICES];
        assert_int_equal(matrices_of(kinds[i], 0, m), 1);
        assert_int_equal(m[0].first_row + m[0].first_col, 0);
        assert_int_equal(m[0].rows, param.rows);
        assert_int_equal(m[0].cols, param.cols);
        assert_int_equal(m[0].layout, PL_LAYOUT_IN_OUT);
    }
}

/* Every weight is covered once, or not at all. */
static void tables_and_vectors_are_none(void **state)
{
    (void)state;
    for (size_t slot = 0; slot < pl_param_slots(&shape); slot++) {
        const pl_param param = pl_param_at(&shape, slot);
        pl_matrix m[PL_MAX_MATRICES];
        const size_t count = pl_param_matrices(&shape, &param, m);
        size_t covered = 0;
        for (size_t i = 0; i < count; i++)
            covered += m[i].rows * m[i].cols;
        if (param.role == PL_ROLE_PRODUCT)
            assert_int_equal(covered, param.rows * param.cols);
        else
            assert_int_equal(count, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_keys_and_values_are_three),
        cmocka_unit_test(others_are_whole),
        cmocka_unit_test(tables_and_vectors_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
