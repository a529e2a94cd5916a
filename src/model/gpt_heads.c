/* gpt_heads.c: what is done to queries and keys between their product and
 * attention. A rotation alone is in place, and its way back too: it keeps
 * nothing. RMSNorm needs its input again, so with qk_norm what attention reads
 * is a buffer of its own, which a level may leave to be made again from qkv. */
#include "model/gpt_builder.h"

static int is_normed(const builder *b)
{
    return b->s->qk_norm == PL_QK_NORM_RMS;
}

static int is_rotated(const builder *b)
{
    return b->s->position == PL_POSITION_ROTARY;
}

void pl_build_head_sizes(const builder *b, pl_step *step)
{
    step->heads = b->s->H;
    step->kv = b->s->KV;
    step->inner = b->s->D;
}

pl_buffer_id pl_build_heads(const builder *b, const block *k)
{
    return k->act[is_normed(b) ? ACT_QK : ACT_QKV];
}

/* A step whose y is `y`, made of itself if there is no x. */
static pl_step *qk(builder *b, int layer, pl_buffer_id y, pl_buffer_id x)
{
    pl_step *step = pl_build_step(b, PL_OP_QK, layer);
    pl_build_head_sizes(b, step);
    pl_step_arg(step, PL_ARG_QK_Y, y);
    pl_step_access(step, PL_ARG_QK_Y, x == PL_NO_BUFFER ? PL_UPDATE : PL_WRITE);
    pl_step_arg(step, PL_ARG_QK_X, x);
    pl_step_arg(step, PL_ARG_QK_TABLE, b->gpt->rotary);
    if (is_rotated(b))
        pl_step_arg(step, PL_ARG_QK_POSITIONS, b->positions);
    return step;
}

void pl_build_rotation(builder *b, int layer, pl_buffer_id qkv)
{
    if (is_rotated(b) && !is_normed(b))
        qk(b, layer, qkv, PL_NO_BUFFER);
}

void pl_build_qk(builder *b, int layer, block *k)
{
    if (!is_normed(b))
        return; /* the product's stage has rotated them */
    pl_build_act(b, layer, k, ACT_QK);
    pl_build_act(b, layer, k, ACT_ROOTS);
    pl_step *step = qk(b, layer, k->act[ACT_QK], k->act[ACT_QKV]);
    pl_step_arg(step, PL_ARG_QK_RSTD, k->act[ACT_ROOTS]);
    pl_step_arg(step, PL_ARG_QK_Q_WEIGHT,
                pl_build_weight(b, PL_QNORM_W, layer));
    pl_step_arg(step, PL_ARG_QK_K_WEIGHT,
                pl_build_weight(b, PL_KNORM_W, layer));
}

/* The weights first: the other step writes in place of what this one reads. */
static void weights_backward(builder *b, int layer, const block *k,
                             pl_buffer_id dqkv)
{
    pl_step *step = pl_build_step(b, PL_OP_QK_DW, layer);
    pl_build_head_sizes(b, step);
    pl_step_arg(step, PL_ARG_QK_DW_DQ_WEIGHT,
                pl_build_gradient(b, PL_QNORM_W, layer));
    pl_step_arg(step, PL_ARG_QK_DW_DK_WEIGHT,
                pl_build_gradient(b, PL_KNORM_W, layer));
    pl_step_arg(step, PL_ARG_QK_DW_D, dqkv);
    pl_step_arg(step, PL_ARG_QK_DW_X, k->act[ACT_QKV]);
    pl_step_arg(step, PL_ARG_QK_DW_RSTD, k->act[ACT_ROOTS]);
    pl_step_arg(step, PL_ARG_QK_DW_TABLE, b->gpt->rotary);
}

void pl_build_heads_backward(builder *b, int layer, const block *k,
                             pl_buffer_id dqkv)
{
    if (is_normed(b))
        weights_backward(b, layer, k, dqkv);
    else if (!is_rotated(b))
        return;
    pl_step *step = pl_build_step(b, PL_OP_QK_BWD, layer);
    pl_build_head_sizes(b, step);
    pl_step_arg(step, PL_ARG_QK_BWD_D, dqkv);
    pl_step_arg(step, PL_ARG_QK_BWD_TABLE, b->gpt->rotary);
    if (!is_normed(b))
        return;
    pl_step_arg(step, PL_ARG_QK_BWD_X, k->act[ACT_QKV]);
    pl_step_arg(step, PL_ARG_QK_BWD_RSTD, k->act[ACT_ROOTS]);
    pl_step_arg(step, PL_ARG_QK_BWD_Q_WEIGHT,
                pl_build_weight(b, PL_QNORM_W, layer));
    pl_step_arg(step, PL_ARG_QK_BWD_K_WEIGHT,
                pl_build_weight(b, PL_KNORM_W, layer));
}
