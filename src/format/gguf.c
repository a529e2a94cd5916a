/* gguf.c: reading. Nothing is believed before it is checked against the file;
 * nothing is held but keys and the table of tensors. */
#include "format/gguf.h"
#include "base/check.h"
#include "base/units.h"
#include "base/utf8.h"
#include "format/gguf_cursor.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_ALIGN = 65536, MIN_INDEX = 16 };

static const struct {
    const char *name;
    size_t bytes; /* at least, for a text */
} types[PL_GGUF_TYPES] = {
    [PL_GGUF_U8] = { "u8", 1 },     [PL_GGUF_I8] = { "i8", 1 },
    [PL_GGUF_U16] = { "u16", 2 },   [PL_GGUF_I16] = { "i16", 2 },
    [PL_GGUF_U32] = { "u32", 4 },   [PL_GGUF_I32] = { "i32", 4 },
    [PL_GGUF_F32] = { "f32", 4 },   [PL_GGUF_BOOL] = { "bool", 1 },
    [PL_GGUF_TEXT] = { "text", 8 }, [PL_GGUF_ARRAY] = { "array", 12 },
    [PL_GGUF_U64] = { "u64", 8 },   [PL_GGUF_I64] = { "i64", 8 },
    [PL_GGUF_F64] = { "f64", 8 },
};

/* ---- keys ---- */

static void set_scalar(pl_gguf_key *key, uint64_t raw)
{
    uint32_t half = (uint32_t)raw;
    float single;
    switch (key->type) {
    case PL_GGUF_F32:
        memcpy(&single, &half, sizeof single);
        key->real = (double)single;
        break;
    case PL_GGUF_F64:
        memcpy(&key->real, &raw, sizeof key->real);
        break;
    case PL_GGUF_I8:
        key->whole = (int8_t)raw;
        break;
    case PL_GGUF_I16:
        key->whole = (int16_t)raw;
        break;
    case PL_GGUF_I32:
        key->whole = (int32_t)raw;
        break;
    default:
        key->whole = key->type == PL_GGUF_I64 || raw <= INT64_MAX ? (int64_t)raw
                                                                  : -1;
    }
}

static pl_status take_type(pl_gguf_cursor *c, const char *name,
                           pl_gguf_type *type, pl_error *err)
{
    uint64_t number = 0;
    pl_status status = pl_gguf_take_whole(c, 4, &number, err);
    if (!status && number >= PL_GGUF_TYPES)
        status = pl_fail(err, PL_E_FORMAT,
                         "%s: key %s has type %" PRIu64
                         ", types go from 0 to %d",
                         pl_gguf_shown(c), name, number, PL_GGUF_TYPES - 1);
    *type = (pl_gguf_type)number;
    return status;
}

/* Goes past an array's elements. */
static pl_status pass_array(pl_gguf_cursor *c, pl_gguf_key *key, pl_error *err)
{
    pl_status status = take_type(c, key->name, &key->element, err);
    if (!status)
        status = pl_gguf_take_whole(c, 8, &key->count, err);
    if (status)
        return status;
    if (key->element == PL_GGUF_ARRAY)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: key %s is an array of arrays, which isn't read",
                       pl_gguf_shown(c), key->name);
    if (key->count > (c->end - c->at) / types[key->element].bytes)
        return pl_fail(
            err, PL_E_FORMAT,
            "%s: key %s: an array of %" PRIu64
            " elements doesn't fit into the %s that the header has left",
            pl_gguf_shown(c), key->name, key->count,
            pl_units_exact(c->end - c->at).text);
    key->at = c->at;
    if (key->element != PL_GGUF_TEXT) {
        c->at += key->count * types[key->element].bytes;
        return PL_OK;
    }
    for (uint64_t i = 0; i < key->count && !status; i++) {
        uint64_t bytes = 0;
        status = pl_gguf_take_length(c, "a text of an array", &bytes, err);
        c->at += status ? 0 : bytes;
    }
    return status;
}

static pl_status take_value(pl_gguf_cursor *c, pl_gguf_key *key, pl_error *err)
{
    uint64_t raw = 0;
    pl_status status = take_type(c, key->name, &key->type, err);
    if (status)
        return status;
    if (key->type == PL_GGUF_ARRAY)
        return pass_array(c, key, err);
    if (key->type == PL_GGUF_TEXT) {
        status = pl_gguf_take_length(c, "a text", &key->count, err);
        key->at = c->at;
        c->at += status ? 0 : key->count;
        return status;
    }
    status = pl_gguf_take_whole(c, types[key->type].bytes, &raw, err);
    if (!status && key->type == PL_GGUF_BOOL && raw > 1)
        status = pl_fail(err, PL_E_FORMAT,
                         "%s: key %s: a bool is 0 or 1, not %" PRIu64,
                         pl_gguf_shown(c), key->name, raw);
    set_scalar(key, raw);
    return status;
}

static pl_status take_keys(pl_gguf *gguf, pl_gguf_cursor *c, uint64_t count,
                           pl_heap *heap, pl_error *err)
{
    char name[PL_GGUF_KEY_BYTES];
    pl_status status = pl_heap_take(heap, &gguf->keys, (size_t)count,
                                    sizeof *gguf->keys, err);
    for (uint64_t i = 0; i < count && !status; i++) {
        pl_gguf_key *key = &gguf->keys[i];
        status = pl_gguf_take_name(c, "a key", name, sizeof name, err);
        if (!status && pl_gguf_find_key(gguf, name))
            status = pl_fail(err, PL_E_FORMAT, "%s: key %s stands twice",
                             pl_gguf_shown(c), name);
        if (!status)
            status = pl_heap_text(heap, &key->name, name, strlen(name), err);
        if (!status)
            status = take_value(c, key, err);
        if (!status)
            gguf->key_count++;
    }
    return status;
}

/* ---- tensors ---- */

static size_t hash_name(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return (size_t)(hash ^ hash >> 32);
}

/* Where a name is in the index, or the free place where it belongs. */
static uint32_t *place_of(const pl_gguf *gguf, const char *name)
{
    size_t at = hash_name(name) & gguf->index_mask;
    while (gguf->index[at] &&
           strcmp(gguf->tensors[gguf->index[at] - 1].name, name) != 0)
        at = (at + 1) & gguf->index_mask;
    return &gguf->index[at];
}

static pl_status take_dims(pl_gguf_cursor *c, pl_gguf_tensor *t, pl_error *err)
{
    uint64_t rank = 0;
    pl_status status = pl_gguf_take_whole(c, 4, &rank, err);
    if (!status && (rank == 0 || rank > PL_GGUF_MAX_RANK))
        status = pl_fail(err, PL_E_FORMAT,
                         "%s: tensor %s has %" PRIu64
                         " dimensions, expected 1 to %d",
                         pl_gguf_shown(c), t->name, rank, PL_GGUF_MAX_RANK);
    t->rank = (size_t)rank;
    for (size_t i = 0; i < PL_GGUF_MAX_RANK && !status; i++) {
        t->dims[i] = 1;
        if (i < t->rank)
            status = pl_gguf_take_whole(c, 8, &t->dims[i], err);
        if (!status && (t->dims[i] == 0 || t->dims[i] > INT64_MAX))
            status = pl_fail(err, PL_E_FORMAT,
                             "%s: tensor %s: dimension %zu is %" PRId64
                             ", which is no size",
                             pl_gguf_shown(c), t->name, i, (int64_t)t->dims[i]);
    }
    return status;
}

static pl_status set_bytes(const pl_gguf_cursor *c, pl_gguf_tensor *t,
                           uint64_t type, pl_error *err)
{
    if (type > UINT32_MAX || !pl_ggml_type_known((uint32_t)type))
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: tensor %s is of ggml's type %" PRIu64
                       "; f32, f16, bf16 and q8_0 (0, 1, 30, 8) are read. "
                       "llama.cpp's llama-quantize converts: "
                       "llama-quantize --allow-requantize IN.gguf OUT.gguf f16",
                       pl_gguf_shown(c), t->name, type);
    t->type = (pl_ggml_type)type;
    size_t block = pl_ggml_type_block(t->type);
    if (t->dims[0] % block != 0)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: tensor %s has rows of %" PRIu64
                       " values, %s needs a multiple of %zu",
                       pl_gguf_shown(c), t->name, t->dims[0],
                       pl_ggml_type_name(t->type), block);
    t->bytes = t->dims[0] / block;
    int overflow = __builtin_mul_overflow(
        t->bytes, pl_ggml_type_block_bytes(t->type), &t->bytes);
    for (size_t i = 1; i < t->rank; i++)
        overflow |= __builtin_mul_overflow(t->bytes, t->dims[i], &t->bytes);
    if (overflow || t->bytes > INT64_MAX)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: tensor %s has more bytes than can be counted",
                       pl_gguf_shown(c), t->name);
    return PL_OK;
}

static pl_status take_tensor(pl_gguf *gguf, pl_gguf_cursor *c,
                             pl_gguf_tensor *t, pl_error *err)
{
    uint64_t type = 0;
    pl_status status = pl_gguf_take_name(c, "a tensor", t->name, sizeof t->name,
                                         err);
    if (status)
        return status;
    uint32_t *place = place_of(gguf, t->name);
    if (*place)
        return pl_fail(err, PL_E_FORMAT, "%s: tensor %s stands twice",
                       pl_gguf_shown(c), t->name);
    *place = (uint32_t)(t - gguf->tensors) + 1;
    status = take_dims(c, t, err);
    if (!status)
        status = pl_gguf_take_whole(c, 4, &type, err);
    if (!status)
        status = set_bytes(c, t, type, err);
    if (!status)
        status = pl_gguf_take_whole(c, 8, &t->offset, err);
    return status;
}

static pl_status take_tensors(pl_gguf *gguf, pl_gguf_cursor *c, uint64_t count,
                              pl_heap *heap, pl_error *err)
{
    size_t slots = MIN_INDEX;
    while (slots < 2 * (size_t)count)
        slots *= 2;
    gguf->index_mask = slots - 1;
    pl_status status = pl_heap_take(heap, &gguf->index, slots,
                                    sizeof *gguf->index, err);
    if (!status)
        status = pl_heap_take(heap, &gguf->tensors, (size_t)count,
                              sizeof *gguf->tensors, err);
    for (uint64_t i = 0; i < count && !status; i++)
        status = take_tensor(gguf, c, &gguf->tensors[i], err);
    if (!status)
        gguf->tensor_count = (size_t)count;
    return status;
}

static pl_status alignment(const pl_gguf *gguf, uint64_t *align, pl_error *err)
{
    int64_t value = PL_GGUF_ALIGN;
    if (pl_gguf_find_key(gguf, "general.alignment")) {
        pl_status status = pl_gguf_want_whole(gguf, "general.alignment", 1,
                                              MAX_ALIGN, &value, err);
        if (status)
            return status;
    }
    if (value & (value - 1))
        return pl_fail(err, PL_E_FORMAT,
                       "%s: general.alignment is %" PRId64
                       ", expected a power of two",
                       pl_path_shown(gguf->file.path), value);
    *align = (uint64_t)value;
    return PL_OK;
}

/* Each tensor begins where the one before it ended, as ggml demands too: none
 * can overlap another or lie outside of the file. */
static pl_status check_places(pl_gguf *gguf, uint64_t header_end, pl_error *err)
{
    uint64_t align = 1, at = 0, size = pl_file_size(&gguf->file);
    const char *path = pl_path_shown(gguf->file.path);
    pl_status status = alignment(gguf, &align, err);
    if (status)
        return status;
    gguf->data_at = (header_end + align - 1) / align * align;
    uint64_t room = size > gguf->data_at ? size - gguf->data_at : 0;
    for (size_t i = 0; i < gguf->tensor_count; i++) {
        const pl_gguf_tensor *t = &gguf->tensors[i];
        if (t->offset != at)
            return pl_fail(err, PL_E_FORMAT,
                           "%s: tensor %s begins at byte %" PRIu64
                           " of the data, expected %" PRIu64
                           ": tensors overlap or leave a hole",
                           path, t->name, t->offset, at);
        if (at > room || t->bytes > room - at)
            return pl_fail(err, PL_E_FORMAT,
                           "%s: tensor %s needs %s from byte %" PRIu64
                           " on, the data has %s: the file is cut short or its "
                           "header is wrong",
                           path, t->name, pl_units_exact(t->bytes).text, at,
                           pl_units_exact(room).text);
        at = (at + t->bytes + align - 1) / align * align;
    }
    return PL_OK;
}

/* ---- the file ---- */

static pl_status take_head(pl_gguf_cursor *c, uint64_t *tensors, uint64_t *keys,
                           pl_error *err)
{
    char magic[4];
    uint64_t version = 0;
    pl_status status = PL_OK;
    if (c->end < 24)
        return pl_fail(err, PL_E_FORMAT, "%s: not a GGUF file: it has %s",
                       pl_gguf_shown(c), pl_units_exact(c->end).text);
    status = pl_gguf_take(c, magic, sizeof magic, err);
    if (!status && memcmp(magic, "GGUF", 4) != 0)
        status = pl_fail(err, PL_E_FORMAT,
                         "%s: not a GGUF file: it doesn't begin with \"GGUF\"",
                         pl_gguf_shown(c));
    if (!status)
        status = pl_gguf_take_whole(c, 4, &version, err);
    if (!status && version != 2 && version != 3)
        status = pl_fail(
            err, PL_E_UNSUPPORTED, "%s: %s %" PRIu64 "; 2 and 3 are read",
            pl_gguf_shown(c),
            version && !(version & 0xffff) ? "big-endian, or of GGUF version"
                                           : "of GGUF version",
            version);
    if (!status)
        status = pl_gguf_take_whole(c, 8, tensors, err);
    if (!status)
        status = pl_gguf_take_whole(c, 8, keys, err);
    if (!status && (*tensors > PL_GGUF_MAX_TENSORS || *keys > PL_GGUF_MAX_KEYS))
        status = pl_fail(err, PL_E_FORMAT,
                         "%s: %" PRIu64 " tensors and %" PRIu64
                         " keys; up to %d and %d are read",
                         pl_gguf_shown(c), *tensors, *keys, PL_GGUF_MAX_TENSORS,
                         PL_GGUF_MAX_KEYS);
    return status;
}

pl_status pl_gguf_open(pl_gguf *gguf, const char *path, pl_heap *heap,
                       pl_error *err)
{
    uint64_t tensors = 0, keys = 0;
    *gguf = (pl_gguf){ .file = PL_FILE_CLOSED };
    pl_status status = pl_file_open_read(&gguf->file, path, err);
    if (status)
        return status;
    status = pl_heap_take(heap, &gguf->buffer, PL_GGUF_BUFFER_BYTES, 1, err);
    uint64_t size = pl_file_size(&gguf->file);
    pl_gguf_cursor c = {
        .file = &gguf->file,
        .buffer = gguf->buffer,
        .end = size < PL_GGUF_MAX_HEADER ? size : PL_GGUF_MAX_HEADER,
    };
    if (!status)
        status = take_head(&c, &tensors, &keys, err);
    if (!status)
        status = take_keys(gguf, &c, keys, heap, err);
    if (!status)
        status = take_tensors(gguf, &c, tensors, heap, err);
    if (!status)
        status = check_places(gguf, c.at, err);
    if (status)
        pl_gguf_close(gguf);
    return status;
}

void pl_gguf_close(pl_gguf *gguf)
{
    pl_file_abandon(&gguf->file);
}

const pl_gguf_key *pl_gguf_find_key(const pl_gguf *gguf, const char *name)
{
    for (size_t i = 0; i < gguf->key_count; i++)
        if (strcmp(gguf->keys[i].name, name) == 0)
            return &gguf->keys[i];
    return NULL;
}

const pl_gguf_tensor *pl_gguf_find(const pl_gguf *gguf, const char *name)
{
    uint32_t place = *place_of(gguf, name);
    return place ? &gguf->tensors[place - 1] : NULL;
}

pl_status pl_gguf_read(const pl_gguf *gguf, const pl_gguf_tensor *tensor,
                       uint64_t at, void *out, size_t bytes, pl_error *err)
{
    PL_CHECK(at <= tensor->bytes && bytes <= tensor->bytes - at);
    return pl_file_pread_exact(&gguf->file, out, bytes,
                               gguf->data_at + tensor->offset + at, err);
}

/* ---- what keys say ---- */

static pl_status wrong_key(const pl_gguf *gguf, const char *name,
                           const char *wanted, pl_error *err)
{
    const pl_gguf_key *key = pl_gguf_find_key(gguf, name);
    if (!key)
        return pl_fail(err, PL_E_FORMAT, "%s: key %s is missing, expected %s",
                       pl_path_shown(gguf->file.path), name, wanted);
    return pl_fail(err, PL_E_FORMAT, "%s: key %s is of type %s, expected %s",
                   pl_path_shown(gguf->file.path), name, types[key->type].name,
                   wanted);
}

pl_status pl_gguf_want_whole(const pl_gguf *gguf, const char *name, int64_t min,
                             int64_t max, int64_t *out, pl_error *err)
{
    const pl_gguf_key *key = pl_gguf_find_key(gguf, name);
    if (!key || key->type == PL_GGUF_F32 || key->type == PL_GGUF_F64 ||
        key->type == PL_GGUF_BOOL || key->type == PL_GGUF_TEXT ||
        key->type == PL_GGUF_ARRAY)
        return wrong_key(gguf, name, "a whole number", err);
    if (key->whole < min || key->whole > max)
        return pl_fail(
            err, PL_E_FORMAT,
            "%s: key %s is %" PRId64 ", expected %" PRId64 " to %" PRId64,
            pl_path_shown(gguf->file.path), name, key->whole, min, max);
    *out = key->whole;
    return PL_OK;
}

pl_status pl_gguf_want_text(const pl_gguf *gguf, const char *name, char *out,
                            size_t capacity, pl_error *err)
{
    const pl_gguf_key *key = pl_gguf_find_key(gguf, name);
    if (!key || key->type != PL_GGUF_TEXT)
        return wrong_key(gguf, name, "a text", err);
    if (key->count >= capacity)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: key %s has %s, expected at most %zu",
                       pl_path_shown(gguf->file.path), name,
                       pl_units_exact(key->count).text, capacity - 1);
    out[key->count] = '\0';
    pl_status status = pl_file_pread_exact(&gguf->file, out, (size_t)key->count,
                                           key->at, err);
    if (!status &&
        pl_utf8_text_bytes(out, (size_t)key->count) != (size_t)key->count)
        status = pl_fail(err, PL_E_FORMAT, "%s: key %s is not valid UTF-8 text",
                         pl_path_shown(gguf->file.path), name);
    return status;
}

pl_status pl_gguf_walk_begin(pl_gguf_walk *walk, const pl_gguf *gguf,
                             const char *name, pl_gguf_type element,
                             pl_error *err)
{
    const pl_gguf_key *key = pl_gguf_find_key(gguf, name);
    if (!key || key->type != PL_GGUF_ARRAY)
        return wrong_key(gguf, name, "an array", err);
    if (key->element != element)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: key %s is an array of %s, expected one of %s",
                       pl_path_shown(gguf->file.path), name,
                       types[key->element].name, types[element].name);
    *walk = (pl_gguf_walk){
        .key = key,
        .cursor = { .file = &gguf->file,
                    .buffer = gguf->buffer,
                    .at = key->at,
                    .end = gguf->data_at < pl_file_size(&gguf->file)
                               ? gguf->data_at
                               : pl_file_size(&gguf->file) },
        .left = key->count,
    };
    return PL_OK;
}

pl_status pl_gguf_walk_text(pl_gguf_walk *walk, char *out, size_t capacity,
                            size_t *bytes, pl_error *err)
{
    uint64_t length = 0;
    PL_CHECK(walk->left > 0 && walk->key->element == PL_GGUF_TEXT);
    pl_status status = pl_gguf_take_length(&walk->cursor, "a text of an array",
                                           &length, err);
    if (!status && length >= capacity)
        status = pl_fail(err, PL_E_FORMAT,
                         "%s: key %s: element %" PRIu64
                         " has %s, expected at most %zu",
                         pl_gguf_shown(&walk->cursor), walk->key->name,
                         walk->key->count - walk->left,
                         pl_units_exact(length).text, capacity - 1);
    if (!status)
        status = pl_gguf_take(&walk->cursor, out, (size_t)length, err);
    if (status)
        return status;
    out[length] = '\0';
    *bytes = (size_t)length;
    walk->left--;
    return PL_OK;
}

pl_status pl_gguf_walk_i32(pl_gguf_walk *walk, int32_t *out, pl_error *err)
{
    uint64_t raw = 0;
    PL_CHECK(walk->left > 0 && walk->key->element == PL_GGUF_I32);
    pl_status status = pl_gguf_take_whole(&walk->cursor, 4, &raw, err);
    *out = (int32_t)(uint32_t)raw;
    walk->left--;
    return status;
}
