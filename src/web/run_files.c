/* run_files.c: see run_files.h. Owns metrics.jsonl; run_files_notes.c has the
 * other files. */
#include "web/run_files.h"
#include "store/metrics.h"
#include "web/run_files_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

double pl_run_mean(const pl_run_sum *sum)
{
    return sum->count ? sum->sum / (double)sum->count : (double)NAN;
}

static void add(pl_run_sum *to, double value)
{
    if (!isfinite(value))
        return;
    to->low = to->count == 0 || value < to->low ? value : to->low;
    to->high = to->count == 0 || value > to->high ? value : to->high;
    to->sum += value;
    to->count++;
}

static void merge(pl_run_sum *to, const pl_run_sum *from)
{
    if (from->count == 0)
        return;
    to->low = to->count == 0 || from->low < to->low ? from->low : to->low;
    to->high = to->count == 0 || from->high > to->high ? from->high : to->high;
    to->sum += from->sum;
    to->count += from->count;
}

/* The number behind "name": in a line; NaN: there is none. */
static double number_of(const char *line, const char *name)
{
    const char *at = strstr(line, name);
    char *end;
    if (!at)
        return (double)NAN;
    at += strlen(name);
    if (*at != '-' && (*at < '0' || *at > '9'))
        return (double)NAN;
    const double value = strtod(at, &end);
    return isfinite(value) ? value : (double)NAN;
}

static int step_of(const char *line, uint64_t *step)
{
    static const char head[] = "{\"step\": ";
    const char *at = line + sizeof head - 1;
    int digits = 0;
    *step = 0;
    if (strncmp(line, head, sizeof head - 1) != 0)
        return 0;
    for (; *at >= '0' && *at <= '9' && digits < 18; at++, digits++)
        *step = 10 * *step + (uint64_t)(*at - '0');
    return digits > 0 && *at == ',';
}

/* ---- updates ---- */

static void halve_buckets(pl_run_files *run)
{
    for (size_t i = 0; i < run->n_buckets / 2; i++) {
        pl_run_bucket *to = &run->buckets[i], one = run->buckets[2 * i];
        const pl_run_bucket *other = &run->buckets[2 * i + 1];
        one.last = other->last;
        one.updates += other->updates;
        merge(&one.loss, &other->loss);
        merge(&one.grad_norm, &other->grad_norm);
        merge(&one.rate, &other->rate);
        merge(&one.step_ms, &other->step_ms);
        *to = one;
    }
    run->n_buckets /= 2;
    run->bucket_updates *= 2;
}

/* The bucket that takes the next update. */
static pl_run_bucket *bucket_for(pl_run_files *run, uint64_t step)
{
    if (run->n_buckets > 0) {
        pl_run_bucket *last = &run->buckets[run->n_buckets - 1];
        if (last->updates < run->bucket_updates)
            return last;
    }
    if (run->n_buckets == PL_RUN_BUCKETS)
        halve_buckets(run);
    pl_run_bucket *fresh = &run->buckets[run->n_buckets++];
    *fresh = (pl_run_bucket){ .first = step };
    return fresh;
}

static void take_update(pl_run_files *run, const char *line, uint64_t step)
{
    const double loss = number_of(line, "\"loss\": "),
                 ms = number_of(line, "\"step_ms\": ");
    pl_run_bucket *last = bucket_for(run, step);
    last->last = step;
    last->updates++;
    add(&last->loss, loss);
    add(&last->grad_norm, number_of(line, "\"grad_norm\": "));
    add(&last->rate, number_of(line, "\"lr\": "));
    add(&last->step_ms, ms);
    add(&run->loss, loss);
    add(&run->step_ms, ms);
    run->last_loss = isfinite(loss) ? loss : run->last_loss;
    run->updates++;
    run->next_step = step + 1;
    if (number_of(line, "\"skipped\": ") > 0.0) {
        if (run->n_skipped < PL_RUN_SKIPPED)
            run->skipped[run->n_skipped++] = (double)step;
        run->all_skipped++;
    }
}

/* ---- evaluations ---- */

static void take_eval(pl_run_files *run, const char *line, uint64_t step)
{
    const pl_run_eval eval = {
        .step = step,
        .train = number_of(line, "\"train_loss\": "),
        .val = number_of(line, "\"val_loss\": "),
        .train_error = number_of(line, "\"train_error\": "),
        .val_error = number_of(line, "\"val_error\": "),
        .bpb = number_of(line, "\"val_bpb\": "),
    };
    if (!run->has_eval || eval.val < run->best.val || isnan(run->best.val))
        run->best = eval;
    run->last = eval;
    run->has_eval = 1;
    run->has_bpb |= isfinite(eval.bpb);
    if (run->n_evals == PL_RUN_EVALS) {
        for (size_t i = 0; i < PL_RUN_EVALS / 2; i++)
            run->evals[i] = run->evals[2 * i];
        run->n_evals /= 2;
        run->evals_every *= 2;
    }
    if (run->evaluated++ % run->evals_every == 0)
        run->evals[run->n_evals++] = eval;
}

/* ---- lines ---- */

int pl_run_files_line(pl_run_files *run, const char *line, size_t bytes)
{
    uint64_t step;
    if (bytes < 2 || line[bytes - 1] != '}' || memchr(line, '\0', bytes) ||
        !step_of(line, &step))
        return 0;
    if (strstr(line, ", \"loss\": "))
        take_update(run, line, step);
    else if (strstr(line, ", \"train_loss\": "))
        take_eval(run, line, step);
    else
        return 0;
    return 1;
}

/* A line that doesn't fit is none of ours. */
static pl_status read_metrics(pl_run_files *run, pl_file *file, pl_error *err)
{
    char line[2 * PL_METRICS_LINE_BYTES], piece[16384];
    size_t used = 0, bytes;
    for (;;) {
        pl_status status = pl_file_read_some(file, piece, sizeof piece, &bytes,
                                             err);
        if (status || bytes == 0)
            return status; /* what is left is a line that isn't whole */
        for (size_t i = 0; i < bytes; i++) {
            if (piece[i] != '\n') {
                if (used + 1 < sizeof line)
                    line[used] = piece[i];
                used++;
                continue;
            }
            const int fits = used < sizeof line;
            line[fits ? used : 0] = '\0';
            if (!fits || !pl_run_files_line(run, line, used))
                run->lines_lost++;
            used = 0;
        }
    }
}

int pl_run_files_has(const char *folder, const char *name,
                     char path[PL_PATH_BYTES])
{
    pl_file_kind kind;
    return pl_path_join(path, folder, name, NULL) == PL_OK &&
           pl_file_look_at(path, &kind, NULL) == PL_OK && kind == PL_FILE_PLAIN;
}

static pl_status check_folder(const char *folder, pl_error *err)
{
    pl_file_kind kind;
    pl_status status = pl_file_look(folder, &kind, err);
    if (status)
        return status;
    if (kind != PL_FILE_FOLDER)
        return pl_fail(err, PL_E_IO,
                       "%s is %s: a run is a folder, the out_dir of `plimsoll "
                       "train`",
                       folder,
                       kind == PL_FILE_ABSENT ? "not there" : "no folder");
    return PL_OK;
}

pl_status pl_run_files_read(pl_run_files *run, const char *folder,
                            pl_heap *heap, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_file file = PL_FILE_CLOSED;
    *run = (pl_run_files){ .folder = folder,
                           .bucket_updates = 1,
                           .evals_every = 1,
                           .last_loss = (double)NAN,
                           .best = { .val = (double)NAN } };
    pl_status status = check_folder(folder, err);
    if (!status && !pl_run_files_has(folder, PL_METRICS_NAME, path))
        status = pl_fail(err, PL_E_FORMAT,
                         "%s has no %s: no run is in it, or it hasn't begun",
                         folder, PL_METRICS_NAME);
    if (!status)
        status = pl_heap_take(heap, &run->buckets, PL_RUN_BUCKETS,
                              sizeof *run->buckets, err);
    if (!status)
        status = pl_heap_take(heap, &run->evals, PL_RUN_EVALS,
                              sizeof *run->evals, err);
    if (!status)
        status = pl_file_open_read(&file, path, err);
    if (!status)
        status = read_metrics(run, &file, err);
    pl_file_abandon(&file);
    if (!status)
        status = pl_run_files_notes(run, heap, err);
    return status ? status : pl_run_files_texts(run, heap, err);
}

const pl_run_text *pl_run_files_key(const pl_run_files *run, const char *name)
{
    for (size_t i = 0; i < run->n_keys; i++)
        if (run->keys[i].name.bytes == strlen(name) &&
            memcmp(run->keys[i].name.text, name, strlen(name)) == 0)
            return &run->keys[i].value;
    return NULL;
}
