/* bpe_count.h: what bpe_count.c gives to bpe_train.c. */
#ifndef PL_TEXT_BPE_COUNT_H
#define PL_TEXT_BPE_COUNT_H

#include "text/bpe_runs.h"
#include "text/bpe_train.h"

/* One thread's counts: a hash table of pieces with linear probing that doesn't
 * wrap around. A piece is at its hash's share of `capacity`, or a few slots
 * behind, so that the table is nearly sorted by hash. */
typedef struct pl_count_table {
    pl_heap heap;
    pl_run_count *slots; /* capacity + PL_COUNT_SPARE */
    size_t capacity, used;
} pl_count_table;

enum { PL_COUNT_SPARE = 512 };

typedef struct pl_count_worker {
    pl_count_table table;
    pl_heap longs; /* the bytes of long pieces */
    pl_heap names; /* of the runs */
    char *normal;  /* a lump: text that was normalized, and scratch */
    size_t normal_bytes;
    size_t long_limit; /* bytes in `longs` */
    uint32_t longest_bytes;
    uint64_t piece_count;
    pl_sorted_run runs[PL_RUN_MOST + 1]; /* the last for the table in memory */
    size_t run_count, run_number, spilled;
    size_t peak_bytes;
    char apart[64]; /* no two threads write to one cache line */
} pl_count_worker;

struct pl_bpe_counter {
    const pl_bpe_train_options *options;
    size_t share_bytes;
    pl_count_worker *workers;
};

/* Writes a thread's table to a run and empties it; nothing if it is empty. */
PL_MUST_CHECK pl_status pl_count_spill(pl_bpe_counter *counter, int ith,
                                       pl_error *err);
/* Makes one run of a thread's runs. */
PL_MUST_CHECK pl_status pl_count_unite(pl_bpe_counter *counter, int ith,
                                       pl_error *err);
/* Sorts a thread's table where it is: a run in memory. The table can't be
 * used any more. */
void pl_count_freeze(pl_bpe_counter *counter, int ith, pl_sorted_run *run);
/* Gives the memory of the tables back. */
void pl_count_release(pl_bpe_counter *counter);

#endif
