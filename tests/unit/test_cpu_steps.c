/* test_cpu_steps.c: what a buffer's dtype and a step's flags become when a
 * step is handed to a kernel: against the kernel called by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cpu_rig.h"

static void weights_and_activations_of_a_product(void **state)
{
    static rig r;
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int transposed = 0; transposed < 2; transposed++)
            for (int copy = 0; copy < 2; copy++) {
                const pl_storage s = kinds[kind].storage;
                const pl_dtype dtype = kinds[kind].dtype;
                rig_begin(&r, transposed ? PL_OP_MATMUL_T : PL_OP_MATMUL);
                void *y = rig_arg(&r, dtype, s, OUT, 1);
                void *x = rig_arg(&r, dtype, s, IN, 2);
                /* a stored copy of the weights, or rounding on the way */
                void *w = rig_arg(&r, copy ? dtype : PL_F32,
                                  copy ? s : PL_STORE_F32, OUT, 3);
                float *bias = transposed
                                  ? NULL
                                  : rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 4);
                float want[ROWS * OUT];
                pl_gemm g = product_of(&r, want, x, w, transposed);
                g.bias = bias;
                g.start = transposed ? PL_GEMM_ZERO : PL_GEMM_BIAS;
                g.a_storage = g.c_storage = s;
                g.b_storage = copy ? s : PL_STORE_F32;
                g.b_round = copy ? PL_STORE_F32 : s;
                r.step.flags = copy ? 0 : kinds[kind].round;
                rig_run(&r);
                r.context.kernels.gemm(&g, 0, 1);
                assert_memory_equal(y, want, ROWS * OUT * pl_storage_bytes(s));
            }
}

static void a_gelu_may_follow_a_product(void **state)
{
    static rig r;
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int in_place = 0; in_place < 2; in_place++) {
            const pl_storage s = kinds[kind].storage;
            const size_t bytes = ROWS * OUT * pl_storage_bytes(s);
            float want[ROWS * OUT], gelu[ROWS * OUT];
            rig_begin(&r, PL_OP_MATMUL);
            void *y = rig_arg(&r, kinds[kind].dtype, s, OUT, 1);
            void *x = rig_arg(&r, PL_F32, PL_STORE_F32, IN, 2);
            void *w = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 3);
            r.next = PL_ARG_MATMUL_GELU;
            void *z = in_place ? NULL
                               : rig_arg(&r, kinds[kind].dtype, s, OUT, 4);
            pl_gemm g = product_of(&r, want, x, w, 0);
            g.c_storage = s;
            r.step.flags = PL_STEP_GELU_TANH | (in_place ? PL_STEP_GELU : 0);
            rig_run(&r);
            r.context.kernels.gemm(&g, 0, 1);
            const pl_gelu f = { .y = gelu,
                                .x = want,
                                .count = ROWS * OUT,
                                .kind = PL_GELU_TANH,
                                .y_storage = s,
                                .x_storage = s };
            r.context.kernels.gelu(&f, 0, 1);
            assert_memory_equal(y, in_place ? gelu : want, bytes);
            if (!in_place)
                assert_memory_equal(z, gelu, bytes);
        }
}

static void a_residual_or_a_slope_may_follow_a_product(void **state)
{
    static rig r;
    (void)state;
    for (int transposed = 0; transposed < 2; transposed++) {
        float want[ROWS * OUT];
        rig_begin(&r, transposed ? PL_OP_MATMUL_T : PL_OP_MATMUL);
        float *y = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 1);
        void *x = rig_arg(&r, PL_F32, PL_STORE_F32, IN, 2);
        void *w = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 3);
        r.next = transposed ? PL_ARG_MATMUL_T_FC : PL_ARG_MATMUL_RESIDUAL;
        float *other = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 4);
        pl_gemm g = product_of(&r, want, x, w, transposed);
        r.step.T = 2;
        r.step.dropout = transposed ? 0.0 : 0.5;
        r.step.site = 3;
        r.step.layer = 1;
        r.controls.seed = 7;
        r.controls.step = 9;
        r.controls.micro_first = 4;
        rig_run(&r);
        g.epilogue = (pl_epilogue){ .kind = transposed ? PL_EPILOGUE_GELU_BWD
                                                       : PL_EPILOGUE_RESIDUAL,
                                    .x = other,
                                    .row = OUT,
                                    .T = 2 };
        if (!transposed)
            g.epilogue.dropout = (pl_dropout){ .threshold = 1u << 31,
                                               .scale = 2.0f,
                                               .seed = 7,
                                               .step = 9,
                                               .site = 3,
                                               .layer = 1,
                                               .sequence = 4 };
        r.context.kernels.gemm(&g, 0, 1);
        assert_memory_equal(y, want, sizeof want);
    }
}

static void a_weights_gradient_of_stored_activations(void **state)
{
    static rig r;
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        const pl_storage s = kinds[kind].storage;
        float want[IN * OUT];
        rig_begin(&r, PL_OP_MATMUL_DW);
        float *dw = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 1);
        void *x = rig_arg(&r, kinds[kind].dtype, s, IN, 2);
        void *dy = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 3);
        memcpy(want, dw, sizeof want);
        r.step.rows = ROWS;
        r.step.cols = OUT;
        r.step.inner = IN;
        rig_run(&r);
        const pl_gemm g = { .M = IN,
                            .N = OUT,
                            .K = ROWS,
                            .a = x,
                            .a_row = 1,
                            .a_col = IN,
                            .b = dy,
                            .b_row = OUT,
                            .b_col = 1,
                            .c = want,
                            .c_row = OUT,
                            .start = PL_GEMM_KEEP,
                            .a_storage = s };
        r.context.kernels.gemm(&g, 0, 1);
        assert_memory_equal(dw, want, sizeof want);
    }
}

static void rows_that_are_kept_in_16_bits(void **state)
{
    static rig r;
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        const pl_storage s = kinds[kind].storage;
        const size_t bytes = ROWS * OUT * pl_storage_bytes(s);
        float want[ROWS * OUT], stats[2 * ROWS];
        rig_begin(&r, PL_OP_LAYERNORM);
        void *y = rig_arg(&r, kinds[kind].dtype, s, OUT, 1);
        rig_arg(&r, PL_F32, PL_STORE_F32, 2, 2);
        float *x = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 3);
        float *weight = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 4);
        float *bias = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 5);
        r.step.rows = ROWS;
        r.step.cols = OUT;
        r.step.eps = 1e-5;
        rig_run(&r);
        const pl_layernorm n = { .y = want,
                                 .stats = stats,
                                 .x = x,
                                 .weight = weight,
                                 .bias = bias,
                                 .rows = ROWS,
                                 .C = OUT,
                                 .eps = 1e-5f,
                                 .y_storage = s };
        r.context.kernels.layernorm(&n, 0, 1);
        assert_memory_equal(y, want, bytes);

        rig_begin(&r, PL_OP_GELU);
        y = rig_arg(&r, kinds[kind].dtype, s, OUT, 1);
        void *fc = rig_arg(&r, kinds[kind].dtype, s, OUT, 2);
        r.step.rows = ROWS;
        r.step.cols = OUT;
        rig_run(&r);
        const pl_gelu g = { .y = want,
                            .x = fc,
                            .count = ROWS * OUT,
                            .y_storage = s,
                            .x_storage = s };
        r.context.kernels.gelu(&g, 0, 1);
        assert_memory_equal(y, want, bytes);
    }
}

/* Rows in two parts through the cache give the rows of the whole. */
static void attention_through_the_cache_equals_the_whole(void **state)
{
    static rig whole, append, cached;
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        const pl_storage s = kinds[kind].storage;
        const pl_dtype dtype = kinds[kind].dtype;
        rig_begin(&whole, PL_OP_ATTENTION);
        void *want = rig_arg(&whole, dtype, s, C, 1);
        rig_arg(&whole, PL_F32, PL_STORE_F32, 1, 2);
        void *qkv = rig_arg(&whole, dtype, s, 3 * C, 3);
        float scratch[40000];
        rig_arg(&whole, PL_F32, PL_STORE_F32, 1, 4);
        whole.memory[4] = scratch;
        whole.step.rows = whole.step.T = ROWS;
        whole.step.heads = whole.step.kv = H;
        whole.step.inner = D;
        rig_run(&whole);

        rig_begin(&append, PL_OP_CACHE_APPEND);
        void *cache = rig_arg(&append, dtype, s, C, 5);
        rig_arg(&append, dtype, s, 3 * C, 6);
        rig_begin(&cached, PL_OP_ATTENTION_CACHED);
        void *got = rig_arg(&cached, dtype, s, C, 7);
        rig_arg(&cached, dtype, s, 3 * C, 8);
        rig_arg(&cached, dtype, s, C, 9);
        rig_arg(&cached, PL_F32, PL_STORE_F32, 1, 10);
        cached.memory[3] = cache;
        cached.memory[4] = scratch;
        append.step.T = cached.step.T = ROWS;
        append.step.heads = cached.step.heads = H;
        append.step.kv = cached.step.kv = H;
        append.step.inner = cached.step.inner = D;
        for (uint32_t at = 0; at < ROWS; at += 4) {
            append.memory[2] = cached.memory[2] = pl_storage_at(qkv, at * 3 * C,
                                                                s);
            append.controls.position = cached.controls.position = at;
            append.controls.rows = cached.controls.rows = at ? ROWS - 4 : 4;
            rig_run(&append);
            cached.memory[1] = pl_storage_at(got, at * C, s);
            rig_run(&cached);
        }
        assert_memory_equal(got, want, ROWS * C * pl_storage_bytes(s));
    }
}

static void the_gradients_of_attention_read_what_is_kept(void **state)
{
    static rig r;
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        const pl_storage s = kinds[kind].storage;
        const pl_dtype dtype = kinds[kind].dtype;
        float want[ROWS * 3 * C], scratch[40000];
        rig_begin(&r, PL_OP_ATTENTION_BWD);
        float *dqkv = rig_arg(&r, PL_F32, PL_STORE_F32, 3 * C, 1);
        float *dout = rig_arg(&r, PL_F32, PL_STORE_F32, C, 2);
        void *qkv = rig_arg(&r, dtype, s, 3 * C, 3);
        void *out = rig_arg(&r, dtype, s, C, 4);
        float *lse = rig_arg(&r, PL_F32, PL_STORE_F32, 1, 5);
        rig_arg(&r, PL_F32, PL_STORE_F32, 1, 6);
        r.memory[6] = scratch;
        r.step.rows = r.step.T = ROWS;
        r.step.heads = r.step.kv = H;
        r.step.inner = D;
        rig_run(&r);
        const pl_attention_bwd b = { .dqkv = want,
                                     .dout = dout,
                                     .qkv = qkv,
                                     .out = out,
                                     .lse = lse,
                                     .B = 1,
                                     .T = ROWS,
                                     .H = H,
                                     .KV = H,
                                     .D = D,
                                     .scratch = scratch,
                                     .qkv_storage = s,
                                     .out_storage = s };
        r.context.kernels.attention_bwd(&b, 0, 1);
        assert_memory_equal(dqkv, want, sizeof want);
    }
}

static void adamw_of_small_weights_and_moments(void **state)
{
    enum { N = 300 };
    static rig r;
    (void)state;
    for (int skipped = 0; skipped < 2; skipped++) {
        rig_begin(&r, PL_OP_ADAMW);
        uint16_t *w = rig_arg(&r, PL_BF16, PL_STORE_BF16, N, 1);
        float *g = rig_arg(&r, PL_F32, PL_STORE_F32, N, 2);
        void *m = rig_arg(&r, PL_U8, PL_STORE_F32, N, 3);
        void *v = rig_arg(&r, PL_U8, PL_STORE_F32, N, 4);
        float *ms = rig_arg(&r, PL_F32, PL_STORE_F32, 2, 5);
        float *vs = rig_arg(&r, PL_F32, PL_STORE_F32, 2, 6);
        uint16_t *copy = rig_arg(&r, PL_F16, PL_STORE_F16, N, 7);
        pl_outcome *said = rig_arg(&r, PL_U8, PL_STORE_F32, PL_OUTCOME_BYTES,
                                   8);
        uint16_t w2[N], before[N], copy2[N];
        float g2[N], ms2[2], vs2[2], zeros[N] = { 0 };
        int8_t m2[N];
        uint8_t v2[N];
        memcpy(before, w, sizeof before);
        memcpy(w2, w, sizeof w2);
        memcpy(copy2, copy, sizeof copy2);
        memcpy(g2, g, sizeof g2);
        memcpy(m2, m, sizeof m2);
        memcpy(v2, v, sizeof v2);
        memcpy(ms2, ms, sizeof ms2);
        memcpy(vs2, vs, sizeof vs2);
        r.step.rows = N;
        r.step.tensor = 21;
        r.controls = (pl_controls){ .learning_rate = 0.01,
                                    .beta1 = 0.9,
                                    .beta2 = 0.95,
                                    .eps = 1e-8,
                                    .correction1 = 1,
                                    .correction2 = 1,
                                    .seed = 5,
                                    .step = 9 };
        *said = (pl_outcome){ .clip = 1, .skipped = (uint32_t)skipped };
        rig_run(&r);
        const pl_adamw a = { .g = g2,
                             .count = N,
                             .keep = 1,
                             .beta1_rest = (float)(1 - 0.9),
                             .beta2 = 0.95f,
                             .beta2_rest = (float)(1 - 0.95),
                             .step_size = 0.01f,
                             .root_correction = 1,
                             .eps = 1e-8f,
                             .w_bf16 = w2,
                             .m_codes = m2,
                             .v_codes = v2,
                             .m_scales = ms2,
                             .v_scales = vs2,
                             .copy = copy2,
                             .copy_storage = PL_STORE_F16,
                             .seed = 5,
                             .step = 9,
                             .tensor = 21 };
        if (!skipped) {
            r.context.kernels.adamw(&a, 0, 1);
            assert_true(memcmp(w, before, sizeof before) != 0);
        }
        assert_memory_equal(w, w2, sizeof w2);
        assert_memory_equal(copy, copy2, sizeof copy2);
        assert_memory_equal(m, m2, sizeof m2);
        assert_memory_equal(v, v2, sizeof v2);
        assert_memory_equal(ms, ms2, sizeof ms2);
        assert_memory_equal(vs, vs2, sizeof vs2);
        assert_memory_equal(g, zeros, sizeof zeros);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_and_activations_of_a_product),
        cmocka_unit_test(a_gelu_may_follow_a_product),
        cmocka_unit_test(a_residual_or_a_slope_may_follow_a_product),
        cmocka_unit_test(a_weights_gradient_of_stored_activations),
        cmocka_unit_test(rows_that_are_kept_in_16_bits),
        cmocka_unit_test(attention_through_the_cache_equals_the_whole),
        cmocka_unit_test(the_gradients_of_attention_read_what_is_kept),
        cmocka_unit_test(adamw_of_small_weights_and_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
