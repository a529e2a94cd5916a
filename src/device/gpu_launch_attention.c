/* gpu_launch_attention.c: the attention of gpu_launch.h. */
#include "device/gpu_launch_parts.h"

#include <math.h>

enum { ATT_TILE = 64, ATT_WIDE = 128, ATT_FEW = 16 };

static float scale_of(size_t D)
{
    return (float)(1.0 / sqrt((double)D));
}

/* Attention by tensor cores. */
static void launch_attention_tensor(pl_gpu_stream *stream,
                                    const pl_attention *args, gpu_attention *g)
{
    const int deep = args->D > ATT_TILE;
    PL_CHECK(args->products == stream->tensor);
    g->vector = args->D % 8 == 0 && args->q_row % 8 == 0 &&
                args->kv_row % 8 == 0 && g->q % 16 == 0 && g->k % 16 == 0 &&
                g->v % 16 == 0 && is_aligned(args->out, args->out_storage, 0);
    launch(stream,
           deep ? PL_GPU_attention_tensor_deep : PL_GPU_attention_tensor,
           args->B * args->H,
           ceil_div(args->queries, ATT_TILE) *
               ceil_div(args->D, deep ? ATT_WIDE : ATT_TILE),
           g);
}

void pl_gpu_attention(pl_gpu_stream *stream, const pl_attention *args)
{
    const size_t D = args->D;
    const pl_storage kept = args->qkv_storage;
    gpu_attention g = {
        .out = address(args->out),
        .lse = address(args->lse),
        .q = address(args->q),
        .k = address(args->k),
        .v = address(args->v),
        .positions = address(args->positions),
        .q_row = word(args->q_row),
        .kv_row = word(args->kv_row),
        .B = word(args->B),
        .queries = word(args->queries),
        .keys = word(args->keys),
        .first = word(args->first),
        .H = word(args->H),
        .KV = word(args->KV),
        .D = word(D),
        .qkv_storage = (uint32_t)kept,
        .out_storage = (uint32_t)args->out_storage,
        .vector = D % 4 == 0 && is_aligned(args->q, kept, args->q_row) &&
                  is_aligned(args->k, kept, args->kv_row) &&
                  is_aligned(args->v, kept, args->kv_row) &&
                  is_aligned(args->out, args->out_storage, 0),
        .scale = scale_of(D),
        .dropout = dropout_of(&args->dropout),
    };
    const int plain = g.vector && kept == PL_STORE_F32,
              few = args->queries <= ATT_FEW, wide = plain && D > ATT_TILE;
    const size_t tall = few ? ATT_FEW : ATT_TILE,
                 part = few || wide ? ATT_WIDE : ATT_TILE;
    if (D == 0)
        return;
    if (pl_products_of(args->products, kept, kept)) {
        launch_attention_tensor(stream, args, &g);
        return;
    }
    launch(stream,
           few     ? PL_GPU_attention_few
           : wide  ? PL_GPU_attention_wide
           : plain ? PL_GPU_attention
                   : PL_GPU_attention_any,
           args->B * args->H, ceil_div(args->queries, tall) * ceil_div(D, part),
           &g);
}

size_t pl_gpu_attention_bwd_scratch(size_t B, size_t T, size_t H)
{
    return B * T * H * sizeof(float);
}

static void launch_attention_bwd_tensor(pl_gpu_stream *stream,
                                        const pl_attention_bwd *args,
                                        gpu_attention_bwd *g)
{
    const int deep = args->D > ATT_TILE;
    const size_t tiles = ceil_div(args->T, ATT_TILE);
    PL_CHECK(args->products == stream->tensor);
    g->vector = args->D % 8 == 0 && g->qkv % 16 == 0 && g->dout % 16 == 0 &&
                is_aligned(args->dqkv, args->dqkv_storage, 0);
    launch(stream,
           deep ? PL_GPU_attention_dq_tensor_deep : PL_GPU_attention_dq_tensor,
           args->B * args->H,
           tiles * ceil_div(args->D, deep ? ATT_WIDE : ATT_TILE), g);
    launch(stream,
           deep ? PL_GPU_attention_dkv_tensor_deep
                : PL_GPU_attention_dkv_tensor,
           args->B * args->KV, tiles * ceil_div(args->D, ATT_TILE), g);
}

void pl_gpu_attention_bwd(pl_gpu_stream *stream, const pl_attention_bwd *args)
{
    const size_t D = args->D, T = args->T;
    gpu_attention_bwd g = {
        .dqkv = address(args->dqkv),
        .dout = address(args->dout),
        .qkv = address(args->qkv),
        .out = address(args->out),
        .lse = address(args->lse),
        .delta = address(args->scratch),
        .B = word(args->B),
        .T = word(T),
        .H = word(args->H),
        .KV = word(args->KV),
        .D = word(D),
        .qkv_storage = (uint32_t)args->qkv_storage,
        .out_storage = (uint32_t)args->out_storage,
        .dout_storage = (uint32_t)args->dout_storage,
        .dqkv_storage = (uint32_t)args->dqkv_storage,
        .vector = D % 4 == 0 && is_aligned(args->qkv, args->qkv_storage, 0) &&
                  is_aligned(args->dqkv, args->dqkv_storage, 0) &&
                  is_aligned(args->dout, args->dout_storage, 0) &&
                  is_aligned(args->out, args->out_storage, 0),
        .scale = scale_of(D),
        .dropout = dropout_of(&args->dropout),
    };
    const int plain = g.vector && !args->qkv_storage && !args->dout_storage;
    const size_t tiles = ceil_div(T, ATT_TILE) * ceil_div(D, ATT_TILE);
    if (D == 0)
        return;
    launch(stream, PL_GPU_attention_delta,
           ceil_div(args->B * args->H * T, LANE_ROWS), 1, &g);
    if (pl_products_of(args->products, args->qkv_storage, args->dout_storage)) {
        launch_attention_bwd_tensor(stream, args, &g);
        return;
    }
    launch(stream, plain ? PL_GPU_attention_dq : PL_GPU_attention_dq_any,
           args->B * args->H, tiles, &g);
    launch(stream, plain ? PL_GPU_attention_dkv : PL_GPU_attention_dkv_any,
           args->B * args->KV, tiles, &g);
}
