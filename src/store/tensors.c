/* tensors.c: see tensors.h. Names and sizes come from the parameter table and
 * the graph. */
#include "store/tensors.h"
#include "base/check.h"
#include "kernels/kernels.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* The sets of a run that are kept, in the order of their files. Weights are the
 * pieces that others know; moments are as they are here. */
typedef enum set_kind { WEIGHTS, MOMENT, SCALES, OUTER } set_kind;
static const struct {
    pl_tensors_file file;
    set_kind kind;
    const char *prefix;
    size_t set;    /* offset of the list of buffers in pl_gpt */
    size_t pieces; /* rows for each slot */
    size_t unit;   /* elements that share one */
} sets[] = {
#define MOMENTS(file)                                                          \
    { file, MOMENT, "m.", offsetof(pl_gpt, m), 1, 1 },                         \
        { file, MOMENT, "v.", offsetof(pl_gpt, v), 1, 1 },                     \
        { file, SCALES,        "m.scales.", offsetof(pl_gpt, m_scales),        \
          1,    PL_QUANT_BLOCK },                                              \
    {                                                                          \
        file, SCALES, "v.scales.", offsetof(pl_gpt, v_scales), 1,              \
            PL_QUANT_BLOCK                                                     \
    }
    { PL_TENSORS_MODEL, WEIGHTS, "", offsetof(pl_gpt, weights),
      PL_PARAM_MAX_PARTS, 1 },
    MOMENTS(PL_TENSORS_OPTIMIZER),
    { PL_TENSORS_OPTIMIZER, OUTER, "anchor.", offsetof(pl_gpt, anchor), 1, 1 },
    { PL_TENSORS_OPTIMIZER, OUTER, "outer.", offsetof(pl_gpt, outer), 1, 1 },
    { PL_TENSORS_WORKER, WEIGHTS, "w.", offsetof(pl_gpt, weights), 1, 1 },
    MOMENTS(PL_TENSORS_WORKER),
#undef MOMENTS
};
enum { SETS = sizeof sets / sizeof sets[0] };

size_t pl_tensors_rows(const pl_gpt *gpt, pl_tensors_file file)
{
    size_t count = 0;
    for (int i = 0; i < SETS; i++)
        count += sets[i].file == file ? sets[i].pieces : 0;
    return count * pl_param_slots(&gpt->shape);
}

static pl_tensor_dtype dtype_of(pl_dtype dtype)
{
    PL_CHECK(dtype == PL_F32 || dtype == PL_BF16 || dtype == PL_U8);
    return dtype == PL_BF16 ? PL_TENSOR_BF16
           : dtype == PL_U8 ? PL_TENSOR_U8
                            : PL_TENSOR_F32;
}

pl_tensors_row pl_tensors_at(const pl_gpt *gpt, pl_tensors_file file, size_t i)
{
    size_t slots = pl_param_slots(&gpt->shape), set = 0;
    pl_tensors_row row = { .is_weight = file == PL_TENSORS_MODEL };

    while (sets[set].file != file || i >= slots * sets[set].pieces) {
        i -= sets[set].file == file ? slots * sets[set].pieces : 0;
        set++;
        PL_CHECK(set < SETS);
    }
    row.slot = i / sets[set].pieces;
    row.set = sets[set].set;
    row.unit = sets[set].unit;
    row.keeper = pl_gpt_workers(&gpt->layout) && sets[set].kind != OUTER
                     ? PL_TENSORS_WORKERS_OWN
                     : PL_TENSORS_SLICED;
    pl_param param = pl_param_at(&gpt->shape, row.slot);
    const size_t piece = i % sets[set].pieces;
    pl_buffer_id *ids;
    memcpy(&ids, (const char *)gpt + sets[set].set, sizeof ids);
    row.buffer = ids[row.slot];
    if (piece >= pl_param_pieces(&gpt->shape, &param)) {
        row.buffer = PL_NO_BUFFER;
        return row;
    }
    if (row.buffer == PL_NO_BUFFER &&
        !(row.is_weight && pl_param_is_written(&gpt->shape, &param)))
        return row;
    snprintf(row.info.name, sizeof row.info.name, "%s%s", sets[set].prefix,
             pl_param_name_of(&param).text);
    pl_extent shape = { param.rows, param.cols };
    row.info.dtype = PL_TENSOR_F32;
    if (row.unit > 1)
        shape = (pl_extent){
            (param.rows * param.cols + row.unit - 1) / row.unit, 1
        };
    else if (sets[set].kind == WEIGHTS && row.buffer != PL_NO_BUFFER)
        row.info.dtype = dtype_of(gpt->graph.buffers[row.buffer].dtype);
    else if (sets[set].kind == MOMENT && param.is_2d &&
             gpt->layout.moments == PL_MOMENTS_8BIT)
        row.info.dtype = PL_TENSOR_U8;
    if (row.is_weight) {
        const pl_param_piece own = pl_param_piece_at(&gpt->shape, &param,
                                                     piece);
        memcpy(row.info.name, own.name.text, sizeof own.name.text);
        row.first = own.first;
        shape = (pl_extent){ own.rows, own.cols };
    }
    row.info.rank = param.is_2d && shape.cols == param.cols ? 2 : 1;
    row.info.dims[0] = shape.rows;
    row.info.dims[1] = shape.cols;
    return row;
}

size_t pl_tensors_elements(const pl_tensors_row *row)
{
    return row->info.dims[0] * (row->info.rank == 2 ? row->info.dims[1] : 1);
}

pl_tensors_share pl_tensors_own(const pl_gpt *gpt, const pl_tensors_row *row,
                                size_t rank)
{
    const size_t elements = pl_tensors_elements(row);
    if (row->keeper == PL_TENSORS_WORKERS_OWN)
        return (pl_tensors_share){ 0, row->worker == rank ? elements : 0,
                                   row->first };
    const pl_slice own = pl_slices_at(&gpt->slices, row->slot, rank);
    if (!row->is_weight)
        return (pl_tensors_share){ own.first / row->unit,
                                   (own.count + row->unit - 1) / row->unit, 0 };
    const size_t own_end = own.first + own.count,
                 row_end = row->first + elements,
                 first = own.first > row->first ? own.first : row->first,
                 end = own_end < row_end ? own_end : row_end;
    if (first >= end)
        return (pl_tensors_share){ 0, 0, 0 };
    return (pl_tensors_share){ first - row->first, end - first, first };
}
