/* dataset.c: see dataset.h. Owns the names of the files in a data folder. */
#include "data/dataset.h"

#include "text/meta.h"
#include "text/pickle.h"

typedef pl_status meta_reader(pl_tokenizer *tokenizer, const char *text,
                              size_t bytes, const char *name, pl_heap *heap,
                              pl_error *err);

static pl_status read_pickle(pl_tokenizer *tokenizer, const char *text,
                             size_t bytes, const char *name, pl_heap *heap,
                             pl_error *err)
{
    return pl_pickle_read_meta(tokenizer, text, bytes, name, heap, err);
}

/* *found says whether folder/name is there; if it is, it must be right. */
static pl_status try_meta(pl_tokenizer *tokenizer, const char *folder,
                          const char *name, size_t max_bytes,
                          meta_reader *reader, pl_heap *heap, int *found,
                          pl_error *err)
{
    char path[PL_PATH_BYTES];
    char *text;
    size_t bytes;
    pl_file_kind kind;
    pl_status status = pl_path_join(path, folder, name, err);
    if (!status)
        status = pl_file_look(path, &kind, err);
    if (status)
        return status;
    *found = kind != PL_FILE_ABSENT;
    if (!*found)
        return PL_OK;
    pl_heap scratch = pl_heap_make(max_bytes + 2);
    status = pl_file_read_all(path, max_bytes, &scratch, &text, &bytes, err);
    if (!status)
        status = reader(tokenizer, text, bytes, path, heap, err);
    pl_heap_close(&scratch);
    return status;
}

pl_status pl_dataset_read_tokenizer(pl_tokenizer *tokenizer, const char *folder,
                                    pl_heap *heap, pl_error *err)
{
    int found;
    pl_status status = try_meta(tokenizer, folder, "meta.json",
                                PL_META_MAX_BYTES, pl_meta_read, heap, &found,
                                err);
    if (status || found)
        return status;
    status = try_meta(tokenizer, folder, "meta.pkl", PL_PICKLE_MAX_BYTES,
                      read_pickle, heap, &found, err);
    if (!status && !found)
        *tokenizer = pl_tokenizer_make_none();
    return status;
}

static pl_status open_shard(pl_shard *shard, const char *folder,
                            const char *name, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_file_kind kind;
    pl_status status = pl_path_join(path, folder, name, err);
    if (!status)
        status = pl_file_look(path, &kind, err);
    if (status)
        return status;
    if (kind == PL_FILE_ABSENT)
        return pl_fail(err, PL_E_IO,
                       "the data file %s doesn't exist. Make it from text "
                       "with\n  plimsoll prepare --out=%s --tokenizer=char "
                       "TEXT.txt",
                       path, folder);
    return pl_shard_open(shard, path, err);
}

pl_status pl_dataset_open(pl_dataset *dataset, const char *parent,
                          const char *name, pl_heap *heap, pl_error *err)
{
    pl_status status = pl_path_join(dataset->folder, parent, name, err);
    if (status)
        return status;
    status = open_shard(&dataset->shards[PL_SPLIT_TRAIN], dataset->folder,
                        "train.bin", err);
    if (status)
        return status;
    status = open_shard(&dataset->shards[PL_SPLIT_VAL], dataset->folder,
                        "val.bin", err);
    if (status)
        goto close_train;
    status = pl_dataset_read_tokenizer(&dataset->tokenizer, dataset->folder,
                                       heap, err);
    if (status)
        goto close_val;
    return PL_OK;

close_val:
    pl_shard_close(&dataset->shards[PL_SPLIT_VAL]);
close_train:
    pl_shard_close(&dataset->shards[PL_SPLIT_TRAIN]);
    return status;
}

void pl_dataset_close(pl_dataset *dataset)
{
    pl_shard_close(&dataset->shards[PL_SPLIT_VAL]);
    pl_shard_close(&dataset->shards[PL_SPLIT_TRAIN]);
}
