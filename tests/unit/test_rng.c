#include "base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* The known answers that come with the Random123 paper's code. */
static void philox_gives_the_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        { { 0, 0, 0, 0 },
          { 0, 0 },
          { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
          { 0xffffffff, 0xffffffff },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint32_t out[4];
        pl_philox(known[i].counter, known[i].key, out);
        assert_memory_equal(out, known[i].out, sizeof out);
    }
}

static void a_question_is_the_key_and_counter_it_says(void **state)
{
    (void)state;
    const uint32_t counter[4] = { 10, 20, 30, 40 };
    const uint32_t key[2] = { 1337, PL_RNG_CROP };
    uint32_t expected[4], words[4];
    pl_philox(counter, key, expected);
    pl_rng_words(PL_RNG_CROP, 1337, 10, 20, 30, 40, words);
    assert_memory_equal(words, expected, sizeof words);
}

static void every_part_of_a_question_changes_the_answer(void **state)
{
    (void)state;
    static const uint32_t questions[][6] = {
        { PL_RNG_INIT, 0, 0, 0, 0, 0 },    { PL_RNG_CROP, 0, 0, 0, 0, 0 },
        { PL_RNG_EVAL, 0, 0, 0, 0, 0 },    { PL_RNG_SAMPLE, 0, 0, 0, 0, 0 },
        { PL_RNG_DROPOUT, 0, 0, 0, 0, 0 }, { PL_RNG_INIT, 1, 0, 0, 0, 0 },
        { PL_RNG_INIT, 0, 1, 0, 0, 0 },    { PL_RNG_INIT, 0, 0, 1, 0, 0 },
        { PL_RNG_INIT, 0, 0, 0, 1, 0 },    { PL_RNG_INIT, 0, 0, 0, 0, 1 },
    };
    enum { N = sizeof questions / sizeof questions[0] };
    uint32_t words[N][4];
    for (size_t i = 0; i < N; i++) {
        const uint32_t *q = questions[i];
        pl_rng_words((pl_rng_use)q[0], q[1], q[2], q[3], q[4], q[5], words[i]);
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(words[i], words[j], sizeof words[i]);
    }
}

/* ---- whole numbers ---- */

static void a_number_below_a_bound_is_below_it(void **state)
{
    (void)state;
    static const uint64_t bounds[] = { 1,          2,          3,
                                       7,          65537,      (1ull << 32) - 1,
                                       1ull << 32, 1ull << 53, UINT64_MAX - 1,
                                       UINT64_MAX };
    static const uint32_t zeros[4] = { 0 };
    static const uint32_t ones[4] = { ~0u, ~0u, ~0u, ~0u };
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        assert_true(pl_rng_below(zeros, bounds[i]) == 0);
        assert_true(pl_rng_below(ones, bounds[i]) == bounds[i] - 1);
        for (uint32_t n = 0; n < 1000; n++) {
            uint32_t words[4];
            pl_rng_words(PL_RNG_CROP, 1, n, (uint32_t)i, 0, 0, words);
            assert_true(pl_rng_below(words, bounds[i]) < bounds[i]);
        }
    }
}

/* Chi-squared with k - 1 degrees of freedom lies within six standard
 * deviations of its mean; the draws are fixed, so this never flickers. */
static void assert_uniform(const uint32_t *counts, size_t k, double draws)
{
    double chi2 = 0, expected = draws / (double)k;
    for (size_t i = 0; i < k; i++)
        chi2 += (counts[i] - expected) * (counts[i] - expected) / expected;
    double freedom = (double)k - 1;
    if (!(fabs(chi2 - freedom) < 6 * sqrt(2 * freedom)))
        fail_msg("chi-squared is %g for %g degrees of freedom", chi2, freedom);
}

static void numbers_below_a_bound_are_uniform(void **state)
{
    (void)state;
    enum { DRAWS = 200000 };
    static const uint32_t bounds[] = { 2, 3, 10, 67, 1000 };
    for (size_t b = 0; b < sizeof bounds / sizeof bounds[0]; b++) {
        uint32_t counts[1000] = { 0 };
        for (uint32_t n = 0; n < DRAWS; n++) {
            uint32_t words[4];
            pl_rng_words(PL_RNG_EVAL, 42, n, 0, 0, 0, words);
            counts[pl_rng_below(words, bounds[b])]++;
        }
        assert_uniform(counts, bounds[b], DRAWS);
    }
}

/* Bits 32 to 63 of the answer come from the second word. */
static void large_bounds_use_all_the_bits(void **state)
{
    (void)state;
    const uint32_t low[4] = { 5, 0, 0, 0 }, high[4] = { 5, ~0u, 0, 0 };
    uint64_t bound = 1ull << 63;
    assert_true(pl_rng_below(low, bound) == 5ull << 31);
    assert_true(pl_rng_below(high, bound) == (5ull << 31 | 0x7fffffff));
}

/* ---- reals ---- */

static void a_unit_is_at_least_0_and_below_1(void **state)
{
    (void)state;
    static const uint32_t zeros[4] = { 0 };
    static const uint32_t ones[4] = { ~0u, ~0u, ~0u, ~0u };
    static const uint32_t least[4] = { 0, 1u << 11, 0, 0 };
    static const uint32_t half[4] = { 1u << 31, 0, 0, 0 };
    assert_true(pl_rng_unit(zeros) == 0.0);
    assert_true(pl_rng_unit(ones) == 1.0 - 0x1p-53);
    assert_true(pl_rng_unit(least) == 0x1p-53);
    assert_true(pl_rng_unit(half) == 0.5);
}

static void units_are_uniform(void **state)
{
    (void)state;
    enum { DRAWS = 200000, BINS = 100 };
    uint32_t counts[BINS] = { 0 };
    double sum = 0;
    for (uint32_t n = 0; n < DRAWS; n++) {
        uint32_t words[4];
        pl_rng_words(PL_RNG_SAMPLE, 7, n, 1, 0, 0, words);
        double unit = pl_rng_unit(words);
        counts[(size_t)(unit * BINS)]++;
        sum += unit;
    }
    assert_uniform(counts, BINS, DRAWS);
    assert_true(fabs(sum / DRAWS - 0.5) < 5 * sqrt(1.0 / 12 / DRAWS));
}

static void normals_are_finite_at_the_edges(void **state)
{
    (void)state;
    static const uint32_t edges[][4] = {
        { 0, 0, 0, 0 },
        { ~0u, ~0u, ~0u, ~0u },
        { 0, ~0u, ~0u, 0 },
        { 1, 1u << 31, 1u << 31, 1 },
    };
    for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++) {
        double out[4];
        pl_rng_normals(edges[i], out);
        for (int k = 0; k < 4; k++)
            assert_true(isfinite(out[k]) && fabs(out[k]) < 7);
    }
}

/* A seed's first weights are these on every machine, with every libc. */
static void normals_are_these_bits(void **state)
{
    (void)state;
    static const double known[4] = { 0x1.28329c4fb5dddp+0, 0x1.0bb6d6a80de9bp-3,
                                     -0x1.9b489a267415fp-1,
                                     -0x1.1eafa12a119dp+1 };
    uint32_t words[4];
    double out[4];
    pl_rng_words(PL_RNG_INIT, 1337, 0, 0, 0, 0, words);
    pl_rng_normals(words, out);
    for (int i = 0; i < 4; i++)
        if (out[i] != known[i])
            fail_msg("%d: %a, expected %a", i, out[i], known[i]);
}

static void normals_have_the_normal_moments(void **state)
{
    (void)state;
    enum { GROUPS = 400000 };
    double sums[4][5] = { { 0 } }, products[4][4] = { { 0 } };
    double beyond_two = 0, all_squares = 0, n = GROUPS;
    for (uint32_t g = 0; g < GROUPS; g++) {
        uint32_t words[4];
        double x[4];
        pl_rng_words(PL_RNG_INIT, 1337, g, 3, 0, 0, words);
        pl_rng_normals(words, x);
        for (int i = 0; i < 4; i++) {
            double power = 1;
            for (int k = 1; k <= 4; k++)
                sums[i][k] += power *= x[i];
            for (int j = 0; j < i; j++)
                products[i][j] += x[i] * x[j];
            beyond_two += fabs(x[i]) > 2;
        }
    }
    /* Standard deviations of the estimates: 1, sqrt 2, sqrt 15, sqrt 96, each
     * over sqrt n. */
    for (int i = 0; i < 4; i++) {
        all_squares += sums[i][2];
        assert_true(fabs(sums[i][1] / n) < 5 * sqrt(1 / n));
        assert_true(fabs(sums[i][2] / n - 1) < 5 * sqrt(2 / n));
        assert_true(fabs(sums[i][3] / n) < 5 * sqrt(15 / n));
        assert_true(fabs(sums[i][4] / n - 3) < 5 * sqrt(96 / n));
        for (int j = 0; j < i; j++)
            assert_true(fabs(products[i][j] / n) < 5 * sqrt(1 / n));
    }
    assert_true(fabs(all_squares / (4 * n) - 1) < 5 * sqrt(2 / (4 * n)));
    assert_true(fabs(beyond_two / (4 * n) - 0.04550026) < 0.001);
}

static void the_pairs_of_normals_have_words_of_their_own(void **state)
{
    (void)state;
    static const uint32_t a[4] = { 11, 22, 33, 44 }, b[4] = { 11, 22, 5, 6 },
                          c[4] = { 7, 8, 33, 44 };
    double of_a[4], of_b[4], of_c[4];
    pl_rng_normals(a, of_a);
    pl_rng_normals(b, of_b);
    pl_rng_normals(c, of_c);
    assert_memory_equal(of_a, of_b, 2 * sizeof of_a[0]);
    assert_memory_equal(of_a + 2, of_c + 2, 2 * sizeof of_a[0]);
    for (int i = 0; i < 2; i++)
        assert_true(of_a[i] != of_c[i] && of_a[2 + i] != of_b[2 + i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_known_answers),
        cmocka_unit_test(a_question_is_the_key_and_counter_it_says),
        cmocka_unit_test(every_part_of_a_question_changes_the_answer),
        cmocka_unit_test(a_number_below_a_bound_is_below_it),
        cmocka_unit_test(numbers_below_a_bound_are_uniform),
        cmocka_unit_test(large_bounds_use_all_the_bits),
        cmocka_unit_test(a_unit_is_at_least_0_and_below_1),
        cmocka_unit_test(units_are_uniform),
        cmocka_unit_test(normals_are_finite_at_the_edges),
        cmocka_unit_test(normals_are_these_bits),
        cmocka_unit_test(normals_have_the_normal_moments),
        cmocka_unit_test(the_pairs_of_normals_have_words_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
