/* gpt_builder.c: the small parts that step lists are written with. */
#include "model/gpt_builder.h"
#include "kernels/kernels.h"

#include <stdio.h>
#include <string.h>

pl_buffer_id pl_build_buffer(builder *b, int layer, const char *what,
                             pl_class class, pl_dtype dtype, size_t rows,
                             size_t cols)
{
    char text[96];
    const char *name = what;
    pl_graph *graph = b->graph;

    if (layer >= 0)
        snprintf(text, sizeof text, "%s.h.%d.%s", pl_program_name(b->program),
                 layer, what);
    else
        snprintf(text, sizeof text, "%s.%s", pl_program_name(b->program), what);
    if (!graph->status)
        graph->status = pl_heap_text(graph->heap, &name, text, strlen(text),
                                     &graph->error);
    return pl_graph_buffer(graph, name, class, dtype, rows, cols);
}

pl_buffer_id pl_build_activation(builder *b, int layer, const char *what,
                                 stage from, pl_dtype dtype, size_t cols)
{
    int saved = (b->keeps & 1u << from) != 0;
    return pl_build_buffer(b, layer, what,
                           saved ? PL_CLASS_SAVED : PL_CLASS_TRANSIENT, dtype,
                           saved || !b->chunk ? b->rows : b->chunk, cols);
}

pl_buffer_id pl_build_weight(const builder *b, pl_param_kind kind, int layer)
{
    return kind == PL_NO_PARAM
               ? PL_NO_BUFFER
               : b->gpt->weights[pl_param_slot(b->s, kind, layer)];
}

pl_buffer_id pl_build_operand(const builder *b, pl_param_kind kind, int layer)
{
    size_t slot = pl_param_slot(b->s, kind, layer);
    pl_buffer_id copy = b->gpt->copies[slot];
    return copy != PL_NO_BUFFER ? copy : b->gpt->weights[slot];
}

pl_buffer_id pl_build_gradient(const builder *b, pl_param_kind kind, int layer)
{
    return kind == PL_NO_PARAM
               ? PL_NO_BUFFER
               : b->gpt->gradients[pl_param_slot(b->s, kind, layer)];
}

/* The step list stays short however many rows there are; and no chunk is much
 * smaller than the others, since a product of few rows is a slow one. Chains
 * over rows in tensor arithmetic are cut between groups only. */
size_t pl_build_chunk(const builder *b, size_t most)
{
    const size_t unit = (size_t)pl_products_group(
        b->gpt->layout.device.products);
    size_t rows = b->rows, parts = most ? (rows + most - 1) / most : 1;
    if (parts > PL_GPT_MAX_CHUNKS)
        parts = PL_GPT_MAX_CHUNKS;
    const size_t chunk = (rows + parts - 1) / parts;
    return parts > 1 ? (chunk + unit - 1) / unit * unit : rows;
}

/* Decoding, whose rows are known only when it runs, has few. */
void pl_build_begin_chunks(builder *b)
{
    size_t rows = pl_build_chunk(b, b->gpt->layout.mlp_rows);
    if (rows < b->rows && !(b->flags & PL_STEP_RUN_ROWS))
        b->chunk = rows;
}

int pl_build_next_chunk(builder *b)
{
    b->row += b->chunk;
    if (b->chunk && b->row < b->rows && !b->graph->status)
        return 1;
    b->row = b->chunk = 0;
    return 0;
}

void pl_build_rows(const builder *b, pl_step *step, int arg,
                   pl_buffer_id buffer)
{
    int whole = !b->graph->status &&
                b->graph->buffers[buffer].shape.rows == b->rows;
    pl_step_rows(step, arg, buffer, whole ? b->row : 0);
}

pl_step *pl_build_step(builder *b, pl_op op, int layer)
{
    pl_step *step = pl_graph_step(b->graph, b->program, op);
    const pl_op_info *info = pl_op_of(op);
    unsigned flags = b->flags;
    if (b->s->mlp == PL_MLP_RELU2)
        flags |= PL_STEP_RELU2;
    else if (b->s->activation == PL_ACT_GELU_TANH)
        flags |= PL_STEP_GELU_TANH;
    if (b->gpt->layout.dtype == PL_BF16)
        flags |= PL_STEP_ROUND_BF16;
    if (b->gpt->layout.dtype == PL_F16)
        flags |= PL_STEP_ROUND_F16;
    step->layer = layer;
    step->flags = flags & info->flags;
    if (info->constants & PL_ROWS)
        step->rows = b->chunk && b->chunk < b->rows - b->row ? b->chunk
                                                             : b->rows - b->row;
    if (info->constants & PL_T)
        step->T = b->T;
    if (info->constants & PL_EPS)
        step->eps = b->s->norm_eps;
    if (info->constants & PL_CAP)
        step->cap = b->s->logit_softcap;
    return step;
}

pl_step *pl_build_dropped(builder *b, pl_op op, int layer, unsigned site)
{
    pl_step *step = pl_build_step(b, op, layer);
    step->site = site;
    step->dropout = b->dropout;
    return step;
}

void pl_build_matmul_gradients(builder *b, int layer, pl_param_kind weight,
                               pl_buffer_id x, pl_buffer_id dy)
{
    pl_param param = pl_param_at(b->s, pl_param_slot(b->s, weight, layer));
    /* dw[in, out] = x^T dy, dw[out, in] = dy^T x: the same chains */
    const int turned = param.layout == PL_LAYOUT_OUT_IN;
    const pl_buffer_id by_rows = turned ? dy : x, by_cols = turned ? x : dy;
    pl_step *step = pl_build_step(b, PL_OP_MATMUL_DW, layer);
    step->inner = param.rows;
    step->cols = param.cols;
    pl_step_arg(step, PL_ARG_MATMUL_DW_DW, pl_build_gradient(b, weight, layer));
    pl_build_rows(b, step, PL_ARG_MATMUL_DW_X, by_rows);
    pl_build_rows(b, step, PL_ARG_MATMUL_DW_DY, by_cols);
    pl_build_product_scratch(b, layer, step, PL_ARG_MATMUL_DW_SCRATCH, by_cols);
    pl_buffer_id bias = pl_build_gradient(b, pl_param_bias(weight), layer);
    if (bias != PL_NO_BUFFER) {
        step = pl_build_step(b, PL_OP_COLUMN_SUM, layer);
        step->cols = param.out;
        pl_step_arg(step, PL_ARG_COLUMN_SUM_SUM, bias);
        pl_build_rows(b, step, PL_ARG_COLUMN_SUM_X, dy);
    }
}

pl_buffer_id pl_build_scratch(builder *b, int layer, pl_op op,
                              pl_buffer_id result)
{
    pl_step step = pl_step_make(op);
    step.rows = b->rows;
    step.T = b->T;
    pl_build_head_sizes(b, &step);
    const pl_dtype dtype = b->graph->status ? PL_F32
                                            : b->graph->buffers[result].dtype;
    const pl_extent room = pl_device_scratch(&b->gpt->layout.device, &step,
                                             dtype);
    if (room.rows == 0)
        return PL_NO_BUFFER;
    return pl_build_buffer(b, layer, "attention.scratch", PL_CLASS_TRANSIENT,
                           PL_F32, room.rows, room.cols);
}

void pl_build_product_scratch(builder *b, int layer, pl_step *step, int arg,
                              pl_buffer_id operand)
{
    const pl_dtype dtype = b->graph->status ? PL_F32
                                            : b->graph->buffers[operand].dtype;
    const pl_extent room = pl_device_scratch(&b->gpt->layout.device, step,
                                             dtype);
    if (room.rows)
        pl_step_arg(step, arg,
                    pl_build_buffer(b, layer, "product.scratch",
                                    PL_CLASS_TRANSIENT, PL_F32, room.rows,
                                    room.cols));
}
