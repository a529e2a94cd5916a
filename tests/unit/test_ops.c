/* test_ops.c: the signatures of ops, and steps that keep to them or don't. */
#include "plan/ops.h"
#include "support/asserts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* A step of the smallest size, all of whose arguments are buffer 0. */
static pl_step smallest(pl_op op)
{
    const pl_op_info *info = pl_op_of(op);
    pl_step step = pl_step_make(op);
    for (int i = 0; i < info->n_args; i++)
        pl_step_arg(&step, i, 0);
    step.rows = info->constants & PL_ROWS ? 1 : 0;
    step.cols = info->constants & PL_COLS ? 1 : 0;
    step.T = info->constants & PL_T ? 1 : 0;
    step.heads = info->constants & PL_HEADS ? 1 : 0;
    step.inner = info->constants & PL_INNER ? 1 : 0;
    step.kv = info->constants & PL_KV ? 1 : 0;
    step.eps = info->constants & PL_EPS ? 1e-5 : 0;
    step.stride = info->constants & PL_STRIDE ? 1 : 0;
    return step;
}

static void name_argument(void *context)
{
    pl_step_arg(context, PL_ARGS_OF_GELU, 0);
}

static void an_argument_that_the_op_lacks_is_a_bug(void **state)
{
    (void)state;
    pl_step step = pl_step_make(PL_OP_GELU);
    assert_dies(name_argument, &step, "n_args");
}

/* Every constant, flag, argument and access of every op, one wrong after the
 * other: the message names it. */
static void assert_wrong(const pl_step *step, const char *part)
{
    const char *wrong = pl_step_wrong(step);
    if (!wrong || strcmp(wrong, part) != 0)
        fail_msg("%s: '%s' instead of '%s'", pl_op_name(step->op),
                 wrong ? wrong : "(nothing)", part);
}

/* A wrong value where it is used, and one where it isn't. */
static void check_constant(const pl_step *good, size_t offset, unsigned bit,
                           const char *name, int may_be_zero)
{
    pl_step bad = *good;
    size_t *value = (size_t *)(void *)((char *)&bad + offset);
    int used = (pl_op_of(good->op)->constants & bit) != 0;
    *value = used ? 0 : 1;
    if (used && may_be_zero)
        assert_null(pl_step_wrong(&bad));
    else
        assert_wrong(&bad, name);
}

static void a_step_has_what_its_signature_says_and_no_more(void **state)
{
    (void)state;
    for (int op = 0; op < PL_OP_COUNT; op++) {
        const pl_op_info *info = pl_op_of((pl_op)op);
        pl_step good = smallest((pl_op)op);
        for (int i = 0; i < info->n_args; i++)
            if (!good.args[i].access)
                pl_step_access(&good, i, PL_UPDATE);
        assert_null(pl_step_wrong(&good));
        check_constant(&good, offsetof(pl_step, rows), PL_ROWS, "rows", 0);
        check_constant(&good, offsetof(pl_step, cols), PL_COLS, "cols", 0);
        check_constant(&good, offsetof(pl_step, inner), PL_INNER, "inner", 0);
        check_constant(&good, offsetof(pl_step, T), PL_T, "T", 0);
        check_constant(&good, offsetof(pl_step, heads), PL_HEADS, "heads", 0);
        check_constant(&good, offsetof(pl_step, kv), PL_KV, "kv", 0);
        check_constant(&good, offsetof(pl_step, first), PL_FIRST, "first", 1);
        check_constant(&good, offsetof(pl_step, tensor), PL_TENSOR, "tensor",
                       1);
        check_constant(&good, offsetof(pl_step, stride), PL_STRIDE, "stride",
                       0);
        pl_step bad = good;
        bad.dropout = 0.5;
        if (!(info->constants & PL_DROPOUT))
            assert_wrong(&bad, "dropout");
        bad = good;
        bad.eps = info->constants & PL_EPS ? 0 : 1e-5;
        if (op != PL_OP_QK)
            assert_wrong(&bad, "eps");
        bad = good;
        bad.cap = 30;
        if (!(info->constants & PL_CAP))
            assert_wrong(&bad, "cap");
        for (unsigned flag = 1; flag <= 1u << 11; flag <<= 1) {
            bad = good;
            bad.flags = flag;
            if (info->flags & flag)
                assert_null(pl_step_wrong(&bad));
            else
                assert_wrong(&bad, "flags");
        }
        for (int i = 0; i < info->n_args; i++) {
            bad = good;
            bad.args[i].buffer = PL_NO_BUFFER;
            if (info->args[i].need == PL_OPTIONAL)
                assert_null(pl_step_wrong(&bad));
            else
                assert_wrong(&bad, info->args[i].name);
            bad = good;
            bad.args[i].access = (pl_access)(~info->args[i].access & 15u);
            assert_wrong(&bad, info->args[i].name);
        }
    }
}

static void work_follows_from_the_constants(void **state)
{
    (void)state;
    pl_step step = { .op = PL_OP_MATMUL_DW, .rows = 3, .cols = 5, .inner = 7 };
    assert_true(pl_step_work(&step) == 2.0 * 3 * 5 * 7);
    step.op = PL_OP_GELU;
    assert_true(pl_step_work(&step) == 15.0);
    step.op = PL_OP_FETCH;
    assert_true(pl_step_work(&step) == 0.0);
    step.op = PL_OP_MUON_POLY;
    assert_true(pl_step_work(&step) == 9.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_argument_that_the_op_lacks_is_a_bug),
        cmocka_unit_test(a_step_has_what_its_signature_says_and_no_more),
        cmocka_unit_test(work_follows_from_the_constants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
