/* args.h: what a launch is told, read by the host and by all three compilers of
 * the kernels. Members of 8 bytes stand first, so that no compiler pads. An
 * address of 0 is an argument that isn't there. */
#ifndef PL_KERNELS_GPU_ARGS_H
#define PL_KERNELS_GPU_ARGS_H

#include "kernels/dialect.h"

/* A mask (kernels.h): `key` is the second word of its key. */
typedef struct gpu_dropout {
    uint32_t threshold;
    float scale;
    uint32_t seed, step, key, sequence;
} gpu_dropout;

/* Bits of gpu_gemm.vector: fours of a, b and c, and of what the epilogue reads
 * and writes, can be accessed at once. */
enum { GPU_VECTOR_A = 1, GPU_VECTOR_B = 2, GPU_VECTOR_C = 4 };

/* Bits of gpu_gemm.by_k. */
enum { GPU_BY_K_A = 1, GPU_BY_K_B = 2 };

typedef struct gpu_gemm {
    uint64_t a, b, c, bias, x, y;
    uint32_t M, N, K, a_ld, b_ld, c_row;
    uint32_t start, epilogue, gelu, row, T, position;
    uint32_t a_storage, a_round, b_storage, b_round, c_storage, x_storage,
        y_storage;
    uint32_t flush; /* a bf16 product: of a bias, what pl_sum_start leaves */
    uint32_t vector;
    uint32_t first_tile; /* of rows, where the launch begins */
    uint32_t by_k;       /* of tensor_any, bits: whose k are contiguous */
    uint32_t unused;
    gpu_dropout dropout;
} gpu_gemm;

/* y[c * rows + r] = x[r * ld + c], elements of `bytes` bytes. */
typedef struct gpu_transpose {
    uint64_t y, x;
    uint32_t rows, columns, ld, bytes;
} gpu_transpose;

/* y[r * C + c] = x[r * ld + c], a float32 rounded to `storage`; C, ld and the
 * addresses are multiples of fours. */
typedef struct gpu_round {
    uint64_t y, x, rows;
    uint32_t C, ld, storage, unused;
} gpu_round;

typedef struct gpu_column_sum {
    uint64_t sum, x;
    uint32_t rows, C, x_storage, unused;
} gpu_column_sum;

typedef struct gpu_embed {
    uint64_t x, tokens, positions, wte, wpe;
    uint32_t token_stride, rows, T, C, position, wte_storage, wpe_storage,
        unused;
    gpu_dropout dropout;
} gpu_embed;

typedef struct gpu_embed_bwd {
    uint64_t dwte, dwpe, dx, tokens;
    uint32_t token_stride, rows, T, C;
    gpu_dropout dropout;
} gpu_embed_bwd;

/* Both norms: rmsnorm's stats have one number per row and it has no bias. */
typedef struct gpu_norm {
    uint64_t y, stats, x, weight, bias;
    uint32_t rows, C, y_storage, vector;
    float eps;
    uint32_t unused;
} gpu_norm;

typedef struct gpu_norm_bwd {
    uint64_t dx, dweight, dbias, dy, x, stats, weight;
    uint32_t rows, C, accumulate, dy_storage, vector, unused;
} gpu_norm_bwd;

/* Of queries' and keys' heads. `span` is how far apart the elements are that a
 * rotation mixes, half a head; without a table it is a whole one. `vector`:
 * fours before and behind the middle of a head can be accessed at once. */
typedef struct gpu_qk {
    uint64_t y, x, rstd, q_weight, k_weight, table, positions;
    uint32_t rows, T, H, KV, D, span, position, storage, vector;
    uint32_t back; /* rotates by the opposite angles */
    float eps;
    uint32_t unused;
} gpu_qk;

typedef struct gpu_qk_bwd {
    uint64_t d, x, rstd, q_weight, k_weight, table, dq_weight, dk_weight;
    uint32_t rows, T, H, KV, D, span, d_storage, x_storage, vector, unused;
} gpu_qk_bwd;

typedef struct gpu_attention {
    uint64_t out, lse, q, k, v, positions;
    uint32_t q_row, kv_row, B, queries, keys, first, H, KV, D;
    uint32_t qkv_storage, out_storage, vector;
    float scale;
    uint32_t unused;
    gpu_dropout dropout;
} gpu_attention;

typedef struct gpu_attention_bwd {
    uint64_t dqkv, dout, qkv, out, lse, delta;
    uint32_t B, T, H, KV, D;
    uint32_t qkv_storage, out_storage, dout_storage, dqkv_storage, vector;
    float scale;
    uint32_t unused;
    gpu_dropout dropout;
} gpu_attention_bwd;

typedef struct gpu_gelu {
    uint64_t y, x, count;
    uint32_t gelu, y_storage, x_storage, unused;
} gpu_gelu;

/* Forward y is written, and backward dy is read and x replaced. */
typedef struct gpu_glu {
    uint64_t y, dy, x;
    uint32_t rows, F, y_storage, dy_storage, x_storage, vector;
} gpu_glu;

typedef struct gpu_drop {
    uint64_t y, x;
    uint32_t rows, T, C, y_storage;
    gpu_dropout dropout;
} gpu_drop;

/* Elements of `bytes` bytes. */
typedef struct gpu_copy {
    uint64_t y, x, positions;
    uint32_t rows, C, y_row, x_row, bytes, queries, keys, unused;
} gpu_copy;

/* Of add, move and clear. */
typedef struct gpu_floats {
    uint64_t y, x, count;
} gpu_floats;

typedef struct gpu_cross_entropy {
    uint64_t logits, loss, tokens;
    uint32_t token_stride, first, rows, T, V, storage, vector;
    float scale, cap, inverse; /* 1 / cap */
} gpu_cross_entropy;

typedef struct gpu_softcap {
    uint64_t x, count;
    float cap, inverse;
    uint32_t vector, unused;
} gpu_softcap;

typedef struct gpu_loss_sum {
    uint64_t sums, loss;
    uint32_t sequences, T;
} gpu_loss_sum;

typedef struct gpu_sumsq {
    uint64_t partial, x, count, cols, row;
} gpu_sumsq;

/* Doubles travel as their bits. */
typedef struct gpu_clip {
    uint64_t grad_norm, clip, skipped, partial, count, loss_scale;
    float grad_clip;
    uint32_t unused;
} gpu_clip;

typedef struct gpu_adamw {
    uint64_t w, g, m, v, m_scales, v_scales, copy, clip, skipped, first, count;
    float keep, beta1_rest, beta2, beta2_rest, step_size, root_correction, eps;
    uint32_t w_storage, copy_storage, seed, step, tensor;
} gpu_adamw;

typedef struct gpu_muon_moment {
    uint64_t g, m, m_scales, clip, skipped, count;
    float momentum, momentum_rest;
    uint32_t seed, step, tensor, unused;
} gpu_muon_moment;

typedef struct gpu_muon_norm {
    uint64_t factor, partial, count;
} gpu_muon_norm;

typedef struct gpu_muon_part {
    uint64_t y, x, factor;
    uint32_t rows, cols, y_row, x_row, x_col, y_storage, x_storage;
    float scale;
} gpu_muon_part;

typedef struct gpu_muon_poly {
    uint64_t b, a;
    uint32_t n, storage;
    float unit, linear, square;
    uint32_t unused;
} gpu_muon_poly;

typedef struct gpu_muon_apply {
    uint64_t w, g, copy, skipped, count;
    float keep, rate;
    uint32_t w_storage, copy_storage, seed, step, tensor, unused;
} gpu_muon_apply;

typedef struct gpu_outer {
    uint64_t w, g, anchor, b, copy, count;
    float share, momentum, rate;
    uint32_t copy_storage;
} gpu_outer;

/* What measures a device: `rounds` of independent multiply-adds, or reads. */
typedef struct gpu_probe {
    uint64_t y, x, count;
    uint32_t rounds, unused;
} gpu_probe;

/* All kernels: name, items of a group, argument. */
#define PL_GPU_KERNELS(X)                                                      \
    X(gemm_nn, 256, gpu_gemm)                                                  \
    X(gemm_tn, 256, gpu_gemm)                                                  \
    X(gemm_tt, 256, gpu_gemm)                                                  \
    X(gemm_nn_stored, 256, gpu_gemm)                                           \
    X(gemm_tn_stored, 256, gpu_gemm)                                           \
    X(gemm_tt_stored, 256, gpu_gemm)                                           \
    X(gemm_nn_any, 64, gpu_gemm)                                               \
    X(gemm_nt_any, 64, gpu_gemm)                                               \
    X(gemm_tn_any, 64, gpu_gemm)                                               \
    X(gemm_tt_any, 64, gpu_gemm)                                               \
    X(gemm_nn_thin, 128, gpu_gemm)                                             \
    X(gemm_nt_thin, 128, gpu_gemm)                                             \
    X(transpose, 256, gpu_transpose)                                           \
    X(round_copy, 256, gpu_round)                                              \
    X(column_sum, 256, gpu_column_sum)                                         \
    X(embed, 256, gpu_embed)                                                   \
    X(embed_dwte, 256, gpu_embed_bwd)                                          \
    X(embed_dwpe, 256, gpu_embed_bwd)                                          \
    X(layernorm, 256, gpu_norm)                                                \
    X(layernorm_dx, 256, gpu_norm_bwd)                                         \
    X(layernorm_dw, 256, gpu_norm_bwd)                                         \
    X(rmsnorm, 256, gpu_norm)                                                  \
    X(rmsnorm_dx, 256, gpu_norm_bwd)                                           \
    X(rmsnorm_dw, 256, gpu_norm_bwd)                                           \
    X(qk_rotate, 256, gpu_qk)                                                  \
    X(qk_norm, 256, gpu_qk)                                                    \
    X(qk_dx, 256, gpu_qk_bwd)                                                  \
    X(qk_dw, 256, gpu_qk_bwd)                                                  \
    X(attention, 256, gpu_attention)                                           \
    X(attention_wide, 256, gpu_attention)                                      \
    X(attention_any, 256, gpu_attention)                                       \
    X(attention_few, 256, gpu_attention)                                       \
    X(attention_delta, 256, gpu_attention_bwd)                                 \
    X(attention_dq, 256, gpu_attention_bwd)                                    \
    X(attention_dkv, 256, gpu_attention_bwd)                                   \
    X(attention_dq_any, 256, gpu_attention_bwd)                                \
    X(attention_dkv_any, 256, gpu_attention_bwd)                               \
    X(gelu, 256, gpu_gelu)                                                     \
    X(glu, 256, gpu_glu)                                                       \
    X(glu_bwd, 256, gpu_glu)                                                   \
    X(drop, 256, gpu_drop)                                                     \
    X(copy, 256, gpu_copy)                                                     \
    X(add, 256, gpu_floats)                                                    \
    X(move, 256, gpu_floats)                                                   \
    X(clear, 256, gpu_floats)                                                  \
    X(cross_entropy, 256, gpu_cross_entropy)                                   \
    X(softcap, 256, gpu_softcap)                                               \
    X(loss_sum, 64, gpu_loss_sum)                                              \
    X(sumsq, 256, gpu_sumsq)                                                   \
    X(clip, 64, gpu_clip)                                                      \
    X(adamw, 256, gpu_adamw)                                                   \
    X(adamw_codes, 256, gpu_adamw)                                             \
    X(muon_moment, 256, gpu_muon_moment)                                       \
    X(muon_moment_codes, 256, gpu_muon_moment)                                 \
    X(muon_norm, 64, gpu_muon_norm)                                            \
    X(muon_part, 256, gpu_muon_part)                                           \
    X(muon_poly, 256, gpu_muon_poly)                                           \
    X(muon_apply, 256, gpu_muon_apply)                                         \
    X(outer, 256, gpu_outer)                                                   \
    X(probe_flops, 256, gpu_probe)                                             \
    X(probe_reads, 256, gpu_probe)

/* Those of tensor cores, which not every card has. The first four take
 * GPU_TENSOR_LOCAL bytes of local memory, which they don't declare: two tiles
 * of each operand. */
#define PL_GPU_LARGE_TENSOR_KERNELS(X)                                         \
    X(tensor_nn, 256, gpu_gemm)                                                \
    X(tensor_nt, 256, gpu_gemm)                                                \
    X(tensor_tn, 256, gpu_gemm)                                                \
    X(tensor_tt, 256, gpu_gemm)
#define PL_GPU_SMALL_TENSOR_KERNELS(X)                                         \
    X(tensor_any, 128, gpu_gemm)                                               \
    X(tensor_thin, 128, gpu_gemm)                                              \
    X(attention_tensor, 128, gpu_attention)                                    \
    X(attention_tensor_deep, 128, gpu_attention)                               \
    X(attention_dq_tensor, 128, gpu_attention_bwd)                             \
    X(attention_dq_tensor_deep, 128, gpu_attention_bwd)                        \
    X(attention_dkv_tensor, 128, gpu_attention_bwd)                            \
    X(attention_dkv_tensor_deep, 128, gpu_attention_bwd)
#define PL_GPU_TENSOR_KERNELS(X)                                               \
    PL_GPU_LARGE_TENSOR_KERNELS(X) PL_GPU_SMALL_TENSOR_KERNELS(X)

enum { GPU_TENSOR_LOCAL = 4 * 128 * 64 * 2 };

#endif
