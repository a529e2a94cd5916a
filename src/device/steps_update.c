/* steps_update.c: see steps_update.h. */
#include "device/steps_update.h"
#include "device/steps_args.h"

#include <math.h>

void pl_steps_sumsq(cx *c, const pl_step *s)
{
    pl_sumsq a = { .partial = arg(c, s, PL_ARG_SUMSQ_PARTIAL),
                   .x = arg_from(c, s, PL_ARG_SUMSQ_G, s->first),
                   .count = s->rows };
    c->calls->sumsq(c->worker, &a);
}

void pl_steps_clip(cx *c, const pl_step *s)
{
    const pl_controls *controls = controls_of(c);
    pl_outcome *outcome = arg(c, s, PL_ARG_CLIP_OUTCOME);
    pl_clip a = {
        .grad_norm = &outcome->grad_norm,
        .clip = &outcome->clip,
        .skipped = &outcome->skipped,
        .partial = arg(c, s, PL_ARG_CLIP_PARTIAL),
        .count = s->rows,
        .loss_scale = controls->loss_scale,
        .grad_clip = controls->grad_clip,
    };
    c->calls->clip(c->worker, &a);
}

static void fill_adamw(cx *c, const pl_step *s, pl_adamw *a)
{
    void *w = arg_from(c, s, PL_ARG_ADAMW_W, s->first),
         *m = arg(c, s, PL_ARG_ADAMW_M), *v = arg(c, s, PL_ARG_ADAMW_V);
    if (storage_of(c, s, PL_ARG_ADAMW_W) == PL_STORE_BF16)
        a->w_bf16 = w;
    else
        a->w = w;
    if (has(s, PL_ARG_ADAMW_M_SCALES)) {
        a->m_codes = m;
        a->v_codes = v;
        a->m_scales = arg(c, s, PL_ARG_ADAMW_M_SCALES);
        a->v_scales = arg(c, s, PL_ARG_ADAMW_V_SCALES);
    } else {
        a->m = m;
        a->v = v;
    }
    a->copy = arg_from(c, s, PL_ARG_ADAMW_COPY, s->first);
    if (a->copy)
        a->copy_storage = storage_of(c, s, PL_ARG_ADAMW_COPY);
}

void pl_steps_adamw(cx *c, const pl_step *s)
{
    const pl_controls *controls = controls_of(c);
    const pl_outcome *outcome = arg(c, s, PL_ARG_ADAMW_OUTCOME);
    double rate = controls->learning_rate;
    double decay = s->flags & PL_STEP_DECAY ? controls->weight_decay : 0.0;
    pl_adamw a = {
        .g = arg_from(c, s, PL_ARG_ADAMW_G, s->first),
        .first = s->first,
        .count = s->rows,
        .keep = (float)(1.0 - rate * decay),
        .beta1_rest = (float)(1.0 - controls->beta1),
        .beta2 = (float)controls->beta2,
        .beta2_rest = (float)(1.0 - controls->beta2),
        .step_size = (float)(rate / controls->correction1),
        .root_correction = (float)sqrt(controls->correction2),
        .eps = (float)controls->eps,
        .clip = &outcome->clip,
        .skipped = &outcome->skipped,
        .seed = controls->seed,
        .step = controls->step,
        .tensor = (uint32_t)s->tensor,
    };
    fill_adamw(c, s, &a);
    c->calls->adamw(c->worker, &a);
}

/* Digit d of the kept sums is that of 2^d groups. */
void pl_steps_add(cx *c, const pl_step *s)
{
    const size_t at = controls_of(c)->digit * s->rows;
    pl_add a = { arg(c, s, PL_ARG_ADD_G), arg_from(c, s, PL_ARG_ADD_SUMS, at),
                 s->rows };
    c->calls->add(c->worker, &a);
}

void pl_steps_move(cx *c, const pl_step *s)
{
    const size_t at = controls_of(c)->digit * s->rows;
    pl_move a = { arg_from(c, s, PL_ARG_MOVE_SUMS, at),
                  arg(c, s, PL_ARG_MOVE_G), s->rows };
    c->calls->move(c->worker, &a);
}

void pl_steps_copy(cx *c, const pl_step *s)
{
    pl_copy a = { .y = arg(c, s, PL_ARG_COPY_Y),
                  .x = arg(c, s, PL_ARG_COPY_X),
                  .rows = s->rows,
                  .C = s->cols,
                  .y_row = s->cols,
                  .x_row = s->cols };
    c->calls->copy(c->worker, &a);
}

void pl_steps_outer(cx *c, const pl_step *s)
{
    const pl_controls *controls = controls_of(c);
    pl_outer a = { .w = arg_from(c, s, PL_ARG_OUTER_W, s->first),
                   .g = arg_from(c, s, PL_ARG_OUTER_G, s->first),
                   .anchor = arg(c, s, PL_ARG_OUTER_ANCHOR),
                   .b = arg(c, s, PL_ARG_OUTER_B),
                   .count = s->rows,
                   .share = (float)controls->outer_share,
                   .momentum = (float)controls->outer_momentum,
                   .rate = (float)controls->outer_rate,
                   .copy = arg_from(c, s, PL_ARG_OUTER_COPY, s->first) };
    if (a.copy)
        a.copy_storage = storage_of(c, s, PL_ARG_OUTER_COPY);
    c->calls->outer(c->worker, &a);
}
