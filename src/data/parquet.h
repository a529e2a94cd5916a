/* parquet.h: one column of strings of a parquet file, row by row.
 *
 * Reads what pyarrow, Arrow C++, parquet-rs and parquet-mr write for strings:
 * data pages v1 and v2; PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY (and PLAIN
 * pages after them in one chunk), DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY;
 * uncompressed, snappy, gzip, zstd; any number of row groups. A column inside
 * structs is named by its path ("meta.text"); one inside a list or map, and an
 * encrypted file, are refused. A null is passed over.
 *
 * Memory: the footer is read through a window and never held; one page (packed
 * and unpacked) and one dictionary are, in blocks from a room. Every size in
 * the file is checked against what is there before it is used, checksums of
 * pages where there are some. Errors say the file, the row group, the column
 * and the page. */
#ifndef PL_DATA_PARQUET_H
#define PL_DATA_PARQUET_H

#include "base/file.h"
#include "data/parquet_value.h"
#include "data/room.h"
#include "data/thrift.h"
#include "data/unpack.h"

enum {
    PL_PARQUET_COLUMN_BYTES = 256, /* with the zero */
    PL_PARQUET_COLUMNS_BYTES = 384,
};

/* The column's part of a row group. */
typedef struct pl_parquet_chunk {
    uint64_t rows;
    pl_codec codec;
    uint64_t begin, end; /* in the file */
} pl_parquet_chunk;

typedef struct pl_parquet {
    pl_file file;
    pl_room *room;
    pl_unpack *unpack;
    size_t document_bytes; /* the longest string that is accepted */
    char column[PL_PARQUET_COLUMN_BYTES];

    /* From the footer. */
    uint64_t footer_begin, footer_end;
    uint64_t groups_at, group_count; /* the list of row groups */
    uint64_t rows;                   /* of the file */
    uint64_t leaf;                   /* the column's number */
    unsigned max_level;              /* definition level of a value */
    char string_columns[PL_PARQUET_COLUMNS_BYTES]; /* names, or as many as
                                                    * fit */

    /* Where reading is. */
    uint64_t group;                       /* row groups begun */
    uint64_t next_group_at;               /* in the footer */
    uint64_t row;                         /* of the file, the next one */
    pl_parquet_chunk chunk;               /* of row group `group` - 1 */
    uint64_t chunk_left;                  /* rows of it in pages to come */
    uint64_t page, page_at, next_page_at; /* pages begun; offsets of headers */
    uint64_t page_left;                   /* rows of the page to come */
    pl_runs levels;
    pl_strings strings;
    pl_dictionary dictionary;
    int has_dictionary, in_page;
    size_t value_bytes; /* of the last string, in `value` */

    pl_block packed, unpacked, dictionary_page, offsets, value;
    pl_thrift thrift;
} pl_parquet;

/* Checks the whole footer. A column that isn't there is PL_E_FORMAT with a list
 * of the string columns that are. On failure nothing stays open or taken.
 * `room` and `unpack` must outlive it. */
PL_MUST_CHECK pl_status pl_parquet_open(pl_parquet *parquet, const char *path,
                                        const char *column,
                                        size_t document_bytes, pl_room *room,
                                        pl_unpack *unpack, pl_error *err);
void pl_parquet_close(pl_parquet *parquet);

/* Makes `row` (0 is the first) the next one. Row groups and pages before it
 * aren't unpacked. */
PL_MUST_CHECK pl_status pl_parquet_seek(pl_parquet *parquet, uint64_t row,
                                        pl_error *err);

/* The next string, valid until the next call, and its row; *text NULL at the
 * end. */
PL_MUST_CHECK pl_status pl_parquet_next(pl_parquet *parquet, const char **text,
                                        size_t *bytes, uint64_t *row,
                                        pl_error *err);

#endif
