/* gpu_launch.c: see gpu_launch.h. */
#include "device/gpu_launch.h"
#include "device/gpu_launch_parts.h"

#include <string.h>

const pl_gpu_kernel_info pl_gpu_kernels[PL_GPU_KERNEL_COUNT] = {
#define ROW(name, items, type) [PL_GPU_##name] = { #name, items, sizeof(type) },
    PL_GPU_KERNELS(ROW)
#undef ROW
#define ROW(name, items, type)                                                 \
    [PL_GPU_##name] = { #name, items, sizeof(type), 1, GPU_TENSOR_LOCAL },
        PL_GPU_LARGE_TENSOR_KERNELS(ROW)
#undef ROW
#define ROW(name, items, type)                                                 \
    [PL_GPU_##name] = { #name, items, sizeof(type), 1, 0 },
            PL_GPU_SMALL_TENSOR_KERNELS(ROW)
#undef ROW
};

void pl_gpu_column_sum(pl_gpu_stream *stream, const pl_column_sum *args)
{
    const gpu_column_sum g = { .sum = address(args->sum),
                               .x = address(args->x),
                               .rows = word(args->rows),
                               .C = word(args->C),
                               .x_storage = (uint32_t)args->x_storage };
    launch(stream, PL_GPU_column_sum, ceil_div(args->C, 32), 1, &g);
}

/* ---- embedding ---- */

void pl_gpu_embed(pl_gpu_stream *stream, const pl_embed *args)
{
    const gpu_embed g = { .x = address(args->x),
                          .tokens = address(args->tokens),
                          .positions = address(args->positions),
                          .wte = address(args->wte),
                          .wpe = address(args->wpe),
                          .token_stride = word(args->token_stride),
                          .rows = word(args->rows),
                          .T = word(args->T),
                          .C = word(args->C),
                          .position = word(args->position),
                          .wte_storage = (uint32_t)args->wte_storage,
                          .wpe_storage = (uint32_t)args->wpe_storage,
                          .dropout = dropout_of(&args->dropout) };
    launch(stream, PL_GPU_embed, args->rows, ceil_div(args->C, 256), &g);
}

void pl_gpu_embed_bwd(pl_gpu_stream *stream, const pl_embed_bwd *args)
{
    const gpu_embed_bwd g = { .dwte = address(args->dwte),
                              .dwpe = address(args->dwpe),
                              .dx = address(args->dx),
                              .tokens = address(args->tokens),
                              .token_stride = word(args->token_stride),
                              .rows = word(args->rows),
                              .T = word(args->T),
                              .C = word(args->C),
                              .dropout = dropout_of(&args->dropout) };
    const size_t wide = ceil_div(args->C, 256);
    launch(stream, PL_GPU_embed_dwte, args->rows, wide, &g);
    if (args->dwpe)
        launch(stream, PL_GPU_embed_dwpe,
               args->rows < args->T ? args->rows : args->T, wide, &g);
}

/* ---- norms ---- */

enum { NORM_COLUMNS = 32 };

void pl_gpu_layernorm(pl_gpu_stream *stream, const pl_layernorm *args)
{
    const gpu_norm g = { .y = address(args->y),
                         .stats = address(args->stats),
                         .x = address(args->x),
                         .weight = address(args->weight),
                         .bias = address(args->bias),
                         .rows = word(args->rows),
                         .C = word(args->C),
                         .y_storage = (uint32_t)args->y_storage,
                         .eps = args->eps,
                         .vector = args->C % 4 == 0 &&
                                   is_aligned(args->y, args->y_storage, 0) &&
                                   is_aligned(args->x, PL_STORE_F32, 0) &&
                                   is_aligned(args->weight, PL_STORE_F32, 0) &&
                                   is_aligned(args->bias, PL_STORE_F32, 0) };
    launch(stream, PL_GPU_layernorm, ceil_div(args->rows, LANE_ROWS), 1, &g);
}

void pl_gpu_rmsnorm(pl_gpu_stream *stream, const pl_rmsnorm *args)
{
    const gpu_norm g = { .y = address(args->y),
                         .stats = address(args->rstd),
                         .x = address(args->x),
                         .weight = address(args->weight),
                         .rows = word(args->rows),
                         .C = word(args->C),
                         .y_storage = (uint32_t)args->y_storage,
                         .eps = args->eps,
                         .vector = args->C % 4 == 0 &&
                                   is_aligned(args->y, args->y_storage, 0) &&
                                   is_aligned(args->x, PL_STORE_F32, 0) &&
                                   is_aligned(args->weight, PL_STORE_F32, 0) };
    launch(stream, PL_GPU_rmsnorm, ceil_div(args->rows, LANE_ROWS), 1, &g);
}

static uint32_t norm_vector(const gpu_norm_bwd *g, pl_storage dy_storage)
{
    return g->C % 4 == 0 && g->dx % 16 == 0 && g->x % 16 == 0 &&
           g->weight % 16 == 0 &&
           g->dy % (4 * pl_storage_bytes(dy_storage)) == 0;
}

void pl_gpu_layernorm_bwd(pl_gpu_stream *stream, const pl_layernorm_bwd *args)
{
    gpu_norm_bwd g = { .dx = address(args->dx),
                       .dweight = address(args->dweight),
                       .dbias = address(args->dbias),
                       .dy = address(args->dy),
                       .x = address(args->x),
                       .stats = address(args->stats),
                       .weight = address(args->weight),
                       .rows = word(args->rows),
                       .C = word(args->C),
                       .accumulate = (uint32_t)args->accumulate,
                       .dy_storage = (uint32_t)args->dy_storage };
    g.vector = norm_vector(&g, args->dy_storage);
    launch(stream, PL_GPU_layernorm_dx, ceil_div(args->rows, LANE_ROWS), 1, &g);
    launch(stream, PL_GPU_layernorm_dw, ceil_div(args->C, NORM_COLUMNS), 1, &g);
}

void pl_gpu_rmsnorm_bwd(pl_gpu_stream *stream, const pl_rmsnorm_bwd *args)
{
    gpu_norm_bwd g = { .dx = address(args->dx),
                       .dweight = address(args->dweight),
                       .dy = address(args->dy),
                       .x = address(args->x),
                       .stats = address(args->rstd),
                       .weight = address(args->weight),
                       .rows = word(args->rows),
                       .C = word(args->C),
                       .accumulate = (uint32_t)args->accumulate,
                       .dy_storage = (uint32_t)args->dy_storage };
    g.vector = norm_vector(&g, args->dy_storage);
    launch(stream, PL_GPU_rmsnorm_dx, ceil_div(args->rows, LANE_ROWS), 1, &g);
    launch(stream, PL_GPU_rmsnorm_dw, ceil_div(args->C, NORM_COLUMNS), 1, &g);
}

/* ---- elementwise ---- */

void pl_gpu_gelu(pl_gpu_stream *stream, const pl_gelu *args)
{
    const gpu_gelu g = { .y = address(args->y),
                         .x = address(args->x),
                         .count = args->count,
                         .gelu = (uint32_t)args->kind,
                         .y_storage = (uint32_t)args->y_storage,
                         .x_storage = (uint32_t)args->x_storage };
    launch(stream, PL_GPU_gelu, ceil_div(args->count, 256), 1, &g);
}

void pl_gpu_drop(pl_gpu_stream *stream, const pl_drop *args)
{
    const gpu_drop g = { .y = address(args->y),
                         .x = address(args->x),
                         .rows = word(args->rows),
                         .T = word(args->T),
                         .C = word(args->C),
                         .y_storage = (uint32_t)args->y_storage,
                         .dropout = dropout_of(&args->dropout) };
    launch(stream, PL_GPU_drop, args->rows, ceil_div(args->C, 256), &g);
}

void pl_gpu_copy(pl_gpu_stream *stream, const pl_copy *args)
{
    const gpu_copy g = { .y = address(args->y),
                         .x = address(args->x),
                         .rows = word(args->rows),
                         .C = word(args->C),
                         .y_row = word(args->y_row),
                         .x_row = word(args->x_row),
                         .bytes = (uint32_t)pl_storage_bytes(args->storage),
                         .positions = address(args->positions),
                         .queries = word(args->queries),
                         .keys = word(args->keys) };
    launch(stream, PL_GPU_copy, args->rows, ceil_div(args->C, 256), &g);
}

void pl_gpu_add(pl_gpu_stream *stream, const pl_add *args)
{
    const gpu_floats g = { address(args->y), address(args->x), args->count };
    launch(stream, PL_GPU_add, ceil_div(args->count, 256), 1, &g);
}

void pl_gpu_move(pl_gpu_stream *stream, const pl_move *args)
{
    const gpu_floats g = { address(args->y), address(args->x), args->count };
    launch(stream, PL_GPU_move, ceil_div(args->count, 256), 1, &g);
}

/* ---- loss ---- */

/* 1 / cap, or 0 without one. */
static float inverse_of(float cap)
{
    return cap != 0.0f ? 1.0f / cap : 0.0f;
}

void pl_gpu_cross_entropy(pl_gpu_stream *stream, const pl_cross_entropy *args)
{
    const gpu_cross_entropy g = { .logits = address(args->logits),
                                  .loss = address(args->loss),
                                  .tokens = address(args->tokens),
                                  .token_stride = word(args->token_stride),
                                  .first = word(args->first),
                                  .rows = word(args->rows),
                                  .T = word(args->T),
                                  .V = word(args->V),
                                  .storage = (uint32_t)args->storage,
                                  .vector = args->V % 4 == 0 &&
                                            is_aligned(args->logits,
                                                       args->storage, 0),
                                  .scale = args->scale,
                                  .cap = args->cap,
                                  .inverse = inverse_of(args->cap) };
    if (args->V)
        launch(stream, PL_GPU_cross_entropy, ceil_div(args->rows, LANE_ROWS), 1,
               &g);
}

void pl_gpu_softcap(pl_gpu_stream *stream, const pl_softcap *args)
{
    const gpu_softcap g = { .x = address(args->x),
                            .count = args->count,
                            .cap = args->cap,
                            .inverse = inverse_of(args->cap),
                            .vector = address(args->x) % 16 == 0 };
    launch(stream, PL_GPU_softcap, ceil_div(args->count, 1024), 1, &g);
}

void pl_gpu_loss_sum(pl_gpu_stream *stream, const pl_loss_sum *args)
{
    const gpu_loss_sum g = { address(args->sums), address(args->loss),
                             word(args->sequences), word(args->T) };
    launch(stream, PL_GPU_loss_sum, ceil_div(args->sequences, 64), 1, &g);
}

/* ---- optimizer ---- */

void pl_gpu_sumsq(pl_gpu_stream *stream, const pl_sumsq *args)
{
    const gpu_sumsq g = { address(args->partial), address(args->x), args->count,
                          args->cols, args->row };
    launch(stream, PL_GPU_sumsq,
           ceil_div(ceil_div(args->count, PL_SUMSQ_BLOCK), 32), 1, &g);
}

void pl_gpu_clip(pl_gpu_stream *stream, const pl_clip *args)
{
    gpu_clip g = { .grad_norm = address(args->grad_norm),
                   .clip = address(args->clip),
                   .skipped = address(args->skipped),
                   .partial = address(args->partial),
                   .count = args->count,
                   .grad_clip = args->grad_clip };
    memcpy(&g.loss_scale, &args->loss_scale, sizeof g.loss_scale);
    launch(stream, PL_GPU_clip, 1, 1, &g);
}

void pl_gpu_adamw(pl_gpu_stream *stream, const pl_adamw *args)
{
    const int codes = args->m_codes != NULL;
    const gpu_adamw g = {
        .w = args->w_bf16 ? address(args->w_bf16) : address(args->w),
        .g = address(args->g),
        .m = codes ? address(args->m_codes) : address(args->m),
        .v = codes ? address(args->v_codes) : address(args->v),
        .m_scales = address(args->m_scales),
        .v_scales = address(args->v_scales),
        .copy = address(args->copy),
        .clip = address(args->clip),
        .skipped = address(args->skipped),
        .first = args->first,
        .count = args->count,
        .keep = args->keep,
        .beta1_rest = args->beta1_rest,
        .beta2 = args->beta2,
        .beta2_rest = args->beta2_rest,
        .step_size = args->step_size,
        .root_correction = args->root_correction,
        .eps = args->eps,
        .w_storage = args->w_bf16 ? PL_STORE_BF16 : PL_STORE_F32,
        .copy_storage = (uint32_t)args->copy_storage,
        .seed = args->seed,
        .step = args->step,
        .tensor = args->tensor,
    };
    launch(stream, codes ? PL_GPU_adamw_codes : PL_GPU_adamw,
           ceil_div(args->count, 256), 1, &g);
}

void pl_gpu_muon_moment(pl_gpu_stream *stream, const pl_muon_moment *args)
{
    const int codes = args->m_codes != NULL;
    const gpu_muon_moment g = { .g = address(args->g),
                                .m = codes ? address(args->m_codes)
                                           : address(args->m),
                                .m_scales = address(args->m_scales),
                                .clip = address(args->clip),
                                .skipped = address(args->skipped),
                                .count = args->count,
                                .momentum = args->momentum,
                                .momentum_rest = args->momentum_rest,
                                .seed = args->seed,
                                .step = args->step,
                                .tensor = args->tensor };
    launch(stream, codes ? PL_GPU_muon_moment_codes : PL_GPU_muon_moment,
           ceil_div(args->count, 256), 1, &g);
}

void pl_gpu_muon_norm(pl_gpu_stream *stream, const pl_muon_norm *args)
{
    const gpu_muon_norm g = { address(args->factor), address(args->partial),
                              args->count };
    launch(stream, PL_GPU_muon_norm, 1, 1, &g);
}

void pl_gpu_muon_part(pl_gpu_stream *stream, const pl_muon_part *args)
{
    const gpu_muon_part g = { .y = address(args->y),
                              .x = address(args->x),
                              .factor = address(args->factor),
                              .rows = word(args->rows),
                              .cols = word(args->cols),
                              .y_row = word(args->y_row),
                              .x_row = word(args->x_row),
                              .x_col = word(args->x_col),
                              .y_storage = (uint32_t)args->y_storage,
                              .x_storage = (uint32_t)args->x_storage,
                              .scale = args->scale };
    launch(stream, PL_GPU_muon_part, ceil_div(args->cols, 32),
           ceil_div(args->rows, 32), &g);
}

void pl_gpu_muon_poly(pl_gpu_stream *stream, const pl_muon_poly *args)
{
    const gpu_muon_poly g = { .b = address(args->b),
                              .a = address(args->a),
                              .n = word(args->n),
                              .storage = (uint32_t)args->storage,
                              .unit = args->unit,
                              .linear = args->linear,
                              .square = args->square };
    launch(stream, PL_GPU_muon_poly, args->n, ceil_div(args->n, 256), &g);
}

void pl_gpu_muon_apply(pl_gpu_stream *stream, const pl_muon_apply *args)
{
    const gpu_muon_apply g = {
        .w = args->w_bf16 ? address(args->w_bf16) : address(args->w),
        .g = address(args->g),
        .copy = address(args->copy),
        .skipped = address(args->skipped),
        .count = args->count,
        .keep = args->keep,
        .rate = args->rate,
        .w_storage = args->w_bf16 ? PL_STORE_BF16 : PL_STORE_F32,
        .copy_storage = (uint32_t)args->copy_storage,
        .seed = args->seed,
        .step = args->step,
        .tensor = args->tensor,
    };
    launch(stream, PL_GPU_muon_apply, ceil_div(args->count, 256), 1, &g);
}

void pl_gpu_outer(pl_gpu_stream *stream, const pl_outer *args)
{
    const gpu_outer g = { .w = address(args->w),
                          .g = address(args->g),
                          .anchor = address(args->anchor),
                          .b = address(args->b),
                          .copy = address(args->copy),
                          .count = args->count,
                          .share = args->share,
                          .momentum = args->momentum,
                          .rate = args->rate,
                          .copy_storage = (uint32_t)args->copy_storage };
    launch(stream, PL_GPU_outer, ceil_div(args->count, 256), 1, &g);
}
