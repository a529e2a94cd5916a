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

static uint64_t number(const uint8_t *data, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | data[i];
    return value;
}

/* A header of the right shape, whatever its magic is: nobody's tokens. */
static int looks_like_a_header(const uint8_t *data, size_t size)
{
    uint64_t says = size >= 1024 ? number(data + 8, 8) : 0;
    for (size_t i = 16; i < 1024 && says; i++)
        if (data[i])
            return 0;
    return says > 0 && (says == (size - 1024) / 2 || says == (size - 1024) / 4);
}

/* What the file is, worked out once more: its tokens' width, where they begin,
 * and whether the header tells the truth. */
static int understand(const uint8_t *data, size_t size, size_t *width,
                      size_t *begin)
{
    uint64_t magic = size >= 1024 ? number(data, 4) : 0;
    *width = magic == 20240801 ? 4 : 2;
    *begin = magic == 20240520 || magic == 20240801 ? 1024 : 0;
    if (size == *begin || (size - *begin) % *width)
        return 0;
    if (*begin == 0 && looks_like_a_header(data, size))
        return 0;
    return *begin == 0 || (number(data + 4, 4) == (*width == 4 ? 7u : 1u) &&
                           number(data + 8, 8) == (size - *begin) / *width);
}

static void check_read(const pl_shard *shard, const uint8_t *head,
                       const uint8_t *tokens, size_t width)
{
    pl_error err = { .status = PL_OK };
    int32_t vocab_size = (int32_t)number(head, 2);
    size_t n = (size_t)shard->n_tokens, first = number(head + 2, 2) % n;
    size_t count = number(head + 4, 2) % (n - first + 1);
    int32_t *out = malloc(count ? count * sizeof *out : 1);
    if (!out)
        abort();
    pl_status status = pl_shard_read(shard, first, count, out, vocab_size,
                                     &err);
    int all_inside = 1;
    for (size_t i = 0; i < count; i++) {
        uint64_t token = number(tokens + (first + i) * width, width);
        all_inside &= token < (uint64_t)vocab_size;
        if (!status && (uint64_t)out[i] != token)
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
    size_t width, begin;
    if (size < HEAD_BYTES)
        return 0;
    const uint8_t *file = data + HEAD_BYTES;
    size -= HEAD_BYTES;
    int fd = memfd_create("shard", MFD_CLOEXEC);
    if (fd < 0 || write(fd, file, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    pl_status status = pl_shard_open(&shard, path, &err);
    int right = understand(file, size, &width, &begin);
    if (right != (status == PL_OK) || (status && err.text[0] == '\0'))
        abort();
    if (!status) {
        check_read(&shard, data, file + begin, width);
        pl_shard_close(&shard);
    }
    close(fd);
    return 0;
}
