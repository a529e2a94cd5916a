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

pl_status pl_slices_make(pl_slices *slices, const pl_shape *shape,
                         pl_optimizer_choice optimizer, size_t ranks,
                         pl_heap *heap, pl_error *err)
{
    const size_t slots = pl_param_slots(shape);
    size_t *begins = NULL, *blocks = NULL, at = 0, block = 0;
    unsigned char *is_whole = NULL;
    pl_status status = pl_heap_take(heap, &begins, slots + 1, sizeof *begins,
                                    err);
    if (!status)
        status = pl_heap_take(heap, &blocks, slots + 1, sizeof *blocks, err);
    if (!status)
        status = pl_heap_take(heap, &is_whole, slots, 1, err);
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
                           .is_whole = is_whole };
    return PL_OK;
}

/* The first block of a tensor that begins at `at` or behind, in a row where the
 * tensor begins at `begin`; at most `blocks`. */
static size_t block_at(size_t at, size_t begin, size_t blocks)
{
    const size_t block = at <= begin ? 0 : blocks_of(at - begin);
    return block < blocks ? block : blocks;
}

pl_slice pl_slices_at(const pl_slices *slices, size_t slot, size_t rank)
{
    const size_t begin = slices->begins[slot],
                 count = slices->begins[slot + 1] - begin,
                 part = (slices->elements + slices->ranks - 1) / slices->ranks,
                 from = rank * part, to = from + part;
    PL_CHECK(slot < slices->slots && rank < slices->ranks);
    if (slices->ranks == 1 || count == 0)
        return (pl_slice){ 0, count };
    if (slices->is_whole[slot])
        return (pl_slice){ 0, begin >= from && begin < to ? count : 0 };
    const size_t blocks = blocks_of(count),
                 first = block_at(from, begin, blocks) * PL_SUMSQ_BLOCK,
                 end = block_at(to, begin, blocks) * PL_SUMSQ_BLOCK;
    const size_t last = end < count ? end : count;
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
