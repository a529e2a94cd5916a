/* test_attention.c: causal attention, forward, backward and decoding. */
#include "../support/kernel_cases.h"

/* Outputs are means of values below 1, scores below D / sqrt(D); the error of
 * exp(s) is that of s, a few 1e-7. */
static const tolerance forward_allowed = { "attention", 5e-6, 2e-6 };
/* Sums over at most 100 rows of such terms. */
static const tolerance backward_allowed = { "attention_bwd", 2e-5, 5e-6 };

typedef struct shape {
    size_t B, T, H, D;
    int dropped;
    pl_storage kept, out; /* of qkv, and of the output */
} shape;

static pl_dropout make_dropout(int dropped)
{
    const double p = 0.3;
    return (pl_dropout){
        .threshold = dropped ? (uint32_t)(p * 4294967296.0 + 0.5) : 0,
        .scale = (float)(1 / (1 - p)),
        .seed = 1337,
        .step = 5,
        .site = PL_DROP_ATTENTION,
        .layer = 3,
        .sequence = 11,
    };
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Training's form: one buffer of rows 3C. */
static pl_attention make_forward(const shape *s, int nth)
{
    const size_t C = s->H * s->D;
    const size_t n = s->B * s->T * 3 * C;
    const void *qkv = stored_input(fenced_random(n, 1, 1), n, s->kept);
    return (pl_attention){
        .out = stored_blank(s->B * s->T * C, s->out),
        .lse = fenced_blank(s->B * s->H * s->T),
        .q = qkv,
        .k = pl_storage_at(qkv, C, s->kept),
        .v = pl_storage_at(qkv, 2 * C, s->kept),
        .q_row = 3 * C,
        .kv_row = 3 * C,
        .B = s->B,
        .queries = s->T,
        .keys = s->T,
        .H = s->H,
        .D = s->D,
        .dropout = make_dropout(s->dropped),
        .scratch = fenced_blank((size_t)nth * pl_attention_scratch(s->T, s->D)),
        .qkv_storage = s->kept,
        .out_storage = s->out,
    };
}

static void forward_case(const pl_kernels *set, const void *of, int nth,
                         outcome *out)
{
    const shape *s = of;
    const pl_attention args = make_forward(s, nth);
    RUN_OP(set, attention, &args, nth);
    outcome_add_stored(out, args.out, s->B * s->T * s->H * s->D, s->out);
    outcome_add(out, args.lse, s->D ? s->B * s->H * s->T : 0);
}

static pl_attention_bwd make_backward(const shape *s, int nth)
{
    const pl_attention f = make_forward(s, 1);
    const size_t n = s->B * s->T * s->H * s->D;
    pl_kernels_ref().attention(&f, 0, 1);
    return (pl_attention_bwd){
        .dqkv = fenced_blank(3 * n),
        .dout = fenced_random(n, 2, 1),
        .qkv = f.q,
        .out = f.out,
        .lse = f.lse,
        .B = s->B,
        .T = s->T,
        .H = s->H,
        .D = s->D,
        .dropout = f.dropout,
        .scratch = fenced_blank((size_t)nth * pl_attention_scratch(s->T, s->D)),
        .qkv_storage = s->kept,
        .out_storage = s->out,
    };
}

static void backward_case(const pl_kernels *set, const void *of, int nth,
                          outcome *out)
{
    const shape *s = of;
    const pl_attention_bwd args = make_backward(s, nth);
    RUN_OP(set, attention_bwd, &args, nth);
    outcome_add(out, args.dqkv, s->B * s->T * s->H * s->D * 3);
}

static const pl_storage pairs[][2] = {
    { PL_STORE_F32, PL_STORE_F32 },  { PL_STORE_BF16, PL_STORE_BF16 },
    { PL_STORE_F16, PL_STORE_F16 },  { PL_STORE_BF16, PL_STORE_F32 },
    { PL_STORE_F16, PL_STORE_BF16 },
};
enum { PAIRS = sizeof pairs / sizeof *pairs };

/* out_kept: the case hands over an output that is kept in shape.out. */
static void judge_shapes(case_fn *run, const tolerance *allowed, int out_kept)
{
    static const size_t shapes[][4] = {
        { 0, 7, 2, 8 },    { 1, 0, 2, 8 },  { 1, 1, 1, 1 },    { 1, 7, 1, 9 },
        { 2, 8, 3, 8 },    { 2, 9, 3, 7 },  { 1, 33, 2, 16 },  { 3, 32, 2, 42 },
        { 2, 67, 3, 38 },  { 1, 67, 0, 8 }, { 1, 100, 1, 67 }, { 1, 9, 2, 0 },
        { 1, 1024, 1, 2 }, /* rows that meet in one set of a cache */
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int form = 0; form < 2 * PAIRS; form++) {
            const size_t *n = shapes[i];
            if (n[1] > 1000 && form > 0) /* slow to judge: floats are enough */
                break;
            const shape s = { n[0],
                              n[1],
                              n[2],
                              n[3],
                              form % 2,
                              pairs[form / 2][0],
                              pairs[form / 2][1] };
            const tolerance t = tolerance_stored(
                allowed, out_kept ? s.out : PL_STORE_F32);
            judge(run, &s, &t);
        }
}

static void attention_of_awkward_shapes_agrees(void **state)
{
    (void)state;
    judge_shapes(forward_case, &forward_allowed, 1);
}

static void gradients_of_awkward_shapes_agree(void **state)
{
    (void)state;
    judge_shapes(backward_case, &backward_allowed, 0);
}

/* Same numbers kept as float32: the same scores and sums, and the output
 * rounded once. */
static void stored_values_are_used_as_they_are(void **state)
{
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int form = 0; form < 2 * PAIRS; form++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const pl_storage kept = pairs[form / 2][0],
                             out = pairs[form / 2][1];
            const shape s = { 2, 67, 2, 70, form % 2, kept, out };
            const size_t n = s.B * s.T * s.H * s.D, C = s.H * s.D;
            const pl_attention a = make_forward(&s, 2);
            pl_attention b = a;
            const float *qkv = stored_back(a.q, 3 * n, kept);
            float *lse = fenced_blank(s.B * s.H * s.T);
            b.q = qkv;
            b.k = qkv + C;
            b.v = qkv + 2 * C;
            b.out = fenced_blank(n);
            b.lse = lse;
            b.qkv_storage = b.out_storage = PL_STORE_F32;
            RUN_OP(&set, attention, &a, 2);
            RUN_OP(&set, attention, &b, 2);
            outcome got = { 0 }, want = { 0 };
            outcome_add_stored(&got, a.out, n, out);
            outcome_add(&got, a.lse, s.B * s.H * s.T);
            outcome_add_rounded(&want, b.out, n, out);
            outcome_add(&want, b.lse, s.B * s.H * s.T);
            const pl_attention_bwd da = make_backward(&s, 2);
            pl_attention_bwd db = da;
            db.dqkv = fenced_blank(3 * n);
            db.qkv = qkv;
            db.out = stored_back(da.out, n, out);
            db.qkv_storage = db.out_storage = PL_STORE_F32;
            RUN_OP(&set, attention_bwd, &da, 2);
            RUN_OP(&set, attention_bwd, &db, 2);
            outcome_add(&got, da.dqkv, 3 * n);
            outcome_add(&want, db.dqkv, 3 * n);
            expect_same("stored values", &got, &want);
            free(got.values);
            free(want.values);
            fenced_release();
        }
}

/* Scores so far apart that all weights but one are 0, or denormal. */
static void far_apart_scores_do_no_harm(void **state)
{
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++) {
        const shape s = { 1, 40, 1, 4, 0, PL_STORE_F32, PL_STORE_F32 };
        const pl_kernels set = pl_kernels_for((pl_isa)isa),
                         ref = pl_kernels_ref();
        const pl_attention a = make_forward(&s, 1), b = make_forward(&s, 1);
        for (size_t i = 0; i < 40 * 12; i++) {
            ((float *)a.q)[i] *= 30;
            ((float *)b.q)[i] *= 30;
        }
        outcome got = { 0 }, want = { 0 };
        set.attention(&a, 0, 1);
        ref.attention(&b, 0, 1);
        outcome_add(&got, a.out, 40 * 4);
        outcome_add(&want, b.out, 40 * 4);
        /* A score of 1000 is known to 6e-5 only, and so is its weight. */
        const tolerance wide = { "far apart", 30 * 1e-3, 1e-3 };
        expect_close(&wide, set.name, &got, &want);
        free(got.values);
        free(want.values);
        fenced_release();
    }
}

/* Queries first .. first + count - 1 out of a cache of `keys` rows per
 * sequence, of which those after the last query are still NaN. */
static void expect_rows(const pl_kernels *set, const pl_attention *whole,
                        size_t first, size_t count, size_t keys)
{
    const size_t B = whole->B, H = whole->H, C = H * whole->D, T = whole->keys,
                 row = C + 5;
    const pl_storage kept = whole->qkv_storage, end = whole->out_storage;
    const size_t bytes = C * pl_storage_bytes(kept);
    void *q = stored_blank(B * count * C, kept);
    void *k = stored_blank(B * keys * row, kept);
    void *v = stored_blank(B * keys * row, kept);
    void *out = stored_blank(B * count * C, end);
    for (size_t b = 0; b < B; b++) {
        for (size_t i = 0; i < count; i++)
            memcpy(pl_storage_at(q, (b * count + i) * C, kept),
                   pl_storage_at(whole->q, (b * T + first + i) * whole->q_row,
                                 kept),
                   bytes);
        for (size_t j = 0; j < first + count; j++) {
            const size_t from = (b * T + j) * whole->kv_row,
                         to = (b * keys + j) * row;
            memcpy(pl_storage_at(k, to, kept),
                   pl_storage_at(whole->k, from, kept), bytes);
            memcpy(pl_storage_at(v, to, kept),
                   pl_storage_at(whole->v, from, kept), bytes);
        }
    }
    const pl_attention args = {
        .out = out,
        .q = q,
        .k = k,
        .v = v,
        .q_row = C,
        .kv_row = row,
        .B = B,
        .queries = count,
        .keys = keys,
        .first = first,
        .H = H,
        .D = whole->D,
        .dropout = whole->dropout,
        .scratch = fenced_blank(2 * pl_attention_scratch(keys, whole->D)),
        .qkv_storage = kept,
        .out_storage = end,
    };
    RUN_OP(set, attention, &args, 2);
    for (size_t b = 0; b < B; b++)
        assert_memory_equal(pl_storage_at(out, b * count * C, end),
                            pl_storage_at(whole->out, (b * T + first) * C, end),
                            count * C * pl_storage_bytes(end));
}

static void expect_decoding(const pl_kernels *set, const shape *s)
{
    static const size_t chunks[][2] = { { 0, 67 },  { 0, 10 },  { 10, 20 },
                                        { 30, 37 }, { 31, 33 }, { 66, 1 } };
    for (size_t n = 0; n < s->T; n++) {
        const pl_attention whole = make_forward(s, 1);
        set->attention(&whole, 0, 1);
        expect_rows(set, &whole, n, 1, most(n + 1, 67));
        expect_rows(set, &whole, n, 1, 80);
        fenced_release();
    }
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        const pl_attention whole = make_forward(s, 1);
        set->attention(&whole, 0, 1);
        expect_rows(set, &whole, chunks[i][0], chunks[i][1], 80);
        fenced_release();
    }
}

static void decoding_gives_the_rows_of_the_whole_to_the_bit(void **state)
{
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int form = 0; form < 4 * PAIRS; form++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            /* less than a vector, and some with a rest */
            const size_t D = form / (2 * PAIRS) ? 37 : 10;
            const pl_storage *pair = pairs[form / 2 % PAIRS];
            const shape s = { 2, 67, 3, D, form % 2, pair[0], pair[1] };
            expect_decoding(&set, &s);
        }
}

static void a_batch_in_parts_gives_the_same_bits(void **state)
{
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int form = 0; form < PAIRS; form++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const shape s = { 3, 35, 2, 9, 1, pairs[form][0], pairs[form][1] };
            const size_t C = s.H * s.D;
            const pl_attention_bwd whole = make_backward(&s, 1),
                                   cut = make_backward(&s, 1);
            set.attention_bwd(&whole, 0, 1);
            for (size_t b = 0; b < s.B; b++) {
                pl_attention_bwd part = cut;
                part.B = 1;
                part.dqkv += b * s.T * 3 * C;
                part.qkv = pl_storage_at(cut.qkv, b * s.T * 3 * C, s.kept);
                part.dout += b * s.T * C;
                part.out = pl_storage_at(cut.out, b * s.T * C, s.out);
                part.lse += b * s.H * s.T;
                part.dropout.sequence += (uint32_t)b;
                set.attention_bwd(&part, 0, 1);
            }
            assert_memory_equal(whole.dqkv, cut.dqkv,
                                s.B * s.T * 3 * C * sizeof(float));
            fenced_release();
        }
}

typedef struct slopes {
    pl_attention forward;
    const float *dout;
} slopes;

static double loss(void *context)
{
    const slopes *s = context;
    const pl_attention *f = &s->forward;
    pl_kernels_ref().attention(f, 0, 1);
    return weighted(f->out, s->dout, f->B * f->queries * f->H * f->D);
}

static void the_references_gradients_are_its_slopes(void **state)
{
    (void)state;
    for (int dropped = 0; dropped < 2; dropped++) {
        const shape s = { 2, 6, 2, 3, dropped, PL_STORE_F32, PL_STORE_F32 };
        const size_t n = s.B * s.T * s.H * s.D;
        slopes l = { make_forward(&s, 1), fenced_random(n, 2, 1) };
        loss(&l);
        const pl_attention_bwd b = {
            .dqkv = fenced_blank(3 * n),
            .dout = l.dout,
            .qkv = l.forward.q,
            .out = l.forward.out,
            .lse = l.forward.lse,
            .B = s.B,
            .T = s.T,
            .H = s.H,
            .D = s.D,
            .dropout = l.forward.dropout,
            .scratch = l.forward.scratch,
        };
        pl_kernels_ref().attention_bwd(&b, 0, 1);
        expect_gradient("dqkv", loss, &l, (float *)l.forward.q, 3 * n, b.dqkv,
                        2e-4);
        fenced_release();
    }
}

static void nothing_is_read_beyond_the_end(void **state)
{
    (void)state;
    judge_shapes(forward_case, &forward_allowed, 1);
    judge_shapes(backward_case, &backward_allowed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_of_awkward_shapes_agrees),
        cmocka_unit_test(gradients_of_awkward_shapes_agree),
        cmocka_unit_test(stored_values_are_used_as_they_are),
        cmocka_unit_test(far_apart_scores_do_no_harm),
        cmocka_unit_test(decoding_gives_the_rows_of_the_whole_to_the_bit),
        cmocka_unit_test(a_batch_in_parts_gives_the_same_bits),
        cmocka_unit_test(the_references_gradients_are_its_slopes),
        cmocka_unit_test_setup_teardown(nothing_is_read_beyond_the_end,
                                        guard_up, guard_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
