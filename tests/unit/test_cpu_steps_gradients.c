/* test_cpu_steps_gradients.c: as test_cpu_steps.c, for gradients of
 * activations, which may be kept in 16 bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cpu_rig.h"

/* A float32 gradient is rounded as it is read, and so is what it meets. */
static void float_operands_of_backward_products_are_rounded(void **state)
{
    static rig r;
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int weights = 0; weights < 2; weights++) {
            const pl_storage s = kinds[kind].storage;
            float want[IN * OUT + ROWS * OUT];
            rig_begin(&r, weights ? PL_OP_MATMUL_DW : PL_OP_MATMUL_T);
            float *c = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 1);
            void *x = rig_arg(&r, PL_F32, PL_STORE_F32, IN, 2);
            void *other = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 3);
            pl_gemm g = product_of(&r, want, x, other, 1);
            if (weights) {
                g.M = IN;
                g.K = ROWS;
                g.a_row = 1;
                g.a_col = IN;
                g.b_row = OUT;
                g.b_col = 1;
                g.start = PL_GEMM_KEEP;
            }
            g.a_round = g.b_round = s;
            memcpy(want, c, sizeof want);
            r.step.flags = kinds[kind].round;
            assert_int_equal(r.step.flags & ~pl_op_of(r.step.op)->flags, 0);
            rig_run(&r);
            r.context.kernels.gemm(&g, 0, 1);
            assert_memory_equal(c, want, g.M * OUT * sizeof *c);
        }
}

static void column_sums_and_drops_in_16_bits(void **state)
{
    static rig r;
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        const pl_storage s = kinds[kind].storage;
        float want[ROWS * OUT];
        rig_begin(&r, PL_OP_COLUMN_SUM);
        float *sum = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 1);
        void *x = rig_arg(&r, kinds[kind].dtype, s, OUT, 2);
        r.step.rows = ROWS;
        r.step.cols = OUT;
        memcpy(want, sum, OUT * sizeof *sum);
        rig_run(&r);
        const pl_column_sum c = { want, x, ROWS, OUT, s };
        r.context.kernels.column_sum(&c, 0, 1);
        assert_memory_equal(sum, want, OUT * sizeof *sum);

        rig_begin(&r, PL_OP_DROP);
        void *y = rig_arg(&r, kinds[kind].dtype, s, OUT, 1);
        const float *dx = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 2);
        r.step.rows = ROWS;
        r.step.cols = OUT;
        r.step.T = 2;
        rig_run(&r);
        const pl_drop d = {
            .y = want, .x = dx, .rows = ROWS, .T = 2, .C = OUT, .y_storage = s
        };
        r.context.kernels.drop(&d, 0, 1);
        assert_memory_equal(y, want, ROWS * OUT * pl_storage_bytes(s));
    }
}

static void gradients_of_norms_in_16_bits(void **state)
{
    static rig r;
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        const pl_storage s = kinds[kind].storage;
        float dx2[ROWS * OUT], dweight2[OUT];
        rig_begin(&r, PL_OP_LAYERNORM_BWD);
        float *dx = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 1);
        float *dweight = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 2);
        r.next = PL_ARG_LAYERNORM_BWD_DY;
        void *dy = rig_arg(&r, kinds[kind].dtype, s, OUT, 4);
        float *x = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 5);
        float *stats = rig_arg(&r, PL_F32, PL_STORE_F32, 2, 6);
        float *weight = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 7);
        r.step.args[PL_ARG_LAYERNORM_BWD_DBIAS].buffer = PL_NO_BUFFER;
        pl_step_access(&r.step, PL_ARG_LAYERNORM_BWD_DX, PL_WRITE);
        r.step.rows = ROWS;
        r.step.cols = OUT;
        memcpy(dweight2, dweight, sizeof dweight2);
        rig_run(&r);
        const pl_layernorm_bwd n = { .dx = dx2,
                                     .dweight = dweight2,
                                     .dy = dy,
                                     .x = x,
                                     .stats = stats,
                                     .weight = weight,
                                     .rows = ROWS,
                                     .C = OUT,
                                     .dy_storage = s };
        r.context.kernels.layernorm_bwd(&n, 0, 1);
        assert_memory_equal(dx, dx2, sizeof dx2);
        assert_memory_equal(dweight, dweight2, sizeof dweight2);

        rig_begin(&r, PL_OP_RMSNORM_BWD);
        dx = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 1);
        dweight = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 2);
        dy = rig_arg(&r, kinds[kind].dtype, s, OUT, 3);
        x = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 4);
        float *rstd = rig_arg(&r, PL_F32, PL_STORE_F32, 1, 5);
        weight = rig_arg(&r, PL_F32, PL_STORE_F32, OUT, 6);
        pl_step_access(&r.step, PL_ARG_RMSNORM_BWD_DX, PL_WRITE);
        r.step.rows = ROWS;
        r.step.cols = OUT;
        memcpy(dweight2, dweight, sizeof dweight2);
        rig_run(&r);
        const pl_rmsnorm_bwd m = { .dx = dx2,
                                   .dweight = dweight2,
                                   .dy = dy,
                                   .x = x,
                                   .rstd = rstd,
                                   .weight = weight,
                                   .rows = ROWS,
                                   .C = OUT,
                                   .dy_storage = s };
        r.context.kernels.rmsnorm_bwd(&m, 0, 1);
        assert_memory_equal(dx, dx2, sizeof dx2);
        assert_memory_equal(dweight, dweight2, sizeof dweight2);
    }
}

static void logits_in_16_bits(void **state)
{
    static rig r;
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        const pl_storage s = kinds[kind].storage;
        const size_t bytes = ROWS * OUT * pl_storage_bytes(s);
        float want[ROWS * OUT], loss2[ROWS];
        rig_begin(&r, PL_OP_CROSS_ENTROPY);
        void *logits = rig_arg(&r, kinds[kind].dtype, s, OUT, 1);
        float *loss = rig_arg(&r, PL_F32, PL_STORE_F32, 1, 2);
        int32_t *tokens = rig_arg(&r, PL_I32, PL_STORE_F32, ROWS + 1, 3);
        for (int i = 0; i <= ROWS; i++)
            tokens[i] = i;
        memcpy(want, logits, bytes);
        r.step.rows = r.step.T = ROWS;
        r.step.cols = OUT;
        r.step.flags = PL_STEP_GRADIENT;
        r.controls.dlogit_scale = 0.5f;
        rig_run(&r);
        const pl_cross_entropy c = { .logits = want,
                                     .loss = loss2,
                                     .tokens = tokens,
                                     .token_stride = ROWS + 1,
                                     .rows = ROWS,
                                     .T = ROWS,
                                     .V = OUT,
                                     .scale = 0.5f,
                                     .storage = s };
        r.context.kernels.cross_entropy(&c, 0, 1);
        assert_memory_equal(logits, want, bytes);
        assert_memory_equal(loss, loss2, sizeof loss2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float_operands_of_backward_products_are_rounded),
        cmocka_unit_test(column_sums_and_drops_in_16_bits),
        cmocka_unit_test(gradients_of_norms_in_16_bits),
        cmocka_unit_test(logits_in_16_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
