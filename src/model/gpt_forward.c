/* gpt_forward.c: the forward pass of nanoGPT's GPT-2, stage by stage. Training,
 * recomputation, evaluation and decoding are made of the same stages. */
#include "kernels/kernels.h"
#include "model/gpt_builder.h"

pl_buffer_id pl_build_embed(builder *b, pl_buffer_id tokens)
{
    pl_buffer_id x = pl_build_activation(b, -1, "embedding", STAGE_OUT, PL_F32,
                                         b->s->C);
    pl_step *step = pl_build_dropped(b, PL_OP_EMBED, -1, PL_DROP_EMBED);
    step->cols = b->s->C;
    pl_step_arg(step, PL_ARG_EMBED_X, x);
    pl_step_arg(step, PL_ARG_EMBED_TOKENS, tokens);
    pl_step_arg(step, PL_ARG_EMBED_WTE, pl_build_weight(b, PL_WTE, -1));
    pl_step_arg(step, PL_ARG_EMBED_WPE, pl_build_weight(b, PL_WPE, -1));
    pl_step_arg(step, PL_ARG_EMBED_POSITIONS, b->positions);
    return x;
}

/* y = x w + bias. */
static pl_step *matmul(builder *b, int layer, pl_param_kind weight,
                       pl_buffer_id y, pl_buffer_id x)
{
    pl_param param = pl_param_at(b->s, pl_param_slot(b->s, weight, layer));
    pl_step *step = pl_build_step(b, PL_OP_MATMUL, layer);
    step->inner = param.in;
    step->cols = param.out;
    if (param.layout == PL_LAYOUT_OUT_IN)
        step->flags |= PL_STEP_OUT_IN;
    pl_build_rows(b, step, PL_ARG_MATMUL_Y, y);
    pl_build_rows(b, step, PL_ARG_MATMUL_X, x);
    pl_step_arg(step, PL_ARG_MATMUL_W, pl_build_operand(b, weight, layer));
    pl_step_arg(step, PL_ARG_MATMUL_BIAS,
                pl_build_weight(b, pl_param_bias(weight), layer));
    return step;
}

/* y = from + drop(x w + bias). */
static void matmul_onto(builder *b, int layer, pl_param_kind weight,
                        pl_buffer_id y, pl_buffer_id x, pl_buffer_id from,
                        unsigned site)
{
    pl_step *step = matmul(b, layer, weight, y, x);
    step->site = site;
    step->dropout = b->dropout;
    pl_build_rows(b, step, PL_ARG_MATMUL_RESIDUAL, from);
}

void pl_build_norm1(builder *b, int layer, block *k)
{
    pl_build_act(b, layer, k, ACT_LN1);
    pl_build_act(b, layer, k, ACT_STAT1);
    pl_build_norm(b, layer, PL_LN1_W, k->act[ACT_LN1], k->act[ACT_STAT1],
                  k->act[ACT_X]);
}

void pl_build_qkv(builder *b, int layer, block *k)
{
    pl_build_act(b, layer, k, ACT_QKV);
    matmul(b, layer, PL_QKV_W, k->act[ACT_QKV], k->act[ACT_LN1]);
    pl_build_rotation(b, layer, k->act[ACT_QKV]);
}

/* Decoding: this round's keys and values join the cache, and attention reads
 * them there. */
static void attend_cached(builder *b, int layer, block *k)
{
    pl_buffer_id cache = b->cache[layer];
    pl_step *step = pl_build_step(b, PL_OP_CACHE_APPEND, layer);
    pl_build_head_sizes(b, step);
    pl_step_arg(step, PL_ARG_CACHE_APPEND_CACHE, cache);
    pl_step_arg(step, PL_ARG_CACHE_APPEND_QKV, pl_build_heads(b, k));
    pl_step_arg(step, PL_ARG_CACHE_APPEND_POSITIONS, b->positions);
    pl_buffer_id scratch = pl_build_scratch(b, layer, PL_OP_ATTENTION_CACHED,
                                            k->act[ACT_ATT]);
    step = pl_build_step(b, PL_OP_ATTENTION_CACHED, layer);
    pl_build_head_sizes(b, step);
    pl_step_arg(step, PL_ARG_ATTENTION_CACHED_ATT, k->act[ACT_ATT]);
    pl_step_arg(step, PL_ARG_ATTENTION_CACHED_QKV, pl_build_heads(b, k));
    pl_step_arg(step, PL_ARG_ATTENTION_CACHED_CACHE, cache);
    pl_step_arg(step, PL_ARG_ATTENTION_CACHED_SCRATCH, scratch);
    pl_step_arg(step, PL_ARG_ATTENTION_CACHED_POSITIONS, b->positions);
}

void pl_build_att(builder *b, int layer, block *k)
{
    pl_build_act(b, layer, k, ACT_ATT);
    if (b->cache) {
        attend_cached(b, layer, k);
        return;
    }
    pl_build_act(b, layer, k, ACT_LSE);
    pl_buffer_id scratch = pl_build_scratch(b, layer, PL_OP_ATTENTION,
                                            k->act[ACT_ATT]);
    pl_step *step = pl_build_dropped(b, PL_OP_ATTENTION, layer,
                                     PL_DROP_ATTENTION);
    pl_build_head_sizes(b, step);
    pl_step_arg(step, PL_ARG_ATTENTION_ATT, k->act[ACT_ATT]);
    pl_step_arg(step, PL_ARG_ATTENTION_LSE, k->act[ACT_LSE]);
    pl_step_arg(step, PL_ARG_ATTENTION_QKV, pl_build_heads(b, k));
    pl_step_arg(step, PL_ARG_ATTENTION_SCRATCH, scratch);
}

void pl_build_mid(builder *b, int layer, block *k)
{
    pl_build_act(b, layer, k, ACT_MID);
    matmul_onto(b, layer, PL_ATT_W, k->act[ACT_MID], k->act[ACT_ATT],
                k->act[ACT_X], PL_DROP_ATTENTION_OUT);
}

void pl_build_norm2(builder *b, int layer, block *k)
{
    pl_build_act(b, layer, k, ACT_LN2);
    pl_build_act(b, layer, k, ACT_STAT2);
    pl_build_norm(b, layer, PL_LN2_W, k->act[ACT_LN2], k->act[ACT_STAT2],
                  k->act[ACT_MID]);
}

/* And its GELU with it; that alone, where nobody asks for what it is of. SwiGLU
 * joins columns that are far apart: it is a step of its own. */
void pl_build_fc(builder *b, int layer, block *k)
{
    const int asked = b->again || b->keeps & 1u << STAGE_FC;
    if (b->s->mlp == PL_MLP_SWIGLU) {
        pl_build_act(b, layer, k, ACT_FC);
        matmul(b, layer, PL_FC_W, k->act[ACT_FC], k->act[ACT_LN2]);
        return;
    }
    if (asked)
        pl_build_act(b, layer, k, ACT_FC);
    pl_build_act(b, layer, k, ACT_GELU);
    pl_step *step = matmul(b, layer, PL_FC_W, k->act[asked ? ACT_FC : ACT_GELU],
                           k->act[ACT_LN2]);
    if (asked)
        pl_build_rows(b, step, PL_ARG_MATMUL_GELU, k->act[ACT_GELU]);
    else
        step->flags |= PL_STEP_GELU;
    k->have |= 1u << STAGE_GELU;
}

void pl_build_gelu(builder *b, int layer, block *k)
{
    const int gated = b->s->mlp == PL_MLP_SWIGLU;
    pl_build_act(b, layer, k, ACT_GELU);
    pl_step *step = pl_build_step(b, gated ? PL_OP_GLU : PL_OP_GELU, layer);
    step->cols = b->s->F;
    if (gated) {
        pl_build_rows(b, step, PL_ARG_GLU_Y, k->act[ACT_GELU]);
        pl_build_rows(b, step, PL_ARG_GLU_X, k->act[ACT_FC]);
        return;
    }
    pl_build_rows(b, step, PL_ARG_GELU_Y, k->act[ACT_GELU]);
    pl_build_rows(b, step, PL_ARG_GELU_X, k->act[ACT_FC]);
}

void pl_build_out(builder *b, int layer, block *k)
{
    pl_build_act(b, layer, k, ACT_OUT);
    matmul_onto(b, layer, PL_MLP_W, k->act[ACT_OUT], k->act[ACT_GELU],
                k->act[ACT_MID], PL_DROP_MLP_OUT);
}

void pl_build_softcap(builder *b, pl_buffer_id logits)
{
    if (b->s->logit_softcap <= 0.0)
        return;
    pl_step *step = pl_build_step(b, PL_OP_SOFTCAP, -1);
    step->cols = b->s->V;
    pl_step_arg(step, PL_ARG_SOFTCAP_X, logits);
}

pl_buffer_id pl_build_lnf(builder *b, pl_buffer_id x, size_t rows,
                          pl_buffer_id *stats)
{
    pl_buffer_id y = pl_build_buffer(b, -1, "lnf", PL_CLASS_TRANSIENT,
                                     b->gpt->layout.dtype, rows, b->s->C);
    *stats = pl_build_buffer(b, -1, "lnf.stats", PL_CLASS_TRANSIENT, PL_F32,
                             rows, pl_dim_size(b->s, PL_DIM_STATS));
    pl_build_norm(b, -1, PL_LNF_W, y, *stats, x);
    return y;
}
