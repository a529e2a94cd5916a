/* gguf_cursor.c: see gguf_cursor.h. */
#include "format/gguf_cursor.h"
#include "base/units.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

const char *pl_gguf_shown(const pl_gguf_cursor *c)
{
    return pl_path_shown(c->file->path);
}

pl_status pl_gguf_take(pl_gguf_cursor *c, void *out, size_t bytes,
                       pl_error *err)
{
    unsigned char *to = out;
    if (bytes > c->end - c->at)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: its header ends at byte %" PRIu64
                       " in the middle of something: the file is cut short, "
                       "or its header is larger than the %s that are read",
                       pl_gguf_shown(c), c->end,
                       pl_units_exact(PL_GGUF_MAX_HEADER).text);
    while (bytes > 0) {
        if (c->at < c->first || c->at >= c->first + c->ready) {
            uint64_t rest = c->end - c->at;
            c->ready = rest < PL_GGUF_BUFFER_BYTES ? (size_t)rest
                                                   : PL_GGUF_BUFFER_BYTES;
            c->first = c->at;
            pl_status status = pl_file_pread_exact(c->file, c->buffer, c->ready,
                                                   c->at, err);
            if (status) {
                c->ready = 0;
                return status;
            }
        }
        size_t from = (size_t)(c->at - c->first), some = c->ready - from;
        some = some < bytes ? some : bytes;
        memcpy(to, c->buffer + from, some);
        to += some;
        c->at += some;
        bytes -= some;
    }
    return PL_OK;
}

pl_status pl_gguf_take_whole(pl_gguf_cursor *c, size_t bytes, uint64_t *out,
                             pl_error *err)
{
    unsigned char raw[8];
    pl_status status = pl_gguf_take(c, raw, bytes, err);
    *out = 0;
    for (size_t i = 0; i < bytes && !status; i++)
        *out |= (uint64_t)raw[i] << (8 * i);
    return status;
}

pl_status pl_gguf_take_length(pl_gguf_cursor *c, const char *what,
                              uint64_t *bytes, pl_error *err)
{
    pl_status status = pl_gguf_take_whole(c, 8, bytes, err);
    if (!status && *bytes > c->end - c->at)
        status = pl_fail(
            err, PL_E_FORMAT,
            "%s: %s at byte %" PRIu64 " would have %s, the header has %s left",
            pl_gguf_shown(c), what, c->at - 8, pl_units_exact(*bytes).text,
            pl_units_exact(c->end - c->at).text);
    return status;
}

pl_status pl_gguf_take_name(pl_gguf_cursor *c, const char *what, char *out,
                            size_t capacity, pl_error *err)
{
    uint64_t bytes = 0;
    pl_status status = pl_gguf_take_length(c, what, &bytes, err);
    if (status)
        return status;
    if (bytes == 0 || bytes >= capacity)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: the name of %s at byte %" PRIu64
                       " has %s, expected 1 to %zu",
                       pl_gguf_shown(c), what, c->at,
                       pl_units_exact(bytes).text, capacity - 1);
    status = pl_gguf_take(c, out, (size_t)bytes, err);
    out[bytes] = '\0';
    if (!status && pl_utf8_text_bytes(out, (size_t)bytes) != bytes)
        status = pl_fail(err, PL_E_FORMAT,
                         "%s: the name of %s before byte %" PRIu64
                         " is not valid UTF-8 text",
                         pl_gguf_shown(c), what, c->at);
    return status;
}
