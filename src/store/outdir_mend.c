/* outdir_mend.c: names that change together. An earlier run is moved aside by
 * one rename for each of its names: they go to `.moving` first, which becomes
 * `earlier-1` when it has them all. A process that is killed in between leaves
 * `.moving`: the next one that begins from scratch goes on with it, one that
 * resumes takes it back. */
#include "store/metrics.h"
#include "store/notes.h"
#include "store/outdir.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOVING ".moving"

static pl_status path_of(const pl_outdir *outdir, char path[PL_PATH_BYTES],
                         const char *name, pl_error *err)
{
    return pl_path_join(path, outdir->path, name, err);
}

static pl_status look(const char *path, const char *name, int *there,
                      pl_error *err)
{
    char full[PL_PATH_BYTES];
    pl_file_kind kind = PL_FILE_ABSENT;
    pl_status status = pl_path_join(full, path, name, err);
    if (!status)
        status = pl_file_look_at(full, &kind, err);
    *there = kind != PL_FILE_ABSENT;
    return status;
}

/* Renames from/name to to/name, where nothing may be. */
static pl_status move_one(const char *from, const char *to, const char *name,
                          pl_error *err)
{
    char old[PL_PATH_BYTES], new[PL_PATH_BYTES];
    int there = 0;
    pl_status status = pl_path_join(old, from, name, err);
    if (!status)
        status = pl_path_join(new, to, name, err);
    if (!status)
        status = look(to, name, &there, err);
    if (!status && there)
        status = pl_fail(err, PL_E_IO,
                         "%s and %s are both there, and should be one: a move "
                         "was broken off, and somebody else wrote there since. "
                         "Move one of them away",
                         old, new);
    return status ? status : pl_file_rename(old, new, err);
}

/* ---- aside ---- */

static int belongs_to_run(const char *name)
{
    uint64_t step;
    return pl_outdir_step_of(name, &step) ||
           strcmp(name, PL_OUTDIR_LATEST) == 0 ||
           strcmp(name, PL_OUTDIR_BEST) == 0 ||
           strcmp(name, PL_METRICS_NAME) == 0 ||
           strcmp(name, PL_SAMPLES_NAME) == 0 ||
           strcmp(name, PL_TENSORBOARD_NAME) == 0 ||
           strcmp(name, PL_NOTES_PLAN) == 0 ||
           strcmp(name, PL_NOTES_PROGRESS) == 0 ||
           strcmp(name, PL_NOTES_WARNINGS) == 0;
}

static void find_newest(void *context, const char *name)
{
    uint64_t step, *newest = context;
    if (pl_outdir_step_of(name, &step) && step > *newest)
        *newest = step;
}

/* `.moving` has all: it gets its name. */
static pl_status name_earlier(const pl_outdir *outdir, const char *moving,
                              pl_error *err)
{
    char place[PL_PATH_BYTES];
    uint64_t newest = 0;
    pl_status status = pl_folder_walk(moving, find_newest, &newest, err);
    if (!status)
        status = pl_folder_sync(moving, err);
    if (!status)
        status = pl_outdir_free_name(outdir, place, "earlier", err);
    if (!status)
        status = pl_file_rename(moving, place, err);
    if (!status)
        status = pl_folder_sync_of(place, err);
    if (!status)
        pl_log_say(outdir->log, PL_LOG_NOTE,
                   "%s had the checkpoints of an earlier run, up to iteration "
                   "%" PRIu64 ": they are in %s now. To go on with them "
                   "instead: plimsoll train --resume %s",
                   outdir->path, newest, place, pl_path_quoted(place).text);
    return status;
}

pl_status pl_outdir_move_earlier(pl_outdir *outdir, pl_heap *heap,
                                 pl_error *err)
{
    char moving[PL_PATH_BYTES];
    const char *const *names;
    size_t count;
    uint64_t step;
    int any = 0;
    pl_status status = path_of(outdir, moving, MOVING, err);
    if (!status)
        status = pl_folder_list(outdir->path, heap, &names, &count, err);
    for (size_t i = 0; !status && i < count; i++)
        any |= pl_outdir_step_of(names[i], &step) ||
               strcmp(names[i], MOVING) == 0;
    if (status || !any)
        return status;
    status = pl_folder_make(moving, err);
    for (size_t i = 0; !status && i < count; i++)
        if (belongs_to_run(names[i]))
            status = move_one(outdir->path, moving, names[i], err);
    return status ? status : name_earlier(outdir, moving, err);
}

/* ---- and back ---- */

/* Some name in a folder, or one that begins with `prefix`. */
typedef struct some {
    const char *prefix;
    char name[256];
} some;

static void take_any(void *context, const char *name)
{
    some *s = context;
    if (strncmp(name, s->prefix, strlen(s->prefix)) == 0)
        snprintf(s->name, sizeof s->name, "%s", name);
}

static pl_status take_back_move(const pl_outdir *outdir, pl_error *err)
{
    char moving[PL_PATH_BYTES];
    int there = 0;
    pl_status status = look(outdir->path, MOVING, &there, err);
    if (!status)
        status = path_of(outdir, moving, MOVING, err);
    if (status || !there)
        return status;
    for (;;) {
        some s = { .prefix = "" };
        status = pl_folder_walk(moving, take_any, &s, err);
        if (!status && s.name[0] == '\0')
            break;
        if (!status)
            status = move_one(moving, outdir->path, s.name, err);
        if (status)
            return status;
    }
    status = pl_folder_remove_flat(moving, err);
    if (!status)
        pl_log_say(outdir->log, PL_LOG_NOTE,
                   "%s: a move to earlier-1 was broken off; it is taken back",
                   outdir->path);
    return status;
}

/* A checkpoint that was to be replaced by another of its step: it comes back
 * where that isn't there. */
static pl_status mend_replaced(const pl_outdir *outdir, pl_error *err)
{
    for (;;) {
        char from[PL_PATH_BYTES], to[PL_PATH_BYTES];
        some s = { .prefix = PL_OUTDIR_REPLACED };
        int there = 0;
        pl_status status = pl_folder_walk(outdir->path, take_any, &s, err);
        if (status || s.name[0] == '\0')
            return status;
        const char *name = s.name + strlen(PL_OUTDIR_REPLACED);
        status = look(outdir->path, name, &there, err);
        if (!status)
            status = path_of(outdir, from, s.name, err);
        if (!status)
            status = path_of(outdir, to, name, err);
        if (!status)
            status = there ? pl_folder_remove_flat(from, err)
                           : pl_file_rename(from, to, err);
        if (status)
            return status;
    }
}

pl_status pl_outdir_mend(const pl_outdir *outdir, pl_outdir_use use,
                         pl_error *err)
{
    pl_status status = mend_replaced(outdir, err);
    if (!status && use == PL_OUTDIR_RESUMED)
        status = take_back_move(outdir, err);
    return status;
}

pl_status pl_outdir_mend_closed(const char *path, const pl_log *log,
                                pl_error *err)
{
    pl_outdir outdir = { .path = path,
                         .log = log,
                         .folder = PL_FILE_CLOSED,
                         .lock = PL_FILE_CLOSED };
    some s = { .prefix = PL_OUTDIR_REPLACED };
    pl_file_kind kind = PL_FILE_ABSENT;
    int moving = 0;
    pl_status status = pl_file_look(path, &kind, err);
    if (status || kind != PL_FILE_FOLDER)
        return status;
    status = look(path, MOVING, &moving, err);
    if (!status)
        status = pl_folder_walk(path, take_any, &s, err);
    if (status || (!moving && s.name[0] == '\0'))
        return status;
    status = pl_folder_hold(&outdir.lock, path, err);
    if (!status)
        status = pl_outdir_mend(&outdir, PL_OUTDIR_RESUMED, err);
    pl_file_abandon(&outdir.lock);
    return status;
}
