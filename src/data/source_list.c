/* source_list.c: see source_list.h. */
#include "data/source_list.h"

#include "base/file.h"
#include "data/glob.h"

#include <string.h>

enum { MAX_DEPTH = 64 }; /* of folders in folders */

typedef struct job {
    pl_source_list *list;
    pl_source_format format;
    pl_heap *heap;
    pl_error *err;
    int passed_over; /* files in folders that weren't taken */
} job;

/* ---- formats ---- */

typedef enum packing { PLAIN, PACKED } packing;

static int ends_with(const char *name, size_t bytes, const char *ending)
{
    size_t end = strlen(ending);
    return bytes > end && !strncasecmp(name + bytes - end, ending, end);
}

/* AUTO where the ending says nothing. */
static pl_source_format format_of(const char *name, int *is_json)
{
    static const struct {
        const char *ending;
        pl_source_format format;
    } rows[] = {
        { ".txt", PL_SOURCE_TEXT },        { ".text", PL_SOURCE_TEXT },
        { ".jsonl", PL_SOURCE_JSONL },     { ".ndjson", PL_SOURCE_JSONL },
        { ".parquet", PL_SOURCE_PARQUET }, { ".pq", PL_SOURCE_PARQUET },
    };
    size_t bytes = strlen(name);
    packing packed = PLAIN;
    if (ends_with(name, bytes, ".gz") || ends_with(name, bytes, ".zst")) {
        bytes -= ends_with(name, bytes, ".gz") ? 3 : 4;
        packed = PACKED;
    }
    *is_json = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (ends_with(name, bytes, rows[i].ending))
            return rows[i].format;
    if (ends_with(name, bytes, ".json")) {
        *is_json = packed == PLAIN;
        return PL_SOURCE_JSONL;
    }
    return PL_SOURCE_AUTO;
}

/* ---- the list ---- */

static pl_status add(job *j, const char *path, uint64_t bytes,
                     pl_source_format format, pl_source_reading reading)
{
    pl_source_list *list = j->list;
    pl_source_file *file;
    pl_status status = pl_heap_grow(j->heap, &list->files, &list->capacity,
                                    list->count + 1, sizeof *list->files,
                                    j->err);
    if (status)
        return pl_fail_in(j->err, status, "there are too many files: ");
    file = &list->files[list->count];
    status = pl_heap_text(j->heap, &file->path, path, strlen(path), j->err);
    if (status)
        return pl_fail_in(j->err, status, "there are too many files: ");
    file->bytes = bytes;
    file->format = format;
    file->reading = reading;
    file->stamp = (pl_file_stamp){ 0 };
    list->count++;
    list->total_bytes += bytes;
    return PL_OK;
}

typedef enum naming { BY_NAME, IN_FOLDER } naming;

static pl_status add_file(job *j, const char *path, naming how)
{
    pl_file file;
    int is_json;
    pl_source_format format = format_of(path, &is_json);
    if (j->format != PL_SOURCE_AUTO) {
        format = j->format;
    } else if (how == IN_FOLDER && (format == PL_SOURCE_AUTO || is_json)) {
        j->passed_over++;
        return PL_OK;
    } else if (format == PL_SOURCE_AUTO) {
        format = PL_SOURCE_TEXT;
    }
    pl_status status = pl_file_open_read(&file, path, j->err);
    if (status)
        return status;
    pl_file_stamp stamp;
    uint64_t bytes = pl_file_size(&file);
    status = pl_file_stamp_of(&file, &stamp, j->err);
    pl_file_abandon(&file);
    if (!status)
        status = add(j, path, bytes, format, PL_SOURCE_AGAIN);
    if (!status)
        j->list->files[j->list->count - 1].stamp = stamp;
    return status;
}

/* ---- folders ---- */

static pl_status too_deep(job *j, const char *path)
{
    return pl_fail(j->err, PL_E_IO, "%s: folders are nested more than %d deep",
                   pl_path_shown(path), MAX_DEPTH);
}

static pl_status walk(job *j, const char *folder, int depth)
{
    const char *const *names;
    size_t count;
    char path[PL_PATH_BYTES];
    if (depth == MAX_DEPTH)
        return too_deep(j, folder);
    pl_status status = pl_folder_list(folder, j->heap, &names, &count, j->err);
    for (size_t i = 0; !status && i < count; i++) {
        pl_file_kind own, kind;
        if (names[i][0] == '.')
            continue;
        status = pl_path_join(path, folder, names[i], j->err);
        if (!status)
            status = pl_file_look_at(path, &own, j->err);
        if (!status)
            status = pl_file_look(path, &kind, j->err);
        if (status)
            break;
        if (kind == PL_FILE_PLAIN)
            status = add_file(j, path, IN_FOLDER);
        else if (own == PL_FILE_FOLDER)
            status = walk(j, path, depth + 1);
    }
    return status;
}

static pl_status add_folder(job *j, const char *folder)
{
    size_t before = j->list->count;
    j->passed_over = 0;
    pl_status status = walk(j, folder, 0);
    if (status || j->list->count > before)
        return status;
    return pl_fail(j->err, PL_E_IO,
                   "the folder %s has no text: no .txt, .jsonl or .parquet "
                   "(with or without .gz or .zst)%s",
                   pl_path_shown(folder),
                   j->passed_over ? ". To take its other files as text, give "
                                    "--input=text or name them"
                                  : "");
}

/* ---- patterns ---- */

static pl_status expand(job *j, const char *folder, const char *pattern,
                        int depth);

/* What the pattern's first component found: the rest of it below, or a file
 * or folder to take. */
static pl_status go_on(job *j, const char *path, const char *rest, int depth)
{
    pl_file_kind kind;
    pl_status status = pl_file_look(path, &kind, j->err);
    if (status)
        return status;
    if (*rest)
        return kind == PL_FILE_FOLDER ? expand(j, path, rest, depth + 1)
                                      : PL_OK;
    if (kind == PL_FILE_FOLDER)
        return walk(j, path, depth + 1);
    return kind == PL_FILE_PLAIN ? add_file(j, path, BY_NAME) : PL_OK;
}

/* Every entry of the folder that the component matches. */
static pl_status expand_names(job *j, const char *folder, const char *pattern,
                              size_t bytes, const char *rest, int depth)
{
    const char *const *names;
    size_t count;
    char path[PL_PATH_BYTES];
    pl_status status = pl_folder_list(*folder ? folder : ".", j->heap, &names,
                                      &count, j->err);
    for (size_t i = 0; !status && i < count; i++) {
        if (!pl_glob_matches(pattern, bytes, names[i]))
            continue;
        status = pl_path_join(path, folder, names[i], j->err);
        if (!status)
            status = go_on(j, path, rest, depth);
    }
    return status;
}

/* `**`: the rest here and in every folder below. */
static pl_status expand_below(job *j, const char *folder, const char *rest,
                              int depth)
{
    const char *const *names;
    size_t count;
    char path[PL_PATH_BYTES];
    pl_status status = expand(j, folder, rest, depth + 1);
    if (status)
        return status;
    status = pl_folder_list(*folder ? folder : ".", j->heap, &names, &count,
                            j->err);
    for (size_t i = 0; !status && i < count; i++) {
        pl_file_kind kind = PL_FILE_ABSENT;
        if (names[i][0] == '.')
            continue;
        status = pl_path_join(path, folder, names[i], j->err);
        if (!status)
            status = pl_file_look_at(path, &kind, j->err);
        if (!status && kind == PL_FILE_FOLDER)
            status = expand_below(j, path, rest, depth + 1);
    }
    return status;
}

static pl_status expand(job *j, const char *folder, const char *pattern,
                        int depth)
{
    char path[PL_PATH_BYTES];
    size_t bytes = strcspn(pattern, "/");
    const char *rest = pattern + bytes + strspn(pattern + bytes, "/");
    if (depth >= MAX_DEPTH)
        return too_deep(j, folder);
    if (bytes == 2 && !memcmp(pattern, "**", 2))
        return expand_below(j, folder, *rest ? rest : "*", depth);
    if (bytes < sizeof path) {
        memcpy(path, pattern, bytes);
        path[bytes] = '\0';
    }
    if (bytes >= sizeof path || pl_glob_is_pattern(path))
        return expand_names(j, folder, pattern, bytes, rest, depth);
    char next[PL_PATH_BYTES];
    pl_status status = pl_path_join(next, folder, path, j->err);
    return status ? status : go_on(j, next, rest, depth);
}

static pl_status add_pattern(job *j, const char *pattern)
{
    size_t before = j->list->count;
    const char *relative = pattern + strspn(pattern, "/");
    pl_status status = expand(j, relative > pattern ? "/" : "", relative, 0);
    if (status || j->list->count > before)
        return status;
    return pl_fail(j->err, PL_E_IO, "no file matches %s",
                   pl_path_shown(pattern));
}

/* ---- names ---- */

/* Not opened now: whoever writes to a pipe would notice. */
static pl_status add_once(job *j, const char *path)
{
    int is_json;
    pl_source_format format = format_of(path, &is_json);
    for (size_t i = 0; i < j->list->count; i++)
        if (!strcmp(j->list->files[i].path, path))
            return pl_fail(j->err, PL_E_USAGE, "%s can be read once only",
                           strcmp(path, "-") ? pl_path_shown(path)
                                             : "- (standard input)");
    if (j->format != PL_SOURCE_AUTO)
        format = j->format;
    return add(j, path, 0, format == PL_SOURCE_AUTO ? PL_SOURCE_TEXT : format,
               PL_SOURCE_ONCE);
}

static pl_status add_named(job *j, const char *path)
{
    pl_file_kind kind;
    if (!strcmp(path, "-"))
        return add_once(j, path);
    pl_status status = pl_file_look(path, &kind, j->err);
    if (status)
        return status;
    if (kind == PL_FILE_FOLDER)
        return add_folder(j, path);
    if (kind == PL_FILE_ABSENT && pl_glob_is_pattern(path))
        return add_pattern(j, path);
    if (kind == PL_FILE_OTHER)
        return add_once(j, path);
    return add_file(j, path, BY_NAME);
}

pl_source_reading pl_source_list_reading(const pl_source_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->files[i].reading == PL_SOURCE_ONCE)
            return PL_SOURCE_ONCE;
    return PL_SOURCE_AGAIN;
}

pl_status pl_source_list_make(pl_source_list *list, const char *const *paths,
                              size_t path_count, pl_source_format format,
                              pl_heap *heap, pl_error *err)
{
    job j = { .list = list, .format = format, .heap = heap, .err = err };
    *list = (pl_source_list){ .files = NULL };
    if (path_count == 0)
        return pl_fail(err, PL_E_USAGE, "no text file was given");
    for (size_t i = 0; i < path_count; i++) {
        pl_status status = add_named(&j, paths[i]);
        if (status)
            return status;
    }
    return PL_OK;
}
