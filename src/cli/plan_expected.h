/* plan_expected.h: the loss that `plan` expects at the end of a run, from the
 * model, the length of the run, and the text that it would see. */
#ifndef PL_CLI_PLAN_EXPECTED_H
#define PL_CLI_PLAN_EXPECTED_H

#include "advise/expect.h"
#include "base/arena.h"

typedef struct pl_plan_expected {
    pl_expect_text text;
    pl_expectation bits; /* high: 0: nothing is expected */
} pl_plan_expected;

/* Of a run that begins with nothing: what a model knows already, no law does.
 * The text is looked at if it is there: the first tokens of the dataset's
 * training split, where their tokenizer is known; else it is what is usual for
 * a vocabulary of that size. Data that can't be read is no error here: a plan
 * needs none. */
PL_MUST_CHECK pl_status pl_plan_expected_make(pl_plan_expected *expected,
                                              const pl_config *config,
                                              size_t vocab_size, pl_error *err);

/* A row of the plan. */
void pl_plan_expected_print(const pl_plan_expected *expected);

#endif
