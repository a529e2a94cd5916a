/* vocabulary_check.c: see vocabulary_check.h. */
#include "store/vocabulary_check.h"
#include "base/file.h"
#include "text/vocabulary.h"

#include <stdio.h>
#include <string.h>

enum { SCRATCH_BYTES = 1 << 30 }; /* as pl_tokenizer_find may take */

/* ---- as it was written ---- */

/* A checkpoint has the very file that its data's tokenizer makes: then there is
 * no second one to be built. */
static pl_status same_file(const pl_run *run, const char *folder, int *same,
                           pl_error *err)
{
    const pl_tokenizer_text *want = &run->tokenizer_file;
    char path[PL_PATH_BYTES], *text;
    size_t bytes;
    pl_file_kind kind = PL_FILE_ABSENT;
    *same = 0;
    if (!want->name)
        return PL_OK;
    pl_status status = pl_path_join(path, folder, PL_TOKENIZER_META, err);
    if (!status)
        status = pl_file_look(path, &kind, err);
    if (status ||
        (kind != PL_FILE_ABSENT) != !strcmp(want->name, PL_TOKENIZER_META))
        return status; /* meta.json, where there is one, is what counts */
    status = pl_path_join(path, folder, want->name, err);
    if (!status)
        status = pl_file_look(path, &kind, err);
    if (status || kind != PL_FILE_PLAIN)
        return status;
    pl_heap scratch = pl_heap_make(PL_TOKENIZER_MAX_BYTES + 2);
    if (!pl_file_read_all(path, PL_TOKENIZER_MAX_BYTES, &scratch, &text, &bytes,
                          NULL))
        *same = bytes == want->bytes && memcmp(text, want->text, bytes) == 0;
    pl_heap_close(&scratch);
    return PL_OK; /* what can't be read is not the same */
}

/* ---- as it is ---- */

typedef struct theirs {
    int readable;
    pl_vocabulary vocabulary;
    pl_error why; /* unless it is */
} theirs;

static void read_theirs(theirs *t, const char *folder)
{
    pl_tokenizer tokenizer;
    pl_heap scratch = pl_heap_make(SCRATCH_BYTES);
    *t = (theirs){ 0 };
    pl_status status = pl_tokenizer_find(&tokenizer, folder, &scratch, &t->why);
    if (!status)
        status = pl_vocabulary_of(&t->vocabulary, &tokenizer, &t->why);
    t->readable = !status;
    pl_heap_close(&scratch);
    pl_heap_trim();
}

static void say_none(const pl_run *run, const char *without, const char *other)
{
    pl_log_say(run->log, PL_LOG_NOTE,
               "%s has no tokenizer: whether its tokens are those of %s can't "
               "be told",
               without, other);
}

/* Why they are not one, and what to do about it. */
static void describe(char *text, size_t size, const theirs *t,
                     const pl_vocabulary *ours, const char *folder,
                     const char *data)
{
    char a[PL_VOCABULARY_TEXT_BYTES], b[PL_VOCABULARY_TEXT_BYTES];
    pl_vocabulary_text(ours, b);
    if (t->readable)
        snprintf(text, size,
                 "the tokenizer of %s (%s) is not that of %s (%s): the same "
                 "token means something else",
                 pl_path_shown(folder), pl_vocabulary_text(&t->vocabulary, a),
                 pl_path_shown(data), b);
    else
        snprintf(text, size,
                 "the tokenizer of %s can't be read, so that it can't be told "
                 "whether it is that of %s (%s). %.400s",
                 pl_path_shown(folder), pl_path_shown(data), b, t->why.text);
}

static pl_status refuse(const pl_run *run, const theirs *t,
                        const pl_vocabulary *ours, const char *folder,
                        pl_error *err)
{
    char text[PL_ERROR_TEXT_BYTES];
    describe(text, sizeof text, t, ours, folder, run->dataset.folder);
    if (!run->config->allow_other_tokenizer)
        return pl_fail(err, PL_E_CONFIG,
                       "%s. Take the data that it was trained on, prepare this "
                       "data with its tokenizer (--tokenizer=%s), or allow it: "
                       "--allow_other_tokenizer=True",
                       text, pl_path_shown(folder));
    pl_log_say(run->log, PL_LOG_WARN, "%s. It was allowed", text);
    return PL_OK;
}

pl_status pl_vocabulary_check(const pl_run *run, const char *folder,
                              pl_error *err)
{
    const char *data = run->dataset.folder;
    const pl_vocabulary ours = pl_vocabulary_of_text(&run->tokenizer,
                                                     &run->tokenizer_file);
    theirs t;
    int same = 0;
    pl_status status = same_file(run, folder, &same, err);
    if (status || same)
        return status;
    read_theirs(&t, folder);
    const int none = ours.kind == PL_TOKENIZER_NONE;
    const int bare = t.readable && t.vocabulary.kind == PL_TOKENIZER_NONE;
    if (none && bare)
        return PL_OK;
    if (none || bare) {
        say_none(run, none ? data : folder, none ? folder : data);
        return PL_OK;
    }
    if (t.readable && pl_vocabulary_same(&ours, &t.vocabulary))
        return PL_OK;
    return refuse(run, &t, &ours, folder, err);
}
