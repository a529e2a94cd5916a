/* test_rmsnorm.c: normalisation by the mean square, forward and backward; and
 * what PyTorch computes. */
#include "../support/kernel_cases.h"

/* Values of order 1 after a division by the row's root mean square. */
static const tolerance forward_allowed = { "rmsnorm", 2e-5, 2e-6 };
static const tolerance backward_allowed = { "rmsnorm_bwd", 2e-4, 1e-5 };

typedef struct shape {
    size_t rows, C;
    int accumulate;
    pl_storage kept; /* y, or dy */
} shape;

static pl_rmsnorm make_forward(const shape *s)
{
    const size_t n = s->rows * s->C;
    return (pl_rmsnorm){
        .y = stored_blank(n, s->kept),
        .rstd = fenced_blank(s->rows),
        .x = fenced_random(n, 1, 3),
        .weight = fenced_random(s->C, 2, 1),
        .rows = s->rows,
        .C = s->C,
        .eps = 1e-5f,
        .y_storage = s->kept,
    };
}

static void forward_case(const pl_kernels *set, const void *of, int nth,
                         outcome *out)
{
    const shape *s = of;
    const pl_rmsnorm args = make_forward(s);
    RUN_OP(set, rmsnorm, &args, nth);
    outcome_add_stored(out, args.y, s->rows * s->C, s->kept);
    outcome_add(out, args.rstd, s->C ? s->rows : 0);
}

/* The backward pass after ref's forward pass. */
static pl_rmsnorm_bwd make_backward(const shape *s)
{
    const size_t n = s->rows * s->C;
    const pl_rmsnorm forward = {
        .y = fenced_blank(n),
        .rstd = fenced_blank(s->rows),
        .x = fenced_random(n, 1, 3),
        .weight = fenced_random(s->C, 2, 1),
        .rows = s->rows,
        .C = s->C,
        .eps = 1e-5f,
    };
    pl_kernels_ref().rmsnorm(&forward, 0, 1);
    return (pl_rmsnorm_bwd){
        .dx = s->accumulate ? fenced_state(n, 4, 1) : fenced_blank(n),
        .dweight = fenced_state(s->C, 5, 1),
        .dy = stored_input(fenced_random(n, 7, 1), n, s->kept),
        .dy_storage = s->kept,
        .x = forward.x,
        .rstd = forward.rstd,
        .weight = forward.weight,
        .rows = s->rows,
        .C = s->C,
        .accumulate = s->accumulate,
    };
}

static void backward_case(const pl_kernels *set, const void *of, int nth,
                          outcome *out)
{
    const shape *s = of;
    const pl_rmsnorm_bwd args = make_backward(s);
    RUN_OP(set, rmsnorm_bwd, &args, nth);
    outcome_add(out, args.dx, s->rows * s->C);
    outcome_add(out, args.dweight, s->C);
}

static void judge_shapes(case_fn *run, const tolerance *allowed,
                         pl_storage storage)
{
    static const size_t sizes[] = { 0, 1, 7, 8, 9, 67 },
                        widths[] = { 0, 1, 2, 7, 8, 9, 16, 67, 300 };
    for (int r = 0; r < 6; r++)
        for (int c = 0; c < 9; c++)
            for (int form = 0; form < 2; form++) {
                const shape s = { sizes[r], widths[c], form, storage };
                judge(run, &s, allowed);
            }
}

static void rows_of_any_width_are_normalised_alike(void **state)
{
    (void)state;
    for (int i = 0; i < STORAGES; i++) {
        const tolerance t = tolerance_stored(&forward_allowed, storages[i]);
        judge_shapes(forward_case, &t, storages[i]);
    }
}

static void a_stored_output_is_rounded_once(void **state)
{
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int i = 0; i < STORAGES; i++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const shape stored = { 11, 600, 0, storages[i] },
                        floats = { 11, 600, 0, PL_STORE_F32 };
            const pl_rmsnorm a = make_forward(&stored),
                             b = make_forward(&floats);
            outcome got = { 0 }, want = { 0 };
            RUN_OP(&set, rmsnorm, &a, 2);
            RUN_OP(&set, rmsnorm, &b, 2);
            outcome_add_stored(&got, a.y, 11 * 600, stored.kept);
            outcome_add(&got, a.rstd, 11);
            outcome_add_rounded(&want, b.y, 11 * 600, stored.kept);
            outcome_add(&want, b.rstd, 11);
            expect_same("stored rmsnorm", &got, &want);
            free(got.values);
            free(want.values);
            fenced_release();
        }
}

static void gradients_of_any_width_agree(void **state)
{
    (void)state;
    for (int i = 0; i < STORAGES; i++)
        judge_shapes(backward_case, &backward_allowed, storages[i]);
}

/* A gradient of 16 bits is used as it is: its numbers as float32 give the same
 * bits. */
static void a_stored_gradient_is_used_as_it_is(void **state)
{
    enum { ROWS = 11, C = 600 };
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int i = 0; i < 2 * STORAGES; i++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const shape s = { ROWS, C, i % 2, storages[i / 2] };
            const pl_rmsnorm_bwd a = make_backward(&s);
            pl_rmsnorm_bwd b = make_backward(&s);
            outcome got = { 0 }, want = { 0 };
            b.dy = stored_back(b.dy, ROWS * C, s.kept);
            b.dy_storage = PL_STORE_F32;
            RUN_OP(&set, rmsnorm_bwd, &a, 2);
            RUN_OP(&set, rmsnorm_bwd, &b, 3);
            outcome_add(&got, a.dx, ROWS * C);
            outcome_add(&got, a.dweight, C);
            outcome_add(&want, b.dx, ROWS * C);
            outcome_add(&want, b.dweight, C);
            expect_same("stored gradient", &got, &want);
            free(got.values);
            free(want.values);
            fenced_release();
        }
}

static void a_batch_in_row_chunks_gives_the_same_bits(void **state)
{
    const shape s = { 20, 67, 1, PL_STORE_F32 };
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = pl_kernels_for((pl_isa)isa);
        outcome one = { 0 }, many = { 0 };
        const pl_rmsnorm_bwd whole = make_backward(&s), cut = make_backward(&s);
        set.rmsnorm_bwd(&whole, 0, 1);
        for (size_t r = 0; r < s.rows; r += 7) {
            pl_rmsnorm_bwd part = cut;
            part.rows = s.rows - r < 7 ? s.rows - r : 7;
            part.dx += r * s.C;
            part.dy = pl_storage_at(cut.dy, r * s.C, s.kept);
            part.x += r * s.C;
            part.rstd += r;
            set.rmsnorm_bwd(&part, 0, 1);
        }
        outcome_add(&one, whole.dx, s.rows * s.C);
        outcome_add(&one, whole.dweight, s.C);
        outcome_add(&many, cut.dx, s.rows * s.C);
        outcome_add(&many, cut.dweight, s.C);
        expect_same("row chunks", &many, &one);
        free(one.values);
        free(many.values);
        fenced_release();
    }
}

enum { ROWS = 3, C = 9 };

typedef struct slopes {
    float *x, *weight, *y, *rstd, *dy;
} slopes;

static double loss(void *context)
{
    const slopes *s = context;
    const pl_rmsnorm f = { .y = s->y,
                           .rstd = s->rstd,
                           .x = s->x,
                           .weight = s->weight,
                           .rows = ROWS,
                           .C = C,
                           .eps = 1e-5f };
    pl_kernels_ref().rmsnorm(&f, 0, 1);
    return weighted(s->y, s->dy, ROWS * C);
}

static void the_references_gradients_are_its_slopes(void **state)
{
    slopes s = { fenced_random(ROWS * C, 1, 1), fenced_random(C, 2, 1),
                 fenced_blank(ROWS * C), fenced_blank(ROWS),
                 fenced_random(ROWS * C, 4, 1) };
    const pl_rmsnorm_bwd b = { .dx = fenced_random(ROWS * C, 5, 0),
                               .dweight = fenced_state(C, 5, 0),
                               .dy = s.dy,
                               .x = s.x,
                               .rstd = s.rstd,
                               .weight = s.weight,
                               .rows = ROWS,
                               .C = C,
                               .accumulate = 1 };
    (void)state;
    loss(&s);
    pl_kernels_ref().rmsnorm_bwd(&b, 0, 1);
    expect_gradient("dx", loss, &s, s.x, ROWS * C, b.dx, 2e-4);
    expect_gradient("dweight", loss, &s, s.weight, C, b.dweight, 2e-4);
    fenced_release();
}

/* torch.nn.functional.rms_norm(x, (6,), weight, 1e-5) in float64, and its
 * gradients for dy. */
static void pytorch_computes_the_same(void **state)
{
    static const float x[] = {
        0.5f,           -1.25f,         2.0f,
        0.0f,           -3.5f,          0.75f,
        0.00100000005f, 0.00200000009f, -0.00300000003f,
        0.0f,           0.00150000001f, -0.000500000024f
    };
    static const float weight[] = { 1.0f, 0.5f, -2.0f, 1.5f, 0.25f, 3.0f };
    static const float dy[] = { 1.0f, -0.5f, 0.25f, 2.0f,  -1.0f,  0.125f,
                                0.5f, 1.5f,  -1.0f, 0.25f, -0.75f, 1.0f };
    static const float want_y[] = {
        0.283789805f,  -0.354737256f, -2.27031844f, 0.0f,
        -0.496632158f, 1.27705412f,   0.280056029f, 0.280056029f,
        1.68033611f,   0.0f,          0.105021007f, -0.420084043f
    };
    static const float want_dx[] = {
        0.552818778f,   -0.104992824f, -0.342833131f, 1.70273883f,
        -0.0385690815f, 0.190701106f,  161.192373f,   252.370741f,
        496.618939f,    105.021006f,   -20.7639569f,  829.585864f
    };
    static const float want_dweight[] = { 0.423817819f, 1.19490534f,
                                          1.12395786f,  0.0f,
                                          1.67146561f,  -0.086817426f };
    (void)state;
    for (int isa = -1; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = isa < 0 ? pl_kernels_ref()
                                       : pl_kernels_for((pl_isa)isa);
        float y[12], rstd[2], dx[12] = { 0 }, dweight[6] = { 0 };
        const pl_rmsnorm f = { .y = y,
                               .rstd = rstd,
                               .x = x,
                               .weight = weight,
                               .rows = 2,
                               .C = 6,
                               .eps = 1e-5f };
        const pl_rmsnorm_bwd b = { .dx = dx,
                                   .dweight = dweight,
                                   .dy = dy,
                                   .x = x,
                                   .rstd = rstd,
                                   .weight = weight,
                                   .rows = 2,
                                   .C = 6 };
        set.rmsnorm(&f, 0, 1);
        set.rmsnorm_bwd(&b, 0, 1);
        for (int i = 0; i < 12; i++) {
            assert_float_equal(y[i], want_y[i], 1e-6f);
            assert_float_equal(dx[i], want_dx[i], 1e-6f);
        }
        for (int i = 0; i < 6; i++)
            assert_float_equal(dweight[i], want_dweight[i], 1e-6f);
    }
}

static void nothing_is_read_beyond_the_end(void **state)
{
    (void)state;
    for (int i = 0; i < STORAGES; i++) {
        const tolerance t = tolerance_stored(&forward_allowed, storages[i]);
        judge_shapes(forward_case, &t, storages[i]);
    }
    for (int i = 0; i < STORAGES; i++)
        judge_shapes(backward_case, &backward_allowed, storages[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_any_width_are_normalised_alike),
        cmocka_unit_test(a_stored_output_is_rounded_once),
        cmocka_unit_test(gradients_of_any_width_agree),
        cmocka_unit_test(a_stored_gradient_is_used_as_it_is),
        cmocka_unit_test(a_batch_in_row_chunks_gives_the_same_bits),
        cmocka_unit_test(the_references_gradients_are_its_slopes),
        cmocka_unit_test(pytorch_computes_the_same),
        cmocka_unit_test_setup_teardown(nothing_is_read_beyond_the_end,
                                        guard_up, guard_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
