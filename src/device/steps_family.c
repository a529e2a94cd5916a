/* steps_family.c: see steps_family.h. */
#include "device/steps_family.h"
#include "base/check.h"
#include "device/steps_args.h"

void pl_steps_qk(cx *c, const pl_step *s)
{
    pl_qk a = { .y = arg(c, s, PL_ARG_QK_Y),
                .x = arg(c, s, PL_ARG_QK_X),
                .rstd = arg(c, s, PL_ARG_QK_RSTD),
                .q_weight = arg(c, s, PL_ARG_QK_Q_WEIGHT),
                .k_weight = arg(c, s, PL_ARG_QK_K_WEIGHT),
                .table = arg(c, s, PL_ARG_QK_TABLE),
                .rows = rows_of(c, s),
                .T = s->T,
                .H = s->heads,
                .KV = s->kv,
                .D = s->inner,
                .position = position_of(c, s),
                .eps = (float)s->eps,
                .storage = storage_of(c, s, PL_ARG_QK_Y) };
    if (!a.x)
        a.x = a.y;
    else
        PL_CHECK(a.storage == storage_of(c, s, PL_ARG_QK_X));
    if (has(s, PL_ARG_QK_POSITIONS)) {
        a.positions = arg(c, s, PL_ARG_QK_POSITIONS);
        a.T = queries_of(c);
    }
    c->calls->qk(c->worker, &a);
}

void pl_steps_qk_bwd(cx *c, const pl_step *s)
{
    pl_qk_bwd a = { .d = arg(c, s, PL_ARG_QK_BWD_D),
                    .x = arg(c, s, PL_ARG_QK_BWD_X),
                    .rstd = arg(c, s, PL_ARG_QK_BWD_RSTD),
                    .q_weight = arg(c, s, PL_ARG_QK_BWD_Q_WEIGHT),
                    .k_weight = arg(c, s, PL_ARG_QK_BWD_K_WEIGHT),
                    .table = arg(c, s, PL_ARG_QK_BWD_TABLE),
                    .rows = s->rows,
                    .T = s->T,
                    .H = s->heads,
                    .KV = s->kv,
                    .D = s->inner,
                    .d_storage = storage_of(c, s, PL_ARG_QK_BWD_D) };
    if (a.x)
        a.x_storage = storage_of(c, s, PL_ARG_QK_BWD_X);
    c->calls->qk_bwd(c->worker, &a);
}

void pl_steps_qk_dw(cx *c, const pl_step *s)
{
    const pl_qk_dw a = { .dq_weight = arg(c, s, PL_ARG_QK_DW_DQ_WEIGHT),
                         .dk_weight = arg(c, s, PL_ARG_QK_DW_DK_WEIGHT),
                         .d = arg(c, s, PL_ARG_QK_DW_D),
                         .x = arg(c, s, PL_ARG_QK_DW_X),
                         .rstd = arg(c, s, PL_ARG_QK_DW_RSTD),
                         .table = arg(c, s, PL_ARG_QK_DW_TABLE),
                         .rows = s->rows,
                         .T = s->T,
                         .H = s->heads,
                         .KV = s->kv,
                         .D = s->inner,
                         .d_storage = storage_of(c, s, PL_ARG_QK_DW_D),
                         .x_storage = storage_of(c, s, PL_ARG_QK_DW_X) };
    c->calls->qk_dw(c->worker, &a);
}

void pl_steps_glu(cx *c, const pl_step *s)
{
    const pl_glu a = { .y = arg(c, s, PL_ARG_GLU_Y),
                       .x = arg(c, s, PL_ARG_GLU_X),
                       .rows = rows_of(c, s),
                       .F = s->cols,
                       .y_storage = storage_of(c, s, PL_ARG_GLU_Y),
                       .x_storage = storage_of(c, s, PL_ARG_GLU_X) };
    c->calls->glu(c->worker, &a);
}

void pl_steps_glu_bwd(cx *c, const pl_step *s)
{
    const pl_glu_bwd a = { .x = arg(c, s, PL_ARG_GLU_BWD_X),
                           .dy = arg(c, s, PL_ARG_GLU_BWD_DY),
                           .rows = s->rows,
                           .F = s->cols,
                           .x_storage = storage_of(c, s, PL_ARG_GLU_BWD_X),
                           .dy_storage = storage_of(c, s, PL_ARG_GLU_BWD_DY) };
    c->calls->glu_bwd(c->worker, &a);
}

void pl_steps_softcap(cx *c, const pl_step *s)
{
    const pl_softcap a = { .x = arg(c, s, PL_ARG_SOFTCAP_X),
                           .count = rows_of(c, s) * s->cols,
                           .cap = (float)s->cap };
    c->calls->softcap(c->worker, &a);
}
