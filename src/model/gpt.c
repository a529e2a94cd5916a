/* gpt.c: the programs of a run, written with gpt_builder.h's stages. */
#include "model/gpt.h"
#include "base/check.h"
#include "device/device.h"
#include "kernels/kernels.h"
#include "model/gpt_builder.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- the classifier ---- */

/* Logits, loss and (in training) gradients, chunk by chunk of rows: the
 * logits of all rows never exist. Returns the gradient of lnf, if wanted. */
static pl_buffer_id classifier(builder *b, pl_buffer_id lnf,
                               pl_buffer_id tokens, pl_buffer_id loss)
{
    size_t V = b->s->V, C = b->s->C,
           chunk = pl_build_chunk(b, b->gpt->layout.chunk_rows);
    int train = b->program == PL_TRAIN;
    pl_param_kind kind = pl_param_head(b->s);
    pl_buffer_id head = pl_build_operand(b, kind, -1), dlnf = PL_NO_BUFFER;
    pl_buffer_id logits = pl_build_buffer(b, -1, "logits", PL_CLASS_TRANSIENT,
                                          b->gpt->layout.dtype, chunk, V);
    if (train)
        dlnf = pl_build_buffer(b, -1, "dlnf", PL_CLASS_TRANSIENT,
                               b->gpt->layout.dtype, b->rows, C);
    for (size_t row = 0; row < b->rows && !b->graph->status; row += chunk) {
        size_t rows = b->rows - row < chunk ? b->rows - row : chunk;
        pl_step *step = pl_build_step(b, PL_OP_MATMUL_T, -1);
        step->rows = rows;
        step->cols = V;
        step->inner = C;
        pl_step_arg(step, PL_ARG_MATMUL_T_Y, logits);
        pl_step_rows(step, PL_ARG_MATMUL_T_X, lnf, row);
        pl_step_arg(step, PL_ARG_MATMUL_T_W, head);
        pl_build_product_scratch(b, -1, step, PL_ARG_MATMUL_T_SCRATCH, lnf);
        step = pl_build_step(b, PL_OP_CROSS_ENTROPY, -1);
        step->rows = rows;
        step->cols = V;
        step->first = row;
        step->flags |= train ? PL_STEP_GRADIENT : 0;
        pl_step_arg(step, PL_ARG_CROSS_ENTROPY_LOGITS, logits);
        pl_step_arg(step, PL_ARG_CROSS_ENTROPY_LOSS, loss);
        pl_step_arg(step, PL_ARG_CROSS_ENTROPY_TOKENS, tokens);
        if (!train)
            continue;
        step = pl_build_step(b, PL_OP_MATMUL, -1);
        step->rows = rows;
        step->cols = C;
        step->inner = V;
        pl_step_rows(step, PL_ARG_MATMUL_Y, dlnf, row);
        pl_step_arg(step, PL_ARG_MATMUL_X, logits);
        pl_step_arg(step, PL_ARG_MATMUL_W, head);
        step = pl_build_step(b, PL_OP_MATMUL_DW, -1);
        step->rows = rows;
        step->cols = C;
        step->inner = V;
        pl_step_arg(step, PL_ARG_MATMUL_DW_DW, pl_build_gradient(b, kind, -1));
        pl_step_arg(step, PL_ARG_MATMUL_DW_X, logits);
        pl_step_rows(step, PL_ARG_MATMUL_DW_DY, lnf, row);
    }
    return dlnf;
}

/* sums[s] = the loss of sequence s. */
static void loss_sum(builder *b, pl_buffer_id sums, pl_buffer_id loss)
{
    pl_step *step = pl_build_step(b, PL_OP_LOSS_SUM, -1);
    pl_step_arg(step, PL_ARG_LOSS_SUM_SUMS, sums);
    pl_step_arg(step, PL_ARG_LOSS_SUM_LOSS, loss);
}

/* ---- training ---- */

/* The input's share of the tied embedding's gradient comes after the
 * classifier's share of the whole batch: with micro-batches, dx waits. */
static void embedding_backward(builder *b, pl_buffer_id tokens, pl_buffer_id dx)
{
    const pl_gpt_layout *layout = &b->gpt->layout;
    if (layout->micro < layout->batch) {
        size_t rows = layout->batch * b->T;
        pl_buffer_id carry = pl_build_buffer(b, -1, "carry", PL_CLASS_TRANSIENT,
                                             PL_F32, rows, b->s->C);
        pl_step *step = pl_build_step(b, PL_OP_CARRY, -1);
        step->cols = b->s->C;
        pl_step_arg(step, PL_ARG_CARRY_BATCH, carry);
        pl_step_arg(step, PL_ARG_CARRY_X, dx);
        pl_graph_end_loop(b->graph, b->program);
        b->rows = rows;
        dx = carry;
    }
    pl_step *step = pl_build_dropped(b, PL_OP_EMBED_BWD, -1, PL_DROP_EMBED);
    step->cols = b->s->C;
    pl_step_arg(step, PL_ARG_EMBED_BWD_DWTE, pl_build_gradient(b, PL_WTE, -1));
    pl_step_arg(step, PL_ARG_EMBED_BWD_DWPE, pl_build_gradient(b, PL_WPE, -1));
    pl_step_arg(step, PL_ARG_EMBED_BWD_DX, dx);
    pl_step_arg(step, PL_ARG_EMBED_BWD_TOKENS, tokens);
    if (layout->micro == layout->batch)
        pl_graph_end_loop(b->graph, b->program);
}

static void build_train(builder *b)
{
    pl_gpt *gpt = b->gpt;
    const pl_gpt_layout *layout = &gpt->layout;
    block *blocks;
    pl_buffer_id stats;

    b->program = PL_TRAIN;
    b->T = layout->train_T ? layout->train_T : b->s->T;
    PL_CHECK(b->T <= b->s->T);
    b->rows = layout->micro * b->T;
    b->dropout = layout->dropout;
    if (b->graph->status ||
        (b->graph->status = pl_heap_take(b->graph->heap, &blocks, b->s->L,
                                         sizeof *blocks, &b->graph->error)))
        return;
    b->graph->programs[PL_TRAIN].loop_steps = SIZE_MAX; /* open until ended */
    gpt->train_tokens = pl_build_buffer(b, -1, "tokens", PL_CLASS_TOKENS,
                                        PL_I32, layout->batch, b->T + 1);
    pl_graph_host(b->graph, gpt->train_tokens, PL_HOST_WRITES);
    gpt->train_sums = pl_build_buffer(b, -1, "loss.sums", PL_CLASS_TOKENS,
                                      PL_F64, layout->batch, 1);
    pl_graph_host(b->graph, gpt->train_sums, PL_HOST_READS);

    b->keeps = pl_build_keeps(PL_MAX_LEVEL); /* what every level keeps */
    pl_buffer_id x = pl_build_embed(b, gpt->train_tokens);
    for (size_t l = 0; l < b->s->L; l++) {
        b->keeps = pl_build_keeps(layout->levels[l]);
        x = pl_build_block(b, (int)l, x, &blocks[l]);
        pl_build_forget(&blocks[l], b->keeps);
    }
    b->keeps = 0;
    pl_buffer_id lnf = pl_build_lnf(b, x, b->rows, &stats);
    pl_buffer_id loss = pl_build_buffer(b, -1, "loss", PL_CLASS_TRANSIENT,
                                        PL_F32, b->rows, 1);
    pl_buffer_id dlnf = classifier(b, lnf, gpt->train_tokens, loss);
    loss_sum(b, gpt->train_sums, loss);
    pl_buffer_id dx = pl_build_buffer(b, -1, "dx", PL_CLASS_TRANSIENT, PL_F32,
                                      b->rows, b->s->C);
    pl_build_norm_backward(b, -1, PL_LNF_W, PL_WRITE, dx, dlnf, x, stats);
    for (size_t l = b->s->L; l-- > 0;)
        pl_build_block_backward(b, (int)l, &blocks[l], dx);
    embedding_backward(b, gpt->train_tokens, dx);
}

/* ---- evaluation ---- */

static void build_eval(builder *b)
{
    pl_gpt *gpt = b->gpt;
    const pl_gpt_layout *layout = &gpt->layout;
    pl_buffer_id stats;
    block k;

    b->program = PL_EVAL;
    b->T = layout->eval_T;
    b->rows = layout->eval_micro * b->T;
    b->graph->programs[PL_EVAL].loop_steps = SIZE_MAX;
    gpt->eval_tokens = pl_build_buffer(b, -1, "tokens", PL_CLASS_TOKENS, PL_I32,
                                       layout->eval_micro, b->T + 1);
    pl_graph_host(b->graph, gpt->eval_tokens, PL_HOST_WRITES);
    gpt->eval_sums = pl_build_buffer(b, -1, "loss.sums", PL_CLASS_TOKENS,
                                     PL_F64, layout->eval_micro, 1);
    pl_graph_host(b->graph, gpt->eval_sums, PL_HOST_READS);
    pl_buffer_id x = pl_build_embed(b, gpt->eval_tokens);
    for (size_t l = 0; l < b->s->L; l++)
        x = pl_build_block(b, (int)l, x, &k);
    pl_buffer_id lnf = pl_build_lnf(b, x, b->rows, &stats);
    /* it lives to the last step anyway: that the host reads it is free */
    gpt->eval_loss = pl_build_buffer(b, -1, "loss", PL_CLASS_TRANSIENT, PL_F32,
                                     b->rows, 1);
    pl_graph_host(b->graph, gpt->eval_loss, PL_HOST_READS);
    classifier(b, lnf, gpt->eval_tokens, gpt->eval_loss);
    loss_sum(b, gpt->eval_sums, gpt->eval_loss);
    pl_graph_end_loop(b->graph, PL_EVAL);
}

/* ---- decoding ---- */

static void build_sample(builder *b)
{
    pl_gpt *gpt = b->gpt;
    pl_buffer_id stats;
    block k;

    b->program = PL_SAMPLE;
    b->T = b->s->T;
    b->rows = gpt->layout.prefill;
    if (b->graph->status ||
        (b->graph->status = pl_heap_take(b->graph->heap, &b->cache, b->s->L,
                                         sizeof *b->cache, &b->graph->error)))
        return;
    b->graph->programs[PL_SAMPLE].loop_steps = SIZE_MAX;
    /* keys, then values; without a cache one layer after the other uses it */
    for (size_t l = 0; l < b->s->L; l++)
        b->cache[l] = l > 0 && gpt->layout.cache == PL_CACHE_NONE
                          ? b->cache[0]
                          : pl_build_buffer(b, (int)l, "cache", PL_CLASS_CACHE,
                                            gpt->layout.dtype, 2 * b->T,
                                            pl_dim_size(b->s, PL_DIM_KV));
    gpt->sample_tokens = pl_build_buffer(b, -1, "tokens", PL_CLASS_TOKENS,
                                         PL_I32, b->rows, 1);
    pl_graph_host(b->graph, gpt->sample_tokens, PL_HOST_WRITES);
    gpt->sample_work = pl_build_buffer(b, -1, "work", PL_CLASS_TRANSIENT,
                                       PL_F32, 1, b->s->V);
    pl_graph_host(b->graph, gpt->sample_work, PL_HOST_READS);
    pl_graph_in_host(b->graph, gpt->sample_work);
    gpt->sample_logits = pl_build_buffer(b, -1, "logits", PL_CLASS_TRANSIENT,
                                         PL_F32, 1, b->s->V);
    pl_graph_host(b->graph, gpt->sample_logits, PL_HOST_READS);

    b->flags = PL_STEP_RUN_ROWS;
    pl_buffer_id x = pl_build_embed(b, gpt->sample_tokens);
    for (size_t l = 0; l < b->s->L; l++)
        x = pl_build_block(b, (int)l, x, &k);
    b->flags = PL_STEP_LAST_ROW; /* only the last position's logits matter */
    b->rows = 1;
    pl_buffer_id lnf = pl_build_lnf(b, x, 1, &stats);
    b->flags = 0;
    pl_step *step = pl_build_step(b, PL_OP_MATMUL_T, -1);
    step->cols = b->s->V;
    step->inner = b->s->C;
    pl_step_arg(step, PL_ARG_MATMUL_T_Y, gpt->sample_logits);
    pl_step_arg(step, PL_ARG_MATMUL_T_X, lnf);
    pl_step_arg(step, PL_ARG_MATMUL_T_W,
                pl_build_operand(b, pl_param_head(b->s), -1));
    pl_build_product_scratch(b, -1, step, PL_ARG_MATMUL_T_SCRATCH, lnf);
    pl_build_softcap(b, gpt->sample_logits);
    /* the host's copy to choose from: written by it, after the last step */
    step = pl_build_step(b, PL_OP_FETCH, -1);
    pl_step_arg(step, PL_ARG_FETCH_TO, gpt->sample_work);
    pl_step_arg(step, PL_ARG_FETCH_FROM, gpt->sample_logits);
    pl_graph_end_loop(b->graph, PL_SAMPLE);
    b->cache = NULL;
}

/* ---- saving ---- */

static void build_save(builder *b)
{
    pl_gpt *gpt = b->gpt;
    pl_buffer_id *const sets[] = { gpt->weights,  gpt->m,        gpt->v,
                                   gpt->m_scales, gpt->v_scales, gpt->anchor,
                                   gpt->outer };

    b->program = PL_SAVE;
    gpt->slice = pl_build_buffer(b, -1, "slice", PL_CLASS_TRANSIENT, PL_U8,
                                 gpt->layout.slice_bytes, 1);
    pl_graph_host(b->graph, gpt->slice, PL_HOST_WRITES);
    pl_graph_in_host(b->graph, gpt->slice);
    for (size_t set = 0; set < sizeof sets / sizeof sets[0]; set++)
        for (size_t i = 0; i < pl_param_slots(b->s); i++) {
            if (sets[set][i] < 0) /* not there, or not here */
                continue;
            pl_step *step = pl_build_step(b, PL_OP_FETCH, -1);
            pl_step_arg(step, PL_ARG_FETCH_TO, gpt->slice);
            pl_step_arg(step, PL_ARG_FETCH_FROM, sets[set][i]);
        }
}

/* ---- what lives throughout ---- */

/* One buffer per tensor of the parameter table that `of` covers; where
 * `block` elements share one of the buffer's, it has fewer. */
typedef struct weight_set {
    const char *prefix;
    pl_class class;
    enum { OF_NONE, OF_PRODUCTS, OF_MATRICES, OF_ALL } of;
    pl_dtype matrices; /* vectors are float32 */
    size_t block;
    int adamw_only; /* not of matrices that are Muon's */
    enum { WHOLE, OWN_MOMENTS, OWN_OUTER } part; /* what is kept here of it */
} weight_set;

static int covers(const weight_set *set, const pl_param *param,
                  const pl_shape *shape)
{
    switch (set->of) {
    case OF_NONE:
        return 0;
    case OF_PRODUCTS:
        return pl_param_is_factor(shape, param);
    case OF_MATRICES:
        return param->is_2d;
    case OF_ALL:
        return 1;
    }
    return 0;
}

static pl_buffer_id build_one(builder *b, const weight_set *set, size_t slot,
                              const pl_param *param)
{
    pl_graph *graph = b->graph;
    char text[PL_PARAM_NAME_BYTES + 16];
    const char *name = NULL;
    const size_t all = param->rows * param->cols,
                 count = set->part == WHOLE ? all
                         : set->part == OWN_MOMENTS
                             ? pl_gpt_own(b->gpt, slot).count
                             : pl_slices_at(&b->gpt->slices, slot,
                                            b->gpt->layout.rank)
                                   .count;

    if (count == 0)
        return PL_BUFFER_ELSEWHERE;

    snprintf(text, sizeof text, "%s%s", set->prefix,
             pl_param_name_of(param).text);
    graph->status = pl_heap_text(graph->heap, &name, text, strlen(text),
                                 &graph->error);
    if (graph->status)
        return PL_NO_BUFFER;
    if (set->block > 1)
        return pl_graph_buffer(graph, name, set->class, set->matrices,
                               (count + set->block - 1) / set->block, 1);
    return pl_graph_buffer(
        graph, name, set->class, param->is_2d ? set->matrices : PL_F32,
        count == all ? param->rows : count, count == all ? param->cols : 1);
}

static pl_buffer_id *build_set(builder *b, weight_set set)
{
    pl_graph *graph = b->graph;
    size_t slots = pl_param_slots(b->s);
    pl_buffer_id *ids = NULL;

    if (!graph->status)
        graph->status = pl_heap_take(graph->heap, &ids, slots, sizeof *ids,
                                     &graph->error);
    for (size_t i = 0; i < slots && !graph->status; i++) {
        pl_param param = pl_param_at(b->s, i);
        ids[i] = PL_NO_BUFFER;
        if (pl_param_present(b->s, &param) && covers(&set, &param, b->s) &&
            !(set.adamw_only && pl_build_is_muon(b, &param)))
            ids[i] = build_one(b, &set, i, &param);
    }
    return ids;
}

/* Weights, and for training their gradients and moments. */
static void build_sets(builder *b)
{
    pl_gpt *gpt = b->gpt;
    const pl_gpt_layout *layout = &gpt->layout;
    const int train = layout->purpose == PL_PURPOSE_TRAINING,
              small = layout->moments == PL_MOMENTS_8BIT,
              copied = layout->copy == PL_COPY_RESIDENT &&
                       layout->dtype != PL_F32 && layout->weights == PL_F32;

    gpt->weights = build_set(b, (weight_set){ "", PL_CLASS_WEIGHT, OF_ALL,
                                              layout->weights, 1, 0, WHOLE });
    gpt->copies = build_set(b, (weight_set){ "copy.", PL_CLASS_COPY,
                                             copied ? OF_PRODUCTS : OF_NONE,
                                             layout->dtype, 1, 0, WHOLE });
    if (!train)
        return;
    const weight_set moment = {
        "m.", PL_CLASS_MOMENT, OF_ALL, small ? PL_U8 : PL_F32, 1, 0, OWN_MOMENTS
    };
    const weight_set scale = {
        "m.scales.", PL_CLASS_MOMENT, small ? OF_MATRICES : OF_NONE,
        PL_F32,      PL_QUANT_BLOCK,  0,
        OWN_MOMENTS
    };
    weight_set second_moment = moment, second_scale = scale;
    second_moment.prefix = "v.";
    second_scale.prefix = "v.scales.";
    second_moment.adamw_only = second_scale.adamw_only = 1;
    gpt->gradients = build_set(b, (weight_set){ "g.", PL_CLASS_GRADIENT, OF_ALL,
                                                PL_F32, 1, 0, WHOLE });
    gpt->m = build_set(b, moment);
    gpt->v = build_set(b, second_moment);
    gpt->m_scales = build_set(b, scale);
    gpt->v_scales = build_set(b, second_scale);
    weight_set outer = { "anchor.",
                         PL_CLASS_OUTER,
                         pl_gpt_workers(layout) ? OF_ALL : OF_NONE,
                         PL_F32,
                         1,
                         0,
                         OWN_OUTER };
    gpt->anchor = build_set(b, outer);
    outer.prefix = "outer.";
    gpt->outer = build_set(b, outer);
}

/* Cosines and sines, where positions are rotations. */
static void build_rotary(builder *b)
{
    b->gpt->rotary = PL_NO_BUFFER;
    if (b->s->position == PL_POSITION_ROTARY)
        b->gpt->rotary = pl_graph_buffer(b->graph, "rotary", PL_CLASS_ROTARY,
                                         PL_F32, b->s->T, b->s->D);
}

/* Where products pack their weights. */
static void build_packing(builder *b)
{
    const pl_shape *s = b->s;
    const pl_gpt_layout *layout = &b->gpt->layout;
    size_t widest = 0;
    for (size_t i = 0; i < pl_param_slots(s); i++) {
        pl_param param = pl_param_at(s, i);
        size_t side = param.rows > param.cols ? param.rows : param.cols;
        if (pl_param_is_factor(s, &param) && side > widest)
            widest = side;
    }
    const pl_extent room = pl_device_packing(
        &layout->device, widest, layout->pack_columns, layout->dtype);
    if (room.rows)
        b->graph->packing = pl_graph_buffer(b->graph, "packing",
                                            PL_CLASS_PACKING, PL_F32, room.rows,
                                            room.cols);
}

/* Writes the programs whose bits are in `wanted`, and places them. */
static pl_status build_programs(pl_gpt *gpt, unsigned wanted, pl_heap *heap,
                                pl_error *err)
{
    builder b = { .gpt = gpt,
                  .graph = &gpt->graph,
                  .s = &gpt->shape,
                  .positions = PL_NO_BUFFER };

    pl_graph_begin(&gpt->graph, heap);
    gpt->graph.status = pl_slices_make(
        &gpt->slices, &gpt->shape,
        pl_gpt_workers(&gpt->layout) ? PL_OPTIMIZER_ADAMW /* none is whole */
                                     : gpt->layout.optimizer,
        pl_gpt_ranks(&gpt->layout), heap, &gpt->graph.error);
    if (gpt->graph.status)
        return pl_fail(err, gpt->graph.status, "%s", gpt->graph.error.text);
    gpt->partials = PL_NO_BUFFER;
    gpt->controls = pl_graph_buffer(&gpt->graph, "controls", PL_CLASS_CONTROL,
                                    PL_U8, sizeof(pl_controls), 1);
    gpt->graph.controls = gpt->controls;
    gpt->outcome = PL_NO_BUFFER;
    if (gpt->layout.purpose == PL_PURPOSE_TRAINING)
        gpt->outcome = pl_graph_buffer(&gpt->graph, "outcome", PL_CLASS_CONTROL,
                                       PL_U8, sizeof(pl_outcome), 1);
    build_sets(&b);
    build_packing(&b);
    build_rotary(&b);
    void (*const programs[])(builder *) = { build_train,     pl_build_groups,
                                            pl_build_update, pl_build_sync,
                                            build_eval,      build_sample,
                                            build_save,      pl_build_serve };
    for (int i = 0; i < PL_PROGRAM_COUNT && !gpt->graph.status; i++)
        if (wanted >> i & 1) {
            builder fresh = b;
            programs[i](&fresh);
        }
    pl_status status = pl_graph_finish(&gpt->graph, err);
    if (status)
        return status;
    return pl_place(&gpt->placement, &gpt->graph, &gpt->layout.device.memory,
                    err);
}

static pl_status build_all(pl_gpt *gpt, pl_heap *heap, pl_error *err)
{
    static const unsigned programs[] = {
        [PL_PURPOSE_TRAINING] = (1u << PL_SERVE) - 1,
        [PL_PURPOSE_SAMPLING] = 1u << PL_SAMPLE,
        [PL_PURPOSE_EVALUATION] = 1u << PL_EVAL,
        [PL_PURPOSE_SERVING] = 1u << PL_SERVE,
    };
    return build_programs(gpt, programs[gpt->layout.purpose], heap, err);
}

pl_status pl_gpt_make_training(pl_gpt *gpt, const pl_shape *shape,
                               const pl_gpt_layout *layout, pl_heap *heap,
                               pl_error *err)
{
    *gpt = (pl_gpt){ .shape = *shape, .layout = *layout };
    return build_programs(gpt,
                          1u << PL_TRAIN | 1u << PL_ADD_GROUPS |
                              1u << PL_UPDATE_WEIGHTS | 1u << PL_SYNC,
                          heap, err);
}

/* Shrinks what is larger than the memory that training needs anyway. Returns
 * whether anything changed. */
static int shrink_to_training(pl_gpt_layout *layout, size_t T,
                              const pl_placement *place)
{
    const size_t room = place->program_bytes[PL_TRAIN];
    const struct {
        pl_program_id program;
        size_t *size, least;
    } sizes[] = {
        { PL_EVAL, &layout->eval_micro, 1 },
        { PL_SAMPLE, &layout->prefill, layout->cache == PL_CACHE_KEPT ? 1 : T },
        { PL_SAVE, &layout->slice_bytes, PL_ARENA_ALIGN },
    };
    int changed = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (place->program_bytes[sizes[i].program] <= room)
            continue;
        if (*sizes[i].size > sizes[i].least) {
            *sizes[i].size /= 2;
            changed = 1;
        } else if (sizes[i].program == PL_SAMPLE &&
                   layout->cache == PL_CACHE_KEPT) {
            layout->cache = PL_CACHE_NONE;
            layout->prefill = T; /* a window is decoded in one round */
            changed = 1;
        }
    }
    return changed;
}

pl_status pl_gpt_make(pl_gpt *gpt, const pl_shape *shape,
                      const pl_gpt_layout *layout, pl_heap *heap, pl_error *err)
{
    pl_gpt_layout tried = *layout;
    int again = layout->purpose == PL_PURPOSE_TRAINING;

    while (again) {
        pl_heap trial = pl_heap_make(heap->limit_bytes);
        pl_gpt candidate = { .shape = *shape, .layout = tried };
        pl_status status = build_all(&candidate, &trial, err);
        again = !status &&
                shrink_to_training(&tried, shape->T, &candidate.placement);
        pl_heap_close(&trial);
        if (status)
            return status;
    }
    *gpt = (pl_gpt){ .shape = *shape, .layout = tried };
    return build_all(gpt, heap, err);
}
