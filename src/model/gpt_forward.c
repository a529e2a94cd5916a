/* gpt_forward.c: the forward pass of nanoGPT's GPT-2, stage by stage. Training,
 * recomputation, evaluation and decoding are made of the same stages. */
#include "kernels/kernels.h"
#include "model/gpt_builder.h"

pl_buffer_id pl_build_embed(builder *b, pl_buffer_id tokens)
{
    pl_buffer_id x = pl_build_activation(b, -1, "embedding", KEEP_X, PL_F32,
                                         b->s->C);
    pl_step *step = pl_build_dropped(b, PL_OP_EMBED, -1, PL_DROP_EMBED);
    step->cols = b->s->C;
    pl_step_arg(step, PL_ARG_EMBED_X, x);
    pl_step_arg(step, PL_ARG_EMBED_TOKENS, tokens);
    pl_step_arg(step, PL_ARG_EMBED_WTE, pl_build_weight(b, PL_WTE, -1));
    pl_step_arg(step, PL_ARG_EMBED_WPE, pl_build_weight(b, PL_WPE, -1));
    return x;
}

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
                pl_build_weight(b, (pl_param_kind)(weight + 1), layer));
}

/* y = x w + bias; the bias is the table's next row. */
static pl_step *matmul(builder *b, int layer, pl_param_kind weight,
                       pl_buffer_id y, pl_buffer_id x)
{
    pl_param param = pl_param_at(b->s, pl_param_slot(b->s, weight, layer));
    pl_step *step = pl_build_step(b, PL_OP_MATMUL, layer);
    step->inner = param.rows;
    step->cols = param.cols;
    pl_build_rows(b, step, PL_ARG_MATMUL_Y, y);
    pl_build_rows(b, step, PL_ARG_MATMUL_X, x);
    pl_step_arg(step, PL_ARG_MATMUL_W, pl_build_factor(b, weight, layer));
    pl_step_arg(step, PL_ARG_MATMUL_BIAS,
                pl_build_weight(b, (pl_param_kind)(weight + 1), layer));
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

void pl_build_ln1(builder *b, int layer, block *k)
{
    k->ln1 = pl_build_activation(b, layer, "ln1", KEEP_LN1,
                                 b->gpt->layout.dtype, b->s->C);
    k->stat1 = pl_build_activation(b, layer, "ln1.stats", KEEP_LN1, PL_F32, 2);
    layernorm(b, layer, PL_LN1_W, k->ln1, k->stat1, k->x);
}

void pl_build_qkv(builder *b, int layer, block *k)
{
    k->qkv = pl_build_activation(b, layer, "qkv", KEEP_QKV,
                                 b->gpt->layout.dtype, 3 * b->s->A);
    matmul(b, layer, PL_QKV_W, k->qkv, k->ln1);
}

/* Decoding: this round's keys and values join the cache, and attention reads
 * them there. */
static void attend_cached(builder *b, int layer, block *k)
{
    pl_buffer_id cache = b->cache[layer];
    pl_step *step = pl_build_step(b, PL_OP_CACHE_APPEND, layer);
    step->heads = b->s->H;
    step->inner = b->s->D;
    pl_step_arg(step, PL_ARG_CACHE_APPEND_CACHE, cache);
    pl_step_arg(step, PL_ARG_CACHE_APPEND_QKV, k->qkv);
    pl_buffer_id scratch = pl_build_scratch(b, layer, PL_OP_ATTENTION_CACHED);
    step = pl_build_step(b, PL_OP_ATTENTION_CACHED, layer);
    step->heads = b->s->H;
    step->inner = b->s->D;
    pl_step_arg(step, PL_ARG_ATTENTION_CACHED_ATT, k->att);
    pl_step_arg(step, PL_ARG_ATTENTION_CACHED_QKV, k->qkv);
    pl_step_arg(step, PL_ARG_ATTENTION_CACHED_CACHE, cache);
    pl_step_arg(step, PL_ARG_ATTENTION_CACHED_SCRATCH, scratch);
}

void pl_build_att(builder *b, int layer, block *k)
{
    k->att = pl_build_activation(b, layer, "att", KEEP_ATT,
                                 b->gpt->layout.dtype, b->s->A);
    if (b->cache) {
        attend_cached(b, layer, k);
        return;
    }
    k->lse = pl_build_activation(b, layer, "att.lse", KEEP_ATT, PL_F32,
                                 b->s->H);
    pl_buffer_id scratch = pl_build_scratch(b, layer, PL_OP_ATTENTION);
    pl_step *step = pl_build_dropped(b, PL_OP_ATTENTION, layer,
                                     PL_DROP_ATTENTION);
    step->heads = b->s->H;
    step->inner = b->s->D;
    pl_step_arg(step, PL_ARG_ATTENTION_ATT, k->att);
    pl_step_arg(step, PL_ARG_ATTENTION_LSE, k->lse);
    pl_step_arg(step, PL_ARG_ATTENTION_QKV, k->qkv);
    pl_step_arg(step, PL_ARG_ATTENTION_SCRATCH, scratch);
}

void pl_build_mid(builder *b, int layer, block *k)
{
    k->mid = pl_build_activation(b, layer, "mid", KEEP_MID, PL_F32, b->s->C);
    matmul_onto(b, layer, PL_ATT_W, k->mid, k->att, k->x,
                PL_DROP_ATTENTION_OUT);
}

void pl_build_ln2(builder *b, int layer, block *k)
{
    if (k->ln2 == PL_NO_BUFFER) {
        k->ln2 = pl_build_activation(b, layer, "ln2", KEEP_LN2,
                                     b->gpt->layout.dtype, b->s->C);
        k->stat2 = pl_build_activation(b, layer, "ln2.stats", KEEP_LN2, PL_F32,
                                       2);
    }
    layernorm(b, layer, PL_LN2_W, k->ln2, k->stat2, k->mid);
}

static void make_fc(builder *b, int layer, block *k)
{
    if (k->fc == PL_NO_BUFFER)
        k->fc = pl_build_activation(b, layer, "fc", KEEP_FC,
                                    b->gpt->layout.dtype, 4 * b->s->C);
}

static void make_gelu(builder *b, int layer, block *k)
{
    if (k->gelu == PL_NO_BUFFER)
        k->gelu = pl_build_activation(b, layer, "gelu", KEEP_GELU,
                                      b->gpt->layout.dtype, 4 * b->s->C);
}

void pl_build_fc(builder *b, int layer, block *k)
{
    make_fc(b, layer, k);
    make_gelu(b, layer, k);
    pl_step *step = matmul(b, layer, PL_FC_W, k->fc, k->ln2);
    pl_build_rows(b, step, PL_ARG_MATMUL_GELU, k->gelu);
}

void pl_build_gelu(builder *b, int layer, block *k)
{
    make_gelu(b, layer, k);
    pl_step *step = pl_build_step(b, PL_OP_GELU, layer);
    step->cols = 4 * b->s->C;
    pl_build_rows(b, step, PL_ARG_GELU_Y, k->gelu);
    pl_build_rows(b, step, PL_ARG_GELU_X, k->fc);
}

/* The GELU alone, where nobody asks for what it is of. */
static void gelu_of_fc(builder *b, int layer, block *k)
{
    make_gelu(b, layer, k);
    pl_step *step = matmul(b, layer, PL_FC_W, k->gelu, k->ln2);
    step->flags |= PL_STEP_GELU;
}

/* mid to out, in chunks of rows unless all of it is kept anyway. */
static void mlp(builder *b, int layer, block *k, pl_buffer_id out)
{
    const unsigned all = KEEP_LN2 | KEEP_FC | KEEP_GELU;
    if ((b->keeps & all) != all)
        pl_build_begin_chunks(b);
    do {
        pl_build_ln2(b, layer, k);
        if (b->keeps & KEEP_FC)
            pl_build_fc(b, layer, k);
        else
            gelu_of_fc(b, layer, k);
        matmul_onto(b, layer, PL_MLP_W, out, k->gelu, k->mid, PL_DROP_MLP_OUT);
    } while (pl_build_next_chunk(b));
}

pl_buffer_id pl_build_block(builder *b, int layer, pl_buffer_id x, block *k)
{
    *k = (block){
        .x = x, .ln2 = PL_NO_BUFFER, .fc = PL_NO_BUFFER, .gelu = PL_NO_BUFFER
    };
    pl_build_ln1(b, layer, k);
    pl_build_qkv(b, layer, k);
    pl_build_att(b, layer, k);
    pl_build_mid(b, layer, k);
    pl_buffer_id out = pl_build_activation(b, layer, "out", KEEP_X, PL_F32,
                                           b->s->C);
    mlp(b, layer, k, out);
    return out;
}

pl_buffer_id pl_build_lnf(builder *b, pl_buffer_id x, size_t rows,
                          pl_buffer_id *stats)
{
    pl_buffer_id y = pl_build_buffer(b, -1, "lnf", PL_CLASS_TRANSIENT,
                                     b->gpt->layout.dtype, rows, b->s->C);
    *stats = pl_build_buffer(b, -1, "lnf.stats", PL_CLASS_TRANSIENT, PL_F32,
                             rows, 2);
    layernorm(b, -1, PL_LNF_W, y, *stats, x);
    return y;
}
