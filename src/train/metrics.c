/* metrics.c: see metrics.h. */
#include "train/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 1024 };

/* ---- opening ---- */

/* The length of the whole lines in the first `size` bytes. */
static pl_status whole_lines(pl_file *file, uint64_t size, uint64_t *bytes,
                             pl_error *err)
{
    char piece[LINE_BYTES];
    while (size > 0) {
        size_t want = size < sizeof piece ? (size_t)size : sizeof piece;
        pl_status status = pl_file_pread_exact(file, piece, want, size - want,
                                               err);
        if (status)
            return status;
        const char *newline = memrchr(piece, '\n', want);
        if (newline) {
            *bytes = size - want + (uint64_t)(newline - piece) + 1;
            return PL_OK;
        }
        size -= want;
    }
    *bytes = 0;
    return PL_OK;
}

static pl_status open_old(pl_metrics *metrics, const char *path, uint64_t bytes,
                          pl_error *err)
{
    pl_file *file = &metrics->file;
    pl_status status = pl_file_open_read(file, path, err);
    if (status)
        return status;
    uint64_t have = pl_file_size(file);
    status = whole_lines(file, have < bytes ? have : bytes,
                         &metrics->good_bytes, err);
    pl_file_abandon(file);
    if (!status)
        status = pl_file_open_again(file, path, metrics->good_bytes, err);
    if (!status && metrics->good_bytes < bytes)
        pl_log_say(metrics->log, PL_LOG_NOTE,
                   "%s has %" PRIu64 " bytes, %" PRIu64 " when the checkpoint "
                   "was written: some steps are missing in it",
                   path, have, bytes);
    return status;
}

pl_status pl_metrics_open(pl_metrics *metrics, const char *out_dir,
                          uint64_t bytes, const pl_log *log, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_file_kind kind = PL_FILE_ABSENT;
    *metrics = (pl_metrics){ .file = PL_FILE_CLOSED, .log = log };
    pl_status status = pl_path_join(path, out_dir, PL_METRICS_NAME, err);
    if (!status)
        status = pl_file_look(path, &kind, err);
    if (!status && kind != PL_FILE_ABSENT && bytes > 0)
        status = open_old(metrics, path, bytes, err);
    else if (!status)
        status = pl_file_create(&metrics->file, path, err);
    if (status)
        pl_metrics_close(metrics);
    return status;
}

void pl_metrics_close(pl_metrics *metrics)
{
    pl_file_abandon(&metrics->file);
}

/* ---- writing ---- */

typedef struct line {
    char text[LINE_BYTES];
    size_t used;
    uint64_t step;
} line;

static line begin(uint64_t step)
{
    line l = { .step = step };
    l.used = (size_t)snprintf(l.text, sizeof l.text, "{\"step\": %" PRIu64,
                              step);
    return l;
}

/* One number: the place where other writers of metrics belong. */
static void put(line *l, const char *name, double value)
{
    char number[40] = "null"; /* JSON knows no NaN */
    if (isfinite(value))
        snprintf(number, sizeof number, "%.9g", value);
    l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used,
                                ", \"%s\": %s", name, number);
}

static void complain(pl_metrics *metrics, const pl_error *trouble)
{
    if (!metrics->in_trouble)
        pl_log_say(metrics->log, PL_LOG_WARN,
                   "%s The run goes on; lines are missing in %s until that "
                   "works again",
                   trouble->text, PL_METRICS_NAME);
    metrics->in_trouble = 1;
}

/* A line that was cut off by an error is taken back before the next one. */
static void append(pl_metrics *metrics, line *l)
{
    pl_error trouble = { 0 };
    pl_status status = PL_OK;
    if (metrics->file.fd < 0)
        return;
    l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used,
                                "}\n");
    if (pl_file_size(&metrics->file) != metrics->good_bytes)
        status = pl_file_cut(&metrics->file, metrics->good_bytes, &trouble);
    if (!status)
        status = pl_file_append(&metrics->file, l->text, l->used, &trouble);
    if (status) {
        complain(metrics, &trouble);
        return;
    }
    metrics->good_bytes += l->used;
    metrics->in_trouble = 0;
}

#define PUT(name, value) put(&l, name, (double)(value));

void pl_metrics_updated(pl_metrics *metrics, const pl_update_event *e)
{
    line l = begin(e->step);
    PL_METRICS_OF_UPDATE(PUT)
    append(metrics, &l);
}

void pl_metrics_evaluated(pl_metrics *metrics, const pl_eval_event *e)
{
    line l = begin(e->step);
    PL_METRICS_OF_EVAL(PUT)
    append(metrics, &l);
}

uint64_t pl_metrics_bytes(pl_metrics *metrics)
{
    pl_error trouble = { 0 };
    if (metrics->file.fd >= 0 && pl_file_sync(&metrics->file, &trouble))
        complain(metrics, &trouble);
    return metrics->good_bytes;
}
