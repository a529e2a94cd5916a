/* test_emulator.c: how the large kernels access memory: the segments of global
 * memory and the phases of local memory that a warp takes, beside the least.
 * That the emulator sees races, missing barriers and the like is shown by
 * tools/mutate, which plants them. */
#include "gpu/launch.h"
#include "support/asserts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- how memory is accessed ---- */

/* Memory as an arena's: every operand at a multiple of 256 bytes. */
static float *operand(size_t count)
{
    static _Alignas(256) float room[1 << 22];
    static size_t used;
    if (count == 0) {
        used = 0;
        return NULL;
    }
    float *at = room + used;
    used += (count + 63) / 64 * 64;
    assert_true(used <= sizeof room / sizeof *room);
    for (size_t i = 0; i < count; i++)
        at[i] = (float)(i % 7) - 3.0f;
    return at;
}

/* At most `most` times the segments, and no more phases than needed. */
static void judge_accesses(const char *what, double most)
{
    const emulator_count *c = &emulator_total;
    const double segments = (double)c->segments / (double)c->segments_ideal,
                 phases = c->phases_ideal
                              ? (double)c->phases / (double)c->phases_ideal
                              : 1.0; /* no local memory */
    print_message("%s: segments %.3f, phases %.3f times the least\n", what,
                  segments, phases);
    if (segments > most || phases > 1.1)
        fail_msg("%s: %.3f times the segments, %.3f times the phases", what,
                 segments, phases);
    emulator_total = (emulator_count){ 0 };
}

static void begin_counting(void)
{
    emulator.counts = 1;
    emulator.is_checked = 0;
    emulator_total = (emulator_count){ 0 };
}

static void end_counting(void)
{
    operand(0);
    emulator.counts = 0;
    emulator.is_checked = 1;
}

/* All three forms of a product, and the fourth in tensor arithmetic. */
static void count_products(pl_storage kept, pl_products products)
{
    static const char *const names[] = { "nn", "nt", "tn", "tt" };
    const size_t M = 256, N = 256, K = 128;
    pl_gpu_stream stream = { .launch = emulated_launch, .tensor = products };
    begin_counting();
    for (int form = 0; form < (products ? 4 : 3); form++) {
        const int a_turned = form >= 2, b_turned = form % 2;
        const pl_gemm g = { .M = M,
                            .N = N,
                            .K = K,
                            .a = operand(M * K),
                            .a_row = a_turned ? 1 : K,
                            .a_col = a_turned ? M : 1,
                            .b = operand(K * N),
                            .b_row = b_turned ? 1 : N,
                            .b_col = b_turned ? K : 1,
                            .c = operand(M * N),
                            .c_row = N,
                            .start = a_turned ? PL_GEMM_KEEP : PL_GEMM_ZERO,
                            .a_storage = kept,
                            .b_storage = kept,
                            .products = products,
                            .scratch = operand(M * K),
                            .scratch_floats = M * K };
        pl_gpu_gemm(&stream, &g);
        judge_accesses(names[form], 1.1);
        operand(0);
    }
    end_counting();
}

static void large_products_access_whole_lines(void **state)
{
    (void)state;
    count_products(PL_STORE_F32, PL_PRODUCTS_EXACT);
}

static void tensor_products_access_whole_lines(void **state)
{
    (void)state;
    count_products(PL_STORE_BF16, PL_PRODUCTS_TENSOR24);
}

/* Of heads of D channels. */
static void count_attention(size_t D, pl_storage kept, pl_products products)
{
    const size_t T = 128, H = 2, row = 3 * H * D;
    const size_t bytes = pl_storage_bytes(kept);
    pl_gpu_stream stream = { .launch = emulated_launch, .tensor = products };
    begin_counting();
    const char *qkv = (const char *)operand(T * row);
    float *out = operand(T * H * D), *lse = operand(T * H);
    const pl_attention a = { .out = out,
                             .lse = lse,
                             .q = qkv,
                             .k = qkv + H * D * bytes,
                             .v = qkv + 2 * H * D * bytes,
                             .q_row = row,
                             .kv_row = row,
                             .B = 1,
                             .queries = T,
                             .keys = T,
                             .H = H,
                             .KV = H,
                             .D = D,
                             .qkv_storage = kept,
                             .out_storage = kept,
                             .products = products };
    const pl_attention_bwd b = { .dqkv = operand(T * row),
                                 .dout = operand(T * H * D),
                                 .qkv = qkv,
                                 .out = out,
                                 .lse = lse,
                                 .B = 1,
                                 .T = T,
                                 .H = H,
                                 .KV = H,
                                 .D = D,
                                 .scratch = operand(T * H),
                                 .qkv_storage = kept,
                                 .out_storage = kept,
                                 .dout_storage = kept,
                                 .dqkv_storage = kept,
                                 .products = products };
    pl_gpu_attention(&stream, &a);
    judge_accesses("attention", 1.1);
    pl_gpu_attention_bwd(&stream, &b);
    judge_accesses("attention's gradients", 1.1);
    end_counting();
}

static void attention_accesses_whole_lines(void **state)
{
    (void)state;
    count_attention(64, PL_STORE_F32, PL_PRODUCTS_EXACT);
}

static void tensor_attention_accesses_whole_lines(void **state)
{
    (void)state;
    count_attention(64, PL_STORE_BF16, PL_PRODUCTS_TENSOR24);
    count_attention(128, PL_STORE_BF16, PL_PRODUCTS_TENSOR24);
}

/* What is done to heads, and SwiGLU. For the weights' gradients a group reads 8
 * columns of every head, a quarter of a segment or less: so many groups share
 * the work. */
static void count_heads(size_t D, pl_storage kept)
{
    const size_t rows = 64, H = 4, KV = 2, all = rows * (H + 2 * KV) * D;
    pl_gpu_stream stream = { .launch = emulated_launch };
    begin_counting();
    const pl_qk a = { .y = operand(all),
                      .x = operand(all),
                      .rstd = operand(rows * (H + KV)),
                      .q_weight = operand(D),
                      .k_weight = operand(D),
                      .table = operand(rows * D),
                      .rows = rows,
                      .T = rows,
                      .H = H,
                      .KV = KV,
                      .D = D,
                      .eps = 1e-6f,
                      .storage = kept };
    const pl_qk_bwd b = { .d = a.y,
                          .x = a.x,
                          .rstd = a.rstd,
                          .q_weight = a.q_weight,
                          .k_weight = a.k_weight,
                          .table = a.table,
                          .rows = rows,
                          .T = rows,
                          .H = H,
                          .KV = KV,
                          .D = D,
                          .d_storage = kept,
                          .x_storage = kept };
    const pl_qk_dw w = { .dq_weight = operand(D),
                         .dk_weight = operand(D),
                         .d = a.y,
                         .x = a.x,
                         .rstd = a.rstd,
                         .table = a.table,
                         .rows = rows,
                         .T = rows,
                         .H = H,
                         .KV = KV,
                         .D = D,
                         .d_storage = kept,
                         .x_storage = kept };
    pl_qk rotation = a;
    rotation.q_weight = rotation.k_weight = NULL;
    pl_gpu_qk(&stream, &rotation);
    judge_accesses("rotation", 1.1);
    pl_gpu_qk(&stream, &a);
    judge_accesses("norms of heads", 1.1);
    pl_gpu_qk_bwd(&stream, &b);
    judge_accesses("norms of heads, gradients", 1.1);
    pl_gpu_qk_dw(&stream, &w);
    judge_accesses("norms of heads, gradients of weights",
                   16.5 / (double)pl_storage_bytes(kept));
    end_counting();
}

static void heads_are_accessed_in_whole_lines(void **state)
{
    (void)state;
    count_heads(128, PL_STORE_F32);
    count_heads(128, PL_STORE_BF16);
}

static void gates_are_accessed_in_whole_lines(void **state)
{
    const size_t rows = 8, F = 1024;
    pl_gpu_stream stream = { .launch = emulated_launch };
    (void)state;
    begin_counting();
    const pl_glu a = {
        .y = operand(rows * F), .x = operand(2 * rows * F), .rows = rows, .F = F
    };
    const pl_glu_bwd b = {
        .x = operand(2 * rows * F), .dy = a.y, .rows = rows, .F = F
    };
    pl_gpu_glu(&stream, &a);
    pl_gpu_glu_bwd(&stream, &b);
    judge_accesses("SwiGLU", 1.1);
    end_counting();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_products_access_whole_lines),
        cmocka_unit_test(tensor_products_access_whole_lines),
        cmocka_unit_test(attention_accesses_whole_lines),
        cmocka_unit_test(tensor_attention_accesses_whole_lines),
        cmocka_unit_test(heads_are_accessed_in_whole_lines),
        cmocka_unit_test(gates_are_accessed_in_whole_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
