/* fit.c: the search for the fastest layout that fits the budget.
 *
 * If the smallest layout doesn't fit, none does. If it does:
 *
 *   for each micro-batch that divides the batch        (search_micro)
 *     for each of up to three sizes of chunks
 *       bisection over the levels of the layers        (search_levels)
 *         write the step lists, place them, add up
 *         the cost of their steps                      (price)
 *
 *   q     levels of the layers (here 4)      Candidate q: q / L is the level of
 *   0     0 0 0 0    most bytes, fastest     all layers, and the first q % L of
 *   1     1 0 0 0        |                   them are one level higher. Each
 *   2     1 1 0 0        |                   candidate recomputes more and
 *   ...                  v                   needs fewer bytes than the one
 *   12    3 3 3 3    fewest bytes, slowest   before, so the first that fits is
 *                                            found by bisection.
 *
 * A level says how much of a layer is computed again (docs/memory.md). In a
 * small model, where the fixed cost of the steps is 5 % of an update or
 * more, a higher level may be faster: there the later candidates in which all
 * layers have one level are tried too. Of layouts that are equally fast, within
 * 0.5 %, the smallest is taken. With fit = 'exact' only the config's own layout
 * is priced; with memory = 'auto' advise/runplan.c may search once more, below
 * what other programs need. */
#include "model/fit.h"
#include "base/check.h"

#include <math.h>
#include <string.h>

/* The sizes of chunks: rows of logits, rows of the MLP, and columns of weights
 * that are packed at once. There are three choices, from large to small; the
 * smallest has at most an eighth of a sequence's rows. */
typedef struct chunk_rows {
    size_t logits, mlp, packed;
} chunk_rows;

enum { CHUNKS = 3 };

static size_t at_most(size_t rows, size_t T)
{
    const size_t least = 8, part = T / 8 > least ? T / 8 : least;
    return rows < part ? rows : part;
}

static chunk_rows chunk_of(int chunk, size_t T)
{
    switch (chunk) {
    case 0:
        return (chunk_rows){ SIZE_MAX, SIZE_MAX, SIZE_MAX };
    case 1:
        return (chunk_rows){ 256, 512, 256 };
    default:
        return (chunk_rows){ at_most(64, T), at_most(128, T), 0 };
    }
}

typedef struct search {
    const pl_shape *shape;
    const pl_gpt_layout *base;
    const pl_fit_wish *wish;
    const pl_rates *rates;
    pl_fit *fit;
    uint8_t *levels; /* of the layout being tried */
    pl_heap *work;   /* for its step lists */
    pl_error *err;
} search;

void pl_fit_longest(pl_gpt_layout layouts[2], const pl_shape *shape,
                    const pl_gpt_layout *base)
{
    for (int i = 0; i < 2; i++) {
        layouts[i] = *base;
        layouts[i].micro = i ? 1 : base->batch;
        chunk_rows rows = chunk_of(CHUNKS - 2 + i, shape->T);
        layouts[i].chunk_rows = rows.logits;
        layouts[i].mlp_rows = rows.mlp;
    }
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void set_levels(const search *s, size_t q)
{
    size_t L = s->shape->L;
    if (s->wish->keep_levels) {
        memcpy(s->levels, s->base->levels, L);
        return;
    }
    for (size_t l = 0; l < L; l++)
        s->levels[l] = (uint8_t)(q / L + (l < q % L));
}

static size_t candidates(const search *s)
{
    size_t most_level = s->wish->no_products ? 1 : PL_MAX_LEVEL;
    return s->wish->keep_levels ? 1 : most_level * s->shape->L + 1;
}

/* Builds one layout: its bytes, and by the cost model its time. */
static pl_status price(const search *s, size_t micro, int chunk, size_t q,
                       pl_fit_option *option)
{
    pl_gpt gpt;
    pl_gpt_layout layout = *s->base;
    layout.micro = micro;
    chunk_rows rows = chunk_of(chunk, s->shape->T);
    layout.chunk_rows = smaller(layout.chunk_rows, rows.logits);
    layout.mlp_rows = smaller(layout.mlp_rows, rows.mlp);
    layout.pack_columns = smaller(layout.pack_columns, rows.packed);
    layout.levels = s->levels;
    set_levels(s, q);
    pl_heap_empty(s->work);
    pl_status status = pl_gpt_make_training(&gpt, s->shape, &layout, s->work,
                                            s->err);
    if (!status) {
        option->layout = layout;
        option->arena_bytes = gpt.placement.arena_bytes;
        option->update_seconds = pl_cost_update(&gpt, s->rates);
        option->wait_share = (double)(layout.batches * (layout.batch / micro) *
                                      gpt.graph.programs[PL_TRAIN].loop_steps) *
                             s->rates->barrier_seconds / option->update_seconds;
    }
    return status;
}

/* Copies an option whose levels are the ones just tried. */
static void keep(const search *s, pl_fit_option *slot,
                 const pl_fit_option *option)
{
    uint8_t *levels = (uint8_t *)(uintptr_t)slot->layout.levels;
    *slot = *option;
    memcpy(levels, s->levels, s->shape->L);
    slot->layout.levels = levels;
}

/* The fastest candidate that fits, for one micro-batch and size of chunks. */
static pl_status search_levels(const search *s, size_t micro, int chunk,
                               pl_fit_option *best, int *found)
{
    size_t low = 0, high = candidates(s) - 1, budget = s->wish->budget_bytes;
    *found = 0;
    pl_status status = price(s, micro, chunk, high, best);
    if (status || best->arena_bytes > budget)
        return status;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        status = price(s, micro, chunk, middle, best);
        if (status)
            return status;
        if (best->arena_bytes <= budget)
            high = middle;
        else
            low = middle + 1;
    }
    *found = 1;
    size_t fastest = low, L = s->shape->L;
    status = price(s, micro, chunk, low, best);
    if (status || best->wait_share < 0.05)
        return status;
    double seconds = best->update_seconds;
    for (size_t q = (low / L + 1) * L; q < candidates(s) && !status; q += L) {
        status = price(s, micro, chunk, q, best);
        if (!status && best->update_seconds < seconds) {
            seconds = best->update_seconds;
            fastest = q;
        }
    }
    return status ? status : price(s, micro, chunk, fastest, best);
}

static void consider(const search *s, const pl_fit_option *option)
{
    pl_fit *fit = s->fit;
    /* of layouts that are equally fast, within the cost model's noise, the one
     * with fewer bytes is better */
    const double same = 1.005, time = option->update_seconds;
    const double fastest = !fit->fits || time < fit->fastest_seconds
                               ? time
                               : fit->fastest_seconds;
    const int better = !fit->fits ||
                       fit->chosen.update_seconds > fastest * same ||
                       (time <= fastest * same &&
                        option->arena_bytes < fit->chosen.arena_bytes);
    fit->fastest_seconds = fastest;
    if (better) {
        if (fit->fits && fit->chosen.layout.micro != option->layout.micro) {
            uint8_t *levels =
                (uint8_t *)(uintptr_t)fit->runner_up.layout.levels;
            memcpy(levels, fit->chosen.layout.levels, s->shape->L);
            fit->runner_up = fit->chosen;
            fit->runner_up.layout.levels = levels;
            fit->has_runner_up = 1;
        }
        keep(s, &fit->chosen, option);
        fit->fits = 1;
    } else if (option->layout.micro != fit->chosen.layout.micro &&
               (!fit->has_runner_up || time < fit->runner_up.update_seconds)) {
        keep(s, &fit->runner_up, option);
        fit->has_runner_up = 1;
    }
}

static pl_status search_micro(const search *s, size_t micro)
{
    /* small chunks of many rows would make a long step list and save little */
    int most = micro == 1 ? CHUNKS : CHUNKS - 1;
    for (int chunk = 0; chunk < most; chunk++) {
        pl_fit_option option;
        int found;
        pl_status status = search_levels(s, micro, chunk, &option, &found);
        if (status)
            return status;
        if (!found)
            continue;
        consider(s, &option);
        if (s->levels[0] == 0 || s->wish->keep_levels)
            break; /* smaller chunks could only be slower */
    }
    return PL_OK;
}

static pl_status take_levels(pl_fit_option *option, size_t L, pl_heap *heap,
                             pl_error *err)
{
    uint8_t *levels;
    pl_status status = pl_heap_take(heap, &levels, L, 1, err);
    if (!status)
        option->layout.levels = levels;
    return status;
}

/* fit = 'exact': the config's own layout, whether it fits or not. */
static pl_status take_literally(search *s)
{
    pl_fit_option option;
    pl_fit_wish literal = *s->wish;
    literal.keep_levels = 1;
    s->wish = &literal;
    pl_status status = price(s, s->base->micro, 0, 0, &option);
    if (status)
        return status;
    keep(s, &s->fit->chosen, &option);
    keep(s, &s->fit->smallest, &option);
    s->fit->fits = option.arena_bytes <= literal.budget_bytes;
    return PL_OK;
}

static pl_status find_smallest(search *s, pl_fit_option *smallest)
{
    /* One sequence at a time; or, if the batch has only a few, all of them:
     * then no input gradients wait for the rest of the batch (the buffer
     * "carry"), which saves more than the activations of the other sequences
     * take. */
    enum { FEW = 4 };
    const size_t batch = s->base->batch, micros[] = { 1, batch };
    const int most = batch > 1 && batch <= FEW ? 2 : 1;
    smallest->arena_bytes = SIZE_MAX;
    for (int i = 0; i < most; i++) {
        pl_fit_option option;
        pl_status status = price(s, micros[i],
                                 micros[i] == 1 ? CHUNKS - 1 : CHUNKS - 2,
                                 candidates(s) - 1, &option);
        if (status)
            return status;
        if (option.arena_bytes < smallest->arena_bytes)
            keep(s, smallest, &option);
    }
    return PL_OK;
}

static pl_status search_all(search *s)
{
    const size_t batch = s->base->batch;
    pl_status status = find_smallest(s, &s->fit->smallest);
    if (!status && s->fit->smallest.arena_bytes > s->wish->budget_bytes)
        keep(s, &s->fit->chosen, &s->fit->smallest); /* and none fits */
    else
        for (size_t micro = 1; micro <= batch && !status; micro++)
            if (batch % micro == 0)
                status = search_micro(s, micro);
    return status;
}

pl_status pl_fit_search(pl_fit *fit, const pl_shape *shape,
                        const pl_gpt_layout *base, const pl_fit_wish *wish,
                        const pl_rates *rates, pl_heap *heap, pl_error *err)
{
    pl_heap work = pl_heap_make(heap->limit_bytes);
    search s = { .shape = shape,
                 .base = base,
                 .wish = wish,
                 .rates = rates,
                 .fit = fit,
                 .work = &work,
                 .err = err };
    *fit = (pl_fit){ 0 };
    pl_status status = pl_heap_take(heap, &s.levels, shape->L, 1, err);
    if (!status)
        status = take_levels(&fit->chosen, shape->L, heap, err);
    if (!status)
        status = take_levels(&fit->runner_up, shape->L, heap, err);
    if (!status)
        status = take_levels(&fit->smallest, shape->L, heap, err);
    if (!status)
        status = wish->literal ? take_literally(&s) : search_all(&s);
    pl_heap_close(&work);
    return status;
}

pl_status pl_fit_smallest(pl_fit_option *smallest, const pl_shape *shape,
                          const pl_gpt_layout *base, const pl_fit_wish *wish,
                          const pl_rates *rates, pl_heap *heap, pl_error *err)
{
    pl_heap work = pl_heap_make(heap->limit_bytes);
    search s = { .shape = shape,
                 .base = base,
                 .wish = wish,
                 .rates = rates,
                 .work = &work,
                 .err = err };
    pl_status status = pl_heap_take(heap, &s.levels, shape->L, 1, err);
    if (!status)
        status = take_levels(smallest, shape->L, heap, err);
    if (!status)
        status = find_smallest(&s, smallest);
    pl_heap_close(&work);
    return status;
}
