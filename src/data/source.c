/* source.c: see source.h. Owns the way from file to file; pieces, jsonl and
 * parquet own what is inside them. */
#include "data/source.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/units.h"
#include "data/cutter.h"
#include "data/jsonl.h"
#include "data/kind.h"
#include "data/parquet.h"
#include "data/stream.h"

#include <stdio.h>
#include <string.h>

enum { PACKED_BYTES = 128 * 1024 };

struct pl_source {
    pl_heap heap; /* this struct and the list */
    pl_room room; /* all else */
    pl_unpack unpack;
    pl_source_list list;
    const char *field;
    size_t document_bytes;
    pl_source_format format; /* as asked for */
    double listed_date;
    pl_cutter_cuts cuts;
    pl_stream_ask *ask;
    void *ask_context;
    pl_block packed, text; /* buffers of the stream and its reader */

    /* The open file, if any; the next one to open, or this one. */
    uint64_t file, done_bytes; /* of the files before it */
    pl_source_format open;     /* AUTO: none */
    int text_ended;            /* its last piece was given */
    int once_used;             /* what is read once was opened */
    pl_stream stream;
    pl_cutter pieces;
    pl_jsonl jsonl;
    pl_parquet parquet;

    pl_source_place place; /* behind the last piece */
    struct {
        uint64_t file, number; /* line, row or byte */
        pl_source_format format;
    } last;
};

/* ---- opening and closing ---- */

static pl_status take_buffers(pl_source *s, pl_error *err)
{
    pl_status status = pl_room_take(&s->room, &s->packed, PACKED_BYTES,
                                    "the source", err);
    if (!status)
        status = pl_room_take(&s->room, &s->text, PL_SOURCE_PIECE_BYTES + 1,
                              "the source", err);
    return status;
}

static pl_status fill(pl_source *s, const pl_source_options *options,
                      pl_error *err)
{
    const char *field = options->field ? options->field : "text";
    const pl_source_names names = { .paths = options->paths,
                                    .path_count = options->path_count,
                                    .format = options->format,
                                    .include = options->include,
                                    .exclude = options->exclude };
    pl_status status = pl_heap_text(&s->heap, &s->field, field, strlen(field),
                                    err);
    if (!status)
        status = pl_source_list_make(&s->list, &names, &s->heap, err);
    if (status)
        return status;
    s->format = options->format;
    s->cuts = options->cuts;
    s->listed_date = pl_clock_date();
    s->ask = options->ask;
    s->ask_context = options->ask_context;
    s->room = pl_room_make(options->memory_bytes - s->heap.taken_bytes);
    s->document_bytes = options->document_bytes ? options->document_bytes
                                                : options->memory_bytes;
    pl_unpack_open(&s->unpack, &s->room);
    return take_buffers(s, err);
}

pl_status pl_source_open(pl_source **source, const pl_source_options *options,
                         pl_error *err)
{
    pl_source *s = NULL;
    *source = NULL;
    if (options->memory_bytes < PL_SOURCE_MIN_BYTES)
        return pl_fail(err, PL_E_MEMORY,
                       "reading needs %s of memory at least, it got %s",
                       pl_units_bytes(PL_SOURCE_MIN_BYTES).text,
                       pl_units_bytes(options->memory_bytes).text);
    /* Half of it at most, so that names leave room for their contents. */
    pl_heap heap = pl_heap_make(options->memory_bytes / 2);
    pl_status status = pl_heap_take(&heap, &s, 1, sizeof *s, err);
    if (status)
        return status;
    s->heap = heap;
    s->stream.file.fd = s->parquet.file.fd = -1;
    status = fill(s, options, err);
    if (status)
        pl_source_close(s);
    else
        *source = s;
    return status;
}

static void close_file(pl_source *s)
{
    pl_stream_close(&s->stream);
    pl_jsonl_close(&s->jsonl);
    pl_parquet_close(&s->parquet);
    s->open = PL_SOURCE_AUTO;
    s->text_ended = 0;
}

void pl_source_close(pl_source *source)
{
    if (!source)
        return;
    close_file(source);
    if (source->unpack.room)
        pl_unpack_close(&source->unpack);
    pl_room_give_back(&source->room, &source->packed);
    pl_room_give_back(&source->room, &source->text);
    pl_heap heap = source->heap; /* the struct lies in it */
    pl_heap_close(&heap);
}

/* ---- files ---- */

static pl_status open_stream(pl_source *s, const char *path, pl_error *err)
{
    return pl_stream_open(&s->stream, path, s->packed.data, s->packed.bytes,
                          &s->unpack, s->ask, s->ask_context, err);
}

static pl_status open_parquet(pl_source *s, const pl_source_file *file,
                              pl_error *err)
{
    const char *path = file->path;
    size_t bytes = strlen(path);
    if (file->reading == PL_SOURCE_ONCE)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: parquet can't be read from a pipe: its table of "
                       "contents is at its end. Name the file",
                       strcmp(path, "-") ? pl_path_shown(path)
                                         : "standard input");
    int packed = (bytes > 3 && (!strcasecmp(path + bytes - 3, ".gz") ||
                                !strcasecmp(path + bytes - 3, ".xz"))) ||
                 (bytes > 4 && (!strcasecmp(path + bytes - 4, ".zst") ||
                                !strcasecmp(path + bytes - 4, ".lz4")));
    if (packed)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: a packed parquet file can't be read, since reading "
                       "begins at its end. Unpack it first: parquet is "
                       "compressed inside anyway",
                       pl_path_shown(path));
    pl_status status = pl_parquet_open(&s->parquet, path, s->field,
                                       s->document_bytes, &s->room, &s->unpack,
                                       err);
    if (!status)
        status = pl_parquet_seek(&s->parquet, s->place.record, err);
    return status;
}

/* Opens s->file at s->place. */
static pl_status open_file(pl_source *s, pl_error *err)
{
    const pl_source_file *file = &s->list.files[s->file];
    pl_source_format format = file->format;
    pl_status status = PL_OK;
    s->once_used |= file->reading == PL_SOURCE_ONCE;
    if (format != PL_SOURCE_PARQUET) {
        status = open_stream(s, file->path, err);
        if (status)
            return status;
        const char *refused = NULL;
        if (s->format == PL_SOURCE_AUTO && s->stream.codec == PL_CODEC_NONE)
            refused = pl_kind_refused(s->stream.buffer, s->stream.have);
        if (refused) {
            pl_stream_close(&s->stream);
            return pl_fail(err, PL_E_UNSUPPORTED,
                           "%s is %s, which can't be read as text. Unpack or "
                           "convert it first",
                           pl_path_shown(s->stream.file.path), refused);
        }
        /* A name that says nothing; content that says all. */
        if (s->format == PL_SOURCE_AUTO &&
            pl_stream_begins_with(&s->stream, "PAR1")) {
            pl_stream_close(&s->stream);
            format = PL_SOURCE_PARQUET;
        }
    }
    s->open = format;
    if (format == PL_SOURCE_PARQUET)
        return open_parquet(s, file, err);
    if (s->place.offset > 0)
        status = pl_stream_skip(&s->stream, s->place.offset, s->text.data,
                                s->text.bytes, err);
    if (status)
        return status;
    if (format == PL_SOURCE_JSONL)
        return pl_jsonl_open(&s->jsonl, &s->stream, s->field, s->place.record,
                             s->document_bytes, s->text.data, s->text.bytes,
                             &s->room, err);
    pl_cutter_open(&s->pieces, &s->stream, &s->room, &s->text,
                   PL_SOURCE_PIECE_BYTES, s->cuts);
    return PL_OK;
}

static void leave_file(pl_source *s)
{
    s->done_bytes += s->list.files[s->file].bytes;
    close_file(s);
    s->file++;
    s->place = (pl_source_place){ .file = s->file };
}

/* ---- pieces ---- */

/* Each gives the next piece of the open file; part NONE where it has none, or
 * an empty one. */

/* What a packed file has in it is known when it is unpacked: a tar, say. */
static pl_status check_unpacked(const pl_source *s, const pl_fragment *piece,
                                pl_error *err)
{
    const char *refused = NULL;
    if (s->format == PL_SOURCE_AUTO && s->stream.codec != PL_CODEC_NONE)
        refused = pl_kind_refused((const unsigned char *)piece->text,
                                  piece->bytes);
    if (!refused)
        return PL_OK;
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s: what is packed in it is %s, which can't be read as "
                   "text. Unpack it first, or leave it out (--exclude)",
                   pl_path_shown(s->stream.file.path), refused);
}

static pl_status next_text(pl_source *s, pl_fragment *piece, pl_error *err)
{
    pl_cutter_more more;
    int begins = s->pieces.offset == 0;
    if (s->text_ended)
        return PL_OK;
    s->last.number = s->pieces.offset;
    pl_status status = pl_cutter_next(&s->pieces, &piece->text, &piece->bytes,
                                      &more, err);
    if (!status && begins)
        status = check_unpacked(s, piece, err);
    if (status)
        return status;
    int ends = more == PL_CUTTER_LAST;
    s->text_ended = ends;
    s->place.offset = s->pieces.offset;
    if (ends)
        s->place = (pl_source_place){ .file = s->file + 1 };
    /* An empty text has no pieces. */
    if (piece->bytes > 0)
        piece->part = begins && ends ? PL_FRAGMENT_WHOLE
                      : begins       ? PL_FRAGMENT_FIRST
                      : ends         ? PL_FRAGMENT_LAST
                                     : PL_FRAGMENT_MIDDLE;
    return PL_OK;
}

static pl_status next_line(pl_source *s, pl_fragment *piece, pl_error *err)
{
    do {
        pl_status status = pl_jsonl_next(&s->jsonl, &piece->text, &piece->bytes,
                                         err);
        if (status)
            return status;
    } while (piece->text && piece->bytes == 0);
    s->last.number = s->place.record = s->jsonl.line;
    s->place.offset = pl_jsonl_offset(&s->jsonl);
    piece->part = piece->text ? PL_FRAGMENT_WHOLE : PL_FRAGMENT_NONE;
    return PL_OK;
}

static pl_status next_row(pl_source *s, pl_fragment *piece, pl_error *err)
{
    do {
        pl_status status = pl_parquet_next(&s->parquet, &piece->text,
                                           &piece->bytes, &s->last.number, err);
        if (status)
            return status;
    } while (piece->text && piece->bytes == 0);
    s->place.record = s->parquet.row;
    piece->part = piece->text ? PL_FRAGMENT_WHOLE : PL_FRAGMENT_NONE;
    return PL_OK;
}

pl_status pl_source_next(pl_source *source, pl_fragment *piece, pl_error *err)
{
    pl_source *s = source;
    *piece = (pl_fragment){ .part = PL_FRAGMENT_NONE };
    while (s->file < s->list.count) {
        pl_status status = s->open == PL_SOURCE_AUTO ? open_file(s, err)
                                                     : PL_OK;
        if (status)
            return status;
        s->last.file = s->file;
        s->last.format = s->open;
        status = s->open == PL_SOURCE_TEXT    ? next_text(s, piece, err)
                 : s->open == PL_SOURCE_JSONL ? next_line(s, piece, err)
                                              : next_row(s, piece, err);
        if (status || piece->part != PL_FRAGMENT_NONE)
            return status;
        leave_file(s);
    }
    piece->text = NULL;
    piece->bytes = 0;
    return PL_OK;
}

/* ---- places ---- */

pl_source_place pl_source_tell(const pl_source *source)
{
    return source->place;
}

pl_status pl_source_seek(pl_source *source, pl_source_place place,
                         pl_error *err)
{
    pl_source *s = source;
    int inside = place.record > 0 || place.offset > 0;
    if (place.file > s->list.count || (place.file == s->list.count && inside))
        return pl_fail(err, PL_E_USAGE,
                       "there is no file %llu in a list of %zu: the place "
                       "belongs to another list. Begin anew",
                       (unsigned long long)place.file, s->list.count);
    for (size_t i = (size_t)place.file; i < s->list.count; i++)
        if (s->list.files[i].reading == PL_SOURCE_ONCE &&
            (s->once_used || (i == place.file && inside)))
            return pl_fail(err, PL_E_USAGE,
                           "standard input and pipes can't be read again, nor "
                           "from their middle on. Begin anew");
    close_file(s);
    s->done_bytes = 0;
    for (uint64_t i = 0; i < place.file; i++)
        s->done_bytes += s->list.files[i].bytes;
    s->file = place.file;
    s->place = place;
    return place.file < s->list.count ? open_file(s, err) : PL_OK;
}

void pl_source_where(const pl_source *source, char out[PL_SOURCE_WHERE_BYTES])
{
    static const char *const kinds[] = { "", "byte", "line", "row" };
    const pl_source *s = source;
    if (s->last.format == PL_SOURCE_AUTO) {
        snprintf(out, PL_SOURCE_WHERE_BYTES, "before the first file");
        return;
    }
    const char *path = s->list.files[s->last.file].path;
    snprintf(out, PL_SOURCE_WHERE_BYTES, "%s, %s %llu",
             strcmp(path, "-") ? pl_path_shown(path) : "standard input",
             kinds[s->last.format], (unsigned long long)s->last.number);
}

pl_source_format pl_source_last_format(const pl_source *source)
{
    return source->last.format;
}

uint64_t pl_source_last_file_bytes(const pl_source *source)
{
    return source->list.files[source->last.file].bytes;
}

/* ---- about the whole ---- */

pl_status pl_source_lend(pl_source *source, pl_block *block, size_t bytes,
                         pl_error *err)
{
    char where[PL_SOURCE_WHERE_BYTES];
    pl_status status = pl_room_take(&source->room, block, bytes,
                                    "a word that can't be cut", err);
    if (!status)
        return PL_OK;
    pl_source_where(source, where);
    return pl_fail_in(err, status, "%s: ", where);
}

void pl_source_take_back(pl_source *source, pl_block *block)
{
    pl_room_give_back(&source->room, block);
}

const pl_source_list *pl_source_files(const pl_source *source)
{
    return &source->list;
}

uint64_t pl_source_done_bytes(const pl_source *source)
{
    const pl_source *s = source;
    if (s->open == PL_SOURCE_AUTO)
        return s->done_bytes;
    if (s->open != PL_SOURCE_PARQUET)
        return s->done_bytes + pl_stream_used_bytes(&s->stream);
    double share = s->parquet.rows
                       ? (double)s->parquet.row / (double)s->parquet.rows
                       : 1.0;
    uint64_t bytes = s->list.files[s->file].bytes;
    return s->done_bytes + (uint64_t)(share * (double)bytes);
}

/* FNV-1a. */
static uint64_t mix(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *from = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ from[i]) * 0x100000001b3u;
    return hash;
}

uint64_t pl_source_identity(const pl_source *source)
{
    const pl_source *s = source;
    uint64_t hash = mix(0xcbf29ce484222325u, s->field, strlen(s->field) + 1);
    for (size_t i = 0; i < s->list.count; i++) {
        const pl_source_file *file = &s->list.files[i];
        unsigned char numbers[9] = { (unsigned char)file->format };
        for (int b = 0; b < 8; b++)
            numbers[1 + b] = (unsigned char)(file->bytes >> 8 * b);
        hash = mix(hash, file->path, strlen(file->path) + 1);
        hash = mix(hash, numbers, sizeof numbers);
    }
    return hash;
}

uint64_t pl_source_stamps(const pl_source *source)
{
    uint64_t hash = 1;
    for (size_t i = 0; i < source->list.count; i++) {
        const pl_file_stamp *stamp = &source->list.files[i].stamp;
        if (!pl_file_stamp_settled(stamp, source->listed_date))
            return 0;
        hash = pl_hash_chain(hash, stamp, sizeof *stamp);
    }
    return hash ? hash : 1;
}

size_t pl_source_peak_bytes(const pl_source *source)
{
    return source->heap.taken_bytes + source->room.peak_bytes;
}

uint64_t pl_source_wanted_bytes(const pl_source *source)
{
    uint64_t wanted = source->room.wanted_bytes;
    return wanted ? source->heap.taken_bytes + wanted : 0;
}
