/* A file from outside, packed or not: bytes, or an error with a message; the
 * same whatever the buffer is; memory within its limit. */
#include "data/stream.h"
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROOM_BYTES = 1 << 20, MOST_BYTES = 1 << 20 };

typedef struct outcome {
    pl_status status;
    uint64_t bytes, sum;
} outcome;

static outcome read_file(const char *path, size_t buffer_bytes, size_t step)
{
    static unsigned char buffer[4096], out[4096];
    outcome o = { .status = PL_OK };
    pl_room room = pl_room_make(ROOM_BYTES);
    pl_error err = { .status = PL_OK };
    pl_unpack unpack;
    pl_stream stream;
    size_t got = 1;
    pl_unpack_open(&unpack, &room);
    o.status = pl_stream_open(&stream, path, buffer, buffer_bytes, &unpack,
                              NULL, NULL, &err);
    if (!o.status) {
        while (!o.status && got > 0 && o.bytes < MOST_BYTES) {
            o.status = pl_stream_read(&stream, out, step, &got, &err);
            for (size_t i = 0; !o.status && i < got; i++)
                o.sum = o.sum * 31 + out[i];
            o.bytes += o.status ? 0 : got;
        }
        pl_stream_close(&stream);
    }
    pl_unpack_close(&unpack);
    if (room.taken_bytes != 0 || room.peak_bytes > ROOM_BYTES ||
        (o.status && err.text[0] == '\0'))
        abort();
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    int fd = memfd_create("stream", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    outcome one = read_file(path, 4096, 4096), other = read_file(path, 19, 7);
    /* A limit that one of them met may be past an error of the other, and zstd
     * checks more where it can unpack at one go. */
    int limited = one.bytes >= MOST_BYTES || other.bytes >= MOST_BYTES;
    int either = one.status || other.status;
    int is_zstd = pl_codec_of(data, size) == PL_CODEC_ZSTD;
    if (!limited && !(is_zstd && either) &&
        (one.status != other.status ||
         (!either && (one.bytes != other.bytes || one.sum != other.sum))))
        abort();
    close(fd);
    return 0;
}
