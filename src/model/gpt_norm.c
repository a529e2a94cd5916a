/* gpt_norm.c: the norms, forward and backward. */
#include "model/gpt_builder.h"

static void layernorm(builder *b, int layer, pl_param_kind weight,
                      pl_buffer_id y, pl_buffer_id stats, pl_buffer_id x)
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

static void layernorm_backward(builder *b, int layer, pl_param_kind weight,
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

static void rmsnorm(builder *b, int layer, pl_param_kind weight, pl_buffer_id y,
                    pl_buffer_id stats, pl_buffer_id x)
{
    pl_step *step = pl_build_step(b, PL_OP_RMSNORM, layer);
    step->cols = b->s->C;
    pl_build_rows(b, step, PL_ARG_RMSNORM_Y, y);
    pl_build_rows(b, step, PL_ARG_RMSNORM_RSTD, stats);
    pl_build_rows(b, step, PL_ARG_RMSNORM_X, x);
    pl_step_arg(step, PL_ARG_RMSNORM_WEIGHT, pl_build_weight(b, weight, layer));
}

static void rmsnorm_backward(builder *b, int layer, pl_param_kind weight,
                             pl_access how, pl_buffer_id dx, pl_buffer_id dy,
                             pl_buffer_id x, pl_buffer_id stats)
{
    pl_step *step = pl_build_step(b, PL_OP_RMSNORM_BWD, layer);
    step->cols = b->s->C;
    pl_build_rows(b, step, PL_ARG_RMSNORM_BWD_DX, dx);
    pl_step_access(step, PL_ARG_RMSNORM_BWD_DX, how);
    pl_step_arg(step, PL_ARG_RMSNORM_BWD_DWEIGHT,
                pl_build_gradient(b, weight, layer));
    pl_build_rows(b, step, PL_ARG_RMSNORM_BWD_DY, dy);
    pl_build_rows(b, step, PL_ARG_RMSNORM_BWD_X, x);
    pl_build_rows(b, step, PL_ARG_RMSNORM_BWD_RSTD, stats);
    pl_step_arg(step, PL_ARG_RMSNORM_BWD_WEIGHT,
                pl_build_weight(b, weight, layer));
}

/* By pl_norm. */
static const struct {
    void (*forward)(builder *b, int layer, pl_param_kind weight, pl_buffer_id y,
                    pl_buffer_id stats, pl_buffer_id x);
    void (*backward)(builder *b, int layer, pl_param_kind weight, pl_access how,
                     pl_buffer_id dx, pl_buffer_id dy, pl_buffer_id x,
                     pl_buffer_id stats);
} norms[] = {
    [PL_NORM_LAYER] = { layernorm, layernorm_backward },
    [PL_NORM_RMS] = { rmsnorm, rmsnorm_backward },
};

void pl_build_norm(builder *b, int layer, pl_param_kind weight, pl_buffer_id y,
                   pl_buffer_id stats, pl_buffer_id x)
{
    norms[b->s->norm].forward(b, layer, weight, y, stats, x);
}

void pl_build_norm_backward(builder *b, int layer, pl_param_kind weight,
                            pl_access how, pl_buffer_id dx, pl_buffer_id dy,
                            pl_buffer_id x, pl_buffer_id stats)
{
    norms[b->s->norm].backward(b, layer, weight, how, dx, dy, x, stats);
}
