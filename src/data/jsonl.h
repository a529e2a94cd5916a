/* jsonl.h: one string of each line of JSON.
 *
 * The line is parsed as it streams by and never held: of a line only the
 * wanted string is kept. The whole line is checked against JSON's grammar
 * (NaN, Infinity and -Infinity pass, since Python writes them). Bytes that
 * aren't UTF-8 pass as they are; half of a surrogate pair becomes U+FFFD. A
 * blank line is skipped, and so is one whose field is null. */
#ifndef PL_DATA_JSONL_H
#define PL_DATA_JSONL_H

#include "data/room.h"
#include "data/stream.h"

enum {
    PL_JSONL_FIELD_BYTES = 256, /* with the zero */
    PL_JSONL_MAX_DEPTH = 200,
    PL_JSONL_KEYS_BYTES = 256, /* names of keys for a message */
};

typedef struct pl_jsonl {
    pl_stream *stream;
    pl_room *room;
    size_t document_bytes; /* the largest that is accepted */
    char field[PL_JSONL_FIELD_BYTES];
    unsigned char *buffer; /* unpacked bytes */
    size_t buffer_bytes, at, have;
    uint64_t line;       /* lines that were begun */
    uint64_t line_start; /* unpacked offset of this line */
    pl_block text;       /* the wanted string */
    uint64_t text_bytes; /* of it, also where that is more than fits */
    int overflows;       /* it doesn't: it is counted, and not kept */
    int found;           /* the field: PL_JSONL_... in jsonl.c */
    char keys[PL_JSONL_KEYS_BYTES]; /* of this line */
    size_t keys_bytes;
    char key[PL_JSONL_FIELD_BYTES]; /* the last one read */
    size_t key_bytes;
    int at_end;
    pl_status status; /* the first failure: nothing is read after it */
    pl_error *err;
} pl_jsonl;

/* Reads `stream` from where it is, which is the beginning of line `line` + 1.
 * `field` is a key of the object, or a path through nested ones ("meta.text").
 * `buffer` is used until it is closed. */
PL_MUST_CHECK pl_status pl_jsonl_open(pl_jsonl *jsonl, pl_stream *stream,
                                      const char *field, uint64_t line,
                                      size_t document_bytes,
                                      unsigned char *buffer,
                                      size_t buffer_bytes, pl_room *room,
                                      pl_error *err);
void pl_jsonl_close(pl_jsonl *jsonl);

/* The next string, valid until the next call; *text NULL at the end. Its line
 * is jsonl->line (the first is 1). PL_E_FORMAT with the file, the line and the
 * column for what isn't JSON, has no such field, or has no string in it.
 * PL_E_MEMORY with the document's size where it doesn't fit, PL_E_FORMAT where
 * it has more than document_bytes: it is read on, though not without end, to
 * know that. */
PL_MUST_CHECK pl_status pl_jsonl_next(pl_jsonl *jsonl, const char **text,
                                      size_t *bytes, pl_error *err);

/* Unpacked bytes up to the end of the last line read. */
uint64_t pl_jsonl_offset(const pl_jsonl *jsonl);

#endif
