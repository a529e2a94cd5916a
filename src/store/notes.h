/* notes.h: what a run tells those who look at its folder, beside its metrics:
 *
 *   plan.json       what takes what, and the config with its origins: written
 *                   once, at the start (train/plan_file.h)
 *   progress.json   what it is doing right now: one object, padded with blanks
 *                   to PL_NOTES_PROGRESS_BYTES, written over in place about
 *                   twice a second
 *   warnings.jsonl  what it warned of: a line each,
 *                   {"date": 1.7e9, "level": "warning", "text": "..."}
 *
 * No run needs them: what can't be written is left out. Owns the last two.
 * Allocates nothing. */
#ifndef PL_STORE_NOTES_H
#define PL_STORE_NOTES_H

#include "base/file.h"
#include "base/log.h"
#include "device/device.h"

#include <stdint.h>

#define PL_NOTES_PLAN     "plan.json"
#define PL_NOTES_PROGRESS "progress.json"
#define PL_NOTES_WARNINGS "warnings.jsonl"

enum {
    PL_NOTES_PLAN_BYTES = 64 * 1024,     /* at most */
    PL_NOTES_PROGRESS_BYTES = 8192,      /* exactly */
    PL_NOTES_WARNINGS_BYTES = 64 * 1024, /* at most */
    /* all of them, in whole pages, and the plan while it is replaced */
    PL_NOTES_MOST_BYTES = 2 * PL_NOTES_PLAN_BYTES + PL_NOTES_WARNINGS_BYTES +
                          PL_NOTES_PROGRESS_BYTES,
};

/* Of plan.json's classes and of what progress.json says of them: what isn't a
 * class of tensors. */
#define PL_NOTES_GAPS    "gaps, alignment"
#define PL_NOTES_RESERVE "reserve"
#define PL_NOTES_REST    "rest of the arena"

/* What a run is doing. The first ones are phases in which memory is held. */
#define PL_PHASE_TABLE(X)                                                      \
    X(PL_PHASE_TRAIN, "train")                                                 \
    X(PL_PHASE_EVAL, "eval")                                                   \
    X(PL_PHASE_SAMPLE, "sample")                                               \
    X(PL_PHASE_SAVE, "save")                                                   \
    X(PL_PHASE_START, "start")                                                 \
    X(PL_PHASE_DONE, "done")                                                   \
    X(PL_PHASE_STOPPED, "stopped")                                             \
    X(PL_PHASE_FAILED, "failed")

typedef enum pl_phase {
#define PL_PHASE_ENUM(id, name) id,
    PL_PHASE_TABLE(PL_PHASE_ENUM)
#undef PL_PHASE_ENUM
        PL_PHASE_COUNT
} pl_phase;
enum { PL_PHASES_HELD = PL_PHASE_SAVE + 1 };

typedef struct pl_notes_now {
    pl_phase phase;
    uint64_t step, max_iters;
    double share;             /* of this update or evaluation, from 0 to 1 */
    double tokens_per_second; /* of the last update, or of this one so far */
    double seconds_left;      /* of the run; negative: unknown */
    double mfu;               /* from 0 to 1; negative: unknown */
    double peak_flops;        /* that it is a share of */
} pl_notes_now;

/* What a program's memory was when it ran: actual bytes beside planned ones. */
typedef struct pl_notes_actual {
    int is_known;
    pl_device_backing arena;
    uint64_t outside_bytes; /* that the process held beside the arena */
} pl_notes_actual;

typedef struct pl_notes {
    pl_file progress, warnings;
    uint64_t warnings_bytes;             /* written so far */
    uint64_t held_bytes[PL_PHASES_HELD]; /* the most that was seen in each */
    pl_device *device;                   /* that is measured, or NULL */
    unsigned programs;                   /* of it: a bit for each */
    pl_notes_actual actual[PL_PROGRAM_COUNT];
    uint64_t pid, pid_began; /* as /proc/self/stat has them */
    double told;             /* when */
    pl_notes_now now;
    char warnings_path[PL_PATH_BYTES]; /* "": not known yet */
    char early[4096];                  /* warnings before that */
    size_t early_bytes;
} pl_notes;

#define PL_NOTES_CLOSED                                                        \
    {                                                                          \
        .progress = PL_FILE_CLOSED, .warnings = PL_FILE_CLOSED                 \
    }

/* Keeps a note or a warning, also before pl_notes_open. */
void pl_notes_warn(pl_notes *notes, pl_log_level level, const char *text);

/* Begins progress.json in `out_dir`. warnings.jsonl is gone on with, or made
 * with the first warning. */
void pl_notes_open(pl_notes *notes, const char *out_dir);
/* From now on the memory of each program in `graph` that runs on `device` is
 * measured: once, when something is told after its phase has begun. */
void pl_notes_measure(pl_notes *notes, pl_device *device,
                      const pl_graph *graph);
/* What the run does now; written where that was long enough ago, or another
 * phase began. */
void pl_notes_tell(pl_notes *notes, const pl_notes_now *now);
/* With the phase that it ends with. */
void pl_notes_close(pl_notes *notes, pl_phase phase);

const char *pl_phase_name(pl_phase phase);

#endif
