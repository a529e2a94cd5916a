/* looks.c: see looks.h. */
#include "model/looks.h"
#include "base/exact.h"

#include <math.h>

void pl_looks_add(pl_looks *looks, const pl_observed *seen, double quiet)
{
    const double enough_seconds = 1e-3, most_barrier = 1e-4;
    const double barrier = fmin(seen->least_seconds, most_barrier);
    if (barrier > 0.0 &&
        (looks->barrier_seconds == 0.0 || barrier < looks->barrier_seconds))
        looks->barrier_seconds = barrier;
    for (int op = 0; op < PL_OP_COUNT; op++) {
        const double all = seen->seconds[op];
        if (!(all > 0.0) || !(seen->units[op] > 0.0))
            continue;
        const double waits = seen->steps[op] * barrier,
                     rate = seen->units[op] / fmax(all - waits, 0.1 * all);
        const int brief = all < enough_seconds,
                  first = looks->per_second[op] == 0.0;
        /* one that was long enough counts more than any that was not */
        if (first || brief < looks->brief[op] ||
            (brief == looks->brief[op] && rate > looks->per_second[op])) {
            looks->per_second[op] = rate;
            looks->brief[op] = brief;
        }
    }
    looks->quiet = fmax(looks->quiet, quiet);
    looks->count++;
}

double pl_rates_trust(const pl_rates *rates, double date)
{
    const double day = 86400.0, month = 30.0 * day,
                 age = fmax(date - rates->date, 0.0);
    if (rates->source == PL_RATES_BUILT_IN || !(rates->date > 0.0) ||
        rates->date > date + day) /* from a clock that was wrong */
        return 0.0;
    return rates->quiet * pl_exact_pow(0.5, age / month);
}

void pl_rates_learn(pl_rates *rates, const pl_looks *looks, double date)
{
    const int own = rates->source == PL_RATES_MEASURED;
    const double known = own ? pl_rates_trust(rates, date) : 0.0;
    const int replaces = looks->quiet >= PL_LOOKS_QUIET ||
                         looks->quiet >= 2.0 * known;
    if (looks->count == 0)
        return;
    if (looks->barrier_seconds > 0.0 &&
        (replaces || looks->barrier_seconds < rates->barrier_seconds))
        rates->barrier_seconds = looks->barrier_seconds;
    for (int op = 0; op < PL_OP_COUNT; op++) {
        const double rate = looks->per_second[op];
        if ((replaces && rate > 0.0 && !looks->brief[op]) ||
            rate > rates->per_second[op])
            rates->per_second[op] = rate;
    }
    if (replaces || looks->quiet > known) {
        rates->quiet = looks->quiet;
        rates->date = date;
    }
    rates->source = PL_RATES_MEASURED;
}
