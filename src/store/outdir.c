/* outdir.c: see outdir.h. */
#include "store/outdir.h"
#include "base/units.h"
#include "store/metrics.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NUMBERED = 9999 };

/* ---- names ---- */

void pl_outdir_name(char name[PL_OUTDIR_NAME_BYTES], uint64_t step)
{
    snprintf(name, PL_OUTDIR_NAME_BYTES, "step-%08" PRIu64, step);
}

int pl_outdir_step_of(const char *name, uint64_t *step)
{
    char again[PL_OUTDIR_NAME_BYTES];
    if (strncmp(name, "step-", 5) != 0 || strlen(name) > 24 ||
        !isdigit((unsigned char)name[5]))
        return 0;
    *step = strtoull(name + 5, NULL, 10);
    pl_outdir_name(again, *step);
    return strcmp(name, again) == 0;
}

/* The newest, the best, the one that is being written. */
size_t pl_outdir_most(size_t keep)
{
    return keep + 3;
}

static pl_status path_of(const pl_outdir *outdir, char path[PL_PATH_BYTES],
                         const char *name, pl_error *err)
{
    return pl_path_join(path, outdir->path, name, err);
}

static void warn(const pl_outdir *outdir, const pl_error *trouble)
{
    pl_log_say(outdir->log, PL_LOG_WARN, "%s", trouble->text);
}

pl_status pl_outdir_free_name(const pl_outdir *outdir, char path[PL_PATH_BYTES],
                              const char *stem, pl_error *err)
{
    char name[2 * PL_OUTDIR_NAME_BYTES];
    for (int i = 1; i <= MOST_NUMBERED; i++) {
        pl_file_kind kind;
        snprintf(name, sizeof name, "%.40s-%d", stem, i);
        pl_status status = path_of(outdir, path, name, err);
        if (!status)
            status = pl_file_look_at(path, &kind, err);
        if (status || kind == PL_FILE_ABSENT)
            return status;
    }
    return pl_fail(err, PL_E_IO, "%s: it has %s-1 to %s-%d: clear it up",
                   outdir->path, stem, stem, MOST_NUMBERED);
}

/* ---- opening ---- */

/* A link's place is free, or holds a link. */
static pl_status check_place(const pl_outdir *outdir, const char *name,
                             pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_file_kind kind;
    pl_status status = path_of(outdir, path, name, err);
    if (!status)
        status = pl_file_look_at(path, &kind, err);
    if (status)
        return status;
    if (kind == PL_FILE_FOLDER || kind == PL_FILE_PLAIN)
        return pl_fail(err, PL_E_IO,
                       "%s: a link to a checkpoint goes here, but it is a %s. "
                       "Move it away, or choose another out_dir",
                       path, kind == PL_FILE_FOLDER ? "folder" : "file");
    return PL_OK;
}

static void count_steps(void *context, const char *name)
{
    uint64_t step;
    *(size_t *)context += (size_t)pl_outdir_step_of(name, &step);
}

/* Takes the size of a file that is there off *bytes. */
static pl_status take_off(const pl_outdir *outdir, const char *name,
                          uint64_t *bytes, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_file_kind kind = PL_FILE_ABSENT;
    pl_file file;
    pl_status status = path_of(outdir, path, name, err);
    if (!status)
        status = pl_file_look(path, &kind, err);
    if (status || kind != PL_FILE_PLAIN)
        return status;
    status = pl_file_open_read(&file, path, err);
    if (status)
        return status;
    *bytes -= pl_file_size(&file) < *bytes ? pl_file_size(&file) : *bytes;
    pl_file_abandon(&file);
    return PL_OK;
}

/* All that the run will hold, less what is there already. */
static pl_status check_room(const pl_outdir *outdir, pl_outdir_need need,
                            pl_outdir_use use, pl_error *err)
{
    size_t have = 0, want = pl_outdir_most(outdir->keep);
    uint64_t room, metrics = need.metrics_bytes;
    pl_status status = pl_disk_free_bytes(outdir->path, &room, err);
    if (!status && use == PL_OUTDIR_RESUMED)
        status = pl_folder_walk(outdir->path, count_steps, &have, err);
    if (!status && use == PL_OUTDIR_RESUMED)
        status = take_off(outdir, PL_METRICS_NAME, &metrics, err);
    if (!status && use == PL_OUTDIR_RESUMED)
        status = take_off(outdir, PL_TENSORBOARD_NAME, &metrics, err);
    if (!status && use == PL_OUTDIR_RESUMED)
        status = take_off(outdir, PL_SAMPLES_NAME, &metrics, err);
    if (status)
        return status;
    want = have + 1 < want ? want - have : 1;
    if (room < metrics || (room - metrics) / want < need.checkpoint_bytes)
        return pl_fail(err, PL_E_IO,
                       "%s: a checkpoint takes %s, and the run needs room for "
                       "%zu (the newest, the best, keep = %zu, "
                       "and one while it is written), and %s for the metrics "
                       "of max_iters updates; the disk has %s left. Make room, "
                       "lower keep or max_iters, "
                       "or choose another out_dir",
                       outdir->path, pl_units_bytes(need.checkpoint_bytes).text,
                       want, outdir->keep, pl_units_bytes(metrics).text,
                       pl_units_bytes(room).text);
    return PL_OK;
}

/* What a process left that was killed while it wrote or removed. */
static pl_status clean(const pl_outdir *outdir, const char *name, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_status status = path_of(outdir, path, name, err);
    return status ? status : pl_folder_remove_flat(path, err);
}

pl_status pl_outdir_open(pl_outdir *outdir, const char *path, size_t keep,
                         pl_outdir_need need, pl_outdir_use use,
                         const pl_log *log, pl_error *err)
{
    *outdir = (pl_outdir){ .path = path,
                           .log = log,
                           .folder = PL_FILE_CLOSED,
                           .lock = PL_FILE_CLOSED,
                           .keep = keep,
                           .newest = PL_OUTDIR_NO_STEP,
                           .best = PL_OUTDIR_NO_STEP,
                           .best_loss = HUGE_VAL };
    if (path[0] == '\0')
        return pl_fail(err, PL_E_CONFIG,
                       "out_dir is empty: name a folder for the checkpoints");
    pl_file_kind before;
    pl_status status = pl_file_look(path, &before, err);
    if (!status)
        status = pl_folder_hold(&outdir->lock, path, err);
    outdir->is_new = !status && before == PL_FILE_ABSENT;
    if (!status)
        status = pl_folder_open(&outdir->folder, path, err);
    if (!status)
        status = pl_outdir_mend(outdir, use, err);
    if (!status)
        status = clean(outdir, PL_OUTDIR_SAVING, err);
    if (!status)
        status = clean(outdir, PL_OUTDIR_REMOVING, err);
    if (!status)
        status = check_place(outdir, PL_OUTDIR_LATEST, err);
    if (!status)
        status = check_place(outdir, PL_OUTDIR_BEST, err);
    if (!status)
        status = check_room(outdir, need, use, err);
    if (status)
        pl_outdir_undo(outdir);
    return status;
}

void pl_outdir_close(pl_outdir *outdir)
{
    pl_file_abandon(&outdir->lock);
    pl_file_abandon(&outdir->folder);
}

void pl_outdir_undo(pl_outdir *outdir)
{
    if (outdir->is_new)
        pl_folder_let_go(&outdir->lock);
    pl_outdir_close(outdir);
}

/* ---- saving ---- */

pl_status pl_outdir_begin(pl_outdir *outdir, char folder[PL_PATH_BYTES],
                          pl_error *err)
{
    pl_status status = pl_outdir_follow(outdir, PL_OUTDIR_REMAKE, err);
    if (!status)
        status = clean(outdir, PL_OUTDIR_SAVING, err);
    if (!status)
        status = path_of(outdir, folder, PL_OUTDIR_SAVING, err);
    if (!status)
        status = pl_folder_make(folder, err);
    return status;
}

void pl_outdir_abandon(pl_outdir *outdir)
{
    /* what has its name may be another run's */
    pl_status status = pl_outdir_follow(outdir, PL_OUTDIR_FIND, NULL);
    if (!status)
        status = clean(outdir, PL_OUTDIR_SAVING, NULL);
    (void)status;
}

/* Renames a checkpoint and then removes it: half of one never has its name. */
static pl_status remove_step(const pl_outdir *outdir, const char *name,
                             pl_error *err)
{
    char from[PL_PATH_BYTES], to[PL_PATH_BYTES];
    pl_status status = clean(outdir, PL_OUTDIR_REMOVING, err);
    if (!status)
        status = path_of(outdir, from, name, err);
    if (!status)
        status = path_of(outdir, to, PL_OUTDIR_REMOVING, err);
    if (!status)
        status = pl_file_rename(from, to, err);
    return status ? status : pl_folder_remove_flat(to, err);
}

static void find_newer(void *context, const char *name)
{
    uint64_t step, *newest = context; /* [0]: ours, [1]: one that is newer */
    if (pl_outdir_step_of(name, &step) && step > newest[0])
        newest[1] = step;
}

/* What is newer than the run itself was passed over when it was resumed. It
 * gets another name before the run comes by its step again, or takes it for one
 * of its own that are kept and removed; its content stays. */
static pl_status set_aside(pl_outdir *outdir, uint64_t step, pl_error *err)
{
    char name[PL_OUTDIR_NAME_BYTES], stem[2 * PL_OUTDIR_NAME_BYTES];
    char path[PL_PATH_BYTES], aside[PL_PATH_BYTES];
    pl_status status = PL_OK;
    if (step == outdir->best) { /* no link points to nothing */
        status = path_of(outdir, path, PL_OUTDIR_BEST, err);
        if (!status)
            status = pl_file_remove(path, err);
        outdir->best = PL_OUTDIR_NO_STEP;
        outdir->best_loss = HUGE_VAL;
    }
    pl_outdir_name(name, step);
    snprintf(stem, sizeof stem, "damaged-%s", name);
    if (!status)
        status = path_of(outdir, path, name, err);
    if (!status)
        status = pl_outdir_free_name(outdir, aside, stem, err);
    if (!status)
        status = pl_file_rename(path, aside, err);
    if (!status)
        pl_log_say(outdir->log, PL_LOG_NOTE,
                   "%s, which was passed over, is %s now", path, aside);
    return status;
}

static pl_status set_newer_aside(pl_outdir *outdir, pl_error *err)
{
    while (outdir->newest != PL_OUTDIR_NO_STEP) {
        uint64_t steps[2] = { outdir->newest, outdir->newest };
        pl_status status = pl_folder_walk(outdir->path, find_newer, steps, err);
        if (status || steps[1] == steps[0])
            return status;
        status = set_aside(outdir, steps[1], err);
        if (status)
            return status;
    }
    return PL_OK;
}

typedef struct candidates {
    const pl_outdir *outdir;
    size_t count;
    uint64_t oldest;
} candidates;

static void consider(void *context, const char *name)
{
    candidates *c = context;
    uint64_t step;
    if (!pl_outdir_step_of(name, &step) || step >= c->outdir->newest ||
        step == c->outdir->best)
        return;
    if (c->count == 0 || step < c->oldest)
        c->oldest = step;
    c->count++;
}

static pl_status prune(const pl_outdir *outdir, pl_error *err)
{
    char name[PL_OUTDIR_NAME_BYTES];
    for (;;) {
        candidates c = { .outdir = outdir };
        pl_status status = pl_folder_walk(outdir->path, consider, &c, err);
        if (status || c.count <= outdir->keep)
            return status;
        pl_outdir_name(name, c.oldest);
        status = remove_step(outdir, name, err);
        if (status)
            return status;
    }
}

static pl_status link_to(const pl_outdir *outdir, const char *link,
                         const char *name, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_status status = path_of(outdir, path, link, err);
    return status ? status : pl_link_replace(path, name, err);
}

/* What the link says counts, even if making it ended in an error: what it
 * points to is never removed. */
static pl_status link_best(pl_outdir *outdir, const char *name, uint64_t step,
                           double loss, pl_error *err)
{
    char path[PL_PATH_BYTES], target[PL_PATH_BYTES] = "";
    pl_status status = link_to(outdir, PL_OUTDIR_BEST, name, err);
    pl_status read = path_of(outdir, path, PL_OUTDIR_BEST, NULL);
    if (status && !read)
        read = pl_link_read(path, target, NULL);
    if (!status || read || strcmp(target, name) == 0) {
        outdir->best = step;
        outdir->best_loss = loss;
    }
    return status;
}

/* Gives what was written its name. Where the run saves a step once more, the
 * one before keeps a name from which it comes back (pl_outdir_mend), until the
 * new one has its own. */
static pl_status name_saved(const pl_outdir *outdir, const char *from,
                            const char *to, uint64_t step, pl_error *err)
{
    char name[PL_OUTDIR_NAME_BYTES], other[2 * PL_OUTDIR_NAME_BYTES];
    char before[PL_PATH_BYTES];
    if (step != outdir->newest)
        return pl_file_rename(from, to, err);
    pl_outdir_name(name, step);
    snprintf(other, sizeof other, PL_OUTDIR_REPLACED "%s", name);
    pl_status status = path_of(outdir, before, other, err);
    if (!status)
        status = pl_file_rename(to, before, err);
    if (status)
        return status;
    status = pl_file_rename(from, to, err);
    pl_status rest = status ? pl_file_rename(before, to, NULL)
                            : pl_folder_remove_flat(before, NULL);
    (void)rest; /* the next start does it */
    return status;
}

pl_status pl_outdir_publish(pl_outdir *outdir, uint64_t step, double loss,
                            pl_error *err)
{
    char name[PL_OUTDIR_NAME_BYTES], from[PL_PATH_BYTES], to[PL_PATH_BYTES];
    pl_error trouble = { 0 };
    pl_outdir_name(name, step);
    pl_status status = pl_outdir_follow(outdir, PL_OUTDIR_FIND, err);
    if (!status)
        status = path_of(outdir, from, PL_OUTDIR_SAVING, err);
    if (!status)
        status = path_of(outdir, to, name, err);
    if (!status)
        status = set_newer_aside(outdir, err);
    if (!status)
        status = name_saved(outdir, from, to, step, err);
    if (!status)
        outdir->newest = step;
    if (!status)
        status = pl_folder_sync(outdir->path, err);
    if (status)
        return status;
    status = link_to(outdir, PL_OUTDIR_LATEST, name, &trouble);
    if (!status && loss < outdir->best_loss)
        status = link_best(outdir, name, step, loss, &trouble);
    if (!status)
        status = prune(outdir, &trouble);
    if (status)
        warn(outdir, &trouble);
    return PL_OK;
}

/* ---- links of a run that is resumed ---- */

/* Lets a link point to `name` (NULL: to nothing) if it doesn't. */
static pl_status mend_link(const pl_outdir *outdir, const char *link,
                           const char *name, pl_error *err)
{
    char path[PL_PATH_BYTES], target[PL_PATH_BYTES] = "";
    pl_status status = path_of(outdir, path, link, err);
    if (!status)
        status = pl_link_read(path, target, err);
    if (status || strcmp(target, name ? name : "") == 0)
        return status;
    status = name ? pl_link_replace(path, name, err)
                  : pl_file_remove(path, err);
    if (!status)
        pl_log_say(outdir->log, PL_LOG_NOTE, "%s pointed to %s: it is %s now",
                   path, target[0] ? target : "nothing", name ? name : "gone");
    return status;
}

void pl_outdir_relink(pl_outdir *outdir, uint64_t newest, uint64_t best,
                      double loss)
{
    char name[PL_OUTDIR_NAME_BYTES];
    pl_error trouble = { 0 };
    outdir->newest = newest;
    outdir->best = best;
    outdir->best_loss = loss;
    pl_outdir_name(name, newest);
    pl_status status = mend_link(outdir, PL_OUTDIR_LATEST, name, &trouble);
    pl_outdir_name(name, best);
    if (!status)
        status = mend_link(outdir, PL_OUTDIR_BEST,
                           best == PL_OUTDIR_NO_STEP ? NULL : name, &trouble);
    if (status)
        warn(outdir, &trouble);
}
