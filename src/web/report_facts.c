/* report_facts.c: what a report says of a run in a few words, for both of its
 * formats. */
#include "base/units.h"
#include "config/config.h"
#include "web/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void pl_report_loss(double loss, double error, char text[PL_REPORT_LOSS_BYTES])
{
    if (!isfinite(loss))
        snprintf(text, PL_REPORT_LOSS_BYTES, "-");
    else if (isfinite(error))
        snprintf(text, PL_REPORT_LOSS_BYTES, "%.4f \u00b1 %.4f", loss, error);
    else
        snprintf(text, PL_REPORT_LOSS_BYTES, "%.4f", loss);
}

void pl_report_task(const pl_run_task *task,
                    char text[PL_REPORT_TASK_CELLS][PL_REPORT_LOSS_BYTES])
{
    snprintf(text[0], PL_REPORT_LOSS_BYTES, "%s",
             pl_units_count(task->step).text);
    snprintf(text[1], PL_REPORT_LOSS_BYTES, "%s",
             pl_units_count(task->items).text);
    pl_report_loss(task->acc, task->acc_error, text[2]);
    pl_report_loss(task->acc_norm, task->acc_norm_error, text[3]);
    pl_report_loss(task->perplexity, (double)NAN, text[4]);
    pl_report_loss(task->centred, (double)NAN, text[5]);
}

PL_PRINTF(3, 4)
static void fact(pl_report_fact **at, const char *name, const char *fmt, ...)
{
    va_list list;
    (*at)->name = name;
    va_start(list, fmt);
    vsnprintf((*at)->text, sizeof(*at)->text, fmt, list);
    va_end(list);
    (*at)++;
}

/* A validation loss beside bits per byte of the same evaluation. */
static void eval_facts(pl_report_fact **at, const pl_run_files *run)
{
    char loss[PL_REPORT_LOSS_BYTES];
    if (!run->has_eval)
        return;
    pl_report_loss(run->best.val, run->best.val_error, loss);
    fact(at, "best validation loss", "%s", loss);
    if (isfinite(run->best.bpb))
        fact(at, "bits per byte of the best", "%.4f", run->best.bpb);
    fact(at, "iteration of the best", "%s",
         pl_units_count(run->best.step).text);
    pl_report_loss(run->last.val, run->last.val_error, loss);
    fact(at, "last validation loss", "%s", loss);
    if (isfinite(run->last.bpb))
        fact(at, "bits per byte of the last", "%.4f", run->last.bpb);
}

static void held_fact(pl_report_fact **at, const pl_run_files *run)
{
    uint64_t most = 0;
    for (int i = 0; i < PL_RUN_HELD; i++)
        if (run->held_bytes[i] > most)
            most = run->held_bytes[i];
    if (most)
        fact(at, "most memory that it held", "%s", pl_units_bytes(most).text);
}

size_t pl_report_facts(const pl_run_files *run,
                       pl_report_fact facts[PL_REPORT_FACTS])
{
    pl_report_fact *at = facts;
    const double ms = pl_run_mean(&run->step_ms);
    if (run->max_iters)
        fact(&at, "iterations", "%s of %s", pl_units_count(run->next_step).text,
             pl_units_count(run->max_iters).text);
    else
        fact(&at, "iterations", "%s", pl_units_count(run->next_step).text);
    eval_facts(&at, run);
    if (run->parameters)
        fact(&at, "parameters", "%.2f M", (double)run->parameters / 1e6);
    if (run->update_tokens)
        fact(&at, "tokens seen", "%.4g M",
             (double)run->next_step * (double)run->update_tokens / 1e6);
    if (run->update_tokens && ms > 0.0)
        fact(&at, "tokens/s", "%s",
             pl_units_count((uint64_t)(1e3 * (double)run->update_tokens / ms))
                 .text);
    if (run->step_ms.count)
        fact(&at, "time of the updates", "%s",
             pl_units_duration(1e-3 * run->step_ms.sum).text);
    fact(&at, "skipped updates", "%s", pl_units_count(run->all_skipped).text);
    held_fact(&at, run);
    return (size_t)(at - facts);
}

/* ---- keys ---- */

static int is_text(const pl_run_text *text, const char *word)
{
    return text->bytes == strlen(word) &&
           memcmp(text->text, word, text->bytes) == 0;
}

int pl_report_is_set(const pl_run_key *key)
{
    char value[1024];
    const pl_config standard = pl_config_make_default();
    const pl_key known = pl_key_find(key->name.text, key->name.bytes);
    if (key->from.bytes)
        return !is_text(&key->from, "default");
    if (known == PL_KEY_COUNT)
        return 1;
    pl_config_value_text(&standard, known, value, sizeof value);
    return !is_text(&key->value, value);
}

int pl_report_differs(const pl_report *report, size_t key)
{
    const pl_run_key *first = &report->runs[0].keys[key];
    for (size_t i = 1; i < report->count; i++) {
        const pl_run_text *other = pl_run_files_key(&report->runs[i],
                                                    first->name.text);
        if (!other || other->bytes != first->value.bytes ||
            memcmp(other->text, first->value.text, other->bytes) != 0)
            return 1;
    }
    return 0;
}

/* A text that a shell leaves as it is. */
static int is_plain(const char *text)
{
    for (; *text; text++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                    "0123456789_-+./:=,",
                    *text))
            return 0;
    return 1;
}

/* 'cats' becomes cats, where both mean the same on a command line. */
static void bare(const pl_run_text *value, char *text, size_t capacity)
{
    const size_t n = value->bytes;
    snprintf(text, capacity, "%.*s", (int)n, value->text);
    if (n < 3 || n >= capacity || value->text[0] != '\'' ||
        value->text[n - 1] != '\'' || strchr(value->text, '\\'))
        return;
    snprintf(text, capacity, "%.*s", (int)n - 2, value->text + 1);
    if (!is_plain(text))
        snprintf(text, capacity, "%s", value->text);
}

/* In single quotes, as a shell takes them; cut to `capacity`. */
static void quote(const char *value, char *text, size_t capacity)
{
    size_t used = 0;
    for (text[used++] = '\''; *value && used + 6 < capacity; value++) {
        const char one[] = { *value, '\0' };
        const char *as = *value == '\'' ? "'\\''" : one;
        memcpy(text + used, as, strlen(as));
        used += strlen(as);
    }
    memcpy(text + used, "'", 2);
}

/* Where the run was and whether it went on is no part of what it is. */
int pl_report_argument(const pl_run_files *run, size_t at, char *text,
                       size_t capacity)
{
    const pl_run_key *key = &run->keys[at];
    char value[1024];
    if (!pl_report_is_set(key) || is_text(&key->name, "out_dir") ||
        (is_text(&key->name, "init_from") && is_text(&key->value, "'resume'")))
        return 0;
    bare(&key->value, value, sizeof value);
    const size_t used = (size_t)snprintf(text, capacity / 2, "--%s=%s",
                                         key->name.text, value);
    if (used >= capacity / 2 || !is_plain(text)) {
        const int head = snprintf(text, capacity / 2, "--%s=", key->name.text);
        const size_t from = (size_t)head < capacity / 2 ? (size_t)head
                                                        : capacity / 2 - 1;
        quote(value, text + from, capacity - from);
    }
    return 1;
}

int pl_report_shows_eval(const pl_run_files *run, size_t at)
{
    enum { ROWS = 24 };
    const size_t every = (run->n_evals + ROWS - 1) / ROWS;
    return every <= 1 || at % every == 0 || at + 1 == run->n_evals;
}
