/* kernels.h: one slot per op, and the contracts.
 *
 * A kernel is pure: pointers and sizes in, numbers out. It cannot fail, never
 * allocates, keeps no state; what it needs was checked when the graph was
 * built. Every kernel is called on all threads at once with (ith, nth) and
 * writes only its share of the output; there is no barrier inside, so no part
 * of a kernel may read what another part of the same call writes.
 *
 * kernels/ref is the definition: naive, readable, double accumulation, all of
 * it on thread 0. The other sets are judged against it and obey
 *
 * the canonical order, which makes results independent of threads, chunks and
 * micro-batches, to the bit:
 *   CHAIN(k)  an output element is one chain of fused multiply-adds in
 *             ascending k, started from what is stated (zero, a bias, what the
 *             output holds). It may be cut anywhere and carried on from memory.
 *   LANES(j)  a sum (or max) within one row: 16 partial results, lane i over
 *             elements i, i+16, i+32 ..., then lanes i and i+8, i+4, i+2, i+1
 *             are added in this order. A missing element is the neutral one.
 *             Products are fused into their lane.
 *   TENSOR(k) the same element in tensor arithmetic (tensor.h), which stands
 *             for CHAIN(k) where an op's `products` asks for it and the
 *             product's operands are both bfloat16 or both float16: groups of
 *             16, so that a chain may be cut at multiples of 16 only.
 * One writer per output element. "fused" means one rounding on instruction
 * sets that have it; the base set rounds twice.
 *   LOG(m, l, x)  m + log(l) - x by the float32 operations of log_sum1
 *             (plain/vmath.h), off by 6e-9 beyond the rounding of the result.
 * exp, tanh and erf are that header's, too: no number of a run comes from a
 * libm, whose last bit is its own affair. So all sets but base give the same
 * bits (pl_arithmetic). That isn't promised for the sign and payload of a NaN,
 * nor where an infinity is among the keys and values that the causal mask
 * hides: 0 * infinity is NaN, and how many zeros are appended is a set's own
 * affair.
 *
 * Storage: what is `void *` beside a pl_storage may be kept in 16 bits, all
 * else is float32. An op sees its inputs rounded to their storage, also where
 * they are fused or never stored, and computes in float32 from there; what it
 * stores in 16 bits is a float32 result to its end and rounded once, then. So
 * no sum is ever rounded in the middle, and a value does not depend on who
 * reads it. pl_storage is 0 for float32.
 *
 * Shapes: row-major float32 unless said otherwise. Rows of a batch are
 * sequence after sequence, T rows each. Pointers do not alias unless a
 * contract says "in place". Any count may be 0. */
#ifndef PL_KERNELS_KERNELS_H
#define PL_KERNELS_KERNELS_H

#include "base/cpu.h"
#include "kernels/arithmetic.h"
#include "kernels/family.h"
#include "kernels/optimizer.h"
#include "kernels/storage.h"
#include "kernels/tensor.h"

#include <stddef.h>
#include <stdint.h>

/* ---- dropout ---- */

/* Where a mask is used: part of its key. */
typedef enum pl_dropout_site {
    PL_DROP_EMBED,
    PL_DROP_ATTENTION,
    PL_DROP_ATTENTION_OUT,
    PL_DROP_MLP_OUT,
} pl_dropout_site;

/* A mask is never stored. Element (row, column) of a sequence is kept iff
 *     word[column % 4] >= threshold,  threshold = round(p * 2^32)
 * where word = pl_philox(counter, key),
 *     key     = { seed, PL_RNG_DROPOUT | site << 8 | layer << 16 }
 *     counter = { column / 4, row in the sequence, sequence, step }
 * and, in attention, row = query position, column = key position and
 * counter[0] = head << 20 | column / 4. Kept elements are multiplied by
 * scale = (float)(1 / (1 - p)), dropped ones are +0. threshold == 0
 * (dropout = 0.0): no mask, no multiplication. */
typedef struct pl_dropout {
    uint32_t threshold;
    float scale;
    uint32_t seed, step;
    uint32_t site, layer;
    uint32_t sequence; /* of the first row, counted within the update */
} pl_dropout;

enum {
    PL_DROP_MAX_T = 1 << 22,
    PL_DROP_MAX_HEADS = 1 << 12,
    PL_DROP_MAX_LAYERS = 1 << 16,
};

/* ---- matrix product ---- */

/* What stands in GELU's place: two forms of it, and relu2, max(x, 0)^2. */
typedef enum pl_gelu_kind {
    PL_GELU_ERF,
    PL_GELU_TANH,
    PL_GELU_RELU2,
} pl_gelu_kind;

/* The epilogue of a product: what is done to C once its chains have ended, part
 * by part, while the part is in the cache. It works element by element, so that
 * the parts don't matter. x and y have the shape of c and the row stride `row`.
 * c and x are float32 for the last. */
typedef enum pl_epilogue_kind {
    PL_EPILOGUE_NONE,
    PL_EPILOGUE_GELU, /* y = GELU(c), or C itself becomes that where y is NULL;
                       * c is first rounded to its storage in either case */
    PL_EPILOGUE_GELU_BWD, /* c *= GELU'(x), before c is rounded to its storage
                           */
    PL_EPILOGUE_RESIDUAL, /* c = x + drop(c): row m is row position + m of
                           * sequences of T rows */
} pl_epilogue_kind;

typedef struct pl_epilogue {
    pl_epilogue_kind kind;
    pl_gelu_kind gelu;
    void *y;
    const void *x;
    pl_storage y_storage, x_storage;
    size_t row; /* stride of x and y */
    pl_dropout dropout;
    size_t T, position;
} pl_epilogue;

typedef enum pl_gemm_start {
    PL_GEMM_ZERO, /* chain starts from +0 */
    PL_GEMM_BIAS, /* from bias[n] */
    PL_GEMM_KEEP, /* from what c holds */
} pl_gemm_start;

/* c[m, n] = start + CHAIN(k) a(m, k) * b(k, n).
 * a(m, k) is a[m * a_row + k * a_col], b(k, n) is b[k * b_row + n * b_col]:
 * a_row is the stride from row to row and a_col that from column to column, in
 * elements. One of each pair is 1, and the other is what BLAS calls the leading
 * dimension: a_col == 1 is row-major, a_row == 1 is a transposed matrix. c is
 * row-major with leading dimension c_row >= N. A float32 b is rounded to
 * b_round as it is read: master weights used as 16-bit weights, with the bits
 * that a stored 16-bit copy gives. b_round is ignored for a b of 16 bits. a and
 * a_round likewise. PL_GEMM_KEEP needs a float32 c: a chain in 16 bits would be
 * rounded where it was cut.
 *
 * A bf16 product is one whose operands are both bfloat16, stored so or rounded
 * so as they are read (pl_gemm_is_bf16). Its sums are never denormal
 * (halves.h), so that a set may use instructions that know no denormals: a
 * bias counts as pl_sum_start(bias), and a KEEP start is what such a product
 * left, or pl_sum_start leaves as it is. */
typedef struct pl_gemm {
    size_t M, N, K;
    const void *a;
    size_t a_row, a_col;
    const void *b;
    size_t b_row, b_col;
    void *c;
    size_t c_row;
    const float *bias; /* [N], for PL_GEMM_BIAS */
    pl_gemm_start start;
    pl_storage a_storage, a_round, b_storage, b_round, c_storage;
    pl_products products;
    pl_epilogue epilogue;
    float *scratch; /* this thread's; NULL: b is packed on the stack, a few
                     * columns at a time */
    size_t scratch_floats;
} pl_gemm;

static inline pl_storage pl_gemm_a(const pl_gemm *g)
{
    return g->a_storage ? g->a_storage : g->a_round;
}

static inline pl_storage pl_gemm_b(const pl_gemm *g)
{
    return g->b_storage ? g->b_storage : g->b_round;
}

static inline int pl_gemm_is_bf16(const pl_gemm *g)
{
    return pl_gemm_a(g) == PL_STORE_BF16 && pl_gemm_b(g) == PL_STORE_BF16;
}

/* Rows and, at most, columns of B that are packed together (BLIS: KC, NC). */
enum { PL_GEMM_DEPTH = 384, PL_GEMM_COLUMNS = 512 };

/* Floats of scratch per thread that serve products of up to `columns` columns
 * best, also such as write 16 bits. Any number will do. */
static inline size_t pl_gemm_scratch(size_t columns, pl_storage storage)
{
    const size_t most = columns < PL_GEMM_COLUMNS ? columns : PL_GEMM_COLUMNS,
                 wide = (most + 63) / 64 * 64, strip = 64 * 1024;
    return wide * (PL_GEMM_DEPTH + 1) + 96 * PL_GEMM_DEPTH +
           (storage == PL_STORE_F32 ? 0 : strip);
}

/* sum[c] += CHAIN(row) of 1 * x[row, c], started from what sum holds: the
 * gradient of a bias. */
typedef struct pl_column_sum {
    float *sum;    /* [C] */
    const void *x; /* [rows, C] */
    size_t rows, C;
    pl_storage x_storage;
} pl_column_sum;

/* ---- embedding ---- */

/* x[r, :] = drop(wte[token(r), :] + wpe[place(r), :]), where
 * token(r) = tokens[(r / T) * token_stride + r % T] and
 * place(r) = first + r % T; first is positions[r / T], or `position` for all
 * sequences where positions is NULL. wpe may be NULL: then there is no such
 * table, and nothing is added. */
typedef struct pl_embed {
    float *x; /* [rows, C] */
    const int32_t *tokens;
    size_t token_stride, rows, T, C;
    size_t position;          /* of a sequence's first row */
    const int32_t *positions; /* [rows / T], or NULL */
    const void *wte, *wpe;
    pl_dropout dropout; /* rows place(r) of each sequence */
    pl_storage wte_storage, wpe_storage;
} pl_embed;

/* The gradients of both tables: rows in ascending order, dwpe[r % T, :] +=
 * drop(dx[r, :]) and dwte[token(r), :] = pl_sum_start(dwte + drop(dx[r, :])),
 * since dwte is also what a bf16 product carries on from. dwpe may be NULL.
 * Threads split columns. */
typedef struct pl_embed_bwd {
    float *dwte, *dwpe;
    const float *dx; /* [rows, C] */
    const int32_t *tokens;
    size_t token_stride, rows, T, C;
    pl_dropout dropout;
} pl_embed_bwd;

/* ---- layernorm ---- */

/* mean = LANES(x) / C; var = LANES((x - mean)^2) / C;
 * rstd = 1 / sqrt(var + eps); y = fma((x - mean) * rstd, weight, bias).
 * stats[r] = { mean, rstd }. bias may be NULL: then y is the product. */
typedef struct pl_layernorm {
    void *y;
    float *stats;
    const float *x, *weight, *bias;
    size_t rows, C;
    float eps; /* nanoGPT's is 1e-5 */
    pl_storage y_storage;
} pl_layernorm;

/* With h = (x - mean) * rstd and g = dy * weight:
 *   d  = (g - LANES(g) / C - h * (LANES(g * h) / C)) * rstd
 *   dx = d, or dx += d if accumulate
 *   dweight[c] += CHAIN(row) dy * h,  dbias[c] += CHAIN(row) dy  (NULL: none)
 * dx must not alias dy. */
typedef struct pl_layernorm_bwd {
    float *dx, *dweight, *dbias;
    const void *dy;
    const float *x, *stats, *weight;
    size_t rows, C;
    int accumulate;
    pl_storage dy_storage;
} pl_layernorm_bwd;

/* ---- RMSNorm ---- */

/* rstd = 1 / sqrt(LANES(x^2) / C + eps); y = (x * rstd) * weight. */
typedef struct pl_rmsnorm {
    void *y;
    float *rstd; /* [rows] */
    const float *x, *weight;
    size_t rows, C;
    float eps;
    pl_storage y_storage;
} pl_rmsnorm;

/* With h = x * rstd and g = dy * weight:
 *   d  = (g - h * (LANES(g * h) / C)) * rstd
 *   dx = d, or dx += d if accumulate
 *   dweight[c] += CHAIN(row) dy * h
 * dx must not alias dy. */
typedef struct pl_rmsnorm_bwd {
    float *dx, *dweight;
    const void *dy;
    const float *x, *rstd, *weight;
    size_t rows, C;
    int accumulate;
    pl_storage dy_storage;
} pl_rmsnorm_bwd;

/* ---- attention ---- */

/* Causal attention of `queries` rows of each of B sequences, H heads of width
 * D, over KV heads of keys and values (KV divides H): query head h reads head
 * h / (H / KV) of them. Sequence b's queries are at positions first(b) ..
 * first(b) + queries - 1, where first(b) is positions[b], or `first` for all
 * where positions is NULL; each sees keys 0 .. its own position. Element
 * (b, i, h, d) of q is q[(b * queries + i) * q_row + h * D + d]; element
 * (b, j, g, d) of k and v is k[(b * keys + j) * kv_row + g * D + d], where
 * `keys` is how many rows one sequence has there (first(b) + queries <= keys).
 * Training passes one buffer: q = qkv, k = qkv + H*D, v = qkv + (H + KV)*D,
 * rows of (H + 2*KV)*D.
 *   s_j = (CHAIN(d) q_d * k_jd, from 0) * scale,  scale = (float)(1/sqrt(D))
 *   m = max s_j;  p_j = exp(s_j - m);  l = LANES(p_j) over j = 0 .. position
 *   P_j = drop(p_j), rounded to qkv_storage
 *   out = (CHAIN(j) P_j * v_j, from 0) * (1 / l) + 0;  lse = LOG(m, l, 0)
 * out[(b * queries + i) * H * D + h * D + d]; lse[(b * H + h) * queries + i]
 * (NULL: not wanted). Appending zeros to a chain is allowed: +0 * v changes no
 * sum but -0, which the final + 0 makes +0 in any case. q, k and v share one
 * storage, in which P meets v; all else is float32. What a sequence gets
 * doesn't depend on the others, nor on how many there are. In tensor
 * arithmetic both chains are TENSOR, over d and over keys from key 0 on; a
 * hidden key has P = +0. */
typedef struct pl_attention {
    void *out;
    float *lse;
    const void *q, *k, *v;
    size_t q_row, kv_row;
    size_t B, queries, keys, first, H, KV, D;
    const int32_t *positions; /* [B], or NULL */
    pl_dropout dropout;
    float *scratch; /* nth * pl_attention_scratch(keys, D) floats */
    pl_storage qkv_storage, out_storage;
    pl_products products;
} pl_attention;

/* Gradients of training's form (first = 0, queries = keys = T, one buffer qkv
 * of rows (H + 2*KV)*D; dqkv likewise, written whole):
 *   p_j = exp(s_j - lse);  P_j = drop(p_j), rounded to qkv_storage
 *   delta = LANES(d) dout_d * out_d
 *   dp_j = drop(CHAIN(d) dout_d * v_jd, from 0)  (same mask and scale)
 *   ds_j = p_j * (dp_j - delta) * scale, rounded to qkv_storage
 *   dq = CHAIN(j) ds_j * k_j
 *   dk_j = CHAIN(h, i) ds_j * q_i;  dv_j = CHAIN(h, i) P_j * dout_i
 * all from 0, and + 0 at the end, as above: dk's and dv's chains take one query
 * head of the group after the other (h ascending), the queries of each in
 * ascending order, and a query that doesn't see the key is as good as a zero.
 * In tensor arithmetic, which needs a dout in qkv_storage, all five chains are
 * TENSOR: dq's over keys from key 0 on; dk's and dv's over the queries of each
 * head from query 0 on, in groups that begin anew with each head, carried on
 * from head to head. Hidden P and ds are +0. */
typedef struct pl_attention_bwd {
    void *dqkv;
    const void *dout;
    const void *qkv, *out;
    const float *lse;
    size_t B, T, H, KV, D;
    pl_dropout dropout;
    float *scratch; /* nth * pl_attention_bwd_scratch(T, D, dqkv_storage) */
    pl_storage qkv_storage, out_storage, dout_storage, dqkv_storage;
    pl_products products;
} pl_attention_bwd;

/* Query rows that a kernel may treat together. */
enum { PL_ATTENTION_BLOCK = 60 };

/* Floats of scratch per thread for `keys` keys of D channels: two blocks of
 * scores, and a head's keys and values in three forms. */
static inline size_t pl_attention_scratch(size_t keys, size_t D)
{
    const size_t wide = (keys + 31) / 32 * 32, deep = (D + 31) / 32 * 32;
    return 2 * PL_ATTENTION_BLOCK * wide + 3 * wide * deep +
           2 * PL_ATTENTION_BLOCK * deep;
}

/* The same for gradients: dk and dv of a head are summed in a float32 dqkv
 * itself, and elsewhere if it has 16 bits. */
static inline size_t pl_attention_bwd_scratch(size_t T, size_t D,
                                              pl_storage dqkv_storage)
{
    const size_t wide = (T + 31) / 32 * 32, deep = (D + 31) / 32 * 32;
    return pl_attention_scratch(T, D) +
           (dqkv_storage == PL_STORE_F32 ? 0 : 2 * wide * deep);
}

/* ---- elementwise ---- */

/* y = GELU(x): x/2 (1 + erf(x/sqrt2)), or OpenAI's tanh form. */
typedef struct pl_gelu {
    void *y;
    const void *x;
    size_t count;
    pl_gelu_kind kind;
    pl_storage y_storage, x_storage;
} pl_gelu;

/* y = drop(x). */
typedef struct pl_drop {
    void *y;
    const float *x;
    size_t rows, T, C;
    pl_dropout dropout;
    pl_storage y_storage;
} pl_drop;

/* y[place(r) * y_row + c] = x[r * x_row + c]; both have the one storage.
 * place(r) is r; but where there are positions, rows are those of sequences,
 * `queries` of each, which have `keys` rows each in y: place(r) =
 * (r / queries) * keys + positions[r / queries] + r % queries. */
typedef struct pl_copy {
    void *y;
    const void *x;
    size_t rows, C, y_row, x_row;
    pl_storage storage;
    const int32_t *positions; /* [rows / queries], or NULL */
    size_t queries, keys;
} pl_copy;

/* ---- sums of groups ---- */

/* y[i] = x[i] + y[i]. */
typedef struct pl_add {
    float *y;
    const float *x;
    size_t count;
} pl_add;

/* y[i] = x[i], then x[i] = +0. */
typedef struct pl_move {
    float *y, *x;
    size_t count;
} pl_move;

/* ---- loss ---- */

/* Rows `first` .. first + rows - 1 of a batch whose targets are
 * target(r) = tokens[(r / T) * token_stride + r % T + 1]. Per row:
 *   m = max, l = LANES(exp(logit - m)), loss[r] = LOG(m, l, logit[target])
 * where loss is indexed by the row of the batch, logits by r - first.
 * scale != 0: logits are replaced, in place, by
 *   dlogit = (exp(logit - m) * (1 / l) - [is target]) * scale
 * scale == 0 (evaluation): logits may be left in any state.
 * cap != 0: before all that every logit becomes z = cap * tanh(logit * (1 /
 * cap)), rounded to the storage, and is z from there on; dlogit is then also
 * multiplied by fma(-t, t, 1) with t = z * (1 / cap). */
typedef struct pl_cross_entropy {
    void *logits;
    float *loss;
    const int32_t *tokens;
    size_t token_stride, first, rows, T, V;
    float scale;
    float cap;
    pl_storage storage; /* of the logits and of what replaces them */
} pl_cross_entropy;

/* sums[s] = the double sum of loss[s*T .. s*T+T-1] in ascending order. */
typedef struct pl_loss_sum {
    double *sums;
    const float *loss;
    size_t sequences, T;
} pl_loss_sum;

/* ---- the table ---- */

/* One row per op: slot name. The argument type is pl_<slot>. */
#define PL_KERNEL_TABLE(X)                                                     \
    X(gemm)                                                                    \
    X(column_sum)                                                              \
    X(embed)                                                                   \
    X(embed_bwd)                                                               \
    X(layernorm)                                                               \
    X(layernorm_bwd)                                                           \
    X(rmsnorm)                                                                 \
    X(rmsnorm_bwd)                                                             \
    X(qk)                                                                      \
    X(qk_bwd)                                                                  \
    X(qk_dw)                                                                   \
    X(attention)                                                               \
    X(attention_bwd)                                                           \
    X(gelu)                                                                    \
    X(glu)                                                                     \
    X(glu_bwd)                                                                 \
    X(softcap)                                                                 \
    X(drop)                                                                    \
    X(copy)                                                                    \
    X(add)                                                                     \
    X(move)                                                                    \
    X(cross_entropy)                                                           \
    X(loss_sum)                                                                \
    X(sumsq)                                                                   \
    X(clip)                                                                    \
    X(adamw)                                                                   \
    X(muon_moment)                                                             \
    X(muon_norm)                                                               \
    X(muon_part)                                                               \
    X(muon_poly)                                                               \
    X(muon_apply)                                                              \
    X(outer)

typedef struct pl_kernels {
    const char *name; /* "ref", "base", "avx2", "avx512", "avx512bf16", "amx",
                       * "neon" */
    pl_arithmetic arithmetic;
#define PL_KERNEL_SLOT(op) void (*op)(const pl_##op *args, int ith, int nth);
    PL_KERNEL_TABLE(PL_KERNEL_SLOT)
#undef PL_KERNEL_SLOT
    /* Not an op: runs independent multiply-adds, `rounds` times some, leaves a
     * number that depends on all of them in *sink and returns how many flops
     * they were. For measuring a thread's peak. NULL in the reference. */
    double (*peak)(size_t rounds, float *sink);
    /* The same for bf16 products, where they have instructions of their own;
     * else NULL. */
    double (*peak_bf16)(size_t rounds, float *sink);
    /* What its instructions for matrices compute, and the same for these;
     * exact and NULL where it has none. */
    pl_products matrices;
    double (*peak_matrices)(size_t rounds, float *sink);
    /* Reads x (but for a remainder of less than 1 KiB) and adds something that
     * depends on it to *sink. For measuring how fast memory can be read. NULL
     * in the reference. */
    void (*read)(const float *x, size_t count, float *sink);
} pl_kernels;

/* The reference set. */
pl_kernels pl_kernels_ref(void);

/* The set for `isa`: the reference, overlaid by what that set has. */
pl_kernels pl_kernels_for(pl_isa isa);

#endif
