/* from_config.h: the model that a config asks for. */
#ifndef PL_MODEL_FROM_CONFIG_H
#define PL_MODEL_FROM_CONFIG_H

#include "base/log.h"
#include "config/config.h"
#include "model/shape.h"

/* From the config. `vocab_size` is what the tokenizer has; the config's own
 * key wins if it is at least that. Checks every size; says once, as a note,
 * when n_embd / n_head isn't whole and what was done. */
PL_MUST_CHECK pl_status pl_shape_make(pl_shape *shape, const pl_config *config,
                                      size_t vocab_size, const pl_log *log,
                                      pl_error *err);

#endif
