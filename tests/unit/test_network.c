/* Tests of advise/network: rates as they are written, and the model at points
 * that were computed by hand. */
#include "advise/network.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static pl_error err;

static void check(const char *what, double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-12 * (1.0 + fabs(expected))))
        fail_msg("%s: %.15g, expected %.15g", what, found, expected);
}

/* ---- as it is written ---- */

static void check_network(const char *text, double bytes, double latency)
{
    pl_network n;
    if (pl_network_parse(&n, text, &err))
        fail_msg("%s: %s", text, err.text);
    check(text, n.bytes_per_second / bytes, 1.0);
    check(text, 1e6 * n.latency_seconds, 1e6 * latency);
}

static void rates_are_read_as_they_are_written(void **state)
{
    (void)state;
    check_network("100Mbit", 12.5e6, 50e-6);
    check_network("1Gbit", 125e6, 50e-6);
    check_network("2.5Gbps", 312.5e6, 50e-6);
    check_network("25Gbit/s", 3.125e9, 50e-6);
    check_network("12.5GB/s", 12.5e9, 50e-6);
    check_network("500kB", 500e3, 50e-6);
    check_network("1Gbit,0.1ms", 125e6, 100e-6);
    check_network("10Gbit/s,5us", 1.25e9, 5e-6);
    check_network("10Gbit,800ns", 1.25e9, 800e-9);
    check_network("1Tbit,0s", 125e9, 0.0);
}

static void what_is_no_rate_is_refused_with_examples(void **state)
{
    static const char *const wrong[] = {
        "fast",    "",        "1",      "Gbit",      "1Gb",       "1gb",
        "1GiB",    "0Mbit",   "-1Gbit", "1.2.3Gbit", "1 Gbit",    "1Gbit/m",
        "1e3Mbit", "infGbit", ",50us",  "/s",        "1Gbit/s/s", ".Gbit",
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        pl_network n;
        if (pl_network_parse(&n, wrong[i], &err) != PL_E_USAGE)
            fail_msg("'%s' is read", wrong[i]);
        assert_non_null(strstr(err.text, "is no rate. Write one such as "));
    }
}

static void what_is_no_latency_is_refused_with_examples(void **state)
{
    static const char *const wrong[] = { "1Gbit,",      "1Gbit,soon",
                                         "1Gbit,50",    "1Gbit,-5us",
                                         "1Gbit,5us,5", "1Gbit,5min" };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        pl_network n;
        if (pl_network_parse(&n, wrong[i], &err) != PL_E_USAGE)
            fail_msg("'%s' is read", wrong[i]);
        assert_non_null(strstr(err.text, "is no latency. Write one such as "));
    }
}

/* ---- the model ---- */

static const pl_network slow = { .bytes_per_second = 1000.0,
                                 .latency_seconds = 0.5 };
static const pl_network_work four = { .ranks = 4,
                                      .compute_seconds = 10.0,
                                      .add_seconds = 4.0,
                                      .all_seconds = 1.0,
                                      .backward_seconds = 0.25,
                                      .early_bytes = 800.0,
                                      .late_bytes = 400.0,
                                      .weight_bytes = 1200.0,
                                      .sum_bytes = 40.0,
                                      .uneven = 1.0 };

/* Three quarters of 1200 bytes are 0.9 s, two rounds 1 s of latency. */
static void four_ranks_take_what_a_hand_computes(void **state)
{
    (void)state;
    const pl_network_times t = pl_network_update(&slow, &four);
    check("gradients", t.gradients, 1.9);
    check("weights", t.weights, 1.9);
    check("sums", t.sums, 2.03);
    check("hidden", t.hidden, 0.25);
    check("compute", t.compute, 13.0);
    check("waiting", t.waiting, 5.58);
    check("update", t.update, 18.58);
    check("efficiency", pl_network_efficiency(&t, 4, 37.16), 0.5);
}

/* A long backward pass hides what can travel early, and no more. */
static void a_backward_pass_hides_early_gradients_alone(void **state)
{
    pl_network_work work = four;
    (void)state;
    work.backward_seconds = 100.0;
    check("hidden", pl_network_update(&slow, &work).hidden, 0.6);
    work.backward_seconds = 0.0;
    check("hidden", pl_network_update(&slow, &work).hidden, 0.0);
    check("waiting", pl_network_update(&slow, &work).waiting, 5.83);
}

static void one_rank_waits_for_nobody(void **state)
{
    pl_network_work work = four;
    (void)state;
    work.ranks = 1;
    const pl_network_times t = pl_network_update(&slow, &work);
    check("waiting", t.waiting, 0.0);
    check("update", t.update, 10.0);
    check("efficiency", pl_network_efficiency(&t, 1, 10.0), 1.0);
}

/* 255/256 of 309,420,288 bytes at 1.25 GB/s, twice, and 32 latencies. */
static void many_ranks_send_nearly_all_in_eight_rounds(void **state)
{
    const pl_network ten = { 1.25e9, 50e-6 };
    const pl_network_work work = { .ranks = 256,
                                   .compute_seconds = 1.0,
                                   .late_bytes = 309420288.0,
                                   .weight_bytes = 309420288.0,
                                   .uneven = 1.0 };
    (void)state;
    const pl_network_times t = pl_network_update(&ten, &work);
    check("gradients", t.gradients, 0.246569292 + 0.0004);
    check("waiting", t.waiting, 0.493138584 + 0.0016);
    for (size_t ranks = 1; ranks < 256; ranks *= 2) {
        pl_network_work fewer = work;
        fewer.ranks = ranks;
        assert_true(pl_network_update(&ten, &fewer).waiting < t.waiting);
    }
}

/* One exchange in ten updates; each rank updates all weights. */
static void diloco_shares_one_exchange_among_its_updates(void **state)
{
    (void)state;
    const pl_network_times t = pl_network_diloco(&slow, &four, 10);
    check("compute", t.compute, 11.3);
    check("waiting", t.waiting, 0.583);
    check("update", t.update, 11.883);
    check("hidden", t.hidden, 0.0);
}

/* Of two, one owns 3 of 4: 3 are sent where 2 would be. Of four with 4, 2, 1
 * and 1, 5 and then 4, where 4 and 2 would be. */
static void uneven_slices_take_longer(void **state)
{
    static const size_t even[] = { 2, 2, 2, 2 }, two[] = { 3, 1 },
                        four_ranks[] = { 4, 2, 1, 1 }, none[] = { 0, 0 };
    pl_network_work work = four;
    (void)state;
    check("even", pl_network_uneven(even, 4), 1.0);
    check("two", pl_network_uneven(two, 2), 1.5);
    check("four", pl_network_uneven(four_ranks, 4), 1.5);
    check("none", pl_network_uneven(none, 2), 1.0);
    check("one", pl_network_uneven(even, 1), 1.0);
    work.uneven = 1.5;
    check("weights", pl_network_update(&slow, &work).weights, 2.35);
    check("compute", pl_network_update(&slow, &work).compute, 14.5);
}

static void a_fifth_of_waiting_is_too_much(void **state)
{
    const pl_network_times little = { .waiting = 1.9, .update = 10.0 },
                           much = { .waiting = 2.0, .update = 10.0 };
    (void)state;
    assert_true(pl_network_is_worth_it(&little));
    assert_false(pl_network_is_worth_it(&much));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_read_as_they_are_written),
        cmocka_unit_test(what_is_no_rate_is_refused_with_examples),
        cmocka_unit_test(what_is_no_latency_is_refused_with_examples),
        cmocka_unit_test(four_ranks_take_what_a_hand_computes),
        cmocka_unit_test(a_backward_pass_hides_early_gradients_alone),
        cmocka_unit_test(one_rank_waits_for_nobody),
        cmocka_unit_test(many_ranks_send_nearly_all_in_eight_rounds),
        cmocka_unit_test(diloco_shares_one_exchange_among_its_updates),
        cmocka_unit_test(uneven_slices_take_longer),
        cmocka_unit_test(a_fifth_of_waiting_is_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
