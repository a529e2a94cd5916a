/* test_optimizer.c: sums of squares, and AdamW whose state is float32. */
#include "../support/kernel_cases.h"

/* Both are defined to the bit and use no fused operation. */
static const tolerance exact = { "optimizer", 0, 0 };

static const size_t counts[] = { 0,
                                 1,
                                 7,
                                 8,
                                 9,
                                 67,
                                 1000,
                                 PL_SUMSQ_BLOCK - 1,
                                 PL_SUMSQ_BLOCK,
                                 PL_SUMSQ_BLOCK + 9,
                                 3 * PL_SUMSQ_BLOCK + 67 };
enum { COUNTS = sizeof counts / sizeof *counts };

static void sumsq_case(const pl_kernels *set, const void *shape, int nth,
                       outcome *out)
{
    const size_t count = *(const size_t *)shape;
    double partial[6] = { -1, -1, -1, -1, -1, -1 };
    const pl_sumsq args = { .partial = partial,
                            .x = fenced_random(count, 1, 3),
                            .count = count };
    RUN_OP(set, sumsq, &args, nth);
    outcome_add_double(out, partial, 6);
}

static void squares_are_summed_alike_block_by_block(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTS; i++)
        judge(sumsq_case, &counts[i], &exact);
}

static void a_sum_of_squares_is_one(void **state)
{
    const float x[] = { 1, -2, 3, 0.5f, 0, 0, 0, 0, 4, 1e20f };
    double partial = 0;
    const pl_sumsq small = { .partial = &partial, .x = x, .count = 9 },
                   large = { .partial = &partial, .x = x, .count = 10 };
    (void)state;
    pl_kernels_ref().sumsq(&small, 0, 1);
    assert_true(partial == 30.25);
    pl_kernels_ref().sumsq(&large, 0, 1);
    assert_true(fabs(partial / 1e40 - 1) < 1e-6);
}

/* ---- clip ---- */

typedef struct clip_shape {
    size_t count;
    double loss_scale;
    float grad_clip;
    double last; /* partial */
} clip_shape;

static void clip_case(const pl_kernels *set, const void *shape, int nth,
                      outcome *out)
{
    const clip_shape *s = shape;
    double partial[100];
    float got[2] = { -1, -1 };
    uint32_t skipped = 7;
    for (size_t i = 0; i < s->count; i++)
        partial[i] = i + 1 == s->count ? s->last : 1.0 / (double)(i + 3);
    const pl_clip args = { &got[0],  &got[1],       &skipped,    partial,
                           s->count, s->loss_scale, s->grad_clip };
    RUN_OP(set, clip, &args, nth);
    const double values[] = { (double)got[0], (double)got[1], skipped };
    outcome_add_double(out, values, 3);
}

static void the_norm_is_clipped_alike(void **state)
{
    static const clip_shape shapes[] = {
        { 0, 1, 1, 0 },        { 1, 1, 0, 9 },           { 67, 1024, 1, 0.5 },
        { 100, 65536, 0, 1 },  { 9, 0.5, 0.25f, 1e-40 }, { 9, 1, 1, 1e300 },
        { 8, 1, 1, INFINITY }, { 8, 2, 0, INFINITY },
    };
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        judge(clip_case, &shapes[i], &exact);
}

/* By hand: a norm of 5 under a loss scale of 2, clipped to 1 and to 10. */
static void the_norm_is_clipped_as_pytorch_does(void **state)
{
    const double partial[] = { 36, 64 }, endless[] = { 1, INFINITY },
                 none[] = { 1, NAN };
    (void)state;
    for (int isa = -1; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = isa < 0 ? pl_kernels_ref()
                                       : pl_kernels_for((pl_isa)isa);
        float norm, clip;
        uint32_t skipped;
        pl_clip args = { &norm, &clip, &skipped, partial, 2, 2.0, 1.0f };
        set.clip(&args, 0, 1);
        assert_true(norm == 5.0f && skipped == 0);
        assert_true(clip == (float)(1.0 / (5.0 + 1e-6) / 2.0));
        args.grad_clip = 10.0f;
        set.clip(&args, 0, 1);
        assert_true(clip == 0.5f);
        args.grad_clip = 0.0f;
        set.clip(&args, 0, 1);
        assert_true(clip == 0.5f && skipped == 0);
        args.partial = endless;
        set.clip(&args, 0, 1);
        assert_int_equal(skipped, 1);
        args.partial = none;
        set.clip(&args, 0, 1);
        assert_int_equal(skipped, 1);
    }
}

/* ---- AdamW ---- */

static pl_adamw make_adamw(size_t count)
{
    static const float clip = 0.7f;
    pl_adamw a = { .w = fenced_state(count, 1, 1),
                   .g = fenced_state(count, 2, 1),
                   .m = fenced_state(count, 3, 0.1f),
                   .v = fenced_state(count, 4, 0.1f),
                   .count = count,
                   .keep = 0.9999f,
                   .beta1_rest = 0.1f,
                   .beta2 = 0.95f,
                   .beta2_rest = 0.05f,
                   .step_size = 1e-3f,
                   .root_correction = 0.3f,
                   .eps = 1e-8f,
                   .clip = &clip };
    for (size_t i = 0; i < count; i++)
        a.v[i] = fabsf(a.v[i]);
    return a;
}

static void adamw_case(const pl_kernels *set, const void *shape, int nth,
                       outcome *out)
{
    const pl_adamw args = make_adamw(*(const size_t *)shape);
    RUN_OP(set, adamw, &args, nth);
    outcome_add(out, args.w, args.count);
    outcome_add(out, args.m, args.count);
    outcome_add(out, args.v, args.count);
    outcome_add(out, args.g, args.count);
}

static void adamw_takes_the_same_step_everywhere(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTS; i++)
        judge(adamw_case, &counts[i], &exact);
}

/* Against the published formula in double, and the gradient is spent. */
static void adamw_takes_the_right_step(void **state)
{
    enum { N = 200 };
    const pl_adamw before = make_adamw(N), after = make_adamw(N);
    (void)state;
    pl_kernels_ref().adamw(&after, 0, 1);
    for (size_t i = 0; i < N; i++) {
        const double g = (double)before.g[i] * 0.7;
        const double m = 0.9 * (double)before.m[i] + 0.1 * g;
        const double v = 0.95 * (double)before.v[i] + 0.05 * g * g;
        const double w = (double)before.w[i] * 0.9999 -
                         1e-3 * m / (sqrt(v) / 0.3 + 1e-8);
        assert_true(fabs((double)after.m[i] - m) < 1e-6);
        assert_true(fabs((double)after.v[i] - v) < 1e-6);
        assert_true(fabs((double)after.w[i] - w) < 1e-6);
        assert_true(after.g[i] == 0.0f);
    }
    fenced_release();
}

static void a_first_step_without_gradient_stays_put(void **state)
{
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = pl_kernels_for((pl_isa)isa);
        float w = 0.5f, g = 0, m = 0, v = 0;
        const pl_adamw args = { .w = &w,
                                .g = &g,
                                .m = &m,
                                .v = &v,
                                .count = 1,
                                .keep = 1,
                                .beta1_rest = 0.1f,
                                .beta2 = 0.95f,
                                .beta2_rest = 0.05f,
                                .step_size = 1e-2f,
                                .root_correction = 0.2f,
                                .eps = 1e-8f };
        set.adamw(&args, 0, 1);
        assert_true(w == 0.5f && m == 0 && v == 0 && g == 0);
    }
}

static void nothing_is_read_beyond_the_end(void **state)
{
    squares_are_summed_alike_block_by_block(state);
    adamw_takes_the_same_step_everywhere(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(squares_are_summed_alike_block_by_block),
        cmocka_unit_test(a_sum_of_squares_is_one),
        cmocka_unit_test(the_norm_is_clipped_alike),
        cmocka_unit_test(the_norm_is_clipped_as_pytorch_does),
        cmocka_unit_test(adamw_takes_the_same_step_everywhere),
        cmocka_unit_test(adamw_takes_the_right_step),
        cmocka_unit_test(a_first_step_without_gradient_stays_put),
        cmocka_unit_test_setup_teardown(nothing_is_read_beyond_the_end,
                                        guard_up, guard_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
