/* cutter.h: a text of any length in pieces that can be encoded one by one.
 *
 * A text of up to `piece_bytes` is one piece. A longer one is cut where a blank
 * (space, tab or line end) follows a character that isn't white space: there
 * GPT-2's pre-tokenizer, and those made after it, begin a new word whatever
 * stands around, so the tokens are those of the uncut text. (Some patterns join
 * line ends to punctuation: there is no such place then.) Without such a place
 * the words themselves are looked for (text/pretok.h), unless the text has yet
 * to be normalized, and a word that is longer than a piece is given whole: the
 * buffer grows, as far as its room lasts. For tokenizers that know no words a
 * text may be cut before any character; where it has none (it isn't UTF-8),
 * anywhere. */
#ifndef PL_DATA_CUTTER_H
#define PL_DATA_CUTTER_H

#include "data/stream.h"
#include "text/pretok.h"

typedef enum pl_cutter_place {
    PL_CUTTER_AT_WORDS,
    PL_CUTTER_ANYWHERE
} pl_cutter_place;

/* Where texts may be cut. Zeros: at GPT-2's words. */
typedef struct pl_cutter_cuts {
    pl_cutter_place at;
    pl_splitting splitting; /* of the words */
} pl_cutter_cuts;

typedef struct pl_cutter {
    pl_stream *stream;
    pl_room *room;
    pl_block *buffer;
    size_t piece_bytes;
    pl_cutter_cuts cuts;
    size_t begin, end; /* bytes read but not given: buffer[begin..end) */
    uint64_t offset;   /* of buffer[begin) in the text */
    int at_end;
} pl_cutter;

typedef enum pl_cutter_more { PL_CUTTER_LAST, PL_CUTTER_MORE } pl_cutter_more;

/* Reads `stream` from where it is. `buffer` is a block of `room`, used until
 * the end. */
void pl_cutter_open(pl_cutter *pieces, pl_stream *stream, pl_room *room,
                    pl_block *buffer, size_t piece_bytes, pl_cutter_cuts cuts);

/* The next piece, valid until the next call; it is empty only where the text
 * is. Not to be called after the last. PL_E_MEMORY for a word that doesn't fit
 * into the room. */
PL_MUST_CHECK pl_status pl_cutter_next(pl_cutter *pieces, const char **text,
                                       size_t *bytes, pl_cutter_more *more,
                                       pl_error *err);

/* Where a text may be cut, in [1, bytes]: the last good place in it; 0 if there
 * is none, which is so AT_WORDS only. It begins with a word, and text[bytes] is
 * looked at too. Pure. */
size_t pl_cutter_cut(const char *text, size_t bytes, pl_cutter_cuts cuts);

#endif
