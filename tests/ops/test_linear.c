/* test_linear.c: a linear layer of products and column sums: biases, and the
 * gradients of all. */
#include "../support/kernel_cases.h"

/* Chains of at most 100 numbers below 1: see test_gemm.c. */
static const tolerance sum_allowed = { "column_sum", 2e-5, 1e-6 };

/* What a bf16 product starts from is never denormal, and the reference agrees
 * to the bit: there is nothing to add. */
static void a_tiny_bias_counts_as_zero_in_a_bf16_product(void **state)
{
    enum { M = 3, N = 70, K = 5 };
    static const float some[4] = { 0x1p-102f, -0x1p-102f, 0x1.fffffep-103f,
                                   -0x1p-140f };
    (void)state;
    for (int isa = -1; isa <= (int)pl_cpu_isa(); isa++)
        for (int form = 0; form < 12; form++) {
            const pl_kernels set = isa < 0 ? pl_kernels_ref()
                                           : pl_kernels_for((pl_isa)isa);
            const size_t rows = form % 2 ? M : 1;
            const int bf16 = form / 2 % 3 == 2;
            float *bias = fenced_random(N, 1, 1), *c = fenced_blank(M * N);
            const float *a = fenced_random(M * K, 1, 0),
                        *b = fenced_random(N * K, 1, 0);
            const pl_gemm g = { .M = rows,
                                .N = N,
                                .K = K,
                                .a = a,
                                .a_row = K,
                                .a_col = 1,
                                .a_round = form / 2 % 3 ? PL_STORE_BF16
                                                        : PL_STORE_F32,
                                .b = b,
                                .b_row = form / 6 ? 1 : N,
                                .b_col = form / 6 ? K : 1,
                                .b_round = bf16 ? PL_STORE_BF16 : PL_STORE_F16,
                                .c = c,
                                .c_row = N,
                                .bias = bias,
                                .start = PL_GEMM_BIAS };
            for (size_t n = 0; n < N; n++)
                bias[n] = some[n % 4];
            RUN_OP(&set, gemm, &g, 2);
            for (size_t i = 0; i < rows * N; i++)
                assert_true(c[i] ==
                            (bf16 && i % N % 4 > 1 ? 0.0f : bias[i % N]));
            fenced_release();
        }
}

typedef struct sum_shape {
    size_t rows, C;
    pl_storage kept;
} sum_shape;

static void sum_case(const pl_kernels *set, const void *shape, int nth,
                     outcome *out)
{
    const sum_shape *s = shape;
    const pl_column_sum args = { .sum = fenced_state(s->C, 1, 1),
                                 .x = stored_input(
                                     fenced_random(s->rows * s->C, 2, 1),
                                     s->rows * s->C, s->kept),
                                 .rows = s->rows,
                                 .C = s->C,
                                 .x_storage = s->kept };
    RUN_OP(set, column_sum, &args, nth);
    outcome_add(out, args.sum, s->C);
}

static void column_sums_agree_and_keep_what_was_there(void **state)
{
    static const size_t sizes[] = { 0, 1, 7, 8, 9, 67, 100, 600 };
    (void)state;
    for (int r = 0; r < 7; r++)
        for (int c = 0; c < 8; c++)
            for (int i = 0; i < STORAGES; i++) {
                const sum_shape s = { sizes[r], sizes[c], storages[i] };
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
    const pl_column_sum gb = { db, l.dy, ROWS, OUT, PL_STORE_F32 };
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
        cmocka_unit_test(a_tiny_bias_counts_as_zero_in_a_bf16_product),
        cmocka_unit_test(column_sums_agree_and_keep_what_was_there),
        cmocka_unit_test(a_linear_layers_gradients_are_its_slopes),
        cmocka_unit_test_setup_teardown(
            column_sums_agree_and_keep_what_was_there, guard_up, guard_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
