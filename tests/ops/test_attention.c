/* test_attention.c: causal attention, forward and backward. */
#include "attention_judge.h"
#include "support/sanitized.h"

static void judge_shapes(const pass *p)
{
    static const size_t shapes[][5] = {
        { 0, 7, 2, 2, 8 },    { 1, 0, 2, 1, 8 },   { 1, 1, 1, 1, 1 },
        { 1, 7, 1, 1, 9 },    { 2, 8, 3, 3, 8 },   { 2, 9, 3, 1, 7 },
        { 1, 33, 2, 2, 16 },  { 3, 32, 2, 1, 42 }, { 2, 67, 3, 3, 38 },
        { 1, 67, 0, 0, 8 },   { 1, 90, 1, 1, 67 }, { 1, 9, 2, 2, 0 },
        { 1, 50, 8, 1, 48 },  { 1, 27, 6, 2, 64 }, { 2, 31, 4, 2, 1 },
        { 1, 517, 2, 1, 5 },  /* blocks of the longest kind */
        { 1, 1024, 1, 1, 2 }, /* rows that meet in one set of a cache */
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int form = 0; form < 2 * FORMS; form++) {
            const shape s = make_shape(shapes[i], forms[form / 2], form % 2);
            /* slow to judge: float32 and bfloat16 are enough, and what a
             * sanitizer sees is in the short ones, too */
            if (s.T > 500 && (SANITIZED_ADDRESS || (form != 0 && form != 2)))
                continue;
            if (SANITIZED_ADDRESS && (i + (size_t)form) % 2)
                continue; /* half of them: each shape, each form */
            judge_bits(p, &s, p == &forward ? s.out : s.dqkv);
        }
}

static void attention_of_awkward_shapes_agrees(void **state)
{
    (void)state;
    judge_shapes(&forward);
}

static void gradients_of_awkward_shapes_agree(void **state)
{
    (void)state;
    judge_shapes(&backward);
}

/* How results are kept doesn't change them: they are rounded once. Nor does it
 * matter how the same numbers of dout are kept. */
static void results_are_rounded_once(void **state)
{
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int form = 0; form < 2 * FORMS; form++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const shape s = make_shape((size_t[]){ 2, 67, 4, 2, 70 },
                                       forms[form / 2], form % 2);
            const size_t n = s.B * s.T * s.H * s.D, n3 = s.B * s.T * row_of(&s);
            const pl_attention a = make_forward(&s, 2);
            pl_attention b = a;
            b.out = fenced_blank(n);
            b.out_storage = PL_STORE_F32;
            RUN_OP(&set, attention, &a, 2);
            RUN_OP(&set, attention, &b, 2);
            outcome got = { 0 }, want = { 0 };
            outcome_add_stored(&got, a.out, n, s.out);
            outcome_add_rounded(&want, b.out, n, s.out);
            const pl_attention_bwd da = make_backward(&s, 2);
            pl_attention_bwd db = da;
            db.dqkv = fenced_blank(n3);
            db.out = stored_back(da.out, n, s.out);
            db.dout = stored_back(da.dout, n, s.dout);
            db.out_storage = db.dout_storage = db.dqkv_storage = PL_STORE_F32;
            db.scratch = fenced_blank(
                2 * pl_attention_bwd_scratch(s.T, s.D, PL_STORE_F32));
            RUN_OP(&set, attention_bwd, &da, 2);
            RUN_OP(&set, attention_bwd, &db, 2);
            outcome_add_stored(&got, da.dqkv, n3, s.dqkv);
            outcome_add_rounded(&want, db.dqkv, n3, s.dqkv);
            expect_same("stored values", &got, &want);
            free(got.values);
            free(want.values);
            fenced_release();
        }
}

/* Scores come from stored values as they are: the same numbers as float32 give
 * the same log-sum-exp, though P is rounded. */
static void stored_values_are_used_as_they_are(void **state)
{
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int form = 0; form < FORMS; form++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const shape s = make_shape((size_t[]){ 2, 67, 2, 1, 70 },
                                       forms[form], 1);
            const size_t C = s.H * s.D, rows = s.B * s.H * s.T;
            const pl_attention a = make_forward(&s, 2);
            pl_attention b = a;
            const float *qkv = stored_back(a.q, s.B * s.T * row_of(&s), s.kept);
            b.q = qkv;
            b.k = qkv + C;
            b.v = qkv + C + s.KV * s.D;
            b.lse = fenced_blank(rows);
            b.qkv_storage = PL_STORE_F32;
            RUN_OP(&set, attention, &a, 2);
            RUN_OP(&set, attention, &b, 2);
            assert_memory_equal(a.lse, b.lse, rows * sizeof(float));
            fenced_release();
        }
}

/* Scores so far apart that all weights but one are 0, or denormal. */
static void far_apart_scores_do_no_harm(void **state)
{
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++) {
        const shape s = make_shape((size_t[]){ 1, 40, 1, 1, 4 }, forms[0], 0);
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

static void a_batch_in_parts_gives_the_same_bits(void **state)
{
    (void)state;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int form = 0; form < FORMS; form++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const shape s = make_shape((size_t[]){ 3, 35, 4, 2, 9 },
                                       forms[form], 1);
            const size_t C = s.H * s.D, row = row_of(&s);
            const pl_attention_bwd whole = make_backward(&s, 1),
                                   cut = make_backward(&s, 1);
            set.attention_bwd(&whole, 0, 1);
            for (size_t b = 0; b < s.B; b++) {
                pl_attention_bwd part = cut;
                part.B = 1;
                part.dqkv = pl_storage_at(cut.dqkv, b * s.T * row, s.dqkv);
                part.qkv = pl_storage_at(cut.qkv, b * s.T * row, s.kept);
                part.dout = pl_storage_at(cut.dout, b * s.T * C, s.dout);
                part.out = pl_storage_at(cut.out, b * s.T * C, s.out);
                part.lse += b * s.H * s.T;
                part.dropout.sequence += (uint32_t)b;
                set.attention_bwd(&part, 0, 1);
            }
            assert_memory_equal(whole.dqkv, cut.dqkv,
                                s.B * s.T * row * pl_storage_bytes(s.dqkv));
            fenced_release();
        }
}

/* A group whose query heads each have a copy of its keys and values is the same
 * as H heads of their own, and its dk and dv are the sums of theirs. */
static void a_shared_head_is_as_good_as_copies(void **state)
{
    (void)state;
    const size_t B = 2, T = 67, H = 6, D = 7;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int form = 0; form < FORMS; form++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const shape few = make_shape((size_t[]){ B, T, H, 2, D },
                                         forms[form], 1),
                        all = make_shape((size_t[]){ B, T, H, H, D },
                                         forms[form], 1);
            const pl_attention a = make_forward(&few, 1),
                               b = make_forward(&all, 1);
            const size_t bytes = pl_storage_bytes(few.kept);
            for (size_t r = 0; r < B * T; r++)
                for (size_t h = 0; h < 3 * H; h++) {
                    const size_t from = h < H       ? h
                                        : h < 2 * H ? H + (h - H) / 3
                                                    : H + 2 + (h - 2 * H) / 3;
                    memcpy(
                        pl_storage_at(b.q, (r * 3 * H + h) * D, few.kept),
                        pl_storage_at(a.q, (r * (H + 4) + from) * D, few.kept),
                        D * bytes);
                }
            set.attention(&a, 0, 1);
            set.attention(&b, 0, 1);
            assert_memory_equal(a.out, b.out,
                                B * T * H * D * pl_storage_bytes(few.out));
            assert_memory_equal(a.lse, b.lse, B * T * H * sizeof(float));
            fenced_release();
        }
}

/* Products that vanish leave -0 or +0 in a chain; whether zeros follow depends
 * on the block. In the end every zero is +0. */
static void no_gradient_is_minus_zero(void **state)
{
    (void)state;
    const shape s = make_shape((size_t[]){ 1, 67, 4, 2, 5 }, forms[0], 0);
    const size_t n = s.T * s.H * s.D, n3 = s.T * row_of(&s);
    for (int isa = -1; isa <= (int)pl_cpu_isa(); isa++)
        for (int tiny_dout = 0; tiny_dout < 2; tiny_dout++) {
            const pl_kernels set = isa < 0 ? pl_kernels_ref()
                                           : pl_kernels_for((pl_isa)isa);
            const pl_attention_bwd a = make_backward(&s, 1);
            float *qkv = (float *)a.qkv, *dout = (float *)a.dout;
            /* dq and dk vanish with q, k and ds; dv with the least of douts */
            for (size_t i = 0; i < n3; i++)
                qkv[i] *= i % row_of(&s) < (s.H + s.KV) * s.D ? 1e-25f : 1;
            for (size_t i = 0; i < n; i++)
                dout[i] = tiny_dout ? copysignf(0x1p-149f, dout[i])
                                    : dout[i] * 1e-25f;
            for (size_t i = 0; i < s.H * s.T; i++)
                ((float *)a.lse)[i] = 1;
            set.attention_bwd(&a, 0, 1);
            size_t zeros = 0;
            for (size_t i = 0; i < n3; i++) {
                const float x = ((const float *)a.dqkv)[i];
                zeros += x == 0;
                if (x == 0 && signbit(x))
                    fail_msg("%s: element %zu is -0", set.name, i);
            }
            assert_true(zeros >= n);
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
    for (int form = 0; form < 6; form++) {
        const int dropped = form % 2;
        const size_t heads = (size_t)1 << form / 2; /* of a group */
        const shape s = make_shape((size_t[]){ 2, 6, 4, 4 / heads, 3 },
                                   forms[0], dropped);
        const size_t n = s.B * s.T * s.H * s.D, n3 = s.B * s.T * row_of(&s);
        slopes l = { make_forward(&s, 1), fenced_random(n, 2, 1) };
        loss(&l);
        const pl_attention_bwd b = {
            .dqkv = fenced_blank(n3),
            .dout = l.dout,
            .qkv = l.forward.q,
            .out = l.forward.out,
            .lse = l.forward.lse,
            .B = s.B,
            .T = s.T,
            .H = s.H,
            .KV = s.KV,
            .D = s.D,
            .dropout = l.forward.dropout,
            .scratch = l.forward.scratch,
        };
        pl_kernels_ref().attention_bwd(&b, 0, 1);
        expect_gradient("dqkv", loss, &l, (float *)l.forward.q, n3, b.dqkv,
                        2e-4);
        fenced_release();
    }
}

static void nothing_is_read_beyond_the_end(void **state)
{
    (void)state;
    judge_shapes(&forward);
    judge_shapes(&backward);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_of_awkward_shapes_agrees),
        cmocka_unit_test(gradients_of_awkward_shapes_agree),
        cmocka_unit_test(results_are_rounded_once),
        cmocka_unit_test(stored_values_are_used_as_they_are),
        cmocka_unit_test(far_apart_scores_do_no_harm),
        cmocka_unit_test(a_batch_in_parts_gives_the_same_bits),
        cmocka_unit_test(a_shared_head_is_as_good_as_copies),
        cmocka_unit_test(no_gradient_is_minus_zero),
        cmocka_unit_test(the_references_gradients_are_its_slopes),
        cmocka_unit_test_setup_teardown(nothing_is_read_beyond_the_end,
                                        guard_up, guard_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
