/* gpt_update.c: the program between the gradients of an update and the next
 * weights: their norm, clipping, AdamW, and Muon on the matrices of the blocks
 * where that was asked for. */
#include "base/check.h"
#include "kernels/kernels.h"
#include "model/gpt_builder.h"
#include "model/matrices.h"

int pl_build_is_muon(const builder *b, const pl_param *param)
{
    pl_matrix matrices[PL_MAX_MATRICES];
    return b->gpt->layout.optimizer == PL_OPTIMIZER_MUON &&
           pl_param_matrices(b->s, param, matrices) > 0;
}

static size_t blocks_of(size_t elements)
{
    return (elements + PL_SUMSQ_BLOCK - 1) / PL_SUMSQ_BLOCK;
}

static void adamw(builder *b, size_t i, const pl_param *param)
{
    const pl_gpt *gpt = b->gpt;
    const pl_slice own = pl_gpt_own(gpt, i);
    pl_step *step = pl_build_step(b, PL_OP_ADAMW, param->layer);
    step->first = own.first;
    step->rows = own.count;
    step->tensor = i;
    step->flags |= param->group == PL_PARAM_DECAYED ? PL_STEP_DECAY : 0;
    pl_step_arg(step, PL_ARG_ADAMW_W, gpt->weights[i]);
    pl_step_arg(step, PL_ARG_ADAMW_G, gpt->gradients[i]);
    pl_step_arg(step, PL_ARG_ADAMW_M, gpt->m[i]);
    pl_step_arg(step, PL_ARG_ADAMW_V, gpt->v[i]);
    pl_step_arg(step, PL_ARG_ADAMW_M_SCALES, gpt->m_scales[i]);
    pl_step_arg(step, PL_ARG_ADAMW_V_SCALES, gpt->v_scales[i]);
    pl_step_arg(step, PL_ARG_ADAMW_COPY, gpt->copies[i]);
    pl_step_arg(step, PL_ARG_ADAMW_OUTCOME, gpt->outcome);
}

/* ---- Muon ---- */

/* What one matrix after the other is computed in. */
typedef struct muon_room {
    pl_buffer_id partials, factor;
    pl_buffer_id x[2];    /* the matrix, wide, before and after an iteration */
    pl_buffer_id gram, b; /* X X^T, and the polynomial of it */
} muon_room;

/* Iterations of Newton and Schulz, as published. */
enum { ITERATIONS = 5 };

/* Whether Muon updates it, and does so here: where several processes share a
 * run, some may have none. */
static int is_own_muon(const builder *b, size_t i)
{
    const pl_param param = pl_param_at(b->s, i);
    return pl_param_present(b->s, &param) && pl_build_is_muon(b, &param) &&
           pl_gpt_own(b->gpt, i).count > 0;
}

/* Room for the largest of them. */
static muon_room make_room(builder *b)
{
    const pl_dtype dtype = b->gpt->layout.dtype;
    size_t elements = 0, side = 0;
    for (size_t i = 0; i < pl_param_slots(b->s); i++) {
        if (!is_own_muon(b, i))
            continue;
        pl_param param = pl_param_at(b->s, i);
        pl_matrix matrices[PL_MAX_MATRICES];
        const size_t count = pl_param_matrices(b->s, &param, matrices);
        for (size_t k = 0; k < count; k++) {
            const size_t rows = matrices[k].rows, cols = matrices[k].cols,
                         least = rows < cols ? rows : cols;
            elements = rows * cols > elements ? rows * cols : elements;
            side = least > side ? least : side;
        }
    }
    const pl_class class = PL_CLASS_TRANSIENT;
    return (muon_room){
        .partials = pl_build_buffer(b, -1, "muon.partials", class, PL_F64,
                                    blocks_of(elements), 1),
        .factor = pl_build_buffer(b, -1, "muon.factor", class, PL_F32, 1, 1),
        .x = { pl_build_buffer(b, -1, "muon.x", class, dtype, elements, 1),
               pl_build_buffer(b, -1, "muon.y", class, dtype, elements, 1) },
        .gram = pl_build_buffer(b, -1, "muon.gram", class, dtype, side, side),
        .b = pl_build_buffer(b, -1, "muon.b", class, dtype, side, side),
    };
}

/* A step of an op that has a matrix as its constants. */
static pl_step *matrix_step(builder *b, pl_op op, const pl_param *param,
                            const pl_matrix *matrix)
{
    pl_step *step = pl_build_step(b, op, param->layer);
    step->rows = matrix->rows;
    step->cols = matrix->cols;
    step->first = matrix->first_row * param->cols + matrix->first_col;
    step->stride = param->cols;
    return step;
}

/* y[rows, cols] = x[rows, inner] w[inner, cols] */
static void product(builder *b, int layer, pl_buffer_id y, pl_buffer_id x,
                    pl_buffer_id w, size_t rows, size_t cols, size_t inner)
{
    pl_step *step = pl_build_step(b, PL_OP_MATMUL, layer);
    step->rows = rows;
    step->cols = cols;
    step->inner = inner;
    step->T = rows;
    pl_step_arg(step, PL_ARG_MATMUL_Y, y);
    pl_step_arg(step, PL_ARG_MATMUL_X, x);
    pl_step_arg(step, PL_ARG_MATMUL_W, w);
}

/* y = (a I + b X X^T + c (X X^T)^2) X of a wide x */
static void iterate(builder *b, int layer, const muon_room *room,
                    pl_buffer_id y, pl_buffer_id x, size_t side, size_t wide)
{
    pl_step *step = pl_build_step(b, PL_OP_MATMUL_T, layer);
    step->rows = side;
    step->cols = side;
    step->inner = wide;
    pl_step_arg(step, PL_ARG_MATMUL_T_Y, room->gram);
    pl_step_arg(step, PL_ARG_MATMUL_T_X, x);
    pl_step_arg(step, PL_ARG_MATMUL_T_W, x);
    pl_build_product_scratch(b, layer, step, PL_ARG_MATMUL_T_SCRATCH, x);
    product(b, layer, room->b, room->gram, room->gram, side, side, side);
    step = pl_build_step(b, PL_OP_MUON_POLY, layer);
    step->rows = side;
    pl_step_arg(step, PL_ARG_MUON_POLY_B, room->b);
    pl_step_arg(step, PL_ARG_MUON_POLY_GRAM, room->gram);
    product(b, layer, y, room->b, x, side, wide, side);
}

/* Of the gradient, what stands for the matrix becomes one with the same
 * singular vectors whose singular values are about 1, scaled. */
static void orthogonalize(builder *b, pl_buffer_id g, const muon_room *room,
                          const pl_param *param, const pl_matrix *matrix)
{
    const size_t rows = matrix->rows, cols = matrix->cols,
                 side = rows < cols ? rows : cols,
                 wide = rows < cols ? cols : rows;
    pl_step *step = matrix_step(b, PL_OP_MUON_SUMSQ, param, matrix);
    pl_step_arg(step, PL_ARG_MUON_SUMSQ_PARTIAL, room->partials);
    pl_step_arg(step, PL_ARG_MUON_SUMSQ_G, g);
    step = pl_build_step(b, PL_OP_MUON_NORM, param->layer);
    step->rows = blocks_of(rows * cols);
    pl_step_arg(step, PL_ARG_MUON_NORM_FACTOR, room->factor);
    pl_step_arg(step, PL_ARG_MUON_NORM_PARTIAL, room->partials);
    step = matrix_step(b, PL_OP_MUON_TAKE, param, matrix);
    pl_step_arg(step, PL_ARG_MUON_TAKE_X, room->x[0]);
    pl_step_arg(step, PL_ARG_MUON_TAKE_G, g);
    pl_step_arg(step, PL_ARG_MUON_TAKE_FACTOR, room->factor);
    for (int i = 0; i < ITERATIONS; i++)
        iterate(b, param->layer, room, room->x[(i + 1) % 2], room->x[i % 2],
                side, wide);
    step = matrix_step(b, PL_OP_MUON_PUT, param, matrix);
    step->flags |= matrix->layout == PL_LAYOUT_OUT_IN ? PL_STEP_OUT_IN : 0;
    step->flags |= b->gpt->layout.muon_scale == PL_MUON_SCALE_RMS
                       ? PL_STEP_MATCH_RMS
                       : 0;
    pl_step_arg(step, PL_ARG_MUON_PUT_G, g);
    pl_step_arg(step, PL_ARG_MUON_PUT_X, room->x[ITERATIONS % 2]);
}

/* All of one weight: nothing of it is needed for any other. */
static void muon_weight(builder *b, const muon_room *room, size_t i,
                        const pl_param *param)
{
    const pl_gpt *gpt = b->gpt;
    pl_matrix matrices[PL_MAX_MATRICES];
    const size_t count = pl_param_matrices(b->s, param, matrices);
    pl_step *step = pl_build_step(b, PL_OP_MUON_MOMENT, param->layer);
    step->rows = param->rows * param->cols;
    step->tensor = i;
    pl_step_arg(step, PL_ARG_MUON_MOMENT_G, gpt->gradients[i]);
    pl_step_arg(step, PL_ARG_MUON_MOMENT_M, gpt->m[i]);
    pl_step_arg(step, PL_ARG_MUON_MOMENT_M_SCALES, gpt->m_scales[i]);
    pl_step_arg(step, PL_ARG_MUON_MOMENT_OUTCOME, gpt->outcome);
    for (size_t k = 0; k < count; k++)
        orthogonalize(b, gpt->gradients[i], room, param, &matrices[k]);
    step = pl_build_step(b, PL_OP_MUON_APPLY, param->layer);
    step->rows = param->rows * param->cols;
    step->tensor = i;
    step->flags |= param->group == PL_PARAM_DECAYED ? PL_STEP_DECAY : 0;
    pl_step_arg(step, PL_ARG_MUON_APPLY_W, gpt->weights[i]);
    pl_step_arg(step, PL_ARG_MUON_APPLY_G, gpt->gradients[i]);
    pl_step_arg(step, PL_ARG_MUON_APPLY_COPY, gpt->copies[i]);
    pl_step_arg(step, PL_ARG_MUON_APPLY_OUTCOME, gpt->outcome);
}

static void muon(builder *b)
{
    const size_t slots = pl_param_slots(b->s);
    size_t first = 0;
    while (first < slots && !is_own_muon(b, first))
        first++;
    if (first == slots)
        return;
    const muon_room room = make_room(b);
    for (size_t i = first; i < slots && !b->graph->status; i++) {
        pl_param param = pl_param_at(b->s, i);
        if (is_own_muon(b, i))
            muon_weight(b, &room, i, &param);
    }
}

/* ---- all of it ---- */

void pl_build_update(builder *b)
{
    pl_gpt *gpt = b->gpt;
    const size_t slots = pl_param_slots(b->s),
                 partials = gpt->slices.blocks[slots];

    b->program = PL_UPDATE_WEIGHTS;
    gpt->partials = pl_build_buffer(b, -1, "norm.partials", PL_CLASS_TRANSIENT,
                                    PL_F64, partials, 1);
    if (pl_gpt_ranks(&gpt->layout) > 1 && !pl_gpt_workers(&gpt->layout))
        /* others write theirs */
        pl_graph_host(b->graph, gpt->partials, PL_HOST_WRITES);
    b->graph->programs[PL_UPDATE_WEIGHTS].loop_steps = SIZE_MAX;
    for (size_t i = 0; i < slots; i++) {
        const pl_slice own = pl_gpt_own(gpt, i);
        if (gpt->gradients[i] == PL_NO_BUFFER || own.count == 0)
            continue;
        pl_step *step = pl_build_step(b, PL_OP_SUMSQ,
                                      pl_param_at(b->s, i).layer);
        step->first = own.first;
        step->rows = own.count;
        pl_step_rows(step, PL_ARG_SUMSQ_PARTIAL, gpt->partials,
                     gpt->slices.blocks[i] + own.first / PL_SUMSQ_BLOCK);
        pl_step_arg(step, PL_ARG_SUMSQ_G, gpt->gradients[i]);
    }
    pl_graph_end_loop(b->graph, PL_UPDATE_WEIGHTS);
    pl_step *step = pl_build_step(b, PL_OP_CLIP, -1);
    step->rows = partials;
    pl_step_arg(step, PL_ARG_CLIP_OUTCOME, gpt->outcome);
    pl_step_arg(step, PL_ARG_CLIP_PARTIAL, gpt->partials);
    for (size_t i = 0; i < slots; i++) {
        pl_param param = pl_param_at(b->s, i);
        if (gpt->gradients[i] != PL_NO_BUFFER && !pl_build_is_muon(b, &param) &&
            pl_gpt_own(gpt, i).count)
            adamw(b, i, &param);
    }
    muon(b);
}
