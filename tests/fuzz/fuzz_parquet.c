/* A parquet file from outside: strings, or an error with a message; memory
 * within its limit. A second reader that begins in the middle finds what the
 * first one found there. */
#include "data/parquet.h"
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROOM_BYTES = 1 << 20, MAX_STRINGS = 2000 };

/* How many strings from `row` on, and their sum; SIZE_MAX on an error. */
static size_t read_from(const char *path, uint64_t row, uint64_t *rows,
                        uint64_t *sum)
{
    static pl_parquet parquet;
    pl_room room = pl_room_make(ROOM_BYTES);
    pl_unpack unpack;
    pl_error err = { .status = PL_OK };
    const char *text = NULL;
    size_t bytes, count = 0;
    uint64_t at;
    *sum = *rows = 0;
    pl_unpack_open(&unpack, &room);
    pl_status status = pl_parquet_open(&parquet, path, "text", ROOM_BYTES,
                                       &room, &unpack, &err);
    if (!status) {
        *rows = parquet.rows;
        status = pl_parquet_seek(&parquet, row, &err);
        while (!status && count < MAX_STRINGS) {
            status = pl_parquet_next(&parquet, &text, &bytes, &at, &err);
            if (status || !text)
                break;
            for (size_t i = 0; i < bytes; i++)
                *sum = *sum * 31 + (unsigned char)text[i];
            *sum += at;
            count++;
        }
        pl_parquet_close(&parquet);
    }
    pl_unpack_close(&unpack);
    if (room.taken_bytes != 0 || room.peak_bytes > ROOM_BYTES ||
        (status && err.text[0] == '\0'))
        abort();
    return status ? SIZE_MAX : count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    uint64_t rows, sum, again;
    int fd = memfd_create("parquet", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    size_t count = read_from(path, 0, &rows, &sum);
    if (count != SIZE_MAX) {
        if (count != read_from(path, 0, &rows, &again) || sum != again)
            abort();
        /* What the whole file was read without, its second half is too. */
        size_t half = read_from(path, rows / 2, &rows, &sum);
        if (count < MAX_STRINGS && (half == SIZE_MAX || half > count))
            abort();
    }
    close(fd);
    return 0;
}
