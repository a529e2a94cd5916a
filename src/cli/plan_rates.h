/* plan_rates.h: what `plan` says of the rates that it counts with. */
#ifndef PL_CLI_PLAN_RATES_H
#define PL_CLI_PLAN_RATES_H

#include "advise/machine.h"

/* Where they come from: "what this machine reached", and for scripts
 * "measured". */
const char *pl_plan_rates_text(const pl_machine *machine);
const char *pl_plan_rates_word(const pl_machine *machine);

/* A row of the plan: how old they are and how far to trust them. */
void pl_plan_rates_print(const pl_machine *machine);

#endif
