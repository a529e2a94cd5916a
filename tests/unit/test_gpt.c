/* Tests of model/gpt: the programs of many random models lie over each other
 * without adding a byte to training's peak, and close to the bound. */
#include "base/rng.h"
#include "model/gpt.h"
#include "support/asserts.h"
#include "support/on_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { HEAP_BYTES = 256 * 1024 * 1024, CONFIGS = 300, MAX_L = 9 };

/* A number in [least, most] for draw `which` of config `i`. */
static size_t draw(uint32_t i, uint32_t which, size_t least, size_t most)
{
    uint32_t words[4];
    pl_rng_words(PL_RNG_INIT, 99, i, which, 0, 0, words);
    return least + (size_t)pl_rng_below(words, most - least + 1);
}

static pl_shape random_shape(uint32_t i)
{
    pl_shape s = { .L = draw(i, 0, 1, MAX_L),
                   .H = draw(i, 1, 1, 6),
                   .D = draw(i, 2, 1, 40),
                   .C = draw(i, 3, 1, 200),
                   .V = draw(i, 4, 1, 3000),
                   .T = draw(i, 5, 1, 150) };
    if (i % 5 == 0) /* nothing but blocks: the cache is what counts */
        s.V = draw(i, 7, 1, 4), s.C = draw(i, 8, 1, 9);
    if (draw(i, 31, 0, 1)) { /* as other families are, in part */
        s.position = (unsigned)draw(i, 32, 0, 1);
        s.D += s.position == PL_POSITION_ROTARY ? s.D % 2 : 0;
        s.mlp = (unsigned)draw(i, 33, 0, 2);
        s.qk_norm = (unsigned)draw(i, 34, 0, 1);
        s.norm = (unsigned)draw(i, 35, 0, 1);
        s.family = (unsigned)draw(i, 36, 0, 2);
        s.logit_softcap = draw(i, 37, 0, 1) ? 30.0 : 0.0;
        s.KV = draw(i, 38, 0, 1) ? 1 : s.H;
        s.F = draw(i, 39, 0, 1) ? draw(i, 40, 1, 300) : 0;
    }
    s.norm_eps = 1e-5;
    s.rope_theta = 10000.0;
    pl_shape_complete(&s);
    s.bias = draw(i, 6, 0, 1) ? PL_BIAS_ALL : PL_BIAS_NONE;
    s.head = draw(i, 30, 0, 3) ? PL_HEAD_TIED : PL_HEAD_OWN;
    return s;
}

static pl_gpt_layout random_layout(uint32_t i, const pl_shape *s,
                                   uint8_t levels[MAX_L])
{
    static const pl_dtype dtypes[] = { PL_F32, PL_BF16, PL_F16 };
    size_t micro = i % 5 == 0 ? 1 : draw(i, 10, 1, 4);
    for (size_t l = 0; l < s->L; l++)
        levels[l] = (uint8_t)(i % 5 == 0 ? 3 : draw(i, 20 + (uint32_t)l, 0, 3));
    return (pl_gpt_layout){
        .batch = i % 5 == 0 ? 1 : micro * draw(i, 11, 1, 3),
        .micro = micro,
        .eval_T = draw(i, 12, 1, s->T),
        .eval_micro = draw(i, 13, 1, 40),
        .chunk_rows = draw(i, 14, 1, 500),
        .mlp_rows = draw(i, 15, 0, 200),
        .prefill = s->T,
        .slice_bytes = 4 << 20,
        .device = on_device_info(draw(i, 16, 1, 4)),
        .dropout = draw(i, 17, 0, 1) ? 0.5 : 0.0,
        .dtype = dtypes[draw(i, 18, 0, 2)],
        .levels = levels,
    };
}

static void evaluation_sampling_and_saving_add_no_byte(void **state)
{
    (void)state;
    int uncached = 0;
    for (uint32_t i = 0; i < CONFIGS; i++) {
        pl_heap heap = pl_heap_make(HEAP_BYTES);
        pl_error err = { 0 };
        uint8_t levels[MAX_L];
        pl_shape shape = random_shape(i);
        pl_gpt_layout layout = random_layout(i, &shape, levels);
        pl_gpt gpt;
        if (pl_gpt_make(&gpt, &shape, &layout, &heap, &err))
            fail_msg("config %u: %s", i, err.text);
        const pl_placement *place = &gpt.placement;
        if (place->arena_bytes != pl_placement_peak(place, PL_TRAIN))
            fail_msg("config %u: arena %zu, training %zu, eval %zu, sample "
                     "%zu, save %zu, update %zu (L %zu T %zu C %zu)",
                     i, place->arena_bytes, pl_placement_peak(place, PL_TRAIN),
                     pl_placement_peak(place, PL_EVAL),
                     pl_placement_peak(place, PL_SAMPLE),
                     pl_placement_peak(place, PL_SAVE),
                     pl_placement_peak(place, PL_UPDATE_WEIGHTS), shape.L,
                     shape.T, shape.C);
        uncached += gpt.layout.cache == PL_CACHE_NONE;
        pl_heap_close(&heap);
    }
    assert_true(uncached > 0); /* the narrow ones were among them */
    assert_true(uncached < CONFIGS / 2);
}

static void placement_is_within_two_per_cent_of_the_bound(void **state)
{
    (void)state;
    double worst = 0.0;
    for (uint32_t i = 0; i < CONFIGS; i++) {
        pl_heap heap = pl_heap_make(HEAP_BYTES);
        pl_error err = { 0 };
        uint8_t levels[MAX_L];
        pl_shape shape = random_shape(i);
        pl_gpt_layout layout = random_layout(i, &shape, levels);
        pl_gpt gpt;
        assert_int_equal(pl_gpt_make(&gpt, &shape, &layout, &heap, &err),
                         PL_OK);
        double arena = (double)gpt.placement.arena_bytes;
        double bound = (double)gpt.placement.lower_bound_bytes;
        if (arena / bound - 1.0 > worst)
            worst = arena / bound - 1.0;
        pl_heap_close(&heap);
    }
    print_message("worst placement: %.2f %% above the bound\n", 100.0 * worst);
    assert_true(worst <= 0.02);
}

/* Keys and values of heads that are shared are kept once. */
static void grouped_queries_shrink_the_cache(void **state)
{
    (void)state;
    static const uint8_t levels[2];
    size_t bytes[2] = { 0 };
    for (int shared = 0; shared < 2; shared++) {
        pl_heap heap = pl_heap_make(HEAP_BYTES);
        pl_error err = { 0 };
        pl_shape shape = { .L = 2,
                           .H = 8,
                           .KV = shared ? 2 : 8,
                           .D = 16,
                           .C = 64,
                           .V = 61,
                           .T = 128,
                           .norm_eps = 1e-5 };
        pl_shape_complete(&shape);
        const pl_gpt_layout layout = { .purpose = PL_PURPOSE_SAMPLING,
                                       .prefill = 1,
                                       .device = on_device_info(1),
                                       .levels = levels };
        pl_gpt gpt;
        assert_int_equal(pl_gpt_make(&gpt, &shape, &layout, &heap, &err),
                         PL_OK);
        for (size_t i = 0; i < gpt.graph.n_buffers; i++)
            if (gpt.graph.buffers[i].class == PL_CLASS_CACHE)
                bytes[shared] += gpt.graph.buffers[i].bytes;
        pl_heap_close(&heap);
    }
    assert_int_equal(bytes[0], 2 * 2 * 128 * 8 * 16 * sizeof(float));
    assert_int_equal(bytes[1], bytes[0] / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grouped_queries_shrink_the_cache),
        cmocka_unit_test(evaluation_sampling_and_saving_add_no_byte),
        cmocka_unit_test(placement_is_within_two_per_cent_of_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
