/* test_gemm.c: matrix products and column sums. */
#include "../support/kernel_cases.h"

/* Chains of at most 600 products below 1: partial sums stay under 20, and
 * rounding errors of half an ulp of that (1e-6) add up like a random walk. */
static const tolerance gemm_allowed = { "gemm", 2e-5, 1e-6 };
static const tolerance sum_allowed = { "column_sum", 2e-5, 1e-6 };

typedef struct gemm_shape {
    size_t M, N, K;
    int a_turned, b_turned;
    pl_gemm_start start;
} gemm_shape;

/* Rows are 3 longer than they need be; the gaps are NaN. */
static pl_gemm make_gemm(const gemm_shape *s)
{
    pl_gemm g = { .M = s->M, .N = s->N, .K = s->K, .start = s->start };
    uint32_t seed = 3;
    const size_t a_rows = s->a_turned ? s->K : s->M,
                 a_columns = s->a_turned ? s->M : s->K,
                 b_rows = s->b_turned ? s->N : s->K,
                 b_columns = s->b_turned ? s->K : s->N;
    g.a = fenced_matrix(a_rows, a_columns, a_columns + 3, 1);
    g.a_row = s->a_turned ? 1 : a_columns + 3;
    g.a_col = s->a_turned ? a_columns + 3 : 1;
    g.b = fenced_matrix(b_rows, b_columns, b_columns + 3, 2);
    g.b_row = s->b_turned ? 1 : b_columns + 3;
    g.b_col = s->b_turned ? b_columns + 3 : 1;
    g.c_row = s->N + 3;
    g.c = fenced_blank(s->M * g.c_row);
    for (size_t m = 0; m < s->M && s->start == PL_GEMM_KEEP; m++)
        for (size_t n = 0; n < s->N; n++)
            g.c[m * g.c_row + n] = random_value(&seed);
    if (s->start == PL_GEMM_BIAS)
        g.bias = fenced_random(s->N, 4, 1);
    return g;
}

static void gemm_case(const pl_kernels *set, const void *shape, int nth,
                      outcome *out)
{
    const gemm_shape *s = shape;
    const pl_gemm g = make_gemm(s);
    RUN_OP(set, gemm, &g, nth);
    outcome_add(out, g.c, s->M * g.c_row);
}

static void judge_all_forms(size_t M, size_t N, size_t K)
{
    for (int form = 0; form < 12; form++) {
        const gemm_shape s = {
            M, N, K, form & 1, form >> 1 & 1, (pl_gemm_start)(form / 4)
        };
        judge(gemm_case, &s, &gemm_allowed);
    }
}

static void products_of_awkward_shapes_agree(void **state)
{
    static const size_t sizes[] = { 0, 1, 7, 8, 9, 67 };
    (void)state;
    for (int m = 0; m < 6; m++)
        for (int n = 0; n < 6; n++)
            for (int k = 0; k < 6; k++)
                judge_all_forms(sizes[m], sizes[n], sizes[k]);
}

static void products_longer_than_a_block_agree(void **state)
{
    (void)state;
    judge_all_forms(13, 37, 600);
    judge_all_forms(33, 64, 256);
    judge_all_forms(1, 129, 257);
    judge_all_forms(50, 1, 511);
}

/* c = a b at once, or over pieces of K that end at each of `cuts`. */
static void cut_case(const pl_kernels *set, const gemm_shape *s,
                     const size_t *cuts, size_t count, outcome *out)
{
    const pl_gemm whole = make_gemm(s);
    size_t from = 0;
    for (size_t i = 0; i < count; i++) {
        pl_gemm part = whole;
        part.a += from * whole.a_col;
        part.b += from * whole.b_row;
        part.K = cuts[i] - from;
        part.start = i ? PL_GEMM_KEEP : s->start;
        RUN_OP(set, gemm, &part, 2);
        from = cuts[i];
    }
    outcome_add(out, whole.c, s->M * whole.c_row);
    fenced_release();
}

static void a_sum_may_be_cut_anywhere(void **state)
{
    static const size_t whole[] = { 300 },
                        pieces[] = { 1, 8, 9, 160, 299, 300 };
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int form = 0; form < 12; form++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const gemm_shape s = {
                19, 43, 300, form & 1, form >> 1 & 1, (pl_gemm_start)(form / 4)
            };
            outcome one = { 0 }, many = { 0 };
            cut_case(&set, &s, whole, 1, &one);
            cut_case(&set, &s, pieces, 6, &many);
            expect_same("pieces of K", &many, &one);
            free(one.values);
            free(many.values);
        }
}

/* Rows in chunks of `chunk`, columns in chunks of `chunk` + 2. */
static void chunk_case(const pl_kernels *set, const gemm_shape *s, size_t chunk,
                       outcome *out)
{
    const pl_gemm whole = make_gemm(s);
    for (size_t m = 0; m < s->M; m += chunk)
        for (size_t n = 0; n < s->N; n += chunk + 2) {
            pl_gemm part = whole;
            part.a += m * whole.a_row;
            part.b += n * whole.b_col;
            part.c += m * whole.c_row + n;
            if (whole.bias)
                part.bias += n;
            part.M = s->M - m < chunk ? s->M - m : chunk;
            part.N = s->N - n < chunk + 2 ? s->N - n : chunk + 2;
            RUN_OP(set, gemm, &part, 2);
        }
    outcome_add(out, whole.c, s->M * whole.c_row);
    fenced_release();
}

static void an_output_may_be_computed_in_chunks(void **state)
{
    static const size_t chunks[] = { 1, 5, 12, 17, 32 };
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int form = 0; form < 12; form++)
            for (int i = 0; i < 5; i++) {
                const pl_kernels set = pl_kernels_for((pl_isa)isa);
                const gemm_shape s = { 41,
                                       71,
                                       65,
                                       form & 1,
                                       form >> 1 & 1,
                                       (pl_gemm_start)(form / 4) };
                outcome one = { 0 }, many = { 0 };
                chunk_case(&set, &s, 1000, &one);
                chunk_case(&set, &s, chunks[i], &many);
                expect_same("chunks", &many, &one);
                free(one.values);
                free(many.values);
            }
}

static void nothing_is_read_beyond_the_end(void **state)
{
    static const size_t sizes[] = { 1, 9, 16, 67 };
    (void)state;
    for (int m = 0; m < 4; m++)
        for (int n = 0; n < 4; n++)
            for (int k = 0; k < 4; k++)
                judge_all_forms(sizes[m], sizes[n], sizes[k]);
}

typedef struct sum_shape {
    size_t rows, C;
} sum_shape;

static void sum_case(const pl_kernels *set, const void *shape, int nth,
                     outcome *out)
{
    const sum_shape *s = shape;
    const pl_column_sum args = { .sum = fenced_state(s->C, 1, 1),
                                 .x = fenced_random(s->rows * s->C, 2, 1),
                                 .rows = s->rows,
                                 .C = s->C };
    RUN_OP(set, column_sum, &args, nth);
    outcome_add(out, args.sum, s->C);
}

static void column_sums_agree_and_keep_what_was_there(void **state)
{
    static const size_t sizes[] = { 0, 1, 7, 8, 9, 67, 100 };
    (void)state;
    for (int r = 0; r < 7; r++)
        for (int c = 0; c < 7; c++) {
            const sum_shape s = { sizes[r], sizes[c] };
            judge(sum_case, &s, &sum_allowed);
        }
}

/* y = x w + b: dx = dy w^T, dw += x^T dy, db += column sums of dy, as a layer
 * uses the kernels. */
enum { ROWS = 5, IN = 4, OUT = 3 };

typedef struct linear {
    float *x, *w, *b, *y, *dy;
} linear;

static double linear_loss(void *context)
{
    const linear *l = context;
    const pl_gemm g = { .M = ROWS,
                        .N = OUT,
                        .K = IN,
                        .a = l->x,
                        .a_row = IN,
                        .a_col = 1,
                        .b = l->w,
                        .b_row = OUT,
                        .b_col = 1,
                        .c = l->y,
                        .c_row = OUT,
                        .bias = l->b,
                        .start = PL_GEMM_BIAS };
    pl_kernels_ref().gemm(&g, 0, 1);
    return weighted(l->y, l->dy, ROWS * OUT);
}

static void a_linear_layers_gradients_are_its_slopes(void **state)
{
    linear l = { fenced_random(ROWS * IN, 1, 1), fenced_random(IN * OUT, 2, 1),
                 fenced_random(OUT, 3, 1), fenced_blank(ROWS * OUT),
                 fenced_random(ROWS * OUT, 4, 1) };
    float *dx = fenced_blank(ROWS * IN), *dw = fenced_blank(IN * OUT);
    float *db = fenced_state(OUT, 5, 0);
    const pl_gemm gx = { .M = ROWS,
                         .N = IN,
                         .K = OUT,
                         .a = l.dy,
                         .a_row = OUT,
                         .a_col = 1,
                         .b = l.w,
                         .b_row = 1,
                         .b_col = OUT,
                         .c = dx,
                         .c_row = IN };
    const pl_gemm gw = { .M = IN,
                         .N = OUT,
                         .K = ROWS,
                         .a = l.x,
                         .a_row = 1,
                         .a_col = IN,
                         .b = l.dy,
                         .b_row = OUT,
                         .b_col = 1,
                         .c = dw,
                         .c_row = OUT };
    const pl_column_sum gb = { db, l.dy, ROWS, OUT };
    const pl_kernels ref = pl_kernels_ref();
    (void)state;
    ref.gemm(&gx, 0, 1);
    ref.gemm(&gw, 0, 1);
    ref.column_sum(&gb, 0, 1);
    expect_gradient("dx", linear_loss, &l, l.x, ROWS * IN, dx, 1e-4);
    expect_gradient("dw", linear_loss, &l, l.w, IN * OUT, dw, 1e-4);
    expect_gradient("db", linear_loss, &l, l.b, OUT, db, 1e-4);
    fenced_release();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_awkward_shapes_agree),
        cmocka_unit_test(products_longer_than_a_block_agree),
        cmocka_unit_test(a_sum_may_be_cut_anywhere),
        cmocka_unit_test(an_output_may_be_computed_in_chunks),
        cmocka_unit_test(column_sums_agree_and_keep_what_was_there),
        cmocka_unit_test(a_linear_layers_gradients_are_its_slopes),
        cmocka_unit_test_setup_teardown(nothing_is_read_beyond_the_end,
                                        guard_up, guard_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
