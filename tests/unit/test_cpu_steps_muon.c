/* Tests of device/steps_muon: which elements of a weight a step means, and by
 * what its update is multiplied. */
#include "unit/cpu_rig.h"

#include <math.h>

/* A matrix within a weight of LINES x WIDE. */
enum { LINES = 12, WIDE = 14 };

typedef struct range {
    size_t first_row, rows, first_col, cols;
} range;

static const range ranges[] = {
    { 0, LINES, 0, WIDE }, /* all of it */
    { 0, LINES, 4, 5 },    /* columns, as GPT-2's k: tall */
    { 0, 5, 0, WIDE },     /* rows, as Llama's q */
    { 5, 4, 0, WIDE },     /* and k */
    { 2, 7, 3, 2 },        /* any */
};
enum { RANGES = sizeof ranges / sizeof ranges[0] };

static void set_range(rig *r, const range *of)
{
    r->step.rows = of->rows;
    r->step.cols = of->cols;
    r->step.first = of->first_row * WIDE + of->first_col;
    r->step.stride = WIDE;
}

/* Where element i of the wide matrix, row after row, lies in the weight. */
static size_t place_of(const range *of, size_t i)
{
    const int tall = of->rows > of->cols;
    const size_t wide = tall ? of->rows : of->cols;
    const size_t r = tall ? i % wide : i / wide, c = tall ? i / wide : i % wide;
    return (of->first_row + r) * WIDE + of->first_col + c;
}

static void a_matrix_is_taken_as_a_wide_one(void **state)
{
    static rig r;
    (void)state;
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < RANGES; i++) {
            rig_begin(&r, PL_OP_MUON_TAKE);
            void *x = rig_arg(&r, kinds[k].dtype, kinds[k].storage, WIDE, 1);
            const float *g = rig_arg(&r, PL_F32, PL_STORE_F32, WIDE, 2);
            const float *factor = rig_arg(&r, PL_F32, PL_STORE_F32, 1, 3);
            set_range(&r, &ranges[i]);
            rig_run(&r);
            for (size_t e = 0; e < ranges[i].rows * ranges[i].cols; e++)
                assert_true(
                    pl_storage_get(x, e, kinds[k].storage) ==
                    pl_storage_round(g[place_of(&ranges[i], e)] * *factor,
                                     kinds[k].storage));
        }
}

static float scale_of(const range *of, unsigned flags)
{
    const double rows = (double)of->rows, cols = (double)of->cols,
                 out = flags & PL_STEP_OUT_IN ? rows : cols,
                 in = flags & PL_STEP_OUT_IN ? cols : rows;
    return flags & PL_STEP_MATCH_RMS ? (float)(0.2 * sqrt(fmax(out, in)))
                                     : (float)sqrt(fmax(1.0, out / in));
}

static void it_is_put_back_scaled_and_nowhere_else(void **state)
{
    static const unsigned ways[] = { 0, PL_STEP_OUT_IN, PL_STEP_MATCH_RMS,
                                     PL_STEP_OUT_IN | PL_STEP_MATCH_RMS };
    static rig r;
    (void)state;
    for (int w = 0; w < 4; w++)
        for (int i = 0; i < RANGES; i++) {
            float want[LINES * WIDE];
            rig_begin(&r, PL_OP_MUON_PUT);
            float *g = rig_arg(&r, PL_F32, PL_STORE_F32, WIDE, 2);
            const float *x = rig_arg(&r, PL_F32, PL_STORE_F32, WIDE, 1);
            memcpy(want, g, sizeof want);
            for (size_t e = 0; e < ranges[i].rows * ranges[i].cols; e++)
                want[place_of(&ranges[i], e)] = x[e] *
                                                scale_of(&ranges[i], ways[w]);
            set_range(&r, &ranges[i]);
            r.step.flags = ways[w];
            rig_run(&r);
            assert_memory_equal(g, want, sizeof want);
        }
}

static void the_norm_is_that_of_the_matrix(void **state)
{
    static rig r;
    (void)state;
    for (int i = 0; i < RANGES; i++) {
        double sum = 0.0;
        rig_begin(&r, PL_OP_MUON_SUMSQ);
        const double *partial = rig_arg(&r, PL_F64, PL_STORE_F32, 1, 1);
        const float *g = rig_arg(&r, PL_F32, PL_STORE_F32, WIDE, 2);
        set_range(&r, &ranges[i]);
        rig_run(&r);
        for (size_t e = 0; e < ranges[i].rows * ranges[i].cols; e++)
            sum += pow((double)g[place_of(&ranges[i], e)], 2.0);
        assert_true(fabs(partial[0] - sum) < 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_matrix_is_taken_as_a_wide_one),
        cmocka_unit_test(it_is_put_back_scaled_and_nowhere_else),
        cmocka_unit_test(the_norm_is_that_of_the_matrix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
