/* safetensors_write.c: the header is computed twice, once to know its length
 * and once to write it, so that it never has to be held. */
#include "base/check.h"
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
    pl_hash *hash; /* NULL: nobody asks */
} output;

static pl_status put(output *out, const void *data, size_t bytes, pl_error *err)
{
    if (out->hash)
        pl_hash_add(out->hash, data, bytes);
    return pl_file_append(&out->file, data, bytes, err);
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

static pl_status write_data(output *out, const pl_tensor_source *source,
                            void *slice, size_t slice_bytes, pl_error *err)
{
    pl_status status = PL_OK;
    uint64_t unsynced = 0;
    for (size_t i = 0; i < source->count && !status; i++) {
        pl_tensor_info info;
        if (!describe(source, i, &info))
            continue;
        uint64_t total = data_bytes(&info);
        for (uint64_t at = 0; at < total && !status;) {
            size_t bytes = total - at < slice_bytes ? (size_t)(total - at)
                                                    : slice_bytes;
            status = source->read(source->context, i, (size_t)at, slice, bytes,
                                  err);
            if (!status)
                status = put(out, slice, bytes, err);
            at += bytes;
            unsynced += bytes;
            if (!status && unsynced >= MOST_DIRTY_BYTES) {
                status = pl_file_sync(&out->file, err);
                pl_file_drop_cache(&out->file);
                unsynced = 0;
            }
        }
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
    status = write_header(&out, source, err);
    if (!status)
        status = write_data(&out, source, slice, slice_bytes, err);
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

pl_status pl_safetensors_write(const char *path, const pl_tensor_source *source,
                               void *slice, size_t slice_bytes, pl_error *err)
{
    return pl_safetensors_write_summed(path, source, slice, slice_bytes, NULL,
                                       err);
}
