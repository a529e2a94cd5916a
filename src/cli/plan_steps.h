/* plan_steps.h: the step lists of a plan, as `plan --steps` prints them. */
#ifndef PL_CLI_PLAN_STEPS_H
#define PL_CLI_PLAN_STEPS_H

#include "model/gpt.h"

void pl_plan_steps_print(const pl_gpt *gpt);

#endif
