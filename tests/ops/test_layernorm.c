/* test_layernorm.c: layer normalisation, forward and backward. */
#include "../support/kernel_cases.h"

/* Values of order 1 after a division by the row's spread; a row of one
 * element, or of equal ones, has rstd = 316, which scales its rounding. */
static const tolerance forward_allowed = { "layernorm", 2e-5, 2e-6 };
static const tolerance backward_allowed = { "layernorm_bwd", 2e-4, 1e-5 };

typedef struct shape {
    size_t rows, C;
    int with_bias, accumulate;
    pl_storage kept; /* y, or dy */
} shape;

static pl_layernorm make_forward(const shape *s)
{
    const size_t n = s->rows * s->C;
    return (pl_layernorm){
        .y = stored_blank(n, s->kept),
        .stats = fenced_blank(2 * s->rows),
        .x = fenced_random(n, 1, 3),
        .weight = fenced_random(s->C, 2, 1),
        .bias = s->with_bias ? fenced_random(s->C, 3, 1) : NULL,
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
    const pl_layernorm args = make_forward(s);
    RUN_OP(set, layernorm, &args, nth);
    outcome_add_stored(out, args.y, s->rows * s->C, s->kept);
    outcome_add(out, args.stats, s->C ? 2 * s->rows : 0);
}

/* The backward pass after ref's forward pass. */
static pl_layernorm_bwd make_backward(const shape *s)
{
    const size_t n = s->rows * s->C;
    const pl_layernorm forward = {
        .y = fenced_blank(n),
        .stats = fenced_blank(2 * s->rows),
        .x = fenced_random(n, 1, 3),
        .weight = fenced_random(s->C, 2, 1),
        .bias = fenced_random(s->C, 3, 1),
        .rows = s->rows,
        .C = s->C,
        .eps = 1e-5f,
    };
    pl_kernels_ref().layernorm(&forward, 0, 1);
    return (pl_layernorm_bwd){
        .dx = s->accumulate ? fenced_state(n, 4, 1) : fenced_blank(n),
        .dweight = fenced_state(s->C, 5, 1),
        .dbias = s->with_bias ? fenced_state(s->C, 6, 1) : NULL,
        .dy = stored_input(fenced_random(n, 7, 1), n, s->kept),
        .dy_storage = s->kept,
        .x = forward.x,
        .stats = forward.stats,
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
    const pl_layernorm_bwd args = make_backward(s);
    RUN_OP(set, layernorm_bwd, &args, nth);
    outcome_add(out, args.dx, s->rows * s->C);
    outcome_add(out, args.dweight, s->C);
    if (args.dbias)
        outcome_add(out, args.dbias, s->C);
}

static void judge_shapes(case_fn *run, const tolerance *allowed,
                         pl_storage storage)
{
    static const size_t sizes[] = { 0, 1, 7, 8, 9, 67 },
                        widths[] = { 0, 1, 2, 7, 8, 9, 16, 67, 300 };
    for (int r = 0; r < 6; r++)
        for (int c = 0; c < 9; c++)
            for (int form = 0; form < 4; form++) {
                const shape s = { sizes[r], widths[c], form & 1, form >> 1,
                                  storage };
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
        for (int i = 0; i < 2 * STORAGES; i++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const shape stored = { 11, 600, i % 2, 0, storages[i / 2] },
                        floats = { 11, 600, i % 2, 0, PL_STORE_F32 };
            const pl_layernorm a = make_forward(&stored),
                               b = make_forward(&floats);
            outcome got = { 0 }, want = { 0 };
            RUN_OP(&set, layernorm, &a, 2);
            RUN_OP(&set, layernorm, &b, 2);
            outcome_add_stored(&got, a.y, 11 * 600, stored.kept);
            outcome_add(&got, a.stats, 22);
            outcome_add_rounded(&want, b.y, 11 * 600, stored.kept);
            outcome_add(&want, b.stats, 22);
            expect_same("stored layernorm", &got, &want);
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
            const shape s = { ROWS, C, 1, i % 2, storages[i / 2] };
            const pl_layernorm_bwd a = make_backward(&s);
            pl_layernorm_bwd b = make_backward(&s);
            outcome got = { 0 }, want = { 0 };
            b.dy = stored_back(b.dy, ROWS * C, s.kept);
            b.dy_storage = PL_STORE_F32;
            RUN_OP(&set, layernorm_bwd, &a, 2);
            RUN_OP(&set, layernorm_bwd, &b, 3);
            outcome_add(&got, a.dx, ROWS * C);
            outcome_add(&got, a.dweight, C);
            outcome_add(&want, b.dx, ROWS * C);
            outcome_add(&want, b.dweight, C);
            outcome_add(&got, a.dbias, C);
            outcome_add(&want, b.dbias, C);
            expect_same("stored gradient", &got, &want);
            free(got.values);
            free(want.values);
            fenced_release();
        }
}

static void a_batch_in_row_chunks_gives_the_same_bits(void **state)
{
    const shape s = { 20, 67, 1, 1, PL_STORE_F32 };
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = pl_kernels_for((pl_isa)isa);
        outcome one = { 0 }, many = { 0 };
        const pl_layernorm_bwd whole = make_backward(&s),
                               cut = make_backward(&s);
        set.layernorm_bwd(&whole, 0, 1);
        for (size_t r = 0; r < s.rows; r += 7) {
            pl_layernorm_bwd part = cut;
            part.rows = s.rows - r < 7 ? s.rows - r : 7;
            part.dx += r * s.C;
            part.dy = pl_storage_at(cut.dy, r * s.C, s.kept);
            part.x += r * s.C;
            part.stats += 2 * r;
            set.layernorm_bwd(&part, 0, 1);
        }
        outcome_add(&one, whole.dx, s.rows * s.C);
        outcome_add(&one, whole.dweight, s.C);
        outcome_add(&one, whole.dbias, s.C);
        outcome_add(&many, cut.dx, s.rows * s.C);
        outcome_add(&many, cut.dweight, s.C);
        outcome_add(&many, cut.dbias, s.C);
        expect_same("row chunks", &many, &one);
        free(one.values);
        free(many.values);
        fenced_release();
    }
}

enum { ROWS = 3, C = 9 };

typedef struct slopes {
    float *x, *weight, *bias, *y, *stats, *dy;
} slopes;

static double loss(void *context)
{
    const slopes *s = context;
    const pl_layernorm f = { .y = s->y,
                             .stats = s->stats,
                             .x = s->x,
                             .weight = s->weight,
                             .bias = s->bias,
                             .rows = ROWS,
                             .C = C,
                             .eps = 1e-5f };
    pl_kernels_ref().layernorm(&f, 0, 1);
    return weighted(s->y, s->dy, ROWS * C);
}

static void the_references_gradients_are_its_slopes(void **state)
{
    slopes s = { fenced_random(ROWS * C, 1, 1), fenced_random(C, 2, 1),
                 fenced_random(C, 3, 1),        fenced_blank(ROWS * C),
                 fenced_blank(2 * ROWS),        fenced_random(ROWS * C, 4, 1) };
    const pl_layernorm_bwd b = { .dx = fenced_random(ROWS * C, 5, 0),
                                 .dweight = fenced_state(C, 5, 0),
                                 .dbias = fenced_random(C, 5, 0),
                                 .dy = s.dy,
                                 .x = s.x,
                                 .stats = s.stats,
                                 .weight = s.weight,
                                 .rows = ROWS,
                                 .C = C,
                                 .accumulate = 1 };
    (void)state;
    loss(&s);
    pl_kernels_ref().layernorm_bwd(&b, 0, 1);
    expect_gradient("dx", loss, &s, s.x, ROWS * C, b.dx, 2e-4);
    expect_gradient("dweight", loss, &s, s.weight, C, b.dweight, 2e-4);
    expect_gradient("dbias", loss, &s, s.bias, C, b.dbias, 2e-4);
    fenced_release();
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
        cmocka_unit_test_setup_teardown(nothing_is_read_beyond_the_end,
                                        guard_up, guard_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
