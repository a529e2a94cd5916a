/* gguf_write.c: writing. The counts in the header are set last; until then the
 * file says that it has none. */
#include "base/check.h"
#include "format/gguf.h"

#include <string.h>

enum {
    VERSION = 3,
    COUNTS_AT = 8,
    MOST_DIRTY_BYTES = 64 * 1024 * 1024, /* that wait for the disk in memory */
};

/* ---- bytes ---- */

static void flush(pl_gguf_writer *w)
{
    if (!w->status && w->used)
        w->status = pl_file_append(&w->file, w->buffer, w->used, &w->err);
    w->used = 0;
}

static void put(pl_gguf_writer *w, const void *data, size_t bytes)
{
    const unsigned char *from = data;
    w->written += bytes;
    while (bytes > 0) {
        size_t room = PL_GGUF_BUFFER_BYTES - w->used;
        size_t some = bytes < room ? bytes : room;
        memcpy(w->buffer + w->used, from, some);
        w->used += some;
        from += some;
        bytes -= some;
        if (w->used == PL_GGUF_BUFFER_BYTES)
            flush(w);
    }
}

static void put_whole(pl_gguf_writer *w, uint64_t value, size_t bytes)
{
    unsigned char raw[8];
    for (size_t i = 0; i < bytes; i++)
        raw[i] = (unsigned char)(value >> (8 * i));
    put(w, raw, bytes);
}

static void put_string(pl_gguf_writer *w, const char *text, size_t bytes)
{
    put_whole(w, bytes, 8);
    put(w, text, bytes);
}

static uint64_t padded(uint64_t bytes)
{
    return (bytes + PL_GGUF_ALIGN - 1) / PL_GGUF_ALIGN * PL_GGUF_ALIGN;
}

static void pad(pl_gguf_writer *w)
{
    static const unsigned char zeros[PL_GGUF_ALIGN] = { 0 };
    put(w, zeros, (size_t)(padded(w->written) - w->written));
}

static pl_status told(const pl_gguf_writer *w, pl_error *err)
{
    if (w->status && err)
        *err = w->err;
    return w->status;
}

/* ---- keys ---- */

pl_status pl_gguf_begin(pl_gguf_writer *writer, const char *path, void *buffer,
                        pl_error *err)
{
    *writer = (pl_gguf_writer){ .file = PL_FILE_CLOSED, .buffer = buffer };
    pl_status status = pl_file_create(&writer->file, path, err);
    if (status)
        return status;
    put(writer, "GGUF", 4);
    put_whole(writer, VERSION, 4);
    put_whole(writer, 0, 8);
    put_whole(writer, 0, 8);
    return PL_OK;
}

static void put_key(pl_gguf_writer *w, const char *key, pl_gguf_type type)
{
    PL_CHECK(w->due == 0 && w->tensors == 0);
    PL_CHECK(strlen(key) < PL_GGUF_KEY_BYTES);
    put_string(w, key, strlen(key));
    put_whole(w, type, 4);
    w->keys++;
}

void pl_gguf_put_u32(pl_gguf_writer *writer, const char *key, uint32_t value)
{
    put_key(writer, key, PL_GGUF_U32);
    put_whole(writer, value, 4);
}

void pl_gguf_put_f32(pl_gguf_writer *writer, const char *key, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(writer, key, PL_GGUF_F32);
    put_whole(writer, bits, 4);
}

void pl_gguf_put_bool(pl_gguf_writer *writer, const char *key, int value)
{
    put_key(writer, key, PL_GGUF_BOOL);
    put_whole(writer, value != 0, 1);
}

void pl_gguf_put_text(pl_gguf_writer *writer, const char *key, const char *text)
{
    put_key(writer, key, PL_GGUF_TEXT);
    put_string(writer, text, strlen(text));
}

void pl_gguf_put_array(pl_gguf_writer *writer, const char *key,
                       pl_gguf_type element, uint64_t count)
{
    PL_CHECK(element == PL_GGUF_TEXT || element == PL_GGUF_I32);
    put_key(writer, key, PL_GGUF_ARRAY);
    put_whole(writer, element, 4);
    put_whole(writer, count, 8);
    writer->due = count;
}

void pl_gguf_element_text(pl_gguf_writer *writer, const char *text,
                          size_t bytes)
{
    PL_CHECK(writer->due > 0);
    writer->due--;
    put_string(writer, text, bytes);
}

void pl_gguf_element_i32(pl_gguf_writer *writer, int32_t value)
{
    PL_CHECK(writer->due > 0);
    writer->due--;
    put_whole(writer, (uint32_t)value, 4);
}

/* ---- tensors ---- */

void pl_gguf_put_tensor(pl_gguf_writer *writer, pl_gguf_tensor *tensor)
{
    size_t block = pl_ggml_type_block(tensor->type);
    PL_CHECK(writer->due == 0 && writer->data_at == 0);
    PL_CHECK(tensor->rank > 0 && tensor->rank <= PL_GGUF_MAX_RANK);
    PL_CHECK(tensor->dims[0] % block == 0);
    tensor->bytes = tensor->dims[0] / block *
                    pl_ggml_type_block_bytes(tensor->type);
    for (size_t i = 1; i < tensor->rank; i++)
        tensor->bytes *= tensor->dims[i];
    tensor->offset = writer->planned;
    writer->planned += padded(tensor->bytes);
    put_string(writer, tensor->name, strlen(tensor->name));
    put_whole(writer, tensor->rank, 4);
    for (size_t i = 0; i < tensor->rank; i++)
        put_whole(writer, tensor->dims[i], 8);
    put_whole(writer, (uint64_t)tensor->type, 4);
    put_whole(writer, tensor->offset, 8);
    writer->tensors++;
}

pl_status pl_gguf_data(pl_gguf_writer *writer, const pl_gguf_tensor *tensor,
                       uint64_t at, const void *data, size_t bytes,
                       pl_error *err)
{
    if (writer->data_at == 0) {
        pad(writer);
        writer->data_at = writer->written;
    }
    PL_CHECK(writer->written == writer->data_at + tensor->offset + at);
    PL_CHECK(bytes <= tensor->bytes - at);
    flush(writer);
    if (!writer->status)
        writer->status = pl_file_append(&writer->file, data, bytes,
                                        &writer->err);
    writer->written += bytes;
    writer->unsynced += bytes;
    if (at + bytes == tensor->bytes)
        pad(writer);
    if (!writer->status && writer->unsynced >= MOST_DIRTY_BYTES) {
        writer->status = pl_file_sync(&writer->file, &writer->err);
        pl_file_drop_cache(&writer->file);
        writer->unsynced = 0;
    }
    return told(writer, err);
}

pl_status pl_gguf_end(pl_gguf_writer *writer, pl_error *err)
{
    unsigned char counts[16];
    PL_CHECK(writer->due == 0);
    PL_CHECK(writer->written - writer->data_at == writer->planned ||
             writer->tensors == 0);
    flush(writer);
    for (int i = 0; i < 8; i++) {
        counts[i] = (unsigned char)(writer->tensors >> (8 * i));
        counts[8 + i] = (unsigned char)(writer->keys >> (8 * i));
    }
    if (!writer->status)
        writer->status = pl_file_write_at(&writer->file, counts, sizeof counts,
                                          COUNTS_AT, &writer->err);
    if (!writer->status)
        writer->status = pl_file_sync(&writer->file, &writer->err);
    if (writer->status) {
        pl_gguf_drop(writer);
        return told(writer, err);
    }
    pl_file_drop_cache(&writer->file);
    char path[PL_PATH_BYTES];
    memcpy(path, writer->file.path, sizeof path);
    pl_status status = pl_file_close(&writer->file, err);
    if (status)
        pl_file_remove_quietly(path);
    return status;
}

void pl_gguf_drop(pl_gguf_writer *writer)
{
    pl_file_discard(&writer->file);
}
