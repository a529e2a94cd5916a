/* crew.h: a pipeline that passes documents through several threads, in order
 * and in bounded memory.
 *
 * Text is read into loads (buffers) and cut into parts, each of which a
 * tokenizer may be given alone (text/pretok.h, data/cutter.h). While all
 * threads work on the parts of one load, the first of them hands on the load
 * before and reads the next one. Where text is cut depends on the documents
 * alone, not on threads or memory. A document of more than
 * PL_SOURCE_PIECE_BYTES is passed in pieces of that size, as text files are. A
 * word that is longer than a load is a load by itself: it is worked on where
 * the source has it, and its ids are in the source's memory. */
#ifndef PL_DATA_CREW_H
#define PL_DATA_CREW_H

#include "base/threads.h"
#include "data/source.h"

/* What was read up to a place between two pieces. */
typedef struct pl_crew_tally {
    pl_source_place place;
    uint64_t in_document;  /* 1: the place is inside one */
    uint64_t mark;         /* of that document, or the last */
    uint64_t documents;    /* begun */
    uint64_t text_bytes;   /* of all of them */
    uint64_t marked_bytes; /* of those with mark 1 */
    uint64_t sum;          /* pl_hash_chain of all pieces */
} pl_crew_tally;

typedef struct pl_crew_part {
    const char *text;
    size_t bytes;
    int ends;     /* a document ends with it */
    int mark;     /* of its document */
    int32_t *ids; /* room for id_room * bytes + 1 */
    size_t count; /* the worker's to use */
} pl_crew_part;

typedef enum pl_crew_ends {
    PL_CREW_AS_THEY_ARE,
    PL_CREW_LINE_ENDS, /* behind documents of JSON lines and parquet; they
                        * may then be cut anywhere */
} pl_crew_ends;

/* What is handed on. */
typedef struct pl_crew_load {
    const pl_crew_part *parts;
    size_t count;
    int between;         /* it ends between two pieces, and... */
    pl_crew_tally tally; /* ...there the tally is this */
    uint64_t done_bytes; /* pl_source_done_bytes */
} pl_crew_load;

typedef struct pl_crew_options {
    pl_source *source; /* where the tally says */
    pl_threads *threads;
    size_t load_bytes;
    size_t id_room; /* ids for each byte of a part; 0: nobody wants any */
    pl_splitting splitting; /* of the words at which texts are cut */
    pl_crew_ends ends;
    pl_crew_tally tally; /* zero: from the beginning */
    /* The mark, 0 or 1, of a document that begins; size_bytes is its text's,
     * or its file's where that isn't known. NULL: 0. */
    int (*mark)(void *context, const pl_crew_tally *tally, uint64_t size_bytes);
    /* On any thread, any part at any time, but once each. */
    void (*work)(void *context, int ith, pl_crew_part *part);
    /* On the calling thread, in order, after the work. */
    pl_status (*take)(void *context, const pl_crew_load *load, pl_error *err);
    void *context;
} pl_crew_options;

enum { PL_CREW_MIN_LOAD_BYTES = PL_SOURCE_PIECE_BYTES + 1 };

/* What a crew takes from its heap. */
size_t pl_crew_bytes(size_t load_bytes, size_t id_room);

/* Until the source ends, or something fails, `take` included. */
PL_MUST_CHECK pl_status pl_crew_run(const pl_crew_options *options,
                                    pl_heap *heap, pl_error *err);

#endif
