/* dataset.c: see dataset.h. Owns the names of the files in a data folder. */
#include "data/dataset.h"

#include "text/tokfile.h"

#include <stdio.h>
#include <string.h>

enum { LIST_BYTES = 64 * 1024 * 1024 }; /* names in a folder, for a moment */

pl_status pl_dataset_read_tokenizer(pl_tokenizer *tokenizer, const char *folder,
                                    pl_heap *heap, pl_error *err)
{
    return pl_tokenizer_find(tokenizer, folder, heap, err);
}

static int is_shard(const char *name, const char *split)
{
    size_t bytes = strlen(name);
    return name[0] != '.' && bytes > 4 && !strcmp(name + bytes - 4, ".bin") &&
           strstr(name, split);
}

/* The paths of the folder's files that are shards of this split. */
static pl_status list_shards(const char *folder, const char *split,
                             pl_heap *heap, const char ***paths, size_t *count,
                             pl_error *err)
{
    const char *const *names;
    size_t all, capacity = 0;
    char path[PL_PATH_BYTES];
    *count = 0;
    pl_status status = pl_folder_list(folder, heap, &names, &all, err);
    for (size_t i = 0; !status && i < all; i++) {
        if (!is_shard(names[i], split))
            continue;
        status = pl_path_join(path, folder, names[i], err);
        if (!status)
            status = pl_heap_grow(heap, paths, &capacity, *count + 1,
                                  sizeof **paths, err);
        if (!status)
            status = pl_heap_text(heap, &(*paths)[*count], path, strlen(path),
                                  err);
        *count += !status;
    }
    return status;
}

static pl_status no_shards(const char *path, const char *folder, pl_error *err)
{
    static const char twice[] = "data/data/";
    if (strncmp(folder, twice, sizeof twice - 1) == 0)
        return pl_fail(err, PL_E_IO,
                       "the data file %s doesn't exist: dataset is the name of "
                       "a folder in data/, without data/: --dataset=%s",
                       path, pl_path_quoted(folder + sizeof twice - 1).text);
    return pl_fail(err, PL_E_IO,
                   "the data file %s doesn't exist. Make it from text with\n"
                   "  plimsoll prepare --out=%s --tokenizer=char TEXT.txt",
                   path, pl_path_quoted(folder).text);
}

static pl_status open_shards(pl_shard_set *set, const char *folder,
                             const char *split, pl_heap *heap, pl_error *err)
{
    char name[16], path[PL_PATH_BYTES];
    const char *one = path, **paths = &one;
    size_t count = 1;
    pl_file_kind kind, folder_kind;
    snprintf(name, sizeof name, "%s.bin", split);
    pl_status status = pl_path_join(path, folder, name, err);
    if (!status)
        status = pl_file_look(path, &kind, err);
    if (!status)
        status = pl_file_look(folder, &folder_kind, err);
    if (status)
        return status;
    pl_heap scratch = pl_heap_make(LIST_BYTES);
    if (kind == PL_FILE_ABSENT && folder_kind == PL_FILE_FOLDER)
        status = list_shards(folder, split, &scratch, &paths, &count, err);
    else if (kind == PL_FILE_ABSENT)
        count = 0;
    if (!status && count == 0)
        status = no_shards(path, folder, err);
    if (!status)
        status = pl_shard_set_open(set, paths, count, heap, err);
    pl_heap_close(&scratch);
    return status;
}

pl_status pl_dataset_open(pl_dataset *dataset, const char *parent,
                          const char *name, pl_heap *heap, pl_error *err)
{
    pl_status status = pl_path_join(dataset->folder, parent, name, err);
    if (status)
        return status;
    status = open_shards(&dataset->shards[PL_SPLIT_TRAIN], dataset->folder,
                         "train", heap, err);
    if (status)
        return status;
    status = open_shards(&dataset->shards[PL_SPLIT_VAL], dataset->folder, "val",
                         heap, err);
    if (status)
        goto close_train;
    status = pl_dataset_read_tokenizer(&dataset->tokenizer, dataset->folder,
                                       heap, err);
    if (status)
        goto close_val;
    return PL_OK;

close_val:
    pl_shard_set_close(&dataset->shards[PL_SPLIT_VAL]);
close_train:
    pl_shard_set_close(&dataset->shards[PL_SPLIT_TRAIN]);
    return status;
}

void pl_dataset_close(pl_dataset *dataset)
{
    pl_shard_set_close(&dataset->shards[PL_SPLIT_VAL]);
    pl_shard_set_close(&dataset->shards[PL_SPLIT_TRAIN]);
}
