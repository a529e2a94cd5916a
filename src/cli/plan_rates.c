/* plan_rates.c: see plan_rates.h. */
#include "cli/plan_rates.h"
#include "base/clock.h"
#include "base/units.h"
#include "cli/term.h"

#include <math.h>
#include <stdio.h>

const char *pl_plan_rates_text(const pl_machine *machine)
{
    switch (pl_machine_rates(machine)->source) {
    case PL_RATES_MEASURED:
        return "what this machine reached";
    case PL_RATES_SIMILAR:
        return "what this machine reached at another width or dtype";
    case PL_RATES_STATED:
        return "the card's data sheet: an estimate";
    case PL_RATES_BUILT_IN:
        break;
    }
    return "a built-in table; `train` and `bench` measure";
}

const char *pl_plan_rates_word(const pl_machine *machine)
{
    switch (pl_machine_rates(machine)->source) {
    case PL_RATES_BUILT_IN:
        return "built-in";
    case PL_RATES_STATED:
        return "stated";
    case PL_RATES_SIMILAR:
    case PL_RATES_MEASURED:
        break;
    }
    return "measured";
}

void pl_plan_rates_print(const pl_machine *machine)
{
    const pl_rates *rates = pl_machine_rates(machine);
    const double age = pl_clock_date() - rates->date;
    printf("%srates%s       ", pl_term_out(PL_TERM_BOLD), pl_term_out_end());
    if (rates->source == PL_RATES_STATED)
        printf("from the card's data sheet and a model of the kernels, which "
               "no card has confirmed yet (docs/gpu.md)\n");
    else if (rates->source == PL_RATES_BUILT_IN)
        printf("built in, of another machine: good to compare layouts, not to "
               "tell the time\n");
    else if (!(pl_rates_trust(rates, pl_clock_date()) > 0.0))
        printf("of unknown age: the next `train` or `bench` measures anew\n");
    else if (rates->quiet >= PL_LOOKS_QUIET)
        printf("measured %s ago, undisturbed (%.0f %% of the time was "
               "ours)\n",
               pl_units_duration(fmax(age, 0.0)).text, 100.0 * rates->quiet);
    else
        printf("measured %s ago in a busy moment (%.0f %% of the time was "
               "ours): it may be faster; a quiet `train` or `bench` corrects "
               "them\n",
               pl_units_duration(fmax(age, 0.0)).text, 100.0 * rates->quiet);
}
