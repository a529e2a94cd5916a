/* gpt_backward.c: the gradients of a block. What its level did not keep is
 * computed again by the very stages of gpt_forward.c, just before it is read.
 */
#include "kernels/kernels.h"
#include "model/gpt_builder.h"

/* dx = dy w^T for the product y = x w. */
static pl_step *matmul_dx(builder *b, int layer, pl_param_kind weight,
                          pl_buffer_id dx, pl_buffer_id dy)
{
    pl_param param = pl_param_at(b->s, pl_param_slot(b->s, weight, layer));
    pl_step *step = pl_build_step(b, PL_OP_MATMUL_T, layer);
    step->cols = param.rows;
    step->inner = param.cols;
    pl_build_rows(b, step, PL_ARG_MATMUL_T_Y, dx);
    pl_build_rows(b, step, PL_ARG_MATMUL_T_X, dy);
    pl_step_arg(step, PL_ARG_MATMUL_T_W, pl_build_factor(b, weight, layer));
    return step;
}

/* The gradient behind a dropped residual branch: dx itself without dropout. */
static pl_buffer_id behind_dropout(builder *b, int layer, const char *what,
                                   unsigned site, pl_buffer_id dx)
{
    if (b->dropout <= 0.0)
        return dx;
    pl_buffer_id dy = pl_build_buffer(b, layer, what, PL_CLASS_TRANSIENT,
                                      PL_F32, b->rows, b->s->C);
    pl_step *step = pl_build_dropped(b, PL_OP_DROP, layer, site);
    step->cols = b->s->C;
    pl_step_arg(step, PL_ARG_DROP_Y, dy);
    pl_step_arg(step, PL_ARG_DROP_X, dx);
    return dy;
}

void pl_build_layernorm_backward(builder *b, int layer, pl_param_kind weight,
                                 pl_access how, pl_buffer_id dx,
                                 pl_buffer_id dy, pl_buffer_id x,
                                 pl_buffer_id stats)
{
    pl_step *step = pl_build_step(b, PL_OP_LAYERNORM_BWD, layer);
    step->cols = b->s->C;
    pl_build_rows(b, step, PL_ARG_LAYERNORM_BWD_DX, dx);
    pl_step_access(step, PL_ARG_LAYERNORM_BWD_DX, how);
    pl_step_arg(step, PL_ARG_LAYERNORM_BWD_DWEIGHT,
                pl_build_gradient(b, weight, layer));
    pl_step_arg(step, PL_ARG_LAYERNORM_BWD_DBIAS,
                pl_build_gradient(b, (pl_param_kind)(weight + 1), layer));
    pl_build_rows(b, step, PL_ARG_LAYERNORM_BWD_DY, dy);
    pl_build_rows(b, step, PL_ARG_LAYERNORM_BWD_X, x);
    pl_build_rows(b, step, PL_ARG_LAYERNORM_BWD_STATS, stats);
    pl_step_arg(step, PL_ARG_LAYERNORM_BWD_WEIGHT,
                pl_build_weight(b, weight, layer));
}

static pl_buffer_id gradient_of(builder *b, int layer, const char *what,
                                size_t cols)
{
    return pl_build_buffer(b, layer, what, PL_CLASS_TRANSIENT, PL_F32,
                           b->chunk ? b->chunk : b->rows, cols);
}

/* One chunk of rows of the MLP's gradients, from dy to dx. */
static void mlp_backward_rows(builder *b, int layer, block *k, const block *had,
                              pl_buffer_id dfc, pl_buffer_id dln2,
                              pl_buffer_id dy, pl_buffer_id dx)
{
    if (had->fc == PL_NO_BUFFER) {
        pl_build_ln2(b, layer, k);
        pl_build_fc(b, layer, k);
    } else if (had->gelu == PL_NO_BUFFER) {
        pl_build_gelu(b, layer, k);
    }
    pl_build_matmul_gradients(b, layer, PL_MLP_W, k->gelu, dy);
    pl_step *step = matmul_dx(b, layer, PL_MLP_W, dfc, dy);
    pl_build_rows(b, step, PL_ARG_MATMUL_T_FC, k->fc); /* dfc *= GELU'(fc) */
    if (had->ln2 == PL_NO_BUFFER && had->fc != PL_NO_BUFFER)
        pl_build_ln2(b, layer, k);
    pl_build_matmul_gradients(b, layer, PL_FC_W, k->ln2, dfc);
    matmul_dx(b, layer, PL_FC_W, dln2, dfc);
    pl_build_layernorm_backward(b, layer, PL_LN2_W, PL_UPDATE, dx, dln2, k->mid,
                                k->stat2);
}

static void mlp_backward(builder *b, int layer, block *k, pl_buffer_id dx)
{
    pl_buffer_id dy = behind_dropout(b, layer, "mlp.dy", PL_DROP_MLP_OUT, dx);
    const block had = *k;
    pl_build_begin_chunks(b);
    pl_buffer_id dfc = gradient_of(b, layer, "dfc", 4 * b->s->C);
    pl_buffer_id dln2 = gradient_of(b, layer, "dln2", b->s->C);
    do {
        mlp_backward_rows(b, layer, k, &had, dfc, dln2, dy, dx);
    } while (pl_build_next_chunk(b));
}

static void attention_backward(builder *b, int layer, block *k, pl_buffer_id dx)
{
    pl_buffer_id dy = behind_dropout(b, layer, "att.dy", PL_DROP_ATTENTION_OUT,
                                     dx);
    pl_build_matmul_gradients(b, layer, PL_ATT_W, k->att, dy);
    pl_buffer_id datt = gradient_of(b, layer, "datt", b->s->A);
    matmul_dx(b, layer, PL_ATT_W, datt, dy);
    pl_buffer_id dqkv = gradient_of(b, layer, "dqkv", 3 * b->s->A);
    pl_buffer_id scratch = pl_build_scratch(b, layer, PL_OP_ATTENTION_BWD);
    pl_step *step = pl_build_dropped(b, PL_OP_ATTENTION_BWD, layer,
                                     PL_DROP_ATTENTION);
    step->heads = b->s->H;
    step->inner = b->s->D;
    pl_step_arg(step, PL_ARG_ATTENTION_BWD_DQKV, dqkv);
    pl_step_arg(step, PL_ARG_ATTENTION_BWD_DATT, datt);
    pl_step_arg(step, PL_ARG_ATTENTION_BWD_QKV, k->qkv);
    pl_step_arg(step, PL_ARG_ATTENTION_BWD_ATT, k->att);
    pl_step_arg(step, PL_ARG_ATTENTION_BWD_LSE, k->lse);
    pl_step_arg(step, PL_ARG_ATTENTION_BWD_SCRATCH, scratch);
    if (k->ln1 == PL_NO_BUFFER)
        pl_build_ln1(b, layer, k);
    pl_build_matmul_gradients(b, layer, PL_QKV_W, k->ln1, dqkv);
    pl_buffer_id dln1 = gradient_of(b, layer, "dln1", b->s->C);
    matmul_dx(b, layer, PL_QKV_W, dln1, dqkv);
    pl_build_layernorm_backward(b, layer, PL_LN1_W, PL_UPDATE, dx, dln1, k->x,
                                k->stat1);
}

void pl_build_block_backward(builder *b, int layer, block *k, pl_buffer_id dx)
{
    b->keeps = 0;
    if (k->mid == PL_NO_BUFFER) {
        pl_build_ln1(b, layer, k);
        pl_build_qkv(b, layer, k);
        pl_build_att(b, layer, k);
        pl_build_mid(b, layer, k);
        k->ln1 = PL_NO_BUFFER; /* cheaper to compute again than to keep */
    }
    mlp_backward(b, layer, k, dx);
    attention_backward(b, layer, k, dx);
}
