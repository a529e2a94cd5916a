/* shard.c: see shard.h. Owns the width and the byte order of tokens. */
#include "data/shard.h"

#include "base/check.h"

pl_status pl_shard_open(pl_shard *shard, const char *path, pl_error *err)
{
    pl_status status = pl_file_open_read(&shard->file, path, err);
    if (status)
        return status;
    uint64_t bytes = pl_file_size(&shard->file);
    if (bytes == 0 || bytes % PL_SHARD_TOKEN_BYTES != 0) {
        pl_file_abandon(&shard->file);
        return pl_fail(err, PL_E_FORMAT,
                       "%s has %llu bytes: a file of 16-bit tokens %s. "
                       "Prepare the data again.",
                       path, (unsigned long long)bytes,
                       bytes ? "has an even number of them" : "isn't empty");
    }
    shard->n_tokens = bytes / PL_SHARD_TOKEN_BYTES;
    pl_file_read_randomly(&shard->file);
    return PL_OK;
}

void pl_shard_close(pl_shard *shard)
{
    pl_file_abandon(&shard->file);
}

static pl_status outside(const pl_shard *shard, uint64_t position,
                         int32_t token, int32_t vocab_size, pl_error *err)
{
    return pl_fail(err, PL_E_FORMAT,
                   "%s: token %llu is %d, outside the vocabulary of %d. These "
                   "tokens were made with another tokenizer than the one "
                   "beside them (meta.json or meta.pkl; GPT-2's if there is "
                   "none): prepare the data again.",
                   shard->file.path, (unsigned long long)position, (int)token,
                   (int)vocab_size);
}

pl_status pl_shard_read(const pl_shard *shard, uint64_t first, size_t count,
                        int32_t *out, int32_t vocab_size, pl_error *err)
{
    PL_CHECK(first <= shard->n_tokens && count <= shard->n_tokens - first);
    /* The 16-bit tokens go to the upper half of `out`. Widening from the front
     * writes bytes [4i, 4i + 4) and has yet to read those from
     * 2 * count + 2i + 2 on, which is never less than 4i + 4. */
    unsigned char *narrow = (unsigned char *)out +
                            count * (sizeof *out - PL_SHARD_TOKEN_BYTES);
    pl_status status = pl_file_pread_exact(&shard->file, narrow,
                                           count * PL_SHARD_TOKEN_BYTES,
                                           first * PL_SHARD_TOKEN_BYTES, err);
    if (status)
        return status;
    for (size_t i = 0; i < count; i++) {
        int32_t token = narrow[2 * i] | narrow[2 * i + 1] << 8;
        if (token >= vocab_size)
            return outside(shard, first + i, token, vocab_size, err);
        out[i] = token;
    }
    return PL_OK;
}
