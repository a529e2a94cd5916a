/* bpe_save.c: a vocabulary's files come into their folder together; see
 * bpe_read.h. */
#include "base/file.h"
#include "text/bpe_read.h"

static const struct {
    const char *name;
    pl_status (*write)(const pl_bpe *bpe, pl_heap *heap, const char **text,
                       size_t *bytes, pl_error *err);
} files[] = {
    { "merges.txt", pl_bpe_write_merges },
    { "vocab.json", pl_bpe_write_vocab },
    { "tokenizer.json", pl_bpe_write_json }, /* the one we look for */
};

enum { FILES = sizeof files / sizeof files[0] };

typedef enum placed { NOT_YET, ASIDE, PLACED } placed;

typedef struct move {
    char from[PL_PATH_BYTES], to[PL_PATH_BYTES];
    char old[PL_PATH_BYTES]; /* where what was there before waits */
    int replaces;
    placed done;
} move;

static pl_status write_part(const pl_bpe *bpe, size_t i, const char *folder,
                            const char *part, move *m, pl_heap *heap,
                            pl_error *err)
{
    const char *text;
    size_t bytes;
    m->done = NOT_YET;
    pl_status status = files[i].write(bpe, heap, &text, &bytes, err);
    if (!status)
        status = pl_path_join(m->from, part, files[i].name, err);
    if (!status)
        status = pl_path_join(m->to, folder, files[i].name, err);
    if (!status)
        status = pl_path_add(m->old, m->from, ".old", err);
    return status ? status : pl_file_replace(m->from, text, bytes, err);
}

static pl_status put_in_place(move *m, pl_error *err)
{
    pl_file_kind kind;
    pl_status status = pl_file_look_at(m->to, &kind, err);
    m->replaces = !status && kind != PL_FILE_ABSENT;
    if (m->replaces)
        status = pl_file_rename(m->to, m->old, err);
    if (status)
        return status;
    m->done = ASIDE;
    status = pl_file_rename(m->from, m->to, err);
    if (!status)
        m->done = PLACED;
    return status;
}

/* As far as the system lets us: what went wrong first is reported. */
static void put_back(const move *m)
{
    pl_error ignored;
    pl_status status = PL_OK;
    if (m->done == PLACED)
        status = pl_file_rename(m->to, m->from, &ignored);
    if (m->done != NOT_YET && m->replaces)
        status = pl_file_rename(m->old, m->to, &ignored);
    (void)status;
}

pl_status pl_bpe_save(const pl_bpe *bpe, const char *folder, const char *part,
                      pl_heap *heap, pl_error *err)
{
    move moves[FILES];
    size_t i;
    pl_error ignored;
    pl_status status = pl_folder_remove_flat(part, err);
    if (!status)
        status = pl_folder_make(part, err);
    for (i = 0; i < FILES && !status; i++)
        status = write_part(bpe, i, folder, part, &moves[i], heap, err);
    if (status)
        goto remove_part;
    for (i = 0; i < FILES && !status; i++)
        status = put_in_place(&moves[i], err);
    if (!status)
        status = pl_folder_sync(folder, err);
    while (status && i-- > 0)
        put_back(&moves[i]);

remove_part : {
    pl_status removed = pl_folder_remove_flat(part, &ignored);
    (void)removed;
}
    return status;
}
