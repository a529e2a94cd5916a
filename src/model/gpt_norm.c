/* gpt_norm.c: the norms, forward and backward. */
#include "model/gpt_builder.h"

void pl_build_norm(builder *b, int layer, pl_param_kind weight, pl_buffer_id y,
                   pl_buffer_id stats, pl_buffer_id x)
{
    pl_step *step = pl_build_step(b, PL_OP_LAYERNORM, layer);
    step->cols = b->s->C;
    pl_build_rows(b, step, PL_ARG_LAYERNORM_Y, y);
    pl_build_rows(b, step, PL_ARG_LAYERNORM_STATS, stats);
    pl_build_rows(b, step, PL_ARG_LAYERNORM_X, x);
    pl_step_arg(step, PL_ARG_LAYERNORM_WEIGHT,
                pl_build_weight(b, weight, layer));
    pl_step_arg(step, PL_ARG_LAYERNORM_BIAS,
                pl_build_weight(b, pl_param_bias(weight), layer));
}

void pl_build_norm_backward(builder *b, int layer, pl_param_kind weight,
                            pl_access how, pl_buffer_id dx, pl_buffer_id dy,
                            pl_buffer_id x, pl_buffer_id stats)
{
    pl_step *step = pl_build_step(b, PL_OP_LAYERNORM_BWD, layer);
    step->cols = b->s->C;
    pl_build_rows(b, step, PL_ARG_LAYERNORM_BWD_DX, dx);
    pl_step_access(step, PL_ARG_LAYERNORM_BWD_DX, how);
    pl_step_arg(step, PL_ARG_LAYERNORM_BWD_DWEIGHT,
                pl_build_gradient(b, weight, layer));
    pl_step_arg(step, PL_ARG_LAYERNORM_BWD_DBIAS,
                pl_build_gradient(b, pl_param_bias(weight), layer));
    pl_build_rows(b, step, PL_ARG_LAYERNORM_BWD_DY, dy);
    pl_build_rows(b, step, PL_ARG_LAYERNORM_BWD_X, x);
    pl_build_rows(b, step, PL_ARG_LAYERNORM_BWD_STATS, stats);
    pl_step_arg(step, PL_ARG_LAYERNORM_BWD_WEIGHT,
                pl_build_weight(b, weight, layer));
}
