/* cutter.c: see cutter.h. Owns where a text may be cut. */
#include "data/cutter.h"

#include "base/check.h"
#include "base/utf8.h"
#include "text/nfc.h"
#include "text/pretok.h"

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

/* What the pre-tokenizer looks at behind the end of a word. */
enum { AHEAD_BYTES = 16 };

/* The last place where a word begins, seen from the first one. */
static size_t cut_at_word(const char *text, size_t bytes,
                          pl_splitting splitting)
{
    size_t cut = 0;
    if (splitting.normal == PL_NORMAL_NFC && !pl_nfc_quick(text, bytes))
        return 0;
    for (size_t at = 0; at + AHEAD_BYTES <= bytes;) {
        cut = at;
        at += pl_pretok_next(splitting.pattern, text + at, bytes - at);
    }
    return cut;
}

size_t pl_cutter_cut(const char *text, size_t bytes, pl_cutter_cuts cuts)
{
    PL_CHECK(bytes > 0);
    for (size_t cut = bytes; cut > 0; cut--)
        if (is_blank(text[cut]) && ends_in_word(text, cut) &&
            !pl_pretok_joins(cuts.splitting.pattern, text, cut))
            return cut;
    if (cuts.at == PL_CUTTER_AT_WORDS)
        return cut_at_word(text, bytes, cuts.splitting);
    for (size_t cut = bytes; cut > 0 && bytes - cut < PL_UTF8_MAX_BYTES; cut--)
        if (pl_utf8_starts(text[cut]))
            return cut;
    return bytes;
}

void pl_cutter_open(pl_cutter *pieces, pl_stream *stream, pl_room *room,
                    pl_block *buffer, size_t piece_bytes, pl_cutter_cuts cuts)
{
    PL_CHECK(piece_bytes >= PL_UTF8_MAX_BYTES);
    *pieces = (pl_cutter){ .stream = stream,
                           .room = room,
                           .buffer = buffer,
                           .piece_bytes = piece_bytes,
                           .cuts = cuts,
                           .offset = stream->offset };
}

static size_t unread(const pl_cutter *p)
{
    return p->end - p->begin;
}

/* Reads until there are `want` bytes, or no more. */
static pl_status fill(pl_cutter *p, size_t want, pl_error *err)
{
    size_t kept = unread(p), got = 0;
    if (p->at_end || kept >= want)
        return PL_OK;
    pl_status status = pl_room_grow(p->room, p->buffer, want,
                                    "a word without an end", err);
    if (status)
        return pl_fail_in(
            err, status, "%s, byte %llu: ", pl_path_shown(p->stream->file.path),
            (unsigned long long)p->offset);
    memmove(p->buffer->data, p->buffer->data + p->begin, kept);
    p->begin = 0;
    p->end = kept;
    status = pl_stream_read(p->stream, p->buffer->data + kept, want - kept,
                            &got, err);
    p->end += got;
    p->at_end = !status && got < want - kept;
    return status;
}

pl_status pl_cutter_next(pl_cutter *pieces, const char **text, size_t *bytes,
                         pl_cutter_more *more, pl_error *err)
{
    pl_cutter *p = pieces;
    size_t cut = 0;
    for (size_t limit = p->piece_bytes; cut == 0; limit *= 2) {
        /* One byte more than the piece may have: it shows what follows. */
        pl_status status = fill(p, limit + 1, err);
        if (status)
            return status;
        *text = (const char *)p->buffer->data + p->begin;
        if (unread(p) <= limit)
            break;
        cut = pl_cutter_cut(*text, limit, p->cuts);
    }
    *bytes = cut ? cut : unread(p);
    p->begin += *bytes;
    p->offset += *bytes;
    *more = p->at_end && unread(p) == 0 ? PL_CUTTER_LAST : PL_CUTTER_MORE;
    return PL_OK;
}
