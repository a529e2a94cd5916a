/* A shard from outside: two bytes of vocabulary size, two of first token, two
 * of how many, the rest is the file. Refused with a message, or every token is
 * inside the vocabulary and is what the file says. */
#include "data/shard.h"
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HEAD_BYTES = 6 };

static size_t word(const uint8_t *data, size_t at)
{
    return (size_t)(data[2 * at] | data[2 * at + 1] << 8);
}

static void check_read(const pl_shard *shard, const uint8_t *data)
{
    pl_error err = { .status = PL_OK };
    int32_t vocab_size = (int32_t)word(data, 0);
    size_t n = (size_t)shard->n_tokens, first = word(data, 1) % n;
    size_t count = word(data, 2) % (n - first + 1);
    int32_t *out = malloc(count ? count * sizeof *out : 1);
    if (!out)
        abort();
    pl_status status = pl_shard_read(shard, first, count, out, vocab_size,
                                     &err);
    int all_inside = 1;
    for (size_t i = 0; i < count; i++) {
        size_t token = word(data + HEAD_BYTES, first + i);
        all_inside &= token < (size_t)vocab_size;
        if (!status && (size_t)out[i] != token)
            abort();
    }
    if (all_inside != (status == PL_OK) ||
        (status && (status != PL_E_FORMAT || err.text[0] == '\0')))
        abort();
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_error err = { .status = PL_OK };
    pl_shard shard;
    char path[64];
    if (size < HEAD_BYTES)
        return 0;
    int fd = memfd_create("shard", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data + HEAD_BYTES, size - HEAD_BYTES) !=
                      (ssize_t)(size - HEAD_BYTES))
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    pl_status status = pl_shard_open(&shard, path, &err);
    int right = size > HEAD_BYTES && (size - HEAD_BYTES) % 2 == 0;
    if (right != (status == PL_OK) || (status && err.text[0] == '\0'))
        abort();
    if (!status) {
        check_read(&shard, data);
        pl_shard_close(&shard);
    }
    close(fd);
    return 0;
}
