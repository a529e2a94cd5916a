/* step_lines.h: a file of JSON lines that a run appends to as it goes, beside
 * its metrics: lines that begin with {"step": N, those of one step together.
 *
 * Only ever appended to, and made with the first line. A resumed run cuts it to
 * what was before its checkpoint. What can't be written is warned of once and
 * left out: no run ends for that. Allocates nothing. */
#ifndef PL_STORE_STEP_LINES_H
#define PL_STORE_STEP_LINES_H

#include "base/file.h"
#include "base/log.h"

typedef struct pl_step_lines {
    pl_file file;        /* not open: there is none yet */
    uint64_t good_bytes; /* of it: whole lines */
    uint64_t step;       /* whose lines are all there; UINT64_MAX: none's */
    const pl_log *log;
    int in_trouble; /* and it was said */
} pl_step_lines;

#define PL_STEP_LINES_CLOSED                                                   \
    {                                                                          \
        .file = PL_FILE_CLOSED, .step = UINT64_MAX                             \
    }

/* For a run that goes on at `step`: what is behind it is cut off. So are the
 * lines of the step itself if there are less than `count` of them, since they
 * are written again. `name` is the file's, in all of these. */
PL_MUST_CHECK pl_status pl_step_lines_open(pl_step_lines *lines,
                                           const char *out_dir,
                                           const char *name, uint64_t step,
                                           size_t count, const pl_log *log,
                                           pl_error *err);
void pl_step_lines_close(pl_step_lines *lines);

/* Appends a line, with its line feed. */
void pl_step_lines_add(pl_step_lines *lines, const char *out_dir,
                       const char *name, const char *text, size_t bytes);

/* The file is where `out_dir` is now; one that was removed is begun again. */
void pl_step_lines_follow(pl_step_lines *lines, const char *out_dir,
                          const char *name);

/* Waits until the lines are on the disk. */
void pl_step_lines_sync(pl_step_lines *lines, const char *name);

#endif
