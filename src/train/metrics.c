/* metrics.c: see metrics.h. */
#include "train/metrics.h"
#include "base/clock.h"

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
                          pl_metrics_size size, const pl_log *log,
                          pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_file_kind kind = PL_FILE_ABSENT;
    *metrics = (pl_metrics)PL_METRICS_CLOSED;
    metrics->log = log;
    pl_status status = pl_path_join(path, out_dir, PL_METRICS_NAME, err);
    if (!status)
        status = pl_file_look(path, &kind, err);
    if (!status && kind != PL_FILE_ABSENT && size.lines_bytes > 0)
        status = open_old(metrics, path, size.lines_bytes, err);
    else if (!status)
        status = pl_file_create(&metrics->file, path, err);
    if (!status)
        status = pl_path_join(path, out_dir, PL_EVENTS_NAME, err);
    if (!status)
        status = pl_events_open(&metrics->events, path, size.events_bytes,
                                pl_clock_date(), err);
    if (status)
        pl_metrics_close(metrics);
    return status;
}

void pl_metrics_close(pl_metrics *metrics)
{
    pl_error ignored;
    pl_file_abandon(&metrics->file);
    if (metrics->events.file.fd >= 0) {
        pl_status status = pl_events_close(&metrics->events, &ignored);
        (void)status; /* what could not be written was said before */
    }
}

/* ---- writing ---- */

typedef struct line {
    pl_metrics *metrics;
    char text[LINE_BYTES];
    size_t used;
    uint64_t step;
    double date;
} line;

static void complain(pl_metrics *metrics, const pl_error *trouble)
{
    if (!metrics->in_trouble)
        pl_log_say(metrics->log, PL_LOG_WARN,
                   "%s The run goes on; numbers are missing in %s or %s until "
                   "that works again",
                   trouble->text, PL_METRICS_NAME, PL_EVENTS_NAME);
    metrics->in_trouble = 1;
}

static line begin(pl_metrics *metrics, uint64_t step)
{
    line l = { .metrics = metrics, .step = step, .date = pl_clock_date() };
    l.used = (size_t)snprintf(l.text, sizeof l.text, "{\"step\": %" PRIu64,
                              step);
    return l;
}

/* One number, for both. */
static void put(line *l, const char *name, double value)
{
    char number[40] = "null"; /* JSON knows no NaN */
    pl_events *events = &l->metrics->events;
    pl_error trouble = { 0 };
    if (events->file.fd >= 0 &&
        pl_events_scalar(events, name, (int64_t)l->step, l->date, (float)value,
                         &trouble))
        complain(l->metrics, &trouble);
    if (isfinite(value))
        snprintf(number, sizeof number, "%.9g", value);
    l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used,
                                ", \"%s\": %s", name, number);
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
    status = pl_events_flush(&metrics->events, &trouble);
    if (status)
        complain(metrics, &trouble);
    else
        metrics->in_trouble = 0;
}

#define PUT(name, value) put(&l, name, (double)(value));

void pl_metrics_updated(pl_metrics *metrics, const pl_update_event *e)
{
    line l = begin(metrics, e->step);
    PL_METRICS_OF_UPDATE(PUT)
    append(metrics, &l);
}

void pl_metrics_evaluated(pl_metrics *metrics, const pl_eval_event *e)
{
    line l = begin(metrics, e->step);
    PL_METRICS_OF_EVAL(PUT)
    append(metrics, &l);
}

pl_metrics_size pl_metrics_sync(pl_metrics *metrics)
{
    pl_error trouble = { 0 };
    if (metrics->file.fd >= 0 && pl_file_sync(&metrics->file, &trouble))
        complain(metrics, &trouble);
    return (pl_metrics_size){ metrics->good_bytes, metrics->events.size_bytes };
}
