/* bpe_read.h: byte-level BPE vocabularies from and to the files of others.
 *
 *   .tiktoken       OpenAI's ranks: a line for each token, its bytes in base64
 *                   and its rank, which is its id. The merges are found again
 *                   from the ranks; <|endoftext|> gets the first free id.
 *   tokenizer.json  Hugging Face's, of kind BPE with ByteLevel, cut by a
 *                   pattern of text/pretok.h. What would encode differently
 *                   (another pattern or normalizer, added prefixes, ...) is
 *                   refused with its name.
 *   vocab.json and merges.txt
 *                   GPT-2's own two. A token like <|this|> that no merge makes
 *                   is a special token.
 *
 * Files don't say which pattern cuts the text, except tokenizer.json: ranks
 * and merges.txt are taken as GPT-2's. Every number and length is checked. What
 * a message is about begins it: file, line or entry. */
#ifndef PL_TEXT_BPE_READ_H
#define PL_TEXT_BPE_READ_H

#include "text/bpe.h"

enum {
    PL_BPE_MAX_FILE_BYTES = 32 * 1024 * 1024,
    /* What reading may take from `heap` for the largest file, and for itself
     * until it returns; GPT-2's takes 8 MB. JSON takes more of the C
     * library's (base/json.h). */
    PL_BPE_HEAP_BYTES = 512 * 1024 * 1024,
};

/* ---- texts; `name` (a path) begins every message ---- */

PL_MUST_CHECK pl_status pl_bpe_read_ranks(pl_bpe **bpe, const char *text,
                                          size_t bytes, const char *name,
                                          pl_heap *heap, pl_error *err);

PL_MUST_CHECK pl_status pl_bpe_read_json(pl_bpe **bpe, const char *text,
                                         size_t bytes, const char *name,
                                         pl_heap *heap, pl_error *err);

typedef struct pl_bpe_text {
    const char *text;
    size_t bytes;
    const char *name;
} pl_bpe_text;

PL_MUST_CHECK pl_status pl_bpe_read_vocab(pl_bpe **bpe,
                                          const pl_bpe_text *vocab,
                                          const pl_bpe_text *merges,
                                          pl_heap *heap, pl_error *err);

/* ---- files ---- */

/* From a path: a .tiktoken file, a tokenizer.json (any name that ends in
 * .json), a vocab.json beside a merges.txt, or a folder that has
 * tokenizer.json, or vocab.json and merges.txt. */
PL_MUST_CHECK pl_status pl_bpe_load(pl_bpe **bpe, const char *path,
                                    pl_heap *heap, pl_error *err);

/* ---- writing ---- */

/* tokenizer.json, vocab.json and merges.txt, with a zero behind each that
 * *bytes doesn't count. Hugging Face's tokenizers loads them with the same
 * ids. The same vocabulary gives the same bytes. */
PL_MUST_CHECK pl_status pl_bpe_write_json(const pl_bpe *bpe, pl_heap *heap,
                                          const char **text, size_t *bytes,
                                          pl_error *err);
PL_MUST_CHECK pl_status pl_bpe_write_vocab(const pl_bpe *bpe, pl_heap *heap,
                                           const char **text, size_t *bytes,
                                           pl_error *err);
PL_MUST_CHECK pl_status pl_bpe_write_merges(const pl_bpe *bpe, pl_heap *heap,
                                            const char **text, size_t *bytes,
                                            pl_error *err);

/* All three in `folder`, together: they are written to `part`, a folder on the
 * same disk that is made and removed, and moved from there. After a failure
 * those that were there before are there. */
PL_MUST_CHECK pl_status pl_bpe_save(const pl_bpe *bpe, const char *folder,
                                    const char *part, pl_heap *heap,
                                    pl_error *err);

#endif
