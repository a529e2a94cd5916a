/* task.c: see task.h. Files and folders of tasks; task_item.c has the lines. */
#include "data/task.h"
#include "base/check.h"
#include "base/file.h"
#include "base/path.h"
#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LIST_NAME "tasks.json"
#define ENDING    ".jsonl"

static const pl_task_kind kinds[] = {
#define KIND(id, kind, name, first, second) PL_TASK_##kind,
    PL_TASK_FORM_TABLE(KIND)
#undef KIND
};

const char *pl_task_kind_name(pl_task_kind kind)
{
    static const char *const names[] = {
        [PL_TASK_CHOICE] = "multiple choice",
        [PL_TASK_SCHEMA] = "schema",
        [PL_TASK_LANGUAGE] = "language model",
    };
    return names[kind];
}

pl_task_text pl_task_context(pl_task_kind kind, const pl_task_item *item,
                             size_t at)
{
    return item->texts[kind == PL_TASK_SCHEMA ? at + 1 : 0];
}

pl_task_text pl_task_continuation(pl_task_kind kind, const pl_task_item *item,
                                  size_t at)
{
    return item->texts[kind == PL_TASK_SCHEMA ? 0 : at + 1];
}

const pl_task_item *pl_task_shot(const pl_task *task, size_t at, size_t shot)
{
    const size_t index = shot < at ? shot : shot + 1;
    PL_CHECK(shot < task->manner.shots && index < task->count);
    return &task->items[index];
}

/* ---- a file ---- */

typedef struct reader {
    pl_tasks *tasks;
    size_t capacity;
    pl_heap *heap;
    pl_error *err;
} reader;

/* The file's name without its folders and its ending, unless it has a label. */
static void label_of(pl_task *task)
{
    const char *slash = strrchr(task->path, '/');
    const char *name = slash ? slash + 1 : task->path;
    const char *dot = strrchr(name, '.');
    const size_t bytes = dot && dot > name ? (size_t)(dot - name)
                                           : strlen(name);
    if (!task->label[0])
        snprintf(task->label, sizeof task->label, "%.*s", (int)bytes, name);
    /* so that it can stand in JSON, in a chart and in a table as it is */
    for (char *c = task->label; *c; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c > 0x7e ||
            strchr("\"\\", *c))
            *c = '_';
}

static pl_status take_line(const reader *r, pl_task *task, size_t *capacity,
                           const pl_task_line *where)
{
    json_t *line = NULL;
    pl_status status = pl_json_parse_line(
        where->text, where->bytes, where->path, where->number, &line, r->err);
    if (status)
        return status;
    if (task->count == 0)
        status = pl_task_form_of(&task->form, line, where, r->err);
    if (!status)
        status = pl_heap_grow(r->heap, &task->items, capacity, task->count + 1,
                              sizeof *task->items, r->err);
    if (!status)
        status = pl_task_item_read(&task->items[task->count], task->form, line,
                                   where, r->heap, r->err);
    task->count += !status;
    json_decref(line);
    return status;
}

/* No more than are asked, and shown before them. */
static int has_enough(const pl_task *task)
{
    const pl_task_manner *manner = &task->manner;
    return manner->limit > 0 && task->count >= manner->limit &&
           task->count > manner->shots;
}

static pl_status take_lines(const reader *r, pl_task *task, const char *text,
                            size_t bytes)
{
    static const char mark[] = "\xef\xbb\xbf", blanks[] = " \t\r";
    size_t capacity = 0, at = 0;
    pl_status status = PL_OK;
    if (bytes >= 3 && memcmp(text, mark, 3) == 0)
        at = 3;
    for (size_t number = 1; at < bytes && !status && !has_enough(task);
         number++) {
        const char *end = memchr(text + at, '\n', bytes - at);
        const pl_task_line where = {
            .path = pl_path_shown(task->path),
            .text = text + at,
            .bytes = end ? (size_t)(end - text) - at : bytes - at,
            .number = number,
        };
        size_t blank = 0;
        while (blank < where.bytes && memchr(blanks, text[at + blank], 3))
            blank++;
        if (blank < where.bytes)
            status = take_line(r, task, &capacity, &where);
        at += where.bytes + 1;
    }
    return status;
}

/* How likely a guess is right, unless that was said. */
static double chance_of(const pl_task *task)
{
    double sum = 0.0;
    for (size_t i = 0; i < task->asked; i++)
        sum += task->kind == PL_TASK_LANGUAGE
                   ? 0.0
                   : 1.0 / (double)task->items[i].count;
    return sum / (double)task->asked;
}

static pl_status finish(pl_task *task, pl_error *err)
{
    const pl_task_manner *manner = &task->manner;
    const char *path = pl_path_shown(task->path);
    if (task->count == 0)
        return pl_fail(err, PL_E_FORMAT, "%s has no items: it is empty", path);
    if (manner->shots >= task->count)
        return pl_fail(err, PL_E_CONFIG,
                       "%s has %zu items: %zu others can't stand before each. "
                       "Lower shots",
                       path, task->count, manner->shots);
    task->kind = kinds[task->form];
    task->asked = manner->limit && manner->limit < task->count ? manner->limit
                                                               : task->count;
    /* the blank before the last word is the text's own */
    if (task->form == PL_TASK_FORM_LAMBADA)
        task->manner.between = (pl_task_text){ " ", 1 };
    if (isnan(task->chance))
        task->chance = chance_of(task);
    label_of(task);
    return PL_OK;
}

static pl_status read_file(reader *r, const pl_task *wish)
{
    pl_tasks *tasks = r->tasks;
    pl_task task = *wish;
    pl_heap scratch = pl_heap_make(PL_TASK_MOST_BYTES + 4096);
    char *text;
    size_t bytes;
    if (tasks->count == PL_TASK_MOST_FILES)
        return pl_fail(r->err, PL_E_CONFIG,
                       "more than %d files of tasks are more than are read",
                       PL_TASK_MOST_FILES);
    pl_status status = pl_file_read_all(task.path, PL_TASK_MOST_BYTES, &scratch,
                                        &text, &bytes, r->err);
    if (!status)
        status = take_lines(r, &task, text, bytes);
    pl_heap_close(&scratch);
    if (!status)
        status = finish(&task, r->err);
    if (!status)
        status = pl_heap_grow(r->heap, &tasks->tasks, &r->capacity,
                              tasks->count + 1, sizeof *tasks->tasks, r->err);
    if (!status)
        tasks->tasks[tasks->count++] = task;
    return status;
}

static pl_status join_path(const reader *r, const char *folder,
                           const char *name, const char **out)
{
    char path[PL_PATH_BYTES];
    pl_status status = pl_path_join(path, folder, name, r->err);
    return status ? status
                  : pl_heap_text(r->heap, out, path, strlen(path), r->err);
}

/* ---- a list of tasks ---- */

/* A text of an entry, if it has one. */
static pl_status read_text(const reader *r, const json_t *entry,
                           const char *key, pl_task_text *out, const char *path)
{
    const json_t *value = json_object_get(entry, key);
    if (!value)
        return PL_OK;
    if (!json_is_string(value))
        return pl_fail(r->err, PL_E_FORMAT, "%s: \"%s\" must be a text", path,
                       key);
    out->bytes = json_string_length(value);
    return pl_heap_text(r->heap, &out->text, json_string_value(value),
                        out->bytes, r->err);
}

static pl_status read_numbers(const reader *r, const json_t *entry,
                              pl_task *task, const char *path)
{
    const json_t *shots = json_object_get(entry, "shots"),
                 *chance = json_object_get(entry, "chance");
    if (shots && (!json_is_integer(shots) || json_integer_value(shots) < 0 ||
                  json_integer_value(shots) > INT32_MAX))
        return pl_fail(r->err, PL_E_FORMAT,
                       "%s: \"shots\" must be a whole number from 0 on", path);
    if (chance &&
        (!json_is_number(chance) || !(json_number_value(chance) >= 0.0) ||
         !(json_number_value(chance) < 1.0)))
        return pl_fail(r->err, PL_E_FORMAT,
                       "%s: \"chance\" must be a number from 0 to below 1: how "
                       "likely a guess is right",
                       path);
    if (shots)
        task->manner.shots = (size_t)json_integer_value(shots);
    if (chance)
        task->chance = json_number_value(chance);
    return PL_OK;
}

static pl_status check_keys(const json_t *entry, const char *path,
                            pl_error *err)
{
    static const char *const known[] = { "file",
                                         "label",
                                         "shots",
                                         "chance",
                                         "continuation_delimiter",
                                         "example_delimiter" };
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)entry, key, value)
    {
        size_t i = 0, count = sizeof known / sizeof known[0];
        while (i < count && strcmp(key, known[i]) != 0)
            i++;
        if (i == count)
            return pl_fail(err, PL_E_FORMAT,
                           "%s: \"%.64s\" is no key of a task. There are: "
                           "file, label, shots, chance, "
                           "continuation_delimiter, example_delimiter",
                           path, key);
    }
    return PL_OK;
}

static pl_status read_entry(reader *r, const char *folder, const char *path,
                            const json_t *entry, const pl_task *wish)
{
    pl_task task = *wish;
    pl_task_text file = { 0 }, label = { 0 };
    if (!json_is_object(entry))
        return pl_fail(r->err, PL_E_FORMAT,
                       "%s: \"tasks\" must be a list of objects", path);
    pl_status status = check_keys(entry, path, r->err);
    if (!status)
        status = read_text(r, entry, "file", &file, path);
    if (!status && !file.text)
        status = pl_fail(r->err, PL_E_FORMAT, "%s: a task has no \"file\"",
                         path);
    if (!status)
        status = read_text(r, entry, "label", &label, path);
    if (!status)
        status = read_text(r, entry, "continuation_delimiter",
                           &task.manner.between, path);
    if (!status)
        status = read_text(r, entry, "example_delimiter", &task.manner.behind,
                           path);
    if (!status)
        status = read_numbers(r, entry, &task, path);
    if (!status)
        status = join_path(r, folder, file.text, &task.path);
    if (status)
        return status;
    if (label.text)
        snprintf(task.label, sizeof task.label, "%s", label.text);
    return read_file(r, &task);
}

static pl_status read_list(reader *r, const char *folder, const char *path,
                           const pl_task *wish)
{
    pl_heap scratch = pl_heap_make(PL_JSON_MAX_BYTES + 4096);
    json_t *root = NULL;
    char *text;
    size_t bytes;
    pl_status status = pl_file_read_all(path, PL_JSON_MAX_BYTES, &scratch,
                                        &text, &bytes, r->err);
    if (!status)
        status = pl_json_parse(text, bytes, path, &root, r->err);
    const json_t *entries = json_object_get(root, "tasks");
    if (!status && (!json_is_array(entries) || json_array_size(entries) == 0))
        status = pl_fail(r->err, PL_E_FORMAT,
                         "%s: {\"tasks\": [{\"file\": ...}, ...]} is expected",
                         path);
    for (size_t i = 0; i < json_array_size(entries) && !status; i++)
        status = read_entry(r, folder, path, json_array_get(entries, i), wish);
    json_decref(root);
    pl_heap_close(&scratch);
    return status;
}

/* ---- a folder ---- */

static int is_lines(const char *name)
{
    const size_t bytes = strlen(name);
    return bytes >= sizeof ENDING &&
           strcmp(name + bytes + 1 - sizeof ENDING, ENDING) == 0;
}

/* What a file is called: its path inside the folder, without its ending. */
static void label_inside(pl_task *task, size_t skip)
{
    const char *name = task->path + skip;
    while (*name == '/')
        name++;
    snprintf(task->label, sizeof task->label, "%.*s",
             (int)(strlen(name) - (sizeof ENDING - 1)), name);
}

static pl_status read_folder(reader *r, const char *folder, size_t depth,
                             const pl_task *wish);

/* A file of tasks or a folder with some; anything else is left alone, and so is
 * a link to a folder: it may lead back. */
static pl_status read_name(reader *r, const char *folder, const char *name,
                           size_t depth, const pl_task *wish)
{
    pl_task task = *wish;
    pl_file_kind kind;
    if (name[0] == '.')
        return PL_OK;
    pl_status status = join_path(r, folder, name, &task.path);
    if (!status)
        status = pl_file_look_at(task.path, &kind, r->err);
    if (!status && kind == PL_FILE_FOLDER)
        return read_folder(r, task.path, depth + 1, wish);
    if (!status && is_lines(name)) {
        label_inside(&task, strlen(wish->path));
        status = read_file(r, &task);
    }
    return status;
}

/* The tasks of a folder inside that of the wish, or of that itself. */
static pl_status read_folder(reader *r, const char *folder, size_t depth,
                             const pl_task *wish)
{
    const char *const *names, *path;
    size_t count;
    pl_file_kind kind;
    if (depth > PL_TASK_MOST_DEPTH)
        return pl_fail(r->err, PL_E_CONFIG,
                       "%s is more than %d folders deep: too deep to be looked "
                       "through for tasks. Name a folder nearer to them",
                       pl_path_shown(folder), PL_TASK_MOST_DEPTH);
    pl_status status = join_path(r, folder, LIST_NAME, &path);
    if (!status)
        status = pl_file_look(path, &kind, r->err);
    if (!status && kind == PL_FILE_PLAIN)
        return read_list(r, folder, path, wish);
    if (!status)
        status = pl_folder_list(folder, r->heap, &names, &count, r->err);
    for (size_t i = 0; !status && i < count; i++)
        status = read_name(r, folder, names[i], depth, wish);
    return status;
}

static pl_status read_root(reader *r, const pl_task *wish)
{
    const size_t before = r->tasks->count;
    pl_status status = read_folder(r, wish->path, 0, wish);
    if (!status && r->tasks->count == before)
        status = pl_fail(r->err, PL_E_IO,
                         "%s has no tasks: neither " LIST_NAME " nor files "
                         "that end in " ENDING ", nor folders with some",
                         pl_path_shown(wish->path));
    return status;
}

/* Results are known by their labels. */
static pl_status check_labels(const pl_tasks *tasks, pl_error *err)
{
    for (size_t i = 0; i < tasks->count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(tasks->tasks[i].label, tasks->tasks[k].label) == 0)
                return pl_fail(err, PL_E_CONFIG,
                               "%s and %s are both called '%s'. Give one "
                               "another name, or a \"label\" in " LIST_NAME,
                               pl_path_shown(tasks->tasks[k].path),
                               pl_path_shown(tasks->tasks[i].path),
                               tasks->tasks[i].label);
    return PL_OK;
}

pl_status pl_tasks_read(pl_tasks *tasks, const char *const *paths, size_t count,
                        const pl_task_manner *manner, pl_heap *heap,
                        pl_error *err)
{
    reader r = { .tasks = tasks, .heap = heap, .err = err };
    pl_status status = PL_OK;
    *tasks = (pl_tasks){ .count = 0 };
    for (size_t i = 0; i < count && !status; i++) {
        const pl_task wish = { .path = paths[i],
                               .manner = *manner,
                               .chance = (double)NAN };
        pl_file_kind kind;
        status = pl_file_look(paths[i], &kind, err);
        if (!status && kind == PL_FILE_FOLDER)
            status = read_root(&r, &wish);
        else if (!status)
            status = read_file(&r, &wish);
    }
    pl_heap_trim(); /* what the parser took and gave back */
    return status ? status : check_labels(tasks, err);
}
