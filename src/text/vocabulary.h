/* vocabulary.h: what a tokenizer is, short enough to compare and to print.
 *
 * The sum is of the file that text/tokfile.h writes for it: its kind,
 * tokens, merges and special tokens, in one order whatever they were read
 * from. Two tokenizers with one sum give the same ids for every text. */
#ifndef PL_TEXT_VOCABULARY_H
#define PL_TEXT_VOCABULARY_H

#include "base/hash.h"
#include "text/tokfile.h"

typedef struct pl_vocabulary {
    pl_tokenizer_kind kind;
    int32_t size;
    pl_hash_text sum; /* "" of a kind without text */
} pl_vocabulary;

/* Takes memory for the file, and gives it back. */
PL_MUST_CHECK pl_status pl_vocabulary_of(pl_vocabulary *vocabulary,
                                         const pl_tokenizer *tokenizer,
                                         pl_error *err);
/* The same, where the file's text is there already. */
pl_vocabulary pl_vocabulary_of_text(const pl_tokenizer *tokenizer,
                                    const pl_tokenizer_text *file);

int pl_vocabulary_same(const pl_vocabulary *a, const pl_vocabulary *b);

enum { PL_VOCABULARY_TEXT_BYTES = 64 };

/* "bpe, 50257 tokens, 1f0c9a3e": the sum's beginning is enough for a person. */
const char *pl_vocabulary_text(const pl_vocabulary *vocabulary,
                               char out[PL_VOCABULARY_TEXT_BYTES]);

#endif
