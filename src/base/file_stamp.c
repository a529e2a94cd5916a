/* file_stamp.c: which file this is, and when it last changed (file.h). */
#include "base/file.h"

#include "base/file_call.h"

#include <sys/stat.h>

static const double settle_seconds =
    2.0; /* FAT's clock has the longest steps */

static uint64_t nanoseconds(struct timespec time)
{
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

pl_status pl_file_stamp_of(const pl_file *file, pl_file_stamp *stamp,
                           pl_error *err)
{
    struct stat info;
    int result;
    PL_FILE_CALL(result, fstat(file->fd, &info));
    if (result)
        return pl_file_refused(err, "look at", file->path, errno);
    *stamp = (pl_file_stamp){ .device = (uint64_t)info.st_dev,
                              .inode = (uint64_t)info.st_ino,
                              .size_bytes = (uint64_t)info.st_size,
                              .modified_ns = nanoseconds(info.st_mtim),
                              .changed_ns = nanoseconds(info.st_ctim) };
    return PL_OK;
}

int pl_file_stamp_settled(const pl_file_stamp *stamp, double date)
{
    return (double)stamp->changed_ns / 1e9 + settle_seconds < date &&
           (double)stamp->modified_ns / 1e9 + settle_seconds < date;
}
