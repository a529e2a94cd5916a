/* checkpoint_find.c: which folder. The newest that is whole: a torn or
 * damaged one costs the steps since the one before it, and nothing else. */
#include "base/file.h"
#include "store/checkpoint.h"

#include <stdio.h>
#include <string.h>

pl_status pl_checkpoint_is(const char *folder, int *yes, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_file_kind kind = PL_FILE_ABSENT;
    pl_status status = pl_path_join(path, folder, PL_MANIFEST_NAME, err);
    if (!status)
        status = pl_file_look(path, &kind, err);
    *yes = kind == PL_FILE_PLAIN;
    return status;
}

typedef struct search {
    const char *out_dir;
    pl_manifest_scope scope;
    const pl_log *log;
    size_t damaged;
    pl_error first; /* what was wrong with the first */
} search;

/* Whether `folder` is whole: PL_OK, *found, or it is passed over. */
static pl_status try(search *s, const char *folder, int *found, pl_error *err)
{
    pl_manifest manifest;
    pl_error why = { 0 };
    pl_status status = pl_manifest_check(&manifest, folder, s->scope, &why);
    *found = !status;
    if (!status)
        return PL_OK;
    if (status == PL_E_MEMORY || status == PL_E_UNSUPPORTED)
        return pl_fail(err, status, "%s", why.text);
    pl_log_say(s->log, PL_LOG_WARN,
               "%s is damaged: left alone and passed over. %s", folder,
               why.text);
    if (s->damaged++ == 0)
        s->first = why;
    return PL_OK;
}

/* The largest step below `below` among the names; 0: there is none. */
static int next_below(const char *const *names, size_t count, uint64_t below,
                      const char **name, uint64_t *step)
{
    int any = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t of;
        if (!pl_outdir_step_of(names[i], &of) || of >= below ||
            (any && of <= *step))
            continue;
        *step = of;
        *name = names[i];
        any = 1;
    }
    return any;
}

static pl_status try_best(search *s, char folder[PL_PATH_BYTES], int *found,
                          pl_error *err)
{
    char link[PL_PATH_BYTES], target[PL_PATH_BYTES] = "";
    uint64_t step;
    pl_status status = pl_path_join(link, s->out_dir, PL_OUTDIR_BEST, err);
    if (!status)
        status = pl_link_read(link, target, err);
    if (status || !pl_outdir_step_of(target, &step))
        return status;
    status = pl_path_join(folder, s->out_dir, target, err);
    return status ? status : try(s, folder, found, err);
}

static pl_status search_all(search *s, char folder[PL_PATH_BYTES], int *found,
                            pl_heap *heap, pl_error *err)
{
    const char *const *names, *name = NULL;
    size_t count = 0;
    uint64_t step = 0, below = PL_OUTDIR_NO_STEP;
    pl_status status = pl_folder_list(s->out_dir, heap, &names, &count, err);
    while (!status && !*found &&
           next_below(names, count, below, &name, &step)) {
        status = pl_path_join(folder, s->out_dir, name, err);
        if (!status)
            status = try(s, folder, found, err);
        below = step;
    }
    return status;
}

static pl_status no_checkpoint(const char *out_dir, pl_file_kind kind,
                               pl_error *err)
{
    if (kind != PL_FILE_FOLDER && kind != PL_FILE_ABSENT)
        return pl_fail(err, PL_E_IO,
                       "%s is a file: a checkpoint is a folder (and so is an "
                       "out_dir, or a model of Hugging Face's). A GGUF or a "
                       "model of llm.c becomes one by: plimsoll import %s "
                       "--out=FOLDER",
                       out_dir, pl_path_quoted(out_dir).text);
    return pl_fail(err, PL_E_IO,
                   "%s: %s. Train one with: plimsoll train CONFIG.py "
                   "--out_dir=%s",
                   out_dir,
                   kind == PL_FILE_ABSENT
                       ? "no checkpoint here, there is no such folder"
                       : "no checkpoint here (no folder like step-00000020)",
                   pl_path_quoted(out_dir).text);
}

pl_status pl_checkpoint_find(char folder[PL_PATH_BYTES], const char *out_dir,
                             pl_checkpoint_wish wish, pl_manifest_scope scope,
                             const pl_log *log, pl_heap *heap, pl_error *err)
{
    search s = { .out_dir = out_dir, .scope = scope, .log = log };
    pl_manifest manifest;
    pl_file_kind kind = PL_FILE_ABSENT;
    int itself = 0, found = 0;
    pl_status status = pl_checkpoint_is(out_dir, &itself, err);
    if (!status && itself) {
        snprintf(folder, PL_PATH_BYTES, "%s", out_dir);
        return pl_manifest_check(&manifest, folder, scope, err);
    }
    if (!status)
        status = pl_file_look(out_dir, &kind, err);
    if (!status && wish == PL_WANT_BEST)
        status = try_best(&s, folder, &found, err);
    if (!status && !found && kind == PL_FILE_FOLDER)
        status = search_all(&s, folder, &found, heap, err);
    if (status || found)
        return status;
    if (s.damaged)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: none of its checkpoints is whole. %s", out_dir,
                       s.first.text);
    return no_checkpoint(out_dir, kind, err);
}
