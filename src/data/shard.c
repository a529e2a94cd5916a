/* shard.c: see shard.h. Owns the width and the byte order of tokens. */
#include "data/shard.h"

#include "base/check.h"
#include "base/units.h"

#include <string.h>

/* One row for each kind. */
static const struct {
    const char *name;
    uint32_t magic, version; /* 0: headerless */
    size_t token_bytes;
} kinds[] = {
    [PL_SHARD_NANOGPT] = { "nanoGPT's uint16", 0, 0, PL_SHARD_TOKEN_BYTES },
    [PL_SHARD_LLMC] = { "llm.c's uint16", 20240520, 1, PL_SHARD_TOKEN_BYTES },
    [PL_SHARD_WIDE] = { "llm.c's uint32", 20240801, 7, PL_SHARD_WIDE_BYTES },
};

const char *pl_shard_kind_name(pl_shard_kind kind)
{
    return kinds[kind].name;
}

size_t pl_shard_token_bytes(pl_shard_kind kind)
{
    return kinds[kind].token_bytes;
}

size_t pl_shard_header_bytes(pl_shard_kind kind)
{
    return kinds[kind].magic ? PL_SHARD_HEADER_BYTES : 0;
}

static uint32_t get(const unsigned char *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static void put(unsigned char *bytes, uint64_t number, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(number >> 8 * i);
}

/* ---- reading ---- */

static pl_status check_bare(const pl_shard *shard, uint64_t bytes,
                            pl_error *err)
{
    if (bytes > 0 && bytes % PL_SHARD_TOKEN_BYTES == 0)
        return PL_OK;
    return pl_fail(err, PL_E_FORMAT,
                   "%s has %s: a file of 16-bit tokens %s. Prepare the "
                   "data again",
                   shard->file.path, pl_units_exact(bytes).text,
                   bytes ? "has an even number of them" : "isn't empty");
}

static pl_status check_header(pl_shard *shard, const unsigned char *header,
                              uint64_t bytes, pl_error *err)
{
    const uint32_t version = kinds[shard->kind].version;
    size_t width = kinds[shard->kind].token_bytes;
    if (get(header + 4) != version)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: its header (%s) has version %lu, expected %lu. "
                       "Prepare the data again",
                       shard->file.path, kinds[shard->kind].name,
                       (unsigned long)get(header + 4), (unsigned long)version);
    shard->n_tokens = get(header + 8) | (uint64_t)get(header + 12) << 32;
    uint64_t room = (bytes - PL_SHARD_HEADER_BYTES) / width;
    if (shard->n_tokens == 0 || shard->n_tokens != room ||
        (bytes - PL_SHARD_HEADER_BYTES) % width)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: its header (%s) says %llu tokens, its %s hold "
                       "%llu. It may be cut off: copy or prepare it "
                       "again",
                       shard->file.path, kinds[shard->kind].name,
                       (unsigned long long)shard->n_tokens,
                       pl_units_exact(bytes).text, (unsigned long long)room);
    return PL_OK;
}

/* A header of llm.c's shape (magic, version, the number of tokens that follow,
 * zeros to its end) with a magic that nobody knows. */
static pl_status check_unknown(const pl_shard *shard, pl_error *err)
{
    unsigned char header[PL_SHARD_HEADER_BYTES];
    uint64_t bytes = pl_file_size(&shard->file) - sizeof header;
    pl_status status = pl_file_pread_exact(&shard->file, header, sizeof header,
                                           0, err);
    if (status)
        return status;
    uint64_t says = get(header + 8) | (uint64_t)get(header + 12) << 32;
    size_t zeros = 16;
    while (zeros < sizeof header && header[zeros] == 0)
        zeros++;
    if (zeros < sizeof header || says == 0 ||
        (says != bytes / PL_SHARD_TOKEN_BYTES &&
         says != bytes / PL_SHARD_WIDE_BYTES))
        return PL_OK;
    return pl_fail(err, PL_E_FORMAT,
                   "%s begins with a header for %llu tokens, as llm.c's files "
                   "do, but its magic is %lu, expected %lu or %lu. Copy it "
                   "again, or prepare the data again",
                   shard->file.path, (unsigned long long)says,
                   (unsigned long)get(header),
                   (unsigned long)kinds[PL_SHARD_LLMC].magic,
                   (unsigned long)kinds[PL_SHARD_WIDE].magic);
}

/* The kind, by the magic. A headerless file that begins with these two tokens
 * would need a vocabulary above 55432, and its whole header to fit. */
static pl_status look(pl_shard *shard, pl_error *err)
{
    unsigned char header[16];
    uint64_t bytes = pl_file_size(&shard->file);
    shard->kind = PL_SHARD_NANOGPT;
    if (bytes >= PL_SHARD_HEADER_BYTES) {
        pl_status status = pl_file_pread_exact(&shard->file, header,
                                               sizeof header, 0, err);
        if (status)
            return status;
        for (int kind = PL_SHARD_LLMC; kind <= PL_SHARD_WIDE; kind++)
            if (get(header) == kinds[kind].magic)
                shard->kind = (pl_shard_kind)kind;
        if (shard->kind == PL_SHARD_NANOGPT)
            status = check_unknown(shard, err);
        if (status)
            return status;
    }
    if (shard->kind != PL_SHARD_NANOGPT)
        return check_header(shard, header, bytes, err);
    shard->n_tokens = bytes / PL_SHARD_TOKEN_BYTES;
    return check_bare(shard, bytes, err);
}

pl_status pl_shard_open(pl_shard *shard, const char *path, pl_error *err)
{
    pl_status status = pl_file_open_read(&shard->file, path, err);
    if (status)
        return status;
    status = look(shard, err);
    if (status) {
        pl_file_abandon(&shard->file);
        return status;
    }
    pl_file_read_randomly(&shard->file);
    return PL_OK;
}

void pl_shard_close(pl_shard *shard)
{
    pl_file_abandon(&shard->file);
}

static pl_status outside(const pl_shard *shard, uint64_t position,
                         uint32_t token, int32_t vocab_size, pl_error *err)
{
    return pl_fail(err, PL_E_FORMAT,
                   "%s: token %llu is %lu, outside the vocabulary of %d. These "
                   "tokens were made with another tokenizer than the one "
                   "beside them (meta.json or meta.pkl; GPT-2's if there is "
                   "none): prepare the data again%s",
                   shard->file.path, (unsigned long long)position,
                   (unsigned long)token, (int)vocab_size,
                   shard->kind == PL_SHARD_WIDE
                       ? ", or set vocab_size to theirs (Llama 3: 128256)"
                       : "");
}

pl_status pl_shard_read(const pl_shard *shard, uint64_t first, size_t count,
                        int32_t *out, int32_t vocab_size, pl_error *err)
{
    size_t width = kinds[shard->kind].token_bytes;
    PL_CHECK(first <= shard->n_tokens && count <= shard->n_tokens - first);
    /* 16-bit tokens go to the upper half of `out`. Widening from the front
     * writes bytes [4i, 4i + 4) and has yet to read those from
     * 2 * count + 2i + 2 on, which is never less than 4i + 4. */
    unsigned char *raw = (unsigned char *)out + count * (sizeof *out - width);
    uint64_t begin = pl_shard_header_bytes(shard->kind);
    pl_status status = pl_file_pread_exact(&shard->file, raw, count * width,
                                           begin + first * width, err);
    if (status)
        return status;
    for (size_t i = 0; i < count; i++) {
        const unsigned char *at = raw + i * width;
        uint32_t token = width == PL_SHARD_TOKEN_BYTES
                             ? at[0] | (uint32_t)at[1] << 8
                             : get(at);
        if (vocab_size <= 0 || token >= (uint32_t)vocab_size)
            return outside(shard, first + i, token, vocab_size, err);
        out[i] = (int32_t)token;
    }
    return PL_OK;
}

/* ---- writing ---- */

pl_status pl_shard_writer_flush(pl_shard_writer *writer, pl_error *err)
{
    size_t bytes = writer->used_bytes;
    writer->used_bytes = 0;
    return pl_file_append(writer->file, writer->buffer, bytes, err);
}

void pl_shard_writer_go_on(pl_shard_writer *writer, pl_file *file,
                           pl_shard_kind kind, int32_t vocab_size,
                           uint64_t n_tokens, unsigned char *buffer,
                           size_t buffer_bytes)
{
    PL_CHECK(buffer_bytes >= PL_SHARD_HEADER_BYTES && vocab_size > 0);
    PL_CHECK(kind == PL_SHARD_WIDE || vocab_size <= PL_SHARD_NARROW_VOCAB);
    *writer = (pl_shard_writer){ .file = file,
                                 .kind = kind,
                                 .vocab_size = vocab_size,
                                 .n_tokens = n_tokens,
                                 .buffer = buffer,
                                 .buffer_bytes = buffer_bytes };
}

pl_status pl_shard_writer_begin(pl_shard_writer *writer, pl_file *file,
                                pl_shard_kind kind, int32_t vocab_size,
                                unsigned char *buffer, size_t buffer_bytes,
                                pl_error *err)
{
    pl_shard_writer_go_on(writer, file, kind, vocab_size, 0, buffer,
                          buffer_bytes);
    /* Without the count, which isn't known yet: a file that is left like this
     * is refused. */
    memset(buffer, 0, PL_SHARD_HEADER_BYTES);
    put(buffer, kinds[kind].magic, 4);
    put(buffer + 4, kinds[kind].version, 4);
    writer->used_bytes = pl_shard_header_bytes(kind);
    return writer->used_bytes ? pl_shard_writer_flush(writer, err) : PL_OK;
}

pl_status pl_shard_writer_put(pl_shard_writer *writer, const int32_t *ids,
                              size_t count, pl_error *err)
{
    size_t width = kinds[writer->kind].token_bytes;
    for (size_t i = 0; i < count; i++) {
        PL_CHECK(ids[i] >= 0 && ids[i] < writer->vocab_size);
        if (writer->buffer_bytes - writer->used_bytes < width) {
            pl_status status = pl_shard_writer_flush(writer, err);
            if (status)
                return status;
        }
        put(writer->buffer + writer->used_bytes, (uint32_t)ids[i], width);
        writer->used_bytes += width;
    }
    writer->n_tokens += count;
    return PL_OK;
}

pl_status pl_shard_writer_end(pl_shard_writer *writer, pl_error *err)
{
    unsigned char count[8];
    pl_status status = pl_shard_writer_flush(writer, err);
    if (status || writer->kind == PL_SHARD_NANOGPT)
        return status;
    put(count, writer->n_tokens, sizeof count);
    return pl_file_write_at(writer->file, count, sizeof count, 8, err);
}
