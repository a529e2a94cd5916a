/* pace.c: see pace.h. */
#include "train/pace.h"

#include <math.h>

/* So much of the whole is seen before what was seen outweighs the prior. */
static const double prior_share = 0.02;

pl_pace pl_pace_make(double now, double total, double prior)
{
    return (
        pl_pace){ .begin = now, .total = total, .prior = prior, .asked = -1.0 };
}

double pl_pace_share(const pl_pace *pace)
{
    return pace->total > 0.0 ? fmin(pace->done / pace->total, 1.0) : 0.0;
}

double pl_pace_factor(const pl_pace *pace, double now)
{
    const double weight = prior_share * pace->total, all = pace->done + weight;
    if (!(all > 0.0))
        return pace->prior;
    return (now - pace->begin + weight * pace->prior) / all;
}

double pl_pace_left(const pl_pace *pace, double now)
{
    return fmax(pace->total - pace->done, 0.0) * pl_pace_factor(pace, now);
}

int pl_pace_gives_up(pl_pace *pace, double now, double patience)
{
    if (pace->asked < 0.0)
        pace->asked = now;
    return now - pace->asked + pl_pace_left(pace, now) > patience;
}
