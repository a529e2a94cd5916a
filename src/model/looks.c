/* looks.c: see looks.h. */
#include "model/looks.h"
#include "base/exact.h"

#include <math.h>

/* Of `seconds` that an op took, `lost` at the most were not ours. */
static pl_look_grade grade_of(double seconds, double lost)
{
    const double enough = 1e-3;
    return seconds < enough          ? PL_LOOK_BRIEF
           : seconds - lost < enough ? PL_LOOK_DISTURBED
                                     : PL_LOOK_LONG;
}

void pl_looks_add(pl_looks *looks, const pl_observed *seen, double quiet)
{
    const double most_barrier = 1e-4;
    double lost = 0.0; /* perhaps all in one op */
    for (int op = 0; op < PL_OP_COUNT; op++)
        lost += (1.0 - quiet) * seen->seconds[op];
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
        const pl_look_grade grade = grade_of(all, lost);
        const int first = looks->per_second[op] == 0.0;
        if (first || grade > looks->grade[op] ||
            (grade == looks->grade[op] && rate > looks->per_second[op])) {
            looks->per_second[op] = rate;
            looks->grade[op] = grade;
        }
    }
    looks->quiet = fmax(looks->quiet, quiet);
    looks->count++;
}

double pl_rates_trust(const pl_rates *rates, double date)
{
    const double day = 86400.0, month = 30.0 * day,
                 age = fmax(date - rates->date, 0.0);
    if (rates->source <= PL_RATES_STATED || !(rates->date > 0.0) ||
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
        if ((replaces && rate > 0.0 && looks->grade[op] != PL_LOOK_BRIEF) ||
            rate > rates->per_second[op])
            rates->per_second[op] = rate;
    }
    if (replaces || looks->quiet > known) {
        rates->quiet = looks->quiet;
        rates->date = date;
    }
    rates->source = PL_RATES_MEASURED;
}
