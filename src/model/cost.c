/* cost.c: see cost.h. */
#include "model/cost.h"

#include <math.h>

/* A product with few rows spends more of its time packing weights: so many
 * rows cost what the packing does. */
static const double packing_rows = 8.0;

/* Units per second of one AVX2 core at 3 GHz, from bench and profiles of the
 * plain kernels; only their ratios matter until the machine is measured. */
static const double built_in[PL_OP_COUNT] = {
    [PL_OP_EMBED] = 1.0e9,        [PL_OP_EMBED_BWD] = 0.5e9,
    [PL_OP_LAYERNORM] = 1.2e9,    [PL_OP_LAYERNORM_BWD] = 0.5e9,
    [PL_OP_MATMUL] = 80e9,        [PL_OP_MATMUL_T] = 80e9,
    [PL_OP_MATMUL_DW] = 80e9,     [PL_OP_COLUMN_SUM] = 2.0e9,
    [PL_OP_ATTENTION] = 40e9,     [PL_OP_ATTENTION_BWD] = 50e9,
    [PL_OP_CACHE_APPEND] = 2.0e9, [PL_OP_ATTENTION_CACHED] = 10e9,
    [PL_OP_GELU] = 0.8e9,         [PL_OP_DROP] = 1.0e9,
    [PL_OP_CARRY] = 2.0e9,        [PL_OP_CROSS_ENTROPY] = 0.6e9,
    [PL_OP_LOSS_SUM] = 1.0e9,     [PL_OP_SUMSQ] = 2.5e9,
    [PL_OP_CLIP] = 1.0e9,         [PL_OP_ADAMW] = 0.7e9,
};

pl_rates pl_rates_built_in(size_t threads)
{
    pl_rates rates = { .source = PL_RATES_BUILT_IN,
                       .barrier_seconds = threads > 1 ? 1e-6 : 1e-7 };
    for (int op = 0; op < PL_OP_COUNT; op++)
        rates.per_second[op] = built_in[op] * (double)threads;
    return rates;
}

double pl_cost_units(const pl_step *step)
{
    double rows = (double)step->rows, cols = (double)step->cols;
    double attention = rows * (double)step->T * (double)step->heads *
                       (double)step->inner; /* half of T keys, 2 flops each */
    switch (step->op) {
    case PL_OP_MATMUL:
    case PL_OP_MATMUL_T:
        return 2.0 * (rows + packing_rows) * cols * (double)step->inner;
    case PL_OP_MATMUL_DW:
        return 2.0 * rows * cols * (double)step->inner;
    case PL_OP_ATTENTION:
    case PL_OP_ATTENTION_CACHED:
        return 2.0 * attention;
    case PL_OP_ATTENTION_BWD:
        return 5.0 * attention;
    case PL_OP_LOSS_SUM:
    case PL_OP_SUMSQ:
    case PL_OP_CLIP:
    case PL_OP_ADAMW:
        return rows;
    case PL_OP_FETCH:
        return 0.0;
    default:
        return rows * cols;
    }
}

double pl_cost_step(const pl_step *step, const pl_rates *rates)
{
    const double rate = rates->per_second[step->op];
    return rates->barrier_seconds +
           (rate > 0.0 ? pl_cost_units(step) / rate : 0.0);
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

double pl_cost_update(const pl_gpt *gpt, const pl_rates *rates, size_t batches)
{
    const pl_program *train = &gpt->graph.programs[PL_TRAIN];
    const pl_program *update = &gpt->graph.programs[PL_UPDATE_WEIGHTS];
    double rounds = (double)(gpt->layout.batch / gpt->layout.micro);
    double batch = rounds * pl_cost_round(gpt, rates, PL_TRAIN) +
                   steps_seconds(train, rates, train->loop_steps,
                                 train->n_steps);
    return (double)batches * batch +
           steps_seconds(update, rates, 0, update->n_steps);
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
        seen->units[step->op] += pl_cost_units(step) * times;
        seen->steps[step->op] += times;
        if (seen->least_seconds == 0.0 || mean < seen->least_seconds)
            seen->least_seconds = mean;
    }
}
