/* bpe_runs.h: counts of pieces as sorted lists ("runs", as in external
 * sorting), in memory or in files, and the merging of them. The order is that
 * of the pieces' hashes: any fixed order would do, and hash tables are nearly
 * in this one already. */
#ifndef PL_TEXT_BPE_RUNS_H
#define PL_TEXT_BPE_RUNS_H

#include "base/file.h"
#include "text/pretoken_key.h"

/* A piece and how often it occurs. Of a long piece the key is a hash whose
 * last byte is PL_RUN_LONG, and `bytes` are its bytes. */
typedef struct pl_run_count {
    pl_pretoken_key key;
    uint64_t count; /* 0: an empty slot */
    const struct pl_run_bytes *bytes;
} pl_run_count;

typedef struct pl_run_bytes {
    uint32_t length;
    char text[];
} pl_run_bytes;

enum { PL_RUN_LONG = 255, PL_RUN_MOST = 32 };

pl_pretoken_key pl_run_long_key(const char *text, size_t bytes);
int pl_run_is_long(pl_pretoken_key key);
/* -1, 0 or 1. */
int pl_run_compare(const pl_run_count *a, const pl_run_count *b);
/* Its bytes; `room` is for a short one. */
const char *pl_run_text(const pl_run_count *count,
                        char room[PL_PRETOKEN_SHORT_BYTES + 1], size_t *bytes);

/* ---- files ---- */

typedef struct pl_sorted_run {
    const char *path; /* NULL: in memory */
    const pl_run_count *counts;
    size_t count;
    uint32_t longest_bytes;
} pl_sorted_run;

typedef struct pl_run_writer {
    const char *path;
    pl_file file;
    char *buffer;
    size_t used;
    uint32_t longest_bytes;
} pl_run_writer;

/* `heap` gives the buffer; `path` must live as long as the run. */
PL_MUST_CHECK pl_status pl_run_writer_open(pl_run_writer *writer,
                                           const char *path, pl_heap *heap,
                                           pl_error *err);
PL_MUST_CHECK pl_status pl_run_write(pl_run_writer *writer,
                                     const pl_run_count *count, pl_error *err);
/* Fills `run`. On failure the file is gone. */
PL_MUST_CHECK pl_status pl_run_writer_close(pl_run_writer *writer,
                                            pl_sorted_run *run, pl_error *err);
void pl_run_writer_discard(pl_run_writer *writer);

/* ---- the union ---- */

typedef pl_status pl_run_take(void *context, const pl_run_count *count,
                              pl_error *err);

/* Calls `take` for each different piece, in order, with the sum of its counts.
 * Buffers come from a heap of `limit_bytes`, given back at the end. */
PL_MUST_CHECK pl_status pl_run_merge(const pl_sorted_run *runs, size_t count,
                                     size_t limit_bytes, pl_run_take *take,
                                     void *context, pl_error *err);

#endif
