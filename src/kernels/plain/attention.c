/* attention.c: causal attention in blocks of queries against all keys up to
 * the block's last one. Blocks are a matter of speed: every sum is a chain over
 * keys (or queries) or LANES over keys, and masked weights are +0. */
#include "kernels/plain/lanes.h"
#include "kernels/plain/mask.h"
#include "kernels/plain/share.h"
#include "kernels/plain/tile.h"
#include "kernels/plain/vmath.h"

enum { BLOCK = PL_ATTENTION_BLOCK };

static size_t row_floats(size_t keys)
{
    return pl_attention_scratch(keys) / (2 * BLOCK);
}

static uint32_t mask_high(size_t head)
{
    return (uint32_t)head << 20;
}

/* s[j] = exp(s[j] * scale - shift) for the first `count`, +0 up to `end`. */
static void exponentials(float *restrict s, size_t count, size_t end,
                         float scale, float shift)
{
    for (size_t j = 0; j < count; j++)
        s[j] = exp1(s[j] * scale - shift);
    for (size_t j = count; j < end; j++)
        s[j] = 0.0f;
}

/* Columns of a head's output that are mixed at a time: they are float until
 * they are done, whatever the output is kept as. */
enum { MIX = FEW };

/* out[rows, D] = P * v for one block, each row times its `inverse`. */
static void mix_values(const pl_attention *args, size_t b, size_t h, size_t i,
                       size_t rows, const float *p, const float *inverse)
{
    const size_t D = args->D, C = args->H * D,
                 at = b * args->keys * args->kv_row;
    float out[BLOCK * MIX];
    for (size_t d = 0; d < D; d += MIX) {
        const size_t columns = D - d < MIX ? D - d : MIX;
        const pl_gemm mix = { .M = rows,
                              .N = columns,
                              .K = args->first + i + rows,
                              .a = p,
                              .a_row = row_floats(args->keys),
                              .a_col = 1,
                              .b = pl_storage_at(args->v, at + h * D + d,
                                                 args->qkv_storage),
                              .b_row = args->kv_row,
                              .b_col = 1,
                              .b_storage = args->qkv_storage,
                              .c = out,
                              .c_row = MIX };
        tile_gemm_small(&mix);
        /* Appended zeros turn a sum of -0 into +0; adding 0 always does. */
        for (size_t r = 0; r < rows; r++)
            for (size_t c = 0; c < columns; c++)
                out[r * MIX + c] = out[r * MIX + c] * inverse[r] + 0.0f;
        narrow_rows(pl_storage_at(args->out,
                                  (b * args->queries + i) * C + h * D + d,
                                  args->out_storage),
                    C, out, MIX, rows, columns, args->out_storage);
    }
}

/* One block of queries; the scores become P on the way. */
static void forward_block(const pl_attention *args, size_t b, size_t h,
                          size_t i, float *scratch)
{
    const size_t D = args->D, q_row = args->q_row;
    const size_t rows = args->queries - i < BLOCK ? args->queries - i : BLOCK;
    const size_t keys = args->first + i + rows, stride = row_floats(args->keys);
    const size_t query = b * args->queries + i, key = b * args->keys;
    const float scale = (float)(1.0 / sqrt((double)D));
    const pl_storage kept = args->qkv_storage;
    float inverse[BLOCK];

    const pl_gemm scores = {
        .M = rows,
        .N = keys,
        .K = D,
        .a = pl_storage_at(args->q, query * q_row + h * D, kept),
        .a_row = q_row,
        .a_col = 1,
        .a_storage = kept,
        .b = pl_storage_at(args->k, key * args->kv_row + h * D, kept),
        .b_row = 1,
        .b_col = args->kv_row,
        .b_storage = kept,
        .c = scratch,
        .c_row = stride
    };
    tile_gemm_small(&scores);
    for (size_t r = 0; r < rows; r++) {
        float *s = scratch + r * stride;
        const size_t position = args->first + i + r, count = position + 1;
        const float max = lanes_max(s, count) * scale;
        exponentials(s, count, keys, scale, max);
        const float sum = lanes_sum(s, count);
        inverse[r] = 1.0f / sum;
        if (args->lse)
            args->lse[(b * args->H + h) * args->queries + i + r] =
                (float)((double)max + log((double)sum));
        if (args->dropout.threshold)
            mask_apply(&args->dropout, mask_high(h), (uint32_t)position,
                       args->dropout.sequence + (uint32_t)b, 0, count, s, s);
    }
    mix_values(args, b, h, i, rows, scratch, inverse);
}

/* Blocks in turn, since later ones have more keys. */
void PL_K(attention)(const pl_attention *args, int ith, int nth)
{
    const size_t blocks = (args->queries + BLOCK - 1) / BLOCK,
                 units = args->B * args->H * blocks;
    if (args->D == 0)
        return;
    float *scratch = args->scratch +
                     (size_t)ith * pl_attention_scratch(args->keys);
    for (size_t u = (size_t)ith; u < units; u += (size_t)nth) {
        const size_t pair = u / blocks;
        forward_block(args, pair / args->H, pair % args->H, u % blocks * BLOCK,
                      scratch);
    }
}

/* One (sequence, head) of the backward pass. All matrices but the scores have
 * rows of 3C or C, as in qkv and out. */
typedef struct pair {
    const void *q, *k, *v, *out;
    const float *dout, *lse;
    float *dq, *dk, *dv;
    float *p, *ds; /* [BLOCK, stride] */
    size_t C, D, stride, head;
    uint32_t sequence;
    float scale;
    pl_storage kept, out_kept; /* as what q, k, v and out are kept */
    const pl_dropout *dropout;
} pair;

/* LANES(d) dout_d * out_d. */
static float delta_of(const pair *a, size_t position)
{
    const float *dout = a->dout + position * a->C;
    const void *out = pl_storage_at(a->out, position * a->C, a->out_kept);
    lanes l = lanes_all(0);
    float part[MIX];
    if (a->out_kept == PL_STORE_F32)
        return lanes_total(lanes_dot_on(l, dout, out, a->D));
    for (size_t d = 0; d < a->D; d += MIX) {
        const size_t count = a->D - d < MIX ? a->D - d : MIX;
        widen(part, pl_storage_at(out, d, a->out_kept), count, a->out_kept);
        l = lanes_dot_on(l, dout + d, part, count);
    }
    return lanes_total(l);
}

/* Row r of the block at i: p[j] becomes drop(p), ds[j] from dp[j]. */
static void backward_row(const pair *a, size_t i, size_t r, size_t keys)
{
    const size_t position = i + r, count = position + 1;
    float *restrict p = a->p + r * a->stride;
    float *restrict ds = a->ds + r * a->stride;
    const float delta = delta_of(a, position);
    const float scale = a->scale;
    exponentials(p, count, keys, scale, a->lse[position]);
    if (a->dropout->threshold)
        mask_apply(a->dropout, mask_high(a->head), (uint32_t)position,
                   a->sequence, 0, count, ds, ds);
    for (size_t j = 0; j < count; j++)
        ds[j] = p[j] * (ds[j] - delta) * scale;
    for (size_t j = count; j < keys; j++)
        ds[j] = 0.0f;
    if (a->dropout->threshold)
        mask_apply(a->dropout, mask_high(a->head), (uint32_t)position,
                   a->sequence, 0, count, p, p);
}

/* P and ds of queries i .. i + rows - 1 against keys 0 .. i + rows - 1. */
static void backward_scores(const pair *a, size_t i, size_t rows)
{
    const size_t C = a->C, C3 = 3 * C, D = a->D, keys = i + rows;
    const void *q = pl_storage_at(a->q, i * C3, a->kept);
    const pl_gemm scores = { .M = rows,
                             .N = keys,
                             .K = D,
                             .a = q,
                             .a_row = C3,
                             .a_col = 1,
                             .a_storage = a->kept,
                             .b = a->k,
                             .b_row = 1,
                             .b_col = C3,
                             .b_storage = a->kept,
                             .c = a->p,
                             .c_row = a->stride };
    const pl_gemm dweights = { .M = rows,
                               .N = keys,
                               .K = D,
                               .a = a->dout + i * C,
                               .a_row = C,
                               .a_col = 1,
                               .b = a->v,
                               .b_row = 1,
                               .b_col = C3,
                               .b_storage = a->kept,
                               .c = a->ds,
                               .c_row = a->stride };
    tile_gemm_small(&scores);
    tile_gemm_small(&dweights);
    for (size_t r = 0; r < rows; r++)
        backward_row(a, i, r, keys);
}

/* Such a block's part of all three gradients. */
static void backward_block(const pair *a, size_t i, size_t rows)
{
    const size_t C = a->C, C3 = 3 * C, D = a->D, keys = i + rows;
    const void *q = pl_storage_at(a->q, i * C3, a->kept);
    backward_scores(a, i, rows);
    const pl_gemm dq = { .M = rows,
                         .N = D,
                         .K = keys,
                         .a = a->ds,
                         .a_row = a->stride,
                         .a_col = 1,
                         .b = a->k,
                         .b_row = C3,
                         .b_col = 1,
                         .b_storage = a->kept,
                         .c = a->dq + i * C3,
                         .c_row = C3 };
    const pl_gemm dk = { .M = keys,
                         .N = D,
                         .K = rows,
                         .a = a->ds,
                         .a_row = 1,
                         .a_col = a->stride,
                         .b = q,
                         .b_row = C3,
                         .b_col = 1,
                         .b_storage = a->kept,
                         .c = a->dk,
                         .c_row = C3,
                         .start = PL_GEMM_KEEP };
    const pl_gemm dv = { .M = keys,
                         .N = D,
                         .K = rows,
                         .a = a->p,
                         .a_row = 1,
                         .a_col = a->stride,
                         .b = a->dout + i * C,
                         .b_row = C,
                         .b_col = 1,
                         .c = a->dv,
                         .c_row = C3,
                         .start = PL_GEMM_KEEP };
    tile_gemm_small(&dq);
    tile_gemm_small(&dk);
    tile_gemm_small(&dv);
}

/* Threads split (sequence, head): dk and dv are sums over all its queries. */
void PL_K(attention_bwd)(const pl_attention_bwd *args, int ith, int nth)
{
    const size_t T = args->T, H = args->H, D = args->D, C = H * D;
    const pl_storage kept = args->qkv_storage;
    if (D == 0)
        return;
    float *scratch = args->scratch + (size_t)ith * pl_attention_scratch(T);
    for (size_t u = (size_t)ith; u < args->B * H; u += (size_t)nth) {
        const size_t b = u / H, h = u % H, at = b * T * C + h * D,
                     at3 = b * T * 3 * C + h * D;
        const pair a = {
            .q = pl_storage_at(args->qkv, at3, kept),
            .k = pl_storage_at(args->qkv, at3 + C, kept),
            .v = pl_storage_at(args->qkv, at3 + 2 * C, kept),
            .out = pl_storage_at(args->out, at, args->out_storage),
            .dout = args->dout + at,
            .lse = args->lse + u * T,
            .dq = args->dqkv + at3,
            .dk = args->dqkv + at3 + C,
            .dv = args->dqkv + at3 + 2 * C,
            .p = scratch,
            .ds = scratch + BLOCK * row_floats(T),
            .C = C,
            .D = D,
            .stride = row_floats(T),
            .head = h,
            .sequence = args->dropout.sequence + (uint32_t)b,
            .scale = (float)(1.0 / sqrt((double)D)),
            .kept = kept,
            .out_kept = args->out_storage,
            .dropout = &args->dropout,
        };
        for (size_t t = 0; t < T; t++) {
            memset(a.dk + t * 3 * C, 0, D * sizeof *a.dk);
            memset(a.dv + t * 3 * C, 0, D * sizeof *a.dv);
        }
        for (size_t i = 0; i < T; i += BLOCK)
            backward_block(&a, i, T - i < BLOCK ? T - i : BLOCK);
    }
}
