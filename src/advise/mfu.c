/* mfu.c: see mfu.h. */
#include "advise/mfu.h"

#include <math.h>

enum { WARM_UP = 5, PROBED_UPDATES = 3 };

pl_mfu pl_mfu_make(double counted_flops, double needed_flops)
{
    return (pl_mfu){ .counted_flops = counted_flops,
                     .needed_flops = needed_flops };
}

void pl_mfu_probed(pl_mfu *mfu, double flops_per_second)
{
    mfu->peak_flops = fmax(mfu->peak_flops, flops_per_second);
}

int pl_mfu_wants_probe(const pl_mfu *mfu)
{
    return mfu->updates <= PROBED_UPDATES;
}

void pl_mfu_updated(pl_mfu *mfu, double seconds)
{
    if (!(seconds > 0.0))
        return;
    const double now = mfu->counted_flops / seconds;
    pl_mfu_probed(mfu, mfu->needed_flops / seconds);
    mfu->updates++;
    if (mfu->updates == WARM_UP + 1)
        mfu->running = now;
    else if (mfu->updates > WARM_UP)
        mfu->running = 0.9 * mfu->running + 0.1 * now;
}

double pl_mfu_share(const pl_mfu *mfu)
{
    if (mfu->updates <= WARM_UP || !(mfu->peak_flops > 0.0))
        return -1.0;
    return mfu->running / mfu->peak_flops;
}
