/* ops.c: the tables of ops.h, to be looked up, and steps that keep to them. */
#include "plan/ops.h"
#include "base/check.h"

static const pl_op_info ops[] = {
#define ARG_ROW(op, id, text, ways, needed, kinds, elements)                   \
    [PL_ARG_##op##_##id] = {                                                   \
        .name = text, .access = ways, .need = needed, .dtypes = kinds          \
    },
#define OP_ROW(id, text, uses, may_have, work, rate)                           \
    [PL_OP_##id] = {                                                           \
        .name = text,                                                          \
        .constants = uses,                                                     \
        .flags = may_have,                                                     \
        .per_second = rate,                                                    \
        .n_args = PL_ARGS_OF_##id,                                             \
        .args = { PL_ARGS_##id(ARG_ROW) },                                     \
    },
    PL_OP_TABLE(OP_ROW)
#undef OP_ROW
#undef ARG_ROW
};

const pl_op_info *pl_op_of(pl_op op)
{
    PL_CHECK((int)op >= 0 && op < PL_OP_COUNT);
    return &ops[op];
}

const char *pl_op_name(pl_op op)
{
    return pl_op_of(op)->name;
}

/* ---- steps ---- */

/* The access of an argument, where there is but one. */
static pl_access only_access(const pl_arg_info *info)
{
    int one = (info->access & (info->access - 1)) == 0;
    return one ? (pl_access)info->access : (pl_access)0;
}

pl_step pl_step_make(pl_op op)
{
    const pl_op_info *info = pl_op_of(op);
    pl_step step = { .op = op, .layer = -1 };
    for (int i = 0; i < info->n_args; i++)
        step.args[i] = (pl_arg){ .buffer = PL_NO_BUFFER,
                                 .access = only_access(&info->args[i]) };
    return step;
}

void pl_step_rows(pl_step *step, int arg, pl_buffer_id buffer, size_t row)
{
    PL_CHECK(arg >= 0 && arg < pl_op_of(step->op)->n_args);
    step->args[arg].buffer = buffer;
    step->args[arg].row = row;
}

void pl_step_arg(pl_step *step, int arg, pl_buffer_id buffer)
{
    pl_step_rows(step, arg, buffer, 0);
}

void pl_step_access(pl_step *step, int arg, pl_access access)
{
    PL_CHECK(arg >= 0 && arg < pl_op_of(step->op)->n_args);
    step->args[arg].access = access;
}

double pl_step_work(const pl_step *step)
{
    const double rows = (double)step->rows, cols = (double)step->cols,
                 inner = (double)step->inner, T = (double)step->T,
                 heads = (double)step->heads, kv = (double)step->kv;
    switch (step->op) {
#define WORK(id, text, uses, may_have, work, rate)                             \
    case PL_OP_##id:                                                           \
        return work;
        PL_OP_TABLE(WORK)
#undef WORK
    default:
        return 0.0;
    }
}

size_t pl_step_elements(const pl_step *step, int arg)
{
    const size_t rows = step->rows, cols = step->cols, inner = step->inner,
                 heads = step->heads, kv = step->kv, first = step->first,
                 stride = step->stride, T = step->T ? step->T : 1;
    PL_CHECK(arg >= 0 && arg < pl_op_of(step->op)->n_args);
    switch (step->op) {
#define ELEMENTS(op, id, text, ways, needed, kinds, elements) elements,
#define OP_ELEMENTS(id, ...)                                                   \
    case PL_OP_##id: {                                                         \
        const size_t of[] = { PL_ARGS_##id(ELEMENTS) };                        \
        return of[arg];                                                        \
    }
        PL_OP_TABLE(OP_ELEMENTS)
#undef OP_ELEMENTS
#undef ELEMENTS
    default:
        return 0;
    }
}

const char *pl_step_wrong(const pl_step *step)
{
    const pl_op_info *info = pl_op_of(step->op);
    const struct {
        unsigned bit;
        const char *name;
        size_t value;
        int may_be_zero;
    } constants[] = {
        { PL_ROWS, "rows", step->rows, 0 },
        { PL_COLS, "cols", step->cols, 0 },
        { PL_INNER, "inner", step->inner, 0 },
        { PL_T, "T", step->T, 0 },
        { PL_HEADS, "heads", step->heads, 0 },
        { PL_KV, "kv", step->kv, 0 },
        { PL_FIRST, "first", step->first, 1 },
        { PL_TENSOR, "tensor", step->tensor, 1 },
        { PL_STRIDE, "stride", step->stride, 0 },
        { PL_DROPOUT, "dropout", step->site || step->dropout > 0.0, 1 },
        { PL_EPS, "eps", step->eps > 0.0, step->op == PL_OP_QK },
        { PL_CAP, "cap", step->cap > 0.0, 1 },
    };
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
        int used = (info->constants & constants[i].bit) != 0;
        if (used ? constants[i].value == 0 && !constants[i].may_be_zero
                 : constants[i].value != 0)
            return constants[i].name;
    }
    if (step->flags & ~info->flags)
        return "flags";
    for (int i = 0; i < info->n_args; i++) {
        const pl_arg *arg = &step->args[i];
        unsigned access = (unsigned)arg->access;
        if (arg->buffer == PL_NO_BUFFER && info->args[i].need == PL_OPTIONAL)
            continue;
        if (arg->buffer == PL_NO_BUFFER || !(access & info->args[i].access) ||
            access & (access - 1))
            return info->args[i].name;
    }
    return NULL;
}
