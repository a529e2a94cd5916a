/* publish.c: see publish.h. */
#include "data/publish.h"

#include "base/file.h"

#include <string.h>

enum { LIST_BYTES = 512 * 1024 * 1024 }; /* of names; taken as they come */

typedef struct names {
    const char *const *all;
    size_t count;
} names;

typedef struct job {
    const char *folder, *from;
    char aside[PL_PATH_BYTES];
    names old, fresh;
    size_t old_moved, fresh_moved; /* in the order of `ranked` */
    pl_error *err;
} job;

/* "train.bin", "train_000017.bin" */
static int is_split(const char *name, const char *split)
{
    size_t bytes = strlen(split);
    if (strncmp(name, split, bytes) != 0)
        return 0;
    name += bytes;
    if (*name == '_' && strspn(name + 1, "0123456789") == 6)
        name += 7;
    return strcmp(name, ".bin") == 0;
}

typedef enum rank { TRAIN, VAL, TOKENIZER, OTHER } rank;

static rank rank_of(const char *name)
{
    if (is_split(name, "train"))
        return TRAIN;
    if (is_split(name, "val"))
        return VAL;
    if (!strcmp(name, "meta.json") || !strcmp(name, "tokenizer.json"))
        return TOKENIZER;
    return OTHER;
}

static pl_status move(const char *from, const char *to, const char *name,
                      pl_error *err)
{
    char a[PL_PATH_BYTES], b[PL_PATH_BYTES];
    pl_status status = pl_path_join(a, from, name, err);
    if (!status)
        status = pl_path_join(b, to, name, err);
    return status ? status : pl_file_rename(a, b, err);
}

/* Moves the files of rank `which`; *moved counts on. */
static pl_status move_rank(const names *list, rank which, const char *from,
                           const char *to, size_t *moved, pl_error *err)
{
    for (size_t i = 0; i < list->count; i++) {
        if (rank_of(list->all[i]) != which)
            continue;
        pl_status status = move(from, to, list->all[i], err);
        if (status)
            return status;
        ++*moved;
    }
    return PL_OK;
}

static pl_status move_all(job *j)
{
    pl_status status = PL_OK;
    for (int r = TRAIN; r < OTHER && !status; r++)
        status = move_rank(&j->old, (rank)r, j->folder, j->aside, &j->old_moved,
                           j->err);
    for (int r = OTHER; r-- > TRAIN && !status;)
        status = move_rank(&j->fresh, (rank)r, j->from, j->folder,
                           &j->fresh_moved, j->err);
    return status ? status : pl_folder_sync(j->folder, j->err);
}

/* Undoes the first `moved` moves of a list, ranks from `first` by `step`; as
 * far as the system lets us, since what went wrong first is reported. Says
 * whether all are back. */
static int move_back(const names *list, int first, int step, size_t moved,
                     const char *from, const char *to)
{
    int all = 1;
    for (int r = first; moved > 0; r += step)
        for (size_t i = 0; i < list->count && moved > 0; i++)
            if ((int)rank_of(list->all[i]) == r) {
                all &= move(from, to, list->all[i], NULL) == PL_OK;
                moved--;
            }
    return all;
}

static pl_status gather(job *j, pl_heap *heap)
{
    pl_status status = pl_folder_list(j->folder, heap, &j->old.all,
                                      &j->old.count, j->err);
    if (!status)
        status = pl_folder_list(j->from, heap, &j->fresh.all, &j->fresh.count,
                                j->err);
    if (!status)
        status = pl_path_join(j->aside, j->folder, PL_PUBLISH_OLD, j->err);
    if (!status)
        status = pl_folder_remove_flat(j->aside, j->err);
    return status ? status : pl_folder_make(j->aside, j->err);
}

pl_status pl_publish(const char *folder, const char *from, pl_error *err)
{
    job j = { .folder = folder, .from = from, .err = err };
    pl_heap heap = pl_heap_make(LIST_BYTES);
    pl_error ignored;
    pl_status status = gather(&j, &heap);
    if (status)
        goto close_heap;
    status = move_all(&j);
    int safe = 1; /* whether nothing but litter is set aside */
    if (status) {
        move_back(&j.fresh, TOKENIZER, -1, j.fresh_moved, folder, from);
        safe = move_back(&j.old, TRAIN, 1, j.old_moved, j.aside, folder);
    }
    pl_status removed = PL_OK;
    if (safe)
        removed = pl_folder_remove_flat(j.aside, &ignored);
    if (!status)
        removed = pl_folder_remove_flat(from, &ignored);
    (void)removed;

close_heap:
    pl_heap_close(&heap);
    return status;
}
