/* stream.c: see stream.h. */
#include "data/stream.h"

#include "base/check.h"
#include "base/units.h"

#include <string.h>

static int ends_with(const char *path, const char *ending)
{
    size_t bytes = strlen(path), end = strlen(ending);
    return bytes >= end && !strcasecmp(path + bytes - end, ending);
}

static pl_status ask_to_stop(const pl_stream *s, pl_error *err)
{
    if (s->ask && s->ask(s->ask_context) == PL_STREAM_STOP)
        return pl_fail(err, PL_E_STOPPED, "stopped while %s was read",
                       pl_path_shown(s->file.path));
    return PL_OK;
}

/* Whoever writes into a pipe may take as long as they like. */
static pl_status read_pipe(const pl_stream *s, unsigned char *out,
                           size_t capacity, size_t *got, pl_error *err)
{
    enum { WAIT_MS = 100 };
    size_t done = 0, more = 1;
    pl_status status = PL_OK;
    while (done < capacity && more > 0 && !status) {
        int ready = 0;
        status = ask_to_stop(s, err);
        if (!status)
            status = pl_file_wait(&s->file, WAIT_MS, &ready, err);
        if (!status && ready) {
            status = pl_file_read_part(&s->file, out + done, capacity - done,
                                       &more, err);
            done += more;
        }
    }
    *got = done;
    return status;
}

/* The next bytes of the file, into an empty buffer. */
static pl_status read_file(pl_stream *s, unsigned char *out, size_t capacity,
                           size_t *got, pl_error *err)
{
    pl_status status = ask_to_stop(s, err);
    if (status)
        return status;
    if (s->kind == PL_STREAM_INPUT) {
        status = read_pipe(s, out, capacity, got, err);
    } else {
        uint64_t rest = pl_file_size(&s->file) - s->file_offset;
        *got = rest < capacity ? (size_t)rest : capacity;
        status = pl_file_pread_exact(&s->file, out, *got, s->file_offset, err);
    }
    if (!status)
        s->file_offset += *got;
    return status;
}

static pl_status refill(pl_stream *s, pl_error *err)
{
    PL_CHECK(s->at == s->have);
    s->at = s->have = 0;
    return read_file(s, s->buffer, s->buffer_bytes, &s->have, err);
}

static pl_status check_name(const pl_stream *s, const char *path, pl_error *err)
{
    pl_codec named = ends_with(path, ".gz")    ? PL_CODEC_GZIP
                     : ends_with(path, ".zst") ? PL_CODEC_ZSTD
                     : ends_with(path, ".xz")  ? PL_CODEC_XZ
                     : ends_with(path, ".lz4") ? PL_CODEC_LZ4
                                               : PL_CODEC_NONE;
    if (named == PL_CODEC_NONE || named == s->codec)
        return PL_OK;
    if (s->codec == PL_CODEC_NONE && s->have == 0)
        return pl_fail(err, PL_E_FORMAT, "%s is empty: not even %s data",
                       pl_path_shown(path), pl_codec_name(named));
    return pl_fail(err, PL_E_FORMAT,
                   "%s: its name says %s, but it begins as %s data does. Name "
                   "it as what it is, or copy it again",
                   pl_path_shown(path), pl_codec_name(named),
                   s->codec == PL_CODEC_NONE ? "no packed"
                                             : pl_codec_name(s->codec));
}

static pl_status open_kind(pl_stream *s, const char *path, pl_error *err)
{
    pl_file_kind kind;
    if (!strcmp(path, "-")) {
        s->kind = PL_STREAM_INPUT;
        return pl_file_open_input(&s->file, err);
    }
    pl_status status = pl_file_look(path, &kind, err);
    if (status)
        return status;
    if (kind != PL_FILE_OTHER)
        return pl_file_open_read(&s->file, path, err);
    s->kind = PL_STREAM_INPUT;
    return pl_file_open_once(&s->file, path, err);
}

pl_status pl_stream_open(pl_stream *stream, const char *path,
                         unsigned char *buffer, size_t buffer_bytes,
                         pl_unpack *unpack, pl_stream_ask *ask,
                         void *ask_context, pl_error *err)
{
    PL_CHECK(buffer_bytes >= 16);
    *stream = (pl_stream){ .file = PL_FILE_CLOSED,
                           .kind = PL_STREAM_FILE,
                           .unpack = unpack,
                           .buffer = buffer,
                           .buffer_bytes = buffer_bytes,
                           .between_frames = 1,
                           .ask = ask,
                           .ask_context = ask_context };
    pl_status status = open_kind(stream, path, err);
    if (status)
        return status;
    status = refill(stream, err);
    if (status)
        goto close_file;
    stream->codec = pl_codec_of(buffer, stream->have);
    status = check_name(stream, path, err);
    if (!status && stream->codec != PL_CODEC_NONE)
        status = pl_unpack_begin(unpack, stream->codec, err);
    if (status)
        goto close_file;
    return PL_OK;

close_file:
    pl_file_abandon(&stream->file);
    return status;
}

void pl_stream_close(pl_stream *stream)
{
    pl_file_abandon(&stream->file);
}

static pl_status read_plain(pl_stream *s, unsigned char *out, size_t capacity,
                            size_t *got, pl_error *err)
{
    size_t rest = s->have - s->at, more = 0;
    size_t take = rest < capacity ? rest : capacity;
    memcpy(out, s->buffer + s->at, take);
    s->at += take;
    pl_status status = PL_OK;
    if (take < capacity)
        status = read_file(s, out + take, capacity - take, &more, err);
    *got = take + more;
    return status;
}

static pl_status in_stream(const pl_stream *s, pl_status status, pl_error *err)
{
    return pl_fail_in(err, status,
                      "%s, near byte %llu: ", pl_path_shown(s->file.path),
                      (unsigned long long)(s->file_offset - (s->have - s->at)));
}

/* Behind a member of gzip or xz: zeros, with which tapes are filled up, are
 * passed over; then the next member, or the end. */
static pl_status next_frame(pl_stream *s, pl_error *err)
{
    int has_members = s->codec == PL_CODEC_GZIP || s->codec == PL_CODEC_XZ;
    if (has_members && s->frames > 0) {
        while (s->at < s->have && s->buffer[s->at] == 0)
            s->at++;
        if (s->at == s->have)
            return PL_OK;
        if (s->buffer[s->at] != (s->codec == PL_CODEC_GZIP ? 0x1f : 0xfd))
            return in_stream(s,
                             pl_fail(err, PL_E_FORMAT,
                                     "something that isn't %s follows the end "
                                     "of its %s data",
                                     pl_codec_name(s->codec),
                                     pl_codec_name(s->codec)),
                             err);
    }
    s->between_frames = 0;
    return has_members ? pl_unpack_begin(s->unpack, s->codec, err) : PL_OK;
}

static pl_status unpack_more(pl_stream *s, unsigned char *out, size_t capacity,
                             size_t *got, pl_error *err)
{
    pl_unpack_step step = { .in = s->buffer + s->at,
                            .in_bytes = s->have - s->at,
                            .out = out,
                            .out_bytes = capacity };
    pl_status status = pl_unpack_some(s->unpack, s->codec, &step, err);
    if (status)
        return in_stream(s, status, err);
    size_t used = s->have - s->at - step.in_bytes;
    *got = capacity - step.out_bytes;
    s->at = s->have - step.in_bytes;
    s->between_frames = step.frame_ended;
    s->frames += (uint64_t)step.frame_ended;
    if (!used && !*got && !step.frame_ended)
        return pl_fail(err, PL_E_FORMAT,
                       "%s ends within its %s data, after %s: it is "
                       "cut off. Copy or download it again",
                       pl_path_shown(s->file.path), pl_codec_name(s->codec),
                       pl_units_exact(s->file_offset).text);
    return PL_OK;
}

static pl_status read_packed(pl_stream *s, unsigned char *out, size_t capacity,
                             size_t *got, pl_error *err)
{
    size_t done = 0;
    while (done < capacity) {
        size_t more = 0;
        pl_status status = s->at == s->have ? refill(s, err) : PL_OK;
        if (!status && s->between_frames) {
            if (s->have == 0)
                break;
            status = next_frame(s, err);
            if (!status && s->between_frames)
                continue;
        }
        if (!status)
            status = unpack_more(s, out + done, capacity - done, &more, err);
        if (status)
            return status;
        done += more;
    }
    *got = done;
    return PL_OK;
}

pl_status pl_stream_read(pl_stream *stream, void *out, size_t capacity,
                         size_t *got, pl_error *err)
{
    pl_status status = stream->codec == PL_CODEC_NONE
                           ? read_plain(stream, out, capacity, got, err)
                           : read_packed(stream, out, capacity, got, err);
    if (!status)
        stream->offset += *got;
    return status;
}

pl_status pl_stream_skip(pl_stream *stream, uint64_t bytes, void *scratch,
                         size_t scratch_bytes, pl_error *err)
{
    uint64_t target = stream->offset + bytes;
    int can_jump = stream->kind == PL_STREAM_FILE &&
                   stream->codec == PL_CODEC_NONE;
    if (can_jump && bytes <= pl_file_size(&stream->file) - stream->offset) {
        stream->at = stream->have = 0;
        stream->offset = stream->file_offset = target;
        return PL_OK;
    }
    while (!can_jump && stream->offset < target) {
        uint64_t rest = target - stream->offset;
        size_t want = rest < scratch_bytes ? (size_t)rest : scratch_bytes, got;
        pl_status status = pl_stream_read(stream, scratch, want, &got, err);
        if (status)
            return status;
        if (got < want)
            break;
    }
    if (stream->offset == target)
        return PL_OK;
    return pl_fail(err, PL_E_FORMAT,
                   "%s has fewer than the %s that were read from it "
                   "before: it was changed since. Begin anew",
                   pl_path_shown(stream->file.path),
                   pl_units_exact(target).text);
}

uint64_t pl_stream_used_bytes(const pl_stream *stream)
{
    return stream->file_offset - (stream->have - stream->at);
}

int pl_stream_begins_with(const pl_stream *stream, const char *magic)
{
    size_t bytes = strlen(magic);
    return stream->have >= bytes && !memcmp(stream->buffer, magic, bytes);
}
