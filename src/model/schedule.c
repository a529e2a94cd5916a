/* schedule.c: see schedule.h. */
#include "model/schedule.h"
#include "base/exact.h"

double pl_schedule_rate(const pl_config *config, uint64_t step)
{
    const double pi = 3.14159265358979323846;
    double at = (double)step, warm = (double)config->warmup_iters,
           end = (double)config->lr_decay_iters;

    if (!config->decay_lr)
        return config->learning_rate;
    if (at < warm)
        return config->learning_rate * (at + 1.0) / (warm + 1.0);
    if (at > end || end <= warm)
        return config->min_lr;
    double way = (at - warm) / (end - warm);
    double share = 0.5 * (1.0 + pl_exact_cos(pi * way));
    return config->min_lr + share * (config->learning_rate - config->min_lr);
}
