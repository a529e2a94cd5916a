/* outdir_held.c: what the files of a run take already. */
#include "store/metrics.h"
#include "store/notes.h"
#include "store/outdir.h"

#include <string.h>

enum { PAGE_BYTES = 4096 };

/* A folder whose names are walked through, and what they hold. */
typedef struct walk {
    const char *path;
    uint64_t bytes;
    pl_status status;
    pl_error *err;
} walk;

static void add_file(void *context, const char *name)
{
    walk *w = context;
    char path[PL_PATH_BYTES];
    pl_file_kind kind = PL_FILE_ABSENT;
    pl_file file;
    if (w->status)
        return;
    w->status = pl_path_join(path, w->path, name, w->err);
    if (!w->status)
        w->status = pl_file_look_at(path, &kind, w->err);
    if (w->status || kind != PL_FILE_PLAIN)
        return;
    w->status = pl_file_open_read(&file, path, w->err);
    if (w->status)
        return;
    w->bytes += (pl_file_size(&file) + PAGE_BYTES - 1) / PAGE_BYTES *
                PAGE_BYTES;
    pl_file_abandon(&file);
}

/* A checkpoint, or what was left of writing or removing one. */
static int is_checkpoint(const char *name)
{
    uint64_t step;
    return pl_outdir_step_of(name, &step) ||
           strcmp(name, PL_OUTDIR_SAVING) == 0 ||
           strcmp(name, PL_OUTDIR_REMOVING) == 0;
}

static void add_checkpoint(void *context, const char *name)
{
    walk *w = context;
    char path[PL_PATH_BYTES];
    pl_file_kind kind = PL_FILE_ABSENT;
    if (w->status || !is_checkpoint(name))
        return;
    w->status = pl_path_join(path, w->path, name, w->err);
    if (!w->status)
        w->status = pl_file_look_at(path, &kind, w->err);
    walk inner = { .path = path, .err = w->err };
    if (!w->status && kind == PL_FILE_FOLDER)
        w->status = pl_folder_walk(path, add_file, &inner, w->err);
    if (!w->status)
        w->status = inner.status;
    w->bytes += inner.bytes;
}

pl_status pl_outdir_held_bytes(const char *path, uint64_t *bytes, pl_error *err)
{
    walk w = { .path = path, .err = err };
    pl_file_kind kind;
    *bytes = 0;
    pl_status status = pl_file_look(path, &kind, err);
    if (status || kind != PL_FILE_FOLDER)
        return status;
    status = pl_folder_walk(path, add_checkpoint, &w, err);
    add_file(&w, PL_METRICS_NAME);
    add_file(&w, PL_TENSORBOARD_NAME);
    add_file(&w, PL_NOTES_PLAN);
    add_file(&w, PL_NOTES_PROGRESS);
    add_file(&w, PL_NOTES_WARNINGS);
    add_file(&w, PL_SAMPLES_NAME);
    *bytes = w.bytes;
    return status ? status : w.status;
}
