/* bpe_passes.h: merges where the different pieces don't fit into memory. They
 * are in a file, and each pass over it makes as many merges as can be known
 * before it.
 *
 * Joining (a, b) to one token changes how often (x, a) and (b, y) occur, makes
 * new pairs that occur no more often than these did, and changes nothing else.
 * So the pairs in the queue are right, in order, up to the first one that is
 * such an (x, a) or (b, y). That holds for equally frequent ones too, since a
 * new pair has a left token no lower than its (x, a) had, or a new one. The
 * pairs up to there are one batch; a batch also ends behind a pair (a, a), from
 * which (aa, aa) may be made. The merges of a batch don't overlap: no token is
 * the left one in some and the right one in others. One pass from left to right
 * thus does what one merge after the other would do. */
#ifndef PL_TEXT_BPE_PASSES_H
#define PL_TEXT_BPE_PASSES_H

#include "text/bpe_model.h"
#include "text/bpe_pairs.h"
#include "text/bpe_runs.h"
#include "text/bpe_train.h"

typedef struct pl_bpe_passes {
    const pl_bpe_train_options *options; /* its folder has the file */
    const pl_sorted_run *runs;           /* the pieces and their counts */
    size_t run_count;
    pl_pairs *pairs;      /* empty */
    uint16_t *lengths;    /* of each token, in bytes; filled for new ones */
    pl_bpe_merge *merges; /* room for merge_limit */
    size_t merge_count, merge_limit;
} pl_bpe_passes;

/* Buffers and lists, beside the pairs. */
size_t pl_bpe_passes_bytes(size_t merge_limit);

/* Fills `merges` and merge_count. No file stays. */
PL_MUST_CHECK pl_status pl_bpe_passes_run(pl_bpe_passes *passes, pl_error *err);

#endif
