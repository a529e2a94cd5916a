/* cost.c: see cost.h. */
#include "model/cost.h"

#include <math.h>

pl_rates pl_rates_built_in(size_t cores)
{
    pl_rates rates = { .source = PL_RATES_BUILT_IN,
                       .barrier_seconds = cores > 1 ? 1e-6 : 1e-7 };
    for (int op = 0; op < PL_OP_COUNT; op++)
        rates.per_second[op] = pl_op_of((pl_op)op)->per_second * (double)cores;
    return rates;
}

/* Of the card's peak: products issue multiply-adds in 87 % of their slots, and
 * lose some before and after. Attention computes its scores twice, and so do
 * its gradients: 7 products where 5 are counted. */
#define CARD_PRODUCT       0.80
#define CARD_ATTENTION     0.42
#define CARD_ATTENTION_BWD 0.50
#define CARD_BYTES         0.80 /* of its bandwidth */
#define CARD_STEP_SECONDS  8e-6 /* a launch or two */

/* Bytes that a unit of work of the other ops reads and writes, in float32. */
static double bytes_of_unit(pl_op op)
{
    switch (op) {
    case PL_OP_EMBED:
    case PL_OP_EMBED_BWD:
    case PL_OP_ADD:
    case PL_OP_MUON_POLY:
        return 12.0;
    case PL_OP_GLU:
    case PL_OP_QK_DW:
        return 12.0;
    case PL_OP_GLU_BWD:
    case PL_OP_LAYERNORM_BWD:
    case PL_OP_RMSNORM_BWD:
        return 20.0;
    case PL_OP_CROSS_ENTROPY:
    case PL_OP_MUON_MOMENT:
    case PL_OP_MUON_APPLY:
        return 16.0;
    case PL_OP_ADAMW:
    case PL_OP_OUTER:
        return 28.0;
    case PL_OP_SUMSQ:
    case PL_OP_MUON_SUMSQ:
    case PL_OP_COLUMN_SUM:
    case PL_OP_LOSS_SUM:
        return 4.0;
    case PL_OP_ATTENTION_CACHED:
        return 2.0; /* keys and values are read for 4 flops per number */
    default:
        return 8.0; /* read once, written once */
    }
}

pl_rates pl_rates_stated(double flops, double bytes_per_second, size_t units)
{
    pl_rates rates = { .source = PL_RATES_STATED,
                       .units = units,
                       .barrier_seconds = CARD_STEP_SECONDS };
    for (int op = 0; op < PL_OP_COUNT; op++)
        switch ((pl_op)op) {
        case PL_OP_MATMUL:
        case PL_OP_MATMUL_T:
        case PL_OP_MATMUL_DW:
            rates.per_second[op] = CARD_PRODUCT * flops;
            break;
        case PL_OP_ATTENTION:
            rates.per_second[op] = CARD_ATTENTION * flops;
            break;
        case PL_OP_ATTENTION_BWD:
            rates.per_second[op] = CARD_ATTENTION_BWD * flops;
            break;
        case PL_OP_FETCH:
            break; /* free */
        default:
            rates.per_second[op] = CARD_BYTES * bytes_per_second /
                                   bytes_of_unit((pl_op)op);
        }
    return rates;
}

void pl_rates_scale_products(pl_rates *rates, double faster)
{
    for (int op = 0; op < PL_OP_COUNT; op++)
        if (pl_op_of((pl_op)op)->constants & PL_INNER)
            rates->per_second[op] *= faster;
}

static size_t tiles_of(size_t count)
{
    enum { TILE = 128 }; /* kernels/gpu/gemm.cl's */
    return (count + TILE - 1) / TILE;
}

/* A step's work. On a card, the tiles of a product go to its units in whole
 * rounds: a few tiles keep a few units busy, and the others wait. */
static double work_of(const pl_step *step, size_t units)
{
    const int dw = step->op == PL_OP_MATMUL_DW;
    if (units == 0 ||
        (!dw && step->op != PL_OP_MATMUL && step->op != PL_OP_MATMUL_T))
        return pl_step_work(step);
    const size_t tiles = tiles_of(dw ? step->inner : step->rows) *
                         tiles_of(step->cols),
                 rounds = (tiles + units - 1) / units;
    return 2.0 * 128.0 * 128.0 * (double)(rounds * units) *
           (double)(dw ? step->rows : step->inner);
}

double pl_cost_step(const pl_step *step, const pl_rates *rates)
{
    const double rate = rates->per_second[step->op];
    return rates->barrier_seconds +
           (rate > 0.0 ? work_of(step, rates->units) / rate : 0.0);
}

static double steps_seconds(const pl_program *program, const pl_rates *rates,
                            size_t begin, size_t end)
{
    double seconds = 0.0;
    for (size_t at = begin; at < end; at++)
        seconds += pl_cost_step(&program->steps[at], rates);
    return seconds;
}

double pl_cost_round(const pl_gpt *gpt, const pl_rates *rates,
                     pl_program_id program)
{
    const pl_program *p = &gpt->graph.programs[program];
    return steps_seconds(p, rates, 0, p->loop_steps);
}

double pl_cost_once(const pl_gpt *gpt, const pl_rates *rates,
                    pl_program_id program)
{
    const pl_program *p = &gpt->graph.programs[program];
    return steps_seconds(p, rates, 0, p->n_steps);
}

double pl_cost_backward(const pl_gpt *gpt, const pl_rates *rates)
{
    const pl_program *p = &gpt->graph.programs[PL_TRAIN];
    size_t begin = p->loop_steps;
    while (begin > 0 && p->steps[begin - 1].op != PL_OP_CROSS_ENTROPY)
        begin--;
    return steps_seconds(p, rates, begin, p->loop_steps);
}

double pl_cost_carries(const pl_gpt *gpt)
{
    const size_t groups = gpt->layout.groups;
    return groups > 1 ? (double)(groups - 1) : 0.0;
}

/* Its share in an update. */
static double sync_seconds(const pl_gpt *gpt, const pl_rates *rates)
{
    const pl_program *sync = &gpt->graph.programs[PL_SYNC];
    if (sync->n_steps == 0)
        return 0.0;
    return steps_seconds(sync, rates, 0, sync->n_steps) /
           (double)gpt->layout.sync_interval;
}

double pl_cost_update(const pl_gpt *gpt, const pl_rates *rates)
{
    const pl_program *train = &gpt->graph.programs[PL_TRAIN];
    const pl_program *groups = &gpt->graph.programs[PL_ADD_GROUPS];
    const pl_program *update = &gpt->graph.programs[PL_UPDATE_WEIGHTS];
    double rounds = (double)(gpt->layout.batch / gpt->layout.micro);
    double batch = rounds * pl_cost_round(gpt, rates, PL_TRAIN) +
                   steps_seconds(train, rates, train->loop_steps,
                                 train->n_steps);
    return (double)gpt->layout.batches * batch +
           pl_cost_carries(gpt) *
               steps_seconds(groups, rates, 0, groups->n_steps) +
           steps_seconds(update, rates, 0, update->n_steps) +
           sync_seconds(gpt, rates);
}

void pl_cost_observe(pl_observed *seen, const pl_gpt *gpt,
                     pl_program_id program, const double *step_seconds,
                     double rounds, double rests)
{
    const pl_program *p = &gpt->graph.programs[program];
    for (size_t at = 0; at < p->n_steps; at++) {
        const pl_step *step = &p->steps[at];
        const double times = at < p->loop_steps ? rounds : rests,
                     mean = step_seconds[at] / times;
        if (!(step_seconds[at] > 0.0))
            continue;
        seen->seconds[step->op] += step_seconds[at];
        seen->units[step->op] += pl_step_work(step) * times;
        seen->steps[step->op] += times;
        if (seen->least_seconds == 0.0 || mean < seen->least_seconds)
            seen->least_seconds = mean;
    }
}
