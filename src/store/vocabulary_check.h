/* vocabulary_check.h: whether a model and the data that it is put on mean the
 * same by a token. */
#ifndef PL_STORE_VOCABULARY_CHECK_H
#define PL_STORE_VOCABULARY_CHECK_H

#include "store/run.h"

/* PL_E_CONFIG, with both named, if the tokenizer in the model's folder isn't
 * the one of the run's data; with allow_other_tokenizer a warning instead.
 * If one side has none they can't be compared: that is told to the log. To be
 * asked before memory is taken. */
PL_MUST_CHECK pl_status pl_vocabulary_check(const pl_run *run,
                                            const char *folder, pl_error *err);

#endif
