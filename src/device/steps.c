/* steps.c: one function per op, each filling the kernel's arguments from the
 * step's, which ops.h names. */
#include "device/steps.h"
#include "base/check.h"
#include "device/steps_args.h"
#include "device/steps_family.h"
#include "device/steps_update.h"

#include <math.h>

/* What float32 operands of a product are rounded to as they are read. */
static pl_storage rounding_of(const pl_step *step)
{
    return step->flags & PL_STEP_ROUND_BF16  ? PL_STORE_BF16
           : step->flags & PL_STEP_ROUND_F16 ? PL_STORE_F16
                                             : PL_STORE_F32;
}

static pl_dropout dropout_of(cx *c, const pl_step *step)
{
    const pl_controls *controls = controls_of(c);
    double p = step->dropout;
    return (pl_dropout){
        .threshold = (uint32_t)fmin(nearbyint(p * 0x1p32), 0x1p32 - 1.0),
        .scale = (float)(1.0 / (1.0 - p)),
        .seed = controls->seed,
        .step = controls->step,
        .site = step->site,
        .layer = step->layer < 0 ? 0 : (uint32_t)step->layer,
        .sequence = controls->batch_first + controls->micro_first,
    };
}

/* Tokens of a batch, from the micro-batch's first sequence on. */
static const int32_t *tokens_of(cx *c, const pl_step *step, int i)
{
    const int32_t *tokens = arg(c, step, i);
    return tokens + controls_of(c)->micro_first * row_of(c, step, i);
}

static void run_embed(cx *c, const pl_step *s)
{
    pl_embed a = {
        .x = arg(c, s, PL_ARG_EMBED_X),
        .tokens = tokens_of(c, s, PL_ARG_EMBED_TOKENS),
        .token_stride = row_of(c, s, PL_ARG_EMBED_TOKENS),
        .rows = rows_of(c, s),
        .T = s->T,
        .C = s->cols,
        .position = position_of(c, s),
        .wte = arg(c, s, PL_ARG_EMBED_WTE),
        .wpe = arg(c, s, PL_ARG_EMBED_WPE),
        .dropout = dropout_of(c, s),
        .wte_storage = storage_of(c, s, PL_ARG_EMBED_WTE),
    };
    if (a.wpe)
        a.wpe_storage = storage_of(c, s, PL_ARG_EMBED_WPE);
    if (has(s, PL_ARG_EMBED_POSITIONS)) {
        a.positions = arg(c, s, PL_ARG_EMBED_POSITIONS);
        a.T = a.token_stride = queries_of(c);
    }
    c->calls->embed(c->worker, &a);
}

static void run_embed_bwd(cx *c, const pl_step *s)
{
    pl_embed_bwd a = {
        .dwte = arg(c, s, PL_ARG_EMBED_BWD_DWTE),
        .dwpe = arg(c, s, PL_ARG_EMBED_BWD_DWPE),
        .dx = arg(c, s, PL_ARG_EMBED_BWD_DX),
        .tokens = tokens_of(c, s, PL_ARG_EMBED_BWD_TOKENS),
        .token_stride = row_of(c, s, PL_ARG_EMBED_BWD_TOKENS),
        .rows = s->rows,
        .T = s->T,
        .C = s->cols,
        .dropout = dropout_of(c, s),
    };
    c->calls->embed_bwd(c->worker, &a);
}

static void run_layernorm(cx *c, const pl_step *s)
{
    pl_layernorm a = { .y = arg(c, s, PL_ARG_LAYERNORM_Y),
                       .stats = arg(c, s, PL_ARG_LAYERNORM_STATS),
                       .x = arg(c, s, PL_ARG_LAYERNORM_X),
                       .weight = arg(c, s, PL_ARG_LAYERNORM_WEIGHT),
                       .bias = arg(c, s, PL_ARG_LAYERNORM_BIAS),
                       .rows = rows_of(c, s),
                       .C = s->cols,
                       .eps = (float)s->eps,
                       .y_storage = storage_of(c, s, PL_ARG_LAYERNORM_Y) };
    a.x += first_row_of(c, s) * s->cols;
    c->calls->layernorm(c->worker, &a);
}

static void run_layernorm_bwd(cx *c, const pl_step *s)
{
    pl_layernorm_bwd a = {
        .dx = arg(c, s, PL_ARG_LAYERNORM_BWD_DX),
        .dweight = arg(c, s, PL_ARG_LAYERNORM_BWD_DWEIGHT),
        .dbias = arg(c, s, PL_ARG_LAYERNORM_BWD_DBIAS),
        .dy = arg(c, s, PL_ARG_LAYERNORM_BWD_DY),
        .x = arg(c, s, PL_ARG_LAYERNORM_BWD_X),
        .stats = arg(c, s, PL_ARG_LAYERNORM_BWD_STATS),
        .weight = arg(c, s, PL_ARG_LAYERNORM_BWD_WEIGHT),
        .rows = s->rows,
        .C = s->cols,
        .accumulate = s->args[PL_ARG_LAYERNORM_BWD_DX].access == PL_UPDATE,
        .dy_storage = storage_of(c, s, PL_ARG_LAYERNORM_BWD_DY),
    };
    c->calls->layernorm_bwd(c->worker, &a);
}

static void run_rmsnorm(cx *c, const pl_step *s)
{
    pl_rmsnorm a = { .y = arg(c, s, PL_ARG_RMSNORM_Y),
                     .rstd = arg(c, s, PL_ARG_RMSNORM_RSTD),
                     .x = arg(c, s, PL_ARG_RMSNORM_X),
                     .weight = arg(c, s, PL_ARG_RMSNORM_WEIGHT),
                     .rows = rows_of(c, s),
                     .C = s->cols,
                     .eps = (float)s->eps,
                     .y_storage = storage_of(c, s, PL_ARG_RMSNORM_Y) };
    a.x += first_row_of(c, s) * s->cols;
    c->calls->rmsnorm(c->worker, &a);
}

static void run_rmsnorm_bwd(cx *c, const pl_step *s)
{
    pl_rmsnorm_bwd a = {
        .dx = arg(c, s, PL_ARG_RMSNORM_BWD_DX),
        .dweight = arg(c, s, PL_ARG_RMSNORM_BWD_DWEIGHT),
        .dy = arg(c, s, PL_ARG_RMSNORM_BWD_DY),
        .x = arg(c, s, PL_ARG_RMSNORM_BWD_X),
        .rstd = arg(c, s, PL_ARG_RMSNORM_BWD_RSTD),
        .weight = arg(c, s, PL_ARG_RMSNORM_BWD_WEIGHT),
        .rows = s->rows,
        .C = s->cols,
        .accumulate = s->args[PL_ARG_RMSNORM_BWD_DX].access == PL_UPDATE,
        .dy_storage = storage_of(c, s, PL_ARG_RMSNORM_BWD_DY)
    };
    c->calls->rmsnorm_bwd(c->worker, &a);
}

static pl_gelu_kind gelu_kind(const pl_step *s)
{
    return s->flags & PL_STEP_RELU2       ? PL_GELU_RELU2
           : s->flags & PL_STEP_GELU_TANH ? PL_GELU_TANH
                                          : PL_GELU_ERF;
}

/* The epilogue of a product y = x w. */
static pl_epilogue epilogue_of(cx *c, const pl_step *s)
{
    pl_epilogue epilogue = { .gelu = gelu_kind(s), .row = s->cols, .T = s->T };
    if (has(s, PL_ARG_MATMUL_GELU) || s->flags & PL_STEP_GELU)
        epilogue.kind = PL_EPILOGUE_GELU;
    if (has(s, PL_ARG_MATMUL_GELU)) {
        epilogue.y = arg(c, s, PL_ARG_MATMUL_GELU);
        epilogue.y_storage = storage_of(c, s, PL_ARG_MATMUL_GELU);
    }
    if (has(s, PL_ARG_MATMUL_RESIDUAL)) {
        epilogue.kind = PL_EPILOGUE_RESIDUAL;
        epilogue.x = arg(c, s, PL_ARG_MATMUL_RESIDUAL);
        epilogue.dropout = dropout_of(c, s);
        epilogue.position = s->flags & PL_STEP_RUN_ROWS
                                ? position_of(c, s)
                                : s->args[PL_ARG_MATMUL_Y].row;
    }
    return epilogue;
}

/* Of a product without scratch of its own. */
enum { NO_SCRATCH = -1 };

/* What all products have in common: their arithmetic, and the packing room
 * (who has several workers divides it) or scratch of their own. */
static void run_gemm(cx *c, const pl_step *s, pl_gemm *gemm, int scratch)
{
    pl_buffer_id room = c->graph->packing;
    gemm->products = c->products;
    if (room != PL_NO_BUFFER) {
        gemm->scratch_floats = c->graph->buffers[room].shape.cols;
        gemm->scratch = c->memory[room];
    }
    if (scratch != NO_SCRATCH && has(s, scratch)) {
        const pl_extent own = c->graph->buffers[s->args[scratch].buffer].shape;
        gemm->scratch = arg(c, s, scratch);
        gemm->scratch_floats = own.rows * own.cols;
    }
    c->calls->gemm(c->worker, gemm);
}

static void run_matmul(cx *c, const pl_step *s)
{
    pl_gemm a = { .M = rows_of(c, s),
                  .N = s->cols,
                  .K = s->inner,
                  .a = arg(c, s, PL_ARG_MATMUL_X),
                  .a_row = s->inner,
                  .a_col = 1,
                  .b = arg(c, s, PL_ARG_MATMUL_W),
                  .b_row = s->flags & PL_STEP_OUT_IN ? 1 : s->cols,
                  .b_col = s->flags & PL_STEP_OUT_IN ? s->inner : 1,
                  .c = arg(c, s, PL_ARG_MATMUL_Y),
                  .c_row = s->cols,
                  .bias = arg(c, s, PL_ARG_MATMUL_BIAS),
                  .a_storage = storage_of(c, s, PL_ARG_MATMUL_X),
                  .b_storage = storage_of(c, s, PL_ARG_MATMUL_W),
                  .b_round = rounding_of(s),
                  .c_storage = storage_of(c, s, PL_ARG_MATMUL_Y) };
    a.start = a.bias ? PL_GEMM_BIAS : PL_GEMM_ZERO;
    a.epilogue = epilogue_of(c, s);
    run_gemm(c, s, &a, NO_SCRATCH);
}

static void run_matmul_t(cx *c, const pl_step *s)
{
    pl_gemm a = { .M = rows_of(c, s),
                  .N = s->cols,
                  .K = s->inner,
                  .a = arg(c, s, PL_ARG_MATMUL_T_X),
                  .a_row = s->inner,
                  .a_col = 1,
                  .b = arg(c, s, PL_ARG_MATMUL_T_W),
                  .b_row = s->flags & PL_STEP_OUT_IN ? s->cols : 1,
                  .b_col = s->flags & PL_STEP_OUT_IN ? 1 : s->inner,
                  .c = arg(c, s, PL_ARG_MATMUL_T_Y),
                  .c_row = s->cols,
                  .start = PL_GEMM_ZERO,
                  .a_storage = storage_of(c, s, PL_ARG_MATMUL_T_X),
                  .a_round = rounding_of(s),
                  .b_storage = storage_of(c, s, PL_ARG_MATMUL_T_W),
                  .b_round = rounding_of(s),
                  .c_storage = storage_of(c, s, PL_ARG_MATMUL_T_Y) };
    if (has(s, PL_ARG_MATMUL_T_FC))
        a.epilogue = (pl_epilogue){ .kind = PL_EPILOGUE_GELU_BWD,
                                    .gelu = gelu_kind(s),
                                    .x = arg(c, s, PL_ARG_MATMUL_T_FC),
                                    .x_storage = storage_of(c, s,
                                                            PL_ARG_MATMUL_T_FC),
                                    .row = s->cols };
    run_gemm(c, s, &a, PL_ARG_MATMUL_T_SCRATCH);
}

static void run_matmul_dw(cx *c, const pl_step *s)
{
    pl_gemm a = { .M = s->inner,
                  .N = s->cols,
                  .K = s->rows,
                  .a = arg(c, s, PL_ARG_MATMUL_DW_X),
                  .a_row = 1,
                  .a_col = s->inner,
                  .b = arg(c, s, PL_ARG_MATMUL_DW_DY),
                  .b_row = s->cols,
                  .b_col = 1,
                  .c = arg(c, s, PL_ARG_MATMUL_DW_DW),
                  .c_row = s->cols,
                  .start = PL_GEMM_KEEP,
                  .a_storage = storage_of(c, s, PL_ARG_MATMUL_DW_X),
                  .a_round = rounding_of(s),
                  .b_storage = storage_of(c, s, PL_ARG_MATMUL_DW_DY),
                  .b_round = rounding_of(s),
                  .c_storage = storage_of(c, s, PL_ARG_MATMUL_DW_DW) };
    PL_CHECK(a.c_storage == PL_STORE_F32);
    run_gemm(c, s, &a, PL_ARG_MATMUL_DW_SCRATCH);
}

static void run_column_sum(cx *c, const pl_step *s)
{
    pl_column_sum a = { .sum = arg(c, s, PL_ARG_COLUMN_SUM_SUM),
                        .x = arg(c, s, PL_ARG_COLUMN_SUM_X),
                        .rows = s->rows,
                        .C = s->cols,
                        .x_storage = storage_of(c, s, PL_ARG_COLUMN_SUM_X) };
    c->calls->column_sum(c->worker, &a);
}

static void run_attention(cx *c, const pl_step *s)
{
    const size_t A = s->heads * s->inner, KVA = s->kv * s->inner;
    const void *qkv = arg(c, s, PL_ARG_ATTENTION_QKV);
    const pl_storage kept = storage_of(c, s, PL_ARG_ATTENTION_QKV);
    pl_attention a = {
        .out = arg(c, s, PL_ARG_ATTENTION_ATT),
        .lse = arg(c, s, PL_ARG_ATTENTION_LSE),
        .q = qkv,
        .k = pl_storage_at(qkv, A, kept),
        .v = pl_storage_at(qkv, A + KVA, kept),
        .q_row = A + 2 * KVA,
        .kv_row = A + 2 * KVA,
        .B = s->rows / s->T,
        .queries = s->T,
        .keys = s->T,
        .H = s->heads,
        .KV = s->kv,
        .D = s->inner,
        .dropout = dropout_of(c, s),
        .scratch = arg(c, s, PL_ARG_ATTENTION_SCRATCH),
        .qkv_storage = kept,
        .out_storage = storage_of(c, s, PL_ARG_ATTENTION_ATT),
        .products = c->products,
    };
    c->calls->attention(c->worker, &a);
}

static void run_attention_bwd(cx *c, const pl_step *s)
{
    pl_attention_bwd a = {
        .dqkv = arg(c, s, PL_ARG_ATTENTION_BWD_DQKV),
        .dout = arg(c, s, PL_ARG_ATTENTION_BWD_DATT),
        .qkv = arg(c, s, PL_ARG_ATTENTION_BWD_QKV),
        .out = arg(c, s, PL_ARG_ATTENTION_BWD_ATT),
        .lse = arg(c, s, PL_ARG_ATTENTION_BWD_LSE),
        .B = s->rows / s->T,
        .T = s->T,
        .H = s->heads,
        .KV = s->kv,
        .D = s->inner,
        .dropout = dropout_of(c, s),
        .scratch = arg(c, s, PL_ARG_ATTENTION_BWD_SCRATCH),
        .qkv_storage = storage_of(c, s, PL_ARG_ATTENTION_BWD_QKV),
        .out_storage = storage_of(c, s, PL_ARG_ATTENTION_BWD_ATT),
        .dout_storage = storage_of(c, s, PL_ARG_ATTENTION_BWD_DATT),
        .dqkv_storage = storage_of(c, s, PL_ARG_ATTENTION_BWD_DQKV),
        .products = c->products,
    };
    c->calls->attention_bwd(c->worker, &a);
}

/* Slots of a cache, which holds T rows of keys for each of them, then T rows of
 * values for each, kept like qkv. */
static size_t slots_of(cx *c, const pl_step *s, int cache)
{
    return c->graph->buffers[s->args[cache].buffer].shape.rows / (2 * s->T);
}

static void run_cache_append(cx *c, const pl_step *s)
{
    const pl_controls *controls = controls_of(c);
    const int several = has(s, PL_ARG_CACHE_APPEND_POSITIONS);
    const size_t A = s->heads * s->inner, KVA = s->kv * s->inner,
                 at = (several ? controls->slot * s->T : controls->position) *
                      KVA,
                 values = several
                              ? slots_of(c, s, PL_ARG_CACHE_APPEND_CACHE) * s->T
                              : s->T;
    void *cache = arg(c, s, PL_ARG_CACHE_APPEND_CACHE);
    const void *qkv = arg(c, s, PL_ARG_CACHE_APPEND_QKV);
    pl_copy a = { .rows = controls->rows,
                  .C = KVA,
                  .y_row = KVA,
                  .x_row = A + 2 * KVA,
                  .storage = storage_of(c, s, PL_ARG_CACHE_APPEND_CACHE) };
    PL_CHECK(a.storage == storage_of(c, s, PL_ARG_CACHE_APPEND_QKV));
    if (several) {
        a.positions = arg(c, s, PL_ARG_CACHE_APPEND_POSITIONS);
        a.queries = queries_of(c);
        a.keys = s->T;
    }
    a.y = pl_storage_at(cache, at, a.storage);
    a.x = pl_storage_at(qkv, A, a.storage);
    c->calls->copy(c->worker, &a);
    a.y = pl_storage_at(cache, values * KVA + at, a.storage);
    a.x = pl_storage_at(qkv, A + KVA, a.storage);
    c->calls->copy(c->worker, &a);
}

static void run_attention_cached(cx *c, const pl_step *s)
{
    const pl_controls *controls = controls_of(c);
    const size_t A = s->heads * s->inner, KVA = s->kv * s->inner;
    const void *cache = arg(c, s, PL_ARG_ATTENTION_CACHED_CACHE);
    pl_attention a = {
        .out = arg(c, s, PL_ARG_ATTENTION_CACHED_ATT),
        .q = arg(c, s, PL_ARG_ATTENTION_CACHED_QKV),
        .k = cache,
        .v = pl_storage_at(cache, s->T * KVA,
                           storage_of(c, s, PL_ARG_ATTENTION_CACHED_CACHE)),
        .q_row = A + 2 * KVA,
        .kv_row = KVA,
        .B = 1,
        .queries = controls->rows,
        .keys = s->T,
        .first = controls->position,
        .H = s->heads,
        .KV = s->kv,
        .D = s->inner,
        .scratch = arg(c, s, PL_ARG_ATTENTION_CACHED_SCRATCH),
        .qkv_storage = storage_of(c, s, PL_ARG_ATTENTION_CACHED_CACHE),
        .out_storage = storage_of(c, s, PL_ARG_ATTENTION_CACHED_ATT),
        .products = c->products,
    };
    PL_CHECK(a.qkv_storage == storage_of(c, s, PL_ARG_ATTENTION_CACHED_QKV));
    if (has(s, PL_ARG_ATTENTION_CACHED_POSITIONS)) {
        const size_t slots = slots_of(c, s, PL_ARG_ATTENTION_CACHED_CACHE),
                     at = controls->slot * s->T * KVA;
        a.k = pl_storage_at(cache, at, a.qkv_storage);
        a.v = pl_storage_at(cache, slots * s->T * KVA + at, a.qkv_storage);
        a.positions = arg(c, s, PL_ARG_ATTENTION_CACHED_POSITIONS);
        a.B = controls->sequences;
        a.queries = queries_of(c);
    }
    c->calls->attention(c->worker, &a);
}

static void run_gelu(cx *c, const pl_step *s)
{
    pl_gelu a = { .y = arg(c, s, PL_ARG_GELU_Y),
                  .x = arg(c, s, PL_ARG_GELU_X),
                  .count = rows_of(c, s) * s->cols,
                  .kind = gelu_kind(s),
                  .y_storage = storage_of(c, s, PL_ARG_GELU_Y),
                  .x_storage = storage_of(c, s, PL_ARG_GELU_X) };
    c->calls->gelu(c->worker, &a);
}

static void run_drop(cx *c, const pl_step *s)
{
    pl_drop a = { .y = arg(c, s, PL_ARG_DROP_Y),
                  .x = arg(c, s, PL_ARG_DROP_X),
                  .rows = s->rows,
                  .T = s->T,
                  .C = s->cols,
                  .dropout = dropout_of(c, s),
                  .y_storage = storage_of(c, s, PL_ARG_DROP_Y) };
    c->calls->drop(c->worker, &a);
}

static void run_carry(cx *c, const pl_step *s)
{
    const pl_controls *controls = controls_of(c);
    float *carry = arg(c, s, PL_ARG_CARRY_BATCH);
    pl_copy a = { .y = carry + controls->micro_first * s->T * s->cols,
                  .x = arg(c, s, PL_ARG_CARRY_X),
                  .rows = s->rows,
                  .C = s->cols,
                  .y_row = s->cols,
                  .x_row = s->cols };
    c->calls->copy(c->worker, &a);
}

static void run_cross_entropy(cx *c, const pl_step *s)
{
    const pl_controls *controls = controls_of(c);
    pl_cross_entropy a = {
        .logits = arg(c, s, PL_ARG_CROSS_ENTROPY_LOGITS),
        .loss = arg(c, s, PL_ARG_CROSS_ENTROPY_LOSS),
        .tokens = tokens_of(c, s, PL_ARG_CROSS_ENTROPY_TOKENS),
        .token_stride = row_of(c, s, PL_ARG_CROSS_ENTROPY_TOKENS),
        .first = s->first,
        .rows = s->rows,
        .T = s->T,
        .V = s->cols,
        .scale = s->flags & PL_STEP_GRADIENT ? controls->dlogit_scale : 0.0f,
        .cap = (float)s->cap,
        .storage = storage_of(c, s, PL_ARG_CROSS_ENTROPY_LOGITS),
    };
    c->calls->cross_entropy(c->worker, &a);
}

static void run_loss_sum(cx *c, const pl_step *s)
{
    const pl_controls *controls = controls_of(c);
    double *sums = arg(c, s, PL_ARG_LOSS_SUM_SUMS);
    pl_loss_sum a = { .sums = sums + controls->micro_first,
                      .loss = arg(c, s, PL_ARG_LOSS_SUM_LOSS),
                      .sequences = s->rows / s->T,
                      .T = s->T };
    c->calls->loss_sum(c->worker, &a);
}

/* The host's own: it reads through pl_device_read into its own memory. */
static void run_fetch(cx *c, const pl_step *s)
{
    (void)c, (void)s;
}

static void (*const runs[PL_OP_COUNT])(cx *, const pl_step *) = {
    [PL_OP_EMBED] = run_embed,
    [PL_OP_EMBED_BWD] = run_embed_bwd,
    [PL_OP_LAYERNORM] = run_layernorm,
    [PL_OP_LAYERNORM_BWD] = run_layernorm_bwd,
    [PL_OP_RMSNORM] = run_rmsnorm,
    [PL_OP_RMSNORM_BWD] = run_rmsnorm_bwd,
    [PL_OP_MATMUL] = run_matmul,
    [PL_OP_MATMUL_T] = run_matmul_t,
    [PL_OP_MATMUL_DW] = run_matmul_dw,
    [PL_OP_COLUMN_SUM] = run_column_sum,
    [PL_OP_QK] = pl_steps_qk,
    [PL_OP_QK_BWD] = pl_steps_qk_bwd,
    [PL_OP_QK_DW] = pl_steps_qk_dw,
    [PL_OP_ATTENTION] = run_attention,
    [PL_OP_ATTENTION_BWD] = run_attention_bwd,
    [PL_OP_CACHE_APPEND] = run_cache_append,
    [PL_OP_ATTENTION_CACHED] = run_attention_cached,
    [PL_OP_GELU] = run_gelu,
    [PL_OP_GLU] = pl_steps_glu,
    [PL_OP_GLU_BWD] = pl_steps_glu_bwd,
    [PL_OP_SOFTCAP] = pl_steps_softcap,
    [PL_OP_DROP] = run_drop,
    [PL_OP_CARRY] = run_carry,
    [PL_OP_CROSS_ENTROPY] = run_cross_entropy,
    [PL_OP_LOSS_SUM] = run_loss_sum,
    [PL_OP_SUMSQ] = pl_steps_sumsq,
    [PL_OP_CLIP] = pl_steps_clip,
    [PL_OP_ADAMW] = pl_steps_adamw,
    [PL_OP_MUON_MOMENT] = pl_steps_muon_moment,
    [PL_OP_MUON_SUMSQ] = pl_steps_muon_sumsq,
    [PL_OP_MUON_NORM] = pl_steps_muon_norm,
    [PL_OP_MUON_TAKE] = pl_steps_muon_take,
    [PL_OP_MUON_POLY] = pl_steps_muon_poly,
    [PL_OP_MUON_PUT] = pl_steps_muon_put,
    [PL_OP_MUON_APPLY] = pl_steps_muon_apply,
    [PL_OP_ADD] = pl_steps_add,
    [PL_OP_MOVE] = pl_steps_move,
    [PL_OP_COPY] = pl_steps_copy,
    [PL_OP_OUTER] = pl_steps_outer,
    [PL_OP_FETCH] = run_fetch,
};

void pl_steps_run(cx *context, const pl_step *step)
{
    PL_CHECK(runs[step->op]);
    runs[step->op](context, step);
}
