/* run_files_notes.c: plan.json, progress.json, state.json, samples.jsonl and
 * warnings.jsonl. A file that is missing, too large or no JSON is as if it were
 * not there. */
#include "base/json.h"
#include "base/units.h"
#include "store/notes.h"
#include "store/outdir.h"
#include "store/samples.h"
#include "store/task_lines.h"
#include "web/run_files_parts.h"

#include <stdio.h>
#include <string.h>

enum {
    FILE_BYTES = 1024 * 1024,
    TEXT_BYTES = 128 * 1024, /* of a line */
};

/* ---- values ---- */

static pl_status keep_bytes(pl_run_text *to, const char *text, size_t bytes,
                            pl_heap *heap, pl_error *err)
{
    char *copy;
    pl_status status = pl_heap_take(heap, &copy, bytes + 1, 1, err);
    if (status)
        return status;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    *to = (pl_run_text){ copy, bytes };
    return PL_OK;
}

/* A string, or "" for anything else. */
static pl_status keep(pl_run_text *to, const json_t *value, pl_heap *heap,
                      pl_error *err)
{
    if (!json_is_string(value)) {
        *to = (pl_run_text){ "", 0 };
        return PL_OK;
    }
    return keep_bytes(to, json_string_value(value), json_string_length(value),
                      heap, err);
}

static uint64_t whole(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) && json_integer_value(value) > 0
               ? (uint64_t)json_integer_value(value)
               : 0;
}

/* The object in a file; NULL if there is none. */
static pl_status read_object(const char *path, json_t **root, pl_heap *heap,
                             pl_error *err)
{
    char *text;
    size_t bytes;
    *root = NULL;
    pl_status status = pl_file_read_all(path, FILE_BYTES, heap, &text, &bytes,
                                        err);
    if (status == PL_E_MEMORY)
        return status;
    if (!status && pl_json_parse(text, bytes, path, root, NULL) != PL_OK)
        *root = NULL;
    return PL_OK;
}

/* ---- the config ---- */

static pl_status add_key(pl_run_files *run, const char *name,
                         const json_t *value, const json_t *from, pl_heap *heap,
                         pl_error *err)
{
    if (run->n_keys == PL_RUN_KEYS)
        return PL_OK;
    pl_run_key *key = &run->keys[run->n_keys++];
    pl_status status = keep_bytes(&key->name, name, strlen(name), heap, err);
    if (!status)
        status = keep(&key->value, value, heap, err);
    return status ? status : keep(&key->from, from, heap, err);
}

static pl_status read_keys(pl_run_files *run, json_t *config, pl_heap *heap,
                           pl_error *err)
{
    const char *name;
    json_t *row;
    pl_status status = PL_OK;
    json_object_foreach(config, name, row)
    {
        if (!status)
            status = add_key(
                run, name,
                json_is_string(row) ? row : json_object_get(row, "value"),
                json_object_get(row, "from"), heap, err);
    }
    return status;
}

/* Of the newest checkpoint, for folders that have no plan.json. */
static pl_status read_saved(pl_run_files *run, pl_heap *heap, pl_error *err)
{
    char link[PL_PATH_BYTES], target[PL_PATH_BYTES], folder[PL_PATH_BYTES],
        path[PL_PATH_BYTES];
    uint64_t step;
    json_t *root = NULL;
    if (pl_path_join(link, run->folder, PL_OUTDIR_LATEST, NULL) ||
        pl_link_read(link, target, NULL) || !pl_outdir_step_of(target, &step) ||
        pl_path_join(folder, run->folder, target, NULL) ||
        !pl_run_files_has(folder, "state.json", path))
        return PL_OK;
    pl_status status = read_object(path, &root, heap, err);
    if (!status)
        status = read_keys(run, json_object_get(root, "config"), heap, err);
    json_decref(root);
    return status;
}

/* ---- the plan ---- */

static void read_classes(pl_plan_picture *p, json_t *root)
{
    json_t *programs = json_object_get(root, "programs"), *list;
    const char *name;
    for (size_t i = 0; i < json_array_size(programs) && i < PL_PICTURE_ROWS;
         i++) {
        const char *text = json_string_value(json_array_get(programs, i));
        pl_plan_picture_row(p, text ? text : "");
    }
    json_object_foreach(json_object_get(root, "classes"), name, list)
    {
        const size_t part = pl_plan_picture_part(p, name);
        for (size_t i = 0; i < p->n_rows; i++) {
            const json_t *bytes = json_array_get(list, i);
            if (json_is_integer(bytes) && json_integer_value(bytes) > 0 &&
                json_integer_value(bytes) < (json_int_t)1 << 52)
                p->bytes[i][part] = (uint64_t)json_integer_value(bytes);
        }
    }
}

static void read_picture(pl_plan_picture *p, json_t *root)
{
    const int apart = json_is_true(json_object_get(root, "has_own_memory"));
    const struct {
        const char *key, *name;
    } rest[] = { { "reserve_bytes", PL_NOTES_RESERVE },
                 { "files_bytes", "files in memory" },
                 { "live_bytes", "the page beside it" } };
    uint64_t most = 0;
    read_classes(p, root);
    for (size_t k = 0; k < 3 && !apart; k++) {
        const uint64_t bytes = whole(root, rest[k].key);
        const size_t part = pl_plan_picture_part(p, rest[k].name);
        for (size_t i = 0; i < p->n_rows; i++)
            p->bytes[i][part] = bytes;
    }
    for (size_t i = 0; i < p->n_rows; i++)
        if (pl_plan_picture_sum(p, i) > most)
            most = pl_plan_picture_sum(p, i);
    p->line_bytes = whole(root, "budget_bytes");
    snprintf(p->title, sizeof p->title, "%s planned",
             pl_units_bytes(most).text);
    snprintf(p->line_name.text, sizeof p->line_name.text, "budget");
}

static pl_status read_plan(pl_run_files *run, pl_heap *heap, pl_error *err)
{
    char path[PL_PATH_BYTES];
    json_t *root = NULL;
    if (!pl_run_files_has(run->folder, PL_NOTES_PLAN, path))
        return PL_OK;
    pl_status status = read_object(path, &root, heap, err);
    if (status || !root)
        return status;
    run->has_plan = 1;
    read_picture(&run->plan, root);
    run->parameters = whole(json_object_get(root, "model"), "parameters");
    run->max_iters = whole(root, "max_iters");
    run->update_tokens = whole(root, "update_tokens");
    status = keep(&run->program, json_object_get(root, "program"), heap, err);
    if (!status)
        status = keep(&run->device, json_object_get(root, "device"), heap, err);
    if (!status)
        status = keep(&run->layout, json_object_get(root, "layout"), heap, err);
    if (!status)
        status = read_keys(run, json_object_get(root, "config"), heap, err);
    json_decref(root);
    return status;
}

/* Beside the planned bytes of the same row and part. */
static void read_actual(pl_plan_picture *p, json_t *actual)
{
    for (size_t row = 0; row < p->n_rows; row++) {
        json_t *parts = json_object_get(actual, p->rows[row].text), *bytes;
        const char *name;
        json_object_foreach(parts, name, bytes)
        {
            const uint64_t size = whole(parts, name);
            const size_t part = pl_plan_picture_find(p, name);
            if (size == 0 || size >= (uint64_t)1 << 52)
                continue;
            p->has_actual[row] = 1;
            p->actual[row][part] = size;
        }
    }
}

static pl_status read_progress(pl_run_files *run, pl_heap *heap, pl_error *err)
{
    static const char *const names[PL_RUN_HELD] = { "held_train_bytes",
                                                    "held_eval_bytes",
                                                    "held_sample_bytes",
                                                    "held_save_bytes" };
    char path[PL_PATH_BYTES];
    json_t *root = NULL;
    run->phase = (pl_run_text){ "", 0 };
    if (!pl_run_files_has(run->folder, PL_NOTES_PROGRESS, path))
        return PL_OK;
    pl_status status = read_object(path, &root, heap, err);
    if (!status)
        status = keep(&run->phase, json_object_get(root, "phase"), heap, err);
    for (int i = 0; i < PL_RUN_HELD; i++)
        run->held_bytes[i] = whole(root, names[i]);
    read_actual(&run->plan, json_object_get(root, "actual"));
    json_decref(root);
    return status;
}

pl_status pl_run_files_notes(pl_run_files *run, pl_heap *heap, pl_error *err)
{
    pl_status status = read_plan(run, heap, err);
    if (!status && run->n_keys == 0)
        status = read_saved(run, heap, err);
    return status ? status : read_progress(run, heap, err);
}

/* ---- the last lines of a file ---- */

/* Where the last `most` whole lines begin, and how many there are in all. */
static pl_status find_last(pl_file *file, uint64_t *starts, size_t most,
                           uint64_t *count, pl_error *err)
{
    char piece[16384];
    uint64_t at = 0, begin = 0;
    size_t bytes;
    *count = 0;
    for (;;) {
        pl_status status = pl_file_read_some(file, piece, sizeof piece, &bytes,
                                             err);
        if (status || bytes == 0)
            return status;
        for (size_t i = 0; i < bytes; i++, at++)
            if (piece[i] == '\n') {
                starts[(*count)++ % most] = begin;
                begin = at + 1;
            }
    }
}

/* Takes the object of one line. */
typedef pl_status take_object(pl_run_files *run, const json_t *root,
                              pl_heap *heap, pl_error *err);

static pl_status take_line(pl_run_files *run, const pl_file *file, uint64_t at,
                           char *line, take_object *take, pl_heap *heap,
                           pl_error *err)
{
    const uint64_t left = pl_file_size(file) - at;
    const size_t bytes = left < TEXT_BYTES ? (size_t)left : TEXT_BYTES;
    json_t *root = NULL;
    pl_status status = pl_file_pread_exact(file, line, bytes, at, err);
    if (status)
        return status;
    const char *end = memchr(line, '\n', bytes);
    if (!end ||
        pl_json_parse(line, (size_t)(end - line), "line", &root, NULL)) {
        run->lines_lost++;
        return PL_OK;
    }
    if (json_is_object(root))
        status = take(run, root, heap, err);
    else
        run->lines_lost++;
    json_decref(root);
    return status;
}

static pl_status take_last(pl_run_files *run, const char *name, size_t most,
                           uint64_t *all, take_object *take, pl_heap *heap,
                           pl_error *err)
{
    char path[PL_PATH_BYTES], *line;
    uint64_t starts[PL_RUN_SAMPLES];
    pl_file file = PL_FILE_CLOSED;
    if (!pl_run_files_has(run->folder, name, path))
        return PL_OK;
    pl_status status = pl_heap_take(heap, &line, TEXT_BYTES, 1, err);
    if (!status)
        status = pl_file_open_read(&file, path, err);
    if (!status)
        status = find_last(&file, starts, most, all, err);
    for (uint64_t i = *all > most ? *all - most : 0; i < *all && !status; i++)
        status = take_line(run, &file, starts[i % most], line, take, heap, err);
    pl_file_abandon(&file);
    return status;
}

static pl_status take_sample(pl_run_files *run, const json_t *root,
                             pl_heap *heap, pl_error *err)
{
    pl_run_sample *sample = &run->samples[run->n_samples];
    sample->step = whole(root, "step");
    sample->is_cut = json_is_true(json_object_get(root, "cut"));
    pl_status status = keep(&sample->prompt, json_object_get(root, "prompt"),
                            heap, err);
    if (!status)
        status = keep(&sample->text, json_object_get(root, "text"), heap, err);
    run->n_samples += !status;
    return status;
}

static double real(const json_t *root, const char *key)
{
    const json_t *value = json_object_get(root, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* The place of a task: a later line of it takes the place of an earlier one. */
static pl_run_task *place_of(pl_run_files *run, const json_t *label)
{
    size_t i = 0;
    while (i < run->n_tasks &&
           (run->tasks[i].label.bytes != json_string_length(label) ||
            memcmp(run->tasks[i].label.text, json_string_value(label),
                   run->tasks[i].label.bytes) != 0))
        i++;
    return i < PL_RUN_TASKS ? &run->tasks[i] : NULL;
}

static pl_status take_task(pl_run_files *run, const json_t *root, pl_heap *heap,
                           pl_error *err)
{
    const json_t *label = json_object_get(root, "task");
    pl_run_task *task = json_is_string(label) ? place_of(run, label) : NULL;
    pl_status status = PL_OK;
    if (!task)
        return PL_OK;
    if (task == &run->tasks[run->n_tasks]) {
        status = keep(&task->label, label, heap, err);
        run->n_tasks += !status;
    }
    task->step = whole(root, "step");
    task->items = whole(root, "items");
    task->acc = real(root, "acc");
    task->acc_error = real(root, "acc_stderr");
    task->acc_norm = real(root, "acc_norm");
    task->acc_norm_error = real(root, "acc_norm_stderr");
    task->perplexity = real(root, "perplexity");
    task->centred = real(root, "centred");
    return status;
}

static pl_status take_warning(pl_run_files *run, const json_t *root,
                              pl_heap *heap, pl_error *err)
{
    pl_status status = keep(&run->warnings[run->n_warnings],
                            json_object_get(root, "text"), heap, err);
    run->n_warnings += !status;
    return status;
}

pl_status pl_run_files_texts(pl_run_files *run, pl_heap *heap, pl_error *err)
{
    pl_status status = take_last(run, PL_SAMPLES_NAME, PL_RUN_SAMPLES,
                                 &run->all_samples, take_sample, heap, err);
    if (!status)
        status = take_last(run, PL_TASK_LINES_NAME, PL_RUN_TASKS,
                           &run->all_tasks, take_task, heap, err);
    if (!status)
        status = take_last(run, PL_NOTES_WARNINGS, PL_RUN_WARNINGS,
                           &run->all_warnings, take_warning, heap, err);
    return status;
}
