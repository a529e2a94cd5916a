/* test_qk.c: the norm and the rotation of queries' and keys' heads, forward and
 * backward; and what transformers computes. */
#include "../support/kernel_cases.h"

/* Values of order 1 after a division by a head's root mean square, of which
 * rotations add two. */
static const tolerance forward_allowed = { "qk", 4e-5, 4e-6 };
static const tolerance backward_allowed = { "qk_bwd", 4e-4, 2e-5 };

typedef struct shape {
    size_t rows, T, H, KV, D;
    int normed, rotated, in_place, served;
    pl_storage kept;
} shape;

static size_t width(const shape *s)
{
    return (s->H + 2 * s->KV) * s->D;
}

/* Of angles of order 1; rows for every position that a test asks for. */
static const float *make_table(const shape *s)
{
    enum { ROWS = 64 };
    float *table = fenced_make(ROWS * s->D, marked_nan(0xf), 0);
    for (size_t p = 0; p < ROWS; p++)
        for (size_t i = 0; i < s->D / 2; i++) {
            const double angle = (double)p *
                                 pow(100, -2 * (double)i / (double)s->D);
            table[p * s->D + i] = (float)cos(angle);
            table[p * s->D + s->D / 2 + i] = (float)sin(angle);
        }
    return table;
}

/* The numbers of x as a buffer that is read and written. */
static void *stored_state(size_t n, uint32_t seed, pl_storage storage)
{
    const float *x = fenced_state(n, seed, 3);
    void *y = stored_blank(n, storage);
    for (size_t i = 0; i < n; i++)
        pl_storage_put(y, i, x[i], storage);
    return y;
}

static pl_qk make_forward(const shape *s)
{
    static int32_t positions[64];
    const size_t n = s->rows * width(s);
    pl_qk a = { .rows = s->rows,
                .T = s->T,
                .H = s->H,
                .KV = s->KV,
                .D = s->D,
                .position = s->served ? 0 : 3,
                .eps = 1e-6f,
                .storage = s->kept };
    if (s->in_place) {
        a.y = stored_state(n, 1, s->kept);
        a.x = a.y;
    } else {
        a.y = stored_blank(n, s->kept);
        a.x = stored_input(fenced_random(n, 1, 3), n, s->kept);
    }
    if (s->normed) {
        a.rstd = fenced_blank(s->rows * (s->H + s->KV));
        a.q_weight = fenced_random(s->D, 2, 1);
        a.k_weight = fenced_random(s->D, 3, 1);
    }
    if (s->rotated)
        a.table = make_table(s);
    for (size_t i = 0; i < 64; i++)
        positions[i] = (int32_t)(i * 5 % 11);
    if (s->served)
        a.positions = positions;
    return a;
}

static void forward_case(const pl_kernels *set, const void *of, int nth,
                         outcome *out)
{
    const shape *s = of;
    const pl_qk args = make_forward(s);
    RUN_OP(set, qk, &args, nth);
    outcome_add_stored(out, args.y, s->rows * width(s), s->kept);
    if (args.rstd)
        outcome_add(out, args.rstd, s->rows * (s->H + s->KV));
}

/* After ref's forward pass. */
static pl_qk_bwd make_backward(const shape *s)
{
    const size_t n = s->rows * width(s);
    shape plain = *s;
    plain.in_place = plain.served = 0;
    pl_qk f = make_forward(&plain);
    pl_kernels_ref().qk(&f, 0, 1);
    return (pl_qk_bwd){ .d = stored_state(n, 9, s->kept),
                        .x = f.x,
                        .rstd = f.rstd,
                        .q_weight = f.q_weight,
                        .k_weight = f.k_weight,
                        .table = f.table,
                        .rows = s->rows,
                        .T = s->T,
                        .H = s->H,
                        .KV = s->KV,
                        .D = s->D,
                        .d_storage = s->kept,
                        .x_storage = s->kept };
}

static pl_qk_dw make_weights(const shape *s, const pl_qk_bwd *b)
{
    return (pl_qk_dw){ .dq_weight = fenced_state(s->D, 11, 1),
                       .dk_weight = fenced_state(s->D, 12, 1),
                       .d = b->d,
                       .x = b->x,
                       .rstd = b->rstd,
                       .table = b->table,
                       .rows = s->rows,
                       .T = s->T,
                       .H = s->H,
                       .KV = s->KV,
                       .D = s->D,
                       .d_storage = s->kept,
                       .x_storage = s->kept };
}

static void backward_case(const pl_kernels *set, const void *of, int nth,
                          outcome *out)
{
    const shape *s = of;
    const pl_qk_bwd args = make_backward(s);
    const pl_qk_dw weights = make_weights(s, &args);
    if (s->normed)
        RUN_OP(set, qk_dw, &weights, nth);
    RUN_OP(set, qk_bwd, &args, nth);
    outcome_add_stored(out, args.d, s->rows * width(s), s->kept);
    outcome_add(out, weights.dq_weight, s->D);
    outcome_add(out, weights.dk_weight, s->D);
}

/* Forms: what is done; widths of heads around vectors and pieces, odd ones
 * where nothing is rotated. */
static void judge_shapes(case_fn *run, const tolerance *allowed,
                         pl_storage storage, int backward)
{
    static const size_t rows[] = { 0, 1, 7, 12 },
                        even[] = { 2, 6, 16, 34, 600 },
                        odd[] = { 1, 7, 16, 33, 601 };
    static const struct {
        int normed, rotated, in_place, served;
    } forms[] = { { 0, 1, 1, 0 },
                  { 0, 1, 0, 1 },
                  { 1, 0, 0, 0 },
                  { 1, 1, 0, 0 },
                  { 1, 1, 0, 1 } };
    for (size_t r = 0; r < 4; r++)
        for (size_t d = 0; d < 5; d++)
            for (size_t f = 0; f < 5; f++) {
                const shape s = { .rows = rows[r],
                                  .T = rows[r] == 12 ? 4 : 7,
                                  .H = 4,
                                  .KV = f % 2 ? 2 : 1,
                                  .D = forms[f].rotated ? even[d] : odd[d],
                                  .normed = forms[f].normed,
                                  .rotated = forms[f].rotated,
                                  .in_place = forms[f].in_place,
                                  .served = forms[f].served,
                                  .kept = storage };
                if (!backward || !s.served)
                    judge(run, &s, allowed);
            }
}

static void heads_of_any_width_are_normed_and_rotated_alike(void **state)
{
    (void)state;
    for (int i = 0; i < STORAGES; i++) {
        const tolerance t = tolerance_stored(&forward_allowed, storages[i]);
        judge_shapes(forward_case, &t, storages[i], 0);
    }
}

static void gradients_of_any_width_agree(void **state)
{
    (void)state;
    for (int i = 0; i < STORAGES; i++) {
        const tolerance t = tolerance_stored(&backward_allowed, storages[i]);
        judge_shapes(backward_case, &t, storages[i], 1);
    }
}

/* A norm of 16 bits is that of float32, rounded at its end. */
static void a_stored_result_is_rounded_once(void **state)
{
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int i = 0; i < STORAGES; i++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const shape s = { .rows = 9,
                              .T = 9,
                              .H = 3,
                              .KV = 1,
                              .D = 40,
                              .normed = 1,
                              .rotated = 1,
                              .kept = storages[i] };
            const size_t n = s.rows * width(&s);
            const pl_qk a = make_forward(&s);
            pl_qk b = a;
            outcome got = { 0 }, want = { 0 };
            b.x = stored_back(a.x, n, s.kept);
            b.y = fenced_blank(n);
            b.storage = PL_STORE_F32;
            RUN_OP(&set, qk, &a, 2);
            RUN_OP(&set, qk, &b, 3);
            outcome_add_stored(&got, a.y, n, s.kept);
            outcome_add_rounded(&want, b.y, n, s.kept);
            expect_same("stored qk", &got, &want);
            free(got.values);
            free(want.values);
            fenced_release();
        }
}

/* Rows in parts, as micro-batches and chunks are. */
static void a_batch_in_parts_gives_the_same_bits(void **state)
{
    const shape s = {
        .rows = 60, .T = 5, .H = 4, .KV = 2, .D = 34, .normed = 1, .rotated = 1
    };
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = pl_kernels_for((pl_isa)isa);
        outcome one = { 0 }, many = { 0 };
        const pl_qk_bwd whole = make_backward(&s), cut = make_backward(&s);
        const pl_qk_dw all = make_weights(&s, &whole),
                       parts = make_weights(&s, &cut);
        set.qk_dw(&all, 0, 1);
        set.qk_bwd(&whole, 0, 1);
        for (size_t r = 0; r < s.rows; r += 10) {
            pl_qk_bwd part = cut;
            pl_qk_dw sum = parts;
            part.rows = sum.rows = 10;
            part.d = (float *)cut.d + r * width(&s);
            part.x = (const float *)cut.x + r * width(&s);
            part.rstd += r * (s.H + s.KV);
            sum.d = part.d;
            sum.x = part.x;
            sum.rstd = part.rstd;
            set.qk_dw(&sum, 0, 1);
            set.qk_bwd(&part, 0, 1);
        }
        outcome_add(&one, whole.d, s.rows * width(&s));
        outcome_add(&one, all.dq_weight, s.D);
        outcome_add(&one, all.dk_weight, s.D);
        outcome_add(&many, cut.d, s.rows * width(&s));
        outcome_add(&many, parts.dq_weight, s.D);
        outcome_add(&many, parts.dk_weight, s.D);
        expect_same("parts", &many, &one);
        free(one.values);
        free(many.values);
        fenced_release();
    }
}

/* Back and forth: a rotation alone is undone by its way back. */
static void a_rotation_is_undone(void **state)
{
    const shape s = { .rows = 12,
                      .T = 12,
                      .H = 2,
                      .KV = 2,
                      .D = 16,
                      .rotated = 1,
                      .in_place = 1 };
    pl_qk f = make_forward(&s);
    const float *before = fenced_state(s.rows * width(&s), 1, 3);
    (void)state;
    f.position = 0;
    const pl_qk_bwd b = { .d = f.y,
                          .table = f.table,
                          .rows = s.rows,
                          .T = s.T,
                          .H = s.H,
                          .KV = s.KV,
                          .D = s.D };
    const pl_kernels set = pl_kernels_for(pl_cpu_isa());
    set.qk(&f, 0, 1);
    set.qk_bwd(&b, 0, 1);
    for (size_t i = 0; i < s.rows * width(&s); i++)
        assert_float_equal(((const float *)f.y)[i], before[i], 2e-6f);
    fenced_release();
}

/* ---- finite differences ---- */

typedef struct slopes {
    shape s;
    pl_qk f;
    float *dy;
} slopes;

static double loss(void *context)
{
    const slopes *s = context;
    pl_kernels_ref().qk(&s->f, 0, 1);
    return weighted(s->f.y, s->dy, s->s.rows * width(&s->s));
}

static void the_references_gradients_are_its_slopes(void **state)
{
    (void)state;
    for (int rotated = 0; rotated < 2; rotated++) {
        slopes s = { .s = { .rows = 3,
                            .T = 3,
                            .H = 2,
                            .KV = 1,
                            .D = 6,
                            .normed = 1,
                            .rotated = rotated } };
        const size_t n = s.s.rows * width(&s.s);
        float *x = fenced_random(n, 1, 1), *q = fenced_random(6, 2, 1),
              *k = fenced_random(6, 3, 1);
        s.f = make_forward(&s.s);
        s.f.position = 0;
        s.f.x = x;
        s.f.q_weight = q;
        s.f.k_weight = k;
        s.dy = fenced_random(n, 4, 1);
        loss(&s);
        float *d = fenced_make(n, 3e30f, 0);
        memcpy(d, s.dy, n * sizeof *d);
        pl_qk_bwd b = make_backward(&s.s);
        b.d = d;
        b.x = x;
        b.q_weight = q;
        b.k_weight = k;
        b.rstd = s.f.rstd;
        pl_qk_dw w = make_weights(&s.s, &b);
        memset(w.dq_weight, 0, 6 * sizeof(float));
        memset(w.dk_weight, 0, 6 * sizeof(float));
        pl_kernels_ref().qk_dw(&w, 0, 1);
        pl_kernels_ref().qk_bwd(&b, 0, 1);
        expect_gradient("dx", loss, &s, x, n, d, 2e-4);
        expect_gradient("dq", loss, &s, q, 6, w.dq_weight, 2e-4);
        expect_gradient("dk", loss, &s, k, 6, w.dk_weight, 2e-4);
        fenced_release();
    }
}

/* apply_rotary_pos_emb of transformers on one head of width 4 at position 2,
 * theta = 100, in float64: the halves of a head are what is mixed. */
static void transformers_rotates_the_same(void **state)
{
    static const float x[] = { 1.0f, -0.5f, 2.0f,  0.25f, /* query */
                               0.5f, 1.5f,  -1.0f, 3.0f,  /* key */
                               7.0f, 8.0f,  9.0f,  10.0f };
    static const float table[] = { 1,
                                   1,
                                   0,
                                   0,
                                   0.540302306f,
                                   0.995004165f,
                                   0.841470985f,
                                   0.0998334166f,
                                   -0.416146837f,
                                   0.980066578f,
                                   0.909297427f,
                                   0.198669331f };
    static const float want[] = { -2.23474169f, -0.539700622f, 0.0770037537f,
                                  0.145681979f, 0.701224009f,  0.874091875f,
                                  0.870795550f, 3.23820373f,   7.0f,
                                  8.0f,         9.0f,          10.0f };
    (void)state;
    for (int isa = -1; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = isa < 0 ? pl_kernels_ref()
                                       : pl_kernels_for((pl_isa)isa);
        float y[12];
        const pl_qk a = { .y = y,
                          .x = x,
                          .table = table,
                          .rows = 1,
                          .T = 1,
                          .H = 1,
                          .KV = 1,
                          .D = 4,
                          .position = 2 };
        set.qk(&a, 0, 1);
        for (int i = 0; i < 12; i++)
            assert_float_equal(y[i], want[i], 1e-6f);
    }
}

static void nothing_is_read_beyond_the_end(void **state)
{
    (void)state;
    for (int i = 0; i < STORAGES; i++) {
        const tolerance t = tolerance_stored(&forward_allowed, storages[i]),
                        u = tolerance_stored(&backward_allowed, storages[i]);
        judge_shapes(forward_case, &t, storages[i], 0);
        judge_shapes(backward_case, &u, storages[i], 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_of_any_width_are_normed_and_rotated_alike),
        cmocka_unit_test(gradients_of_any_width_agree),
        cmocka_unit_test(a_stored_result_is_rounded_once),
        cmocka_unit_test(a_batch_in_parts_gives_the_same_bits),
        cmocka_unit_test(a_rotation_is_undone),
        cmocka_unit_test(the_references_gradients_are_its_slopes),
        cmocka_unit_test(transformers_rotates_the_same),
        cmocka_unit_test_setup_teardown(nothing_is_read_beyond_the_end,
                                        guard_up, guard_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
