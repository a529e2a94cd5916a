/* expect.h: the validation loss that a run may be expected to end with, as a
 * range, before it begins. In bits per byte, which doesn't depend on the
 * tokenizer.
 *
 * A law of the usual form, E + A / parameters^a + B / bytes^b: its constants
 * are fitted to runs that nanochat and llm.c have published and to small runs
 * of this program (docs/recipe.md). Text differs more than models do: the range
 * is wide, and says so. */
#ifndef PL_ADVISE_EXPECT_H
#define PL_ADVISE_EXPECT_H

#include "config/config.h"

typedef struct pl_expect_text {
    double bytes_per_token;
    double unique_bytes; /* of the training text; 0: unknown, as many as asked
                          * for */
} pl_expect_text;

typedef struct pl_expectation {
    double low, high; /* bits per byte */
} pl_expectation;

/* What English takes in a vocabulary of that size, where nobody knows the text.
 */
double pl_expect_bytes_per_token(size_t vocab_size);

/* For a run over `tokens` tokens of a model whose blocks and classifier have so
 * many parameters. Text that is seen again counts for less each time. The law
 * is that of runs whose matrices Muon updates; AdamW's end above it, the more
 * so the shorter they are. */
pl_expectation pl_expect_bits(double parameters, double tokens,
                              pl_optimizer_choice optimizer,
                              const pl_expect_text *text);

#endif
