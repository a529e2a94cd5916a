/* test_embed.c: the embedding tables, forward and backward. */
#include "../support/kernel_cases.h"

/* A sum and a product, rounded once or twice; backward, up to 70 such sums. */
static const tolerance forward_allowed = { "embed", 2e-7, 3e-7 };
static const tolerance backward_allowed = { "embed_bwd", 1e-5, 1e-6 };

enum { V = 11, POSITIONS = 80, TOKENS = 200 };

typedef struct shape {
    size_t rows, T, C, position;
    double p;
    pl_storage kept; /* of both tables; of one if it is float16 */
} shape;

static int32_t tokens[TOKENS];

static pl_dropout make_dropout(double p)
{
    return (pl_dropout){ .threshold = (uint32_t)(p * 4294967296.0 + 0.5),
                         .scale = (float)(1 / (1 - p)),
                         .seed = 9,
                         .step = 70000,
                         .site = PL_DROP_EMBED,
                         .sequence = 100 };
}

static int fill_tokens(void **state)
{
    (void)state;
    for (int i = 0; i < TOKENS; i++)
        tokens[i] = i * i % V;
    return 0;
}

static void forward_case(const pl_kernels *set, const void *of, int nth,
                         outcome *out)
{
    const shape *s = of;
    const size_t n = s->rows * s->C;
    const float *wte = fenced_random(V * s->C, 1, 1),
                *wpe = fenced_random(POSITIONS * s->C, 2, 1);
    const pl_storage wpe_kept = s->kept == PL_STORE_F16 ? PL_STORE_F32
                                                        : s->kept;
    const pl_embed args = { .x = fenced_blank(n),
                            .tokens = tokens,
                            .token_stride = s->T + 1,
                            .rows = s->rows,
                            .T = s->T,
                            .C = s->C,
                            .position = s->position,
                            .wte = stored_input(wte, V * s->C, s->kept),
                            .wpe = stored_input(wpe, POSITIONS * s->C,
                                                wpe_kept),
                            .dropout = make_dropout(s->p),
                            .wte_storage = s->kept,
                            .wpe_storage = wpe_kept };
    RUN_OP(set, embed, &args, nth);
    outcome_add(out, args.x, n);
}

static void backward_case(const pl_kernels *set, const void *of, int nth,
                          outcome *out)
{
    const shape *s = of;
    const pl_embed_bwd args = { .dwte = fenced_state(V * s->C, 3, 1),
                                .dwpe = fenced_state(s->T * s->C, 4, 1),
                                .dx = fenced_random(s->rows * s->C, 5, 1),
                                .tokens = tokens,
                                .token_stride = s->T + 1,
                                .rows = s->rows,
                                .T = s->T,
                                .C = s->C,
                                .dropout = make_dropout(s->p) };
    RUN_OP(set, embed_bwd, &args, nth);
    outcome_add(out, args.dwte, V * s->C);
    outcome_add(out, args.dwpe, s->T * s->C);
}

/* What is left of dwte may be carried on by a bf16 product; dwpe isn't. */
static void tiny_gradients_of_tokens_become_zero(void **state)
{
    enum { C = 40 };
    (void)state;
    for (int isa = -1; isa <= (int)pl_cpu_isa(); isa++)
        for (int i = 0; i < 2; i++) {
            const pl_kernels set = isa < 0 ? pl_kernels_ref()
                                           : pl_kernels_for((pl_isa)isa);
            float *dx = fenced_random(C, 1, 1),
                  *dwte = fenced_state(V * C, 1, 0),
                  *dwpe = fenced_state(C, 1, 0);
            static const float some[4] = { 0x1p-102f, -0x1p-102f,
                                           0x1.fffffep-103f, -0x1p-140f };
            const pl_dropout drop = make_dropout(0);
            pl_embed_bwd args = { .dwte = dwte,
                                  .dwpe = dwpe,
                                  .dx = dx,
                                  .tokens = tokens,
                                  .token_stride = 2,
                                  .rows = 1,
                                  .T = 1,
                                  .C = C,
                                  .dropout = drop };
            if (i) /* a mask that keeps all */
                args.dropout.threshold = 1;
            for (size_t c = 0; c < C; c++) {
                dx[c] = some[c % 4];
                dwte[c] = dwpe[c] = -0.0f;
            }
            RUN_OP(&set, embed_bwd, &args, 2);
            for (size_t c = 0; c < C; c++) {
                assert_true(dwpe[c] == dx[c]);
                assert_int_equal(pl_float_bits(dwte[c]),
                                 pl_float_bits(c % 4 < 2    ? dx[c]
                                               : c % 4 == 2 ? 0.0f
                                                            : -0.0f));
            }
            fenced_release();
        }
}

static void tables_of_any_width_agree(void **state)
{
    static const size_t sizes[] = { 0, 1, 7, 8, 9, 67, 300 };
    static const size_t periods[] = { 1, 7, 67 };
    (void)state;
    for (int r = 0; r < 6; r++)
        for (int t = 0; t < 3; t++)
            for (int c = 0; c < 7; c++)
                for (int p = 0; p < 2 * STORAGES; p++) {
                    const shape s = { sizes[r],    periods[t],
                                      sizes[c],    (size_t)(p % 2 * 5),
                                      p % 2 * 0.2, storages[p / 2] };
                    judge(forward_case, &s, &forward_allowed);
                    judge(backward_case, &s, &backward_allowed);
                }
}

/* A sequence at its own position gets what it gets alone. */
static void sequences_may_be_at_different_positions(void **state)
{
    enum { T = 3, B = 4, C = 37 };
    static const int32_t positions[B] = { 40, 0, 77, 7 };
    (void)state;
    for (int isa = -1; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = isa < 0 ? pl_kernels_ref()
                                       : pl_kernels_for((pl_isa)isa);
        const pl_embed all = { .x = fenced_blank(B * T * C),
                               .tokens = tokens,
                               .token_stride = T + 1,
                               .rows = B * T,
                               .T = T,
                               .C = C,
                               .positions = positions,
                               .wte = fenced_random(V * C, 1, 1),
                               .wpe = fenced_random(POSITIONS * C, 2, 1),
                               .dropout = make_dropout(0.2) };
        RUN_OP(&set, embed, &all, 3);
        for (size_t b = 0; b < B; b++) {
            pl_embed one = all;
            one.x = fenced_blank(T * C);
            one.tokens += b * (T + 1);
            one.rows = T;
            one.positions = NULL;
            one.position = (size_t)positions[b];
            one.dropout.sequence += (uint32_t)b;
            set.embed(&one, 0, 1);
            assert_memory_equal(all.x + b * T * C, one.x,
                                T * C * sizeof(float));
        }
        fenced_release();
    }
}

static void gradients_of_sequences_one_by_one_have_the_same_bits(void **state)
{
    enum { T = 9, B = 4, C = 37 };
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = pl_kernels_for((pl_isa)isa);
        const float *dx = fenced_random(B * T * C, 1, 1);
        float *dwte[2], *dwpe[2];
        for (int i = 0; i < 2; i++) {
            dwte[i] = fenced_state(V * C, 2, 1);
            dwpe[i] = fenced_state(T * C, 3, 1);
        }
        const pl_embed_bwd whole = { dwte[0], dwpe[0], dx,
                                     tokens,  T + 1,   B * T,
                                     T,       C,       make_dropout(0.3) };
        set.embed_bwd(&whole, 0, 1);
        for (uint32_t b = 0; b < B; b++) {
            pl_embed_bwd part = whole;
            part.dwte = dwte[1];
            part.dwpe = dwpe[1];
            part.dx += b * T * C;
            part.tokens += b * (T + 1);
            part.rows = T;
            part.dropout.sequence += b;
            set.embed_bwd(&part, 0, 1);
        }
        assert_memory_equal(dwte[0], dwte[1], V * C * sizeof(float));
        assert_memory_equal(dwpe[0], dwpe[1], T * C * sizeof(float));
        fenced_release();
    }
}

static double loss(void *context)
{
    const pl_embed *e = context;
    const float *dx = e->x + e->rows * e->C;
    pl_kernels_ref().embed(e, 0, 1);
    return weighted(e->x, dx, e->rows * e->C);
}

static void the_references_gradients_are_its_slopes(void **state)
{
    enum { T = 4, B = 2, C = 5, N = B * T * C };
    (void)state;
    for (int p = 0; p < 2; p++) {
        float *wte = fenced_random(V * C, 1, 1);
        float *wpe = fenced_random(T * C, 2, 1);
        float *x = fenced_random(2 * N, 3, 1);
        const pl_dropout drop = make_dropout(p * 0.3);
        pl_embed e = { .x = x,
                       .tokens = tokens,
                       .token_stride = T + 1,
                       .rows = B * T,
                       .T = T,
                       .C = C,
                       .wte = wte,
                       .wpe = wpe,
                       .dropout = drop };
        const pl_embed_bwd b = { .dwte = fenced_state(V * C, 4, 0),
                                 .dwpe = fenced_state(T * C, 4, 0),
                                 .dx = x + N,
                                 .tokens = tokens,
                                 .token_stride = T + 1,
                                 .rows = B * T,
                                 .T = T,
                                 .C = C,
                                 .dropout = drop };
        pl_kernels_ref().embed_bwd(&b, 0, 1);
        expect_gradient("dwte", loss, &e, wte, V * C, b.dwte, 1e-4);
        expect_gradient("dwpe", loss, &e, wpe, T * C, b.dwpe, 1e-4);
        fenced_release();
    }
}

static void nothing_is_read_beyond_the_end(void **state)
{
    (void)state;
    for (int i = 0; i < STORAGES; i++) {
        const shape dropped = { 9, 7, 67, 2, 0.2, storages[i] },
                    whole = { 9, 7, 67, 2, 0, storages[i] };
        judge(forward_case, &dropped, &forward_allowed);
        judge(backward_case, &dropped, &backward_allowed);
        judge(forward_case, &whole, &forward_allowed);
        judge(backward_case, &whole, &backward_allowed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_may_be_at_different_positions),
        cmocka_unit_test(tiny_gradients_of_tokens_become_zero),
        cmocka_unit_test(tables_of_any_width_agree),
        cmocka_unit_test(gradients_of_sequences_one_by_one_have_the_same_bits),
        cmocka_unit_test(the_references_gradients_are_its_slopes),
        cmocka_unit_test_setup_teardown(nothing_is_read_beyond_the_end,
                                        guard_up, guard_down),
    };
    return cmocka_run_group_tests(tests, fill_tokens, NULL);
}
