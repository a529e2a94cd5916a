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

void pl_rates_scale_products(pl_rates *rates, double faster)
{
    for (int op = 0; op < PL_OP_COUNT; op++)
        if (pl_op_of((pl_op)op)->constants & PL_INNER)
            rates->per_second[op] *= faster;
}

double pl_cost_step(const pl_step *step, const pl_rates *rates)
{
    const double rate = rates->per_second[step->op];
    return rates->barrier_seconds +
           (rate > 0.0 ? pl_step_work(step) / rate : 0.0);
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

double pl_cost_carries(const pl_gpt *gpt)
{
    const size_t groups = gpt->layout.groups;
    return groups > 1 ? (double)(groups - 1) : 0.0;
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
        seen->units[step->op] += pl_step_work(step) * times;
        seen->steps[step->op] += times;
        if (seen->least_seconds == 0.0 || mean < seen->least_seconds)
            seen->least_seconds = mean;
    }
}
