/* selftest_cases.c: see selftest_cases.h. */
#include "device/selftest_family.h"
#include "device/selftest_muon.h"
#include "device/selftest_parts.h"

/* ---- products ---- */

typedef struct product {
    size_t M, N, K;
    int a_turned, b_turned;
    pl_gemm_start start;
    pl_epilogue_kind after;
} product;

static void multiply_with(side *t, product p, pl_gelu_kind gelu)
{
    const size_t all = p.M * p.N, room = (p.M < p.N ? p.M : p.N) * p.K;
    const int is_sum = p.start == PL_GEMM_KEEP ||
                       p.after == PL_EPILOGUE_RESIDUAL;
    const pl_storage kept = is_sum ? PL_STORE_F32 : t->storage;
    pl_gemm g = { .M = p.M,
                  .N = p.N,
                  .K = p.K,
                  .a = take(t, p.M * p.K, t->storage, MILD),
                  .a_row = p.a_turned ? 1 : p.K,
                  .a_col = p.a_turned ? p.M : 1,
                  .b = floats(t, p.K * p.N, MILD),
                  .b_row = p.b_turned ? 1 : p.N,
                  .b_col = p.b_turned ? p.K : 1,
                  .c = take(t, all, kept, MILD),
                  .c_row = p.N,
                  .bias = floats(t, p.N, MILD),
                  .start = p.start,
                  .a_storage = t->storage,
                  .b_round = t->storage,
                  .c_storage = kept,
                  .products = t->products,
                  .scratch_floats = room };
    g.epilogue = (pl_epilogue){ .kind = p.after,
                                .gelu = gelu,
                                .x_storage = kept,
                                .y_storage = t->storage,
                                .row = p.N,
                                .dropout = dropout(PL_DROP_MLP_OUT),
                                .T = 16 };
    if (p.after == PL_EPILOGUE_GELU_BWD || p.after == PL_EPILOGUE_RESIDUAL)
        g.epilogue.x = take(t, all, kept, MILD);
    if (p.after == PL_EPILOGUE_GELU)
        g.epilogue.y = take(t, all, t->storage, ZERO);
    g.scratch = scratch(t, room);
    t->calls->gemm(t->worker, &g);
}

static void multiply(side *t, product p)
{
    multiply_with(t, p, PL_GELU_ERF);
}

static void large_nn(side *t)
{
    multiply(t,
             (product){ 136, 264, 96, 0, 0, PL_GEMM_BIAS, PL_EPILOGUE_NONE });
}

static void large_tn(side *t)
{
    multiply(t,
             (product){ 136, 144, 72, 1, 0, PL_GEMM_KEEP, PL_EPILOGUE_NONE });
}

static void large_nt(side *t)
{
    multiply(
        t, (product){ 136, 264, 96, 0, 1, PL_GEMM_ZERO, PL_EPILOGUE_GELU_BWD });
}

static void tall_nt(side *t)
{
    multiply(t,
             (product){ 264, 136, 64, 0, 1, PL_GEMM_ZERO, PL_EPILOGUE_NONE });
}

static void odd_nn(side *t)
{
    multiply(t, (product){ 67, 35, 29, 0, 0, PL_GEMM_ZERO, PL_EPILOGUE_GELU });
}

static void odd_nt(side *t)
{
    multiply(t, (product){ 35, 67, 29, 0, 1, PL_GEMM_ZERO, PL_EPILOGUE_NONE });
}

static void odd_tn(side *t)
{
    multiply(t, (product){ 35, 67, 29, 1, 0, PL_GEMM_KEEP, PL_EPILOGUE_NONE });
}

static void odd_tt(side *t)
{
    multiply(t, (product){ 35, 67, 29, 1, 1, PL_GEMM_ZERO, PL_EPILOGUE_NONE });
}

static void residual(side *t)
{
    multiply(t,
             (product){ 64, 96, 64, 0, 0, PL_GEMM_BIAS, PL_EPILOGUE_RESIDUAL });
}

static void one_row(side *t)
{
    multiply(t, (product){ 1, 150, 70, 0, 0, PL_GEMM_BIAS, PL_EPILOGUE_GELU });
}

static void few_rows(side *t)
{
    multiply(t, (product){ 3, 150, 70, 0, 1, PL_GEMM_ZERO, PL_EPILOGUE_NONE });
}

static void relu2(side *t)
{
    multiply_with(t,
                  (product){ 67, 68, 29, 0, 0, PL_GEMM_ZERO, PL_EPILOGUE_GELU },
                  PL_GELU_RELU2);
}

static void relu2_slope(side *t)
{
    multiply_with(
        t, (product){ 136, 132, 64, 0, 1, PL_GEMM_ZERO, PL_EPILOGUE_GELU_BWD },
        PL_GELU_RELU2);
}

static void column_sum(side *t)
{
    const pl_column_sum a = { .sum = floats(t, 70, MILD),
                              .x = take(t, 90 * 70, t->storage, ANY),
                              .rows = 90,
                              .C = 70,
                              .x_storage = t->storage };
    t->calls->column_sum(t->worker, &a);
}

/* ---- embedding ---- */

static void embed(side *t)
{
    const pl_embed a = { .x = floats(t, 24 * 66, ZERO),
                         .tokens = tokens(t, 3 * 9),
                         .token_stride = 9,
                         .rows = 24,
                         .T = 8,
                         .C = 66,
                         .wte = floats(t, VOCABULARY * 66, MILD),
                         .wpe = floats(t, 8 * 66, MILD),
                         .dropout = dropout(PL_DROP_EMBED) };
    t->calls->embed(t->worker, &a);
}

static void embed_places(side *t)
{
    const pl_embed a = { .x = floats(t, 6 * 66, ZERO),
                         .tokens = tokens(t, 6),
                         .token_stride = 2,
                         .rows = 6,
                         .T = 2,
                         .C = 66,
                         .positions = tokens(t, 3),
                         .wte = floats(t, VOCABULARY * 66, MILD),
                         .wpe = floats(t, (VOCABULARY + 1) * 66, MILD) };
    t->calls->embed(t->worker, &a);
}

static void embed_bwd(side *t)
{
    const pl_embed_bwd a = { .dwte = floats(t, VOCABULARY * 66, MILD),
                             .dwpe = floats(t, 8 * 66, MILD),
                             .dx = floats(t, 72 * 66, ANY),
                             .tokens = tokens(t, 9 * 9),
                             .token_stride = 9,
                             .rows = 72,
                             .T = 8,
                             .C = 66,
                             .dropout = dropout(PL_DROP_EMBED) };
    t->calls->embed_bwd(t->worker, &a);
}

/* ---- norms ---- */

static void layernorm(side *t)
{
    const pl_layernorm a = { .y = take(t, 19 * 70, t->storage, ZERO),
                             .stats = floats(t, 19 * 2, ZERO),
                             .x = floats(t, 19 * 70, MILD),
                             .weight = floats(t, 70, MILD),
                             .bias = floats(t, 70, MILD),
                             .rows = 19,
                             .C = 70,
                             .eps = 1e-3f,
                             .y_storage = t->storage };
    t->calls->layernorm(t->worker, &a);
}

static void layernorm_bwd(side *t)
{
    const pl_layernorm_bwd a = { .dx = floats(t, 70 * 68, MILD),
                                 .dweight = floats(t, 68, MILD),
                                 .dbias = floats(t, 68, MILD),
                                 .dy = take(t, 70 * 68, t->storage, MILD),
                                 .x = floats(t, 70 * 68, MILD),
                                 .stats = floats(t, 70 * 2, POSITIVE),
                                 .weight = floats(t, 68, MILD),
                                 .rows = 70,
                                 .C = 68,
                                 .accumulate = 1,
                                 .dy_storage = t->storage };
    t->calls->layernorm_bwd(t->worker, &a);
}

static void rmsnorm(side *t)
{
    const pl_rmsnorm a = { .y = take(t, 19 * 72, t->storage, ZERO),
                           .rstd = floats(t, 19, ZERO),
                           .x = floats(t, 19 * 72, MILD),
                           .weight = floats(t, 72, MILD),
                           .rows = 19,
                           .C = 72,
                           .eps = 1e-5f,
                           .y_storage = t->storage };
    t->calls->rmsnorm(t->worker, &a);
}

static void rmsnorm_bwd(side *t)
{
    const pl_rmsnorm_bwd a = { .dx = floats(t, 70 * 67, MILD),
                               .dweight = floats(t, 67, MILD),
                               .dy = take(t, 70 * 67, t->storage, MILD),
                               .x = floats(t, 70 * 67, MILD),
                               .rstd = floats(t, 70, POSITIVE),
                               .weight = floats(t, 67, MILD),
                               .rows = 70,
                               .C = 67,
                               .dy_storage = t->storage };
    t->calls->rmsnorm_bwd(t->worker, &a);
}

/* ---- attention ---- */

enum where { TOGETHER, APART }; /* all at `first`, or each somewhere below */

static void attend(side *t, size_t queries, size_t first, size_t D,
                   enum where where)
{
    const size_t B = 2, H = 4, KV = 2, row = (H + 2 * KV) * D,
                 keys = first + queries;
    const void *q = take(t, B * queries * row, t->storage, MILD),
               *kv = take(t, B * keys * row, t->storage, MILD);
    const pl_attention a = {
        .out = take(t, B * queries * H * D, t->storage, ZERO),
        .lse = floats(t, B * H * queries, ZERO),
        .q = q,
        .k = kv,
        .v = pl_storage_at(kv, KV * D, t->storage),
        .q_row = row,
        .kv_row = row,
        .B = B,
        .queries = queries,
        .keys = keys,
        .first = first,
        .positions = where == APART ? tokens(t, B) : NULL,
        .H = H,
        .KV = KV,
        .D = D,
        .dropout = dropout(PL_DROP_ATTENTION),
        .scratch = scratch(t, pl_attention_scratch(keys, D)),
        .qkv_storage = t->storage,
        .out_storage = t->storage,
        .products = t->products,
    };
    t->calls->attention(t->worker, &a);
}

static void attention(side *t)
{
    attend(t, 70, 0, 40, TOGETHER);
}

static void wide_heads(side *t)
{
    attend(t, 67, 0, 136, TOGETHER);
}

static void odd_heads(side *t)
{
    attend(t, 30, 0, 33, TOGETHER);
}

static void few_queries(side *t)
{
    attend(t, 3, 70, 34, TOGETHER);
}

static void few_apart(side *t)
{
    attend(t, 1, VOCABULARY, 34, APART);
}

static void many_apart(side *t)
{
    attend(t, 20, VOCABULARY, 40, APART);
}

static void backward(side *t, size_t T, size_t D)
{
    const size_t B = 2, H = 4, KV = 2, row = (H + 2 * KV) * D;
    const pl_attention_bwd a = {
        .dqkv = take(t, B * T * row, t->storage, ZERO),
        .dout = take(t, B * T * H * D, t->storage, MILD),
        .qkv = take(t, B * T * row, t->storage, MILD),
        .out = take(t, B * T * H * D, t->storage, MILD),
        .lse = floats(t, B * H * T, POSITIVE),
        .B = B,
        .T = T,
        .H = H,
        .KV = KV,
        .D = D,
        .dropout = dropout(PL_DROP_ATTENTION),
        .scratch = scratch(t, pl_attention_bwd_scratch(T, D, t->storage)),
        .qkv_storage = t->storage,
        .out_storage = t->storage,
        .dout_storage = t->storage,
        .dqkv_storage = t->storage,
        .products = t->products,
    };
    t->calls->attention_bwd(t->worker, &a);
}

static void attention_bwd(side *t)
{
    backward(t, 70, 40);
}

static void wide_bwd(side *t)
{
    backward(t, 33, 72);
}

/* ---- elementwise ---- */

static void gelu(side *t)
{
    pl_gelu a = { .x = take(t, 3000, t->storage, ANY),
                  .count = 3000,
                  .y_storage = t->storage,
                  .x_storage = t->storage };
    for (int k = PL_GELU_ERF; k <= PL_GELU_RELU2; k++) {
        a.kind = (pl_gelu_kind)k;
        a.y = take(t, 3000, t->storage, ZERO);
        t->calls->gelu(t->worker, &a);
    }
}

static void drop(side *t)
{
    const pl_drop a = { .y = take(t, 20 * 66, t->storage, ZERO),
                        .x = floats(t, 20 * 66, ANY),
                        .rows = 20,
                        .T = 7,
                        .C = 66,
                        .dropout = dropout(PL_DROP_ATTENTION_OUT),
                        .y_storage = t->storage };
    t->calls->drop(t->worker, &a);
}

static void copy(side *t)
{
    const pl_copy a = { .y = take(t, 9 * 80, t->storage, ZERO),
                        .x = take(t, 9 * 70, t->storage, ANY),
                        .rows = 9,
                        .C = 66,
                        .y_row = 80,
                        .x_row = 70,
                        .storage = t->storage };
    t->calls->copy(t->worker, &a);
}

static void copy_to_places(side *t)
{
    const pl_copy a = { .y = take(t, 3 * 53 * 80, t->storage, ZERO),
                        .x = take(t, 9 * 70, t->storage, ANY),
                        .rows = 9,
                        .C = 66,
                        .y_row = 80,
                        .x_row = 70,
                        .storage = t->storage,
                        .positions = tokens(t, 3),
                        .queries = 3,
                        .keys = VOCABULARY + 3 };
    t->calls->copy(t->worker, &a);
}

static void add(side *t)
{
    const pl_add a = { floats(t, 777, ANY), floats(t, 777, ANY), 777 };
    t->calls->add(t->worker, &a);
}

static void move(side *t)
{
    const pl_move a = { floats(t, 777, ZERO), floats(t, 777, ANY), 777 };
    t->calls->move(t->worker, &a);
}

/* ---- loss ---- */

static void cross_entropy(side *t)
{
    const size_t V = VOCABULARY;
    const pl_cross_entropy a = { .logits = take(t, 18 * V, t->storage, MILD),
                                 .loss = floats(t, 18, ZERO),
                                 .tokens = tokens(t, 3 * 9),
                                 .token_stride = 9,
                                 .rows = 18,
                                 .T = 8,
                                 .V = V,
                                 .scale = 0.125f,
                                 .storage = t->storage };
    t->calls->cross_entropy(t->worker, &a);
}

static void loss_sum(side *t)
{
    const pl_loss_sum a = { take(t, 2 * 5, PL_STORE_F32, ZERO),
                            floats(t, 5 * 70, POSITIVE), 5, 70 };
    t->calls->loss_sum(t->worker, &a);
}

/* ---- optimizer ---- */

static void sumsq(side *t)
{
    const pl_sumsq a = { .partial = take(t, 2 * 3, PL_STORE_F32, ZERO),
                         .x = floats(t, 40000, ANY),
                         .count = 40000 };
    t->calls->sumsq(t->worker, &a);
}

/* Doubles whose upper words are floats above 0 are above 0. */
static void clip(side *t)
{
    const pl_clip a = { .grad_norm = floats(t, 1, ZERO),
                        .clip = floats(t, 1, ZERO),
                        .skipped = take(t, 1, PL_STORE_F32, ZERO),
                        .partial = take(t, 2 * 300, PL_STORE_F32, POSITIVE),
                        .count = 300,
                        .loss_scale = 1024.0,
                        .grad_clip = 1.0f };
    t->calls->clip(t->worker, &a);
}

static pl_adamw adamw_args(side *t, size_t count)
{
    return (pl_adamw){ .g = floats(t, count, MILD),
                       .first = 512,
                       .count = count,
                       .keep = 0.999f,
                       .beta1_rest = 0.1f,
                       .beta2 = 0.95f,
                       .beta2_rest = 0.05f,
                       .step_size = 1e-2f,
                       .root_correction = 0.3f,
                       .eps = 1e-8f,
                       .clip = floats(t, 1, POSITIVE),
                       .skipped = take(t, 1, PL_STORE_F32, ZERO),
                       .copy_storage = PL_STORE_F16,
                       .seed = 5,
                       .step = 9,
                       .tensor = 2 };
}

static void adamw(side *t)
{
    pl_adamw a = adamw_args(t, 1000);
    a.w = floats(t, 1000, MILD);
    a.m = floats(t, 1000, MILD);
    a.v = floats(t, 1000, POSITIVE);
    a.copy = take(t, 1000, PL_STORE_F16, ZERO);
    t->calls->adamw(t->worker, &a);
}

static void adamw_small(side *t)
{
    pl_adamw a = adamw_args(t, 1000);
    a.w_bf16 = take(t, 1000, PL_STORE_BF16, MILD);
    a.m_codes = take(t, 500, PL_STORE_BF16, MILD);
    a.v_codes = take(t, 500, PL_STORE_BF16, MILD);
    a.m_scales = floats(t, 4, POSITIVE);
    a.v_scales = floats(t, 4, POSITIVE);
    t->calls->adamw(t->worker, &a);
}

static void outer(side *t)
{
    const pl_outer a = { .w = floats(t, 1000, ZERO),
                         .g = floats(t, 1000, MILD),
                         .anchor = floats(t, 1000, MILD),
                         .b = floats(t, 1000, MILD),
                         .count = 1000,
                         .share = 0.25f,
                         .momentum = 0.9f,
                         .rate = 0.7f,
                         .copy = take(t, 1000, PL_STORE_F16, ZERO),
                         .copy_storage = PL_STORE_F16 };
    t->calls->outer(t->worker, &a);
}

const pl_selftest_row pl_selftest_rows[] = {
    { "gemm", "large", large_nn, 1, 1 },
    { "gemm", "large, A transposed", large_tn, 1, 1 },
    { "gemm", "large, B transposed, GELU's slope", large_nt, 1, 1 },
    { "gemm", "tall, B transposed", tall_nt, 1, 1 },
    { "gemm", "odd, GELU", odd_nn, 1, 1 },
    { "gemm", "odd, B transposed", odd_nt, 1, 1 },
    { "gemm", "odd, A transposed", odd_tn, 1, 1 },
    { "gemm", "odd, both transposed", odd_tt, 1, 1 },
    { "gemm", "residual, dropout", residual, 1, 1 },
    { "gemm", "one row, GELU", one_row, 1, 1 },
    { "gemm", "few rows, B transposed", few_rows, 1, 1 },
    { "gemm", "relu2", relu2, 1, 1 },
    { "gemm", "B transposed, relu2's slope", relu2_slope, 1, 1 },
    { "column_sum", "", column_sum, 1, 0 },
    { "embed", "dropout", embed, 0, 0 },
    { "embed", "places", embed_places, 0, 0 },
    { "embed", "no positions", pl_selftest_embed, 0, 0 },
    { "embed_bwd", "dropout", embed_bwd, 0, 0 },
    { "embed_bwd", "no positions", pl_selftest_embed_bwd, 0, 0 },
    { "layernorm", "", layernorm, 1, 0 },
    { "layernorm_bwd", "", layernorm_bwd, 1, 0 },
    { "rmsnorm", "", rmsnorm, 1, 0 },
    { "rmsnorm_bwd", "", rmsnorm_bwd, 1, 0 },
    { "qk", "rotated", pl_selftest_rotated, 1, 0 },
    { "qk", "rotated, odd heads, places", pl_selftest_rotated_apart, 1, 0 },
    { "qk", "normed", pl_selftest_normed, 1, 0 },
    { "qk", "normed, rotated", pl_selftest_both, 1, 0 },
    { "qk", "normed, rotated, odd heads", pl_selftest_both_odd, 1, 0 },
    { "qk_bwd", "rotated", pl_selftest_rotated_bwd, 1, 0 },
    { "qk_bwd", "normed", pl_selftest_normed_bwd, 1, 0 },
    { "qk_bwd", "normed, rotated", pl_selftest_both_bwd, 1, 0 },
    { "qk_bwd", "normed, rotated, odd heads", pl_selftest_odd_bwd, 1, 0 },
    { "attention", "groups, dropout", attention, 1, 1 },
    { "attention", "wide heads", wide_heads, 1, 1 },
    { "attention", "odd heads", odd_heads, 1, 1 },
    { "attention", "few queries", few_queries, 1, 1 },
    { "attention", "few queries, places", few_apart, 1, 1 },
    { "attention", "places", many_apart, 1, 1 },
    { "attention_bwd", "groups, dropout", attention_bwd, 1, 1 },
    { "attention_bwd", "wide heads", wide_bwd, 1, 1 },
    { "gelu", "all kinds", gelu, 1, 0 },
    { "glu", "", pl_selftest_glu, 1, 0 },
    { "glu", "odd", pl_selftest_glu_odd, 1, 0 },
    { "drop", "", drop, 1, 0 },
    { "copy", "", copy, 1, 0 },
    { "copy", "to places", copy_to_places, 1, 0 },
    { "add", "", add, 0, 0 },
    { "move", "", move, 0, 0 },
    { "cross_entropy", "", cross_entropy, 1, 0 },
    { "cross_entropy", "capped", pl_selftest_capped, 1, 0 },
    { "softcap", "", pl_selftest_softcap, 0, 0 },
    { "loss_sum", "", loss_sum, 0, 0 },
    { "sumsq", "", sumsq, 0, 0 },
    { "clip", "", clip, 0, 0 },
    { "adamw", "", adamw, 0, 0 },
    { "adamw", "bf16 weights, 8-bit moments", adamw_small, 0, 0 },
    { "sumsq", "of a part", pl_selftest_sumsq_part, 0, 0 },
    { "muon_moment", "", pl_selftest_muon_moment, 0, 0 },
    { "muon_moment", "8-bit moment", pl_selftest_muon_moment_small, 0, 0 },
    { "muon_norm", "", pl_selftest_muon_norm, 0, 0 },
    { "muon_part", "", pl_selftest_muon_part, 1, 0 },
    { "muon_poly", "", pl_selftest_muon_poly, 1, 0 },
    { "muon_apply", "", pl_selftest_muon_apply, 0, 0 },
    { "muon_apply", "bf16 weights", pl_selftest_muon_apply_small, 0, 0 },
    { "outer", "", outer, 0, 0 },
};
const size_t pl_selftest_row_count = sizeof pl_selftest_rows /
                                     sizeof pl_selftest_rows[0];
