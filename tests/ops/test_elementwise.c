/* test_elementwise.c: GELU, residual sum, dropout, copy. */
#include "../support/kernel_cases.h"

/* erf and tanh are good to 1.5e-7, times x/2 of at most 10 or so. */
static const tolerance gelu_allowed = { "gelu", 1e-6, 5e-7 };
static const tolerance slope_allowed = { "gelu_bwd", 1e-6, 1e-6 };
/* One product and one sum, rounded once or twice. */
static const tolerance drop_allowed = { "dropout", 1e-7, 2e-7 };
static const tolerance exact = { "copy", 0, 0 };

static const size_t sizes[] = { 0, 1, 7, 8, 9, 67, 300 };

/* What follows a product, without one: a sum of no terms that is carried on is
 * what C holds. */
typedef struct slope_args {
    float *d;
    const void *x;
    size_t count;
    pl_gelu_kind kind;
    pl_storage x_storage;
} slope_args;

static void run_slope(const pl_kernels *set, const slope_args *a, int nth)
{
    const pl_gemm g = { .M = 1,
                        .N = a->count,
                        .a_col = 1,
                        .b_col = 1,
                        .c = a->d,
                        .c_row = a->count,
                        .start = PL_GEMM_KEEP,
                        .epilogue = { .kind = PL_EPILOGUE_GELU_BWD,
                                      .gelu = a->kind,
                                      .x = a->x,
                                      .x_storage = a->x_storage,
                                      .row = a->count } };
    RUN_OP(set, gemm, &g, nth);
}

typedef struct residual_args {
    float *y;
    const float *x;
    size_t rows, T, C, position;
    pl_dropout dropout;
} residual_args;

static void run_residual(const pl_kernels *set, const residual_args *a, int nth)
{
    const pl_gemm g = { .M = a->rows,
                        .N = a->C,
                        .a_col = 1,
                        .b_col = 1,
                        .c = a->y,
                        .c_row = a->C,
                        .start = PL_GEMM_KEEP,
                        .epilogue = { .kind = PL_EPILOGUE_RESIDUAL,
                                      .x = a->x,
                                      .row = a->C,
                                      .dropout = a->dropout,
                                      .T = a->T,
                                      .position = a->position } };
    RUN_OP(set, gemm, &g, nth);
}

typedef struct gelu_shape {
    size_t count;
    pl_gelu_kind kind;
    float scale;
    pl_storage x, y;
} gelu_shape;

static pl_gelu make_gelu(const gelu_shape *s)
{
    return (pl_gelu){
        .y = stored_blank(s->count, s->y),
        .x = stored_input(fenced_random(s->count, 1, s->scale), s->count, s->x),
        .count = s->count,
        .kind = s->kind,
        .y_storage = s->y,
        .x_storage = s->x,
    };
}

static void gelu_case(const pl_kernels *set, const void *shape, int nth,
                      outcome *out)
{
    const gelu_shape *s = shape;
    const pl_gelu args = make_gelu(s);
    RUN_OP(set, gelu, &args, nth);
    outcome_add_stored(out, args.y, s->count, s->y);
}

static slope_args make_gelu_bwd(const gelu_shape *s)
{
    return (slope_args){
        .d = fenced_state(s->count, 2, 1),
        .x = stored_input(fenced_random(s->count, 1, s->scale), s->count, s->x),
        .count = s->count,
        .kind = s->kind,
        .x_storage = s->x,
    };
}

static void gelu_bwd_case(const pl_kernels *set, const void *shape, int nth,
                          outcome *out)
{
    const gelu_shape *s = shape;
    const slope_args args = make_gelu_bwd(s);
    run_slope(set, &args, nth);
    outcome_add(out, args.d, s->count);
}

static void both_gelus_and_their_slopes_agree(void **state)
{
    static const float scales[] = { 1, 6, 20, 1e-5f };
    (void)state;
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < 8; j++)
            for (int k = 0; k < STORAGES * STORAGES; k++) {
                const gelu_shape s = { sizes[i], (pl_gelu_kind)(j & 1),
                                       scales[j / 2], storages[k % STORAGES],
                                       storages[k / STORAGES] };
                const tolerance t = tolerance_stored(&gelu_allowed, s.y);
                judge(gelu_case, &s, &t);
                judge(gelu_bwd_case, &s, &slope_allowed);
            }
}

/* The same numbers kept as float32, and the output rounded once. */
static void stored_inputs_are_used_as_they_are(void **state)
{
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int k = 0; k < 2 * STORAGES * STORAGES; k++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const gelu_shape s = { 1000, (pl_gelu_kind)(k & 1), 6,
                                   storages[k / 2 % STORAGES],
                                   storages[k / 2 / STORAGES] };
            outcome got = { 0 }, want = { 0 };
            const pl_gelu a = make_gelu(&s);
            const slope_args da = make_gelu_bwd(&s);
            const float *x = stored_back(a.x, s.count, s.x);
            float *y = fenced_blank(s.count), *d = fenced_state(s.count, 2, 1);
            const pl_gelu b = { .y = y, .x = x, .count = 1000, .kind = s.kind };
            const slope_args db = {
                .d = d, .x = x, .count = 1000, .kind = s.kind
            };
            RUN_OP(&set, gelu, &a, 2);
            RUN_OP(&set, gelu, &b, 2);
            run_slope(&set, &da, 2);
            run_slope(&set, &db, 2);
            outcome_add_stored(&got, a.y, s.count, s.y);
            outcome_add_rounded(&want, y, s.count, s.y);
            outcome_add(&got, da.d, s.count);
            outcome_add(&want, d, s.count);
            expect_same("stored gelu", &got, &want);
            free(got.values);
            free(want.values);
            fenced_release();
        }
}

static void huge_inputs_have_slope_0_or_1(void **state)
{
    const float at[] = { 1e10f, -1e10f, 1e25f, -1e25f, INFINITY, -INFINITY };
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int kind = 0; kind < 2; kind++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            float d[6] = { 1, 1, 1, 1, 1, 1 };
            const slope_args args = {
                .d = d, .x = at, .count = 6, .kind = (pl_gelu_kind)kind
            };
            run_slope(&set, &args, 1);
            for (int i = 0; i < 6; i++)
                assert_true(d[i] == (i % 2 ? 0.0f : 1.0f));
        }
}

typedef struct one_gelu {
    float x, y;
    pl_gelu_kind kind;
} one_gelu;

static double one_gelu_loss(void *context)
{
    one_gelu *g = context;
    const pl_gelu args = {
        .y = &g->y, .x = &g->x, .count = 1, .kind = g->kind
    };
    pl_kernels_ref().gelu(&args, 0, 1);
    return (double)g->y;
}

static void the_references_slopes_are_slopes(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (int i = -40; i <= 40; i++) {
            one_gelu g = { (float)i / 8, 0, (pl_gelu_kind)kind };
            float d = 1;
            const slope_args args = {
                .d = &d, .x = &g.x, .count = 1, .kind = g.kind
            };
            const pl_kernels ref = pl_kernels_ref();
            run_slope(&ref, &args, 1);
            expect_gradient("gelu", one_gelu_loss, &g, &g.x, 1, &d, 1e-4);
        }
}

typedef struct row_shape {
    size_t rows, T, C, position;
    double p;
    pl_storage kept; /* of a copy */
} row_shape;

static pl_dropout make_dropout(double p)
{
    return (pl_dropout){ .threshold = (uint32_t)(p * 4294967296.0 + 0.5),
                         .scale = (float)(1 / (1 - p)),
                         .seed = 42,
                         .step = 7,
                         .site = PL_DROP_MLP_OUT,
                         .layer = 2,
                         .sequence = 3 };
}

static void residual_case(const pl_kernels *set, const void *shape, int nth,
                          outcome *out)
{
    const row_shape *s = shape;
    const size_t n = s->rows * s->C;
    const residual_args args = {
        fenced_state(n, 1, 1), fenced_random(n, 2, 1), s->rows, s->T, s->C,
        s->position,           make_dropout(s->p)
    };
    run_residual(set, &args, nth);
    outcome_add(out, args.y, n);
}

static void drop_case(const pl_kernels *set, const void *shape, int nth,
                      outcome *out)
{
    const row_shape *s = shape;
    const size_t n = s->rows * s->C;
    const pl_drop args = { stored_blank(n, s->kept),
                           fenced_random(n, 2, 1),
                           s->rows,
                           s->T,
                           s->C,
                           make_dropout(s->p),
                           s->kept };
    RUN_OP(set, drop, &args, nth);
    outcome_add_stored(out, args.y, n, s->kept);
}

static void copy_case(const pl_kernels *set, const void *shape, int nth,
                      outcome *out)
{
    const row_shape *s = shape;
    const size_t x_row = s->C + 2, y_row = s->C + 5,
                 count = s->rows ? (s->rows - 1) * x_row + s->C : 0;
    const pl_copy args = {
        .y = stored_blank(s->rows * y_row, s->kept),
        .x = stored_input(fenced_matrix(s->rows, s->C, x_row, 1), count,
                          s->kept),
        .rows = s->rows,
        .C = s->C,
        .y_row = y_row,
        .x_row = x_row,
        .storage = s->kept,
    };
    RUN_OP(set, copy, &args, nth);
    outcome_add_stored(out, args.y, s->rows * y_row, s->kept);
}

/* Rows of sequences of which each begins at a place of its own. */
static void copy_to_places_case(const pl_kernels *set, const void *shape,
                                int nth, outcome *out)
{
    enum { SEQUENCES = 4, KEYS = 9 };
    static const int32_t positions[SEQUENCES] = { 3, 0, 5, 1 };
    const row_shape *s = shape;
    const size_t queries = s->T, rows = SEQUENCES * queries, x_row = s->C + 2,
                 y_row = s->C + 5, all = SEQUENCES * KEYS * y_row;
    const pl_copy args = {
        .y = stored_blank(all, s->kept),
        .x = stored_input(fenced_matrix(rows, s->C, x_row, 1),
                          (rows - 1) * x_row + s->C, s->kept),
        .rows = rows,
        .C = s->C,
        .y_row = y_row,
        .x_row = x_row,
        .storage = s->kept,
        .positions = positions,
        .queries = queries,
        .keys = KEYS,
    };
    RUN_OP(set, copy, &args, nth);
    outcome_add_stored(out, args.y, all, s->kept);
}

static void copied_rows_go_to_their_places(void **state)
{
    (void)state;
    for (size_t queries = 1; queries <= 4; queries++)
        for (int c = 0; c < 7; c++)
            for (int kept = 0; kept < 3; kept++)
                if (sizes[c])
                    judge(copy_to_places_case,
                          &(row_shape){ .T = queries,
                                        .C = sizes[c],
                                        .kept = storages[kept] },
                          &exact);
}

static void rows_with_and_without_dropout_agree(void **state)
{
    (void)state;
    for (int r = 0; r < 6; r++)
        for (int c = 0; c < 7; c++)
            for (int p = 0; p < 3; p++) {
                const row_shape s = { sizes[r],  5,        sizes[c],
                                      (size_t)p, p * 0.25, storages[p] };
                const row_shape t = { sizes[r],       5,          sizes[c], 0,
                                      (2 - p) * 0.25, storages[p] };
                const tolerance kept = tolerance_stored(&drop_allowed, s.kept);
                judge(residual_case, &s, &drop_allowed);
                judge(drop_case, &s, &kept);
                judge(drop_case, &t, &kept);
                judge(copy_case, &s, &exact);
            }
}

static void a_stored_dropout_is_rounded_once(void **state)
{
    enum { ROWS = 9, C = 600 };
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int i = 0; i < 2 * STORAGES; i++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const pl_storage kept = storages[i / 2];
            const pl_drop floats = { .y = fenced_blank(ROWS * C),
                                     .x = fenced_random(ROWS * C, 2, 1),
                                     .rows = ROWS,
                                     .T = 4,
                                     .C = C,
                                     .dropout = make_dropout(i % 2 * 0.3) };
            pl_drop stored = floats;
            outcome got = { 0 }, want = { 0 };
            stored.y = stored_blank(ROWS * C, kept);
            stored.y_storage = kept;
            RUN_OP(&set, drop, &stored, 2);
            RUN_OP(&set, drop, &floats, 2);
            outcome_add_stored(&got, stored.y, ROWS * C, kept);
            outcome_add_rounded(&want, floats.y, ROWS * C, kept);
            expect_same("stored drop", &got, &want);
            free(got.values);
            free(want.values);
            fenced_release();
        }
}

static void residual_chunks_draw_the_masks_of_the_whole(void **state)
{
    enum { ROWS = 13, T = 5, C = 19 };
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = pl_kernels_for((pl_isa)isa);
        const float *x = fenced_random(ROWS * C, 1, 1);
        float *whole = fenced_random(ROWS * C, 2, 1);
        float *cut = fenced_random(ROWS * C, 2, 1);
        const pl_dropout drop = make_dropout(0.4);
        const residual_args all = { whole, x, ROWS, T, C, 0, drop };
        run_residual(&set, &all, 1);
        for (size_t r = 0; r < ROWS; r += 3) {
            residual_args part = {
                cut + r * C, x + r * C, ROWS - r < 3 ? ROWS - r : 3, T, C,
                r % T,       drop
            };
            part.dropout.sequence += (uint32_t)(r / T);
            run_residual(&set, &part, 1);
        }
        assert_memory_equal(whole, cut, ROWS * C * sizeof *cut);
        fenced_release();
    }
}

/* 40 000 coin tosses: 4 standard deviations are 0.9 %. */
static void a_mask_keeps_its_share_and_the_mean(void **state)
{
    enum { ROWS = 100, C = 400 };
    const pl_kernels ref = pl_kernels_ref();
    float *x = fenced_blank(ROWS * C), *y = fenced_blank(ROWS * C);
    const pl_drop args = { y, x, ROWS, 10, C, make_dropout(0.3), PL_STORE_F32 };
    double kept = 0, sum = 0;
    (void)state;
    for (size_t i = 0; i < ROWS * C; i++)
        x[i] = 1;
    ref.drop(&args, 0, 1);
    for (size_t i = 0; i < ROWS * C; i++) {
        kept += y[i] != 0;
        sum += (double)y[i];
    }
    assert_true(fabs(kept / (ROWS * C) - 0.7) < 0.01);
    assert_true(fabs(sum / (ROWS * C) - 1.0) < 0.015);
    fenced_release();
}

static void nothing_is_read_beyond_the_end(void **state)
{
    both_gelus_and_their_slopes_agree(state);
    rows_with_and_without_dropout_agree(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_gelus_and_their_slopes_agree),
        cmocka_unit_test(stored_inputs_are_used_as_they_are),
        cmocka_unit_test(huge_inputs_have_slope_0_or_1),
        cmocka_unit_test(the_references_slopes_are_slopes),
        cmocka_unit_test(rows_with_and_without_dropout_agree),
        cmocka_unit_test(copied_rows_go_to_their_places),
        cmocka_unit_test(a_stored_dropout_is_rounded_once),
        cmocka_unit_test(residual_chunks_draw_the_masks_of_the_whole),
        cmocka_unit_test(a_mask_keeps_its_share_and_the_mean),
        cmocka_unit_test_setup_teardown(nothing_is_read_beyond_the_end,
                                        guard_up, guard_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
