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
                 phases = (double)c->phases / (double)c->phases_ideal;
    print_message("%s: segments %.3f, phases %.3f times the least\n", what,
                  segments, phases);
    if (segments > most || phases > most)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_products_access_whole_lines),
        cmocka_unit_test(tensor_products_access_whole_lines),
        cmocka_unit_test(attention_accesses_whole_lines),
        cmocka_unit_test(tensor_attention_accesses_whole_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
