/* shard_out.c: see shard_out.h. */
#include "data/shard_out.h"

#include "base/check.h"

#include <stdio.h>

void pl_shard_out_name(const pl_shard_out_options *options, uint64_t shard,
                       char name[PL_SHARD_OUT_NAME_BYTES])
{
    if (options->shard_tokens == 0)
        snprintf(name, PL_SHARD_OUT_NAME_BYTES, "%s.bin", options->split);
    else
        snprintf(name, PL_SHARD_OUT_NAME_BYTES, "%.10s_%06u.bin",
                 options->split, (unsigned)(shard % PL_SHARD_OUT_MAX_SHARDS));
}

uint64_t pl_shard_out_files(const pl_shard_out_options *options,
                            uint64_t n_tokens)
{
    uint64_t each = options->shard_tokens;
    if (each == 0)
        return n_tokens > 0;
    return n_tokens / each + (n_tokens % each > 0);
}

static pl_status path_of(const pl_shard_out *out, uint64_t shard,
                         char path[PL_PATH_BYTES], pl_error *err)
{
    char name[PL_SHARD_OUT_NAME_BYTES];
    pl_shard_out_name(&out->options, shard, name);
    return pl_path_join(path, out->options.folder, name, err);
}

/* Tokens in the shard that is open, or would be. */
static uint64_t filled(const pl_shard_out *out)
{
    uint64_t each = out->options.shard_tokens;
    return each ? out->n_tokens % each : out->n_tokens;
}

static uint64_t shard_number(const pl_shard_out *out)
{
    uint64_t each = out->options.shard_tokens;
    return each ? out->n_tokens / each : 0;
}

/* Removes the shards from number `shard` on, up to the first that isn't
 * there. */
static pl_status remove_from(const pl_shard_out *out, uint64_t shard,
                             pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_file_kind kind;
    for (;; shard++) {
        pl_status status = path_of(out, shard, path, err);
        if (!status)
            status = pl_file_look(path, &kind, err);
        if (status || kind == PL_FILE_ABSENT)
            return status;
        status = pl_file_remove(path, err);
        if (status || out->options.shard_tokens == 0)
            return status;
    }
}

static pl_status reopen(pl_shard_out *out, pl_error *err)
{
    const pl_shard_out_options *o = &out->options;
    char path[PL_PATH_BYTES];
    uint64_t tokens = filled(out);
    uint64_t bytes = pl_shard_header_bytes(o->kind) +
                     tokens * pl_shard_token_bytes(o->kind);
    pl_status status = path_of(out, shard_number(out), path, err);
    if (!status)
        status = pl_file_open_again(&out->file, path, bytes, err);
    if (status)
        return status;
    pl_shard_writer_go_on(&out->writer, &out->file, o->kind, o->vocab_size,
                          tokens, out->buffer, PL_SHARD_OUT_BUFFER_BYTES);
    return PL_OK;
}

pl_status pl_shard_out_open(pl_shard_out *out,
                            const pl_shard_out_options *options,
                            uint64_t n_tokens, unsigned char *buffer,
                            pl_error *err)
{
    *out = (pl_shard_out){ .options = *options,
                           .n_tokens = n_tokens,
                           .file = PL_FILE_CLOSED,
                           .buffer = buffer };
    int inside = filled(out) > 0;
    pl_status status = PL_OK;
    if (!inside || options->shard_tokens)
        status = remove_from(out, shard_number(out) + (inside ? 1 : 0), err);
    if (!status && inside)
        status = reopen(out, err);
    return status;
}

static pl_status begin_shard(pl_shard_out *out, pl_error *err)
{
    const pl_shard_out_options *o = &out->options;
    char path[PL_PATH_BYTES];
    if (shard_number(out) >= PL_SHARD_OUT_MAX_SHARDS)
        return pl_fail(err, PL_E_CONFIG,
                       "more than %d shards of %llu tokens: raise "
                       "shard_tokens",
                       PL_SHARD_OUT_MAX_SHARDS,
                       (unsigned long long)o->shard_tokens);
    pl_status status = path_of(out, shard_number(out), path, err);
    if (!status)
        status = pl_file_create(&out->file, path, err);
    if (status)
        return status;
    return pl_shard_writer_begin(&out->writer, &out->file, o->kind,
                                 o->vocab_size, out->buffer,
                                 PL_SHARD_OUT_BUFFER_BYTES, err);
}

pl_status pl_shard_out_end(pl_shard_out *out, pl_error *err)
{
    if (out->file.fd < 0)
        return PL_OK;
    pl_status status = pl_shard_writer_end(&out->writer, err);
    if (!status)
        status = pl_file_sync(&out->file, err);
    if (status) {
        pl_file_abandon(&out->file);
        return status;
    }
    pl_file_drop_cache(&out->file);
    return pl_file_close(&out->file, err);
}

pl_status pl_shard_out_put(pl_shard_out *out, const int32_t *ids, size_t count,
                           pl_error *err)
{
    uint64_t each = out->options.shard_tokens;
    while (count > 0) {
        size_t now = count;
        pl_status status = out->file.fd < 0 ? begin_shard(out, err) : PL_OK;
        if (each && now > each - filled(out))
            now = (size_t)(each - filled(out));
        if (!status)
            status = pl_shard_writer_put(&out->writer, ids, now, err);
        if (status)
            return status;
        out->n_tokens += now;
        ids += now;
        count -= now;
        if (each && filled(out) == 0)
            status = pl_shard_out_end(out, err);
        if (status)
            return status;
    }
    return PL_OK;
}

pl_status pl_shard_out_flush(pl_shard_out *out, pl_error *err)
{
    if (out->file.fd < 0)
        return PL_OK;
    pl_status status = pl_shard_writer_flush(&out->writer, err);
    if (!status)
        pl_file_write_behind(&out->file);
    return status;
}

pl_status pl_shard_out_sync(pl_shard_out *out, pl_error *err)
{
    if (out->file.fd < 0)
        return PL_OK;
    pl_status status = pl_shard_out_flush(out, err);
    return status ? status : pl_file_sync(&out->file, err);
}

void pl_shard_out_abandon(pl_shard_out *out)
{
    pl_file_abandon(&out->file);
}
