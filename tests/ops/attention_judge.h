/* attention_judge.h: attention, forward and backward, of every set against the
 * reference and, to the bit, against the oracle. */
#ifndef PL_TESTS_OPS_ATTENTION_JUDGE_H
#define PL_TESTS_OPS_ATTENTION_JUDGE_H

#include "attention_cases.h"

/* Outputs are means of values below 1, scores below D / sqrt(D); the error of
 * exp(s) is that of s, a few 1e-7. */
static const tolerance forward_allowed = { "attention", 5e-6, 2e-6 };
/* Sums over at most 100 rows of such terms, of each head of a group. */
static const tolerance backward_allowed = { "attention_bwd", 2e-5, 5e-6 };

static inline void forward_case(const pl_kernels *set, const void *of, int nth,
                                outcome *out)
{
    const shape *s = of;
    const pl_attention args = make_forward(s, nth);
    RUN_OP(set, attention, &args, nth);
    outcome_add_stored(out, args.out, s->B * s->T * s->H * s->D, s->out);
    outcome_add(out, args.lse, s->D ? s->B * s->H * s->T : 0);
}

/* lse isn't among an oracle's values. */
static inline oracle forward_oracle(const shape *s)
{
    const pl_attention args = make_forward(s, 1);
    oracle o = oracle_forward(&args);
    fenced_release();
    return o;
}

static inline void backward_case(const pl_kernels *set, const void *of, int nth,
                                 outcome *out)
{
    const shape *s = of;
    const pl_attention_bwd args = make_backward(s, nth);
    RUN_OP(set, attention_bwd, &args, nth);
    outcome_add_stored(out, args.dqkv, s->B * s->T * row_of(s), s->dqkv);
}

static inline oracle backward_oracle(const shape *s)
{
    const pl_attention_bwd args = make_backward(s, 1);
    oracle o = oracle_backward(&args);
    fenced_release();
    return o;
}

/* What there is besides the oracle's values (lse) has no room. */
static inline void expect_near(const tolerance *t, const char *who,
                               const outcome *got, const outcome *want,
                               const oracle *o)
{
    assert_int_equal(got->count, want->count);
    for (size_t i = 0; i < got->count; i++) {
        const double g = got->values[i], w = want->values[i],
                     room = i < o->room.count ? o->room.values[i] : 0;
        if (!(fabs(g - w) <= t->absolute + t->relative * fabs(w) + room))
            fail_msg("%s, %s: element %zu is %.9g, not %.9g", t->what, who, i,
                     g, w);
    }
}

/* What is measured: a case, what the contract says of it, and how near the
 * reference it must be where nothing is rounded to 16 bits. */
typedef struct pass {
    case_fn *run;
    oracle (*expect)(const shape *s);
    const tolerance *allowed;
} pass;

static const pass forward = { forward_case, forward_oracle, &forward_allowed };
static const pass backward = { backward_case, backward_oracle,
                               &backward_allowed };

/* Every set against the reference, and any number of threads; all sets but base
 * have the oracle's bits. */
static inline void judge_bits(const pass *p, const shape *s, pl_storage end)
{
    static const int threads[] = { 2, 3, 5 };
    const pl_kernels ref = pl_kernels_ref();
    const tolerance t = tolerance_stored(p->allowed, end);
    oracle o = p->expect(s);
    outcome want = run_case(p->run, &ref, s, 1);
    expect_near(&t, "oracle", &o.values,
                &(outcome){ want.values, o.values.count }, &o);
    for (int isa = PL_ISA_BASE; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = pl_kernels_for((pl_isa)isa);
        outcome one = run_case(p->run, &set, s, 1);
        expect_near(&t, set.name, &one, &want, &o);
        for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
            outcome many = run_case(p->run, &set, s, threads[i]);
            expect_same("threads", &many, &one);
            free(many.values);
        }
        if (isa > PL_ISA_BASE)
            expect_same(set.name, &(outcome){ one.values, o.values.count },
                        &o.values);
        free(one.values);
    }
    free(want.values);
    oracle_free(&o);
}

#endif
