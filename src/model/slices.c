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
    size_t ranks, elements; /* of those slots */
    size_t *own;            /* [ranks]: elements */
} cutting;

/* All of it to the rank that has least. */
static void give_whole(cutting *c, uint32_t *cuts, size_t count)
{
    size_t owner = 0;
    for (size_t r = 1; r < c->ranks; r++)
        if (c->own[r] < c->own[owner])
            owner = r;
    for (size_t r = 0; r <= c->ranks; r++)
        cuts[r] = r > owner ? (uint32_t)blocks_of(count) : 0;
    c->own[owner] += count;
}

/* To each what it lacks of an even share; a cut is moved to the next block, and
 * the slots behind make up for it. */
static void give_parts(cutting *c, uint32_t *cuts, size_t count)
{
    const size_t even = (c->elements + count + c->ranks - 1) / c->ranks,
                 blocks = blocks_of(count);
    size_t wanted = 0, from = 0;
    cuts[0] = 0;
    for (size_t r = 0; r < c->ranks; r++) {
        wanted += even > c->own[r] ? even - c->own[r] : 0;
        const size_t cut = blocks_of(wanted),
                     most = r + 1 < c->ranks ? cut : blocks,
                     block = most < blocks ? most : blocks,
                     to = block < blocks ? block * PL_SUMSQ_BLOCK : count;
        cuts[r + 1] = (uint32_t)block;
        c->own[r] += to - from;
        from = to;
    }
}

pl_status pl_slices_make(pl_slices *slices, const pl_shape *shape,
                         pl_optimizer_choice optimizer, size_t ranks,
                         pl_heap *heap, pl_error *err)
{
    const size_t slots = pl_param_slots(shape);
    cutting c = { .ranks = ranks };
    size_t *begins = NULL, *blocks = NULL, block = 0;
    uint32_t *cuts = NULL;
    unsigned char *is_whole = NULL;
    pl_status status = pl_heap_take(heap, &begins, slots + 1, sizeof *begins,
                                    err);
    if (!status)
        status = pl_heap_take(heap, &blocks, slots + 1, sizeof *blocks, err);
    if (!status)
        status = pl_heap_take(heap, &cuts, slots * (ranks + 1), sizeof *cuts,
                              err);
    if (!status)
        status = pl_heap_take(heap, &is_whole, slots, 1, err);
    if (!status)
        status = pl_heap_take(heap, &c.own, ranks, sizeof *c.own, err);
    if (status)
        return status;
    for (size_t i = 0; i < slots; i++) {
        const pl_param param = pl_param_at(shape, i);
        pl_matrix matrices[PL_MAX_MATRICES];
        const size_t count = pl_param_present(shape, &param)
                                 ? param.rows * param.cols
                                 : 0;
        begins[i] = c.elements;
        blocks[i] = block;
        is_whole[i] = optimizer == PL_OPTIMIZER_MUON &&
                      pl_param_matrices(shape, &param, matrices) > 0;
        (is_whole[i] ? give_whole : give_parts)(&c, cuts + i * (ranks + 1),
                                                count);
        c.elements += count;
        block += blocks_of(count);
    }
    begins[slots] = c.elements;
    blocks[slots] = block;
    *slices = (pl_slices){ .ranks = ranks,
                           .slots = slots,
                           .elements = c.elements,
                           .begins = begins,
                           .blocks = blocks,
                           .cuts = cuts,
                           .is_whole = is_whole };
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
