/* safetensors_write.c: the header is computed twice, once to know its length
 * and once to write it, so that it never has to be held. */
#include "base/check.h"
#include "base/units.h"
#include "format/safetensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    ENTRY_BYTES = 512,
    MOST_DIRTY_BYTES = 64 * 1024 * 1024, /* that wait for the disk in memory */
};

static const char head[] = "{\"__metadata__\":{\"format\":\"pt\"}";

static uint64_t data_bytes(const pl_tensor_info *info)
{
    uint64_t bytes = pl_tensor_dtype_bytes(info->dtype);
    for (size_t i = 0; i < info->rank; i++)
        bytes *= info->dims[i];
    return bytes;
}

/* Whether there is a tensor i. */
static int describe(const pl_tensor_source *source, size_t i,
                    pl_tensor_info *info)
{
    *info = (pl_tensor_info){ 0 };
    source->describe(source->context, i, info);
    PL_CHECK(info->rank <= PL_TENSOR_MAX_RANK);
    return info->rank > 0;
}

/* ,"name":{...} with the tensor's place; returns its length. */
static size_t entry(char text[ENTRY_BYTES], const pl_tensor_info *info,
                    uint64_t begin)
{
    char dims[PL_TENSOR_MAX_RANK * 24];
    size_t at = 0;
    for (size_t i = 0; i < info->rank; i++)
        at += (size_t)snprintf(dims + at, sizeof dims - at, "%s%zu",
                               i ? "," : "", info->dims[i]);
    int used = snprintf(text, ENTRY_BYTES,
                        ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],"
                        "\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                        info->name, pl_tensor_dtype_name(info->dtype), dims,
                        begin, begin + data_bytes(info));
    PL_CHECK(used > 0 && used < ENTRY_BYTES);
    return (size_t)used;
}

/* What is written, and the sum of it. */
typedef struct output {
    pl_file file;
    pl_hash *hash;  /* NULL: nobody asks */
    uint64_t place; /* in the file */
    uint64_t unsynced, written;
} output;

static pl_status put(output *out, const void *data, size_t bytes, pl_error *err)
{
    if (out->hash)
        pl_hash_add(out->hash, data, bytes);
    pl_status status = pl_file_write_at(&out->file, data, bytes, out->place,
                                        err);
    out->place += bytes;
    out->written += bytes;
    out->unsynced += bytes;
    if (!status && out->unsynced >= MOST_DIRTY_BYTES) {
        status = pl_file_sync(&out->file, err);
        pl_file_drop_cache(&out->file);
        out->unsynced = 0;
    }
    return status;
}

typedef struct sizes {
    uint64_t header, padded, data;
} sizes;

static sizes measure(const pl_tensor_source *source)
{
    sizes total = { .header = sizeof head - 1 + 1 }; /* with the last brace */
    char text[ENTRY_BYTES];
    for (size_t i = 0; i < source->count; i++) {
        pl_tensor_info info;
        if (!describe(source, i, &info))
            continue;
        total.header += entry(text, &info, total.data);
        total.data += data_bytes(&info);
    }
    total.padded = (total.header + 7) / 8 * 8;
    return total;
}

uint64_t pl_safetensors_size(const pl_tensor_source *source)
{
    sizes total = measure(source);
    return 8 + total.padded + total.data;
}

static pl_status write_header(output *out, const pl_tensor_source *source,
                              pl_error *err)
{
    sizes total = measure(source);
    unsigned char length[8];
    char text[ENTRY_BYTES];
    uint64_t begin = 0;

    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(total.padded >> (8 * i));
    pl_status status = put(out, length, sizeof length, err);
    if (!status)
        status = put(out, head, sizeof head - 1, err);
    for (size_t i = 0; i < source->count && !status; i++) {
        pl_tensor_info info;
        if (!describe(source, i, &info))
            continue;
        status = put(out, text, entry(text, &info, begin), err);
        begin += data_bytes(&info);
    }
    size_t rest = (size_t)(total.padded - total.header) + 1;
    memset(text, ' ', sizeof text);
    text[0] = '}';
    if (!status)
        status = put(out, text, rest, err);
    return status;
}

/* What data goes through on its way. */
typedef struct window {
    void *slice;
    size_t bytes;
} window;

/* Bytes [at, end) of tensor i, which this process has. */
static pl_status write_part(output *out, const pl_tensor_source *source,
                            size_t i, uint64_t at, uint64_t end, window w,
                            pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t bytes; at < end && !status; at += bytes) {
        bytes = end - at < w.bytes ? (size_t)(end - at) : w.bytes;
        status = source->read(source->context, i, (size_t)at, w.slice, bytes,
                              err);
        if (!status)
            status = put(out, w.slice, bytes, err);
    }
    return status;
}

static pl_status write_tensor(output *out, const pl_tensor_source *source,
                              size_t i, uint64_t total, window w, pl_error *err)
{
    pl_status status = PL_OK;
    for (uint64_t at = 0, end; at < total && !status; at = end) {
        pl_tensor_part part = { total - at, source->writer };
        if (source->part)
            part = source->part(source->context, i, at, out->place);
        PL_CHECK(part.bytes > 0 && part.bytes <= total - at);
        end = at + part.bytes;
        if (part.writer == source->writer) {
            status = write_part(out, source, i, at, end, w, err);
            continue;
        }
        if (out->hash)
            status = source->sum(source->context, i, (size_t)at, &part,
                                 out->hash, err);
        out->place += part.bytes;
    }
    return status;
}

static pl_status write_data(output *out, const pl_tensor_source *source,
                            window w, pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t i = 0; i < source->count && !status; i++) {
        pl_tensor_info info;
        if (describe(source, i, &info))
            status = write_tensor(out, source, i, data_bytes(&info), w, err);
    }
    return status;
}

pl_status pl_safetensors_write_summed(const char *path,
                                      const pl_tensor_source *source,
                                      void *slice, size_t slice_bytes,
                                      pl_hash *hash, pl_error *err)
{
    output out = { .file = PL_FILE_CLOSED, .hash = hash };
    PL_CHECK(slice_bytes > 0);
    pl_status status = pl_file_create(&out.file, path, err);
    if (status)
        return status;
    if (source->part) /* so that what is empty counts at its end, too */
        status = pl_file_resize(&out.file, pl_safetensors_size(source), err);
    if (!status)
        status = write_header(&out, source, err);
    if (!status)
        status = write_data(&out, source, (window){ slice, slice_bytes }, err);
    if (!status)
        status = pl_file_sync(&out.file, err);
    if (status) {
        pl_file_discard(&out.file);
        return status;
    }
    pl_file_drop_cache(&out.file);
    status = pl_file_close(&out.file, err);
    if (status)
        pl_file_remove_quietly(path);
    return status;
}

pl_status pl_safetensors_fill(const char *path, const pl_tensor_source *source,
                              void *slice, size_t slice_bytes, uint64_t *bytes,
                              pl_error *err)
{
    output out = { .file = PL_FILE_CLOSED };
    PL_CHECK(slice_bytes > 0);
    const sizes total = measure(source);
    const uint64_t size = 8 + total.padded + total.data;
    out.place = 8 + total.padded;
    pl_status status = pl_file_open_shared(&out.file, path, err);
    if (status)
        return status;
    if (pl_file_size(&out.file) != size)
        status = pl_fail(
            err, PL_E_IO,
            "%s: expected %s, found %s: another process of the run "
            "should have made it",
            pl_path_shown(path), pl_units_exact(size).text,
            pl_units_exact(pl_file_size(&out.file)).text);
    if (!status)
        status = write_data(&out, source, (window){ slice, slice_bytes }, err);
    if (!status)
        status = pl_file_sync(&out.file, err);
    *bytes = out.written;
    if (status) {
        pl_file_abandon(&out.file);
        return status;
    }
    pl_file_drop_cache(&out.file);
    return pl_file_close(&out.file, err);
}

pl_status pl_safetensors_write(const char *path, const pl_tensor_source *source,
                               void *slice, size_t slice_bytes, pl_error *err)
{
    return pl_safetensors_write_summed(path, source, slice, slice_bytes, NULL,
                                       err);
}
