/* file_wait.c: waiting for what somebody else writes (file.h). */
#include "base/file.h"

#include "base/file_call.h"

#include <poll.h>

/* A pipe that was opened before its first writer came has nothing to say until
 * then: neither bytes nor its end. */
pl_status pl_file_wait(const pl_file *file, int milliseconds, int *ready,
                       pl_error *err)
{
    struct pollfd one = { .fd = file->fd, .events = POLLIN };
    int result;
    PL_FILE_CALL(result, poll(&one, 1, milliseconds));
    if (result < 0)
        return pl_file_refused(err, "read", file->path, errno);
    *ready = result > 0;
    return PL_OK;
}
