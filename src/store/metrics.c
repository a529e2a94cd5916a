/* metrics.c: see metrics.h. Owns what is written; metrics_open.c what is found
 * when a run is resumed. */
#include "store/metrics.h"
#include "base/clock.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of the tags of texts: a number follows. */
#define SAMPLE_TAG "sample/"

/* ---- sizes ---- */

enum {
    NUMBER_BYTES = sizeof "-1.23456789e-308" - 1, /* the widest of "%.9g" */
    STEP_BYTES = sizeof "{\"step\": 18446744073709551615" - 1,
    TAIL_BYTES = sizeof "}\n" - 1,
};

#define WIDTH(name, value) +(sizeof ", \"" name "\": " - 1 + NUMBER_BYTES)
#define EVENT(name, value) +PL_TENSORBOARD_MOST_BYTES(sizeof name - 1)
#define TASK_EVENT(name, value)                                                \
    +PL_TENSORBOARD_MOST_BYTES(sizeof PL_TASK_LINES_TAG "/" name - 1 +         \
                               PL_TASK_LINES_LABEL_BYTES)

enum {
    UPDATE_BYTES = STEP_BYTES + TAIL_BYTES PL_METRICS_OF_UPDATE(WIDTH),
    EVAL_BYTES = STEP_BYTES + TAIL_BYTES PL_METRICS_OF_EVAL(WIDTH)
                                  PL_METRICS_OF_BYTES(WIDTH),
    UPDATE_EVENTS_BYTES = 0 PL_METRICS_OF_UPDATE(EVENT),
    EVAL_EVENTS_BYTES = 0 PL_METRICS_OF_EVAL(EVENT) PL_METRICS_OF_BYTES(EVENT),
    TASK_EVENTS_BYTES = 0 PL_TASK_NUMBERS(TASK_EVENT),
    SAMPLE_EVENT_BYTES = PL_TENSORBOARD_MOST_TEXT(sizeof SAMPLE_TAG "99"),
};

_Static_assert((int)UPDATE_BYTES <= (int)PL_THIN_LINE_BYTES &&
                   (int)EVAL_BYTES <= (int)PL_THIN_LINE_BYTES,
               "the copy has room for the longest line");

pl_metrics_bytes pl_metrics_most_bytes(uint64_t updates, uint64_t evals,
                                       pl_samples_most samples, uint64_t tasks)
{
    return (pl_metrics_bytes){
        .lines = UPDATE_BYTES * updates + EVAL_BYTES * evals,
        .events = PL_TENSORBOARD_FIRST_BYTES + UPDATE_EVENTS_BYTES * updates +
                  EVAL_EVENTS_BYTES * evals +
                  SAMPLE_EVENT_BYTES * samples.lines +
                  TASK_EVENTS_BYTES * tasks,
        .samples = samples.bytes,
        .tasks = PL_TASK_LINES_BYTES * tasks,
        .copy = pl_thin_most_bytes(updates, evals),
    };
}

/* ---- opening ---- */

/* Whether a record of TensorBoard's was before the checkpoint. */
static int is_past(const void *context, uint64_t step, const char *tag)
{
    const pl_metrics_past *past = context;
    if (step != past->step)
        return step < past->step;
#define IS(name, value) || strcmp(tag, name) == 0
    if (strncmp(tag, SAMPLE_TAG, sizeof SAMPLE_TAG - 1) == 0)
        return past->sampled;
    if (strncmp(tag, PL_TASK_LINES_TAG, sizeof PL_TASK_LINES_TAG - 1) == 0)
        return past->asked;
    return past->evaluated &&
           (0 PL_METRICS_OF_EVAL(IS) PL_METRICS_OF_BYTES(IS));
}

/* Cuts samples.jsonl and tasks.jsonl, and says in `past` what that leaves of
 * its step. */
static pl_status open_lines(pl_metrics *metrics, const char *out_dir,
                            pl_metrics_past *past, pl_error *err)
{
    pl_status status = pl_samples_open(&metrics->samples, out_dir, past->step,
                                       past->samples, metrics->log, err);
    past->sampled = metrics->samples.step == past->step;
    if (!status)
        status = pl_step_lines_open(&metrics->tasks, out_dir,
                                    PL_TASK_LINES_NAME, past->step, past->tasks,
                                    metrics->log, err);
    past->asked = metrics->tasks.step == past->step;
    return status;
}

pl_status pl_metrics_open(pl_metrics *metrics, const char *out_dir,
                          const char *folder, const pl_metrics_past *past,
                          const pl_log *log, pl_heap *heap, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_metrics_past known = past ? *past : (pl_metrics_past){ 0 };
    *metrics = (pl_metrics)PL_METRICS_CLOSED;
    metrics->log = log;
    metrics->samples.log = log;
    metrics->tasks.log = log;
    metrics->evaluated_step = past && past->evaluated ? past->step : UINT64_MAX;
    pl_status status = pl_metrics_open_thin(metrics, folder, past, heap, err);
    if (!status)
        status = pl_path_join(path, out_dir, PL_METRICS_NAME, err);
    if (!status)
        status = pl_metrics_open_lines(metrics, path, past, err);
    if (!status && past)
        status = open_lines(metrics, out_dir, &known, err);
    if (!status)
        status = pl_path_join(path, out_dir, PL_TENSORBOARD_NAME, err);
    if (!status)
        status = pl_tensorboard_open_past(&metrics->events, path,
                                          past ? is_past : NULL, &known,
                                          pl_clock_date(), err);
    if (status)
        pl_metrics_close(metrics);
    return status;
}

void pl_metrics_close(pl_metrics *metrics)
{
    pl_error ignored;
    pl_file_abandon(&metrics->file);
    pl_step_lines_close(&metrics->samples);
    pl_step_lines_close(&metrics->tasks);
    if (metrics->events.file.fd >= 0) {
        pl_status status = pl_tensorboard_close(&metrics->events, &ignored);
        (void)status; /* what could not be written was said before */
    }
}

/* ---- writing ---- */

typedef struct line {
    pl_metrics *metrics;
    char text[PL_METRICS_LINE_BYTES];
    size_t used;
    uint64_t step;
    double date;
} line;

static void complain(pl_metrics *metrics, const pl_error *trouble)
{
    if (!metrics->in_trouble)
        pl_log_say(metrics->log, PL_LOG_WARN,
                   "%s. The run goes on; numbers are missing in %s or %s until "
                   "that works again",
                   trouble->text, PL_METRICS_NAME, PL_TENSORBOARD_NAME);
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
    pl_tensorboard *events = &l->metrics->events;
    pl_error trouble = { 0 };
    if (events->file.fd >= 0 &&
        pl_tensorboard_scalar(events, name, (int64_t)l->step, l->date,
                              (float)value, &trouble))
        complain(l->metrics, &trouble);
    if (isfinite(value))
        snprintf(number, sizeof number, "%.9g", value);
    l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used,
                                ", \"%s\": %s", name, number);
}

/* A line that was cut off by an error is taken back before the next one. */
static pl_status append_line(pl_metrics *metrics, const line *l, pl_error *err)
{
    pl_status status = PL_OK;
    if (metrics->file.fd < 0)
        return PL_OK;
    if (pl_file_size(&metrics->file) != metrics->good_bytes)
        status = pl_file_resize(&metrics->file, metrics->good_bytes, err);
    if (!status)
        status = pl_file_append(&metrics->file, l->text, l->used, err);
    if (!status)
        metrics->good_bytes += l->used;
    return status;
}

static void append(pl_metrics *metrics, line *l)
{
    pl_error trouble = { 0 };
    l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used,
                                "}\n");
    pl_status status = append_line(metrics, l, &trouble);
    if (!status && metrics->events.file.fd >= 0)
        status = pl_tensorboard_flush(&metrics->events, &trouble);
    if (status)
        complain(metrics, &trouble);
    else
        metrics->in_trouble = 0;
    if (metrics->thin.text) /* whatever the disk did */
        pl_thin_add(&metrics->thin, l->text,
                    pl_thin_drop_time(l->text, l->used));
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
    if (e->step == metrics->evaluated_step)
        return;
    line l = begin(metrics, e->step);
    PL_METRICS_OF_EVAL(PUT)
    if (e->val.bytes) {
        PL_METRICS_OF_BYTES(PUT)
    }
    append(metrics, &l);
    metrics->evaluated_step = e->step;
}

/* Prompt and text as lines of code, since TensorBoard reads Markdown; what is
 * too long for it is left out. */
static size_t as_code(char out[PL_TENSORBOARD_TEXT_BYTES], const char *text,
                      size_t bytes, size_t used)
{
    static const char indent[] = "\n    ", replacement[] = "\xef\xbf\xbd";
    for (size_t at = 0; at < bytes;) {
        const char *from = text + at;
        uint32_t code;
        int length = pl_utf8_decode(from, bytes - at, &code);
        size_t width = length > 0 ? (size_t)length : sizeof replacement - 1;
        at += length > 0 ? (size_t)length : 1;
        if (length <= 0)
            from = replacement;
        if (length == 1 && code == '\n') {
            from = indent;
            width = sizeof indent - 1;
        }
        if (width > PL_TENSORBOARD_TEXT_BYTES - used)
            break;
        memcpy(out + used, from, width);
        used += width;
    }
    return used;
}

static pl_status show_sample(pl_tensorboard *events, const pl_sample_event *e,
                             pl_error *err)
{
    char tag[32], text[PL_TENSORBOARD_TEXT_BYTES];
    size_t used = as_code(text, "\n", 1, 0);
    used = as_code(text, e->prompt, e->prompt_bytes, used);
    used = as_code(text, e->text, e->text_bytes, used);
    snprintf(tag, sizeof tag, SAMPLE_TAG "%zu", e->index + 1);
    pl_status status = pl_tensorboard_text(events, tag, (int64_t)e->step,
                                           pl_clock_date(), text, used, err);
    return status ? status : pl_tensorboard_flush(events, err);
}

void pl_metrics_sampled(pl_metrics *metrics, const char *out_dir,
                        const pl_sample_event *event, char *memory)
{
    pl_error trouble = { 0 };
    pl_samples_add(&metrics->samples, out_dir, event, memory);
    if (metrics->events.file.fd >= 0 &&
        show_sample(&metrics->events, event, &trouble))
        complain(metrics, &trouble);
}

/* The numbers of a task that has them, under its label. */
static pl_status show_task(pl_tensorboard *events, const pl_task_event *e,
                           pl_error *err)
{
    const pl_task_result *r = e->result;
    const double date = pl_clock_date();
    const struct {
        const char *name;
        double value;
    } numbers[] = {
#define NUMBER(name, value) { name, value },
        PL_TASK_NUMBERS(NUMBER)
    };
    char tag[PL_TASK_LINES_TAG_BYTES];
    pl_status status = PL_OK;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && !status; i++) {
        snprintf(tag, sizeof tag, PL_TASK_LINES_TAG "%.*s/%s",
                 PL_TASK_LINES_LABEL_BYTES - 1, r->label, numbers[i].name);
        if (isfinite(numbers[i].value))
            status = pl_tensorboard_scalar(events, tag, (int64_t)e->step, date,
                                           (float)numbers[i].value, err);
    }
    return status ? status : pl_tensorboard_flush(events, err);
}

void pl_metrics_asked(pl_metrics *metrics, const char *out_dir,
                      const pl_task_event *event)
{
    char text[PL_TASK_LINES_BYTES];
    pl_error trouble = { 0 };
    const size_t bytes = pl_task_line_write(text, event->step, event->result);
    pl_step_lines_add(&metrics->tasks, out_dir, PL_TASK_LINES_NAME, text,
                      bytes);
    if (event->index + 1 == event->count)
        metrics->tasks.step = event->step;
    if (metrics->events.file.fd >= 0 &&
        show_task(&metrics->events, event, &trouble))
        complain(metrics, &trouble);
}

/* Whether a file is still at its place, which it is told. */
static pl_status is_there(pl_file *file, const char *out_dir, const char *name,
                          char path[PL_PATH_BYTES], int *there, pl_error *err)
{
    *there = 0;
    pl_status status = pl_path_join(path, out_dir, name, err);
    if (!status && file->fd >= 0)
        status = pl_file_is_at(file, path, there, err);
    if (!status && *there)
        status = pl_path_add(file->path, path, "", err);
    return status;
}

void pl_metrics_follow(pl_metrics *metrics, const char *out_dir, uint64_t step)
{
    char path[PL_PATH_BYTES];
    const pl_metrics_past past = pl_metrics_past_at(metrics, step);
    pl_error trouble = { 0 };
    int there = 0;
    if (!metrics->thin.text) /* it was never opened */
        return;
    pl_step_lines_follow(&metrics->samples, out_dir, PL_SAMPLES_NAME);
    pl_step_lines_follow(&metrics->tasks, out_dir, PL_TASK_LINES_NAME);
    pl_status status = is_there(&metrics->file, out_dir, PL_METRICS_NAME, path,
                                &there, &trouble);
    if (!status && !there) {
        pl_file_abandon(&metrics->file);
        status = pl_metrics_open_lines(metrics, path, &past, &trouble);
    }
    if (!status)
        status = is_there(&metrics->events.file, out_dir, PL_TENSORBOARD_NAME,
                          path, &there, &trouble);
    if (!status && !there) {
        pl_file_abandon(&metrics->events.file);
        status = pl_tensorboard_open_past(&metrics->events, path, is_past,
                                          &past, pl_clock_date(), &trouble);
    }
    if (status)
        complain(metrics, &trouble);
}

void pl_metrics_sync(pl_metrics *metrics)
{
    pl_error trouble = { 0 };
    pl_step_lines_sync(&metrics->samples, PL_SAMPLES_NAME);
    pl_step_lines_sync(&metrics->tasks, PL_TASK_LINES_NAME);
    if (metrics->file.fd >= 0 && pl_file_sync(&metrics->file, &trouble))
        complain(metrics, &trouble);
}

pl_metrics_past pl_metrics_past_at(const pl_metrics *metrics, uint64_t step)
{
    const pl_thin *thin = &metrics->thin;
    return (pl_metrics_past){ .step = step,
                              .evaluated = metrics->evaluated_step == step,
                              .lines = thin->lines,
                              .evals = thin->evals,
                              .chain = thin->chain,
                              .sampled = metrics->samples.step == step,
                              .asked = metrics->tasks.step == step };
}
