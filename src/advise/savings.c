/* savings.c: see savings.h. */
#include "advise/savings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct pricing {
    const pl_run_plan *plan;
    const pl_config *config;
    const pl_machine *machine;
    pl_saving *fixes;
    size_t count;
    pl_error *err;
} pricing;

/* Builds `layout` of `shape`, what a run gets with another value of `key`, and
 * compares it with the plan. */
static pl_status add(pricing *p, pl_key key, const char *value,
                     const pl_shape *shape, const pl_gpt_layout *layout,
                     size_t sequences)
{
    pl_heap heap = pl_heap_make((size_t)1 << 30);
    const pl_run_plan *plan = p->plan;
    const pl_rates *rates = pl_machine_rates_in(p->machine, layout->dtype),
                   *now = pl_machine_rates_in(p->machine,
                                              plan->gpt.layout.dtype);
    pl_machine_files files;
    pl_gpt_layout own = *layout;
    pl_gpt gpt;
    own.eval_sequences = sequences;
    pl_status status = pl_gpt_make(&gpt, shape, layout, &heap, p->err);
    if (!status)
        status = pl_run_plan_files(&files, p->machine, p->config, shape, layout,
                                   p->err);
    if (!status && p->count < PL_MAX_SAVINGS) {
        pl_saving *fix = &p->fixes[p->count++];
        size_t total = pl_run_plan_total(shape, &own, gpt.placement.arena_bytes,
                                         plan->tables_bytes, files.bytes);
        *fix = (pl_saving){
            .saved_bytes = (int64_t)plan->total_bytes - (int64_t)total,
            .update_change =
                pl_cost_update(&gpt, rates) / plan->update_seconds - 1.0,
            .eval_change = pl_run_plan_eval_seconds(&gpt, rates, sequences) /
                               pl_run_plan_eval_seconds(
                                   &plan->gpt, now,
                                   pl_run_plan_eval_sequences(p->config)) -
                           1.0,
            .effect = pl_key_row(key)->effect,
            .fits = total <= p->machine->budget_bytes,
        };
        snprintf(fix->setting, sizeof fix->setting, "%s = %s",
                 pl_key_row(key)->name, value);
    }
    pl_heap_close(&heap);
    return status;
}

static pl_status price_evaluation(pricing *p)
{
    const pl_config *config = p->config;
    pl_gpt_layout layout = p->plan->gpt.layout;
    size_t sequences = pl_run_plan_eval_sequences(config);
    size_t batch = sequences / (size_t)config->eval_iters;
    char value[48];
    pl_status status = PL_OK;

    if (batch > 1) {
        size_t less = batch > 4 ? 4 : 1;
        snprintf(value, sizeof value, "%zu", less);
        layout.eval_micro = less;
        status = add(p, PL_KEY_eval_batch_size, value, &p->plan->gpt.shape,
                     &layout, less * (size_t)config->eval_iters);
    }
    layout = p->plan->gpt.layout;
    if (!status && layout.eval_T > 1) {
        layout.eval_T /= 2;
        snprintf(value, sizeof value, "%zu", layout.eval_T);
        status = add(p, PL_KEY_eval_block_size, value, &p->plan->gpt.shape,
                     &layout, sequences);
    }
    if (!status && config->eval_iters > 1) {
        size_t half = (size_t)config->eval_iters / 2;
        snprintf(value, sizeof value, "%zu", half);
        status = add(p, PL_KEY_eval_iters, value, &p->plan->gpt.shape,
                     &p->plan->gpt.layout, batch * half);
    }
    return status;
}

static pl_status price_levels(pricing *p)
{
    const pl_shape *shape = &p->plan->gpt.shape;
    pl_gpt_layout layout = p->plan->gpt.layout;
    pl_heap heap = pl_heap_make(1 << 20);
    uint8_t *levels = NULL;
    pl_status status = pl_heap_take(&heap, &levels, shape->L, 1, p->err);
    for (int level = 0; level <= PL_MAX_LEVEL && !status; level++) {
        char value[48];
        memset(levels, level, shape->L);
        if (memcmp(levels, layout.levels, shape->L) == 0)
            continue;
        pl_gpt_layout other = layout;
        other.levels = levels;
        snprintf(value, sizeof value, "%d", level);
        status = add(p, PL_KEY_grad_checkpoint, value, shape, &other,
                     pl_run_plan_eval_sequences(p->config));
    }
    pl_heap_close(&heap);
    return status;
}

static pl_status price_micro(pricing *p)
{
    pl_gpt_layout layout = p->plan->gpt.layout;
    char value[48];
    pl_status status = PL_OK;
    if (layout.micro > 1) {
        layout.micro = 1;
        status = add(p, PL_KEY_fit, "'auto' (one sequence at a time)",
                     &p->plan->gpt.shape, &layout,
                     pl_run_plan_eval_sequences(p->config));
    } else if (layout.batch > 1) {
        layout.micro = layout.batch;
        snprintf(value, sizeof value, "'exact' (%zu at once)", layout.batch);
        status = add(p, PL_KEY_fit, value, &p->plan->gpt.shape, &layout,
                     pl_run_plan_eval_sequences(p->config));
    }
    return status;
}

static pl_status price_groups(pricing *p)
{
    pl_gpt_layout layout = p->plan->gpt.layout;
    if (layout.groups <= 1 || pl_gpt_ranks(&layout) > 1)
        return PL_OK;
    layout.groups = 1;
    layout.batch = (size_t)p->config->batch_size;
    layout.batches = (size_t)p->config->gradient_accumulation_steps;
    return add(p, PL_KEY_gradient_groups, "1", &p->plan->gpt.shape, &layout,
               pl_run_plan_eval_sequences(p->config));
}

/* The next smaller width that the heads divide evenly. */
static pl_status price_model(pricing *p)
{
    pl_shape shape = p->plan->gpt.shape;
    char value[48];
    size_t wish = shape.C / 8 * 7 / (2 * shape.H) * (2 * shape.H);
    if (wish == 0 || wish >= shape.C)
        return PL_OK;
    if (pl_shape_is_derived(&shape, PL_SHAPE_F))
        shape.F = 0; /* follows */
    shape.C = wish;
    shape.D = wish / shape.H;
    pl_shape_complete(&shape);
    snprintf(value, sizeof value, "%zu", wish);
    return add(p, PL_KEY_n_embd, value, &shape, &p->plan->gpt.layout,
               pl_run_plan_eval_sequences(p->config));
}

/* Tensor arithmetic has no float32, nor two kinds of operands. */
static int has_exact_products(const pl_gpt_layout *layout)
{
    return layout->device.products == PL_PRODUCTS_EXACT;
}

/* float16 has bfloat16's bytes, and on no processor its speed: nobody who has
 * neither needs to be told of it. */
static pl_status price_dtype(pricing *p)
{
    static const pl_dtype others[] = { PL_BF16, PL_F32 };
    const pl_gpt_layout *layout = &p->plan->gpt.layout;
    pl_status status = PL_OK;
    for (int i = 0; i < 2 && !status; i++) {
        pl_gpt_layout other = *layout;
        char value[48];
        if (layout->dtype == others[i] ||
            (others[i] == PL_F32 && !has_exact_products(layout)))
            continue;
        other.dtype = others[i];
        snprintf(value, sizeof value, "'%s'", pl_dtype_name(other.dtype));
        status = add(p, PL_KEY_dtype, value, &p->plan->gpt.shape, &other,
                     pl_run_plan_eval_sequences(p->config));
    }
    return status;
}

static pl_status price_bits(pricing *p)
{
    const pl_gpt_layout *layout = &p->plan->gpt.layout;
    const size_t sequences = pl_run_plan_eval_sequences(p->config);
    pl_gpt_layout other = *layout;
    pl_status status = PL_OK;
    if (layout->moments == PL_MOMENTS_F32) {
        other.moments = PL_MOMENTS_8BIT;
        status = add(p, PL_KEY_optimizer_state, "'8bit'", &p->plan->gpt.shape,
                     &other, sequences);
    }
    other = *layout;
    if (!status && layout->weights == PL_F32 && !pl_gpt_workers(layout) &&
        (layout->dtype != PL_F16 || has_exact_products(layout))) {
        other.weights = PL_BF16;
        status = add(p, PL_KEY_weights, "'bf16'", &p->plan->gpt.shape, &other,
                     sequences);
    }
    other = *layout;
    /* a card's tensor cores need them */
    const int is_free = layout->device.memory.spaces != PL_SPACES_APART ||
                        has_exact_products(layout);
    if (!status && layout->weights == PL_F32 && layout->dtype != PL_F32 &&
        is_free) {
        int kept = layout->copy == PL_COPY_RESIDENT;
        other.copy = kept ? PL_COPY_NONE : PL_COPY_RESIDENT;
        status = add(p, PL_KEY_working_copy, kept ? "'rounded'" : "'resident'",
                     &p->plan->gpt.shape, &other, sequences);
    }
    return status;
}

pl_status pl_savings_make(pl_saving fixes[PL_MAX_SAVINGS], size_t *count,
                          const pl_run_plan *plan, const pl_config *config,
                          const pl_machine *machine, pl_error *err)
{
    pricing p = { .plan = plan,
                  .config = config,
                  .machine = machine,
                  .fixes = fixes,
                  .err = err };
    pl_status status = price_evaluation(&p);
    if (!status)
        status = price_levels(&p);
    if (!status)
        status = price_micro(&p);
    if (!status)
        status = price_groups(&p);
    if (!status)
        status = price_model(&p);
    if (!status)
        status = price_dtype(&p);
    if (!status)
        status = price_bits(&p);
    *count = p.count;
    return status;
}
