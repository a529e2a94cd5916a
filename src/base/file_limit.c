/* file_limit.c: what the system lets this process do with files (file.h). */
#include "base/file.h"

#include "base/check.h"
#include "base/file_call.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/* UINT64_MAX: none, or the system doesn't say. */
static uint64_t bound(int asked, const struct rlimit *limit)
{
    return asked < 0 || limit->rlim_cur == RLIM_INFINITY ? UINT64_MAX
                                                         : limit->rlim_cur;
}

uint64_t pl_file_limit_bytes(void)
{
    struct rlimit limit;
    return bound(getrlimit(RLIMIT_FSIZE, &limit), &limit);
}

static uint64_t limit_files(void)
{
    struct rlimit limit;
    return bound(getrlimit(RLIMIT_NOFILE, &limit), &limit);
}

pl_status pl_file_spare(const pl_file *file, size_t count, pl_error *err)
{
    int taken[PL_FILE_MOST_SPARE];
    size_t n = 0;
    int error = 0;
    PL_CHECK(file->fd >= 0 && count <= PL_FILE_MOST_SPARE);
    for (; n < count && !error; n += !error) {
        PL_FILE_CALL(taken[n], fcntl(file->fd, F_DUPFD_CLOEXEC, 0));
        error = taken[n] < 0 ? errno : 0;
    }
    for (size_t i = 0; i < n; i++)
        close(taken[i]);
    const uint64_t limit = limit_files();
    if (error == EMFILE)
        return pl_fail(err, PL_E_IO,
                       "this needs %llu open files at once, and this process "
                       "may have %llu: raise the limit (ulimit -n 1024)",
                       (unsigned long long)(limit + (count - n)),
                       (unsigned long long)limit);
    return error ? pl_file_refused(err, "open another file beside", file->path,
                                   error)
                 : PL_OK;
}
