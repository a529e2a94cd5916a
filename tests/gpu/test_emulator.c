/* test_emulator.c: the emulator sees what it is there to see. Kernels of this
 * file's own have the mistakes; the card's self-test has none. */
#include "base/arena.h"
#include "device/selftest.h"
#include "gpu/emulated_device.h"
#include "gpu/emulator.h"
#include "support/asserts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- the self-test on the emulated card ---- */

typedef struct seen {
    size_t cases, different;
    char text[160];
} seen;

static void see(void *context, const pl_selftest_case *it)
{
    seen *s = context;
    s->cases++;
    if (it->different && !s->different)
        snprintf(s->text, sizeof s->text, "%s, %s, %s", it->op, it->what,
                 it->storage);
    s->different += it->different;
}

static void every_kernel_has_the_processors_bits(void **state)
{
    pl_heap heap = pl_heap_make(64 << 20);
    pl_error err = { 0 };
    pl_gpu_card card = { .name = "the emulated card" };
    pl_selftest_result result;
    seen all = { 0 };
    const pl_selftest_wish wish = { .seen = see, .context = &all };
    const size_t before = emulated_bank_bytes;
    (void)state;
    emulated_bank_bytes = 16 << 20;

    pl_status status = pl_selftest_run(&result, emulated_device.api, &card,
                                       &wish, &heap, &err);
    if (status)
        fail_msg("%s", err.text);
    if (all.different)
        fail_msg("%s: %zu bytes differ", all.text, all.different);
    assert_int_equal(result.failed, 0);
    assert_int_equal(result.cases, all.cases);
    assert_true(result.cases > 80);
    pl_heap_close(&heap);
    emulated_bank_bytes = before;
}

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
    operand(0);
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
    emulator_count forward = emulator_total;
    pl_gpu_attention_bwd(&stream, &b);
    (void)forward;
    judge_accesses("attention", 1.1);
    emulator.counts = 0;
    emulator.is_checked = 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_has_the_processors_bits),
        cmocka_unit_test(large_products_access_whole_lines),
        cmocka_unit_test(attention_accesses_whole_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
