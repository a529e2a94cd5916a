/* bpe_train.h: makes a byte-level BPE vocabulary from text.
 *
 * First the pieces (text/pretok.h) of all texts, normalized where a vocabulary
 * wants that, are counted, by several
 * threads. Then, again and again, the two neighbouring tokens that occur
 * together most often become a new token. Of pairs that are equally frequent
 * the one with the lower left id is taken, then the lower right one, bytes
 * having GPT-2's ids: that is Hugging Face's rule, and the merges are the same
 * as its BpeTrainer's. They depend on the texts alone, not on their order, the
 * number of threads or the memory.
 *
 * Counts that don't fit into the memory go to sorted files ("runs"), which are
 * merged in the end: nothing is ever dropped. The second part is fast where all
 * different pieces fit, 16 bytes for each of their bytes and about half as much
 * again for the pairs; else, or if these don't fit, it passes over a file of
 * them again and again (text/bpe_passes.h), and needs memory for the different
 * pairs alone. */
#ifndef PL_TEXT_BPE_TRAIN_H
#define PL_TEXT_BPE_TRAIN_H

#include "text/bpe.h"

typedef enum pl_bpe_wish { PL_BPE_GO_ON, PL_BPE_STOP } pl_bpe_wish;

typedef struct pl_bpe_train_options {
    int32_t vocab_size; /* with bytes and special tokens */
    /* Get the last ids, as GPT-2's <|endoftext|>. */
    const char *const *specials;
    size_t special_count;
    pl_splitting splitting;
    uint64_t min_count; /* pairs that occur less often stay apart */
    int threads;        /* that count */
    size_t memory_bytes;
    const char *folder; /* of the runs; it must exist and be the caller's own.
                         * A pl_bpe_counter removes what it wrote there. */
    /* After every few merges, unless NULL: how far it is. */
    pl_bpe_wish (*wish)(void *context, size_t merges, size_t of_merges);
    void *context;
} pl_bpe_train_options;

typedef struct pl_bpe_counter pl_bpe_counter;

enum { PL_BPE_MIN_SHARE_BYTES = 1024 * 1024 }; /* memory for one thread */

/* `options` must live as long as the counter. PL_E_CONFIG for a
 * vocabulary without room for the bytes and special tokens, an invalid or
 * repeated special token; PL_E_MEMORY for less than PL_BPE_MIN_SHARE_BYTES for
 * each thread. */
PL_MUST_CHECK pl_status pl_bpe_counter_open(pl_bpe_counter **counter,
                                            const pl_bpe_train_options *options,
                                            pl_heap *heap, pl_error *err);

/* Counts the pieces of a whole text (a document, or a part that ends where
 * pl_pretok_cut says) as thread `ith` of options->threads. Different threads
 * may do so at once. After a failure the counter can only be closed. */
PL_MUST_CHECK pl_status pl_bpe_counter_add(pl_bpe_counter *counter, int ith,
                                           const char *text, size_t bytes,
                                           pl_error *err);

typedef struct pl_bpe_train_result {
    pl_bpe *bpe;
    uint64_t piece_count, unique_count;
    size_t spilled_runs;
    size_t peak_bytes; /* of memory_bytes */
} pl_bpe_train_result;

/* Makes the vocabulary, in `heap`. It is smaller than asked for where the text
 * has no more pairs. The counter can only be closed then. PL_E_STOPPED if
 * `wish` says so, PL_E_MEMORY if the different pairs are too many. */
PL_MUST_CHECK pl_status pl_bpe_train(pl_bpe_counter *counter,
                                     pl_bpe_train_result *result, pl_heap *heap,
                                     pl_error *err);

/* Gives its memory back and removes its files. NULL is fine. */
void pl_bpe_counter_close(pl_bpe_counter *counter);

#endif
