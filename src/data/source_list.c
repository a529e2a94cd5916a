/* source_list.c: see source_list.h. */
#include "data/source_list.h"

#include "base/file.h"
#include "data/glob.h"
#include "data/kind.h"
#include "data/unpack.h"

#include <stdio.h>
#include <string.h>

enum { MAX_DEPTH = 64 }; /* of folders in folders */

typedef struct job {
    pl_source_list *list;
    pl_source_format format;
    pl_heap *heap;
    pl_error *err;
    const char *include, *exclude;
    size_t root_bytes; /* of the folder that was named, with its slash */
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
    static const char *const packings[] = { ".gz", ".zst", ".xz", ".lz4" };
    size_t bytes = strlen(name);
    packing packed = PLAIN;
    for (size_t i = 0; i < sizeof packings / sizeof packings[0]; i++)
        if (packed == PLAIN && ends_with(name, bytes, packings[i])) {
            bytes -= strlen(packings[i]);
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

static pl_status skip(job *j, const char *path, const char *kind)
{
    pl_source_list *list = j->list;
    size_t i = 0;
    while (i < list->skip_count && strcmp(list->skips[i].kind, kind) != 0)
        i++;
    if (i == PL_SOURCE_SKIPS)
        i--; /* more kinds than there are: with the last */
    pl_source_skip *row = &list->skips[i];
    if (i == list->skip_count) {
        *row = (pl_source_skip){ .kind = kind };
        list->skip_count++;
    }
    row->count++;
    if (row->count > PL_SOURCE_SKIP_NAMES)
        return PL_OK;
    const char *name = path + j->root_bytes;
    return pl_heap_text(j->heap, &row->names[row->count - 1], name,
                        strlen(name), j->err);
}

typedef enum naming { BY_NAME, IN_FOLDER } naming;

/* What is in the file, by its first bytes: NULL if it can be read. `format` is
 * what the name says; a name that says nothing is that of a text. */
static pl_status look_inside(job *j, const pl_file *file,
                             pl_source_format *format, const char **refused)
{
    unsigned char begin[PL_KIND_BYTES];
    uint64_t size = pl_file_size(file);
    size_t bytes = size < sizeof begin ? (size_t)size : sizeof begin;
    pl_status status = pl_file_pread_exact(file, begin, bytes, 0, j->err);
    if (status)
        return status;
    int known = pl_codec_of(begin, bytes) != PL_CODEC_NONE ||
                (bytes >= 4 && !memcmp(begin, "PAR1", 4));
    *refused = known ? NULL : pl_kind_refused(begin, bytes);
    if (*format != PL_SOURCE_AUTO || *refused)
        return PL_OK;
    *format = PL_SOURCE_TEXT;
    if (!known && !pl_kind_is_text(begin, bytes))
        *refused = memchr(begin, 0, bytes) ? "binary" : "not UTF-8";
    return PL_OK;
}

static pl_status refuse(job *j, const char *path, const char *kind)
{
    return pl_fail(j->err, PL_E_UNSUPPORTED,
                   "%s is %s, which can't be read as text. Unpack or convert "
                   "it first; --input=text takes its bytes as they are",
                   pl_path_shown(path), kind);
}

static pl_status add_file(job *j, const char *path, naming how)
{
    pl_file file;
    pl_file_stamp stamp;
    int is_json;
    const char *refused = NULL;
    pl_source_format format = format_of(path, &is_json);
    int named_text = how == BY_NAME && format == PL_SOURCE_AUTO;
    if (j->format == PL_SOURCE_AUTO && how == IN_FOLDER && is_json)
        return skip(j, path, ".json");
    pl_status status = pl_file_open_read(&file, path, j->err);
    if (status)
        return status;
    uint64_t bytes = pl_file_size(&file);
    if (j->format != PL_SOURCE_AUTO)
        format = j->format;
    else
        status = look_inside(j, &file, &format, &refused);
    if (!status)
        status = pl_file_stamp_of(&file, &stamp, j->err);
    pl_file_abandon(&file);
    if (status)
        return status;
    /* Bytes that aren't UTF-8 are text for who names them. */
    if (refused && named_text && !strcmp(refused, "not UTF-8"))
        refused = NULL;
    if (refused)
        return how == IN_FOLDER ? skip(j, path, refused)
                                : refuse(j, path, refused);
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
        status = pl_path_join(path, folder, names[i], j->err);
        if (status)
            break;
        const char *below = path + j->root_bytes;
        int hidden = names[i][0] == '.';
        if (hidden || pl_glob_any_matches(j->exclude, below)) {
            status = skip(j, path, hidden ? "hidden" : "excluded");
            continue;
        }
        status = pl_file_look_at(path, &own, j->err);
        if (!status)
            status = pl_file_look(path, &kind, j->err);
        if (status)
            break;
        if (kind == PL_FILE_PLAIN && *j->include &&
            !pl_glob_any_matches(j->include, below))
            status = skip(j, path, "not included");
        else if (kind == PL_FILE_PLAIN)
            status = add_file(j, path, IN_FOLDER);
        else if (own == PL_FILE_FOLDER)
            status = walk(j, path, depth + 1);
    }
    return status;
}

/* A folder that was named, or that a pattern found. */
static pl_status walk_named(job *j, const char *folder, int depth)
{
    size_t bytes = strlen(folder);
    j->list->has_folder = 1;
    j->root_bytes = bytes + (bytes > 0 && folder[bytes - 1] != '/');
    pl_status status = walk(j, folder, depth);
    j->root_bytes = 0;
    return status;
}

/* "3 hidden (.a, .b, .c), 1 a PDF (x.pdf)" */
static void name_skips(const pl_source_list *list, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < list->skip_count && used < bytes; i++) {
        const pl_source_skip *row = &list->skips[i];
        used += (size_t)snprintf(out + used, bytes - used, "%s%zu %s (",
                                 i ? ", " : "", row->count, row->kind);
        for (size_t k = 0; k < PL_SOURCE_SKIP_NAMES && k < row->count; k++)
            if (used < bytes)
                used += (size_t)snprintf(out + used, bytes - used, "%s%.60s",
                                         k ? ", " : "",
                                         pl_path_shown(row->names[k]));
        if (used < bytes)
            used += (size_t)snprintf(out + used, bytes - used, "%s)",
                                     row->count > PL_SOURCE_SKIP_NAMES ? ", ..."
                                                                       : "");
    }
}

void pl_source_list_say(const pl_source_list *list, const pl_log *log)
{
    size_t kinds[4] = { 0 };
    char skips[900];
    if (!list->has_folder)
        return;
    for (size_t i = 0; i < list->count; i++)
        kinds[list->files[i].format]++;
    pl_log_say(log, PL_LOG_INFO,
               "taken: %zu text, %zu JSON lines, %zu parquet files",
               kinds[PL_SOURCE_TEXT], kinds[PL_SOURCE_JSONL],
               kinds[PL_SOURCE_PARQUET]);
    if (list->skip_count == 0)
        return;
    name_skips(list, skips, sizeof skips);
    pl_log_say(log, PL_LOG_NOTE, "passed over: %s", skips);
}

static pl_status add_folder(job *j, const char *folder)
{
    char skips[900];
    size_t before = j->list->count;
    pl_status status = walk_named(j, folder, 0);
    if (status || j->list->count > before)
        return status;
    name_skips(j->list, skips, sizeof skips);
    if (skips[0] == '\0')
        return pl_fail(j->err, PL_E_IO,
                       "the folder %s has no text that could be taken",
                       pl_path_shown(folder));
    return pl_fail(j->err, PL_E_IO,
                   "the folder %s has no text that could be taken; passed "
                   "over: %s",
                   pl_path_shown(folder), skips);
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
        return walk_named(j, path, depth + 1);
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

pl_status pl_source_list_make(pl_source_list *list,
                              const pl_source_names *names, pl_heap *heap,
                              pl_error *err)
{
    job j = { .list = list,
              .format = names->format,
              .heap = heap,
              .err = err,
              .include = names->include ? names->include : "",
              .exclude = names->exclude ? names->exclude : "" };
    *list = (pl_source_list){ .files = NULL };
    if (names->path_count == 0)
        return pl_fail(err, PL_E_USAGE, "no text file was given");
    for (size_t i = 0; i < names->path_count; i++) {
        pl_status status = add_named(&j, names->paths[i]);
        if (status)
            return status;
    }
    return PL_OK;
}
