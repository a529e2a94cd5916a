/* tokfile.h: a tokenizer from and to the files that lie beside tokens
 * and weights.
 *
 *   meta.json       char, byte (text/meta.h)
 *   tokenizer.json  bpe, as Hugging Face has it (text/bpe_read.h)
 *   meta.pkl        nanoGPT's char (text/pickle.h); read only
 *   vocab.json and merges.txt, *.tiktoken: bpe; read only
 */
#ifndef PL_TEXT_TOKFILE_H
#define PL_TEXT_TOKFILE_H

#include "text/tokenizer.h"

#define PL_TOKENIZER_META "meta.json"
#define PL_TOKENIZER_JSON "tokenizer.json"

/* The largest of these files. */
enum { PL_TOKENIZER_MAX_BYTES = 32 * 1024 * 1024 };

/* A folder's: meta.json, else tokenizer.json, else meta.pkl, else vocab.json
 * with merges.txt, else none (kind NONE). What is there must be right. */
PL_MUST_CHECK pl_status pl_tokenizer_find(pl_tokenizer *tokenizer,
                                          const char *folder, pl_heap *heap,
                                          pl_error *err);

/* From a file or a folder that must have one. A file named meta.json or *.pkl
 * is such a file, any other is pl_bpe_load's. */
PL_MUST_CHECK pl_status pl_tokenizer_load(pl_tokenizer *tokenizer,
                                          const char *path, pl_heap *heap,
                                          pl_error *err);

/* What is written beside tokens and weights. */
typedef struct pl_tokenizer_text {
    const char *name; /* of the file; NULL: a kind without text has none */
    const char *text; /* with a zero behind it that `bytes` doesn't count */
    size_t bytes;
} pl_tokenizer_text;

/* The same tokenizer gives the same bytes; they come from `heap`. */
PL_MUST_CHECK pl_status pl_tokenizer_write(const pl_tokenizer *tokenizer,
                                           pl_heap *heap,
                                           pl_tokenizer_text *out,
                                           pl_error *err);

/* A char or byte tokenizer as Hugging Face's tokenizers reads it, beside
 * meta.json; bpe's own file is that already, and none has none: no name. */
PL_MUST_CHECK pl_status pl_tokenizer_write_hf(const pl_tokenizer *tokenizer,
                                              pl_heap *heap,
                                              pl_tokenizer_text *out,
                                              pl_error *err);

/* How many tokens a model has for this tokenizer unless it is told: those of
 * bpe rounded up to a multiple of 64, as nanoGPT makes 50304 of GPT-2's 50257;
 * char and byte as they are. */
size_t pl_tokenizer_model_vocab(const pl_tokenizer *tokenizer);

/* What a tokenizer and its text hold of memory at the most, beside what any
 * program does: bpe's tables; GPT-2's take 13 MB. A plan counts it. */
size_t pl_tokenizer_memory_bytes(const pl_tokenizer *tokenizer);

#endif
