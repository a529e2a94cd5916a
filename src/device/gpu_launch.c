/* gpu_launch.c: see gpu_launch.h. */
#include "device/gpu_launch.h"
#include "base/check.h"
#include "base/rng.h"

#include <math.h>

const pl_gpu_kernel_info pl_gpu_kernels[PL_GPU_KERNEL_COUNT] = {
#define ROW(name, items, type) [PL_GPU_##name] = { #name, items, sizeof(type) },
    PL_GPU_KERNELS(ROW)
#undef ROW
};

static void launch(pl_gpu_stream *stream, pl_gpu_kernel kernel, size_t groups,
                   size_t groups_y, const void *args)
{
    const pl_gpu_launch it = { .kernel = kernel,
                               .groups = (uint32_t)groups,
                               .groups_y = (uint32_t)groups_y,
                               .args = args };
    if (stream->status || groups == 0 || groups_y == 0)
        return;
    /* what CUDA and ROCm take: y has 16 bits, items in x 32 */
    PL_CHECK(groups_y < 65536 &&
             groups < ((uint64_t)1 << 32) / pl_gpu_kernels[kernel].items);
    stream->status = stream->launch(stream->context, &it, stream->err);
}

static size_t ceil_div(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

static uint64_t address(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

static uint32_t word(size_t count)
{
    PL_CHECK(count <= UINT32_MAX);
    return (uint32_t)count;
}

/* Whether fours from p on, `row` elements from row to row, can be accessed at
 * once. */
static int is_aligned(const void *p, pl_storage storage, size_t row)
{
    return address(p) % (4 * pl_storage_bytes(storage)) == 0 && row % 4 == 0;
}

static gpu_dropout dropout_of(const pl_dropout *d)
{
    return (gpu_dropout){ .threshold = d->threshold,
                          .scale = d->scale,
                          .seed = d->seed,
                          .step = d->step,
                          .key = (uint32_t)PL_RNG_DROPOUT | d->site << 8 |
                                 d->layer << 16,
                          .sequence = d->sequence };
}

/* ---- products ---- */

/* A product in launches of about 1e12 flops at most, so that a card that also
 * has a screen is never busy for longer than its watchdog allows. */
static void launch_product(pl_gpu_stream *stream, pl_gpu_kernel kernel,
                           size_t columns, size_t tile, gpu_gemm *g)
{
    const double flops = 2.0 * (double)tile * (double)g->N * (double)g->K;
    const size_t all = ceil_div(g->M, tile);
    size_t some = flops < 1e12 ? (size_t)(1e12 / (flops + 1.0)) : 1;
    if (some > 32768)
        some = 32768;
    for (size_t at = 0; at < all; at += some) {
        g->first_tile = (uint32_t)at;
        launch(stream, kernel, columns, all - at < some ? all - at : some, g);
    }
}

enum {
    TILE = 128,     /* of the fast kernels */
    SMALL = 64,     /* of those for any shape */
    THIN = 16,      /* rows of those for few */
    PANEL = 32,     /* k must be a multiple */
    FAST_FROM = 48, /* rows and columns: below, a tile would be mostly empty */
};

size_t pl_gpu_gemm_scratch(size_t M, size_t N, size_t K)
{
    if (M < FAST_FROM || N < FAST_FROM || K % PANEL)
        return 0;
    return (M < N ? M : N) * K * sizeof(float);
}

static gpu_gemm gemm_args(const pl_gemm *a)
{
    const pl_epilogue *e = &a->epilogue;
    gpu_gemm g = { .a = address(a->a),
                   .b = address(a->b),
                   .c = address(a->c),
                   .bias = address(a->bias),
                   .x = address(e->x),
                   .y = address(e->y),
                   .M = word(a->M),
                   .N = word(a->N),
                   .K = word(a->K),
                   .a_ld = word(a->a_col == 1 ? a->a_row : a->a_col),
                   .b_ld = word(a->b_col == 1 ? a->b_row : a->b_col),
                   .c_row = word(a->c_row),
                   .start = (uint32_t)a->start,
                   .epilogue = (uint32_t)e->kind,
                   .tanh = e->gelu == PL_GELU_TANH,
                   .row = word(e->row),
                   .T = word(e->T),
                   .position = word(e->position),
                   .a_storage = (uint32_t)a->a_storage,
                   .a_round = (uint32_t)a->a_round,
                   .b_storage = (uint32_t)a->b_storage,
                   .b_round = (uint32_t)a->b_round,
                   .c_storage = (uint32_t)a->c_storage,
                   .x_storage = (uint32_t)e->x_storage,
                   .y_storage = (uint32_t)e->y_storage,
                   .flush = (uint32_t)pl_gemm_is_bf16(a),
                   .dropout = dropout_of(&e->dropout) };
    int beside = 1;
    if (e->kind != PL_EPILOGUE_NONE)
        beside = is_aligned(e->x, e->x_storage, e->row) &&
                 is_aligned(e->y, e->y_storage, e->row);
    if (is_aligned(a->a, a->a_storage, g.a_ld))
        g.vector |= GPU_VECTOR_A;
    if (is_aligned(a->b, a->b_storage, g.b_ld))
        g.vector |= GPU_VECTOR_B;
    if (beside && is_aligned(a->c, a->c_storage, a->c_row))
        g.vector |= GPU_VECTOR_C;
    return g;
}

/* b, or a, transposed in the product's scratch, as [K, lines]. */
static void transpose(pl_gpu_stream *stream, const pl_gemm *a, const void *from,
                      uint32_t lines, uint32_t ld, pl_storage storage)
{
    const gpu_transpose t = { .y = address(a->scratch),
                              .x = address(from),
                              .rows = lines,
                              .columns = word(a->K),
                              .ld = ld,
                              .bytes = (uint32_t)pl_storage_bytes(storage) };
    launch(stream, PL_GPU_transpose, ceil_div(t.columns, 32),
           ceil_div(t.rows, 32), &t);
}

typedef enum gemm_form { NN, NT, TN, TT } gemm_form;

static gemm_form form_of(const pl_gemm *a)
{
    if (a->a_col != 1)
        return a->b_col == 1 ? TN : TT;
    return a->b_col == 1 ? NN : NT;
}

/* Whether the fast kernels can: they read in fours, and whole panels. */
static int is_fast(const pl_gemm *a, const gpu_gemm *g, gemm_form form)
{
    const uint32_t both = GPU_VECTOR_A | GPU_VECTOR_B;
    if (form == TT || a->M < FAST_FROM || a->N < FAST_FROM || a->K == 0 ||
        (g->vector & both) != both)
        return 0;
    switch (form) {
    case NN:
        return a->K % PANEL == 0 && a->N % 4 == 0;
    case TN:
        return a->K % 16 == 0 && a->M % 4 == 0 && a->N % 4 == 0;
    default:
        return a->K % PANEL == 0 && a->M % 4 == 0 && a->N % 4 == 0 &&
               a->scratch_floats * sizeof(float) >=
                   pl_gpu_gemm_scratch(a->M, a->N, a->K);
    }
}

static void launch_fast(pl_gpu_stream *stream, const pl_gemm *a, gpu_gemm *g,
                        gemm_form form)
{
    static const pl_gpu_kernel kernels[][2] = {
        [NN] = { PL_GPU_gemm_nn_stored, PL_GPU_gemm_nn },
        [NT] = { PL_GPU_gemm_tt_stored, PL_GPU_gemm_tt },
        [TN] = { PL_GPU_gemm_tn_stored, PL_GPU_gemm_tn },
    };
    const int plain = !a->a_storage && !a->a_round && !a->b_storage &&
                      !a->b_round;
    if (form == NT && a->M <= a->N) {
        transpose(stream, a, a->a, g->M, g->a_ld, a->a_storage);
        g->a = address(a->scratch);
        g->a_ld = g->M;
    } else if (form == NT) {
        transpose(stream, a, a->b, g->N, g->b_ld, a->b_storage);
        g->b = address(a->scratch);
        g->b_ld = g->N;
        form = NN;
    }
    launch_product(stream, kernels[form][plain], ceil_div(a->N, TILE), TILE, g);
}

void pl_gpu_gemm(pl_gpu_stream *stream, const pl_gemm *args)
{
    static const pl_gpu_kernel any[] = { [NN] = PL_GPU_gemm_nn_any,
                                         [NT] = PL_GPU_gemm_nt_any,
                                         [TN] = PL_GPU_gemm_tn_any,
                                         [TT] = PL_GPU_gemm_tt_any };
    const gemm_form form = form_of(args);
    gpu_gemm g = gemm_args(args);
    if (is_fast(args, &g, form))
        launch_fast(stream, args, &g, form);
    else if (args->M <= THIN && args->a_col == 1)
        launch(stream, form == NN ? PL_GPU_gemm_nn_thin : PL_GPU_gemm_nt_thin,
               ceil_div(args->N, 128), 1, &g);
    else
        launch_product(stream, any[form], ceil_div(args->N, SMALL), SMALL, &g);
}

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
    launch(stream, PL_GPU_embed_dwpe,
           args->rows < args->T ? args->rows : args->T, wide, &g);
}

/* ---- norms ---- */

enum { LANE_ROWS = 16, NORM_COLUMNS = 32 };

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

/* ---- attention ---- */

enum { ATT_TILE = 64, ATT_WIDE = 128, ATT_FEW = 16 };

static float scale_of(size_t D)
{
    return (float)(1.0 / sqrt((double)D));
}

void pl_gpu_attention(pl_gpu_stream *stream, const pl_attention *args)
{
    const size_t D = args->D;
    const pl_storage kept = args->qkv_storage;
    const gpu_attention g = {
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

void pl_gpu_attention_bwd(pl_gpu_stream *stream, const pl_attention_bwd *args)
{
    const size_t D = args->D, T = args->T;
    const gpu_attention_bwd g = {
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
    launch(stream, plain ? PL_GPU_attention_dq : PL_GPU_attention_dq_any,
           args->B * args->H, tiles, &g);
    launch(stream, plain ? PL_GPU_attention_dkv : PL_GPU_attention_dkv_any,
           args->B * args->KV, tiles, &g);
}

/* ---- elementwise ---- */

void pl_gpu_gelu(pl_gpu_stream *stream, const pl_gelu *args)
{
    const gpu_gelu g = { .y = address(args->y),
                         .x = address(args->x),
                         .count = args->count,
                         .tanh = args->kind == PL_GELU_TANH,
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
                         .bytes = (uint32_t)pl_storage_bytes(args->storage) };
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
                                  .scale = args->scale };
    if (args->V)
        launch(stream, PL_GPU_cross_entropy, ceil_div(args->rows, LANE_ROWS), 1,
               &g);
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
    const gpu_sumsq g = { address(args->partial), address(args->x),
                          args->count };
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
