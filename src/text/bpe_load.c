/* bpe_load.c: finds out what a path holds and reads it; see bpe_read.h. */
#include "text/bpe_read.h"

#include "base/file.h"

#include <string.h>

enum { SCRATCH_BYTES = 3 * PL_BPE_MAX_FILE_BYTES };

static int ends_in(const char *path, const char *end)
{
    size_t bytes = strlen(path), tail = strlen(end);
    return bytes >= tail && strcmp(path + bytes - tail, end) == 0;
}

static pl_status read_text(pl_bpe_text *out, const char *path, pl_heap *scratch,
                           pl_error *err)
{
    char *text;
    pl_status status = pl_file_read_all(path, PL_BPE_MAX_FILE_BYTES, scratch,
                                        &text, &out->bytes, err);
    out->text = text;
    out->name = path;
    return status;
}

static pl_status load_both(pl_bpe **bpe, const char *folder, pl_heap *scratch,
                           pl_heap *heap, pl_error *err)
{
    char vocab_path[PL_PATH_BYTES], merges_path[PL_PATH_BYTES];
    pl_bpe_text vocab, merges;
    pl_status status = pl_path_join(vocab_path, folder, "vocab.json", err);
    if (!status)
        status = pl_path_join(merges_path, folder, "merges.txt", err);
    if (!status)
        status = read_text(&vocab, vocab_path, scratch, err);
    if (!status)
        status = read_text(&merges, merges_path, scratch, err);
    return status ? status : pl_bpe_read_vocab(bpe, &vocab, &merges, heap, err);
}

static pl_status load_file(pl_bpe **bpe, const char *path, pl_heap *scratch,
                           pl_heap *heap, pl_error *err)
{
    pl_bpe_text file;
    char folder[PL_PATH_BYTES];
    if (ends_in(path, "vocab.json")) {
        pl_status status = pl_path_join(folder, "", path, err);
        if (status)
            return status;
        pl_path_cut_to_parent(folder);
        return load_both(bpe, folder, scratch, heap, err);
    }
    pl_status status = read_text(&file, path, scratch, err);
    if (status)
        return status;
    if (ends_in(path, ".json"))
        return pl_bpe_read_json(bpe, file.text, file.bytes, file.name, heap,
                                err);
    return pl_bpe_read_ranks(bpe, file.text, file.bytes, file.name, heap, err);
}

static pl_status load_folder(pl_bpe **bpe, const char *path, pl_heap *scratch,
                             pl_heap *heap, pl_error *err)
{
    char inside[PL_PATH_BYTES];
    pl_file_kind kind;
    pl_status status = pl_path_join(inside, path, "tokenizer.json", err);
    if (!status)
        status = pl_file_look(inside, &kind, err);
    if (status)
        return status;
    if (kind != PL_FILE_ABSENT)
        return load_file(bpe, inside, scratch, heap, err);
    return load_both(bpe, path, scratch, heap, err);
}

pl_status pl_bpe_load(pl_bpe **bpe, const char *path, pl_heap *heap,
                      pl_error *err)
{
    pl_heap scratch = pl_heap_make(SCRATCH_BYTES);
    pl_file_kind kind;
    pl_status status = pl_file_look(path, &kind, err);
    if (status)
        return status;
    status = kind == PL_FILE_FOLDER
                 ? load_folder(bpe, path, &scratch, heap, err)
                 : load_file(bpe, path, &scratch, heap, err);
    pl_heap_close(&scratch);
    return status;
}
