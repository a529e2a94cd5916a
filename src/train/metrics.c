/* metrics.c: see metrics.h. */
#include "train/metrics.h"
#include "base/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LINE_BYTES = 1024, PIECE_BYTES = 16 * LINE_BYTES };

/* ---- opening ---- */

/* The first `most` lines of a file that are whole. */
typedef struct lines {
    uint64_t count, bytes;
} lines;

static pl_status first_lines(const pl_file *file, uint64_t most, lines *found,
                             pl_error *err)
{
    char piece[PIECE_BYTES];
    uint64_t size = pl_file_size(file);
    *found = (lines){ 0 };
    for (uint64_t at = 0; at < size && found->count < most;) {
        size_t want = size - at < sizeof piece ? (size_t)(size - at)
                                               : sizeof piece;
        pl_status status = pl_file_pread_exact(file, piece, want, at, err);
        if (status)
            return status;
        const char *next = piece, *end = piece + want;
        while (next < end && found->count < most &&
               (next = memchr(next, '\n', (size_t)(end - next))) != NULL) {
            next++;
            found->count++;
            found->bytes = at + (uint64_t)(next - piece);
        }
        at += want;
    }
    return PL_OK;
}

static pl_status look_at_lines(const char *path, uint64_t most, lines *found,
                               pl_error *err)
{
    pl_file file;
    pl_status status = pl_file_open_read(&file, path, err);
    *found = (lines){ 0 };
    if (status)
        return status;
    status = first_lines(&file, most, found, err);
    pl_file_abandon(&file);
    return status;
}

/* metrics.jsonl anew, from a checkpoint's copy. Killed meanwhile, it is too
 * short and the next start does it again. */
static pl_status restore(pl_file *out, const char *path, const char *copy,
                         uint64_t bytes, pl_error *err)
{
    char piece[PIECE_BYTES];
    pl_file from;
    pl_status status = pl_file_open_read(&from, copy, err);
    if (status)
        return status;
    status = pl_file_create(out, path, err);
    for (uint64_t at = 0; at < bytes && !status;) {
        size_t want = bytes - at < sizeof piece ? (size_t)(bytes - at)
                                                : sizeof piece;
        status = pl_file_pread_exact(&from, piece, want, at, err);
        if (!status)
            status = pl_file_append(out, piece, want, err);
        at += want;
    }
    pl_file_abandon(&from);
    return status;
}

/* What is missing in the file is taken from the checkpoint's folder. */
static pl_status open_old(pl_metrics *metrics, const char *path,
                          const char *folder, uint64_t count, pl_error *err)
{
    char copy[PL_PATH_BYTES];
    lines have = { 0 }, kept = { 0 };
    pl_file_kind kind;
    pl_status status = pl_file_look(path, &kind, err);
    if (!status && kind != PL_FILE_ABSENT)
        status = look_at_lines(path, count, &have, err);
    if (!status && have.count < count)
        status = pl_path_join(copy, folder, PL_METRICS_NAME, err);
    if (!status && have.count < count &&
        look_at_lines(copy, count, &kept, NULL))
        kept.count = 0; /* then what there is must do */
    if (status)
        return status;
    if (kept.count > have.count) {
        status = restore(&metrics->file, path, copy, kept.bytes, err);
        have = kept;
    } else if (kind == PL_FILE_ABSENT) {
        status = pl_file_create(&metrics->file, path, err);
    } else {
        status = pl_file_open_again(&metrics->file, path, have.bytes, err);
    }
    metrics->good_bytes = have.bytes;
    metrics->lines = have.count;
    if (!status && (have.count < count || kept.count > 0))
        pl_log_say(metrics->log, PL_LOG_NOTE,
                   "%s had not all lines of the checkpoint: it has %" PRIu64
                   " of %" PRIu64 " now%s",
                   path, have.count, count,
                   kept.count > 0 ? ", from the checkpoint's own copy" : "");
    return status;
}

pl_status pl_metrics_open(pl_metrics *metrics, const char *out_dir,
                          const char *folder, pl_metrics_size size,
                          const pl_log *log, pl_error *err)
{
    char path[PL_PATH_BYTES];
    *metrics = (pl_metrics)PL_METRICS_CLOSED;
    metrics->log = log;
    pl_status status = pl_path_join(path, out_dir, PL_METRICS_NAME, err);
    if (!status)
        status = size.lines > 0
                     ? open_old(metrics, path, folder, size.lines, err)
                     : pl_file_create(&metrics->file, path, err);
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
    metrics->lines++;
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
    return (pl_metrics_size){ metrics->lines, metrics->events.size_bytes };
}

/* ---- the checkpoint's copy ---- */

/* Drops the time that an update took from each line in `text`, which are whole;
 * returns what is left. */
static size_t drop_times(char *text, size_t bytes)
{
    static const char time[] = ", \"step_ms\"";
    size_t used = 0;
    for (size_t at = 0; at < bytes;) {
        const char *from = text + at;
        const char *end = memchr(from, '\n', bytes - at);
        size_t length = (size_t)(end + 1 - from);
        const char *cut = memmem(from, length, time, sizeof time - 1);
        size_t keep = cut ? (size_t)(cut - from) : length;
        memmove(text + used, from, keep);
        used += keep;
        if (cut) {
            memcpy(text + used, "}\n", 2);
            used += 2;
        }
        at += length;
    }
    return used;
}

/* *read: whether what failed was reading. */
static pl_status copy_lines(const pl_metrics *metrics, pl_file *out,
                            pl_hash *hash, uint64_t *bytes, int *read,
                            pl_error *err)
{
    char piece[PIECE_BYTES];
    pl_file from;
    *read = 1;
    pl_status status = pl_file_open_read(&from, metrics->file.path, err);
    if (status)
        return status;
    for (uint64_t at = 0; at < metrics->good_bytes && !status;) {
        uint64_t left = metrics->good_bytes - at;
        size_t want = left < sizeof piece ? (size_t)left : sizeof piece;
        *read = 1;
        status = pl_file_pread_exact(&from, piece, want, at, err);
        const char *end = status ? NULL : memrchr(piece, '\n', want);
        if (!status && !end)
            status = pl_fail(err, PL_E_FORMAT, "%s: a line is too long",
                             metrics->file.path);
        if (status)
            break;
        at += (uint64_t)(end + 1 - piece);
        size_t used = drop_times(piece, (size_t)(end + 1 - piece));
        *read = 0;
        status = pl_file_append(out, piece, used, err);
        pl_hash_add(hash, piece, used);
        *bytes += used;
    }
    pl_file_abandon(&from);
    return status;
}

pl_status pl_metrics_copy(pl_metrics *metrics, const char *path, pl_hash *hash,
                          uint64_t *bytes, pl_error *err)
{
    pl_file out;
    int read = 0;
    *bytes = 0;
    pl_hash_begin(hash);
    if (metrics->file.fd < 0 || metrics->lines == 0)
        return PL_OK;
    pl_status status = pl_file_create(&out, path, err);
    if (status)
        return status;
    status = copy_lines(metrics, &out, hash, bytes, &read, err);
    if (!status)
        status = pl_file_sync(&out, err);
    if (!status)
        return pl_file_close(&out, err);
    pl_file_abandon(&out);
    if (!read)
        return status;
    if (err)
        complain(metrics, err);
    *bytes = 0;
    return pl_file_remove(path, err);
}
