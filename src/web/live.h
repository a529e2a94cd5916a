/* live.h: runs as a page in the browser, from the files in their folders.
 *
 * Read-only: it opens files of fixed names in the folders it was given, and
 * nothing else; no name comes from a client, and no link in a folder is
 * followed out of it. What the files hold is somebody else's: it is handed on
 * as it is, as JSON, and the page shows it as text.
 *
 *   /                 the page; its parts are /live.css, /live_....js
 *   /api/state        one object: what each run is doing, which files it has
 *   /api/plan         plan.json, as it is
 *   /api/saved        state.json of the newest checkpoint, as it is
 *   /api/metrics      lines of metrics.jsonl
 *   /api/samples      lines of samples.jsonl
 *   /api/tasks        lines of tasks.jsonl
 *   /api/warnings     lines of warnings.jsonl
 *
 * `run` (from 0) says which run. Lines come from the byte `from` on, or from
 * the last `tail` bytes on; the first line of an answer is an object of ours:
 * {"file": "...", "from": 0, "next": 120, "bytes": 120}. `next` is the next
 * `from`; another `file` or a `from` that isn't what was asked for means that
 * the file is another one. /api/metrics with `every` = N leaves out updates
 * whose step is no multiple of N, unless they were skipped. */
#ifndef PL_WEB_LIVE_H
#define PL_WEB_LIVE_H

#include "web/http.h"

enum {
    PL_LIVE_MOST_RUNS = 16,
    PL_LIVE_PORT = 8377, /* unless another one is asked for */
    /* what a process that does this and nothing else holds at most */
    PL_LIVE_BYTES = 32 * 1000 * 1000,
};

typedef struct pl_live pl_live;

typedef enum pl_live_folders {
    PL_LIVE_THERE,   /* each is a folder with a run in it */
    PL_LIVE_AWAITED, /* they may come later */
} pl_live_folders;

typedef struct pl_live_wish {
    const char *const *folders;
    size_t count;
    pl_live_folders are;
    const char *host, *token; /* as pl_http_wish has them, */
    const char *const *names; /* its hosts where others reach it, too */
    int port;
    const pl_log *log;
} pl_live_wish;

/* PL_E_IO where a folder isn't there, PL_E_FORMAT where it has no run in it. */
PL_MUST_CHECK pl_status pl_live_open(pl_live **live, const pl_live_wish *wish,
                                     pl_heap *heap, pl_error *err);
pl_http *pl_live_http(pl_live *live); /* to be polled, and asked for its port */
void pl_live_close(pl_live *live);    /* NULL is fine */

#endif
