/* bpe_steps.h: what tokenizer.json says beside its model: how text is
 * normalized and cut, and what is put around it. Owns what is accepted of
 * that, what is refused, and how it is written.
 *
 *   normalizer      none, or NFC
 *   pre_tokenizer   ByteLevel; Split by a pattern of text/pretok.h and then
 *                   ByteLevel; Digits, each alone, and then ByteLevel
 *   post_processor  none, ByteLevel, TemplateProcessing, or some of these: what
 *                   they put around a text isn't put there (docs/data.md)
 *
 * Another step would give other ids, so that it is refused by its name. */
#ifndef PL_TEXT_BPE_STEPS_H
#define PL_TEXT_BPE_STEPS_H

#include "base/json.h"
#include "text/pretok.h"

PL_MUST_CHECK pl_status pl_bpe_steps_read(json_t *root, const char *name,
                                          pl_splitting *splitting,
                                          pl_error *err);

enum { PL_BPE_STEPS_BYTES = 2048 };

/* The members "normalizer" to "decoder", with a line end behind each. */
const char *pl_bpe_steps_text(pl_splitting splitting,
                              char out[PL_BPE_STEPS_BYTES]);

#endif
