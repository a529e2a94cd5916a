/* gpt_backward.c: the gradients of a block, stage by stage. What its level did
 * not keep is computed again by the very stages of gpt_forward.c, just before
 * it is read: gpt_block.c sees to that. */
#include "kernels/kernels.h"
#include "model/gpt_builder.h"

/* dx = dy w^T for the product y = x w. */
static pl_step *matmul_dx(builder *b, int layer, pl_param_kind weight,
                          pl_buffer_id dx, pl_buffer_id dy)
{
    pl_param param = pl_param_at(b->s, pl_param_slot(b->s, weight, layer));
    pl_step *step = pl_build_step(b, PL_OP_MATMUL_T, layer);
    step->cols = param.in;
    step->inner = param.out;
    if (param.layout == PL_LAYOUT_OUT_IN)
        step->flags |= PL_STEP_OUT_IN;
    pl_build_rows(b, step, PL_ARG_MATMUL_T_Y, dx);
    pl_build_rows(b, step, PL_ARG_MATMUL_T_X, dy);
    pl_step_arg(step, PL_ARG_MATMUL_T_W, pl_build_operand(b, weight, layer));
    pl_build_product_scratch(b, layer, step, PL_ARG_MATMUL_T_SCRATCH, dy);
    return step;
}

/* dw += x^T dy, and dy becomes the gradient of x, for the product y = x w. */
static pl_step *product_backward(builder *b, int layer, stage id,
                                 pl_param_kind weight, pl_buffer_id x, flow *g)
{
    pl_build_matmul_gradients(b, layer, weight, x, g->dy);
    pl_buffer_id dx = pl_build_flow(b, layer, g, id);
    pl_step *step = matmul_dx(b, layer, weight, dx, g->dy);
    g->dy = dx;
    return step;
}

void pl_build_out_backward(builder *b, int layer, block *k, flow *g)
{
    pl_step *step = product_backward(b, layer, STAGE_OUT, PL_MLP_W,
                                     k->act[ACT_GELU], g);
    /* dfc *= GELU'(fc) */
    if (b->s->mlp != PL_MLP_SWIGLU)
        pl_build_rows(b, step, PL_ARG_MATMUL_T_FC, k->act[ACT_FC]);
}

/* GELU's slope is in the step of the product behind it. SwiGLU's gradients take
 * the place of what they are of, which nobody reads any more. */
void pl_build_gelu_backward(builder *b, int layer, block *k, flow *g)
{
    if (b->s->mlp != PL_MLP_SWIGLU)
        return;
    pl_step *step = pl_build_step(b, PL_OP_GLU_BWD, layer);
    step->cols = b->s->F;
    pl_build_rows(b, step, PL_ARG_GLU_BWD_X, k->act[ACT_FC]);
    pl_build_rows(b, step, PL_ARG_GLU_BWD_DY, g->dy);
    g->dy = k->act[ACT_FC];
}

void pl_build_fc_backward(builder *b, int layer, block *k, flow *g)
{
    product_backward(b, layer, STAGE_FC, PL_FC_W, k->act[ACT_LN2], g);
}

void pl_build_norm2_backward(builder *b, int layer, block *k, flow *g)
{
    pl_build_norm_backward(b, layer, PL_LN2_W, PL_UPDATE, g->dx, g->dy,
                           k->act[ACT_MID], k->act[ACT_STAT2]);
}

void pl_build_mid_backward(builder *b, int layer, block *k, flow *g)
{
    product_backward(b, layer, STAGE_MID, PL_ATT_W, k->act[ACT_ATT], g);
}

void pl_build_att_backward(builder *b, int layer, block *k, flow *g)
{
    pl_buffer_id dqkv = pl_build_flow(b, layer, g, STAGE_ATT);
    pl_buffer_id scratch = pl_build_scratch(b, layer, PL_OP_ATTENTION_BWD,
                                            dqkv);
    pl_step *step = pl_build_dropped(b, PL_OP_ATTENTION_BWD, layer,
                                     PL_DROP_ATTENTION);
    pl_build_head_sizes(b, step);
    pl_step_arg(step, PL_ARG_ATTENTION_BWD_DQKV, dqkv);
    pl_step_arg(step, PL_ARG_ATTENTION_BWD_DATT, g->dy);
    pl_step_arg(step, PL_ARG_ATTENTION_BWD_QKV, pl_build_heads(b, k));
    pl_step_arg(step, PL_ARG_ATTENTION_BWD_ATT, k->act[ACT_ATT]);
    pl_step_arg(step, PL_ARG_ATTENTION_BWD_LSE, k->act[ACT_LSE]);
    pl_step_arg(step, PL_ARG_ATTENTION_BWD_SCRATCH, scratch);
    g->dy = dqkv;
}

void pl_build_qk_backward(builder *b, int layer, block *k, flow *g)
{
    pl_build_heads_backward(b, layer, k, g->dy);
}

void pl_build_qkv_backward(builder *b, int layer, block *k, flow *g)
{
    product_backward(b, layer, STAGE_QKV, PL_QKV_W, k->act[ACT_LN1], g);
}

void pl_build_norm1_backward(builder *b, int layer, block *k, flow *g)
{
    pl_build_norm_backward(b, layer, PL_LN1_W, PL_UPDATE, g->dx, g->dy,
                           k->act[ACT_X], k->act[ACT_STAT1]);
}
