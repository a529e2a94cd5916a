/* slices.c: see slices.h. */
#include "model/slices.h"
#include "base/check.h"
#include "kernels/kernels.h"
#include "model/matrices.h"
#include "model/params.h"

static size_t blocks_of(size_t elements)
{
    return (elements + PL_SUMSQ_BLOCK - 1) / PL_SUMSQ_BLOCK;
}

/* Who has how much of the slots that are already cut. */
typedef struct cutting {
    const pl_shape *shape;
    pl_slices *slices;
    uint32_t *cuts; /* those of `slices` */
    size_t elements;
    size_t *own; /* [ranks]: elements */
} cutting;

static size_t count_of(const cutting *c, size_t slot)
{
    return c->slices->begins[slot + 1] - c->slices->begins[slot];
}

static uint32_t *cuts_of(const cutting *c, size_t slot)
{
    return c->cuts + slot * (c->slices->ranks + 1);
}

/* All of it to the rank that has least. */
static void give_whole(cutting *c, size_t slot)
{
    const size_t count = count_of(c, slot);
    size_t owner = 0;
    for (size_t r = 1; r < c->slices->ranks; r++)
        if (c->own[r] < c->own[owner])
            owner = r;
    for (size_t r = 0; r <= c->slices->ranks; r++)
        cuts_of(c, slot)[r] = r > owner ? (uint32_t)blocks_of(count) : 0;
    c->own[owner] += count;
    c->elements += count;
}

/* The cuts of a tensor that begins `at` elements behind the others of its row,
 * of which rank r is to have what is before wanted[r]. */
static void give_parts(cutting *c, size_t slot, size_t at, const size_t *wanted)
{
    const size_t count = count_of(c, slot), blocks = blocks_of(count),
                 last = c->slices->ranks - 1;
    uint32_t *cuts = cuts_of(c, slot);
    size_t from = 0;
    cuts[0] = 0;
    for (size_t r = 0; r <= last; r++) {
        const size_t wants = wanted[r] > at ? blocks_of(wanted[r] - at) : 0,
                     block = r < last && wants < blocks ? wants : blocks,
                     to = block < blocks ? block * PL_SUMSQ_BLOCK : count;
        cuts[r + 1] = (uint32_t)block;
        c->own[r] += to - from;
        from = to;
    }
}

/* The slots from `first` to `end`, a layer's or what is before or behind all of
 * them: to each rank what it lacks of an even share. */
static void cut_row(cutting *c, size_t first, size_t end, size_t *wanted)
{
    size_t count = 0, sum = 0, at = 0;
    for (size_t i = first; i < end; i++)
        if (c->slices->is_whole[i])
            give_whole(c, i);
        else
            count += count_of(c, i);
    c->elements += count;
    const size_t even = (c->elements + c->slices->ranks - 1) / c->slices->ranks;
    for (size_t r = 0; r < c->slices->ranks; r++) {
        sum += even > c->own[r] ? even - c->own[r] : 0;
        wanted[r] = sum;
    }
    for (size_t i = first; i < end; i++)
        if (!c->slices->is_whole[i]) {
            give_parts(c, i, at, wanted);
            at += count_of(c, i);
        }
}

static void cut_all(cutting *c, size_t *wanted)
{
    for (size_t i = 0, end; i < c->slices->slots; i = end) {
        const int layer = pl_param_at(c->shape, i).layer;
        for (end = i + 1; end < c->slices->slots &&
                          pl_param_at(c->shape, end).layer == layer;)
            end++;
        cut_row(c, i, end, wanted);
    }
}

pl_status pl_slices_make(pl_slices *slices, const pl_shape *shape,
                         pl_optimizer_choice optimizer, size_t ranks,
                         pl_heap *heap, pl_error *err)
{
    const size_t slots = pl_param_slots(shape);
    size_t *begins = NULL, *blocks = NULL, *wanted = NULL, at = 0, block = 0;
    unsigned char *is_whole = NULL;
    cutting c = { .shape = shape, .slices = slices };
    pl_status status = pl_heap_take(heap, &begins, slots + 1, sizeof *begins,
                                    err);
    if (!status)
        status = pl_heap_take(heap, &blocks, slots + 1, sizeof *blocks, err);
    if (!status)
        status = pl_heap_take(heap, &is_whole, slots, 1, err);
    if (!status)
        status = pl_heap_take(heap, &c.cuts, slots * (ranks + 1),
                              sizeof *c.cuts, err);
    if (!status)
        status = pl_heap_take(heap, &c.own, ranks, sizeof *c.own, err);
    if (!status)
        status = pl_heap_take(heap, &wanted, ranks, sizeof *wanted, err);
    if (status)
        return status;
    for (size_t i = 0; i < slots; i++) {
        const pl_param param = pl_param_at(shape, i);
        pl_matrix matrices[PL_MAX_MATRICES];
        const size_t count = pl_param_present(shape, &param)
                                 ? param.rows * param.cols
                                 : 0;
        begins[i] = at;
        blocks[i] = block;
        is_whole[i] = optimizer == PL_OPTIMIZER_MUON &&
                      pl_param_matrices(shape, &param, matrices) > 0;
        at += count;
        block += blocks_of(count);
    }
    begins[slots] = at;
    blocks[slots] = block;
    *slices = (pl_slices){ .ranks = ranks,
                           .slots = slots,
                           .elements = at,
                           .begins = begins,
                           .blocks = blocks,
                           .cuts = c.cuts,
                           .is_whole = is_whole };
    cut_all(&c, wanted);
    return PL_OK;
}

pl_slice pl_slices_at(const pl_slices *slices, size_t slot, size_t rank)
{
    const size_t count = slices->begins[slot + 1] - slices->begins[slot];
    const uint32_t *cuts = slices->cuts + slot * (slices->ranks + 1) + rank;
    PL_CHECK(slot < slices->slots && rank < slices->ranks);
    const size_t first = (size_t)cuts[0] * PL_SUMSQ_BLOCK,
                 end = (size_t)cuts[1] * PL_SUMSQ_BLOCK,
                 last = end < count ? end : count;
    return (pl_slice){ first < last ? first : 0,
                       first < last ? last - first : 0 };
}

pl_slice pl_slices_partials(const pl_slices *slices, size_t slot, size_t rank)
{
    const pl_slice own = pl_slices_at(slices, slot, rank);
    return (pl_slice){ slices->blocks[slot] + own.first / PL_SUMSQ_BLOCK,
                       blocks_of(own.count) };
}

size_t pl_slices_elements(const pl_slices *slices, size_t rank)
{
    size_t sum = 0;
    for (size_t i = 0; i < slices->slots; i++)
        sum += pl_slices_at(slices, i, rank).count;
    return sum;
}
