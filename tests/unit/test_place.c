#include "base/rng.h"
#include "plan/place.h"
#include "support/asserts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static pl_heap heap;
static pl_graph graph;
static pl_placement placement;
static pl_place_rules rules;
static pl_error err;

static int set_up(void **state)
{
    (void)state;
    heap = pl_heap_make(4 << 20);
    memset(&err, 0, sizeof err);
    memset(&placement, 0xFF, sizeof placement);
    rules = PL_PLACE_IN_HOST;
    pl_graph_begin(&graph, &heap);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_arena_fail_at(0);
    pl_heap_close(&heap);
    return 0;
}

/* A buffer whose life is known: what pl_graph_finish would have derived. */
static pl_buffer_id add(pl_class class, int program, size_t bytes, size_t first,
                        size_t last)
{
    pl_buffer_id id = pl_graph_buffer(&graph, "b", class, PL_U8, bytes, 1);
    assert_int_equal(graph.status, PL_OK);
    graph.buffers[id].program = program;
    graph.buffers[id].first = first;
    graph.buffers[id].last = last;
    return id;
}

static pl_buffer_id transient(size_t bytes, size_t first, size_t last)
{
    return add(PL_CLASS_TRANSIENT, PL_TRAIN, bytes, first, last);
}

static void place(void)
{
    if (pl_place(&placement, &graph, &rules, &err))
        fail_msg("%s", err.text);
}

/* ---- what must hold for every graph, found the slow way ---- */

enum { STEPS = 24 };

static int throughout(const pl_buffer *b)
{
    return pl_class_lives_throughout(b->class);
}

static int live_together(const pl_buffer *a, const pl_buffer *b)
{
    if (throughout(a) || throughout(b))
        return 1;
    if (a->program != b->program)
        return 0;
    for (size_t at = 0; at < STEPS; at++)
        if (a->first <= at && at <= a->last && b->first <= at && at <= b->last)
            return 1;
    return 0;
}

static size_t rounded(size_t bytes)
{
    return (bytes + rules.align - 1) / rules.align * rules.align;
}

static size_t end_of(size_t i)
{
    return placement.offsets[i] + rounded(graph.buffers[i].bytes);
}

static int in_host(size_t i)
{
    return rules.spaces == PL_SPACES_APART &&
           graph.buffers[i].space == PL_SPACE_HOST;
}

static void assert_no_overlap(void)
{
    for (size_t i = 0; i < graph.n_buffers; i++) {
        assert_int_equal(placement.offsets[i] % rules.align, 0);
        for (size_t j = 0; j < i; j++)
            if (in_host(i) == in_host(j) &&
                live_together(&graph.buffers[i], &graph.buffers[j]) &&
                placement.offsets[i] < end_of(j) &&
                placement.offsets[j] < end_of(i))
                fail_msg("buffers %zu and %zu live together and overlap", i, j);
    }
}

/* Live bytes at a step, in whole lines, and by class as they are. */
static size_t live_at(int program, size_t at, size_t classes[PL_CLASS_COUNT])
{
    size_t live = 0;
    memset(classes, 0, PL_CLASS_COUNT * sizeof *classes);
    for (size_t i = 0; i < graph.n_buffers; i++) {
        const pl_buffer *b = &graph.buffers[i];
        if (throughout(b) ||
            (b->program == program && b->first <= at && at <= b->last)) {
            live += rounded(b->bytes);
            classes[b->class] += b->bytes;
        }
    }
    return live;
}

static void assert_bound_and_classes(void)
{
    size_t bound = 0;
    for (int program = 0; program < PL_PROGRAM_COUNT; program++) {
        size_t classes[PL_CLASS_COUNT], most = 0;
        int found = 0;
        for (size_t at = 0; at < STEPS; at++) {
            size_t live = live_at(program, at, classes);
            most = live > most ? live : most;
        }
        for (size_t at = 0; at < STEPS; at++)
            found |= live_at(program, at, classes) == most &&
                     memcmp(classes, placement.class_bytes[program],
                            sizeof classes) == 0;
        assert_true(found);
        assert_true(most <=
                    pl_placement_peak(&placement, (pl_program_id)program));
        bound = most > bound ? most : bound;
    }
    assert_int_equal(placement.lower_bound_bytes, bound);
    assert_true(placement.lower_bound_bytes <= placement.arena_bytes);
}

static void assert_exact(void)
{
    size_t bottom = 0, top = 0;
    for (size_t i = 0; i < graph.n_buffers; i++) {
        if (throughout(&graph.buffers[i]) && end_of(i) > bottom)
            bottom = end_of(i);
        top = end_of(i) > top ? end_of(i) : top;
    }
    assert_int_equal(placement.throughout_bytes, bottom);
    assert_int_equal(placement.arena_bytes, top);
    for (int program = 0; program < PL_PROGRAM_COUNT; program++) {
        size_t end = bottom;
        for (size_t i = 0; i < graph.n_buffers; i++) {
            const pl_buffer *b = &graph.buffers[i];
            if (throughout(b) || b->program != program)
                continue;
            assert_true(placement.offsets[i] >= bottom);
            end = end_of(i) > end ? end_of(i) : end;
        }
        assert_int_equal(placement.program_bytes[program], end - bottom);
        assert_int_equal(pl_placement_peak(&placement, (pl_program_id)program),
                         end);
    }
}

static size_t draw(uint32_t graph_number, uint32_t *n, size_t below)
{
    uint32_t words[4];
    pl_rng_words(PL_RNG_EVAL, 1, graph_number, (*n)++, 0, 0, words);
    return (size_t)pl_rng_below(words, below);
}

static void random_graph(uint32_t number)
{
    uint32_t n = 0;
    size_t buffers = 1 + draw(number, &n, 40);
    size_t steps = 1 + draw(number, &n, STEPS);
    size_t largest = number % 3 ? 2000 : 130; /* many of one size, or few */
    for (size_t i = 0; i < buffers; i++) {
        size_t first = draw(number, &n, steps);
        size_t last = first + draw(number, &n, steps - first);
        int program = (int)draw(number, &n, number % 5 ? PL_PROGRAM_COUNT : 1);
        pl_class class = (pl_class)draw(number, &n, PL_CLASS_COUNT);
        if (pl_class_lives_throughout(class) && draw(number, &n, 3))
            class = PL_CLASS_TRANSIENT;
        add(class, pl_class_lives_throughout(class) ? -1 : program,
            1 + draw(number, &n, largest), first, last);
    }
}

static void buffers_that_live_together_never_overlap(void **state)
{
    for (uint32_t number = 0; number < 1000; number++) {
        set_up(state);
        random_graph(number);
        place();
        assert_no_overlap();
        assert_exact();
        tear_down(state);
    }
    set_up(state);
}

static void the_bound_is_the_most_that_is_ever_live(void **state)
{
    for (uint32_t number = 0; number < 1000; number++) {
        set_up(state);
        random_graph(number);
        place();
        assert_bound_and_classes();
        tear_down(state);
    }
    set_up(state);
}

/* ---- other memory than the processor's ---- */

/* The end of the highest buffer in one of the arenas. */
static size_t top_of(int host)
{
    size_t top = 0;
    for (size_t i = 0; i < graph.n_buffers; i++)
        if (in_host(i) == host && end_of(i) > top)
            top = end_of(i);
    return top;
}

static void no_buffer_lies_in_two_banks(void **state)
{
    const size_t bank = 2560; /* the largest buffer is 2,000 bytes */
    int crossed = 0;
    for (uint32_t number = 0; number < 1000; number++) {
        set_up(state);
        random_graph(number);
        rules.align = 256;
        rules.bank_bytes = bank;
        place();
        assert_no_overlap();
        assert_int_equal(placement.arena_bytes, top_of(0));
        assert_true(placement.lower_bound_bytes <= placement.arena_bytes);
        for (size_t i = 0; i < graph.n_buffers; i++)
            assert_int_equal(placement.offsets[i] / bank,
                             (end_of(i) - 1) / bank);
        rules.bank_bytes = SIZE_MAX; /* as it would lie without them */
        place();
        for (size_t i = 0; i < graph.n_buffers; i++)
            crossed += placement.offsets[i] / bank != (end_of(i) - 1) / bank;
        tear_down(state);
    }
    assert_true(crossed > 1000);
    set_up(state);
}

static void what_is_larger_than_a_bank_is_refused(void **state)
{
    (void)state;
    rules.bank_bytes = 1024;
    transient(1024, 0, 1);
    place();
    pl_buffer_id large = transient(1025, 0, 1);
    graph.buffers[large].name = "h.7.fc";
    assert_int_equal(pl_place(&placement, &graph, &rules, &err), PL_E_MEMORY);
    assert_contains(err.text, "tensor h.7.fc has 1,025 bytes");
    assert_contains(err.text, "at most 1,024 bytes at once");
    graph.buffers[large].space = PL_SPACE_HOST; /* which has no banks */
    rules.spaces = PL_SPACES_APART;
    place();
    assert_int_equal(placement.host_bytes, 1088);
}

static void the_hosts_buffers_have_an_arena_of_their_own(void **state)
{
    for (uint32_t number = 0; number < 1000; number++) {
        uint32_t n = 1000;
        set_up(state);
        random_graph(number);
        place();
        const size_t shared = placement.arena_bytes;
        for (size_t i = 0; i < graph.n_buffers; i++)
            if (draw(number, &n, 3) == 0)
                graph.buffers[i].space = PL_SPACE_HOST;
        place(); /* one memory: whose it is makes no difference */
        assert_int_equal(placement.arena_bytes, shared);
        assert_int_equal(placement.host_bytes, 0);
        assert_no_overlap();
        rules.spaces = PL_SPACES_APART;
        place();
        assert_no_overlap();
        assert_int_equal(placement.arena_bytes, top_of(0));
        assert_int_equal(placement.host_bytes, top_of(1));
        tear_down(state);
    }
    set_up(state);
}

static void one_graph_has_one_placement(void **state)
{
    (void)state;
    pl_placement again;
    random_graph(7);
    place();
    assert_int_equal(pl_place(&again, &graph, &rules, &err), PL_OK);
    assert_memory_equal(again.offsets, placement.offsets,
                        graph.n_buffers * sizeof(size_t));
    assert_int_equal(again.arena_bytes, placement.arena_bytes);
}

/* ---- examples that can be drawn on paper ---- */

static void programs_lie_over_each_other(void **state)
{
    (void)state;
    pl_buffer_id w = add(PL_CLASS_WEIGHT, -1, 640, 0, 0);
    pl_buffer_id train = add(PL_CLASS_SAVED, PL_TRAIN, 3200, 0, 3);
    pl_buffer_id eval = add(PL_CLASS_TRANSIENT, PL_EVAL, 1600, 0, 3);
    pl_buffer_id m = add(PL_CLASS_MOMENT, -1, 1, 0, 0);
    place();
    assert_int_equal(placement.offsets[w], 0);
    assert_int_equal(placement.offsets[m], 640);
    assert_int_equal(placement.offsets[train], 704);
    assert_int_equal(placement.offsets[eval], 704);
    assert_int_equal(placement.throughout_bytes, 704);
    assert_int_equal(placement.program_bytes[PL_TRAIN], 3200);
    assert_int_equal(placement.program_bytes[PL_EVAL], 1600);
    assert_int_equal(placement.program_bytes[PL_SAVE], 0);
    assert_int_equal(placement.arena_bytes, 704 + 3200);
    assert_int_equal(placement.lower_bound_bytes, 704 + 3200);
    assert_int_equal(pl_placement_peak(&placement, PL_EVAL), 704 + 1600);
    assert_int_equal(pl_placement_peak(&placement, PL_SAVE), 704);
    assert_int_equal(placement.class_bytes[PL_TRAIN][PL_CLASS_SAVED], 3200);
    assert_int_equal(placement.class_bytes[PL_EVAL][PL_CLASS_SAVED], 0);
    assert_int_equal(placement.class_bytes[PL_EVAL][PL_CLASS_WEIGHT], 640);
    assert_int_equal(placement.class_bytes[PL_SAVE][PL_CLASS_MOMENT], 1);
}

static void a_chain_takes_two_of_its_buffers(void **state)
{
    (void)state;
    for (size_t i = 0; i < 10; i++)
        transient(1000, i, i + 1);
    place();
    assert_int_equal(placement.arena_bytes, 2 * 1024);
    assert_int_equal(placement.lower_bound_bytes, 2 * 1024);
}

static void growing_and_shrinking_chains_reach_the_bound(void **state)
{
    for (int down = 0; down < 2; down++) {
        set_up(state);
        for (size_t i = 0; i < 20; i++)
            transient(64 * (down ? 20 - i : 1 + i), i, i + 1);
        place();
        assert_int_equal(placement.arena_bytes, 64 * (20 + 19));
        assert_int_equal(placement.lower_bound_bytes, 64 * (20 + 19));
        assert_no_overlap();
        tear_down(state);
    }
    set_up(state);
}

/* Forward saves, backward consumes from the end: lives within lives. */
static void saved_activations_reach_the_bound(void **state)
{
    (void)state;
    enum { L = 6 };
    for (size_t l = 0; l < L; l++) {
        add(PL_CLASS_SAVED, PL_TRAIN, 640, l, 2 * L - l);
        transient(1280, l, l); /* a block's own, at each level alike */
    }
    place();
    assert_int_equal(placement.lower_bound_bytes, L * 640 + 1280);
    assert_int_equal(placement.arena_bytes, placement.lower_bound_bytes);
}

/* Large first: the small one goes into the gap beside the large one. */
/* Each of these is placed within the bound by one order of buffers alone: by
 * size, by bytes x lifetime, by lifetime, and by the last step. */
static void the_order_that_meets_the_bound_is_found(void **state)
{
    enum { SIZE = 1024 };
    static const struct {
        size_t size, first, last;
    } graphs[][4] = {
        { { 2, 0, 0 }, { 2, 0, 0 }, { 2, 0, 1 }, { 3, 1, 2 } },
        { { 2, 0, 0 }, { 1, 0, 1 }, { 1, 1, 3 }, { 2, 2, 2 } },
        { { 2, 0, 1 }, { 2, 0, 2 }, { 2, 1, 1 }, { 3, 2, 3 } },
        { { 2, 0, 0 }, { 1, 0, 1 }, { 1, 1, 2 }, { 2, 2, 2 } },
    };
    static const size_t bounds[] = { 6, 3, 6, 3 };
    for (size_t g = 0; g < sizeof graphs / sizeof graphs[0]; g++) {
        tear_down(state);
        set_up(state);
        for (size_t i = 0; i < 4; i++)
            transient(graphs[g][i].size * SIZE, graphs[g][i].first,
                      graphs[g][i].last);
        place();
        assert_no_overlap();
        assert_int_equal(placement.lower_bound_bytes, bounds[g] * SIZE);
        assert_int_equal(placement.arena_bytes, bounds[g] * SIZE);
    }
}

static void a_gap_that_fits_is_filled(void **state)
{
    (void)state;
    pl_buffer_id early = transient(6400, 0, 1), late = transient(3200, 2, 3);
    pl_buffer_id always = transient(640, 0, 3), fits = transient(320, 2, 2);
    place();
    assert_int_equal(placement.offsets[early], 0);
    assert_int_equal(placement.offsets[late], 0);
    assert_int_equal(placement.offsets[always], 6400);
    assert_int_equal(placement.offsets[fits], 3200);
    assert_int_equal(placement.arena_bytes, 7040);
    assert_int_equal(placement.lower_bound_bytes, 7040);
}

static void lives_that_touch_at_a_step_meet(void **state)
{
    (void)state;
    pl_buffer_id a = transient(64, 0, 3), b = transient(64, 3, 5),
                 c = transient(64, 4, 6);
    place();
    assert_int_not_equal(placement.offsets[a], placement.offsets[b]);
    assert_int_not_equal(placement.offsets[b], placement.offsets[c]);
    assert_int_equal(placement.offsets[a], placement.offsets[c]);
}

static void the_lifetimes_of_a_finished_graph_are_used(void **state)
{
    (void)state;
    pl_buffer_id x[4];
    for (int i = 0; i < 4; i++)
        x[i] = pl_graph_buffer(&graph, "x", PL_CLASS_TRANSIENT, PL_F32, 100, 1);
    for (int i = 0; i < 4; i++) {
        pl_step *step = pl_graph_step(&graph, PL_EVAL, PL_OP_GELU);
        step->rows = 100;
        step->cols = 1;
        pl_step_arg(step, PL_ARG_GELU_Y, x[i]);
        pl_step_arg(step, PL_ARG_GELU_X, i ? x[i - 1] : x[0]);
    }
    assert_int_equal(pl_graph_finish(&graph, &err), PL_OK);
    place();
    assert_int_equal(placement.arena_bytes, 2 * 448);
    assert_int_equal(placement.offsets[x[0]], placement.offsets[x[2]]);
    assert_int_equal(placement.offsets[x[1]], placement.offsets[x[3]]);
    assert_no_overlap();
}

static void an_empty_graph_takes_nothing(void **state)
{
    (void)state;
    place();
    assert_int_equal(placement.arena_bytes, 0);
    assert_int_equal(placement.lower_bound_bytes, 0);
    assert_int_equal(pl_placement_peak(&placement, PL_TRAIN), 0);
}

/* ---- failures ---- */

static void a_plan_that_no_address_can_count_is_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        transient(SIZE_MAX / 8 - 64, 0, 1);
    place();
    assert_int_equal(placement.arena_bytes,
                     2 * pl_arena_round(SIZE_MAX / 8 - 64));
    pl_buffer_id last = transient(1 << 20, 0, 1);
    graph.buffers[last].name = "the last straw";
    assert_int_equal(pl_place(&placement, &graph, &rules, &err), PL_E_MEMORY);
    assert_contains(err.text, "the last straw");
    for (int i = 0; i < 20; i++) /* more than size_t itself can count */
        transient(SIZE_MAX / 8, 0, 1);
    assert_int_equal(pl_place(&placement, &graph, &rules, &err), PL_E_MEMORY);
}

static void a_plan_without_memory_for_its_tables_is_refused(void **state)
{
    (void)state;
    random_graph(3);
    for (long nth = 1; nth <= 4; nth++) {
        pl_arena_fail_at(nth);
        assert_int_equal(pl_place(&placement, &graph, &rules, &err),
                         PL_E_MEMORY);
    }
    pl_arena_fail_at(5);
    place();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(buffers_that_live_together_never_overlap),
        TEST(the_bound_is_the_most_that_is_ever_live),
        TEST(no_buffer_lies_in_two_banks),
        TEST(what_is_larger_than_a_bank_is_refused),
        TEST(the_hosts_buffers_have_an_arena_of_their_own),
        TEST(one_graph_has_one_placement),
        TEST(programs_lie_over_each_other),
        TEST(a_chain_takes_two_of_its_buffers),
        TEST(growing_and_shrinking_chains_reach_the_bound),
        TEST(saved_activations_reach_the_bound),
        TEST(the_order_that_meets_the_bound_is_found),
        TEST(a_gap_that_fits_is_filled),
        TEST(lives_that_touch_at_a_step_meet),
        TEST(the_lifetimes_of_a_finished_graph_are_used),
        TEST(an_empty_graph_takes_nothing),
        TEST(a_plan_that_no_address_can_count_is_refused),
        TEST(a_plan_without_memory_for_its_tables_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
