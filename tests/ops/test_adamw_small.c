/* test_adamw_small.c: AdamW with weights of 16 bits and moments of 8. */
#include "../support/kernel_cases.h"

/* Defined to the bit: no fused operation, and chances that are looked up. */
static const tolerance exact = { "small adamw", 0, 0 };

typedef struct shape {
    size_t count;
    int small_weights, small_moments;
    pl_storage copy; /* PL_STORE_F32: none */
} shape;

static size_t blocks_of(size_t count)
{
    return (count + PL_QUANT_BLOCK - 1) / PL_QUANT_BLOCK;
}

/* Memory for one tensor, all state zero; fenced_release frees it. */
typedef struct state {
    float *w, *g, *m, *v, *m_scales, *v_scales;
    uint16_t *w_bf16, *copy;
    int8_t *m_codes;
    uint8_t *v_codes;
} state;

static void *zeros(size_t count, size_t size)
{
    static const uint32_t zero, fence = 0x5b7a5b7a;
    return fenced_sized(count, size, &fence, &zero);
}

static state state_make(size_t count)
{
    return (state){ zeros(count, 4),
                    zeros(count, 4),
                    zeros(count, 4),
                    zeros(count, 4),
                    zeros(blocks_of(count), 4),
                    zeros(blocks_of(count), 4),
                    zeros(count, 2),
                    zeros(count, 2),
                    zeros(count, 1),
                    zeros(count, 1) };
}

static pl_adamw make_args(const state *s, const shape *of)
{
    static const float clip = 0.7f;
    pl_adamw a = { .g = s->g,
                   .count = of->count,
                   .keep = 0.999f,
                   .beta1_rest = 0.1f,
                   .beta2 = 0.95f,
                   .beta2_rest = 0.05f,
                   .step_size = 1e-2f,
                   .root_correction = 0.3f,
                   .eps = 1e-8f,
                   .clip = &clip,
                   .seed = 1337,
                   .step = 3,
                   .tensor = 12 };
    if (of->small_weights)
        a.w_bf16 = s->w_bf16;
    else
        a.w = s->w;
    if (of->copy != PL_STORE_F32) {
        a.copy = s->copy;
        a.copy_storage = of->copy;
    }
    if (of->small_moments) {
        a.m_codes = s->m_codes;
        a.v_codes = s->v_codes;
        a.m_scales = s->m_scales;
        a.v_scales = s->v_scales;
    } else {
        a.m = s->m;
        a.v = s->v;
    }
    return a;
}

/* ---- the sets agree ---- */

/* Gradients of all magnitudes from 1e-10 to 1, some zero. */
static float wild(uint32_t *seed)
{
    const float x = random_value(seed), size = random_value(seed);
    return x < -0.9f ? 0.0f : x * powf(10.0f, 5.0f * (size - 1.0f));
}

/* Three steps, so that codes are read as well as written. */
static void small_case(const pl_kernels *set, const void *of, int nth,
                       outcome *out)
{
    const shape *s = of;
    const size_t n = s->count;
    uint32_t seed = 7;
    state at = state_make(n);
    for (size_t i = 0; i < n; i++) {
        at.w[i] = random_value(&seed);
        at.w_bf16[i] = pl_bf16_make(at.w[i]);
    }
    for (uint32_t step = 0; step < 3; step++) {
        pl_adamw args = make_args(&at, s);
        args.step = step;
        for (size_t i = 0; i < n; i++)
            at.g[i] = wild(&seed);
        RUN_OP(set, adamw, &args, nth);
        outcome_add(out, at.g, n);
    }
    outcome_add(out, at.w, n);
    outcome_add(out, at.m, n);
    outcome_add(out, at.v, n);
    outcome_add(out, at.m_scales, blocks_of(n));
    outcome_add(out, at.v_scales, blocks_of(n));
    outcome_add_stored(out, at.w_bf16, n, PL_STORE_BF16);
    outcome_add_stored(out, at.copy, n, PL_STORE_F16);
    for (size_t i = 0; s->copy != PL_STORE_F32 && i < n; i++) {
        const float w = s->small_weights ? NAN : at.w[i];
        const float kept = pl_storage_get(at.copy, i, s->copy);
        assert_true(s->small_weights || kept == pl_storage_round(w, s->copy));
    }
    outcome_grow(out, 2 * n);
    for (size_t i = 0; i < n; i++) {
        out->values[out->count++] = at.m_codes[i];
        out->values[out->count++] = at.v_codes[i];
    }
}

/* ---- a tensor in parts ---- */

/* The call's arguments for elements first .. first + count - 1. */
static pl_adamw part_of(const pl_adamw *whole, size_t first, size_t count)
{
    pl_adamw a = *whole;
    const size_t block = first / PL_QUANT_BLOCK;
    a.first = first;
    a.count = count;
    a.g += first;
    if (a.w_bf16)
        a.w_bf16 += first;
    else
        a.w += first;
    if (a.copy)
        a.copy += first;
    if (a.m_codes) {
        a.m_codes += first;
        a.v_codes += first;
        a.m_scales += block;
        a.v_scales += block;
    } else {
        a.m += first;
        a.v += first;
    }
    return a;
}

static void parts_of_a_tensor_take_the_steps_of_the_whole(void **unused)
{
    enum { N = 5 * PL_QUANT_BLOCK + 67, CUT = 2 * PL_QUANT_BLOCK };
    (void)unused;
    for (int isa = -1; isa <= (int)pl_cpu_isa(); isa++)
        for (int form = 0; form < 12; form++) {
            const pl_kernels set = isa < 0 ? pl_kernels_ref()
                                           : pl_kernels_for((pl_isa)isa);
            const shape s = { N, form & 1, form >> 1 & 1,
                              (pl_storage)(form / 4) };
            state at[2] = { state_make(N), state_make(N) };
            for (int cut = 0; cut < 2; cut++) {
                uint32_t seed = 7;
                const pl_adamw args = make_args(&at[cut], &s),
                               head = part_of(&args, 0, CUT),
                               tail = part_of(&args, CUT, N - CUT);
                for (size_t i = 0; i < N; i++) {
                    at[cut].w[i] = random_value(&seed);
                    at[cut].w_bf16[i] = pl_bf16_make(at[cut].w[i]);
                    at[cut].g[i] = wild(&seed);
                }
                if (cut) {
                    set.adamw(&tail, 0, 1);
                    set.adamw(&head, 0, 1);
                } else {
                    set.adamw(&args, 0, 1);
                }
            }
            const size_t blocks = blocks_of(N) * sizeof(float);
            assert_memory_equal(at[0].w, at[1].w, N * sizeof(float));
            assert_memory_equal(at[0].m, at[1].m, N * sizeof(float));
            assert_memory_equal(at[0].v, at[1].v, N * sizeof(float));
            assert_memory_equal(at[0].w_bf16, at[1].w_bf16, 2 * N);
            assert_memory_equal(at[0].copy, at[1].copy, 2 * N);
            assert_memory_equal(at[0].m_codes, at[1].m_codes, N);
            assert_memory_equal(at[0].v_codes, at[1].v_codes, N);
            assert_memory_equal(at[0].m_scales, at[1].m_scales, blocks);
            assert_memory_equal(at[0].v_scales, at[1].v_scales, blocks);
            fenced_release();
        }
}

static void every_set_takes_the_same_small_steps(void **unused)
{
    static const size_t counts[] = { 0, 1, 7, 8, 9, 67, 255, 256, 257, 5000 };
    (void)unused;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int form = 0; form < 12; form++) {
            const shape s = { counts[i], form & 1, form >> 1 & 1,
                              (pl_storage)(form / 4) };
            judge(small_case, &s, &exact);
        }
}

/* ---- weights ---- */

/* Every weight starts at `from` and is moved by -delta, under keys that differ
 * in nothing but `which` of seed, step and tensor. */
static void move_all(const pl_kernels *set, state *at, size_t count, float from,
                     float delta, int which)
{
    const shape s = { count, 1, 0, PL_STORE_F32 };
    pl_adamw a = make_args(at, &s);
    a.keep = a.root_correction = a.beta2 = 1;
    a.clip = NULL;
    a.beta1_rest = a.beta2_rest = a.eps = 0;
    a.step_size = delta;
    a.seed += which == 1;
    a.step += which == 2;
    a.tensor += which == 3;
    for (size_t i = 0; i < count; i++) {
        at->w_bf16[i] = pl_bf16_make(from);
        at->m[i] = at->v[i] = 1;
    }
    RUN_OP(set, adamw, &a, 2);
}

/* 100 000 tosses: 4 standard deviations are at most 0.0064 of a step. */
static void weights_are_rounded_up_or_down_without_bias(void **unused)
{
    enum { N = 100000 };
    const double ulp = 0x1p-8; /* below 1 */
    state at = state_make(N);
    (void)unused;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++)
        for (int tenth = 0; tenth <= 10; tenth++) {
            const pl_kernels set = pl_kernels_for((pl_isa)isa);
            const double delta = 0.1 * tenth * ulp;
            double sum = 0;
            move_all(&set, &at, N, 1.0f, (float)delta, 0);
            for (size_t i = 0; i < N; i++) {
                const double moved = (1 - (double)pl_bf16_value(at.w_bf16[i])) /
                                     ulp;
                assert_true(moved == 0 || moved == 1);
                sum += moved;
            }
            assert_true(fabs(sum / N - 0.1 * tenth) < 0.0064);
        }
    fenced_release();
}

/* As all bfloat16 is: zero below 2^-56. */
static void weights_below_the_least_bfloat16_become_zero(void **unused)
{
    enum { N = 300 };
    state at = state_make(N);
    (void)unused;
    for (int isa = -1; isa <= (int)pl_cpu_isa(); isa++)
        for (int sign = -1; sign < 2; sign += 2) {
            const pl_kernels set = isa < 0 ? pl_kernels_ref()
                                           : pl_kernels_for((pl_isa)isa);
            const float least = (float)sign * 0x1p-56f;
            move_all(&set, &at, N, least, 0, 0);
            for (size_t i = 0; i < N; i++)
                assert_int_equal(at.w_bf16[i], pl_bf16_make(least));
            move_all(&set, &at, N, least, least / 4, 0);
            for (size_t i = 0; i < N; i++)
                assert_int_equal(at.w_bf16[i], sign < 0 ? 0x8000 : 0);
        }
    fenced_release();
}

/* A step so small that rounding to nearest would never leave 1. */
static void many_small_steps_add_up(void **unused)
{
    enum { N = 1000, STEPS = 1000 };
    const shape s = { N, 1, 0, PL_STORE_F32 };
    const pl_kernels set = pl_kernels_for(pl_cpu_isa());
    state at = state_make(N);
    double sum = 0;
    (void)unused;
    for (size_t i = 0; i < N; i++) {
        at.w_bf16[i] = pl_bf16_make(1);
        at.m[i] = at.v[i] = 1;
    }
    for (uint32_t step = 0; step < STEPS; step++) {
        pl_adamw a = make_args(&at, &s);
        a.keep = a.root_correction = a.beta2 = 1;
        a.clip = NULL;
        a.beta1_rest = a.beta2_rest = a.eps = 0;
        a.step_size = 1e-4f;
        a.step = step;
        set.adamw(&a, 0, 1);
    }
    for (size_t i = 0; i < N; i++)
        sum += (double)pl_bf16_value(at.w_bf16[i]);
    assert_true(fabs(sum / N - 0.9) < 0.005);
    fenced_release();
}

static void chances_differ_by_seed_step_tensor_and_element(void **unused)
{
    enum { N = 4096 };
    const pl_kernels ref = pl_kernels_ref();
    state a = state_make(N), b = state_make(N);
    (void)unused;
    move_all(&ref, &a, N, 1.0f, 0x1p-9f, 0);
    for (int which = 0; which < 4; which++) {
        int same = 0, runs = 0;
        move_all(&ref, &b, N, 1.0f, 0x1p-9f, which);
        for (size_t i = 0; i < N; i++) {
            same += a.w_bf16[i] == b.w_bf16[i];
            runs += i && b.w_bf16[i] == b.w_bf16[i - 1];
        }
        if (which == 0)
            assert_int_equal(same, N);
        else
            assert_true(same > N * 0.45 && same < N * 0.55);
        assert_true(runs > N * 0.45 && runs < N * 0.55);
    }
    fenced_release();
}

static void numbers_that_bfloat16_has_are_kept(void **unused)
{
    static const float some[] = { 0.0f,  -0.0f,     1.0f,
                                  -1.5f, 0x1p-130f, 3.38953139e38f };
    const pl_kernels set = pl_kernels_for(pl_cpu_isa());
    state at = state_make(300);
    (void)unused;
    for (int i = 0; i < 6; i++) {
        move_all(&set, &at, 300, some[i], 0, 0);
        for (int j = 0; j < 300; j++)
            assert_int_equal(at.w_bf16[j], pl_bf16_make(some[i]));
    }
    fenced_release();
}

/* ---- moments ---- */

/* Stores m = g and sqrt(v) = |g| as codes. */
static void store_moments(const pl_kernels *set, state *at, size_t count,
                          uint32_t step)
{
    const shape s = { count, 0, 1, PL_STORE_F32 };
    pl_adamw a = make_args(at, &s);
    a.beta1_rest = a.beta2_rest = 1;
    a.clip = NULL;
    a.beta2 = 0;
    a.step = step;
    RUN_OP(set, adamw, &a, 2);
}

static double mean_of(const state *at, size_t i)
{
    const int c = at->m_codes[i];
    return (c < 0 ? -1 : 1) * c * c / 16129.0 *
           (double)at->m_scales[i / PL_QUANT_BLOCK];
}

static double root_of(const state *at, size_t i)
{
    const int c = at->v_codes[i];
    return c * c / 65025.0 * (double)at->v_scales[i / PL_QUANT_BLOCK];
}

/* The distance between the codes around x: that of c^2 and (c + 1)^2. */
static double spacing(double x, double scale, double most)
{
    const double c = floor(sqrt(x / scale) * most * (1 - 1e-6));
    return (2 * c + 1) / (most * most) * scale;
}

static void a_round_trip_is_off_by_less_than_a_code(void **unused)
{
    enum { N = 1000 };
    state at = state_make(N);
    (void)unused;
    for (int isa = 0; isa <= (int)pl_cpu_isa(); isa++) {
        const pl_kernels set = pl_kernels_for((pl_isa)isa);
        float g[N];
        uint32_t seed = 3;
        for (size_t i = 0; i < N; i++)
            at.g[i] = g[i] = wild(&seed);
        store_moments(&set, &at, N, 0);
        for (size_t i = 0; i < N; i++) {
            const double x = fabs((double)g[i]);
            const double ms = (double)at.m_scales[i / PL_QUANT_BLOCK];
            const double vs = (double)at.v_scales[i / PL_QUANT_BLOCK];
            assert_true(fabs(mean_of(&at, i) - (double)g[i]) <=
                        spacing(x, ms, 127) * (1 + 1e-5));
            assert_true(fabs(root_of(&at, i) - x) <=
                        spacing(x, vs, 255) * (1 + 1e-5));
            assert_true(x <= ms * (1 + 1e-6) && x <= vs * (1 + 1e-6));
            assert_true(x == 0 ? at.v_codes[i] == 0 : at.v_codes[i] > 0);
        }
    }
    fenced_release();
}

static void blocks_do_not_see_each_other(void **unused)
{
    enum { N = 3 * PL_QUANT_BLOCK };
    const pl_kernels set = pl_kernels_for(pl_cpu_isa());
    state at = state_make(N);
    (void)unused;
    for (size_t i = 0; i < N; i++)
        at.g[i] = i / PL_QUANT_BLOCK == 1 ? 1e6f : 1e-6f;
    store_moments(&set, &at, N, 0);
    for (size_t i = 0; i < N; i++) {
        const double x = i / PL_QUANT_BLOCK == 1 ? 1e6 : 1e-6;
        assert_true(fabs(mean_of(&at, i) / x - 1) < 1e-6);
        assert_true(fabs(root_of(&at, i) / x - 1) < 1e-6);
    }
    fenced_release();
}

/* 4 standard deviations of the mean of 2000 x 255 tosses are 0.0028 of the
 * distance between codes at most. */
static void codes_are_rounded_without_bias(void **unused)
{
    enum { N = PL_QUANT_BLOCK, STEPS = 2000 };
    static const float values[] = { 0.9f, 0.1234f, 0.01f, 1e-3f, 3e-4f };
    const pl_kernels set = pl_kernels_for(pl_cpu_isa());
    state at = state_make(N);
    (void)unused;
    for (int j = 0; j < 5; j++) {
        double m = 0, root = 0;
        const double x = (double)values[j];
        for (uint32_t step = 0; step < STEPS; step++) {
            at.g[0] = 1;
            for (size_t i = 1; i < N; i++)
                at.g[i] = i % 2 ? values[j] : -values[j];
            store_moments(&set, &at, N, step);
            for (size_t i = 1; i < N; i++) {
                m += fabs(mean_of(&at, i)) / (STEPS * (N - 1.0));
                root += root_of(&at, i) / (STEPS * (N - 1.0));
            }
        }
        assert_true(fabs(m - x) < 0.005 * spacing(x, 1, 127));
        assert_true(fabs(root - x) < 0.005 * spacing(x, 1, 255));
    }
    fenced_release();
}

static void nothing_to_store_is_zero(void **unused)
{
    const pl_kernels set = pl_kernels_for(pl_cpu_isa());
    state at = state_make(PL_QUANT_BLOCK);
    (void)unused;
    for (int tiny = 0; tiny < 2; tiny++) {
        for (size_t i = 0; i < PL_QUANT_BLOCK; i++)
            at.g[i] = tiny ? 1e-38f : 0.0f;
        store_moments(&set, &at, PL_QUANT_BLOCK, 0);
        for (size_t i = 0; i < PL_QUANT_BLOCK; i++) {
            assert_int_equal(at.m_codes[i], 0);
            assert_int_equal(at.v_codes[i], 0);
            assert_true(isfinite(at.w[i]));
        }
        assert_true(at.m_scales[0] == 0 && at.v_scales[0] == 0);
    }
    fenced_release();
}

/* ---- a problem ---- */

/* Noisy gradients of sum curvature_i (w_i - target_i)^2 / 2, curvatures from
 * 1e-3 to 1 side by side in every block, the rate falling to a tenth; returns
 * the mean squared distance to the targets. */
static double distance_after(int small_weights, int small_moments, double beta2)
{
    enum { N = 1024, STEPS = 1500 };
    const shape s = { N, small_weights, small_moments, PL_STORE_F32 };
    const pl_kernels set = pl_kernels_for(pl_cpu_isa());
    state at = state_make(N);
    float target[N], curvature[N];
    uint32_t seed = 11;
    double sum = 0;
    for (size_t i = 0; i < N; i++) {
        target[i] = 2 * random_value(&seed);
        curvature[i] = powf(10, 1.5f * (random_value(&seed) - 1));
    }
    for (uint32_t step = 0; step < STEPS; step++) {
        pl_adamw a = make_args(&at, &s);
        const double rate = 1e-2 * (1 - 0.9 * step / STEPS);
        for (size_t i = 0; i < N; i++) {
            const float w = small_weights ? pl_bf16_value(at.w_bf16[i])
                                          : at.w[i];
            at.g[i] = curvature[i] *
                      (w - target[i] + 0.5f * random_value(&seed));
        }
        a.keep = 1;
        a.clip = NULL;
        a.beta2 = (float)beta2;
        a.beta2_rest = (float)(1 - beta2);
        a.step_size = (float)(rate / (1 - pow(0.9, step + 1)));
        a.root_correction = (float)sqrt(1 - pow(beta2, step + 1));
        a.step = step;
        set.adamw(&a, 0, 1);
    }
    for (size_t i = 0; i < N; i++) {
        const float w = small_weights ? pl_bf16_value(at.w_bf16[i]) : at.w[i];
        sum += pow((double)(w - target[i]), 2) / N;
    }
    fenced_release();
    return sum;
}

/* It starts at 1.3. Moments of 8 bits should not show; weights of 16 bits
 * wander between neighbours, which are 2^-7 apart from 1 on, and so add a few
 * squares of that. */
static void a_noisy_problem_is_solved_as_well(void **unused)
{
    static const double betas[] = { 0.95, 0.999 };
    (void)unused;
    for (int i = 0; i < 2; i++) {
        const double whole = distance_after(0, 0, betas[i]);
        print_message("beta2 %g: %.3g", betas[i], whole);
        for (int form = 1; form < 4; form++) {
            const double small = distance_after(form & 1, form >> 1, betas[i]);
            print_message(", %.3g", small);
            assert_true(small < 1.1 * whole + (form & 1 ? 5 * 0x1p-14 : 0));
        }
        print_message("\n");
        assert_true(whole < 0.02);
    }
}

static void nothing_is_read_beyond_the_end(void **unused)
{
    every_set_takes_the_same_small_steps(unused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_set_takes_the_same_small_steps),
        cmocka_unit_test(parts_of_a_tensor_take_the_steps_of_the_whole),
        cmocka_unit_test(weights_are_rounded_up_or_down_without_bias),
        cmocka_unit_test(weights_below_the_least_bfloat16_become_zero),
        cmocka_unit_test(many_small_steps_add_up),
        cmocka_unit_test(chances_differ_by_seed_step_tensor_and_element),
        cmocka_unit_test(numbers_that_bfloat16_has_are_kept),
        cmocka_unit_test(a_round_trip_is_off_by_less_than_a_code),
        cmocka_unit_test(blocks_do_not_see_each_other),
        cmocka_unit_test(codes_are_rounded_without_bias),
        cmocka_unit_test(nothing_to_store_is_zero),
        cmocka_unit_test(a_noisy_problem_is_solved_as_well),
        cmocka_unit_test_setup_teardown(nothing_is_read_beyond_the_end,
                                        guard_up, guard_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
