/* hf_text.h: the JSON files that Hugging Face's libraries want beside weights,
 * composed in run->text (PL_RUN_TEXT_BYTES of it). Each returns its
 * length without the zero; 0: such a model has no such file. Touches no
 * file. */
#ifndef PL_STORE_HF_TEXT_H
#define PL_STORE_HF_TEXT_H

#include "store/run.h"

/* config.json, as hf_config.h writes it */
PL_MUST_CHECK pl_status pl_hf_config_text(pl_run *run, size_t *bytes,
                                          pl_error *err);
/* generation_config.json */
PL_MUST_CHECK pl_status pl_hf_generation_text(pl_run *run, size_t *bytes,
                                              pl_error *err);
/* tokenizer_config.json */
PL_MUST_CHECK pl_status pl_hf_tokenizer_text(pl_run *run, size_t *bytes,
                                             pl_error *err);

#endif
