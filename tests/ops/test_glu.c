/* test_glu.c: SwiGLU, forward and in place backward; and what PyTorch computes.
 */
#include "../support/kernel_cases.h"

/* exp to 1.5 ulp, a division and two products, of values up to 200. */
static const tolerance allowed = { "glu", 1e-6, 1e-6 };
static const tolerance backward_allowed = { "glu_bwd", 4e-6, 2e-6 };

typedef struct shape {
    size_t rows, F;
    float spread;
    pl_storage kept, other;
} shape;

static void *stored_state(const float *x, size_t n, pl_storage storage)
{
    void *y = stored_blank(n, storage);
    for (size_t i = 0; i < n; i++)
        pl_storage_put(y, i, x[i], storage);
    return y;
}

static void forward_case(const pl_kernels *set, const void *of, int nth,
                         outcome *out)
{
    const shape *s = of;
    const size_t n = s->rows * s->F;
    const pl_glu args = { .y = stored_blank(n, s->other),
                          .x = stored_input(fenced_random(2 * n, 1, s->spread),
                                            2 * n, s->kept),
                          .rows = s->rows,
                          .F = s->F,
                          .y_storage = s->other,
                          .x_storage = s->kept };
    RUN_OP(set, glu, &args, nth);
    outcome_add_stored(out, args.y, n, s->other);
}

static void backward_case(const pl_kernels *set, const void *of, int nth,
                          outcome *out)
{
    const shape *s = of;
    const size_t n = s->rows * s->F;
    const pl_glu_bwd args = {
        .x = stored_state(fenced_random(2 * n, 1, s->spread), 2 * n, s->kept),
        .dy = stored_input(fenced_random(n, 2, 1), n, s->other),
        .rows = s->rows,
        .F = s->F,
        .x_storage = s->kept,
        .dy_storage = s->other
    };
    RUN_OP(set, glu_bwd, &args, nth);
    outcome_add_stored(out, args.x, 2 * n, s->kept);
}

static void judge_shapes(void)
{
    static const size_t sizes[] = { 0, 1, 7, 8, 9, 67, 300 };
    static const float spreads[] = { 2, 12 };
    for (int r = 0; r < 6; r++)
        for (int f = 0; f < 7; f++)
            for (int form = 0; form < 2 * STORAGES; form++) {
                const shape s = { sizes[r], sizes[f], spreads[form % 2],
                                  storages[form / 2],
                                  storages[(form + r) % STORAGES] };
                const tolerance t = tolerance_stored(&allowed, s.other),
                                u = tolerance_stored(&backward_allowed, s.kept);
                judge(forward_case, &s, &t);
                judge(backward_case, &s, &u);
            }
}

static void gates_of_any_width_agree(void **state)
{
    (void)state;
    judge_shapes();
}

/* Far from zero a gate is open or shut, and no slope is NaN. */
static void far_gates_are_open_or_shut(void **state)
{
    static const float gates[] = { -1e30f, -200, -89, 89, 200, 1e30f };
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int i = 0; i < 6; i++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const float dy = 1;
            float x[2] = { gates[i], 2 }, y;
            const pl_glu f = { .y = &y, .x = x, .rows = 1, .F = 1 };
            const pl_glu_bwd b = { .x = x, .dy = &dy, .rows = 1, .F = 1 };
            set.glu(&f, 0, 1);
            set.glu_bwd(&b, 0, 1);
            assert_true(gates[i] < 0 ? fabsf(y) < 1e-30f : y == 2 * gates[i]);
            assert_true(gates[i] < 0 ? fabsf(x[0]) < 1e-30f : x[0] == 2.0f);
            assert_true(gates[i] < 0 ? fabsf(x[1]) < 1e-30f : x[1] == gates[i]);
        }
}

/* ---- finite differences ---- */

enum { ROWS = 3, F = 5 };

typedef struct slopes {
    float *x, *y, *dy;
} slopes;

static double loss(void *context)
{
    const slopes *s = context;
    const pl_glu f = { .y = s->y, .x = s->x, .rows = ROWS, .F = F };
    pl_kernels_ref().glu(&f, 0, 1);
    return weighted(s->y, s->dy, ROWS * F);
}

static void the_references_gradients_are_its_slopes(void **state)
{
    slopes s = { fenced_random(2 * ROWS * F, 1, 2), fenced_blank(ROWS * F),
                 fenced_random(ROWS * F, 3, 1) };
    float *d = fenced_make(2 * ROWS * F, 3e30f, 0);
    (void)state;
    memcpy(d, s.x, 2 * ROWS * F * sizeof *d);
    const pl_glu_bwd b = { .x = d, .dy = s.dy, .rows = ROWS, .F = F };
    pl_kernels_ref().glu_bwd(&b, 0, 1);
    expect_gradient("dx", loss, &s, s.x, 2 * ROWS * F, d, 1e-4);
    fenced_release();
}

/* torch.nn.functional.silu(gate) * up in float64, and its gradients for dy. */
static void pytorch_computes_the_same(void **state)
{
    static const float x[] = { 0.5f, -1.25f, 3.0f, 2.0f, -0.75f, 0.25f };
    static const float dy[] = { 1.0f, -0.5f, 2.0f };
    static const float want_y[] = { 0.622459331f, 0.20878138f, 0.714430595f };
    static const float want_d[] = { 1.47992237f,  0.00236968316f, 0.544052053f,
                                    0.311229666f, 0.139187587f,   5.71544476f };
    (void)state;
    for (int isa = -1; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = isa < 0 ? pl_kernels_ref()
                                       : pl_kernels_for((pl_isa)isa);
        float y[3], d[6];
        memcpy(d, x, sizeof d);
        const pl_glu f = { .y = y, .x = x, .rows = 1, .F = 3 };
        const pl_glu_bwd b = { .x = d, .dy = dy, .rows = 1, .F = 3 };
        set.glu(&f, 0, 1);
        set.glu_bwd(&b, 0, 1);
        for (int i = 0; i < 3; i++)
            assert_float_equal(y[i], want_y[i], 1e-6f);
        for (int i = 0; i < 6; i++)
            assert_float_equal(d[i], want_d[i], 1e-6f);
    }
}

static void nothing_is_read_beyond_the_end(void **state)
{
    (void)state;
    judge_shapes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gates_of_any_width_agree),
        cmocka_unit_test(far_gates_are_open_or_shut),
        cmocka_unit_test(the_references_gradients_are_its_slopes),
        cmocka_unit_test(pytorch_computes_the_same),
        cmocka_unit_test_setup_teardown(nothing_is_read_beyond_the_end,
                                        guard_up, guard_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
