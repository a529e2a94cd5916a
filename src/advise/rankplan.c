/* rankplan.c: see rankplan.h. */
#include "advise/rankplan.h"
#include "base/check.h"

#include <math.h>

pl_rank_bytes pl_rank_bytes_of(const pl_run_plan *plan)
{
    const size_t *of = plan->gpt.placement.class_bytes[PL_TRAIN];
    pl_rank_bytes bytes = { .weights = of[PL_CLASS_WEIGHT],
                            .gradients = of[PL_CLASS_GRADIENT],
                            .moments = of[PL_CLASS_MOMENT],
                            .total = plan->total_bytes };
    bytes.rest = bytes.total - bytes.weights - bytes.gradients - bytes.moments;
    return bytes;
}

pl_rank_range pl_rank_range_of(const pl_rank_bytes *each, size_t ranks)
{
    pl_rank_range range = { 0 };
    for (size_t i = 0; i < ranks; i++) {
        range.all.weights += each[i].weights;
        range.all.gradients += each[i].gradients;
        range.all.moments += each[i].moments;
        range.all.rest += each[i].rest;
        range.all.total += each[i].total;
        if (each[i].total > each[range.largest].total)
            range.largest = i;
        if (each[i].total < each[range.smallest].total)
            range.smallest = i;
    }
    return range;
}

/* ---- an update's work ---- */

/* Whether the gradient of a parameter is ready before the backward pass ends:
 * not those of the first block, and of what is looked up by tokens and places,
 * which come last. A table that is tied to the classifier is one of these. */
static int is_early(const pl_param *param)
{
    return param->layer > 0 ||
           (param->layer < 0 && param->kind != PL_WTE && param->kind != PL_WPE);
}

/* Whether gradients travel during a backward pass: several groups are added
 * before anything can be sent, workers send their weights' changes, and a card
 * isn't done with a step when it is told of. */
static int sends_early(const pl_gpt_layout *layout)
{
    return layout->groups == 1 && !pl_gpt_workers(layout) &&
           pl_device_info_is_prompt(&layout->device);
}

/* What is the same for all ranks. */
static void measure(pl_network_work *work, const pl_gpt *gpt,
                    const pl_rates *rates)
{
    const pl_buffer *buffers = gpt->graph.buffers;
    const double add = rates->per_second[PL_OP_ADD];
    for (size_t i = 0; i < pl_param_slots(&gpt->shape); i++) {
        const pl_param param = pl_param_at(&gpt->shape, i);
        if (gpt->gradients[i] == PL_NO_BUFFER)
            continue;
        const double bytes = (double)(param.rows * param.cols) * sizeof(float);
        if (is_early(&param))
            work->early_bytes += bytes;
        else
            work->late_bytes += bytes;
        work->weight_bytes += (double)buffers[gpt->weights[i]].bytes;
    }
    work->sum_bytes = (double)buffers[gpt->partials].bytes +
                      (double)(gpt->layout.batch * gpt->layout.batches *
                               work->ranks * sizeof(double));
    work->add_seconds = add > 0.0 ? (work->early_bytes + work->late_bytes) /
                                        sizeof(float) / add
                                  : 0.0;
    if (sends_early(&gpt->layout))
        work->backward_seconds = pl_cost_backward(gpt, rates);
}

/* ---- all plans ---- */

typedef struct planning {
    pl_rank_plans *plans;
    const pl_config *config;
    pl_machine machine; /* one of them */
    size_t vocab_size;
    size_t *elements;   /* [ranks]: that each owns */
    double all_seconds; /* of updating all weights */
    pl_error *err;
} planning;

/* It makes the whole update, also where the config is one of workers. */
static pl_status plan_one_machine(planning *p)
{
    const pl_log quiet = { 0 };
    pl_config config = *p->config;
    pl_machine machine = p->machine;
    pl_run_plan plan;
    pl_heap heap = pl_heap_make((size_t)1 << 30);
    config.sync_interval = 1;
    machine.ranks = 0;
    machine.rank = 0;
    pl_machine_give_back(&machine, machine.engine_bytes);
    pl_status status = pl_run_plan_make(&plan, &config, &machine, p->vocab_size,
                                        &quiet, &heap, p->err);
    if (!status) {
        p->plans->one = pl_rank_bytes_of(&plan);
        p->plans->one_seconds = plan.update_seconds;
        p->all_seconds = pl_cost_once(
            &plan.gpt, pl_machine_rates_in(&machine, plan.gpt.layout.dtype),
            PL_UPDATE_WEIGHTS);
    }
    pl_heap_close(&heap);
    return status;
}

static pl_status plan_rank(planning *p, size_t rank)
{
    const pl_log quiet = { 0 };
    pl_network_work *work = &p->plans->work;
    pl_run_plan plan;
    pl_heap heap = pl_heap_make((size_t)1 << 30);
    p->machine.rank = rank;
    pl_status status = pl_run_plan_make(&plan, p->config, &p->machine,
                                        p->vocab_size, &quiet, &heap, p->err);
    if (!status) {
        const pl_rates *rates = pl_machine_rates_in(&p->machine,
                                                    plan.gpt.layout.dtype);
        const double own = pl_cost_once(&plan.gpt, rates, PL_UPDATE_WEIGHTS);
        p->plans->each[rank] = pl_rank_bytes_of(&plan);
        p->elements[rank] = pl_slices_elements(&plan.gpt.slices, rank);
        if (rank == 0)
            measure(work, &plan.gpt, rates);
        if (plan.update_seconds > work->compute_seconds) {
            work->compute_seconds = plan.update_seconds;
            work->all_seconds = pl_gpt_workers(&plan.gpt.layout)
                                    ? 0.0
                                    : fmax(p->all_seconds - own, 0.0);
        }
    }
    pl_heap_close(&heap);
    return status;
}

pl_status pl_rank_plans_make(pl_rank_plans *plans, const pl_config *config,
                             const pl_machine *machine, size_t vocab_size,
                             pl_heap *heap, pl_error *err)
{
    const size_t ranks = machine->ranks;
    planning p = { .plans = plans,
                   .config = config,
                   .machine = *machine,
                   .vocab_size = vocab_size,
                   .err = err };
    PL_CHECK(ranks > 0 && ranks <= PL_MAX_RANKS);
    *plans = (pl_rank_plans){ .ranks = ranks,
                              .interval = (size_t)config->sync_interval,
                              .work = { .ranks = ranks } };
    pl_status status = pl_heap_take(heap, &plans->each, ranks,
                                    sizeof *plans->each, err);
    if (!status)
        status = pl_heap_take(heap, &p.elements, ranks, sizeof *p.elements,
                              err);
    if (!status)
        status = plan_one_machine(&p);
    for (size_t rank = 0; rank < ranks && !status; rank++)
        status = plan_rank(&p, rank);
    if (status)
        return status;
    plans->range = pl_rank_range_of(plans->each, ranks);
    plans->work.uneven = pl_network_uneven(p.elements, ranks);
    return PL_OK;
}

pl_network_times pl_rank_plans_times(const pl_rank_plans *plans,
                                     const pl_network *network)
{
    return plans->interval > 1
               ? pl_network_diloco(network, &plans->work, plans->interval)
               : pl_network_update(network, &plans->work);
}

uint64_t pl_rank_plans_diloco_bytes(const pl_rank_plans *plans)
{
    const pl_rank_bytes *most = &plans->each[plans->range.largest];
    const double model = plans->work.early_bytes + plans->work.late_bytes;
    return most->total - most->moments + plans->one.moments +
           (uint64_t)(2.0 * model / (double)plans->ranks);
}
