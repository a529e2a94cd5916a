/* test_loss.c: cross entropy, its gradient, and sums of losses. */
#include "../support/kernel_cases.h"

/* exp to 2 ulp, a sum of at most 3000 terms by lanes; losses below 50. */
static const tolerance loss_allowed = { "cross_entropy", 2e-6, 1e-6 };
static const tolerance exact = { "loss_sum", 0, 0 };

enum { T = 5, TOKENS = 200 };

typedef struct shape {
    size_t rows, V, first;
    float spread, scale;
    pl_storage kept;
} loss_shape;

static void make_tokens(int32_t tokens[TOKENS], size_t V)
{
    for (size_t i = 0; i < TOKENS; i++)
        tokens[i] = V ? (int32_t)(i * 7 % V) : 0;
}

/* Logits that are read and replaced. */
static void *stored_state(size_t n, float spread, pl_storage storage)
{
    const float *x = fenced_state(n, 1, spread);
    void *y = stored_blank(n, storage);
    for (size_t i = 0; i < n; i++)
        pl_storage_put(y, i, x[i], storage);
    return y;
}

static void loss_case(const pl_kernels *set, const void *of, int nth,
                      outcome *out)
{
    const loss_shape *s = of;
    const size_t n = s->rows * s->V;
    int32_t tokens[TOKENS];
    make_tokens(tokens, s->V);
    const pl_cross_entropy args = { .logits = stored_state(n, s->spread,
                                                           s->kept),
                                    .loss = fenced_blank(s->first + s->rows),
                                    .tokens = tokens,
                                    .token_stride = T + 3,
                                    .first = s->first,
                                    .rows = s->rows,
                                    .T = T,
                                    .V = s->V,
                                    .scale = s->scale,
                                    .storage = s->kept };
    RUN_OP(set, cross_entropy, &args, nth);
    outcome_add(out, args.loss, s->first + s->rows);
    outcome_add_stored(out, args.logits, s->scale != 0 ? n : 0, s->kept);
}

static void losses_and_gradients_of_awkward_shapes_agree(void **state)
{
    static const size_t rows[] = { 0, 1, 7, 8, 9, 67 },
                        widths[] = { 0, 1, 7, 8, 9, 16, 67, 1023, 3001 };
    static const float spreads[] = { 1, 30 };
    (void)state;
    for (int r = 0; r < 6; r++)
        for (int v = 0; v < 9; v++)
            for (int form = 0; form < 12; form++) {
                const loss_shape s = {
                    rows[r],
                    widths[v],
                    (size_t)(form % 4 * 3),
                    spreads[form & 1],
                    form & 2 ? 0.5f : 0.0f,
                    storages[form / 4],
                };
                const tolerance t = tolerance_stored(&loss_allowed, s.kept);
                judge(loss_case, &s, &t);
            }
}

/* The same logits as float32 give the same losses, and the same gradients but
 * for the rounding at the end. */
static void stored_logits_are_rounded_once(void **state)
{
    enum { ROWS = 9, V = 3001 };
    int32_t tokens[TOKENS];
    make_tokens(tokens, V);
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int i = 0; i < 2 * STORAGES; i++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const pl_storage kept = storages[i / 2];
            const float spread = i % 2 ? 30 : 2;
            pl_cross_entropy a = { .logits = stored_state(ROWS * V, spread,
                                                          kept),
                                   .loss = fenced_blank(ROWS),
                                   .tokens = tokens,
                                   .token_stride = T + 1,
                                   .rows = ROWS,
                                   .T = T,
                                   .V = V,
                                   .scale = 1024,
                                   .storage = kept };
            pl_cross_entropy b = a;
            outcome got = { 0 }, want = { 0 };
            float *wide = fenced_blank(ROWS * V);
            for (size_t n = 0; n < ROWS * V; n++)
                wide[n] = pl_storage_get(a.logits, n, kept);
            b.logits = wide;
            b.loss = fenced_blank(ROWS);
            b.storage = PL_STORE_F32;
            RUN_OP(&set, cross_entropy, &a, 2);
            RUN_OP(&set, cross_entropy, &b, 3);
            outcome_add(&got, a.loss, ROWS);
            outcome_add_stored(&got, a.logits, ROWS * V, kept);
            outcome_add(&want, b.loss, ROWS);
            outcome_add_rounded(&want, b.logits, ROWS * V, kept);
            expect_same("stored logits", &got, &want);
            free(got.values);
            free(want.values);
            fenced_release();
        }
}

/* e^200 and e^-200 overflow and vanish; the loss is 400 all the same. */
static void logits_far_apart_give_a_finite_loss(void **state)
{
    static const int32_t tokens[2] = { 0, 1 };
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = pl_kernels_for((pl_isa)isa);
        float logits[3] = { 200, -200, 0 }, loss = 0;
        const pl_cross_entropy args = { .logits = logits,
                                        .loss = &loss,
                                        .tokens = tokens,
                                        .token_stride = 2,
                                        .rows = 1,
                                        .T = 1,
                                        .V = 3,
                                        .scale = 1 };
        set.cross_entropy(&args, 0, 1);
        assert_true(loss == 400.0f);
        assert_true(logits[0] == 1.0f && logits[1] == -1.0f);
        assert_true(logits[2] == 0.0f);
    }
}

static void a_nan_among_the_logits_shows_in_the_loss(void **state)
{
    static const int32_t tokens[2] = { 0, 1 };
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (size_t at = 0; at < 40; at++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            float *logits = fenced_random(40, 1, 1), loss = 0;
            logits[at] = marked_nan(0xa);
            const pl_cross_entropy args = { .logits = logits,
                                            .loss = &loss,
                                            .tokens = tokens,
                                            .token_stride = 2,
                                            .rows = 1,
                                            .T = 1,
                                            .V = 40 };
            set.cross_entropy(&args, 0, 1);
            assert_true(isnan(loss));
            fenced_release();
        }
}

static void row_chunks_give_the_same_bits(void **state)
{
    enum { ROWS = 13, V = 67 };
    int32_t tokens[TOKENS];
    make_tokens(tokens, V);
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = pl_kernels_for((pl_isa)isa);
        float *loss[2] = { fenced_blank(ROWS), fenced_blank(ROWS) };
        float *logits[2] = { fenced_random(ROWS * V, 1, 3),
                             fenced_random(ROWS * V, 1, 3) };
        pl_cross_entropy args = { .logits = logits[0],
                                  .loss = loss[0],
                                  .tokens = tokens,
                                  .token_stride = T + 1,
                                  .rows = ROWS,
                                  .T = T,
                                  .V = V,
                                  .scale = 0.25f };
        set.cross_entropy(&args, 0, 1);
        args.loss = loss[1];
        for (size_t r = 0; r < ROWS; r += 4) {
            args.first = r;
            args.rows = ROWS - r < 4 ? ROWS - r : 4;
            args.logits = logits[1] + r * V;
            set.cross_entropy(&args, 0, 1);
        }
        assert_memory_equal(loss[0], loss[1], ROWS * sizeof(float));
        assert_memory_equal(logits[0], logits[1], ROWS * V * sizeof(float));
        fenced_release();
    }
}

enum { SLOPE_ROWS = 4, SLOPE_V = 6 };

static double total_loss(void *context)
{
    float copy[SLOPE_ROWS * SLOPE_V], loss[SLOPE_ROWS];
    static const int32_t tokens[] = { 0, 3, 1, 5, 2 };
    memcpy(copy, context, sizeof copy);
    const pl_cross_entropy args = { .logits = copy,
                                    .loss = loss,
                                    .tokens = tokens,
                                    .token_stride = 5,
                                    .rows = SLOPE_ROWS,
                                    .T = SLOPE_ROWS,
                                    .V = SLOPE_V,
                                    .scale = 1 };
    double sum;
    const pl_loss_sum all = { &sum, loss, 1, SLOPE_ROWS };
    pl_kernels_ref().cross_entropy(&args, 0, 1);
    pl_kernels_ref().loss_sum(&all, 0, 1);
    return sum;
}

static void the_references_gradient_is_its_slope(void **state)
{
    static const int32_t tokens[] = { 0, 3, 1, 5, 2 };
    float *x = fenced_random(SLOPE_ROWS * SLOPE_V, 1, 2), loss[SLOPE_ROWS];
    float *d = fenced_random(SLOPE_ROWS * SLOPE_V, 1, 2);
    const pl_cross_entropy args = { .logits = d,
                                    .loss = loss,
                                    .tokens = tokens,
                                    .token_stride = 5,
                                    .rows = SLOPE_ROWS,
                                    .T = SLOPE_ROWS,
                                    .V = SLOPE_V,
                                    .scale = 1 };
    (void)state;
    pl_kernels_ref().cross_entropy(&args, 0, 1);
    expect_gradient("dlogits", total_loss, x, x, SLOPE_ROWS * SLOPE_V, d, 1e-4);
    fenced_release();
}

typedef struct sum_shape {
    size_t sequences, T;
} sum_shape;

static void sum_case(const pl_kernels *set, const void *of, int nth,
                     outcome *out)
{
    const sum_shape *s = of;
    double sums[70] = { 0 };
    const pl_loss_sum args = { sums, fenced_random(s->sequences * s->T, 1, 9),
                               s->sequences, s->T };
    RUN_OP(set, loss_sum, &args, nth);
    outcome_add_double(out, sums, 70);
}

static void sums_of_losses_are_the_same_double(void **state)
{
    static const size_t sizes[] = { 0, 1, 7, 8, 9, 67 };
    (void)state;
    for (int s = 0; s < 6; s++)
        for (int t = 0; t < 6; t++) {
            const sum_shape shape = { sizes[s], sizes[t] };
            judge(sum_case, &shape, &exact);
        }
}

static void nothing_is_read_beyond_the_end(void **state)
{
    losses_and_gradients_of_awkward_shapes_agree(state);
    sums_of_losses_are_the_same_double(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_and_gradients_of_awkward_shapes_agree),
        cmocka_unit_test(stored_logits_are_rounded_once),
        cmocka_unit_test(logits_far_apart_give_a_finite_loss),
        cmocka_unit_test(a_nan_among_the_logits_shows_in_the_loss),
        cmocka_unit_test(row_chunks_give_the_same_bits),
        cmocka_unit_test(the_references_gradient_is_its_slope),
        cmocka_unit_test(sums_of_losses_are_the_same_double),
        cmocka_unit_test_setup_teardown(nothing_is_read_beyond_the_end,
                                        guard_up, guard_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
