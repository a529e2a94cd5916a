/* pieces.h: a text of any length in pieces that can be encoded one by one.
 *
 * A text that fits into the buffer is one piece. A longer one is cut where a
 * blank (space, tab or line end) follows a character that isn't white space:
 * there GPT-2's pre-tokenizer, and those made after it, begin a new word
 * whatever stands around, so the tokens are those of the uncut text. Where a
 * piece has no such place, it ends before a character; where it has no
 * characters (it isn't UTF-8), anywhere. */
#ifndef PL_DATA_PIECES_H
#define PL_DATA_PIECES_H

#include "data/stream.h"

typedef struct pl_pieces {
    pl_stream *stream;
    char *buffer;
    size_t buffer_bytes;
    size_t begin, end; /* bytes read but not given: buffer[begin..end) */
    uint64_t offset;   /* of buffer[begin) in the text */
    int at_end;
} pl_pieces;

typedef enum pl_pieces_more { PL_PIECES_LAST, PL_PIECES_MORE } pl_pieces_more;

/* Reads `stream` from where it is. A piece has less than `buffer_bytes`. */
void pl_pieces_open(pl_pieces *pieces, pl_stream *stream, char *buffer,
                    size_t buffer_bytes);

/* The next piece, valid until the next call; it is empty only where the text
 * is. Not to be called after the last. */
PL_MUST_CHECK pl_status pl_pieces_next(pl_pieces *pieces, const char **text,
                                       size_t *bytes, pl_pieces_more *more,
                                       pl_error *err);

/* Where a text of `bytes` bytes may be cut, in [1, bytes]: the last good place
 * in it. text[bytes] is looked at too. Pure. */
size_t pl_pieces_cut(const char *text, size_t bytes);

#endif
