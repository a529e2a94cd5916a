/* dial.h: what the key `depth` means: the settings of a run that follow from
 * one number, by rules that others have published. docs/recipe.md states them
 * with their sources.
 *
 * A key that a file or an argument has set is never touched; what is derived
 * from it follows it. The numbers are the same on every machine. */
#ifndef PL_MODEL_DIAL_H
#define PL_MODEL_DIAL_H

#include "config/config.h"

/* Tokens per parameter that the length of a run comes from. */
enum { PL_DIAL_RATIO = 12 };

/* The model and its optimizer, which need no vocabulary. Does nothing without
 * `depth`. */
PL_MUST_CHECK pl_status pl_dial_set_model(pl_config *config, pl_error *err);

/* Parameters that decide how much there is to learn: all but a token table that
 * isn't the classifier's, too, and positions. */
PL_MUST_CHECK pl_status pl_dial_parameters(double *count,
                                           const pl_config *config,
                                           size_t vocab_size, pl_error *err);

/* Batch, learning rates, and the length of the run in updates, for `tokens`
 * tokens; 0: as many as the parameters want. `from` is PL_FROM_DEPTH, or
 * PL_FROM_MINUTES where a rate has said how many tokens there are. Does nothing
 * without `depth`. */
PL_MUST_CHECK pl_status pl_dial_set_run(pl_config *config, size_t vocab_size,
                                        double tokens, pl_config_source from,
                                        pl_error *err);

/* What follows from a number of updates alone: max_iters, which may become a
 * little less so that an evaluation stands at the end, lr_decay_iters,
 * warmup_iters and eval_interval. */
PL_MUST_CHECK pl_status pl_dial_set_length(pl_config *config, int64_t updates,
                                           pl_config_source from,
                                           pl_error *err);

/* Evaluations of a run whose eval_interval follows from its length, the first
 * one included. */
enum { PL_DIAL_EVALUATIONS = 11 };

/* A run goes on with what was derived when it began: `config` gets what `kept`
 * has in every such key that neither has set. PL_E_CONFIG where it asks for
 * another depth or for other minutes. `folder` is the checkpoint. */
PL_MUST_CHECK pl_status pl_dial_keep(pl_config *config, const pl_config *kept,
                                     const char *folder, pl_error *err);

#endif
