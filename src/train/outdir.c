/* outdir.c: see outdir.h. */
#include "train/outdir.h"
#include "train/checkpoint.h"

#include <inttypes.h>

/* A checkpoint's place is free, or holds a folder that will be replaced. */
static pl_status check_place(const char *folder, const char *name,
                             pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_file_kind kind;
    pl_status status = pl_path_join(path, folder, name, err);
    if (!status)
        status = pl_file_look_at(path, &kind, err);
    if (status)
        return status;
    if (kind != PL_FILE_ABSENT && kind != PL_FILE_FOLDER)
        return pl_fail(err, PL_E_IO,
                       "%s: checkpoints go here, but it is not a folder. Move "
                       "it away, or choose another out_dir",
                       path);
    return PL_OK;
}

/* While one is replaced both are there. */
static pl_status check_room(const char *folder, uint64_t checkpoint_bytes,
                            pl_error *err)
{
    uint64_t room;
    pl_status status = pl_disk_free_bytes(folder, &room, err);
    if (status)
        return status;
    if (room / 2 < checkpoint_bytes)
        return pl_fail(err, PL_E_IO,
                       "%s: a checkpoint takes %" PRIu64 " bytes, twice that "
                       "while it is replaced; the disk has %" PRIu64
                       " left. Make room, or choose another out_dir",
                       folder, checkpoint_bytes, room);
    return PL_OK;
}

pl_status pl_outdir_open(pl_file *lock, const char *folder,
                         uint64_t checkpoint_bytes, pl_error *err)
{
    *lock = (pl_file)PL_FILE_CLOSED;
    if (folder[0] == '\0')
        return pl_fail(err, PL_E_CONFIG,
                       "out_dir is empty: name a folder for "
                       "the checkpoints");
    pl_status status = pl_folder_hold(lock, folder, err);
    if (!status)
        status = check_place(folder, PL_CHECKPOINT_NEWEST, err);
    if (!status)
        status = check_place(folder, PL_CHECKPOINT_BEST, err);
    if (!status)
        status = check_room(folder, checkpoint_bytes, err);
    if (status)
        pl_outdir_close(lock);
    return status;
}

void pl_outdir_close(pl_file *lock)
{
    pl_file_abandon(lock);
}
