/* live_state.c: /api/state of live.h: what each run is doing, and how large its
 * files are, so that a page asks for what is new. */
#include "web/live_parts.h"

#include "base/clock.h"
#include "base/json.h"
#include "format/jsontext.h"
#include "store/metrics.h"
#include "store/notes.h"
#include "store/outdir.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CHECKPOINTS = 256 };

/* ---- the process ---- */

/* Whether the process that wrote progress.json is there: its number alone may
 * be somebody else's by now, so its beginning is compared, too. */
static int is_alive(uint64_t pid, uint64_t began)
{
    char path[64], text[1024];
    size_t bytes;
    if (!pid || !began)
        return 0;
    snprintf(path, sizeof path, "/proc/%" PRIu64 "/stat", pid);
    if (pl_file_read_into(path, text, sizeof text, &bytes, NULL))
        return 0;
    const char *at = strrchr(text, ')');
    if (!at || at[1] != ' ' || at[2] == 'Z')
        return 0; /* dead, and nobody asked for its exit code yet */
    for (int field = 2; at && field < 22; field++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return at && strtoull(at, NULL, 10) == began;
}

static uint64_t whole(const json_t *object, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value > 0 ? (uint64_t)value : 0;
}

static int is_end(const json_t *progress)
{
    const char *phase = json_string_value(json_object_get(progress, "phase"));
    for (int i = PL_PHASE_DONE; i < PL_PHASE_COUNT; i++)
        if (phase && strcmp(phase, pl_phase_name((pl_phase)i)) == 0)
            return 1;
    return 0;
}

/* progress.json as it is, if it is JSON. */
static void put_progress(pl_json_text *j, const pl_live_run *run)
{
    char text[PL_NOTES_PROGRESS_BYTES + 1];
    size_t bytes = 0;
    json_t *progress = NULL;
    pl_file file;
    int alive = 0;
    if (pl_live_file(run, PL_NOTES_PROGRESS, &file)) {
        if (pl_file_read_some(&file, text, sizeof text - 1, &bytes, NULL))
            bytes = 0;
        pl_file_abandon(&file);
    }
    while (bytes && (text[bytes - 1] == ' ' || text[bytes - 1] == '\n'))
        bytes--;
    text[bytes] = '\0';
    if (bytes && text[0] == '{' &&
        pl_json_parse(text, bytes, PL_NOTES_PROGRESS, &progress, NULL) ==
            PL_OK) {
        alive = !is_end(progress) &&
                is_alive(whole(progress, "pid"), whole(progress, "pid_began"));
        json_decref(progress);
        pl_json_text_raw(j, "progress", text);
    } else {
        pl_json_text_raw(j, "progress", "null");
    }
    pl_json_text_raw(j, "running", alive ? "true" : "false");
}

/* ---- files ---- */

static void put_file(pl_json_text *j, const pl_live_run *run, const char *key,
                     const char *name)
{
    char text[32];
    pl_file file;
    pl_file_stamp stamp;
    if (!pl_live_file(run, name, &file)) {
        pl_json_text_raw(j, key, "null");
        return;
    }
    if (pl_file_stamp_of(&file, &stamp, NULL) == PL_OK) {
        pl_json_text_open(j, key, '{');
        snprintf(text, sizeof text, "%" PRIu64, stamp.changed_ns);
        pl_json_text_whole(j, "bytes", stamp.size_bytes);
        pl_json_text_string(j, "changed", text);
        pl_json_text_close(j, '}');
    }
    pl_file_abandon(&file);
}

typedef struct steps {
    uint64_t steps[MOST_CHECKPOINTS];
    size_t count, all;
} steps;

/* The newest ones, in ascending order. */
static void add_step(void *context, const char *name)
{
    steps *found = context;
    uint64_t step;
    if (!pl_outdir_step_of(name, &step))
        return;
    found->all++;
    if (found->count == MOST_CHECKPOINTS) {
        if (step < found->steps[0])
            return;
        memmove(found->steps, found->steps + 1,
                (MOST_CHECKPOINTS - 1) * sizeof found->steps[0]);
        found->count--;
    }
    size_t at = found->count++;
    for (; at > 0 && found->steps[at - 1] > step; at--)
        found->steps[at] = found->steps[at - 1];
    found->steps[at] = step;
}

static void put_link(pl_json_text *j, const pl_live_run *run, const char *name)
{
    char path[PL_PATH_BYTES], target[PL_PATH_BYTES];
    uint64_t step;
    if (pl_path_join(path, run->folder, name, NULL) == PL_OK &&
        pl_link_read(path, target, NULL) == PL_OK &&
        pl_outdir_step_of(target, &step))
        pl_json_text_whole(j, name, step);
    else
        pl_json_text_raw(j, name, "null");
}

static void put_checkpoints(pl_json_text *j, const pl_live_run *run)
{
    steps found = { .count = 0 };
    if (pl_folder_walk(run->folder, add_step, &found, NULL) != PL_OK)
        found.count = 0;
    pl_json_text_open(j, "checkpoints", '[');
    for (size_t i = 0; i < found.count; i++)
        pl_json_text_whole(j, NULL, found.steps[i]);
    pl_json_text_close(j, ']');
    put_link(j, run, PL_OUTDIR_LATEST);
    put_link(j, run, PL_OUTDIR_BEST);
}

static void put_run(pl_json_text *j, const pl_live_run *run)
{
    pl_file_kind kind = PL_FILE_ABSENT;
    int there = pl_file_look(run->folder, &kind, NULL) == PL_OK &&
                kind == PL_FILE_FOLDER;
    pl_json_text_open(j, NULL, '{');
    pl_json_text_string(j, "name", run->name);
    pl_json_text_shown(j, "folder", run->folder);
    pl_json_text_raw(j, "there", there ? "true" : "false");
    put_progress(j, run);
    put_file(j, run, "metrics", PL_METRICS_NAME);
    put_file(j, run, "samples", PL_SAMPLES_NAME);
    put_file(j, run, "tasks", PL_TASK_LINES_NAME);
    put_file(j, run, "warnings", PL_NOTES_WARNINGS);
    put_file(j, run, "plan", PL_NOTES_PLAN);
    put_checkpoints(j, run);
    pl_json_text_close(j, '}');
}

void pl_live_make_state(pl_live *live)
{
    pl_json_text j = pl_json_text_begin(live->state, PL_LIVE_OUT_BYTES);
    pl_json_text_real(&j, "now", pl_clock_date());
    pl_json_text_open(&j, "runs", '[');
    for (size_t i = 0; i < live->count; i++)
        put_run(&j, &live->runs[i]);
    pl_json_text_close(&j, ']');
    live->state_bytes = pl_json_text_end(&j, NULL) == PL_OK ? j.used : 0;
    live->state_made = pl_clock_seconds();
}
