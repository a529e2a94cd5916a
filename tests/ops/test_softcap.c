/* test_softcap.c: capped logits, alone and in the loss. */
#include "../support/kernel_cases.h"

/* tanh to 2e-7 of it, times a cap of up to 30. */
static const tolerance alone = { "softcap", 6e-6, 1e-6 };
static const tolerance in_loss = { "capped cross_entropy", 8e-6, 4e-6 };

enum { T = 5, TOKENS = 200 };

typedef struct shape {
    size_t rows, V;
    float cap, spread, scale;
    pl_storage kept;
} shape;

static void alone_case(const pl_kernels *set, const void *of, int nth,
                       outcome *out)
{
    const shape *s = of;
    const size_t n = s->rows * s->V;
    const pl_softcap args = { .x = fenced_state(n, 1, s->spread),
                              .count = n,
                              .cap = s->cap };
    RUN_OP(set, softcap, &args, nth);
    outcome_add(out, args.x, n);
}

static void *stored_state(size_t n, float spread, pl_storage storage)
{
    const float *x = fenced_state(n, 1, spread);
    void *y = stored_blank(n, storage);
    for (size_t i = 0; i < n; i++)
        pl_storage_put(y, i, x[i], storage);
    return y;
}

static pl_cross_entropy make_loss(const shape *s)
{
    static int32_t tokens[TOKENS];
    for (size_t i = 0; i < TOKENS; i++)
        tokens[i] = s->V ? (int32_t)(i * 7 % s->V) : 0;
    return (pl_cross_entropy){ .logits = stored_state(s->rows * s->V, s->spread,
                                                      s->kept),
                               .loss = fenced_blank(s->rows),
                               .tokens = tokens,
                               .token_stride = T + 1,
                               .rows = s->rows,
                               .T = T,
                               .V = s->V,
                               .scale = s->scale,
                               .cap = s->cap,
                               .storage = s->kept };
}

static void loss_case(const pl_kernels *set, const void *of, int nth,
                      outcome *out)
{
    const shape *s = of;
    const pl_cross_entropy args = make_loss(s);
    RUN_OP(set, cross_entropy, &args, nth);
    outcome_add(out, args.loss, s->V ? s->rows : 0);
    outcome_add_stored(out, args.logits, s->scale != 0 ? s->rows * s->V : 0,
                       s->kept);
}

static void judge_shapes(void)
{
    static const size_t rows[] = { 0, 1, 7, 20 },
                        widths[] = { 1, 7, 16, 67, 1023 };
    for (int r = 0; r < 4; r++)
        for (int v = 0; v < 5; v++)
            for (int form = 0; form < 4; form++) {
                const shape s = { rows[r],
                                  widths[v],
                                  form & 1 ? 30.0f : 2.0f,
                                  form & 1 ? 60.0f : 3.0f,
                                  form & 2 ? 0.5f : 0.0f,
                                  PL_STORE_F32 };
                judge(alone_case, &s, &alone);
                judge(loss_case, &s, &in_loss);
            }
}

static void capped_logits_of_awkward_shapes_agree(void **state)
{
    (void)state;
    judge_shapes();
}

/* The loss of capped logits is the loss of what softcap makes of them, and in
 * 16 bits that of what was stored. */
static void the_loss_caps_as_softcap_does(void **state)
{
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int i = 0; i < STORAGES; i++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const shape s = { 9, 301, 5, 20, 0, storages[i] };
            const size_t n = s.rows * s.V;
            const pl_cross_entropy a = make_loss(&s);
            pl_cross_entropy b = make_loss(&s);
            float *x = fenced_make(n, 3e30f, 0);
            for (size_t k = 0; k < n; k++)
                x[k] = pl_storage_get(b.logits, k, s.kept);
            const pl_softcap cap = { .x = x, .count = n, .cap = s.cap };
            RUN_OP(&set, softcap, &cap, 2);
            for (size_t k = 0; k < n; k++)
                pl_storage_put(b.logits, k, x[k], s.kept);
            b.cap = 0;
            RUN_OP(&set, cross_entropy, &a, 2);
            RUN_OP(&set, cross_entropy, &b, 2);
            for (size_t r = 0; r < s.rows; r++)
                assert_true(a.loss[r] == b.loss[r]);
            fenced_release();
        }
}

static void no_capped_logit_exceeds_the_cap(void **state)
{
    float x[] = { -1e30f, -1000, -0.0f, 0.0f, 1e-20f, 1000, 1e30f };
    const pl_softcap a = { .x = x, .count = 7, .cap = 30 };
    (void)state;
    pl_kernels_for(pl_cpu_isa()).softcap(&a, 0, 1);
    assert_true(x[0] == -30 && x[1] == -30 && x[5] == 30 && x[6] == 30);
    assert_true(x[2] == 0 && signbit(x[2]) && x[3] == 0 && !signbit(x[3]));
    assert_true(fabsf(x[4] - 1e-20f) < 1e-26f);
}

/* ---- finite differences ---- */

enum { ROWS = 3, V = 7 };

typedef struct slopes {
    float *x, *logits, *loss;
    int32_t tokens[ROWS + 1];
} slopes;

static double loss(void *context)
{
    slopes *s = context;
    const pl_cross_entropy a = { .logits = s->logits,
                                 .loss = s->loss,
                                 .tokens = s->tokens,
                                 .token_stride = ROWS + 1,
                                 .rows = ROWS,
                                 .T = ROWS,
                                 .V = V,
                                 .scale = 1,
                                 .cap = 2 };
    double sum = 0;
    memcpy(s->logits, s->x, ROWS * V * sizeof(float));
    pl_kernels_ref().cross_entropy(&a, 0, 1);
    for (size_t r = 0; r < ROWS; r++)
        sum += (double)s->loss[r];
    return sum;
}

static void the_references_gradients_are_its_slopes(void **state)
{
    slopes s = { fenced_random(ROWS * V, 1, 3),
                 fenced_blank(ROWS * V),
                 fenced_blank(ROWS),
                 { 0, 3, 6, 1 } };
    float *d = fenced_make(ROWS * V, 3e30f, 0);
    (void)state;
    loss(&s);
    memcpy(d, s.logits, ROWS * V * sizeof(float));
    expect_gradient("dlogits", loss, &s, s.x, ROWS * V, d, 2e-4);
    fenced_release();
}

static void nothing_is_read_beyond_the_end(void **state)
{
    (void)state;
    judge_shapes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capped_logits_of_awkward_shapes_agree),
        cmocka_unit_test(the_loss_caps_as_softcap_does),
        cmocka_unit_test(no_capped_logit_exceeds_the_cap),
        cmocka_unit_test(the_references_gradients_are_its_slopes),
        cmocka_unit_test_setup_teardown(nothing_is_read_beyond_the_end,
                                        guard_up, guard_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
