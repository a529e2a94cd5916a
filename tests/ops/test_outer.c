/* test_outer.c: DiLoCo's outer step. */
#include "../support/kernel_cases.h"

static const tolerance exact = { "outer", 0, 0 };

typedef struct tensor {
    size_t count;
    pl_storage copy; /* float32: none */
} tensor;

static const size_t counts[] = { 0, 1, 7, 15, 16, 17, 67, 300, 4097, 9001 };
enum { COUNTS = sizeof counts / sizeof counts[0] };

static void outer_case(const pl_kernels *set, const void *shape, int nth,
                       outcome *out)
{
    const tensor *s = shape;
    const size_t n = s->count;
    float *halves = fenced_blank(n);
    const pl_outer args = { .w = fenced_blank(n),
                            .g = fenced_random(n, 1, 3),
                            .anchor = fenced_random(n, 2, 1),
                            .b = fenced_random(n, 3, 1),
                            .count = n,
                            .share = 0.25f,
                            .momentum = 0.9f,
                            .rate = 0.7f,
                            .copy = s->copy == PL_STORE_F32
                                        ? NULL
                                        : (uint16_t *)(void *)halves,
                            .copy_storage = s->copy };
    memset(halves, 0, n * sizeof *halves);
    RUN_OP(set, outer, &args, nth);
    outcome_add(out, args.w, n);
    outcome_add(out, args.g, n);
    outcome_add(out, args.anchor, n);
    outcome_add(out, args.b, n);
    outcome_add_stored(out, halves, n,
                       s->copy == PL_STORE_F32 ? PL_STORE_F16 : s->copy);
}

static void outer_steps_are_alike(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTS; i++)
        for (int k = 0; k < STORAGES; k++) {
            const tensor of = { counts[i], storages[k] };
            judge(outer_case, &of, &exact);
        }
}

/* Two steps with the numbers of the paper's equations: workers at 2 and 4 who
 * met at 5, then at 1 and 1. */
static void two_steps_by_hand(void **state)
{
    (void)state;
    for (int isa = -1; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = isa < 0 ? pl_kernels_ref()
                                       : pl_kernels_for((pl_isa)isa);
        float w = 99, g = 2 + 4, anchor = 5, b = 0;
        uint16_t copy = 0;
        const pl_outer args = { .w = &w,
                                .g = &g,
                                .anchor = &anchor,
                                .b = &b,
                                .count = 1,
                                .share = 0.5f,
                                .momentum = 0.5f,
                                .rate = 0.25f,
                                .copy = &copy,
                                .copy_storage = PL_STORE_BF16 };
        set.outer(&args, 0, 1);
        /* d = 5 - 3, b = 2, 5 - 0.25 (2 + 0.5 * 2) */
        assert_true(b == 2 && w == 4.25f && anchor == 4.25f && g == 0);
        assert_true(pl_bf16_value(copy) == 4.25f);
        g = 1 + 1;
        set.outer(&args, 0, 1);
        /* d = 4.25 - 1, b = 1 + 3.25, 4.25 - 0.25 (3.25 + 0.5 * 4.25) */
        assert_true(b == 4.25f && w == 2.90625f && anchor == w && g == 0);
    }
}

/* A rate of 1 without momentum is the mean. */
static void without_momentum_a_whole_step_is_the_mean(void **state)
{
    (void)state;
    const pl_kernels set = pl_kernels_for(pl_cpu_isa());
    float w = 0, g = 3 + 5 + 8 + 16, anchor = 64, b = 0;
    const pl_outer args = { .w = &w,
                            .g = &g,
                            .anchor = &anchor,
                            .b = &b,
                            .count = 1,
                            .share = 0.25f,
                            .momentum = 0.0f,
                            .rate = 1.0f };
    set.outer(&args, 0, 1);
    assert_true(w == 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outer_steps_are_alike),
        cmocka_unit_test(two_steps_by_hand),
        cmocka_unit_test(without_momentum_a_whole_step_is_the_mean),
        cmocka_unit_test_setup_teardown(outer_steps_are_alike, guard_up,
                                        guard_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
