/* place.c: where every buffer lies in the arena.
 *
 *   offset ^                                 The programs lie over each other:
 *          |   +----+     +-------+          only one of them runs at a time.
 *          |   | fc |     | dqkv  |
 *          |   +----+-----+---+---+          Within a program two buffers may
 *          |   |      qkv     |  +----+      share bytes if no step needs both:
 *          |   +--------------+  | dx |      their rectangles (lifetime x
 *          +---+--------------+--+----+---   bytes) must not overlap.
 *          |  weights, gradients, moments    These live throughout the run.
 *          +-----------------------------> steps of one program
 *
 * The buffers of a program are taken in order, the largest first, and each is
 * put at the lowest offset at which it overlaps none that was placed before and
 * is live at the same time (first fit). The result is compared with a lower
 * bound: the most bytes that are live at one step. Where first fit by size
 * misses the bound, three other orders are tried (by bytes x lifetime, by
 * lifetime, by the last step), and the best one is taken. */
#include "plan/place.h"
#include "base/check.h"
#include "base/units.h"

#include <stdint.h>
#include <string.h>

/* The order in which buffers are placed. By size is the best on the whole;
 * where it misses the bound another one often meets it. */
typedef enum rule { BY_SIZE, BY_AREA, BY_LIFETIME, BY_END, RULES } rule;

typedef struct placer {
    const pl_graph *graph;
    pl_placement *result;
    pl_space space; /* that is being placed */
    rule rule;
    size_t *order;    /* buffers of one program, in the order of the rule */
    size_t *placed;   /* those that have an offset, sorted by it */
    int64_t *changes; /* of the live bytes, at each step */
} placer;

/* Buffers with a higher priority are placed earlier. */
static double priority(const pl_buffer *buffer, rule r)
{
    double bytes = (double)buffer->bytes;
    double life = (double)(buffer->last - buffer->first + 1);
    switch (r) {
    case BY_AREA:
        return bytes * life;
    case BY_LIFETIME:
        return life;
    case BY_END:
        return (double)buffer->last;
    default:
        return bytes;
    }
}

static int earlier(const placer *p, size_t a, size_t b)
{
    const pl_buffer *x = &p->graph->buffers[a], *y = &p->graph->buffers[b];
    double first = priority(x, p->rule), second = priority(y, p->rule);
    if (first != second)
        return first > second;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes;
    return a < b; /* one order for one graph, whatever the sort */
}

/* Heapsort: it works in place, has no quadratic worst case, and never
 * allocates, as a library's sort may. */
static void sift(const placer *p, size_t root, size_t n)
{
    size_t *order = p->order;
    for (size_t child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && earlier(p, order[child], order[child + 1]))
            child++;
        if (!earlier(p, order[root], order[child]))
            return;
        size_t swap = order[root];
        order[root] = order[child];
        order[child] = swap;
    }
}

static void sort_order(const placer *p, size_t n)
{
    for (size_t i = n / 2; i-- > 0;)
        sift(p, i, n);
    for (size_t end = n; end-- > 1;) {
        size_t swap = p->order[0];
        p->order[0] = p->order[end];
        p->order[end] = swap;
        sift(p, 0, end);
    }
}

/* Whether the lifetimes of two buffers overlap. */
static int overlap(const pl_buffer *a, const pl_buffer *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* What a buffer takes: whole units of alignment, so that no two share one. */
static size_t need_of(const placer *p, size_t id)
{
    const size_t align = p->result->rules.align;
    return (p->graph->buffers[id].bytes + align - 1) / align * align;
}

/* The lowest offset from `at` on where `need` bytes lie in one bank. The host's
 * memory has only one. */
static size_t within_bank(const placer *p, size_t at, size_t need)
{
    const size_t bank = p->result->rules.bank_bytes;
    if (p->space == PL_SPACE_HOST || need <= bank - at % bank)
        return at;
    return (at / bank + 1) * bank;
}

/* Whether a buffer lies in the arena that is being placed. */
static int is_here(const placer *p, const pl_buffer *buffer)
{
    return pl_placement_in_host(p->result, buffer) ==
           (p->space == PL_SPACE_HOST);
}

/* Gives `id` the lowest offset at which it overlaps no placed buffer that is
 * live at the same time: walks these upwards to the first gap that is large
 * enough. Then inserts it among them, so that they stay sorted. */
static void place_one(placer *p, size_t n_placed, size_t id, size_t base)
{
    const pl_graph *graph = p->graph;
    size_t *offsets = p->result->offsets;
    size_t need = need_of(p, id), at = within_bank(p, base, need);

    for (size_t i = 0; i < n_placed; i++) {
        size_t other = p->placed[i];
        if (!overlap(&graph->buffers[id], &graph->buffers[other]))
            continue;
        if (offsets[other] >= at + need)
            break;
        size_t end = offsets[other] + need_of(p, other);
        if (end > at)
            at = within_bank(p, end, need);
    }
    offsets[id] = at;
    size_t slot = n_placed;
    for (; slot > 0 && offsets[p->placed[slot - 1]] > at; slot--)
        p->placed[slot] = p->placed[slot - 1];
    p->placed[slot] = id;
}

/* Places the n buffers of p->order by one rule; returns what they take. */
static size_t place_by(placer *p, rule r, size_t n, size_t base)
{
    size_t end = 0;

    p->rule = r;
    sort_order(p, n);
    for (size_t i = 0; i < n; i++) {
        size_t id = p->order[i];
        place_one(p, i, id, base);
        size_t top = p->result->offsets[id] + need_of(p, id) - base;
        if (top > end)
            end = top;
    }
    return end;
}

static size_t gather(placer *p, int program)
{
    size_t n = 0;
    for (size_t i = 0; i < p->graph->n_buffers; i++)
        if (!pl_class_lives_throughout(p->graph->buffers[i].class) &&
            p->graph->buffers[i].program == program &&
            is_here(p, &p->graph->buffers[i]))
            p->order[n++] = i;
    return n;
}

/* Tries the rules until one meets the bound, and places by the best of them. */
static size_t place_program(placer *p, size_t n, size_t bound, size_t base)
{
    size_t best = SIZE_MAX;
    rule chosen = BY_SIZE;
    for (int r = 0; r < RULES && best > bound; r++) {
        size_t bytes = place_by(p, (rule)r, n, base);
        if (bytes < best) {
            best = bytes;
            chosen = (rule)r;
        }
    }
    return p->rule == chosen ? best : place_by(p, chosen, n, base);
}

/* The most bytes that are live at one step of `program`: a running sum of what
 * begins and ends at each step. Also counts them by class, at that step. */
static size_t most_live(placer *p, int program, size_t n)
{
    const pl_graph *graph = p->graph;
    size_t steps = 0, most = 0, most_at = 0, live = 0;

    for (size_t i = 0; i < n; i++)
        if (graph->buffers[p->order[i]].last >= steps)
            steps = graph->buffers[p->order[i]].last + 1;
    memset(p->changes, 0, (steps + 1) * sizeof *p->changes);
    for (size_t i = 0; i < n; i++) {
        const pl_buffer *buffer = &graph->buffers[p->order[i]];
        int64_t bytes = (int64_t)need_of(p, p->order[i]);
        p->changes[buffer->first] += bytes;
        p->changes[buffer->last + 1] -= bytes;
    }
    for (size_t at = 0; at < steps; at++) {
        live = (size_t)((int64_t)live + p->changes[at]);
        if (live > most) {
            most = live;
            most_at = at;
        }
    }
    if (p->space != PL_SPACE_DEVICE)
        return most;
    p->result->fullest[program] = most_at;
    for (size_t i = 0; i < n; i++) {
        const pl_buffer *buffer = &graph->buffers[p->order[i]];
        if (pl_placement_counts(p->result, buffer, (pl_program_id)program))
            p->result->class_bytes[program][buffer->class] += buffer->bytes;
    }
    return most;
}

/* Every later sum is at most twice this one (a bank may be left half empty), so
 * this is the only overflow check. */
static pl_status check_sizes(const placer *p, pl_error *err)
{
    const pl_graph *graph = p->graph;
    const pl_place_rules *rules = &p->result->rules;
    size_t total = 0;
    for (size_t i = 0; i < graph->n_buffers; i++) {
        const pl_buffer *buffer = &graph->buffers[i];
        if (pl_size_add(total, need_of(p, i), &total) || total > SIZE_MAX / 4)
            return pl_fail(err, PL_E_MEMORY,
                           "the plan is larger than any address space (at "
                           "tensor %s)",
                           buffer->name);
        if (!pl_placement_in_host(p->result, buffer) &&
            need_of(p, i) > rules->bank_bytes)
            return pl_fail(err, PL_E_MEMORY,
                           "tensor %s has %s, and this device gives at most %s "
                           "at once: choose a smaller model, "
                           "batch_size or block_size",
                           buffer->name, pl_units_exact(buffer->bytes).text,
                           pl_units_exact(rules->bank_bytes).text);
    }
    return PL_OK;
}

static size_t place_throughout(placer *p)
{
    size_t at = 0;
    for (size_t i = 0; i < p->graph->n_buffers; i++) {
        const pl_buffer *buffer = &p->graph->buffers[i];
        if (!pl_class_lives_throughout(buffer->class) || !is_here(p, buffer))
            continue;
        at = within_bank(p, at, need_of(p, i));
        p->result->offsets[i] = at;
        at += need_of(p, i);
        if (p->space != PL_SPACE_DEVICE)
            continue;
        for (int program = 0; program < PL_PROGRAM_COUNT; program++)
            p->result->class_bytes[program][buffer->class] += buffer->bytes;
    }
    return at;
}

static size_t most_steps(const pl_graph *graph)
{
    size_t most = 0;
    for (size_t i = 0; i < graph->n_buffers; i++)
        if (!pl_class_lives_throughout(graph->buffers[i].class) &&
            graph->buffers[i].last >= most)
            most = graph->buffers[i].last + 1;
    return most;
}

static pl_status take_tables(placer *p, pl_error *err)
{
    const pl_graph *graph = p->graph;
    pl_status status = pl_heap_take(graph->heap, &p->result->offsets,
                                    graph->n_buffers, sizeof(size_t), err);
    if (!status)
        status = pl_heap_take(graph->heap, &p->order, graph->n_buffers,
                              sizeof(size_t), err);
    if (!status)
        status = pl_heap_take(graph->heap, &p->placed, graph->n_buffers,
                              sizeof(size_t), err);
    if (!status)
        status = pl_heap_take(graph->heap, &p->changes, most_steps(graph) + 1,
                              sizeof(int64_t), err);
    return status;
}

static void place_device(placer *p)
{
    pl_placement *placement = p->result;
    size_t most = 0, bound = 0;
    p->space = PL_SPACE_DEVICE;
    placement->throughout_bytes = place_throughout(p);
    for (int program = 0; program < PL_PROGRAM_COUNT; program++) {
        size_t n = gather(p, program);
        size_t live = most_live(p, program, n);
        size_t bytes = place_program(p, n, live, placement->throughout_bytes);
        placement->program_bytes[program] = bytes;
        if (bytes > most)
            most = bytes;
        if (live > bound)
            bound = live;
    }
    placement->arena_bytes = placement->throughout_bytes + most;
    placement->lower_bound_bytes = placement->throughout_bytes + bound;
}

static void place_host(placer *p)
{
    size_t most = 0;
    p->space = PL_SPACE_HOST;
    const size_t base = place_throughout(p);
    for (int program = 0; program < PL_PROGRAM_COUNT; program++) {
        size_t n = gather(p, program);
        size_t live = most_live(p, program, n);
        size_t bytes = place_program(p, n, live, base);
        if (bytes > most)
            most = bytes;
    }
    p->result->host_bytes = base + most;
}

pl_status pl_place(pl_placement *placement, const pl_graph *graph,
                   const pl_place_rules *rules, pl_error *err)
{
    placer p = { .graph = graph, .result = placement };
    const size_t align = rules->align, bank = rules->bank_bytes;

    PL_CHECK(align > 0 && (align & (align - 1)) == 0);
    PL_CHECK(bank == SIZE_MAX || (bank > 0 && bank % align == 0));
    *placement = (pl_placement){ .rules = *rules };
    pl_status status = check_sizes(&p, err);
    if (!status)
        status = take_tables(&p, err);
    if (status)
        return status;
    place_device(&p);
    place_host(&p);
    return PL_OK;
}

size_t pl_placement_peak(const pl_placement *placement, pl_program_id program)
{
    return placement->throughout_bytes + placement->program_bytes[program];
}

int pl_placement_counts(const pl_placement *placement, const pl_buffer *buffer,
                        pl_program_id program)
{
    const size_t at = placement->fullest[program];
    return !pl_placement_in_host(placement, buffer) &&
           (pl_class_lives_throughout(buffer->class) ||
            (buffer->program == (int)program && buffer->first <= at &&
             at <= buffer->last));
}

int pl_placement_in_host(const pl_placement *placement, const pl_buffer *buffer)
{
    return placement->rules.spaces == PL_SPACES_APART &&
           buffer->space == PL_SPACE_HOST;
}
