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

/* Two heads of queries share one of keys and values; a gate beside the MLP. */
static const pl_shape qwen3 = { .L = 2,
                                .H = 4,
                                .D = 6,
                                .C = 16,
                                .V = 11,
                                .T = 4,
                                .KV = 2,
                                .F = 20,
                                .A = 24,
                                .norm = PL_NORM_RMS,
                                .family = PL_FAMILY_QWEN3,
                                .position = PL_POSITION_ROTARY,
                                .mlp = PL_MLP_SWIGLU,
                                .qk_norm = PL_QK_NORM_RMS };

static size_t matrices_in(const pl_shape *s, pl_param_kind kind, int layer,
                          pl_matrix matrices[PL_MAX_MATRICES])
{
    const pl_param param = pl_param_at(s, pl_param_slot(s, kind, layer));
    return pl_param_matrices(s, &param, matrices);
}

static size_t matrices_of(pl_param_kind kind, int layer,
                          pl_matrix matrices[PL_MAX_MATRICES])
{
    return matrices_in(&shape, kind, layer, matrices);
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

/* q, k and v one below the other, gate and up likewise: as many rows as each
 * has outputs. */
static void those_of_llama_and_qwen3_are_rows(void **state)
{
    static const struct {
        pl_param_kind kind;
        size_t count, at, first_row, rows, cols;
    } want[] = {
        { PL_QKV_W, 3, 0, 0, 24, 16 },  /* q: 4 heads of 6 */
        { PL_QKV_W, 3, 1, 24, 12, 16 }, /* k: 2 heads */
        { PL_QKV_W, 3, 2, 36, 12, 16 }, /* v */
        { PL_ATT_W, 1, 0, 0, 16, 24 },  /* out */
        { PL_FC_W, 2, 0, 0, 20, 16 },   /* gate */
        { PL_FC_W, 2, 1, 20, 20, 16 },  /* up */
        { PL_MLP_W, 1, 0, 0, 16, 20 },  /* down */
    };
    (void)state;
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        pl_matrix m[PL_MAX_MATRICES];
        assert_int_equal(matrices_in(&qwen3, want[i].kind, 1, m),
                         want[i].count);
        const pl_matrix *found = &m[want[i].at];
        assert_int_equal(found->first_row, want[i].first_row);
        assert_int_equal(found->rows, want[i].rows);
        assert_int_equal(found->first_col, 0);
        assert_int_equal(found->cols, want[i].cols);
        assert_int_equal(found->layout, PL_LAYOUT_OUT_IN);
    }
}

/* Every weight is covered once, or not at all. */
static void check_cover(const pl_shape *s)
{
    for (size_t slot = 0; slot < pl_param_slots(s); slot++) {
        const pl_param param = pl_param_at(s, slot);
        pl_matrix m[PL_MAX_MATRICES];
        const size_t count = pl_param_matrices(s, &param, m);
        size_t covered = 0;
        for (size_t i = 0; i < count; i++)
            covered += m[i].rows * m[i].cols;
        if (param.role == PL_ROLE_PRODUCT)
            assert_int_equal(covered, param.rows * param.cols);
        else
            assert_int_equal(count, 0);
    }
}

static void tables_and_vectors_are_none(void **state)
{
    (void)state;
    check_cover(&shape);
    check_cover(&qwen3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_keys_and_values_are_three),
        cmocka_unit_test(others_are_whole),
        cmocka_unit_test(those_of_llama_and_qwen3_are_rows),
        cmocka_unit_test(tables_and_vectors_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
