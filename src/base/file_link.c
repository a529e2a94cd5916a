/* file_link.c: names that point to others, and a walk over a folder that
 * allocates nothing (file.h). */
#include "base/file.h"

#include "base/file_call.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

pl_status pl_link_replace(const char *path, const char *target, pl_error *err)
{
    char temporary[PL_PATH_BYTES];
    int result;
    pl_status status = pl_path_add(temporary, path, ".tmp", err);
    if (!status)
        status = pl_file_remove(temporary, err);
    if (status)
        return status;
    PL_FILE_CHANGE(result, symlink(target, temporary));
    if (result < 0)
        return pl_file_refused(err, "make the link", path, errno);
    status = pl_file_rename(temporary, path, err);
    if (status) {
        pl_file_remove_quietly(temporary);
        return status;
    }
    return pl_folder_sync_of(path, err);
}

pl_status pl_link_read(const char *path, char target[PL_PATH_BYTES],
                       pl_error *err)
{
    ssize_t bytes;
    PL_FILE_CALL(bytes, readlink(path, target, PL_PATH_BYTES));
    if (bytes < 0 && (errno == ENOENT || errno == EINVAL || errno == ENOTDIR))
        bytes = 0; /* absent, or no link */
    else if (bytes < 0)
        return pl_file_refused(err, "read the link", path, errno);
    target[bytes < PL_PATH_BYTES ? bytes : 0] = '\0';
    return PL_OK;
}

static void visit_all(const char *entries, ssize_t bytes,
                      pl_folder_visit *visit, void *context)
{
    for (ssize_t at = 0; at < bytes;) {
        const struct dirent64 *entry = (const void *)(entries + at);
        at += entry->d_reclen;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            visit(context, entry->d_name);
    }
}

pl_status pl_folder_walk(const char *path, pl_folder_visit *visit,
                         void *context, pl_error *err)
{
    _Alignas(struct dirent64) char entries[4096];
    ssize_t bytes;
    int fd;
    PL_FILE_CALL(fd, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0)
        return pl_file_refused(err, "list", path, errno);
    do {
        PL_FILE_CALL(bytes, getdents64(fd, entries, sizeof entries));
        visit_all(entries, bytes, visit, context);
    } while (bytes > 0);
    pl_status status = bytes < 0 ? pl_file_refused(err, "list", path, errno)
                                 : PL_OK;
    close(fd);
    return status;
}
