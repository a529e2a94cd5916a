/* test_muon.c: what Muon computes beside its products. */
#include "../support/kernel_cases.h"

/* Defined to the bit: no fused operation, and chances that are looked up. */
static const tolerance exact = { "muon", 0, 0 };

static size_t blocks_of(size_t count)
{
    return (count + PL_QUANT_BLOCK - 1) / PL_QUANT_BLOCK;
}

static void *bytes(size_t count, size_t size)
{
    static const uint32_t zero, fence = 0x5b7a5b7a;
    return fenced_sized(count, size, &fence, &zero);
}

/* ---- the norm of a part ---- */

typedef struct area {
    size_t rows, cols, row;
    pl_storage storage;
} area;

static void sumsq_case(const pl_kernels *set, const void *shape, int nth,
                       outcome *out)
{
    const area *s = shape;
    double partial[6] = { -1, -1, -1, -1, -1, -1 };
    const pl_sumsq args = { .partial = partial,
                            .x = fenced_matrix(s->rows, s->cols, s->row, 3),
                            .count = s->rows * s->cols,
                            .cols = s->cols,
                            .row = s->row };
    RUN_OP(set, sumsq, &args, nth);
    outcome_add_double(out, partial, 6);
}

/* Of a part as of the same elements that stand alone. */
static void a_part_has_the_norm_of_a_copy(void **state)
{
    static const area areas[] = {
        { 1, 1, 1, 0 },      { 3, 7, 21, 0 },     { 5, 300, 301, 0 },
        { 257, 64, 192, 0 }, { 300, 70, 150, 0 }, { 33, 1000, 1000, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof areas / sizeof *areas; i++) {
        const area of = areas[i];
        double apart[6], alone[6];
        judge(sumsq_case, &of, &exact);
        const float *x = fenced_matrix(of.rows, of.cols, of.row, 3);
        float *copy = fenced_state(of.rows * of.cols, 1, 1);
        for (size_t r = 0; r < of.rows; r++)
            memcpy(copy + r * of.cols, x + r * of.row, of.cols * sizeof *x);
        pl_sumsq args = { apart, x, of.rows * of.cols, of.cols, of.row };
        pl_kernels_ref().sumsq(&args, 0, 1);
        args = (pl_sumsq){ .partial = alone,
                           .x = copy,
                           .count = of.rows * of.cols };
        pl_kernels_ref().sumsq(&args, 0, 1);
        const size_t count = (args.count + PL_SUMSQ_BLOCK - 1) / PL_SUMSQ_BLOCK;
        assert_memory_equal(apart, alone, count * sizeof *alone);
        fenced_release();
    }
}

static void norm_case(const pl_kernels *set, const void *shape, int nth,
                      outcome *out)
{
    const size_t count = *(const size_t *)shape;
    double partial[200];
    float factor = -1;
    for (size_t i = 0; i < count; i++)
        partial[i] = 1.0 / (double)(i + 3);
    const pl_muon_norm args = { &factor, partial, count };
    RUN_OP(set, muon_norm, &args, nth);
    outcome_add(out, &factor, 1);
}

static void the_factor_is_one_over_the_norm(void **state)
{
    static const size_t counts[] = { 0, 1, 63, 64, 65, 200 };
    const double partial[] = { 9, 16 };
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        judge(norm_case, &counts[i], &exact);
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++) {
        float factor;
        pl_muon_norm args = { &factor, partial, 2 };
        pl_kernels_for((pl_isa)isa).muon_norm(&args, 0, 1);
        assert_true(factor == (float)(1.0 / (5.0 + 1e-7)));
        args.count = 0; /* a gradient of zeros */
        pl_kernels_for((pl_isa)isa).muon_norm(&args, 0, 1);
        assert_true(factor == 1e7f);
    }
}

/* ---- the moment ---- */

typedef struct tensor {
    size_t count;
    int small; /* of the moment, or of the weights */
    pl_storage copy;
    uint32_t skipped;
} tensor;

static void moment_case(const pl_kernels *set, const void *shape, int nth,
                        outcome *out)
{
    static const float clip = 0.7f;
    const tensor *s = shape;
    const size_t n = s->count;
    float *g = fenced_state(n, 1, 1), *m = fenced_state(n, 2, 0.1f),
          *scales = bytes(blocks_of(n), 4);
    int8_t *codes = bytes(n, 1);
    for (uint32_t step = 0; step < 3; step++) {
        const pl_muon_moment args = { .g = g,
                                      .m = s->small ? NULL : m,
                                      .count = n,
                                      .momentum = 0.95f,
                                      .momentum_rest = 0.05f,
                                      .clip = &clip,
                                      .skipped = &s->skipped,
                                      .m_codes = s->small ? codes : NULL,
                                      .m_scales = s->small ? scales : NULL,
                                      .seed = 1337,
                                      .step = step,
                                      .tensor = 12 };
        RUN_OP(set, muon_moment, &args, nth);
        outcome_add(out, g, n);
    }
    outcome_add(out, m, n);
    outcome_add(out, scales, blocks_of(n));
    outcome_grow(out, n);
    for (size_t i = 0; i < n; i++)
        out->values[out->count++] = codes[i];
}

static const size_t counts[] = { 0, 1, 3, 67, 255, 256, 257, 1000, 2077 };
enum { COUNTS = sizeof counts / sizeof *counts };

static void the_moment_moves_alike(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTS; i++)
        for (int small = 0; small < 2; small++)
            for (uint32_t skipped = 0; skipped < 2; skipped++) {
                const tensor of = { counts[i], small, PL_STORE_F32, skipped };
                judge(moment_case, &of, &exact);
            }
}

/* By hand: m = 2 + (3 - 2) / 4, and 3/4 of the way from 3 to that. */
static void nesterov_looks_ahead(void **state)
{
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++) {
        float g = 6, m = 2;
        static const float clip = 0.5f;
        uint32_t skipped = 0;
        pl_muon_moment args = { .g = &g,
                                .m = &m,
                                .count = 1,
                                .momentum = 0.75f,
                                .momentum_rest = 0.25f,
                                .clip = &clip,
                                .skipped = &skipped };
        pl_kernels_for((pl_isa)isa).muon_moment(&args, 0, 1);
        assert_true(m == 2.25f && g == 2.4375f);
        skipped = 1;
        pl_kernels_for((pl_isa)isa).muon_moment(&args, 0, 1);
        assert_true(m == 2.25f && g == 0.0f);
    }
}

/* ---- around the products ---- */

typedef struct passage {
    area of;
    pl_storage from;
    int turned, scaled;
} passage;

static void part_case(const pl_kernels *set, const void *shape, int nth,
                      outcome *out)
{
    const passage *s = shape;
    const size_t rows = s->of.rows, cols = s->of.cols, row = s->of.row;
    const float *x = s->turned ? fenced_matrix(cols, rows, row, 5)
                               : fenced_matrix(rows, cols, row, 5);
    const size_t lines = s->turned ? cols : rows,
                 long_ = s->turned ? rows : cols,
                 held = lines ? (lines - 1) * row + long_ : 0, wide = cols + 3,
                 kept = rows ? (rows - 1) * wide + cols : 0;
    static const float factor = 0.37f;
    const pl_muon_part args = { .y = stored_blank(kept, s->of.storage),
                                .x = stored_input(x, held, s->from),
                                .rows = rows,
                                .cols = cols,
                                .y_row = wide,
                                .x_row = s->turned ? 1 : row,
                                .x_col = s->turned ? row : 1,
                                .scale = s->scaled ? 0.7f : 1.0f,
                                .factor = s->scaled ? NULL : &factor,
                                .y_storage = s->of.storage,
                                .x_storage = s->from };
    RUN_OP(set, muon_part, &args, nth);
    for (size_t r = 0; r < rows; r++)
        outcome_add_stored(out, pl_storage_at(args.y, r * wide, s->of.storage),
                           cols, s->of.storage);
}

static void a_part_is_taken_and_put_back_alike(void **state)
{
    static const area areas[] = {
        { 1, 1, 1, 0 },    { 3, 7, 21, 0 },     { 16, 16, 40, 0 },
        { 17, 33, 99, 0 }, { 40, 300, 301, 0 }, { 70, 37, 150, 0 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof areas / sizeof *areas; i++)
        for (int to = 0; to < STORAGES; to++)
            for (int from = 0; from < STORAGES; from++)
                for (int way = 0; way < 4; way++) {
                    passage p = { areas[i], storages[from], way & 1, way >> 1 };
                    p.of.storage = storages[to];
                    if (p.turned && p.of.row < p.of.rows)
                        p.of.row = p.of.rows;
                    judge(part_case, &p, &exact);
                }
}

static void a_transposed_part_is_one(void **state)
{
    const float x[] = { 1, 2, 9, 3, 4, 9, 5, 6, 9 };
    static const float factor = 2;
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++) {
        float y[6];
        const pl_muon_part args = { .y = y,
                                    .x = x,
                                    .rows = 2,
                                    .cols = 3,
                                    .y_row = 3,
                                    .x_row = 1,
                                    .x_col = 3,
                                    .scale = 1,
                                    .factor = &factor };
        pl_kernels_for((pl_isa)isa).muon_part(&args, 0, 1);
        assert_memory_equal(y, ((float[]){ 2, 6, 10, 4, 8, 12 }), sizeof y);
    }
}

static void poly_case(const pl_kernels *set, const void *shape, int nth,
                      outcome *out)
{
    const area *s = shape;
    const size_t n = s->rows, all = n * n;
    void *b = stored_blank(all, s->storage);
    const float *from = fenced_random(all, 9, 1);
    for (size_t i = 0; i < all; i++)
        pl_storage_put(b, i, from[i], s->storage);
    const pl_muon_poly args = { .b = b,
                                .a = stored_input(fenced_random(all, 7, 1), all,
                                                  s->storage),
                                .n = n,
                                .unit = 3.4445f,
                                .linear = -4.775f,
                                .square = 2.0315f,
                                .storage = s->storage };
    RUN_OP(set, muon_poly, &args, nth);
    outcome_add_stored(out, b, all, s->storage);
}

static void polynomials_are_alike(void **state)
{
    static const size_t sides[] = { 0, 1, 2, 9, 67, 255, 300 };
    (void)state;
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
        for (int k = 0; k < STORAGES; k++) {
            const area of = { sides[i], sides[i], sides[i], storages[k] };
            judge(poly_case, &of, &exact);
        }
    float a[] = { 1, 2, 3, 4 }, b[] = { 10, 20, 30, 40 };
    const pl_muon_poly args = { b, a, 2, 0.5f, 2, 0.25f, PL_STORE_F32 };
    pl_kernels_ref().muon_poly(&args, 0, 1);
    assert_memory_equal(b, ((float[]){ 5, 9, 13.5f, 18.5f }), sizeof b);
}

/* ---- the weights ---- */

static void apply_case(const pl_kernels *set, const void *shape, int nth,
                       outcome *out)
{
    const tensor *s = shape;
    const size_t n = s->count;
    float *g = fenced_state(n, 1, 1), *w = fenced_state(n, 2, 1);
    uint16_t *halves = bytes(n, 2), *copy = bytes(n, 2);
    for (size_t i = 0; i < n; i++)
        halves[i] = pl_bf16_make(w[i]);
    const pl_muon_apply args = { .w = s->small ? NULL : w,
                                 .g = g,
                                 .count = n,
                                 .keep = 0.998f,
                                 .rate = 0.02f,
                                 .skipped = &s->skipped,
                                 .w_bf16 = s->small ? halves : NULL,
                                 .copy = s->copy == PL_STORE_F32 ? NULL : copy,
                                 .copy_storage = s->copy,
                                 .seed = 1337,
                                 .step = 3,
                                 .tensor = 12 };
    RUN_OP(set, muon_apply, &args, nth);
    outcome_add(out, g, n);
    outcome_add(out, w, n);
    outcome_add_stored(out, halves, n, PL_STORE_BF16);
    outcome_add_stored(out, copy, n, PL_STORE_F16);
}

static void weights_are_updated_alike(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTS; i++)
        for (int small = 0; small < 2; small++)
            for (int k = 0; k < STORAGES; k++)
                for (uint32_t skipped = 0; skipped < 2; skipped++) {
                    const tensor of = { counts[i], small, storages[k],
                                        skipped };
                    judge(apply_case, &of, &exact);
                }
}

static void a_step_decays_then_subtracts(void **state)
{
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++) {
        float g = 3, w = 2;
        uint32_t skipped = 1;
        const pl_muon_apply args = { .w = &w,
                                     .g = &g,
                                     .count = 1,
                                     .keep = 0.75f,
                                     .rate = 0.25f,
                                     .skipped = &skipped };
        pl_kernels_for((pl_isa)isa).muon_apply(&args, 0, 1);
        assert_true(w == 2 && g == 0);
        skipped = 0;
        g = 3;
        pl_kernels_for((pl_isa)isa).muon_apply(&args, 0, 1);
        assert_true(w == 0.75f && g == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_has_the_norm_of_a_copy),
        cmocka_unit_test(the_factor_is_one_over_the_norm),
        cmocka_unit_test(the_moment_moves_alike),
        cmocka_unit_test(nesterov_looks_ahead),
        cmocka_unit_test(a_part_is_taken_and_put_back_alike),
        cmocka_unit_test(a_transposed_part_is_one),
        cmocka_unit_test(polynomials_are_alike),
        cmocka_unit_test(weights_are_updated_alike),
        cmocka_unit_test(a_step_decays_then_subtracts),
        cmocka_unit_test_setup_teardown(a_part_is_taken_and_put_back_alike,
                                        guard_up, guard_down),
        cmocka_unit_test_setup_teardown(weights_are_updated_alike, guard_up,
                                        guard_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
