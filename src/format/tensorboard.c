/* tensorboard.c: see tensorboard.h. The few messages that are needed are
 * written and read by hand. */
#include "format/tensorboard.h"
#include "base/check.h"

#include <string.h>

enum {
    HEAD_BYTES = 12, /* length and its checksum */
    TAIL_BYTES = 4,
    /* of one record of ours: a summary's tag, a text and the rest of it */
    MOST_RECORD_BYTES = PL_TENSORBOARD_TAG_BYTES + PL_TENSORBOARD_TEXT_BYTES +
                        128,
};

static const char version[] = "brain.Event:2";

/* ---- checksums ---- */

uint32_t pl_crc32c(uint32_t crc, const void *data, size_t bytes)
{
    /* the remainders of the sixteen half bytes */
    static const uint32_t table[16] = {
        0x00000000u, 0x105ec76fu, 0x20bd8edeu, 0x30e349b1u,
        0x417b1dbcu, 0x5125dad3u, 0x61c69362u, 0x7198540du,
        0x82f63b78u, 0x92a8fc17u, 0xa24bb5a6u, 0xb21572c9u,
        0xc38d26c4u, 0xd3d3e1abu, 0xe330a81au, 0xf36e6f75u,
    };
    const unsigned char *at = data;
    crc = ~crc;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= at[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

uint32_t pl_crc32c_masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* ---- messages ---- */

typedef struct message {
    unsigned char bytes[MOST_RECORD_BYTES];
    size_t used;
} message;

static void put_byte(message *m, unsigned byte)
{
    PL_CHECK(m->used < sizeof m->bytes);
    m->bytes[m->used++] = (unsigned char)byte;
}

static void put_fixed(message *m, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        put_byte(m, (unsigned)(value >> (8 * i) & 0xff));
}

static void put_varint(message *m, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        put_byte(m, (unsigned)(value & 0x7f) | 0x80u);
    put_byte(m, (unsigned)value);
}

static void put_bytes(message *m, const char *text, size_t bytes)
{
    put_varint(m, bytes);
    for (size_t i = 0; i < bytes; i++)
        put_byte(m, (unsigned char)text[i]);
}

static void put_text(message *m, const char *text)
{
    put_bytes(m, text, strlen(text));
}

static void put_head(message *m, double wall_time)
{
    uint64_t bits;
    memcpy(&bits, &wall_time, sizeof bits);
    m->used = HEAD_BYTES;
    put_byte(m, 1 << 3 | 1); /* wall_time: 64 bits */
    put_fixed(m, bits, 8);
}

/* Length and checksums around what was put. */
static void seal(message *m)
{
    size_t bytes = m->used - HEAD_BYTES;
    uint32_t crc = pl_crc32c(0, m->bytes + HEAD_BYTES, bytes);
    put_fixed(m, pl_crc32c_masked(crc), TAIL_BYTES);
    size_t used = m->used;
    m->used = 0;
    put_fixed(m, bytes, 8);
    put_fixed(m, pl_crc32c_masked(pl_crc32c(0, m->bytes, 8)), 4);
    m->used = used;
}

static void put_version(message *m, double wall_time)
{
    put_head(m, wall_time);
    put_byte(m, 3 << 3 | 2); /* file_version: text */
    put_text(m, version);
    seal(m);
}

static void put_scalar(message *m, const char *tag, int64_t step,
                       double wall_time, float value)
{
    uint32_t bits;
    size_t tag_bytes = strlen(tag);
    size_t value_bytes = 1 + 1 + tag_bytes + 1 + 4;
    memcpy(&bits, &value, sizeof bits);
    put_head(m, wall_time);
    put_byte(m, 2 << 3 | 0); /* step: varint */
    put_varint(m, (uint64_t)step);
    put_byte(m, 5 << 3 | 2); /* summary */
    put_varint(m, value_bytes + (value_bytes < 0x80 ? 2 : 3));
    put_byte(m, 1 << 3 | 2); /* value */
    put_varint(m, value_bytes);
    put_byte(m, 1 << 3 | 2); /* tag */
    put_text(m, tag);
    put_byte(m, 2 << 3 | 5); /* simple_value: 32 bits */
    put_fixed(m, bits, 4);
    seal(m);
}

static size_t varint_bytes(uint64_t value)
{
    size_t bytes = 1;
    for (; value >= 0x80; value >>= 7)
        bytes++;
    return bytes;
}

/* Key, length and content of a field. */
static size_t field_bytes(size_t bytes)
{
    return 1 + varint_bytes(bytes) + bytes;
}

static void put_string(message *m, const char *tag, int64_t step,
                       double wall_time, const char *text, size_t bytes)
{
    /* dtype: a string; shape: one element */
    static const char kind[] = { 1 << 3,     7, 2 << 3 | 2, 4,
                                 2 << 3 | 2, 2, 1 << 3,     1 };
    static const char plugin[] = { 1 << 3 | 2, 6,   1 << 3 | 2, 4,
                                   't',        'e', 'x',        't' };
    const size_t tensor = sizeof kind + field_bytes(bytes);
    const size_t value = field_bytes(strlen(tag)) + field_bytes(tensor) +
                         field_bytes(sizeof plugin);
    put_head(m, wall_time);
    put_byte(m, 2 << 3 | 0); /* step: varint */
    put_varint(m, (uint64_t)step);
    put_byte(m, 5 << 3 | 2); /* summary */
    put_varint(m, field_bytes(value));
    put_byte(m, 1 << 3 | 2); /* value */
    put_varint(m, value);
    put_byte(m, 1 << 3 | 2); /* tag */
    put_text(m, tag);
    put_byte(m, 8 << 3 | 2); /* tensor */
    put_varint(m, tensor);
    for (size_t i = 0; i < sizeof kind; i++)
        put_byte(m, (unsigned char)kind[i]);
    put_byte(m, 8 << 3 | 2); /* string_val */
    put_bytes(m, text, bytes);
    put_byte(m, 9 << 3 | 2); /* metadata */
    put_bytes(m, plugin, sizeof plugin);
    seal(m);
}

/* ---- reading back ---- */

static uint64_t fixed(const unsigned char *bytes, size_t count)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

/* A message of which a part is left to be read. */
typedef struct rest {
    const unsigned char *at, *end;
} rest;

static int take_varint(rest *r, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; r->at < r->end && shift < 64; shift += 7) {
        *value |= (uint64_t)(*r->at & 0x7f) << shift;
        if (!(*r->at++ & 0x80))
            return 1;
    }
    return 0;
}

/* Finds the first field of this number. What it is a length of, or holds as a
 * varint, is in *value; *inner is what the length is of. 0: there is none, or
 * this is no message. */
static int find_field(rest r, unsigned number, uint64_t *value, rest *inner)
{
    uint64_t key, skip;
    while (take_varint(&r, &key)) {
        skip = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : 0;
        if (((key & 7) == 0 || (key & 7) == 2) && !take_varint(&r, value))
            return 0;
        if ((key & 7) == 2)
            skip = *value;
        if (skip > (uint64_t)(r.end - r.at))
            return 0;
        *inner = (rest){ r.at, r.at + skip };
        if (key >> 3 == number)
            return 1;
        r.at += skip;
    }
    return 0;
}

/* What a record is of. */
static void read_message(const unsigned char *text, size_t bytes,
                         uint64_t *step, char tag[PL_TENSORBOARD_TAG_BYTES])
{
    rest all = { text, text + bytes }, at = all;
    uint64_t length = 0;
    if (!find_field(all, 2, step, &at))
        *step = 0;
    tag[0] = '\0';
    if (find_field(all, 5, &length, &at) && find_field(at, 1, &length, &at) &&
        find_field(at, 1, &length, &at) &&
        (size_t)(at.end - at.at) < PL_TENSORBOARD_TAG_BYTES) {
        memcpy(tag, at.at, (size_t)(at.end - at.at));
        tag[at.end - at.at] = '\0';
    }
}

/* The record at `at`: *end is behind it, or `at` if there is no whole one. The
 * message is in e->buffer as far as that holds it. */
static pl_status read_record(pl_tensorboard *e, const pl_file *file,
                             uint64_t at, uint64_t *end, pl_error *err)
{
    unsigned char head[HEAD_BYTES], tail[TAIL_BYTES];
    uint64_t size = pl_file_size(file), left;
    uint32_t crc = 0;

    *end = at;
    if (size - at < HEAD_BYTES + TAIL_BYTES)
        return PL_OK;
    pl_status status = pl_file_pread_exact(file, head, sizeof head, at, err);
    if (status)
        return status;
    uint64_t bytes = fixed(head, 8);
    if (fixed(head + 8, 4) != pl_crc32c_masked(pl_crc32c(0, head, 8)) ||
        bytes > size - at - HEAD_BYTES - TAIL_BYTES)
        return PL_OK;
    at += HEAD_BYTES;
    for (left = bytes; left > 0 && !status;) {
        size_t some = left < PL_TENSORBOARD_BUFFER_BYTES
                          ? (size_t)left
                          : PL_TENSORBOARD_BUFFER_BYTES;
        status = pl_file_pread_exact(file, e->buffer, some, at, err);
        crc = pl_crc32c(crc, e->buffer, some);
        left -= some;
        at += some;
    }
    if (!status)
        status = pl_file_pread_exact(file, tail, sizeof tail, at, err);
    if (!status && fixed(tail, 4) == pl_crc32c_masked(crc))
        *end = at + TAIL_BYTES;
    return status;
}

/* What is kept of a file: whole records, and only those. */
typedef struct wish {
    uint64_t most_bytes;
    pl_tensorboard_keeps *keeps; /* NULL: all of them */
    const void *context;
} wish;

static int is_wanted(const wish *w, const pl_tensorboard *e, uint64_t bytes)
{
    char tag[PL_TENSORBOARD_TAG_BYTES];
    uint64_t step;
    if (!w->keeps || bytes > PL_TENSORBOARD_BUFFER_BYTES)
        return 1;
    read_message(e->buffer, (size_t)bytes, &step, tag);
    return tag[0] == '\0' || w->keeps(w->context, step, tag);
}

static pl_status measure(pl_tensorboard *e, const char *path, const wish *w,
                         uint64_t *kept, pl_error *err)
{
    pl_file file = PL_FILE_CLOSED;
    uint64_t end = 0;
    *kept = 0;
    pl_status status = pl_file_open_read(&file, path, err);
    while (!status) {
        status = read_record(e, &file, *kept, &end, err);
        if (status || end == *kept || end > w->most_bytes ||
            !is_wanted(w, e, end - *kept - HEAD_BYTES - TAIL_BYTES))
            break;
        *kept = end;
    }
    pl_file_abandon(&file);
    return status;
}

/* ---- the file ---- */

static pl_status open_wish(pl_tensorboard *events, const char *path,
                           const wish *w, double wall_time, pl_error *err)
{
    uint64_t kept = 0;
    pl_file_kind kind = PL_FILE_ABSENT;
    pl_status status = PL_OK;

    *events = (pl_tensorboard){ .file = PL_FILE_CLOSED };
    if (w->most_bytes > 0)
        status = pl_file_look(path, &kind, err);
    if (!status && kind != PL_FILE_ABSENT)
        status = measure(events, path, w, &kept, err);
    if (status)
        return status;
    if (kind == PL_FILE_ABSENT)
        status = pl_file_create(&events->file, path, err);
    else
        status = pl_file_open_again(&events->file, path, kept, err);
    if (status)
        return status;
    events->size_bytes = kept;
    if (kept == 0) {
        message m;
        put_version(&m, wall_time);
        memcpy(events->buffer, m.bytes, m.used);
        events->used = m.used;
    }
    return PL_OK;
}

pl_status pl_tensorboard_open(pl_tensorboard *events, const char *path,
                              uint64_t keep_bytes, double wall_time,
                              pl_error *err)
{
    const wish w = { .most_bytes = keep_bytes };
    return open_wish(events, path, &w, wall_time, err);
}

pl_status pl_tensorboard_open_past(pl_tensorboard *events, const char *path,
                                   pl_tensorboard_keeps *keeps,
                                   const void *context, double wall_time,
                                   pl_error *err)
{
    const wish w = { keeps ? PL_TENSORBOARD_KEEP_ALL : PL_TENSORBOARD_KEEP_NONE,
                     keeps, context };
    return open_wish(events, path, &w, wall_time, err);
}

pl_status pl_tensorboard_flush(pl_tensorboard *events, pl_error *err)
{
    if (events->used == 0)
        return PL_OK;
    /* not appended: a part that was written before a failure is replaced */
    pl_status status = pl_file_write_at(&events->file, events->buffer,
                                        events->used, events->size_bytes, err);
    if (status)
        return status;
    events->size_bytes += events->used;
    events->used = 0;
    return PL_OK;
}

/* A record waits in the buffer. */
static pl_status keep(pl_tensorboard *events, const message *m, pl_error *err)
{
    if (m->used > PL_TENSORBOARD_BUFFER_BYTES - events->used) {
        pl_status status = pl_tensorboard_flush(events, err);
        if (status)
            return status;
    }
    memcpy(events->buffer + events->used, m->bytes, m->used);
    events->used += m->used;
    return PL_OK;
}

pl_status pl_tensorboard_scalar(pl_tensorboard *events, const char *tag,
                                int64_t step, double wall_time, float value,
                                pl_error *err)
{
    message m;
    PL_CHECK(strlen(tag) < PL_TENSORBOARD_TAG_BYTES && step >= 0);
    put_scalar(&m, tag, step, wall_time, value);
    return keep(events, &m, err);
}

pl_status pl_tensorboard_text(pl_tensorboard *events, const char *tag,
                              int64_t step, double wall_time, const char *text,
                              size_t bytes, pl_error *err)
{
    message m;
    PL_CHECK(strlen(tag) < PL_TENSORBOARD_TAG_BYTES && step >= 0 &&
             bytes <= PL_TENSORBOARD_TEXT_BYTES);
    put_string(&m, tag, step, wall_time, text, bytes);
    return keep(events, &m, err);
}

pl_status pl_tensorboard_close(pl_tensorboard *events, pl_error *err)
{
    pl_status status = pl_tensorboard_flush(events, err);
    if (!status)
        status = pl_file_sync(&events->file, err);
    if (status) {
        pl_file_abandon(&events->file);
        return status;
    }
    return pl_file_close(&events->file, err);
}
