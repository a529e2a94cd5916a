/* Tests of advise/machine and train/calibrate: what is measured is remembered,
 * and found again where it applies. */
#include "advise/machine.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "support/scratch.h"
#include "train/calibrate.h"

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

static int wants_rates(void)
{
    const pl_machine machine = make(32);
    return pl_machine_wants_rates(&machine);
}

static void nothing_is_known_at_first(void **state)
{
    (void)state;
    pl_machine machine = make(32);
    assert_int_equal(machine.rates[PL_F32].source, PL_RATES_BUILT_IN);
    assert_int_equal(machine.budget_bytes, 1000000000);
}

/* One plans for other machines; but what a run takes has to be here. */
static void a_stated_budget_is_a_plan_s_and_capped_for_a_run(void **state)
{
    (void)state;
    const size_t stated = 1000000000000000;
    pl_machine planned, run;
    config.memory = "1000TB";
    assert_int_equal(
        pl_machine_make(&planned, PL_MACHINE_PLAN, &config, NULL, &heap, &err),
        PL_OK);
    assert_int_equal(planned.budget_bytes, stated);
    assert_string_equal(planned.budget_from, "memory = '1000TB'");
    assert_int_equal(
        pl_machine_make(&run, PL_MACHINE_RUN, &config, NULL, &heap, &err),
        PL_OK);
    assert_true(run.budget_bytes > 0 && run.budget_bytes < stated);
    assert_null(strstr(run.budget_from, "1000TB"));
}

/* Files that a run has in memory already are a part of what it takes: they come
 * to what is offered now, and a stated budget has them in it. */
static void what_a_run_holds_is_offered_again(void **state)
{
    (void)state;
    pl_machine offered = { .budget_bytes = 700,
                           .stated_bytes = SIZE_MAX,
                           .budget_from = "a cgroup" };
    pl_machine stated = { .budget_bytes = 1000, .stated_bytes = 1000 };
    pl_machine capped = { .budget_bytes = 700, .stated_bytes = 750 };
    pl_machine unknown = { .budget_bytes = SIZE_MAX, .stated_bytes = SIZE_MAX };
    pl_machine_add_held(&offered, 0);
    assert_string_equal(offered.budget_from, "a cgroup");
    pl_machine_add_held(&offered, 300);
    pl_machine_add_held(&stated, 300);
    pl_machine_add_held(&capped, 300);
    pl_machine_add_held(&unknown, 300);
    assert_int_equal(offered.budget_bytes, 1000);
    assert_string_equal(offered.budget_from,
                        "a cgroup, and 300 B are this run's files");
    assert_int_equal(stated.budget_bytes, 1000);
    assert_int_equal(capped.budget_bytes, 750);
    assert_true(unknown.budget_bytes == SIZE_MAX);
}

/* A process beside the run has its part of the budget. */
static void what_another_process_takes_is_taken_off(void **state)
{
    (void)state;
    pl_machine offered = { .budget_bytes = 700,
                           .stated_bytes = SIZE_MAX,
                           .budget_from = "a cgroup" };
    pl_machine stated = { .budget_bytes = 700, .stated_bytes = 1000 };
    pl_machine unknown = { .budget_bytes = SIZE_MAX, .stated_bytes = SIZE_MAX };
    pl_machine card = { .budget_bytes = 5000,
                        .stated_bytes = SIZE_MAX,
                        .host_budget_bytes = 700 };
    pl_machine small = { .budget_bytes = 300, .stated_bytes = 300 };
    card.device.memory.spaces = PL_SPACES_APART;
    assert_int_equal(pl_machine_take_off(&offered, 300, "a page", &err), PL_OK);
    assert_int_equal(pl_machine_take_off(&stated, 300, "a page", &err), PL_OK);
    assert_int_equal(pl_machine_take_off(&unknown, 300, "a page", &err), PL_OK);
    assert_int_equal(pl_machine_take_off(&card, 300, "a page", &err), PL_OK);
    assert_int_equal(offered.budget_bytes, 400);
    assert_string_equal(offered.budget_from, "a cgroup, less 300 B for a page");
    assert_int_equal(stated.budget_bytes, 400);
    assert_int_equal(stated.stated_bytes, 700);
    assert_true(unknown.budget_bytes == SIZE_MAX);
    assert_int_equal(card.budget_bytes, 5000);
    assert_int_equal(card.host_budget_bytes, 400);
    assert_int_equal(pl_machine_take_off(&small, 300, "a page", &err),
                     PL_E_MEMORY);
    assert_non_null(strstr(err.text, "a page takes 300 B"));
}

static void rates_are_found_again_for_their_width(void **state)
{
    (void)state;
    char text[8192];
    pl_machine machine = make(32);
    machine.rates[PL_F32].per_second[PL_OP_MATMUL] = 123.5;
    machine.rates[PL_F32].barrier_seconds = 7e-6;
    assert_int_equal(pl_machine_remember(&machine, text, sizeof text, &err),
                     PL_OK);
    pl_machine again = make(32), wider = make(64);
    assert_int_equal(again.rates[PL_F32].source, PL_RATES_MEASURED);
    assert_true(again.rates[PL_F32].per_second[PL_OP_MATMUL] == 123.5);
    assert_true(again.rates[PL_F32].barrier_seconds == 7e-6);
    assert_int_equal(wider.rates[PL_F32].source, PL_RATES_SIMILAR);
    assert_true(wider.rates[PL_F32].per_second[PL_OP_MATMUL] == 123.5);
    config.threads = 3;
    assert_int_equal(make(32).rates[PL_F32].source, PL_RATES_BUILT_IN);
}

/* What is known of float32 says something about bfloat16, whose products are so
 * much faster as the device says; what was measured with it says it better. */
static void rates_are_a_dtype_s_and_stand_in_for_another_s(void **state)
{
    (void)state;
    char text[8192];
    pl_machine machine = make(32);
    const double speed = machine.device.bf16_speed;
    assert_true(speed >= 1.0);
    machine.rates[PL_F32].per_second[PL_OP_MATMUL] = 128.0;
    machine.rates[PL_F32].per_second[PL_OP_GELU] = 64.0;
    assert_int_equal(pl_machine_remember(&machine, text, sizeof text, &err),
                     PL_OK);
    config.dtype = PL_DTYPE_BFLOAT16;
    pl_machine other = make(32);
    assert_int_equal(other.rates[PL_F32].source, PL_RATES_MEASURED);
    assert_int_equal(other.rates[PL_BF16].source, PL_RATES_SIMILAR);
    assert_true(other.rates[PL_BF16].per_second[PL_OP_MATMUL] == 128.0 * speed);
    assert_true(other.rates[PL_BF16].per_second[PL_OP_GELU] == 64.0);
    assert_true(other.rates[PL_F16].per_second[PL_OP_MATMUL] == 128.0);
    assert_true(pl_machine_wants_rates(&other));
    other.rates[PL_BF16].per_second[PL_OP_MATMUL] = 7.0;
    assert_int_equal(pl_machine_remember(&other, text, sizeof text, &err),
                     PL_OK);
    other = make(32);
    assert_int_equal(other.rates[PL_BF16].source, PL_RATES_MEASURED);
    assert_true(other.rates[PL_BF16].per_second[PL_OP_MATMUL] == 7.0);
    assert_true(other.rates[PL_F32].per_second[PL_OP_MATMUL] == 128.0);
}

/* Tensor arithmetic has rates of its own, and until they are measured a
 * processor's are as much slower as it says. */
static void rates_are_an_arithmetic_s(void **state)
{
    (void)state;
    char text[8192];
    if (pl_cpu_isa() == PL_ISA_BASE)
        skip(); /* it has none */
    config.dtype = PL_DTYPE_BFLOAT16;
    pl_machine exact = make(32);
    const double untold = exact.rates[PL_F32].per_second[PL_OP_MATMUL];
    exact.rates[PL_BF16].per_second[PL_OP_MATMUL] = 128.0;
    assert_int_equal(pl_machine_remember(&exact, text, sizeof text, &err),
                     PL_OK);
    config.products = PL_PRODUCTS_WISH_TENSOR24;
    pl_machine tensor = make(32);
    const double slow = tensor.device.tensor_speed;
    assert_true(slow > 0.05 && slow < 0.3);
    assert_true(pl_machine_wants_rates(&tensor));
    assert_true(tensor.rates[PL_BF16].per_second[PL_OP_MATMUL] ==
                untold * slow);
    assert_true(tensor.rates[PL_F16].per_second[PL_OP_MATMUL] == untold * slow);
    tensor.rates[PL_BF16].per_second[PL_OP_MATMUL] = 7.0;
    assert_int_equal(pl_machine_remember(&tensor, text, sizeof text, &err),
                     PL_OK);
    tensor = make(32);
    assert_true(tensor.rates[PL_BF16].per_second[PL_OP_MATMUL] == 7.0);
    config.products = PL_PRODUCTS_WISH_EXACT;
    exact = make(32);
    assert_true(exact.rates[PL_BF16].per_second[PL_OP_MATMUL] == 128.0);
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
    const double built_in = machine.rates[PL_F32].per_second[PL_OP_MATMUL];
    assert_int_equal(pl_machine_remember(&machine, text, sizeof text, &err),
                     PL_OK);
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        char name[96];
        snprintf(name, sizeof name, "cache/machine-%s-2-float32-32.json",
                 pl_cpu_isa_name(pl_cpu_isa()));
        scratch_write(scratch_path(&dir, name), strange[i], strlen(strange[i]));
        assert_true(make(32).rates[PL_F32].per_second[PL_OP_MATMUL] ==
                    built_in);
    }
}

/* ---- busy moments ---- */

/* A clock on which every look takes a second, and a share of it is ours. */
static double ours, seconds, mine;
static pl_load simulated(void)
{
    seconds += 1.0;
    mine += ours;
    return (pl_load){ .seconds = seconds, .thread_seconds = mine };
}

/* A made-up file: rates that no machine has, and when they were measured. */
static void write_rates(const char *width, double rate, double age_seconds,
                        double quiet)
{
    char name[96], text[256];
    snprintf(name, sizeof name, "cache/machine-%s-2-float32%s.json",
             pl_cpu_isa_name(pl_cpu_isa()), width);
    const int used = snprintf(text, sizeof text,
                              "{\"date\": %.17g, \"quiet\": %.17g, "
                              "\"barrier_seconds\": 1e-6, "
                              "\"units_per_second\": {\"matmul\": %.17g}}",
                              pl_clock_date() - age_seconds, quiet, rate);
    scratch_write(scratch_path(&dir, name), text, (size_t)used);
}

static double calibrated(double share)
{
    pl_machine machine = make(32);
    ours = share;
    seconds = mine = 0.0;
    machine.read_load = simulated;
    pl_calibrate(&machine, &config, 61);
    const pl_rates kept = make(32).rates[PL_F32];
    assert_true(kept.per_second[PL_OP_MATMUL] ==
                machine.rates[PL_F32].per_second[PL_OP_MATMUL]);
    assert_true(kept.quiet == machine.rates[PL_F32].quiet);
    return kept.per_second[PL_OP_MATMUL];
}

static void calibration_measures_and_remembers(void **state)
{
    (void)state;
    pl_machine machine = make(32);
    const pl_rates before = machine.rates[PL_F32];
    machine.read_load = simulated;
    ours = 1.0;
    pl_calibrate(&machine, &config, 61);
    assert_int_equal(machine.rates[PL_F32].source, PL_RATES_MEASURED);
    assert_true(machine.rates[PL_F32].per_second[PL_OP_MATMUL] !=
                before.per_second[PL_OP_MATMUL]);
    assert_true(machine.rates[PL_F32].barrier_seconds > 0.0);
    assert_int_equal(make(32).rates[PL_F32].source, PL_RATES_MEASURED);
}

static void a_busy_moment_leaves_quiet_rates_alone(void **state)
{
    (void)state;
    pl_machine machine = make(32);
    char text[8192];
    assert_int_equal(pl_machine_remember(&machine, text, sizeof text, &err),
                     PL_OK); /* makes the folder */
    write_rates("-32", 1e30, 3600.0, 1.0);
    assert_false(wants_rates());
    assert_true(calibrated(0.2) == 1e30);
    assert_true(make(32).rates[PL_F32].quiet == 1.0);
    assert_true(calibrated(1.0) < 1e30); /* and a quiet one forgets them */
    assert_true(make(32).rates[PL_F32].quiet == 1.0);
}

static void what_a_busy_moment_said_is_forgotten(void **state)
{
    (void)state;
    pl_machine machine = make(32);
    char text[8192];
    assert_int_equal(pl_machine_remember(&machine, text, sizeof text, &err),
                     PL_OK);
    write_rates("-32", 3.0, 3600.0, 0.1); /* units per second: poison */
    machine = make(32);
    assert_int_equal(machine.rates[PL_F32].source, PL_RATES_MEASURED);
    assert_true(machine.rates[PL_F32].per_second[PL_OP_MATMUL] == 3.0);
    assert_true(pl_machine_wants_rates(&machine));
    assert_true(calibrated(0.125) > 3.0);
    assert_true(make(32).rates[PL_F32].quiet == 0.125);
    assert_true(calibrated(0.9375) > 3.0);
    assert_true(make(32).rates[PL_F32].quiet == 0.9375);
    assert_false(wants_rates());
}

static void old_rates_and_those_of_before_are_measured_again(void **state)
{
    (void)state;
    pl_machine machine = make(32);
    char text[8192];
    assert_int_equal(pl_machine_remember(&machine, text, sizeof text, &err),
                     PL_OK);
    write_rates("-32", 5.0, 0.0, 1.0);
    machine = make(32);
    assert_false(pl_machine_wants_rates(&machine));
    write_rates("-32", 5.0, 40 * 86400.0, 1.0);
    machine = make(32);
    assert_true(pl_machine_wants_rates(&machine));
    write_rates("-32", 5.0, -40 * 86400.0, 1.0); /* of the future */
    machine = make(32);
    assert_true(pl_machine_wants_rates(&machine));
    write_rates("-32", 5.0, 0.0, 0.0); /* nothing is known of the moment */
    machine = make(32);
    assert_true(pl_machine_wants_rates(&machine));
}

/* The rates for any width are those of the quietest moment, too. */
static void a_busy_width_does_not_speak_for_the_others(void **state)
{
    (void)state;
    pl_machine machine = make(32);
    char text[8192];
    assert_int_equal(pl_machine_remember(&machine, text, sizeof text, &err),
                     PL_OK);
    write_rates("", 7.0, 3600.0, 1.0);
    calibrated(0.2);
    assert_int_equal(make(64).rates[PL_F32].source, PL_RATES_SIMILAR);
    assert_true(make(64).rates[PL_F32].per_second[PL_OP_MATMUL] == 7.0);
    calibrated(1.0);
    assert_true(make(64).rates[PL_F32].per_second[PL_OP_MATMUL] != 7.0);
}

static void what_cannot_be_calibrated_is_left_alone(void **state)
{
    (void)state;
    pl_machine machine = make(32);
    machine.budget_bytes = 1000; /* not even one layer */
    pl_calibrate(&machine, &config, 61);
    assert_int_equal(machine.rates[PL_F32].source, PL_RATES_BUILT_IN);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_is_known_at_first),
        TEST(a_stated_budget_is_a_plan_s_and_capped_for_a_run),
        TEST(what_a_run_holds_is_offered_again),
        TEST(what_another_process_takes_is_taken_off),
        TEST(rates_are_found_again_for_their_width),
        TEST(rates_are_a_dtype_s_and_stand_in_for_another_s),
        TEST(rates_are_an_arithmetic_s),
        TEST(a_strange_file_is_no_error),
        TEST(calibration_measures_and_remembers),
        TEST(a_busy_moment_leaves_quiet_rates_alone),
        TEST(what_a_busy_moment_said_is_forgotten),
        TEST(old_rates_and_those_of_before_are_measured_again),
        TEST(a_busy_width_does_not_speak_for_the_others),
        TEST(what_cannot_be_calibrated_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
