/* gpt_sync.c: where the workers of a run meet (DiLoCo): every worker's weights
 * are copied to the gradients, which are zero then; the host adds those of all
 * workers (train/ranks.c); and of its slices each takes the outer step. */
#include "base/check.h"
#include "model/gpt_builder.h"

static void copy(builder *b, size_t i, const pl_param *param)
{
    const int is_vector = param->cols == 1;
    pl_step *step = pl_build_step(b, PL_OP_COPY, param->layer);
    step->rows = is_vector ? 1 : param->rows;
    step->cols = is_vector ? param->rows : param->cols;
    pl_step_arg(step, PL_ARG_COPY_Y, b->gpt->gradients[i]);
    pl_step_arg(step, PL_ARG_COPY_X, b->gpt->weights[i]);
}

static void outer(builder *b, size_t i, const pl_param *param)
{
    const pl_gpt *gpt = b->gpt;
    const pl_slice own = pl_slices_at(&gpt->slices, i, gpt->layout.rank);
    if (own.count == 0)
        return;
    pl_step *step = pl_build_step(b, PL_OP_OUTER, param->layer);
    step->first = own.first;
    step->rows = own.count;
    pl_step_arg(step, PL_ARG_OUTER_W, gpt->weights[i]);
    pl_step_arg(step, PL_ARG_OUTER_G, gpt->gradients[i]);
    pl_step_arg(step, PL_ARG_OUTER_ANCHOR, gpt->anchor[i]);
    pl_step_arg(step, PL_ARG_OUTER_B, gpt->outer[i]);
    pl_step_arg(step, PL_ARG_OUTER_COPY, gpt->copies[i]);
}

static void for_all(builder *b,
                    void (*append)(builder *, size_t, const pl_param *))
{
    for (size_t i = 0; i < pl_param_slots(b->s); i++) {
        const pl_param param = pl_param_at(b->s, i);
        if (pl_param_present(b->s, &param))
            append(b, i, &param);
    }
}

void pl_build_sync(builder *b)
{
    b->program = PL_SYNC;
    if (pl_gpt_workers(&b->gpt->layout) == 0 || b->graph->status)
        return;
    PL_CHECK(b->gpt->layout.weights == PL_F32);
    b->graph->programs[PL_SYNC].loop_steps = SIZE_MAX;
    for_all(b, copy);
    pl_graph_end_loop(b->graph, PL_SYNC);
    for_all(b, outer);
}
