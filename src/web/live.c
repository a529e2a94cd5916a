/* live.c: see live.h. What is asked for, and by which file it is answered. */
#include "web/live_parts.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "store/metrics.h"
#include "store/notes.h"
#include "store/outdir.h"
#include "web/page.h"

#include <stdlib.h>
#include <string.h>

enum {
    CONNECTIONS = 64,
    TIMEOUT_SECONDS = 15,
    STATE_MS = 400, /* so long an /api/state is good for all clients */
};

static const char json_type[] = "application/json; charset=utf-8";
static const char lines_type[] = "application/x-ndjson; charset=utf-8";
static const char text_type[] = "text/plain; charset=utf-8";

/* ---- answers ---- */

static void refuse(const pl_http_request *request, int status, const char *text)
{
    pl_http_reply_static(request->exchange, status, text_type, text,
                         strlen(text));
}

/* A number of the query: `otherwise` where there is none. */
static uint64_t number(const pl_http_request *request, const char *name,
                       uint64_t otherwise)
{
    const char *text = pl_http_query(request, name);
    if (!text || text[0] < '0' || text[0] > '9' || strlen(text) > 18)
        return otherwise;
    return strtoull(text, NULL, 10);
}

static void answer_state(pl_live *live, const pl_http_request *request)
{
    const double age = pl_clock_seconds() - live->state_made;
    if (live->state_made == 0.0 || age > STATE_MS * 1e-3)
        pl_live_make_state(live);
    pl_http_reply(request->exchange, 200, json_type, live->state,
                  live->state_bytes);
}

static void answer_whole(pl_live *live, const pl_live_run *run,
                         const pl_http_request *request)
{
    char path[PL_PATH_BYTES];
    int there = strcmp(request->path, "/api/saved") == 0
                    ? pl_live_saved(run, "state.json", path)
                    : pl_path_join(path, run->folder, PL_NOTES_PLAN, NULL) ==
                          PL_OK;
    long bytes = there ? pl_live_read_whole(live, path) : -1;
    if (bytes < 0)
        refuse(request, 404, "There is no such file yet.\n");
    else
        pl_http_reply(request->exchange, 200, json_type, live->out,
                      (size_t)bytes);
}

static void answer_lines(pl_live *live, const pl_live_run *run,
                         const char *name, const pl_http_request *request)
{
    const pl_live_lines wish = { .name = name,
                                 .from = number(request, "from", 0),
                                 .tail = number(request, "tail", 0),
                                 .every = strcmp(name, PL_METRICS_NAME) == 0
                                              ? number(request, "every", 1)
                                              : 1 };
    size_t bytes = pl_live_read_lines(live, run, &wish);
    pl_http_reply(request->exchange, 200, lines_type, live->out, bytes);
}

static void answer_api(pl_live *live, const pl_http_request *request)
{
    static const struct {
        const char *path, *name;
    } lines[] = {
        { "/api/metrics", PL_METRICS_NAME },
        { "/api/samples", PL_SAMPLES_NAME },
        { "/api/tasks", PL_TASK_LINES_NAME },
        { "/api/warnings", PL_NOTES_WARNINGS },
    };
    const uint64_t run = number(request, "run", 0);
    if (strcmp(request->path, "/api/state") == 0) {
        answer_state(live, request);
        return;
    }
    if (run >= live->count) {
        refuse(request, 404, "There is no such run.\n");
        return;
    }
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (strcmp(request->path, lines[i].path) == 0) {
            answer_lines(live, &live->runs[run], lines[i].name, request);
            return;
        }
    if (strcmp(request->path, "/api/plan") == 0 ||
        strcmp(request->path, "/api/saved") == 0)
        answer_whole(live, &live->runs[run], request);
    else
        refuse(request, 404, "There is no such page.\n");
}

static void handle(void *context, const pl_http_request *request)
{
    pl_live *live = context;
    const char *name = request->path + 1;
    if (strcmp(request->method, "GET") != 0) {
        refuse(request, 405, "Nothing can be written here.\n");
        return;
    }
    if (strncmp(request->path, "/api/", 5) == 0) {
        answer_api(live, request);
        return;
    }
    if (strcmp(request->path, "/") == 0)
        name = "live.html";
    const pl_page_file *file = strncmp(name, "live", 4) == 0
                                   ? pl_page_find(name)
                                   : NULL;
    if (file)
        pl_http_reply_static(request->exchange, 200, file->type, file->bytes,
                             file->n);
    else
        refuse(request, 404, "There is no such page.\n");
}

/* ---- open and close ---- */

/* The last part of a path, as text. */
static void name_run(pl_live_run *run)
{
    const char *path = run->folder;
    size_t end = strlen(path), used = 0;
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t at = end;
    while (at > 0 && path[at - 1] != '/')
        at--;
    while (at < end && used + PL_UTF8_SHOWN_BYTES < sizeof run->name) {
        at += pl_utf8_show(path + at, end - at, PL_UTF8_SHOW_BREAKS,
                           run->name + used);
        used += strlen(run->name + used);
    }
    if (used == 0)
        run->name[0] = '/';
}

static void look_for_step(void *context, const char *name)
{
    uint64_t step;
    *(int *)context |= pl_outdir_step_of(name, &step);
}

static pl_status check_folder(const pl_live_run *run, pl_error *err)
{
    pl_file_kind kind;
    pl_file file;
    int has_run = 0;
    pl_status status = pl_file_look(run->folder, &kind, err);
    if (status)
        return status;
    if (kind != PL_FILE_FOLDER)
        return pl_fail(err, PL_E_IO,
                       kind == PL_FILE_ABSENT
                           ? "%s: there is no such folder. `live` takes the "
                             "out_dir of a run, or several"
                           : "%s is no folder. `live` takes the out_dir of a "
                             "run, or several",
                       run->folder);
    if (pl_live_file(run, PL_METRICS_NAME, &file) ||
        pl_live_file(run, PL_NOTES_PLAN, &file)) {
        pl_file_abandon(&file);
        return PL_OK;
    }
    status = pl_folder_walk(run->folder, look_for_step, &has_run, err);
    if (status || has_run)
        return status;
    return pl_fail(err, PL_E_FORMAT,
                   "%s: no run is in there: neither %s nor a checkpoint. "
                   "`live` takes the out_dir of a run",
                   run->folder, PL_METRICS_NAME);
}

pl_status pl_live_open(pl_live **out, const pl_live_wish *wish, pl_heap *heap,
                       pl_error *err)
{
    pl_live *live;
    if (wish->count == 0 || wish->count > PL_LIVE_MOST_RUNS)
        return pl_fail(err, PL_E_USAGE,
                       "`live` shows 1 to %d folders at once, not %zu",
                       (int)PL_LIVE_MOST_RUNS, wish->count);
    pl_status status = pl_heap_take(heap, &live, 1, sizeof *live, err);
    if (!status)
        status = pl_heap_take(heap, &live->out, PL_LIVE_OUT_BYTES, 1, err);
    if (!status)
        status = pl_heap_take(heap, &live->in, PL_LIVE_IN_BYTES, 1, err);
    if (!status)
        status = pl_heap_take(heap, &live->state, PL_LIVE_OUT_BYTES, 1, err);
    for (size_t i = 0; i < wish->count && !status; i++) {
        live->runs[i].folder = wish->folders[i];
        name_run(&live->runs[i]);
        if (wish->are == PL_LIVE_THERE)
            status = check_folder(&live->runs[i], err);
    }
    if (status)
        return status;
    live->count = wish->count;
    const pl_http_wish http = { .host = wish->host,
                                .port = wish->port,
                                .token = wish->token,
                                .hosts = wish->token ? wish->names : NULL,
                                .max_body_bytes = 0,
                                .max_connections = CONNECTIONS,
                                .timeout_seconds = TIMEOUT_SECONDS,
                                .handle = handle,
                                .context = live,
                                .log = wish->log };
    status = pl_http_open(&live->http, &http, heap, err);
    *out = live;
    return status;
}

pl_http *pl_live_http(pl_live *live)
{
    return live->http;
}

void pl_live_close(pl_live *live)
{
    if (live)
        pl_http_close(live->http);
}
