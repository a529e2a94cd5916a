/* An event file from outside, to be continued. It is kept up to some place,
 * and what is kept is kept again; one more value makes it longer. */
#include "format/tensorboard.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void require(int condition)
{
    if (!condition)
        abort();
}

static uint64_t reopen(const char *path, uint64_t keep)
{
    static pl_tensorboard events;
    pl_error err = { .status = PL_OK };
    require(pl_tensorboard_open(&events, path, keep, 1.0, &err) == PL_OK);
    uint64_t kept = events.size_bytes;
    if (kept > 0)
        require(events.used == 0);
    require(pl_tensorboard_close(&events, &err) == PL_OK);
    return kept;
}

static void add(const char *path)
{
    static pl_tensorboard events;
    pl_error err = { .status = PL_OK };
    require(pl_tensorboard_open(&events, path, PL_TENSORBOARD_KEEP_ALL, 1.0,
                                &err) == PL_OK);
    uint64_t before = events.size_bytes;
    require(pl_tensorboard_scalar(&events, "x", 7, 2.0, 3.0f, &err) == PL_OK);
    require(pl_tensorboard_close(&events, &err) == PL_OK);
    require(reopen(path, PL_TENSORBOARD_KEEP_ALL) == events.size_bytes);
    require(events.size_bytes > before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/plimsoll-fuzz-XXXXXX"; /* no link is written through */
    int fd = mkstemp(path);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    uint64_t all = reopen(path, PL_TENSORBOARD_KEEP_ALL);
    require(all <= size);
    require(reopen(path, PL_TENSORBOARD_KEEP_ALL) == (all ? all : 40));
    require(reopen(path, 60) <= 60);
    add(path);
    close(fd);
    unlink(path);
    return 0;
}
