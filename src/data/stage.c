/* stage.c: see stage.h. Owns the names ".tmp" and ".old" in a data folder. */
#include "data/stage.h"

#include "base/check.h"

/* What has been done to each file, for undoing it. */
typedef struct progress {
    int aside[PL_STAGE_MAX_FILES], placed[PL_STAGE_MAX_FILES];
} progress;

static pl_status path_of(const pl_stage *stage, size_t i, const char *suffix,
                         char out[PL_PATH_BYTES], pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_status status = pl_path_join(path, stage->folder, stage->names[i], err);
    return status ? status : pl_path_add(out, path, suffix, err);
}

pl_status pl_stage_open(pl_stage *stage, const char *folder,
                        const char *const *names, size_t count, pl_error *err)
{
    char path[PL_PATH_BYTES];
    PL_CHECK(count > 0 && count <= PL_STAGE_MAX_FILES);
    stage->names = names;
    stage->count = count;
    for (size_t i = 0; i < count; i++)
        stage->files[i].fd = -1;
    pl_status status = pl_path_add(stage->folder, folder, "", err);
    for (size_t i = 0; !status && i < count; i++) {
        status = path_of(stage, i, ".tmp", path, err);
        if (!status)
            status = pl_file_create(&stage->files[i], path, err);
    }
    if (status)
        pl_stage_discard(stage);
    return status;
}

void pl_stage_discard(pl_stage *stage)
{
    for (size_t i = 0; i < stage->count; i++)
        pl_file_discard(&stage->files[i]);
}

/* Renames file i; both names are known to fit, they did in pl_stage_open. */
static pl_status move(const pl_stage *stage, size_t i, const char *from_suffix,
                      const char *to_suffix, pl_error *err)
{
    char from[PL_PATH_BYTES], to[PL_PATH_BYTES];
    pl_status status = path_of(stage, i, from_suffix, from, err);
    if (!status)
        status = path_of(stage, i, to_suffix, to, err);
    return status ? status : pl_file_rename(from, to, err);
}

static pl_status finish_writing(pl_stage *stage, pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t i = 0; !status && i < stage->count; i++)
        status = pl_file_sync(&stage->files[i], err);
    for (size_t i = 0; i < stage->count; i++) {
        pl_status closed = pl_file_close(&stage->files[i], status ? NULL : err);
        status = status ? status : closed;
    }
    return status;
}

static pl_status put_in_place(const pl_stage *stage, progress *done,
                              pl_error *err)
{
    char path[PL_PATH_BYTES];
    for (size_t i = 0; i < stage->count; i++) {
        pl_file_kind kind;
        pl_status status = path_of(stage, i, "", path, err);
        if (!status)
            status = pl_file_look(path, &kind, err);
        if (!status && kind != PL_FILE_ABSENT) {
            status = move(stage, i, "", ".old", err);
            done->aside[i] = !status;
        }
        if (status)
            return status;
    }
    for (size_t i = stage->count; i-- > 0;) {
        pl_status status = move(stage, i, ".tmp", "", err);
        if (status)
            return status;
        done->placed[i] = 1;
    }
    return pl_folder_sync(stage->folder, err);
}

/* As far as the system lets us: what went wrong first is reported. */
static void put_back(const pl_stage *stage, const progress *done)
{
    pl_status ignored = PL_OK;
    for (size_t i = 0; i < stage->count; i++)
        if (done->placed[i])
            ignored = move(stage, i, "", ".tmp", NULL);
    for (size_t i = stage->count; i-- > 0;)
        if (done->aside[i])
            ignored = move(stage, i, ".old", "", NULL);
    (void)ignored;
}

static void remove_all(const pl_stage *stage, const char *suffix)
{
    char path[PL_PATH_BYTES];
    for (size_t i = 0; i < stage->count; i++)
        if (!path_of(stage, i, suffix, path, NULL))
            pl_file_remove_quietly(path);
}

pl_status pl_stage_commit(pl_stage *stage, pl_error *err)
{
    progress done = { { 0 }, { 0 } };
    pl_status status = finish_writing(stage, err);
    if (status)
        goto remove_new;
    status = put_in_place(stage, &done, err);
    if (status)
        goto put_back;
    remove_all(stage, ".old");
    return PL_OK;

put_back:
    put_back(stage, &done);
remove_new:
    remove_all(stage, ".tmp");
    return status;
}
