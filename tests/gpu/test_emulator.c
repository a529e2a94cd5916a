/* test_emulator.c: how the large kernels access memory: the segments of global
 * memory and the phases of local memory that a warp takes, beside the least.
 * That the emulator sees races, missing barriers and the like is shown by
 * tools/mutate, which plants them. */
#include "device/gpu_launch.h"
#include "gpu/emulator.h"
#include "support/asserts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- how memory is accessed ---- */

static pl_status run(void *context, const pl_gpu_launch *launch, pl_error *err)
{
    const pl_gpu_kernel_info *kernel = &pl_gpu_kernels[launch->kernel];
    (void)context, (void)err;
    const char *wrong = emulator_run(kernel->name, launch->groups,
                                     launch->groups_y, launch->args,
                                     kernel->bytes);
    if (wrong)
        fail_msg("%s", wrong);
    return PL_OK;
}

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

static void large_products_access_whole_lines(void **state)
{
    const size_t M = 256, N = 256, K = 128;
    pl_gpu_stream stream = { .launch = run };
    (void)state;
    emulator.counts = 1;
    emulator.is_checked = 0;
    emulator_total = (emulator_count){ 0 };
    for (int form = 0; form < 3; form++) {
        const int a_turned = form == 2, b_turned = form == 1;
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
                            .scratch = operand(M * K),
                            .scratch_floats = M * K };
        static const char *const names[] = { "gemm nn", "gemm nt", "gemm tn" };
        pl_gpu_gemm(&stream, &g);
        judge_accesses(names[form], 1.1);
        operand(0);
    }
    emulator.counts = 0;
    emulator.is_checked = 1;
}

static void attention_accesses_whole_lines(void **state)
{
    const size_t T = 128, H = 2, D = 64, row = 3 * H * D;
    pl_gpu_stream stream = { .launch = run };
    (void)state;
    emulator.counts = 1;
    emulator.is_checked = 0;
    emulator_total = (emulator_count){ 0 };
    const float *qkv = operand(T * row);
    float *out = operand(T * H * D), *lse = operand(T * H);
    const pl_attention a = { .out = out,
                             .lse = lse,
                             .q = qkv,
                             .k = qkv + H * D,
                             .v = qkv + 2 * H * D,
                             .q_row = row,
                             .kv_row = row,
                             .B = 1,
                             .queries = T,
                             .keys = T,
                             .H = H,
                             .KV = H,
                             .D = D };
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
                                 .scratch = operand(T * H) };
    pl_gpu_attention(&stream, &a);
    judge_accesses("attention", 1.1);
    pl_gpu_attention_bwd(&stream, &b);
    judge_accesses("attention's gradients", 1.1);
    operand(0);
    emulator.counts = 0;
    emulator.is_checked = 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_products_access_whole_lines),
        cmocka_unit_test(attention_accesses_whole_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
