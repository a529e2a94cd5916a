/* bpe_json.h: what tokenizer.json and vocab.json have in common: tokens whose
 * bytes are written as printable characters. */
#ifndef PL_TEXT_BPE_JSON_H
#define PL_TEXT_BPE_JSON_H

#include "base/json.h"
#include "text/bpe_draft.h"

/* Of {"token": id, ...}: raises *largest to the largest id and adds the bytes
 * of all texts. PL_E_FORMAT if an id is no whole number. */
PL_MUST_CHECK pl_status pl_bpe_json_measure(json_t *vocab, const char *name,
                                            int64_t *largest,
                                            size_t *text_bytes, pl_error *err);

/* Adds the token that is written as `key`. */
PL_MUST_CHECK pl_status pl_bpe_json_token(pl_bpe_draft *draft, int64_t id,
                                          const char *key,
                                          pl_bpe_token_kind kind,
                                          pl_error *err);

/* An added token that the vocabulary has, too: merges may make it, if its text
 * is written as these characters write it. */
void pl_bpe_json_merged(pl_bpe_draft *draft, int64_t id);

/* Adds a merge of two such texts. */
PL_MUST_CHECK pl_status pl_bpe_json_merge(pl_bpe_draft *draft, size_t place,
                                          const char *left, size_t left_bytes,
                                          const char *right, size_t right_bytes,
                                          pl_error *err);

#endif
