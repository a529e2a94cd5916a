/* test_storage.c: bfloat16 and float16 to float and back, all 65536 of each,
 * and the rounding of floats against a definition in double: the functions of
 * storage.h, and every set's own, which are reached through a product by 1. */
#include "../support/kernel_cases.h"

typedef struct format {
    pl_storage storage;
    int digits;      /* of the significand, the implied one included */
    int least, most; /* exponents of the smallest denormal, largest number */
} format;

static const format formats[] = { { PL_STORE_BF16, 8, -133, 127 },
                                  { PL_STORE_F16, 11, -24, 15 } };
enum { FORMATS = 2, ALL = 65536 };

/* ---- the definition ---- */

/* What 16 bits mean. */
static double meaning(const format *f, uint32_t bits)
{
    const int fraction_bits = f->digits - 1;
    const uint32_t implied = 1u << fraction_bits,
                   fraction = bits & (implied - 1),
                   infinite = (1u << (15 - fraction_bits)) - 1,
                   exponent = bits >> fraction_bits & infinite;
    const double sign = bits & 0x8000u ? -1 : 1;
    if (exponent == infinite)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, f->least);
    return sign * ldexp(implied + fraction, f->least + (int)exponent - 1);
}

/* The nearest number of the format, ties to even; bfloat16 has none between 0
 * and 2^-56. */
static double nearest(const format *f, double x)
{
    if (isnan(x) || isinf(x) || x == 0)
        return x;
    if (f->storage == PL_STORE_BF16 && fabs(x) < 0x1p-56)
        return copysign(0, x);
    const int own = ilogb(x) - (f->digits - 1),
              last = own > f->least ? own : f->least;
    const double rounded = ldexp(nearbyint(ldexp(x, -last)), last);
    return fabs(rounded) >= ldexp(1, f->most + 1)
               ? copysign((double)INFINITY, x)
               : rounded;
}

static int same_number(double a, double b)
{
    return isnan(a) ? isnan(b) : same_bits(a, b);
}

/* ---- inputs ---- */

/* Both neighbours of every 16-bit number and of every tie between two, then
 * any floats at all: every decision that rounding can face. */
enum { AROUND = 6, ANY = 200000, FLOATS = AROUND * ALL + ANY };

static float *make_floats(const format *f)
{
    float *x = malloc(FLOATS * sizeof *x);
    const int low = f->storage == PL_STORE_BF16 ? 16 : 13;
    uint32_t seed = 5;
    size_t n = 0;
    assert_non_null(x);
    for (uint32_t i = 0; i < ALL; i++) {
        const uint32_t at = f->storage == PL_STORE_BF16
                                ? i << 16
                                : pl_float_bits((float)meaning(f, i)) &
                                      0xffffe000u;
        const uint32_t tie = at + (1u << (low - 1));
        const uint32_t bits[AROUND] = { at - 1,  at,  at + 1,
                                        tie - 1, tie, tie + 1 };
        for (int j = 0; j < AROUND; j++)
            x[n++] = pl_bits_float(bits[j]);
    }
    for (int i = 0; i < ANY; i++) {
        seed = seed * 1664525u + 1013904223u;
        /* float16's denormals and their ties are the rarest */
        x[n++] = i % 2 ? pl_bits_float(seed)
                       : ldexpf((float)(int32_t)seed, -31 - 13 - (i / 2) % 16);
    }
    return x;
}

/* y = x as it is, also -0 and NaN: -0 + 1 * x. B gives `rows` equal rows of y;
 * A is transposed if there are several, and gives one column in any case. */
enum { MANY_ROWS = 17 };

static void through_a_product(const pl_kernels *set, pl_gemm g, size_t count,
                              size_t rows)
{
    float ones[MANY_ROWS];
    for (int i = 0; i < MANY_ROWS; i++)
        ones[i] = 1.0f;
    g.K = 1;
    g.a_row = g.a_col = g.b_col = 1;
    g.b_row = count;
    if (g.a) {
        g.M = count;
        g.N = 1;
        g.b = ones;
        g.a_col = rows > 1 ? count : 1;
    } else {
        g.M = rows;
        g.N = count;
        g.a = ones;
    }
    g.c_row = g.N;
    g.start = PL_GEMM_BIAS;
    float *bias = malloc((g.N + 1) * sizeof *bias);
    assert_non_null(bias);
    for (size_t n = 0; n < g.N; n++)
        bias[n] = -0.0f;
    g.bias = bias;
    RUN_OP(set, gemm, &g, 2);
    free(bias);
}

static int sets(void)
{
    return 1 + (int)pl_cpu_isa() + 1;
}

static pl_kernels set_number(int i)
{
    return i ? pl_kernels_for((pl_isa)(i - 1)) : pl_kernels_ref();
}

/* ---- tests ---- */

static void every_stored_number_has_its_value(void **state)
{
    (void)state;
    for (int i = 0; i < FORMATS; i++)
        for (uint32_t bits = 0; bits < ALL; bits++) {
            const format *f = &formats[i];
            /* room for a float: the compiler sees all storages */
            const uint16_t stored[2] = { (uint16_t)bits };
            const float x = pl_storage_get(stored, 0, f->storage);
            assert_true(same_number((double)x, meaning(f, bits)));
            assert_true(isnan(x) || !signbit(x) == !(bits & 0x8000u));
            if (isnan(x) && f->storage == PL_STORE_F16)
                assert_true(pl_float_bits(x) & 0x400000u); /* quiet */
        }
}

/* All but those that rounding to bfloat16 makes zero. */
static void every_stored_number_comes_back(void **state)
{
    (void)state;
    for (int i = 0; i < FORMATS; i++)
        for (uint32_t bits = 0; bits < ALL; bits++) {
            const pl_storage s = formats[i].storage;
            const uint16_t stored[2] = { (uint16_t)bits };
            const float x = pl_storage_get(stored, 0, s);
            const uint16_t quiet = s == PL_STORE_BF16 ? 0x40 : 0x200;
            const int gone = s == PL_STORE_BF16 && fabsf(x) < 0x1p-56f;
            uint16_t back[2] = { 0 };
            pl_storage_put(back, 0, x, s);
            assert_int_equal(back[0], isnan(x) ? stored[0] | quiet
                                      : gone   ? stored[0] & 0x8000
                                               : stored[0]);
        }
}

static void floats_are_rounded_to_the_nearest(void **state)
{
    (void)state;
    for (int i = 0; i < FORMATS; i++) {
        const format *f = &formats[i];
        float *x = make_floats(f);
        for (size_t n = 0; n < FLOATS; n++) {
            uint16_t room[2] = { 0 };
            pl_storage_put(room, 0, x[n], f->storage);
            const uint16_t stored = room[0];
            const double want = nearest(f, (double)x[n]);
            if (!same_number(meaning(f, stored), want))
                fail_msg("%a became %a, not %a", (double)x[n],
                         meaning(f, stored), want);
            assert_true(!(stored & 0x8000u) == !signbit(x[n]));
            assert_true(
                same_number((double)pl_storage_round(x[n], f->storage), want));
        }
        free(x);
    }
}

static void the_edges_are_where_they_belong(void **state)
{
    static const struct {
        float x;
        uint16_t bf16, f16;
    } edges[] = {
        { 0.0f, 0, 0 },
        { -0.0f, 0x8000, 0x8000 },
        { 1.0f, 0x3f80, 0x3c00 },
        { 65504.0f, 0x4780, 0x7bff },
        { 65519.996f, 0x4780, 0x7bff },
        { 65520.0f, 0x4780, 0x7c00 }, /* a tie with what would be 2^16 */
        { -1e6f, 0xc974, 0xfc00 },
        { 3.38953139e38f, 0x7f7f, 0x7c00 },
        { 3.40282347e38f, 0x7f80, 0x7c00 }, /* the largest float */
        { 0x1p-24f, 0x3380, 0x0001 },
        { 0x1p-25f, 0x3300, 0x0000 }, /* a tie with 0 */
        { 0x1.000002p-25f, 0x3300, 0x0001 },
        { 0x1.ffbffep-15f, 0x3880, 0x03ff },
        { 0x1.ffcp-15f, 0x3880, 0x0400 }, /* the denormals' upper end */
        { 0x1p-149f, 0x0000, 0x0000 },
        { 0x1p-56f, 0x2380, 0x0000 }, /* bfloat16's least */
        { -0x1p-56f, 0xa380, 0x8000 },
        { 0x1.fffffep-57f, 0x0000, 0x0000 }, /* not rounded up to it */
        { -0x1.fffffep-57f, 0x8000, 0x8000 },
        { INFINITY, 0x7f80, 0x7c00 },
        { -INFINITY, 0xff80, 0xfc00 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        assert_int_equal(pl_bf16_make(edges[i].x), edges[i].bf16);
        assert_int_equal(pl_f16_make(edges[i].x), edges[i].f16);
    }
    /* NaN: quiet, even where the upper bits were 0 */
    assert_int_equal(pl_bf16_make(pl_bits_float(0x7f800001u)), 0x7fc0);
    assert_int_equal(pl_f16_make(pl_bits_float(0xff800001u)), 0xfe00);
    assert_int_equal(pl_bf16_make(pl_bits_float(0xffffffffu)), 0xffff);
    assert_int_equal(pl_f16_make(pl_bits_float(0x7fffffffu)), 0x7fff);
    /* what a bf16 product may start from */
    assert_int_equal(pl_float_bits(pl_sum_start(0x1p-102f)), 0x0c800000);
    assert_int_equal(pl_float_bits(pl_sum_start(0x1.fffffep-103f)), 0);
    assert_true(pl_float_bits(pl_sum_start(-0x1p-149f)) == 0x80000000u);
    assert_true(isnan(pl_sum_start(NAN)));
}

static void every_set_reads_every_stored_number(void **state)
{
    uint16_t *x = malloc(ALL * sizeof *x);
    float *y = malloc(ALL * sizeof *y);
    (void)state;
    assert_true(x && y);
    for (uint32_t bits = 0; bits < ALL; bits++)
        x[bits] = (uint16_t)bits;
    for (int i = 0; i < sets(); i++)
        for (int j = 0; j < 2 * FORMATS; j++) {
            const pl_storage s = formats[j / 2].storage;
            const pl_kernels set = set_number(i);
            const pl_gemm as_a = { .a = x, .a_storage = s, .c = y },
                          as_b = { .b = x, .b_storage = s, .c = y };
            memset(y, 0, ALL * sizeof *y);
            through_a_product(&set, j % 2 ? as_b : as_a, ALL, 1);
            for (size_t n = 0; n < ALL; n++) {
                uint32_t want = pl_float_bits(pl_storage_get(x, n, s));
                if ((want & 0x7fffffffu) > 0x7f800000u)
                    want |= 0x400000u; /* arithmetic makes it quiet */
                assert_int_equal(pl_float_bits(y[n]), want);
            }
        }
    free(x);
    free(y);
}

/* One by one, and many at a time: rows and packed panels are rounded as wide as
 * a set's vectors are. */
static void expect_rounding(const pl_kernels *set, const format *f, size_t rows)
{
    const pl_storage s = f->storage;
    uint16_t *c = calloc(rows * FLOATS, sizeof *c),
             *one = calloc(FLOATS, sizeof *one);
    float *y = calloc(rows * FLOATS, sizeof *y), *z = calloc(FLOATS, sizeof *z),
          *x = make_floats(f);
    assert_true(c && one && y && z);
    const pl_gemm wide = { .b = x, .c = c, .c_storage = s },
                  thin = { .a = x, .c = one, .c_storage = s },
                  weights = { .b = x, .b_round = s, .c = y },
                  inputs = { .a = x, .a_round = s, .c = z };
    through_a_product(set, wide, FLOATS, rows);
    through_a_product(set, thin, FLOATS, rows);
    through_a_product(set, weights, FLOATS, rows);
    through_a_product(set, inputs, FLOATS, rows);
    for (size_t n = 0; n < FLOATS; n++) {
        uint16_t want[2] = { 0 };
        pl_storage_put(want, 0, x[n], s);
        const uint32_t value = pl_float_bits(pl_storage_get(want, 0, s));
        assert_int_equal(c[n], want[0]);
        assert_int_equal(c[(rows - 1) * FLOATS + n], want[0]);
        assert_int_equal(one[n], want[0]);
        assert_int_equal(pl_float_bits(y[n]), value);
        assert_int_equal(pl_float_bits(y[(rows - 1) * FLOATS + n]), value);
        assert_int_equal(pl_float_bits(z[n]), value);
    }
    free(c);
    free(one);
    free(x);
    free(y);
    free(z);
}

static void every_set_rounds_alike(void **state)
{
    (void)state;
    for (int i = 0; i < sets() * FORMATS; i++) {
        const pl_kernels set = set_number(i / FORMATS);
        expect_rounding(&set, &formats[i % FORMATS], 1);
        expect_rounding(&set, &formats[i % FORMATS], MANY_ROWS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stored_number_has_its_value),
        cmocka_unit_test(every_stored_number_comes_back),
        cmocka_unit_test(floats_are_rounded_to_the_nearest),
        cmocka_unit_test(the_edges_are_where_they_belong),
        cmocka_unit_test(every_set_reads_every_stored_number),
        cmocka_unit_test(every_set_rounds_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
