/* test_units.c: numbers as people read them, where they change their shape. */
#include "base/units.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void bytes_have_three_digits_and_the_unit_that_fits(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {
        { 0, "0 B" },
        { 7, "7 B" },
        { 999, "999 B" },
        { 1000, "1.00 kB" },
        { 9994, "9.99 kB" },
        { 9995, "10.0 kB" },
        { 99949, "99.9 kB" },
        { 99950, "100 kB" },
        { 999499, "999 kB" },
        { 999500, "1.00 MB" }, /* not 1000 kB */
        { 1850000000, "1.85 GB" },
        { 999999999999, "1.00 TB" },
        { 1500000000000000, "1.50 PB" },
        { UINT64_MAX, "18.4 EB" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(pl_units_bytes(rows[i].bytes).text, rows[i].text);
}

static void exact_bytes_are_given_in_full(void **state)
{
    (void)state;
    assert_string_equal(pl_units_exact(0).text, "0 bytes");
    assert_string_equal(pl_units_exact(1).text, "1 byte");
    assert_string_equal(pl_units_exact(1000).text, "1,000 bytes");
    assert_string_equal(pl_units_exact(UINT64_MAX).text,
                        "18,446,744,073,709,551,615 bytes");
    assert_string_equal(pl_units_exact_signed(1850123456).text,
                        "1,850,123,456 bytes");
    assert_string_equal(pl_units_exact_signed(-1).text, "-1 byte");
    assert_string_equal(pl_units_exact_signed(INT64_MIN).text,
                        "-9,223,372,036,854,775,808 bytes");
}

static void counts_have_a_comma_before_every_three_digits(void **state)
{
    (void)state;
    assert_string_equal(pl_units_count(0).text, "0");
    assert_string_equal(pl_units_count(999).text, "999");
    assert_string_equal(pl_units_count(1000).text, "1,000");
    assert_string_equal(pl_units_count(77355072).text, "77,355,072");
    assert_string_equal(pl_units_count(UINT64_MAX).text,
                        "18,446,744,073,709,551,615");
}

static void durations_have_the_two_units_that_matter(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } rows[] = {
        { 0.0, "0.0 s" },
        { 3.16, "3.2 s" },
        { 9.94, "9.9 s" },
        { 9.96, "10 s" },
        { 119.4, "119 s" },
        { 119.5, "2 min 00 s" },
        { 7199.4, "119 min 59 s" },
        { 7199.5, "2 h 00 min" },
        { 7500.0, "2 h 05 min" },
        { 2.0 * 86400.0 - 1.0, "47 h 59 min" },
        { 2.0 * 86400.0, "2 days 0 h" },
        { 700.0 * 86400.0, "700 days 0 h" },
        { 2.0 * 365.25 * 86400.0, "2.0 years" },
        { 317.0 * 365.25 * 86400.0, "317 years" },
        { 1e30, "3.2e+22 years" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(pl_units_duration(rows[i].seconds).text,
                            rows[i].text);
}

static void what_is_no_duration_is_a_question_mark(void **state)
{
    (void)state;
    assert_string_equal(pl_units_duration(-1.0).text, "?");
    assert_string_equal(pl_units_duration((double)NAN).text, "?");
    assert_string_equal(pl_units_duration(HUGE_VAL).text, "inf years");
}

static void moments_have_smaller_units(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *text;
    } rows[] = {
        { 0.0, "0 us" },          { 0.8e-6, "0.8 us" },   { 50e-6, "50 us" },
        { 999.4e-6, "999 us" },   { 999.6e-6, "1.0 ms" }, { 0.0354, "35.4 ms" },
        { 0.99944, "999 ms" },    { 0.9996, "1.0 s" },    { 75.0, "75 s" },
        { 7500.0, "2 h 05 min" }, { -1.0, "?" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(pl_units_moment(rows[i].seconds).text,
                            rows[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_have_three_digits_and_the_unit_that_fits),
        cmocka_unit_test(exact_bytes_are_given_in_full),
        cmocka_unit_test(counts_have_a_comma_before_every_three_digits),
        cmocka_unit_test(durations_have_the_two_units_that_matter),
        cmocka_unit_test(what_is_no_duration_is_a_question_mark),
        cmocka_unit_test(moments_have_smaller_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
