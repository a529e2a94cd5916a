/* test_add.c: sums of groups, and where they are kept. */
#include "../support/kernel_cases.h"

static const tolerance exact = { "add", 0, 0 };

static const size_t sizes[] = { 0, 1, 7, 15, 16, 17, 67, 300, 9001 };
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void add_case(const pl_kernels *set, const void *shape, int nth,
                     outcome *out)
{
    const size_t n = *(const size_t *)shape;
    const pl_add args = { fenced_random(n, 1, 3), fenced_random(n, 2, 3), n };
    RUN_OP(set, add, &args, nth);
    outcome_add(out, args.y, n);
    outcome_add(out, args.x, n);
}

static void move_case(const pl_kernels *set, const void *shape, int nth,
                      outcome *out)
{
    const size_t n = *(const size_t *)shape;
    const pl_move args = { fenced_blank(n), fenced_random(n, 1, 3), n };
    RUN_OP(set, move, &args, nth);
    outcome_add(out, args.y, n);
    outcome_add(out, args.x, n);
}

static void sums_and_moves_of_awkward_sizes_agree(void **state)
{
    (void)state;
    for (int i = 0; i < SIZES; i++) {
        judge(add_case, &sizes[i], &exact);
        judge(move_case, &sizes[i], &exact);
    }
}

/* Signs of zeros, sums that are denormal, and what isn't finite. */
static const float odd[] = { 0.0f,     -0.0f,     1e-45f,   -1e-45f,
                             1.2e-38f, -1.2e-38f, 3.4e38f,  -3.4e38f,
                             1.0f,     0x1p-24f,  INFINITY, -INFINITY };
enum { ODD = sizeof odd / sizeof odd[0] };

static void a_sum_is_rounded_once_and_keeps_its_sign(void **state)
{
    (void)state;
    for (int isa = -1; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = isa < 0 ? pl_kernels_ref()
                                       : pl_kernels_for((pl_isa)isa);
        float x[ODD * ODD], y[ODD * ODD], sum[ODD * ODD];
        for (size_t i = 0; i < ODD * ODD; i++) {
            x[i] = odd[i / ODD];
            y[i] = odd[i % ODD];
            sum[i] = (float)((double)x[i] + (double)y[i]);
        }
        const pl_add args = { y, x, ODD * ODD };
        set.add(&args, 0, 1);
        for (size_t i = 0; i < ODD * ODD; i++)
            if (isnan(sum[i]))
                assert_true(isnan(y[i]));
            else
                assert_memory_equal(&y[i], &sum[i], sizeof sum[i]);
    }
}

/* To the bit, a NaN too: a copy is no arithmetic. */
static void what_is_moved_is_what_was_there(void **state)
{
    (void)state;
    for (int isa = -1; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = isa < 0 ? pl_kernels_ref()
                                       : pl_kernels_for((pl_isa)isa);
        float x[ODD + 1], y[ODD + 1], before[ODD + 1];
        const float zeros[ODD + 1] = { 0.0f };
        memcpy(x, odd, sizeof odd);
        x[ODD] = marked_nan(77);
        memcpy(before, x, sizeof x);
        const pl_move args = { y, x, ODD + 1 };
        set.move(&args, 0, 1);
        assert_memory_equal(y, before, sizeof y);
        assert_memory_equal(x, zeros, sizeof x);
    }
}

static void nothing_is_read_beyond_the_end(void **state)
{
    sums_and_moves_of_awkward_sizes_agree(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_moves_of_awkward_sizes_agree),
        cmocka_unit_test(a_sum_is_rounded_once_and_keeps_its_sign),
        cmocka_unit_test(what_is_moved_is_what_was_there),
        cmocka_unit_test_setup_teardown(nothing_is_read_beyond_the_end,
                                        guard_up, guard_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
