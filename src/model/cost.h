/* cost.h: how long a step list takes, from the rates of a machine.
 *
 * A step takes a barrier and its work divided by the rate of its op. The rates
 * are measured (looks.h): by every training, from the steps it runs, or, before
 * the first one, taken from a table that was measured elsewhere. What the
 * shortest step takes is what any step costs beside its work. */
#ifndef PL_MODEL_COST_H
#define PL_MODEL_COST_H

#include "model/gpt.h"

typedef enum pl_rates_source {
    PL_RATES_BUILT_IN, /* measured on one core of another machine */
    PL_RATES_STATED,   /* from a card's data sheet, by a model of its kernels */
    PL_RATES_SIMILAR,  /* on this machine, with another width or dtype */
    PL_RATES_MEASURED, /* on this machine, with this width and dtype */
} pl_rates_source;

typedef struct pl_rates {
    pl_rates_source source;
    double per_second[PL_OP_COUNT]; /* units of work; 0: free */
    double barrier_seconds;         /* of every step */
    size_t units; /* of a card, which share a product's tiles; 0: none */
    double quiet; /* share of the time that was ours while they were measured */
    double date;  /* when that was, in seconds since 1970; 0: unknown */
} pl_rates;

/* The built-in table for `cores` of its cores. */
pl_rates pl_rates_built_in(size_t cores);

/* What the kernels of kernels/gpu would do on a card of so many float32 flops
 * and bytes per second and so many units, by the model in docs/gpu.md: nobody
 * has measured it. */
pl_rates pl_rates_stated(double flops, double bytes_per_second, size_t units);

/* Products and attention are `faster` times as fast as the rates say: what is
 * known of one dtype, for another. */
void pl_rates_scale_products(pl_rates *rates, double faster);

/* Seconds of one step. */
double pl_cost_step(const pl_step *step, const pl_rates *rates);

/* Seconds of one update: all micro-batches, all batches, the sums of its groups
 * and the update. */
double pl_cost_update(const pl_gpt *gpt, const pl_rates *rates);

/* How often an update adds a sum of groups to another, and how often it puts
 * one by: one time less than there are groups. */
double pl_cost_carries(const pl_gpt *gpt);

/* Seconds of the loop of a program, once. */
double pl_cost_round(const pl_gpt *gpt, const pl_rates *rates,
                     pl_program_id program);

/* Seconds of all steps of a program, once. */
double pl_cost_once(const pl_gpt *gpt, const pl_rates *rates,
                    pl_program_id program);

/* Seconds of a micro-batch from its last loss on: the backward pass. */
double pl_cost_backward(const pl_gpt *gpt, const pl_rates *rates);

/* What was seen of the ops at work. */
typedef struct pl_observed {
    double seconds[PL_OP_COUNT], units[PL_OP_COUNT], steps[PL_OP_COUNT];
    double least_seconds; /* mean of the shortest step; 0: none seen */
} pl_observed;

/* Adds a program of which `rounds` rounds of the loop and `rests` of the rest
 * ran, with the seconds that each step took in all of them. */
void pl_cost_observe(pl_observed *seen, const pl_gpt *gpt,
                     pl_program_id program, const double *step_seconds,
                     double rounds, double rests);

#endif
