/* text_look.h: what a plan knows of the text that a run would see: how much
 * there is, and how many bytes a token stands for. */
#ifndef PL_CLI_TEXT_LOOK_H
#define PL_CLI_TEXT_LOOK_H

#include "advise/expect.h"
#include "base/arena.h"

/* From the first tokens of the dataset's training split, if it is there and its
 * tokenizer is known; else what is usual for a vocabulary of that size. Data
 * that can't be read is no error here: a plan needs none. */
pl_expect_text pl_cli_look_at_text(const pl_config *config, size_t vocab_size);

#endif
