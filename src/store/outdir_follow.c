/* outdir_follow.c: an out_dir that is moved or removed while a run goes. The
 * run holds the folder open and knows it by that, never by its name. */
#include "store/outdir.h"

#include <math.h>
#include <stdio.h>

#define LOCK ".lock"

/* Takes a lock at the folder's place, for one that isn't there any more. */
static pl_status lock_again(pl_outdir *outdir, const char *path, pl_error *err)
{
    pl_file lock;
    pl_status status = pl_file_lock(&lock, path, err);
    if (status)
        return pl_fail_in(err, status,
                          "the lock of this run was removed, and another run "
                          "may be here: ");
    pl_file_abandon(&outdir->lock);
    outdir->lock = lock;
    return PL_OK;
}

/* The folder is ours; so must be the lock in it. */
static pl_status check_lock(pl_outdir *outdir, pl_error *err)
{
    char path[PL_PATH_BYTES];
    int there = 0;
    pl_status status = pl_path_join(path, outdir->path, LOCK, err);
    if (!status)
        status = pl_file_is_at(&outdir->lock, path, &there, err);
    if (status || there)
        return status;
    return lock_again(outdir, path, err);
}

static void find_step(void *context, const char *name)
{
    uint64_t step;
    *(int *)context |= pl_outdir_step_of(name, &step);
}

/* The folder is gone, and there may be another under its name. */
static pl_status remake(pl_outdir *outdir, pl_error *err)
{
    pl_file lock, folder = PL_FILE_CLOSED;
    int other = 0;
    pl_status status = pl_folder_hold(&lock, outdir->path, err);
    if (!status)
        status = pl_folder_open(&folder, outdir->path, err);
    if (!status)
        status = pl_folder_walk(outdir->path, find_step, &other, err);
    if (!status && other)
        status = pl_fail(err, PL_E_IO,
                         "the folder of this run was removed, and %s has the "
                         "checkpoints of another one: nothing is written "
                         "there. Move them away",
                         outdir->path);
    if (status) {
        pl_file_abandon(&lock);
        pl_file_abandon(&folder);
        return status;
    }
    pl_file_abandon(&outdir->lock);
    pl_file_abandon(&outdir->folder);
    outdir->lock = lock;
    outdir->folder = folder;
    outdir->newest = outdir->best = PL_OUTDIR_NO_STEP;
    outdir->best_loss = HUGE_VAL;
    pl_log_say(outdir->log, PL_LOG_WARN,
               "%s was removed, with its checkpoints: it is made again",
               outdir->path);
    return PL_OK;
}

pl_status pl_outdir_follow(pl_outdir *outdir, pl_outdir_wish wish,
                           pl_error *err)
{
    char now[PL_PATH_BYTES];
    pl_folder_fate fate;
    pl_status status = pl_folder_where(&outdir->folder, outdir->path, &fate,
                                       now, err);
    if (status)
        return status;
    if (fate == PL_FOLDER_GONE && wish == PL_OUTDIR_REMAKE)
        return remake(outdir, err);
    if (fate == PL_FOLDER_GONE)
        return pl_fail(err, PL_E_IO, "%s was removed meanwhile", outdir->path);
    if (fate == PL_FOLDER_LOST)
        return pl_fail(err, PL_E_IO,
                       "%s is not the folder in which the run began, and that "
                       "one is out of reach: was it unmounted, or replaced? "
                       "Nothing is written there. Put it back",
                       outdir->path);
    if (fate == PL_FOLDER_MOVED) {
        pl_log_say(outdir->log, PL_LOG_NOTE,
                   "%s was moved: the run goes on in %s", outdir->path, now);
        snprintf(outdir->moved, sizeof outdir->moved, "%s", now);
        outdir->path = outdir->moved;
    }
    return check_lock(outdir, err);
}
