/* safetensors.c: reading. Nothing of the header is believed before it is
 * checked against the file. */
#include "format/safetensors.h"
#include "base/check.h"
#include "base/json.h"
#include "base/units.h"

#include <inttypes.h>
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
    [PL_TENSOR_F32] = { "F32", 4 }, [PL_TENSOR_F64] = { "F64", 8 },
    [PL_TENSOR_F16] = { "F16", 2 }, [PL_TENSOR_BF16] = { "BF16", 2 },
    [PL_TENSOR_I32] = { "I32", 4 }, [PL_TENSOR_I64] = { "I64", 8 },
    [PL_TENSOR_U8] = { "U8", 1 },   [PL_TENSOR_BOOL] = { "BOOL", 1 },
};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

const char *pl_tensor_dtype_name(pl_tensor_dtype dtype)
{
    return dtypes[dtype].name;
}

size_t pl_tensor_dtype_bytes(pl_tensor_dtype dtype)
{
    return dtypes[dtype].bytes;
}

static pl_status read_dtype(pl_tensor_info *info, const json_t *entry,
                            const char *path, pl_error *err)
{
    const json_t *value = json_object_get(entry, "dtype");
    const char *text = json_string_value(value);
    size_t bytes = json_string_length(value); /* there may be zeros in it */
    for (int i = 0; text && i < DTYPES; i++)
        if (bytes == strlen(dtypes[i].name) &&
            memcmp(text, dtypes[i].name, bytes) == 0) {
            info->dtype = (pl_tensor_dtype)i;
            return PL_OK;
        }
    return pl_fail(err, PL_E_FORMAT,
                   text ? "%s: tensor %s: dtype is \"%s\", expected one of F32 "
                          "F64 F16 BF16 I32 I64 U8 BOOL"
                        : "%s: tensor %s: dtype is %s, expected one of F32 F64 "
                          "F16 BF16 I32 I64 U8 BOOL",
                   path, info->name, text ? text : "missing");
}

/* A whole number >= 0 that fits; anything else is a lie. */
static int whole(const json_t *value, uint64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return 0;
    *out = (uint64_t)json_integer_value(value);
    return 1;
}

static pl_status read_shape(pl_tensor_info *info, const json_t *entry,
                            const char *path, pl_error *err)
{
    const json_t *shape = json_object_get(entry, "shape");
    uint64_t bytes = dtypes[info->dtype].bytes;

    if (!json_is_array(shape) || json_array_size(shape) > PL_TENSOR_MAX_RANK)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: tensor %s: shape must be a list of at most %d "
                       "numbers",
                       path, info->name, PL_TENSOR_MAX_RANK);
    info->rank = json_array_size(shape);
    for (size_t i = 0; i < info->rank; i++) {
        uint64_t dim;
        if (!whole(json_array_get(shape, i), &dim) ||
            __builtin_mul_overflow(bytes, dim, &bytes))
            return pl_fail(err, PL_E_FORMAT,
                           "%s: tensor %s: dimension %zu of its shape is not "
                           "a size",
                           path, info->name, i);
        info->dims[i] = (size_t)dim;
    }
    info->bytes = bytes;
    return PL_OK;
}

static pl_status read_offsets(pl_tensor_info *info, const json_t *entry,
                              uint64_t data_bytes, const char *path,
                              pl_error *err)
{
    const json_t *offsets = json_object_get(entry, "data_offsets");
    uint64_t begin, end;

    if (!json_is_array(offsets) || json_array_size(offsets) != 2 ||
        !whole(json_array_get(offsets, 0), &begin) ||
        !whole(json_array_get(offsets, 1), &end) || begin > end)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: tensor %s: data_offsets must be [begin, end]", path,
                       info->name);
    if (end - begin != info->bytes)
        return pl_fail(
            err, PL_E_FORMAT,
            "%s: tensor %s: its shape needs %s, its data_offsets give %s", path,
            info->name, pl_units_exact(info->bytes).text,
            pl_units_exact(end - begin).text);
    if (end > data_bytes)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: tensor %s ends at byte %" PRIu64
                       " of %s of data: the file is cut short "
                       "or its header is wrong",
                       path, info->name, end, pl_units_exact(data_bytes).text);
    info->offset = begin;
    return PL_OK;
}

static pl_status read_entry(pl_tensor_info *info, const char *name,
                            const json_t *entry, uint64_t data_bytes,
                            const char *path, pl_error *err)
{
    if (strlen(name) >= PL_TENSOR_NAME_BYTES)
        return pl_fail(
            err, PL_E_FORMAT, "%s: a tensor's name has %s, expected at most %d",
            path, pl_units_exact(strlen(name)).text, PL_TENSOR_NAME_BYTES - 1);
    memcpy(info->name, name, strlen(name) + 1);
    pl_status status = read_dtype(info, entry, path, err);
    if (!status)
        status = read_shape(info, entry, path, err);
    if (!status)
        status = read_offsets(info, entry, data_bytes, path, err);
    return status;
}

/* By the place of their data. Shell's sort: one pass over the file per gap
 * where it was written in order, and never more than about n^1.5 moves, so
 * that no file can keep us busy. */
static void sort_by_offset(pl_tensor_info *tensors, size_t count)
{
    size_t gap = 1;
    while (gap < count / 3)
        gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3)
        for (size_t i = gap; i < count; i++) {
            pl_tensor_info moved = tensors[i];
            size_t slot = i;
            for (; slot >= gap && tensors[slot - gap].offset > moved.offset;
                 slot -= gap)
                tensors[slot] = tensors[slot - gap];
            tensors[slot] = moved;
        }
}

/* Tensors in the order of their data must touch, from 0 to the end. */
static pl_status check_holes(const pl_safetensors *st, const char *path,
                             uint64_t data_bytes, pl_error *err)
{
    uint64_t at = 0;
    for (size_t i = 0; i < st->count; i++) {
        const pl_tensor_info *info = &st->tensors[i];
        if (info->offset != at && info->bytes > 0)
            return pl_fail(err, PL_E_FORMAT,
                           "%s: tensor %s begins at byte %" PRIu64
                           " of the data, expected %" PRIu64
                           ": tensors overlap or leave a hole",
                           path, info->name, info->offset, at);
        at += info->bytes;
    }
    if (at != data_bytes)
        return pl_fail(
            err, PL_E_FORMAT, "%s: the tensors cover %s, the file has %s", path,
            pl_units_exact(at).text, pl_units_exact(data_bytes).text);
    return PL_OK;
}

static pl_status read_entries(pl_safetensors *st, json_t *root,
                              uint64_t data_bytes, pl_heap *heap, pl_error *err)
{
    const char *name;
    json_t *entry;
    size_t count = json_object_size(root);
    const char *path = pl_path_shown(st->file.path);

    if (count > PL_TENSOR_MAX_COUNT)
        return pl_fail(err, PL_E_FORMAT, "%s: %zu tensors, at most %d are read",
                       path, count, PL_TENSOR_MAX_COUNT);
    pl_status status = pl_heap_take(heap, &st->tensors, count,
                                    sizeof *st->tensors, err);
    if (status)
        return status;
    json_object_foreach(root, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0)
            continue;
        status = read_entry(&st->tensors[st->count], name, entry, data_bytes,
                            path, err);
        if (status)
            return status;
        st->count++;
    }
    sort_by_offset(st->tensors, st->count);
    return check_holes(st, path, data_bytes, err);
}

/* The header's length, believed only if the file can hold it. */
static pl_status header_bytes(const pl_file *file, uint64_t *out, pl_error *err)
{
    unsigned char length[8];
    uint64_t bytes = 0;
    pl_status status = pl_file_pread_exact(file, length, sizeof length, 0, err);
    if (status)
        return status;
    for (int i = 0; i < 8; i++)
        bytes |= (uint64_t)length[i] << (8 * i);
    if (bytes < 2 || bytes > PL_SAFETENSORS_MAX_HEADER ||
        bytes > pl_file_size(file) - 8)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: not a safetensors file: its header would have "
                       "%s (the file has %s, headers of up to %s are read)",
                       pl_path_shown(file->path), pl_units_exact(bytes).text,
                       pl_units_exact(pl_file_size(file)).text,
                       pl_units_exact(PL_SAFETENSORS_MAX_HEADER).text);
    *out = bytes;
    return PL_OK;
}

pl_status pl_safetensors_open(pl_safetensors *st, const char *path,
                              pl_heap *heap, pl_error *err)
{
    uint64_t bytes = 0;
    char *text = NULL;
    json_t *root = NULL;

    *st = (pl_safetensors){ .file = PL_FILE_CLOSED };
    pl_status status = pl_file_open_read(&st->file, path, err);
    if (status)
        return status;
    status = header_bytes(&st->file, &bytes, err);
    if (!status)
        status = pl_heap_take(heap, &text, (size_t)bytes, 1, err);
    if (!status)
        status = pl_file_pread_exact(&st->file, text, (size_t)bytes, 8, err);
    if (!status && text[0] != '{')
        status = pl_fail(err, PL_E_FORMAT,
                         "%s: not a safetensors file: its header does not "
                         "begin with '{'",
                         pl_path_shown(path));
    if (!status)
        status = pl_json_parse(text, (size_t)bytes, pl_path_shown(path), &root,
                               err);
    if (!status) {
        st->data_at = 8 + bytes;
        status = read_entries(st, root, pl_file_size(&st->file) - st->data_at,
                              heap, err);
    }
    json_decref(root);
    if (status)
        pl_safetensors_close(st);
    return status;
}

void pl_safetensors_close(pl_safetensors *st)
{
    pl_file_abandon(&st->file);
}

const pl_tensor_info *pl_safetensors_find(const pl_safetensors *st,
                                          const char *name)
{
    for (size_t i = 0; i < st->count; i++)
        if (strcmp(st->tensors[i].name, name) == 0)
            return &st->tensors[i];
    return NULL;
}

pl_status pl_safetensors_read(const pl_safetensors *st,
                              const pl_tensor_info *info, uint64_t at,
                              void *out, size_t bytes, pl_error *err)
{
    PL_CHECK(at <= info->bytes && bytes <= info->bytes - at);
    return pl_file_pread_exact(&st->file, out, bytes,
                               st->data_at + info->offset + at, err);
}
