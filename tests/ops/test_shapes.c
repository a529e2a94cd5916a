/* test_shapes.c: what models of other families than GPT-2 ask of ops that it
 * has, too: another eps, no table of positions, relu2. */
#include "../support/kernel_cases.h"

static const tolerance norm_allowed = { "norm", 2e-5, 2e-6 };
static const tolerance exact = { "exact", 0, 0 };
/* a chain of 40 products */
static const tolerance product_allowed = { "relu2", 2e-5, 2e-6 };

enum { ROWS = 9, C = 67 };

static void norm_case(const pl_kernels *set, const void *of, int nth,
                      outcome *out)
{
    const float eps = *(const float *)of;
    const pl_layernorm a = { .y = fenced_blank(ROWS * C),
                             .stats = fenced_blank(2 * ROWS),
                             .x = fenced_random(ROWS * C, 1, 1e-2f),
                             .weight = fenced_random(C, 2, 1),
                             .bias = fenced_random(C, 3, 1),
                             .rows = ROWS,
                             .C = C,
                             .eps = eps };
    const pl_rmsnorm b = { .y = fenced_blank(ROWS * C),
                           .rstd = fenced_blank(ROWS),
                           .x = a.x,
                           .weight = a.weight,
                           .rows = ROWS,
                           .C = C,
                           .eps = eps };
    RUN_OP(set, layernorm, &a, nth);
    RUN_OP(set, rmsnorm, &b, nth);
    outcome_add(out, a.y, ROWS * C);
    outcome_add(out, b.y, ROWS * C);
}

/* Rows whose mean square is about 3e-5, so that eps matters. */
static void norms_add_the_eps_that_they_are_told(void **state)
{
    static const float some[] = { 1e-12f, 1e-6f, 1e-5f, 1e-3f };
    const pl_kernels set = pl_kernels_for(pl_cpu_isa());
    double before = 0;
    (void)state;
    for (int i = 0; i < 4; i++) {
        judge(norm_case, &some[i], &norm_allowed);
        outcome o = run_case(norm_case, &set, &some[i], 1);
        const double size = fabs(o.values[2 * ROWS * C - 1]);
        assert_true(i == 0 || size < before);
        before = size;
        free(o.values);
    }
}

static void embed_case(const pl_kernels *set, const void *of, int nth,
                       outcome *out)
{
    static const int32_t tokens[] = { 3, 0, 3, 1, 4, 4, 2, 0, 1 };
    const float p = *(const float *)of;
    const pl_dropout drop = { .threshold = (uint32_t)(p * 4294967040.0f),
                              .scale = 1 / (1 - p),
                              .seed = 7 };
    const pl_embed a = { .x = fenced_blank(ROWS * C),
                         .tokens = tokens,
                         .token_stride = 3,
                         .rows = ROWS,
                         .T = 3,
                         .C = C,
                         .wte = fenced_random(5 * C, 1, 1),
                         .dropout = drop };
    const pl_embed_bwd b = { .dwte = fenced_state(5 * C, 2, 1),
                             .dx = fenced_random(ROWS * C, 3, 1),
                             .tokens = tokens,
                             .token_stride = 3,
                             .rows = ROWS,
                             .T = 3,
                             .C = C,
                             .dropout = drop };
    RUN_OP(set, embed, &a, nth);
    RUN_OP(set, embed_bwd, &b, nth);
    outcome_add(out, a.x, ROWS * C);
    outcome_add(out, b.dwte, 5 * C);
}

static void tokens_are_embedded_without_positions(void **state)
{
    static const float rates[] = { 0, 0.25f };
    (void)state;
    for (int i = 0; i < 2; i++)
        judge(embed_case, &rates[i], &exact);
}

/* As an epilogue both ways, and alone. */
static void relu2_case(const pl_kernels *set, const void *of, int nth,
                       outcome *out)
{
    const pl_storage kept = *(const pl_storage *)of;
    enum { K = 40 };
    pl_gemm g = { .M = ROWS,
                  .N = C,
                  .K = K,
                  .a = fenced_random(ROWS * K, 1, 1),
                  .a_row = K,
                  .a_col = 1,
                  .b = fenced_random(K * C, 2, 1),
                  .b_row = C,
                  .b_col = 1,
                  .c = stored_blank(ROWS * C, kept),
                  .c_row = C,
                  .c_storage = kept };
    pl_gemm back = g;
    const float *fc = fenced_random(ROWS * C, 3, 1);
    g.epilogue = (pl_epilogue){ .kind = PL_EPILOGUE_GELU,
                                .gelu = PL_GELU_RELU2,
                                .y = stored_blank(ROWS * C, kept),
                                .y_storage = kept,
                                .row = C };
    back.c = stored_blank(ROWS * C, kept);
    back.epilogue = (pl_epilogue){ .kind = PL_EPILOGUE_GELU_BWD,
                                   .gelu = PL_GELU_RELU2,
                                   .x = stored_input(fc, ROWS * C, kept),
                                   .x_storage = kept,
                                   .row = C };
    const pl_gelu alone = { .y = stored_blank(ROWS * C, kept),
                            .x = back.epilogue.x,
                            .count = ROWS * C,
                            .kind = PL_GELU_RELU2,
                            .y_storage = kept,
                            .x_storage = kept };
    RUN_OP(set, gemm, &g, nth);
    RUN_OP(set, gemm, &back, nth);
    RUN_OP(set, gelu, &alone, nth);
    outcome_add_stored(out, g.epilogue.y, ROWS * C, kept);
    outcome_add_stored(out, back.c, ROWS * C, kept);
    outcome_add_stored(out, alone.y, ROWS * C, kept);
}

static void relu2_is_the_square_of_what_is_positive(void **state)
{
    float x[] = { -3, -0.0f, 0, 0.5f, 3 }, y[5];
    const pl_gelu a = { .y = y, .x = x, .count = 5, .kind = PL_GELU_RELU2 };
    (void)state;
    for (int i = 0; i < STORAGES; i++) {
        tolerance t = tolerance_stored(&product_allowed, storages[i]);
        t.relative *= 3; /* the square of what was rounded */
        t.absolute += i ? 0.05 : 0;
        judge(relu2_case, &storages[i], &t);
    }
    pl_kernels_for(pl_cpu_isa()).gelu(&a, 0, 1);
    assert_true(y[0] == 0 && y[1] == 0 && y[2] == 0 && y[3] == 0.25f &&
                y[4] == 9);
}

/* ---- finite differences ---- */

typedef struct slopes {
    float *x, *y, *dy;
} slopes;

static double loss(void *context)
{
    const slopes *s = context;
    const pl_gelu a = {
        .y = s->y, .x = s->x, .count = C, .kind = PL_GELU_RELU2
    };
    pl_kernels_ref().gelu(&a, 0, 1);
    return weighted(s->y, s->dy, C);
}

static void the_references_slopes_are_relu2_s(void **state)
{
    const float one = 1;
    slopes s = { fenced_random(C, 1, 2), fenced_blank(C),
                 fenced_random(C, 2, 1) };
    (void)state;
    for (size_t i = 0; i < C; i++) /* away from the corner */
        if (fabsf(s.x[i]) < 0.0625f)
            s.x[i] = 0.5f;
    pl_gemm g = { .M = 1,
                  .N = C,
                  .K = 1,
                  .a = &one,
                  .a_row = 1,
                  .a_col = 1,
                  .b = s.dy,
                  .b_row = C,
                  .b_col = 1,
                  .c = fenced_blank(C),
                  .c_row = C,
                  .epilogue = { .kind = PL_EPILOGUE_GELU_BWD,
                                .gelu = PL_GELU_RELU2,
                                .x = s.x,
                                .row = C } };
    pl_kernels_ref().gemm(&g, 0, 1);
    expect_gradient("dx", loss, &s, s.x, C, g.c, 1e-4);
    fenced_release();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_add_the_eps_that_they_are_told),
        cmocka_unit_test(tokens_are_embedded_without_positions),
        cmocka_unit_test(relu2_is_the_square_of_what_is_positive),
        cmocka_unit_test(the_references_slopes_are_relu2_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
