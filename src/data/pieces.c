/* pieces.c: see pieces.h. Owns where a text may be cut. */
#include "data/pieces.h"

#include "base/check.h"
#include "base/utf8.h"

#include <string.h>

static int is_blank(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

/* Unicode's White_Space beyond ASCII: it goes on a run of white space, which
 * must not be cut. */
static int is_wide_space(uint32_t code)
{
    return code == 0x85 || code == 0xA0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
           code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

/* Whether the last character of text[0..bytes) is there and isn't white
 * space. */
static int ends_in_word(const char *text, size_t bytes)
{
    uint32_t code;
    size_t begin = bytes;
    while (begin > 0 && bytes - begin < PL_UTF8_MAX_BYTES) {
        begin--;
        if (pl_utf8_starts(text[begin]))
            break;
    }
    int length = pl_utf8_decode(text + begin, bytes - begin, &code);
    if (length <= 0 || (size_t)length != bytes - begin)
        return 0;
    return code > ' ' && code != 0x7F && !is_wide_space(code);
}

size_t pl_pieces_cut(const char *text, size_t bytes)
{
    PL_CHECK(bytes > 0);
    for (size_t cut = bytes; cut > 0; cut--)
        if (is_blank(text[cut]) && ends_in_word(text, cut))
            return cut;
    for (size_t cut = bytes; cut > 0 && bytes - cut < PL_UTF8_MAX_BYTES; cut--)
        if (pl_utf8_starts(text[cut]))
            return cut;
    return bytes;
}

void pl_pieces_open(pl_pieces *pieces, pl_stream *stream, char *buffer,
                    size_t buffer_bytes)
{
    PL_CHECK(buffer_bytes > PL_UTF8_MAX_BYTES);
    *pieces = (pl_pieces){ .stream = stream,
                           .buffer = buffer,
                           .buffer_bytes = buffer_bytes,
                           .offset = stream->offset };
}

pl_status pl_pieces_next(pl_pieces *pieces, const char **text, size_t *bytes,
                         pl_pieces_more *more, pl_error *err)
{
    pl_pieces *p = pieces;
    size_t kept = p->end - p->begin, got = 0;
    if (!p->at_end) {
        memmove(p->buffer, p->buffer + p->begin, kept);
        p->begin = 0;
        p->end = kept;
        size_t room = p->buffer_bytes - kept;
        pl_status status = pl_stream_read(p->stream, p->buffer + kept, room,
                                          &got, err);
        if (status)
            return status;
        p->end += got;
        p->at_end = got < room;
    }
    kept = p->end - p->begin;
    /* A full buffer has one byte more than a piece: it shows what follows. */
    *bytes = p->at_end ? kept : pl_pieces_cut(p->buffer, kept - 1);
    *more = p->at_end ? PL_PIECES_LAST : PL_PIECES_MORE;
    *text = p->buffer + p->begin;
    p->begin += *bytes;
    p->offset += *bytes;
    return PL_OK;
}
