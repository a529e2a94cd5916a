/* test_double.c: double by integers (kernels/gpu/double.clh, for cards without
 * it) is double: every bit but a NaN's payload. */
#define PL_SOFT_DOUBLE 1
#include "gpu/emulated.h"

#pragma GCC diagnostic ignored "-Wunused-function"
#include "kernels/gpu/double.clh"

#include "base/rng.h"
#include "support/asserts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 400000 };

static const uint64_t SIGN = UINT64_C(0x8000000000000000);

static double value_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Numbers of every size and kind, and neighbours of one another. */
static uint64_t some(uint32_t seed, uint32_t i)
{
    static const uint64_t odd[] = {
        0,
        1,
        UINT64_C(0x8000000000000000),
        UINT64_C(0x8000000000000001),
        UINT64_C(0x000fffffffffffff),
        UINT64_C(0x0010000000000000),
        UINT64_C(0x3ff0000000000000),
        UINT64_C(0x3fefffffffffffff),
        UINT64_C(0x7fefffffffffffff),
        UINT64_C(0x7ff0000000000000),
        UINT64_C(0xfff0000000000000),
        UINT64_C(0x7ff8000000000000),
    };
    uint32_t word[4];
    pl_rng_words(PL_RNG_INIT, seed, i, 0, 0, 0, word);
    const uint64_t bits = (uint64_t)word[0] << 32 | word[1];
    switch (word[2] % 8) {
    case 0:
        return odd[word[3] % (sizeof odd / sizeof *odd)];
    case 1: /* near 1, so that sums cancel */
        return (bits & UINT64_C(0x800fffffffffffff)) |
               (UINT64_C(0x3fe) + word[3] % 4) << 52;
    case 2: /* few bits, so that there are ties */
        return bits & UINT64_C(0xffffff0000000001);
    default:
        return bits;
    }
}

static void check(const char *what, uint64_t a, uint64_t b, uint64_t got,
                  double want)
{
    const double found = value_of(got);
    if (want != want ? found == found : got != bits_of(want))
        fail_msg("%s of %a and %a: %a, not %a", what, value_of(a), value_of(b),
                 found, want);
}

static void every_operation_is_doubles(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const uint64_t a = some(1, i), b = some(2, i);
        const double x = value_of(a), y = value_of(b);
        const float f = (float)x;
        const real64 sa = real64_bits(a), sb = real64_bits(b);
        /* of what is never negative */
        const real64 pa = sa & ~SIGN, pb = sb & ~SIGN;
        check("the sum", a, b, real64_add(sa, sb), x + y);
        check("the quotient", pa, pb, real64_divide(pa, pb), fabs(x) / fabs(y));
        check("the root", a, a, real64_root(sa), sqrt(x));
        check("the float", a, a, real64_of(f), (double)f);
        check("the square", a, a, real64_square(f), (double)f * (double)f);
        assert_int_equal(!!real64_less(pa, pb), fabs(x) < fabs(y));
        assert_int_equal(!!real64_is_finite(sa), x - x == 0.0);
    }
}

static void it_is_rounded_to_float_as_double_is(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const uint64_t a = some(3, i);
        const float got = real64_float(real64_bits(a)),
                    want = (float)value_of(a);
        if (want != want ? got == got : memcmp(&got, &want, sizeof got) != 0)
            fail_msg("%a becomes %a, not %a", value_of(a), (double)got,
                     (double)want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_is_doubles),
        cmocka_unit_test(it_is_rounded_to_float_as_double_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
