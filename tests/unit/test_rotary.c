/* test_rotary.c: the table of rotations. */
#include "model/rotary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void the_table_has_cosines_then_sines(void **state)
{
    (void)state;
    static const double thetas[] = { 1.0, 10000.0, 1000000.0 };
    for (int t = 0; t < 3; t++) {
        const pl_shape shape = { .T = 2050, .D = 10, .rope_theta = thetas[t] };
        const size_t count = shape.T * shape.D;
        float *table = malloc(count * sizeof *table);
        assert_non_null(table);
        pl_rotary_fill(&shape, 0, count, table);
        for (size_t p = 0; p < shape.T; p++)
            for (size_t k = 0; k < 5; k++) {
                const double angle = (double)p *
                                     pow(thetas[t], -2.0 * (double)k / 10.0);
                assert_float_equal(table[p * 10 + k], cos(angle), 1e-7);
                assert_float_equal(table[p * 10 + 5 + k], sin(angle), 1e-7);
            }
        assert_true(table[0] == 1.0f && table[5] == 0.0f);
        free(table);
    }
}

/* As the stage hands it over, a part at a time. */
static void parts_are_those_of_the_whole(void **state)
{
    (void)state;
    const pl_shape shape = { .T = 37, .D = 6, .rope_theta = 500.0 };
    float whole[37 * 6], parts[37 * 6];
    const size_t count = 37 * 6;
    pl_rotary_fill(&shape, 0, count, whole);
    for (size_t step = 1; step < 20; step++) {
        memset(parts, 0xff, sizeof parts);
        for (size_t at = 0; at < count; at += step)
            pl_rotary_fill(&shape, at, at + step < count ? step : count - at,
                           parts + at);
        assert_memory_equal(parts, whole, sizeof whole);
    }
}

/* Bits that may never change: a checkpoint goes on with them. */
static void some_bits_are_known(void **state)
{
    (void)state;
    const pl_shape shape = { .T = 4096, .D = 64, .rope_theta = 10000.0 };
    static const struct {
        size_t at;
        uint32_t bits;
    } known[] = { { 64, 0x3f0a5140u },
                  { 64003, 0x3f3ff0abu },
                  { 262112, 0xbf7f7136u },
                  { 262143, 0x3f04f363u },
                  { 131112, 0xbf0fcda7u } };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        float value;
        uint32_t bits;
        pl_rotary_fill(&shape, known[i].at, 1, &value);
        memcpy(&bits, &value, sizeof bits);
        assert_int_equal(bits, known[i].bits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_has_cosines_then_sines),
        cmocka_unit_test(parts_are_those_of_the_whole),
        cmocka_unit_test(some_bits_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
