/* metrics_thin.h: the metrics of a run in bounded memory, however long it is:
 * the copy that a checkpoint has of them.
 *
 * Of the updates every 2^k-th, those whose step is a multiple of it, where k
 * is the smallest with which at most PL_THIN_MOST_LINES are left: it follows
 * from the number of updates alone. Of the evaluations likewise, counted in
 * their order. A multiple of 2^(k+1) is one of 2^k, so a copy of a copy that
 * went on is the copy of the whole: together with how many lines there were, of
 * which kind, and their hash, the copy is all that a resumed run needs to write
 * the same next one, whatever became of metrics.jsonl.
 *
 * Lines have no times, so that equal runs have equal copies. The hash is a
 * chain: that of the 32 digits before (zeros at first) and of the line. It can
 * be continued from its text. Allocates only when it is made. */
#ifndef PL_STORE_METRICS_THIN_H
#define PL_STORE_METRICS_THIN_H

#include "base/arena.h"
#include "base/hash.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PL_THIN_MOST_LINES = 2048, /* of each kind */
    PL_THIN_BYTES = 1024 * 1024,
    PL_THIN_LINE_BYTES = PL_THIN_BYTES / (2 * PL_THIN_MOST_LINES),
};

typedef enum pl_thin_kind { PL_THIN_EVAL, PL_THIN_UPDATE } pl_thin_kind;

/* A line of the metrics: what it is of. */
typedef struct pl_thin_line {
    uint64_t step;
    pl_thin_kind kind;
} pl_thin_line;

typedef struct pl_thin {
    char *text; /* PL_THIN_BYTES; NULL: there is none */
    size_t used;
    uint64_t updates;   /* the step behind the last one's */
    uint64_t evals;     /* how many there were */
    uint64_t lines;     /* of either kind */
    pl_hash_text chain; /* of all of them */
} pl_thin;

/* No lines yet, and no room for any. */
void pl_thin_begin(pl_thin *thin);

/* The same with room. */
PL_MUST_CHECK pl_status pl_thin_make(pl_thin *thin, pl_heap *heap,
                                     pl_error *err);

/* Whether `text` (with its line feed) is a line of ours, and of what. */
int pl_thin_read_line(const char *text, size_t bytes, pl_thin_line *line);

/* Whether `a` stands before `b`: the evaluation of a step before its update. */
int pl_thin_is_before(const pl_thin_line *a, const pl_thin_line *b);

/* Takes the time that an update took out of one line; returns what is left. */
size_t pl_thin_drop_time(char *text, size_t bytes);

/* The next line of the run: of at most PL_THIN_LINE_BYTES bytes, without its
 * time, and one that pl_thin_read_line knows. */
void pl_thin_add(pl_thin *thin, const char *text, size_t bytes);

/* Begins with the counts of a copy, whose lines are then put back in their
 * order; 0: that line is not among those which such a copy has. */
void pl_thin_resume(pl_thin *thin, uint64_t updates, uint64_t evals,
                    uint64_t lines, const pl_hash_text *chain);
int pl_thin_put_back(pl_thin *thin, const char *text, size_t bytes);

/* The chain after one more line. */
void pl_thin_chain(pl_hash_text *chain, const char *text, size_t bytes);

/* The copy's largest size after so many. */
uint64_t pl_thin_most_bytes(uint64_t updates, uint64_t evals);

#endif
