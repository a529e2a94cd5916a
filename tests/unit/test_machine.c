/* Tests of train/machine and train/calibrate: what is measured is remembered,
 * and found again where it applies. */
#include "base/cpu.h"
#include "support/scratch.h"
#include "train/calibrate.h"
#include "train/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static scratch dir;
static pl_heap heap;
static pl_config config;
static pl_error err;

static int set_up(void **state)
{
    (void)state;
    scratch_open(&dir);
    heap = pl_heap_make(1 << 24);
    config = pl_config_make_default();
    config.threads = 2;
    config.memory = "1GB";
    config.n_layer = 3;
    config.n_head = 2;
    config.n_embd = 32;
    config.block_size = 16;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_heap_close(&heap);
    scratch_close(&dir);
    return 0;
}

static pl_machine make(int64_t n_embd)
{
    pl_machine machine;
    config.n_embd = n_embd;
    if (pl_machine_make(&machine, PL_MACHINE_PLAN, &config,
                        scratch_path(&dir, "cache"), &heap, &err))
        fail_msg("%s", err.text);
    return machine;
}

static void nothing_is_known_at_first(void **state)
{
    (void)state;
    pl_machine machine = make(32);
    assert_int_equal(machine.rates.source, PL_RATES_BUILT_IN);
    assert_int_equal(machine.budget_bytes, 1000000000);
}

static void rates_are_found_again_for_their_width(void **state)
{
    (void)state;
    char text[8192];
    pl_machine machine = make(32);
    machine.rates.per_second[PL_OP_MATMUL] = 123.5;
    machine.rates.barrier_seconds = 7e-6;
    assert_int_equal(pl_machine_remember(&machine, 2, text, sizeof text, &err),
                     PL_OK);
    pl_machine again = make(32), wider = make(64);
    assert_int_equal(again.rates.source, PL_RATES_MEASURED);
    assert_true(again.rates.per_second[PL_OP_MATMUL] == 123.5);
    assert_true(again.rates.barrier_seconds == 7e-6);
    assert_int_equal(wider.rates.source, PL_RATES_SIMILAR);
    assert_true(wider.rates.per_second[PL_OP_MATMUL] == 123.5);
    config.threads = 3;
    assert_int_equal(make(32).rates.source, PL_RATES_BUILT_IN);
}

static void a_strange_file_is_no_error(void **state)
{
    static const char *const strange[] = {
        "", "[]", "{\"units_per_second\": {\"matmul\": -1}}",
        ("{\"units_per_second\": {\"matmul\": \"fast\"}, "
         "\"barrier_seconds\": 1e999}")
    };
    char text[8192];
    (void)state;
    pl_machine machine = make(32);
    const double built_in = machine.rates.per_second[PL_OP_MATMUL];
    assert_int_equal(pl_machine_remember(&machine, 2, text, sizeof text, &err),
                     PL_OK);
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        char name[96];
        snprintf(name, sizeof name, "cache/machine-%s-2-32.json",
                 pl_cpu_isa_name(pl_cpu_isa()));
        scratch_write(scratch_path(&dir, name), strange[i], strlen(strange[i]));
        assert_true(make(32).rates.per_second[PL_OP_MATMUL] == built_in);
    }
}

static void calibration_measures_and_remembers(void **state)
{
    (void)state;
    pl_machine machine = make(32);
    const pl_rates before = machine.rates;
    pl_calibrate(&machine, &config, 61);
    assert_int_equal(machine.rates.source, PL_RATES_MEASURED);
    assert_true(machine.rates.per_second[PL_OP_MATMUL] !=
                before.per_second[PL_OP_MATMUL]);
    assert_true(machine.rates.barrier_seconds > 0.0);
    assert_int_equal(make(32).rates.source, PL_RATES_MEASURED);
}

static void what_cannot_be_calibrated_is_left_alone(void **state)
{
    (void)state;
    pl_machine machine = make(32);
    machine.budget_bytes = 1000; /* not even one layer */
    pl_calibrate(&machine, &config, 61);
    assert_int_equal(machine.rates.source, PL_RATES_BUILT_IN);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_known_at_first),
        TEST(rates_are_found_again_for_their_width),
        TEST(a_strange_file_is_no_error),
        TEST(calibration_measures_and_remembers),
        TEST(what_cannot_be_calibrated_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
