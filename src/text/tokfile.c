/* tokfile.c: see tokfile.h. Owns which file is which. */
#include "text/tokfile.h"

#include "base/file.h"
#include "text/bpe_read.h"
#include "text/meta.h"
#include "text/pickle.h"

#include <string.h>

enum { MODEL_ROUND = 64, HELD_TOKEN_BYTES = 320 };

typedef pl_status reader(pl_tokenizer *tokenizer, const char *path,
                         pl_heap *heap, pl_error *err);

/* Reads the whole file for one of the parsers below. */
static pl_status read_whole(const char *path, size_t max_bytes,
                            pl_heap *scratch, char **text, size_t *bytes,
                            pl_error *err)
{
    *scratch = pl_heap_make(max_bytes + 2);
    return pl_file_read_all(path, max_bytes, scratch, text, bytes, err);
}

static pl_status read_meta(pl_tokenizer *tokenizer, const char *path,
                           pl_heap *heap, pl_error *err)
{
    pl_heap scratch;
    char *text;
    size_t bytes;
    pl_status status = read_whole(path, PL_META_MAX_BYTES, &scratch, &text,
                                  &bytes, err);
    if (!status)
        status = pl_meta_read(tokenizer, text, bytes, path, heap, err);
    pl_heap_close(&scratch);
    return status;
}

static pl_status read_pickle(pl_tokenizer *tokenizer, const char *path,
                             pl_heap *heap, pl_error *err)
{
    pl_heap scratch;
    char *text;
    size_t bytes;
    pl_status status = read_whole(path, PL_PICKLE_MAX_BYTES, &scratch, &text,
                                  &bytes, err);
    if (!status)
        status = pl_pickle_read_meta(tokenizer, text, bytes, path, heap, err);
    pl_heap_close(&scratch);
    return status;
}

static pl_status read_bpe(pl_tokenizer *tokenizer, const char *path,
                          pl_heap *heap, pl_error *err)
{
    pl_bpe *bpe;
    pl_status status = pl_bpe_load(&bpe, path, heap, err);
    pl_heap_trim(); /* a large file's JSON is many times its size */
    if (!status)
        *tokenizer = pl_tokenizer_make_bpe(bpe);
    return status;
}

/* In the order in which a folder is asked for them. */
static const struct {
    const char *name;
    reader *read;
} kinds[] = {
    { PL_TOKENIZER_META, read_meta },
    { PL_TOKENIZER_JSON, read_bpe },
    { "meta.pkl", read_pickle },
    { "vocab.json", read_bpe },
};

pl_status pl_tokenizer_find(pl_tokenizer *tokenizer, const char *folder,
                            pl_heap *heap, pl_error *err)
{
    char path[PL_PATH_BYTES];
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        pl_file_kind kind;
        pl_status status = pl_path_join(path, folder, kinds[i].name, err);
        if (!status)
            status = pl_file_look(path, &kind, err);
        if (!status && kind != PL_FILE_ABSENT)
            return kinds[i].read(tokenizer, path, heap, err);
        if (status)
            return status;
    }
    *tokenizer = pl_tokenizer_make_none();
    return PL_OK;
}

static int ends_in(const char *path, const char *end)
{
    size_t bytes = strlen(path), tail = strlen(end);
    return bytes >= tail && strcmp(path + bytes - tail, end) == 0;
}

pl_status pl_tokenizer_load(pl_tokenizer *tokenizer, const char *path,
                            pl_heap *heap, pl_error *err)
{
    pl_file_kind kind;
    pl_status status = pl_file_look(path, &kind, err);
    if (status)
        return status;
    if (kind == PL_FILE_FOLDER) {
        status = pl_tokenizer_find(tokenizer, path, heap, err);
        if (!status && tokenizer->kind == PL_TOKENIZER_NONE)
            status = pl_fail(err, PL_E_IO,
                             "%s has no tokenizer: neither tokenizer.json, nor "
                             "vocab.json with merges.txt, nor meta.json or "
                             "meta.pkl",
                             pl_path_shown(path));
        return status;
    }
    if (ends_in(path, PL_TOKENIZER_META))
        return read_meta(tokenizer, path, heap, err);
    if (ends_in(path, ".pkl"))
        return read_pickle(tokenizer, path, heap, err);
    return read_bpe(tokenizer, path, heap, err);
}

pl_status pl_tokenizer_write(const pl_tokenizer *tokenizer, pl_heap *heap,
                             pl_tokenizer_text *out, pl_error *err)
{
    *out = (pl_tokenizer_text){ 0 };
    if (tokenizer->kind == PL_TOKENIZER_NONE)
        return PL_OK;
    int is_bpe = tokenizer->kind == PL_TOKENIZER_BPE;
    out->name = is_bpe ? PL_TOKENIZER_JSON : PL_TOKENIZER_META;
    if (is_bpe)
        return pl_bpe_write_json(tokenizer->bpe, heap, &out->text, &out->bytes,
                                 err);
    return pl_meta_write(tokenizer, heap, &out->text, &out->bytes, err);
}

size_t pl_tokenizer_model_vocab(const pl_tokenizer *tokenizer)
{
    size_t size = (size_t)tokenizer->vocab_size;
    if (tokenizer->kind != PL_TOKENIZER_BPE)
        return size;
    return (size + MODEL_ROUND - 1) / MODEL_ROUND * MODEL_ROUND;
}

size_t pl_tokenizer_memory_bytes(const pl_tokenizer *tokenizer)
{
    if (tokenizer->kind != PL_TOKENIZER_BPE)
        return 0;
    return (size_t)tokenizer->vocab_size * HELD_TOKEN_BYTES;
}
