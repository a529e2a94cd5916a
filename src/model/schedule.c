/* schedule.c: see schedule.h. */
#include "model/schedule.h"
#include "base/exact.h"

/* How much is left of what lies between the highest rate and the lowest, `way`
 * of the way from the end of the warm-up to that of the decay. */
static double left_at(const pl_config *config, double way, double at,
                      double end)
{
    const double pi = 3.14159265358979323846;
    switch (config->schedule) {
    case PL_SCHEDULE_COSINE:
        return 0.5 * (1.0 + pl_exact_cos(pi * way));
    case PL_SCHEDULE_LINEAR:
        return 1.0 - way;
    case PL_SCHEDULE_WSD: {
        /* a warm-up that lasts longer than the rest leaves less of it */
        const double long_way = config->warmdown_share * end,
                     begin = end - long_way,
                     warm = (double)config->warmup_iters,
                     from = begin > warm ? begin : warm;
        return at <= from ? 1.0 : 1.0 - (at - from) / (end - from);
    }
    case PL_SCHEDULE_CONSTANT:
        break;
    }
    return 1.0;
}

static double rate_between(const pl_config *config, double high, double low,
                           uint64_t step)
{
    double at = (double)step, warm = (double)config->warmup_iters,
           end = (double)config->lr_decay_iters;

    if (!config->decay_lr)
        return high;
    if (at < warm)
        return high * (at + 1.0) / (warm + 1.0);
    if (config->schedule == PL_SCHEDULE_CONSTANT)
        return high;
    if (at > end || end <= warm)
        return low;
    const double left = left_at(config, (at - warm) / (end - warm), at, end);
    return low + left * (high - low);
}

double pl_schedule_rate(const pl_config *config, uint64_t step)
{
    return rate_between(config, config->learning_rate, config->min_lr, step);
}

double pl_schedule_muon_rate(const pl_config *config, uint64_t step)
{
    const double usual = config->muon_scale == PL_MUON_SCALE_RMS
                             ? config->learning_rate
                             : 0.02,
                 high = config->muon_learning_rate > 0.0
                            ? config->muon_learning_rate
                            : usual,
                 low = config->learning_rate > 0.0
                           ? high * (config->min_lr / config->learning_rate)
                           : 0.0;
    return rate_between(config, high, low, step);
}
