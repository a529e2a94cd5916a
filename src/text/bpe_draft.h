/* bpe_draft.h: a vocabulary while it is read or trained: tokens come in any
 * order, each is checked against those that are there. */
#ifndef PL_TEXT_BPE_DRAFT_H
#define PL_TEXT_BPE_DRAFT_H

#include "text/bpe_model.h"

typedef struct pl_bpe_draft {
    const char *name;
    pl_heap *heap;   /* of what stays */
    pl_heap scratch; /* of what doesn't */
    char *text;
    size_t text_bytes, text_capacity;
    pl_bpe_entry *entries;
    int32_t vocab_size;
    pl_bpe_map map;
    pl_bpe_merge *merges;
    size_t merge_count, merge_capacity;
    pl_splitting splitting; /* GPT-2's until it is set */
} pl_bpe_draft;

/* Room for `vocab_size` ids (checked against the limit), tokens of
 * `text_capacity` bytes together and as many merges as given. */
PL_MUST_CHECK pl_status pl_bpe_draft_open(pl_bpe_draft *draft, const char *name,
                                          int64_t vocab_size,
                                          size_t text_capacity,
                                          size_t merge_capacity, pl_heap *heap,
                                          pl_error *err);

/* PL_E_FORMAT for an id that is taken, and for an empty, a too long or a known
 * text: "<name>: token <id> ...". */
PL_MUST_CHECK pl_status pl_bpe_draft_add(pl_bpe_draft *draft, int64_t id,
                                         const char *bytes, size_t length,
                                         pl_bpe_token_kind kind, pl_error *err);

/* The merge of two texts; `place` is what a message calls it. */
PL_MUST_CHECK pl_status pl_bpe_draft_merge(pl_bpe_draft *draft, size_t place,
                                           const char *left, size_t left_bytes,
                                           const char *right,
                                           size_t right_bytes, pl_error *err);

PL_MUST_CHECK pl_status pl_bpe_draft_finish(pl_bpe_draft *draft,
                                            pl_bpe_unmade unmade, pl_bpe **bpe,
                                            pl_error *err);
/* Gives the scratch back, in any case. */
void pl_bpe_draft_close(pl_bpe_draft *draft);

#endif
