/* file_place.c: a folder that is held open and found again, and whether a file
 * still has its name (file.h). */
#include "base/file.h"

#include "base/check.h"
#include "base/file_call.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

pl_status pl_folder_open(pl_file *folder, const char *path, pl_error *err)
{
    *folder = (pl_file)PL_FILE_CLOSED;
    pl_status status = pl_path_add(folder->path, path, "", err);
    if (status)
        return status;
    PL_FILE_CALL(folder->fd, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return folder->fd < 0 ? pl_file_refused(err, "open the folder", path, errno)
                          : PL_OK;
}

/* What is open against what has a name; *names: how many it has at all. */
static pl_status compare(const pl_file *file, const char *path, int *same,
                         unsigned long *names, pl_error *err)
{
    struct stat mine, found;
    int result;
    PL_CHECK(file->fd >= 0);
    PL_FILE_CALL(result, fstat(file->fd, &mine));
    if (result < 0)
        return pl_file_refused(err, "look at", file->path, errno);
    *names = (unsigned long)mine.st_nlink;
    PL_FILE_CALL(result, stat(path, &found));
    if (result < 0 && errno != ENOENT && errno != ENOTDIR)
        return pl_file_refused(err, "look at", path, errno);
    *same = result == 0 && mine.st_dev == found.st_dev &&
            mine.st_ino == found.st_ino;
    return PL_OK;
}

pl_status pl_file_is_at(const pl_file *file, const char *path, int *there,
                        pl_error *err)
{
    unsigned long names;
    return compare(file, path, there, &names, err);
}

pl_status pl_folder_where(const pl_file *folder, const char *path,
                          pl_folder_fate *fate, char now[PL_PATH_BYTES],
                          pl_error *err)
{
    char link[64];
    int same = 0;
    unsigned long names = 0;
    pl_status status = compare(folder, path, &same, &names, err);
    *fate = same         ? PL_FOLDER_HERE
            : names == 0 ? PL_FOLDER_GONE
                         : PL_FOLDER_LOST;
    if (status || *fate != PL_FOLDER_LOST)
        return status;
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder->fd);
    status = pl_link_read(link, now, err);
    if (!status && now[0] == '/')
        status = compare(folder, now, &same, &names, err);
    if (!status && same)
        *fate = PL_FOLDER_MOVED;
    return status;
}
