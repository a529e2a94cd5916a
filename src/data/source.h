/* source.h: documents from files, one after another, in bounded memory.
 *
 *   pl_source_open(&source, &options, err)
 *   while (!pl_source_next(source, &piece, err) && piece.part)
 *       ... piece.text, piece.bytes ...
 *   pl_source_close(source)
 *
 * A document is a text file, the string field of a line of JSON, or a string
 * of a row of parquet. Those of JSON lines and parquet come whole; one that is
 * larger than allowed is an error with its file and line or row. A text file
 * may be larger than memory: it comes in pieces (cutter.h says where it is
 * cut). Nulls, blank lines and empty documents are passed over. Bytes aren't
 * changed: a byte order mark, line ends and what isn't UTF-8 stay.
 *
 * Text and JSON lines may be packed with gzip, zstd, xz or lz4, also from
 * standard input. Parquet packs its own pages: a .parquet.gz is refused.
 *
 * Not for several threads at once; several sources are. */
#ifndef PL_DATA_SOURCE_H
#define PL_DATA_SOURCE_H

#include "base/status.h"
#include "data/cutter.h"
#include "data/source_list.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PL_SOURCE_MIN_BYTES = 4 * 1024 * 1024, /* the smallest memory_bytes */
    PL_SOURCE_PIECE_BYTES = 1024 * 1024,   /* a piece of text, but for words
                                            * that are longer */
    PL_SOURCE_WHERE_BYTES = 512,
};

typedef struct pl_source_options {
    const char *const *paths; /* files, folders, patterns, "-": source_list.h */
    size_t path_count;
    pl_source_format format;
    const char *include, *exclude; /* of folders' files: source_list.h */
    const char *field; /* of JSON lines and parquet; NULL is "text" */
    /* All that the source takes, from opening to closing. */
    size_t memory_bytes;
    /* The largest document of JSON lines and parquet; 0 is what fits. */
    size_t document_bytes;
    pl_cutter_cuts cuts; /* of texts */
    /* Whether to stop, asked also within a document; NULL: never. */
    pl_stream_ask *ask;
    void *ask_context;
} pl_source_options;

typedef enum pl_fragment_part {
    PL_FRAGMENT_NONE, /* there are no more */
    PL_FRAGMENT_WHOLE,
    PL_FRAGMENT_FIRST,
    PL_FRAGMENT_MIDDLE,
    PL_FRAGMENT_LAST,
} pl_fragment_part;

/* Whether a document begins, or ends, with this piece. */
static inline int pl_fragment_begins(pl_fragment_part part)
{
    return part == PL_FRAGMENT_WHOLE || part == PL_FRAGMENT_FIRST;
}

static inline int pl_fragment_ends(pl_fragment_part part)
{
    return part == PL_FRAGMENT_WHOLE || part == PL_FRAGMENT_LAST;
}

typedef struct pl_fragment {
    const char *text; /* valid until the next call; no zero behind it */
    size_t bytes;
    pl_fragment_part part;
} pl_fragment;

/* A place between two pieces. Three numbers, to be written down and given back
 * to a source that was opened with the same options. */
typedef struct pl_source_place {
    uint64_t file;   /* its number in the list */
    uint64_t record; /* lines or rows before it */
    uint64_t offset; /* unpacked bytes before it; parquet: 0 */
} pl_source_place;

typedef struct pl_source pl_source;

PL_MUST_CHECK pl_status pl_source_open(pl_source **source,
                                       const pl_source_options *options,
                                       pl_error *err);
void pl_source_close(pl_source *source); /* NULL is fine */

/* The next piece. After an error: close it. */
PL_MUST_CHECK pl_status pl_source_next(pl_source *source, pl_fragment *piece,
                                       pl_error *err);

/* Behind the last piece. */
pl_source_place pl_source_tell(const pl_source *source);
/* Goes there: by a jump in plain files, over whole row groups and pages in
 * parquet, else by unpacking and dropping what is before. PL_E_USAGE for a
 * place inside standard input or a pipe, PL_E_FORMAT where a file has become
 * shorter. */
PL_MUST_CHECK pl_status pl_source_seek(pl_source *source, pl_source_place place,
                                       pl_error *err);

/* Where the last piece came from: "x.jsonl, line 5", "x.parquet, row 17",
 * "x.txt, byte 1048576" (the first byte's place). */
void pl_source_where(const pl_source *source, char out[PL_SOURCE_WHERE_BYTES]);

/* What the file is that it came from; never AUTO. */
pl_source_format pl_source_last_format(const pl_source *source);
/* That file's bytes on the disk; 0 for standard input. */
uint64_t pl_source_last_file_bytes(const pl_source *source);

/* ---- about the whole ---- */

/* Memory for what is made of a piece that is too long for the usual: counted as
 * the source's own. Given back before the source is closed. */
PL_MUST_CHECK pl_status pl_source_lend(pl_source *source, pl_block *block,
                                       size_t bytes, pl_error *err);
void pl_source_take_back(pl_source *source, pl_block *block);

/* The files, in their order. */
const pl_source_list *pl_source_files(const pl_source *source);
/* Bytes on the disk that are behind us, of pl_source_files()->total_bytes. With
 * standard input the total says nothing. */
uint64_t pl_source_done_bytes(const pl_source *source);
/* A number made of names, sizes, formats and the field: where it differs, a
 * place written down before means nothing. */
uint64_t pl_source_identity(const pl_source *source);
/* A number made of the files' stamps (base/file.h): where it is the same, no
 * file was changed since. 0: one was changed so lately that the next change
 * might not show. */
uint64_t pl_source_stamps(const pl_source *source);
/* The most memory that was taken at any time; at most memory_bytes. */
size_t pl_source_peak_bytes(const pl_source *source);
/* After PL_E_MEMORY: the memory_bytes with which it would have gone on; 0 where
 * nobody knows. */
uint64_t pl_source_wanted_bytes(const pl_source *source);

#endif
