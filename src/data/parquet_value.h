/* parquet_value.h: the encodings of strings in a page of parquet.
 *
 * Pure: they read memory, never past its end, and allocate nothing; values are
 * decoded one by one as they are asked for. A decoder that meets something
 * wrong answers with the reason, a sentence without file and page, which the
 * caller knows; NULL is success. */
#ifndef PL_DATA_PARQUET_VALUE_H
#define PL_DATA_PARQUET_VALUE_H

#include <stddef.h>
#include <stdint.h>

/* A part of a page that shrinks from its front. */
typedef struct pl_span {
    const unsigned char *at;
    size_t bytes;
} pl_span;

/* ---- runs: RLE and bit-packing, mixed ---- */

typedef struct pl_runs {
    pl_span rest;
    unsigned width;          /* bits of a value, up to 32 */
    uint64_t left;           /* values of the run that weren't read */
    int is_packed;           /* else all of the run are `value` */
    uint32_t value;          /* of a run */
    const unsigned char *at; /* of a packed run */
    uint64_t bit, bits;
} pl_runs;

/* PL_OK-like: NULL or a reason (a width above 32). */
const char *pl_runs_make(pl_runs *runs, pl_span span, unsigned width);

/* Reads up to `most` (at least 1) values that are equal and stand next to each
 * other: at once in a run, one by one where they are packed. *count is 1 or
 * more. */
const char *pl_runs_next(pl_runs *runs, uint64_t most, uint32_t *value,
                         uint64_t *count);

/* ---- deltas: DELTA_BINARY_PACKED of 32-bit numbers ---- */

typedef struct pl_deltas {
    pl_span rest;
    uint64_t minis, per_mini; /* miniblocks in a block, values in one */
    uint64_t count, left;     /* values in all, and not yet read */
    uint32_t value;           /* the one to give next */
    uint64_t min_delta;
    const unsigned char *widths; /* of this block's miniblocks */
    uint64_t mini;               /* the next one of them */
    uint64_t mini_left;          /* values of the one begun */
    const unsigned char *at;
    uint64_t bit, bits;
    unsigned width;
} pl_deltas;

/* Checks the whole of it, and moves *span behind its end. */
const char *pl_deltas_make(pl_deltas *deltas, pl_span *span);
const char *pl_deltas_next(pl_deltas *deltas, int32_t *value);

/* ---- strings ---- */

/* parquet.thrift's numbers. */
typedef enum pl_encoding {
    PL_ENCODING_PLAIN = 0,
    PL_ENCODING_PLAIN_DICTIONARY = 2,
    PL_ENCODING_RLE = 3,
    PL_ENCODING_DELTA_LENGTH = 6,
    PL_ENCODING_DELTA_STRINGS = 7,
    PL_ENCODING_RLE_DICTIONARY = 8,
} pl_encoding;

/* "PLAIN", ..., NULL for a number that parquet doesn't know. */
const char *pl_encoding_name(int64_t encoding);

/* Strings of a dictionary page: offsets[i] is where string i begins. */
typedef struct pl_dictionary {
    const unsigned char *bytes;
    const uint32_t *offsets; /* count + 1: of the string and of its length */
    uint32_t count;
} pl_dictionary;

/* Finds where the strings of a PLAIN page begin: offsets has room for count.
 * String i lies behind its length. */
const char *pl_dictionary_make(pl_dictionary *dictionary, pl_span page,
                               uint32_t *offsets, uint32_t count);

typedef struct pl_strings {
    pl_encoding encoding;
    pl_span rest; /* PLAIN: lengths and bytes; DELTA_...: bytes */
    const pl_dictionary *dictionary;
    pl_runs indices;
    pl_deltas prefixes, lengths;
} pl_strings;

/* `dictionary` may be NULL where the column has none. */
const char *pl_strings_make(pl_strings *strings, pl_encoding encoding,
                            pl_span page, const pl_dictionary *dictionary);

/* The next string: `prefix` bytes of the one before (DELTA_STRINGS; else 0),
 * then *text. `prefix` isn't checked: the caller knows how long that was. */
const char *pl_strings_next(pl_strings *strings, uint32_t *prefix,
                            pl_span *text);

/* After the last one: whether something is left, which a lying count shows. */
const char *pl_strings_end(const pl_strings *strings);

#endif
