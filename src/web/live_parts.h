/* live_parts.h: what the files of live share, and nobody else. */
#ifndef PL_WEB_LIVE_PARTS_H
#define PL_WEB_LIVE_PARTS_H

#include "base/file.h"
#include "web/live.h"

#include <stdint.h>

enum {
    PL_LIVE_OUT_BYTES = 192 * 1024, /* of an answer */
    PL_LIVE_IN_BYTES = 128 * 1024,  /* of a file, at once: more than a line */
};

typedef struct pl_live_run {
    const char *folder;
    char name[256]; /* its last part, for people */
} pl_live_run;

struct pl_live {
    pl_http *http;
    pl_live_run runs[PL_LIVE_MOST_RUNS];
    size_t count;
    char *out, *in;
    char *state; /* the last /api/state, PL_LIVE_OUT_BYTES */
    size_t state_bytes;
    double state_made; /* when; 0: never */
};

/* ---- live_files.c: files of a run ---- */

/* Opens `name` in a run's folder; 0 where there is no such plain file. */
int pl_live_file(const pl_live_run *run, const char *name, pl_file *file);
/* The path of the newest checkpoint's `name`, by the link `latest`; 0 where
 * there is none. */
int pl_live_saved(const pl_live_run *run, const char *name,
                  char path[PL_PATH_BYTES]);
/* Whole lines of `name` into live->out; its bytes. */
typedef struct pl_live_lines {
    const char *name;
    uint64_t from;  /* this byte, or */
    uint64_t tail;  /* the last so many; 0: `from` counts */
    uint64_t every; /* of updates; 1: all */
} pl_live_lines;
size_t pl_live_read_lines(pl_live *live, const pl_live_run *run,
                          const pl_live_lines *wish);
/* All of `path` into live->out if it is a plain file that fits; -1 if not. */
long pl_live_read_whole(pl_live *live, const char *path);

/* ---- live_state.c ---- */

/* Fills live->state. */
void pl_live_make_state(pl_live *live);

#endif
