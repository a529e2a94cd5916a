/* steps_muon.c: Muon's ops, from a step to a call of a kernel. */
#include "device/steps_args.h"
#include "device/steps_update.h"

#include <math.h>

void pl_steps_muon_moment(cx *c, const pl_step *s)
{
    const pl_controls *controls = controls_of(c);
    const pl_outcome *outcome = arg(c, s, PL_ARG_MUON_MOMENT_OUTCOME);
    pl_muon_moment a = { .g = arg(c, s, PL_ARG_MUON_MOMENT_G),
                         .count = s->rows,
                         .momentum = (float)controls->muon_momentum,
                         .momentum_rest = (float)(1.0 -
                                                  controls->muon_momentum),
                         .clip = &outcome->clip,
                         .skipped = &outcome->skipped,
                         .seed = controls->seed,
                         .step = controls->step,
                         .tensor = (uint32_t)s->tensor };
    a.m_scales = arg(c, s, PL_ARG_MUON_MOMENT_M_SCALES);
    if (a.m_scales)
        a.m_codes = arg(c, s, PL_ARG_MUON_MOMENT_M);
    else
        a.m = arg(c, s, PL_ARG_MUON_MOMENT_M);
    c->calls->muon_moment(c->worker, &a);
}

void pl_steps_muon_sumsq(cx *c, const pl_step *s)
{
    pl_sumsq a = { .partial = arg(c, s, PL_ARG_MUON_SUMSQ_PARTIAL),
                   .x = arg_from(c, s, PL_ARG_MUON_SUMSQ_G, s->first),
                   .count = s->rows * s->cols };
    if (s->stride != s->cols) {
        a.cols = s->cols;
        a.row = s->stride;
    }
    c->calls->sumsq(c->worker, &a);
}

void pl_steps_muon_norm(cx *c, const pl_step *s)
{
    pl_muon_norm a = { .factor = arg(c, s, PL_ARG_MUON_NORM_FACTOR),
                       .partial = arg(c, s, PL_ARG_MUON_NORM_PARTIAL),
                       .count = s->rows };
    c->calls->muon_norm(c->worker, &a);
}

/* x is the part, or its transposed where the part is tall. */
void pl_steps_muon_take(cx *c, const pl_step *s)
{
    const int tall = s->rows > s->cols;
    pl_muon_part a = { .y = arg(c, s, PL_ARG_MUON_TAKE_X),
                       .x = arg_from(c, s, PL_ARG_MUON_TAKE_G, s->first),
                       .rows = tall ? s->cols : s->rows,
                       .cols = tall ? s->rows : s->cols,
                       .y_row = tall ? s->rows : s->cols,
                       .x_row = tall ? 1 : s->stride,
                       .x_col = tall ? s->stride : 1,
                       .scale = 1.0f,
                       .factor = arg(c, s, PL_ARG_MUON_TAKE_FACTOR),
                       .y_storage = storage_of(c, s, PL_ARG_MUON_TAKE_X) };
    c->calls->muon_part(c->worker, &a);
}

/* Keller Jordan's quintic: b = a a comes in, the polynomial goes out. */
void pl_steps_muon_poly(cx *c, const pl_step *s)
{
    pl_muon_poly a = { .b = arg(c, s, PL_ARG_MUON_POLY_B),
                       .a = arg(c, s, PL_ARG_MUON_POLY_GRAM),
                       .n = s->rows,
                       .unit = 3.4445f,
                       .linear = -4.7750f,
                       .square = 2.0315f,
                       .storage = storage_of(c, s, PL_ARG_MUON_POLY_B) };
    c->calls->muon_poly(c->worker, &a);
}

/* What the update of a matrix, out x in, is multiplied with: so that it changes
 * what the matrix computes by as much whatever its shape is (Keller Jordan), or
 * so that its elements are as large as AdamW's (Moonshot AI). */
static float scale_of(const pl_step *s)
{
    const double rows = (double)s->rows, cols = (double)s->cols;
    const double out = s->flags & PL_STEP_OUT_IN ? rows : cols,
                 in = s->flags & PL_STEP_OUT_IN ? cols : rows;
    if (s->flags & PL_STEP_MATCH_RMS)
        return (float)(0.2 * sqrt(out > in ? out : in));
    return out > in ? (float)sqrt(out / in) : 1.0f;
}

void pl_steps_muon_put(cx *c, const pl_step *s)
{
    const int tall = s->rows > s->cols;
    pl_muon_part a = { .y = arg_from(c, s, PL_ARG_MUON_PUT_G, s->first),
                       .x = arg(c, s, PL_ARG_MUON_PUT_X),
                       .rows = s->rows,
                       .cols = s->cols,
                       .y_row = s->stride,
                       .x_row = tall ? 1 : s->cols,
                       .x_col = tall ? s->rows : 1,
                       .scale = scale_of(s),
                       .x_storage = storage_of(c, s, PL_ARG_MUON_PUT_X) };
    c->calls->muon_part(c->worker, &a);
}

void pl_steps_muon_apply(cx *c, const pl_step *s)
{
    const pl_controls *controls = controls_of(c);
    const pl_outcome *outcome = arg(c, s, PL_ARG_MUON_APPLY_OUTCOME);
    void *w = arg(c, s, PL_ARG_MUON_APPLY_W);
    const double decay = s->flags & PL_STEP_DECAY ? controls->muon_decay : 0.0;
    pl_muon_apply a = { .g = arg(c, s, PL_ARG_MUON_APPLY_G),
                        .count = s->rows,
                        .keep = (float)(1.0 - controls->muon_rate * decay),
                        .rate = (float)controls->muon_rate,
                        .skipped = &outcome->skipped,
                        .copy = arg(c, s, PL_ARG_MUON_APPLY_COPY),
                        .seed = controls->seed,
                        .step = controls->step,
                        .tensor = (uint32_t)s->tensor };
    if (storage_of(c, s, PL_ARG_MUON_APPLY_W) == PL_STORE_BF16)
        a.w_bf16 = w;
    else
        a.w = w;
    if (a.copy)
        a.copy_storage = storage_of(c, s, PL_ARG_MUON_APPLY_COPY);
    c->calls->muon_apply(c->worker, &a);
}
