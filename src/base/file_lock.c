/* file_lock.c: locks that die with their process, see file.h. */
#include "base/file.h"

#include "base/file_call.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME ".lock"

enum { TRIES = 100 };

static pl_status refused(pl_file *file, const char *attempt, int error,
                         pl_error *err)
{
    pl_file_abandon(file);
    return pl_file_refused(err, attempt, file->path, error);
}

/* Whether what was locked is still what others will find there: who held it
 * before may have removed it in between. */
static pl_status is_there(pl_file *file, int *there, pl_error *err)
{
    struct stat mine, found;
    int result;
    PL_FILE_CALL(result, fstat(file->fd, &mine));
    if (result == 0)
        PL_FILE_CALL(result, stat(file->path, &found));
    if (result < 0 && errno != ENOENT)
        return refused(file, "look at the lock", errno, err);
    *there = result == 0 && mine.st_dev == found.st_dev &&
             mine.st_ino == found.st_ino;
    return PL_OK;
}

static pl_status try_once(pl_file *file, int *there, pl_error *err)
{
    int result;
    PL_FILE_CALL(file->fd, open(file->path,
                                O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK |
                                    O_NOCTTY | O_NOFOLLOW,
                                0644));
    if (file->fd < 0 && errno == ELOOP)
        return pl_file_is_link(err, "open the lock", file->path);
    if (file->fd < 0)
        return refused(file, "open the lock", errno, err);
    PL_FILE_CALL(result, flock(file->fd, LOCK_EX | LOCK_NB));
    if (result == 0)
        return is_there(file, there, err);
    if (errno != EWOULDBLOCK)
        return refused(file, "lock", errno, err);
    pl_file_abandon(file);
    return pl_fail(err, PL_E_IO, "%s is held by another process",
                   pl_path_shown(file->path));
}

pl_status pl_file_lock(pl_file *file, const char *path, pl_error *err)
{
    *file = (pl_file)PL_FILE_CLOSED;
    pl_status status = pl_path_add(file->path, path, "", err);
    for (int i = 0; i < TRIES && !status; i++) {
        int there = 0;
        status = try_once(file, &there, err);
        if (status || there)
            return status;
        pl_file_abandon(file);
    }
    if (status)
        return status;
    return pl_fail(err, PL_E_IO,
                   "cannot lock %s: others remove it again and again",
                   pl_path_shown(path));
}

pl_status pl_folder_hold(pl_file *lock, const char *folder, pl_error *err)
{
    char path[PL_PATH_BYTES];
    *lock = (pl_file)PL_FILE_CLOSED;
    pl_status status = pl_folder_make(folder, err);
    if (!status)
        status = pl_path_join(path, folder, NAME, err);
    return status ? status : pl_file_lock(lock, path, err);
}

void pl_folder_let_go(pl_file *lock)
{
    int ignored;
    if (lock->fd < 0)
        return;
    /* While it is ours: behind it, it might be another's. */
    pl_file_remove_quietly(lock->path);
    pl_file_abandon(lock);
    pl_path_cut_to_parent(lock->path);
    PL_FILE_CALL(ignored, rmdir(lock->path)); /* only if it is empty */
    (void)ignored;
}
