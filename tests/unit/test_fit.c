/* Tests of model/fit and model/cost: the fastest layout under a budget. */
#include "model/fit.h"
#include "model/looks.h"
#include "support/asserts.h"
#include "support/on_device.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { HEAP_BYTES = 256 * 1024 * 1024 };

/* The story's model, or a small one of sizes that divide nothing. */
static const pl_shape story = { .L = 12,
                                .H = 12,
                                .D = 48,
                                .C = 576,
                                .V = 50304,
                                .T = 1024,
                                .A = 576,
                                .KV = 12,
                                .F = 2304,
                                .norm_eps = 1e-5 };
static const pl_shape small = { .L = 5,
                                .H = 3,
                                .D = 8,
                                .C = 20,
                                .V = 61,
                                .T = 37,
                                .A = 24,
                                .KV = 3,
                                .F = 80,
                                .norm_eps = 1e-5 };

static pl_gpt_layout base_of(const pl_shape *shape, size_t batch,
                             pl_dtype dtype)
{
    static const uint8_t levels[16];
    return (pl_gpt_layout){
        .batch = batch,
        .batches = 1,
        .groups = 1,
        .micro = batch,
        .eval_T = shape->T,
        .eval_micro = 1,
        .chunk_rows = 333,
        .mlp_rows = 1024,
        .prefill = 1,
        .slice_bytes = 4096,
        .device = on_device_info(2),
        .dtype = dtype,
        .levels = levels,
    };
}

static pl_fit search_for(const pl_shape *shape, const pl_gpt_layout *base,
                         const pl_fit_wish *wish, pl_heap *heap)
{
    pl_rates rates = pl_rates_built_in(2);
    pl_error err = { 0 };
    pl_fit fit;
    if (pl_fit_search(&fit, shape, base, wish, &rates, heap, &err))
        fail_msg("%s", err.text);
    return fit;
}

static pl_fit search(const pl_shape *shape, size_t batch, size_t batches,
                     pl_dtype dtype, size_t budget, pl_heap *heap)
{
    pl_gpt_layout base = base_of(shape, batch, dtype);
    pl_fit_wish wish = { .budget_bytes = budget };
    base.batches = batches;
    return search_for(shape, &base, &wish, heap);
}

static int recomputes(const pl_fit_option *option, size_t L)
{
    for (size_t l = 0; l < L; l++)
        if (option->layout.levels[l] > 1)
            return 1;
    return 0;
}

static void the_story_fits_without_recomputation(void **state)
{
    (void)state;
    static const struct {
        pl_dtype dtype;
        size_t most_bytes;
    } cases[] = { { PL_F32, 1850000000 }, { PL_F16, 1800000000 } };
    for (size_t i = 0; i < 2; i++) {
        pl_heap heap = pl_heap_make(HEAP_BYTES);
        pl_fit fit = search(&story, 16, 32, cases[i].dtype, cases[i].most_bytes,
                            &heap);
        print_message("fitted without recomputation: %zu bytes, micro %zu\n",
                      fit.chosen.arena_bytes, fit.chosen.layout.micro);
        assert_true(fit.fits);
        assert_true(fit.chosen.arena_bytes <= cases[i].most_bytes);
        assert_false(recomputes(&fit.chosen, story.L));
        pl_heap_close(&heap);
    }
}

static void the_smallest_exact_plan_is_small(void **state)
{
    (void)state;
    const pl_dtype dtypes[] = { PL_F32, PL_F16 };
    for (size_t i = 0; i < 2; i++) {
        pl_heap heap = pl_heap_make(HEAP_BYTES);
        pl_fit fit = search(&story, 16, 32, dtypes[i], 1000, &heap);
        print_message("smallest: %zu bytes\n", fit.smallest.arena_bytes);
        assert_false(fit.fits);
        assert_true(fit.smallest.arena_bytes <= 1400000000);
        assert_int_equal(fit.chosen.arena_bytes, fit.smallest.arena_bytes);
        assert_int_equal(fit.chosen.layout.levels[11], 3);
        pl_heap_close(&heap);
    }
}

/* The fewest bytes of all micro-batches, chunks and levels. */
static size_t least_bytes(const pl_shape *shape, const pl_gpt_layout *base,
                          int most_level)
{
    static const size_t chunks[][3] = {
        { 333, 1024, SIZE_MAX }, { 256, 512, 256 }, { 64, 128, 0 }, { 8, 8, 0 }
    };
    pl_heap heap = pl_heap_make(HEAP_BYTES);
    size_t least = SIZE_MAX;
    for (size_t micro = 1; micro <= base->batch; micro++)
        for (size_t i = 0; i < 4 * (size_t)(most_level + 1); i++) {
            const size_t *rows = chunks[i % 4], part = shape->T / 8;
            uint8_t levels[16];
            pl_gpt gpt;
            pl_error err = { 0 };
            pl_gpt_layout layout = *base;
            if (base->batch % micro != 0 || rows[0] < (part < 8 ? 8 : part))
                continue; /* chunks have at least an eighth of a sequence */
            layout.micro = micro;
            layout.chunk_rows = rows[0];
            layout.mlp_rows = rows[1];
            layout.pack_columns = rows[2];
            layout.levels = memset(levels, (int)(i / 4), sizeof levels);
            assert_int_equal(
                pl_gpt_make_training(&gpt, shape, &layout, &heap, &err), PL_OK);
            if (gpt.placement.arena_bytes < least)
                least = gpt.placement.arena_bytes;
            pl_heap_empty(&heap);
        }
    pl_heap_close(&heap);
    return least;
}

/* The search takes it for granted: if it doesn't fit, nothing is tried. */
static void the_smallest_is_found_at_once(void **state)
{
    (void)state;
    for (size_t batch = 1; batch <= 12; batch++)
        for (int light = 0; light < 2; light++) {
            pl_heap heap = pl_heap_make(HEAP_BYTES);
            pl_shape shape = small;
            pl_gpt_layout base = base_of(&shape, batch, PL_F32);
            pl_fit_wish wish = { .budget_bytes = 1, .no_products = light };
            pl_rates rates = pl_rates_built_in(2);
            pl_fit_option smallest;
            pl_error err = { 0 };
            for (shape.L = 1; shape.L <= 6; shape.L++) {
                pl_fit fit = search_for(&shape, &base, &wish, &heap);
                assert_int_equal(pl_fit_smallest(&smallest, &shape, &base,
                                                 &wish, &rates, &heap, &err),
                                 PL_OK);
                assert_int_equal(smallest.arena_bytes,
                                 fit.smallest.arena_bytes);
                assert_int_equal(smallest.arena_bytes,
                                 least_bytes(&shape, &base, light ? 1 : 3));
            }
            pl_heap_close(&heap);
        }
}

/* grad_checkpoint = False: whatever the budget, no product twice. */
static void levels_may_be_kept_to_what_computes_no_product_again(void **state)
{
    (void)state;
    int ones = 0;
    for (size_t budget = 100000; budget < 1000000; budget += 20000) {
        pl_heap heap = pl_heap_make(HEAP_BYTES);
        pl_gpt_layout base = base_of(&small, 6, PL_F32);
        pl_fit_wish wish = { .budget_bytes = budget, .no_products = 1 };
        pl_fit fit = search_for(&small, &base, &wish, &heap);
        assert_false(recomputes(&fit.chosen, small.L));
        ones += fit.fits && fit.chosen.layout.levels[0] == 1;
        pl_heap_close(&heap);
    }
    assert_true(ones > 0);
}

static void what_is_chosen_is_built_with_those_bytes(void **state)
{
    (void)state;
    pl_heap heap = pl_heap_make(HEAP_BYTES);
    pl_error err = { 0 };
    pl_gpt gpt;
    for (size_t budget = 120000; budget < 3000000; budget += 97777) {
        pl_fit fit = search(&small, 6, 2, PL_F32, budget, &heap);
        if (!fit.fits)
            continue;
        assert_true(fit.chosen.arena_bytes <= budget);
        assert_int_equal(
            pl_gpt_make_training(&gpt, &small, &fit.chosen.layout, &heap, &err),
            PL_OK);
        assert_int_equal(gpt.placement.arena_bytes, fit.chosen.arena_bytes);
    }
    pl_heap_close(&heap);
}

static void more_memory_is_never_slower(void **state)
{
    (void)state;
    pl_heap heap = pl_heap_make(HEAP_BYTES);
    double before = 1e30;
    int fitted = 0;
    for (size_t budget = 100000; budget < 3000000; budget += 50000) {
        pl_fit fit = search(&small, 6, 2, PL_F32, budget, &heap);
        if (fit.fits) {
            assert_true(fit.chosen.update_seconds <= before * 1.0051);
            before = fit.chosen.update_seconds;
        } else {
            assert_false(fitted); /* what fits in less fits in more */
        }
        fitted |= fit.fits;
    }
    assert_true(fitted);
    pl_heap_close(&heap);
}

/* Brute force over all micro-batches and stations of levels. */
static void nothing_that_fits_is_faster(void **state)
{
    (void)state;
    pl_heap heap = pl_heap_make(HEAP_BYTES);
    pl_rates rates = pl_rates_built_in(2);
    pl_error err = { 0 };
    pl_fit fit = search(&small, 6, 2, PL_F32, 1000, &heap);
    size_t budget = fit.smallest.arena_bytes / 10 * 13;
    fit = search(&small, 6, 2, PL_F32, budget, &heap);
    assert_true(fit.fits);
    for (size_t micro = 1; micro <= 6; micro++)
        for (size_t q = 0; 6 % micro == 0 && q <= 3 * small.L; q++) {
            uint8_t levels[8];
            pl_heap own = pl_heap_make(HEAP_BYTES);
            pl_gpt gpt;
            for (size_t l = 0; l < small.L; l++)
                levels[l] = (uint8_t)(q / small.L + (l < q % small.L));
            pl_gpt_layout layout = fit.chosen.layout;
            layout.micro = micro;
            layout.levels = levels;
            assert_int_equal(
                pl_gpt_make_training(&gpt, &small, &layout, &own, &err), PL_OK);
            double seconds = pl_cost_update(&gpt, &rates);
            if (gpt.placement.arena_bytes <= budget)
                assert_true(fit.chosen.update_seconds <= seconds * 1.0051);
            pl_heap_close(&own);
        }
    pl_heap_close(&heap);
}

static void measured_rates_replace_the_built_in_ones(void **state)
{
    (void)state;
    pl_rates rates = pl_rates_built_in(2);
    pl_observed seen = { .least_seconds = 0.0 };
    const double before = rates.per_second[PL_OP_GELU];
    seen.seconds[PL_OP_MATMUL] = 2.0;
    seen.units[PL_OP_MATMUL] = 3e9;
    /* short looks: a slow one may have been disturbed, a fast one was not */
    seen.seconds[PL_OP_GELU] = 1e-4;
    seen.units[PL_OP_GELU] = 1e-4 * before / 2;
    seen.seconds[PL_OP_DROP] = 1e-4;
    seen.units[PL_OP_DROP] = 1e-4 * rates.per_second[PL_OP_DROP] * 2;
    const double faster = rates.per_second[PL_OP_DROP] * 2;
    pl_looks looks = { .count = 0 };
    pl_looks_add(&looks, &seen, 1.0);
    pl_rates_learn(&rates, &looks, 1.0);
    assert_int_equal(rates.source, PL_RATES_MEASURED);
    assert_true(rates.per_second[PL_OP_MATMUL] == 1.5e9);
    assert_true(rates.per_second[PL_OP_GELU] == before);
    assert_true(fabs(rates.per_second[PL_OP_DROP] / faster - 1.0) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_story_fits_without_recomputation),
        cmocka_unit_test(the_smallest_exact_plan_is_small),
        cmocka_unit_test(the_smallest_is_found_at_once),
        cmocka_unit_test(levels_may_be_kept_to_what_computes_no_product_again),
        cmocka_unit_test(what_is_chosen_is_built_with_those_bytes),
        cmocka_unit_test(more_memory_is_never_slower),
        cmocka_unit_test(nothing_that_fits_is_faster),
        cmocka_unit_test(measured_rates_replace_the_built_in_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
