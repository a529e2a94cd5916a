/* eval_tasks.c: see eval_tasks.h. */
#include "cli/eval_tasks.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/term.h"
#include "cli/train_view.h"
#include "data/dataset.h"
#include "format/jsontext.h"
#include "store/pretrained.h"
#include "train/ask.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { JSON_BYTES = 4096, TASK_JSON_BYTES = 2048 };

typedef struct view {
    const pl_eval_tasks_wish *wish;
    pl_requests requests;
    pl_task_result *results; /* [tasks] */
    char *json;
    size_t json_bytes;
    pl_file items;
    pl_status status; /* of writing to it */
    pl_error trouble;
    double shown;
} view;

/* ---- what is found ---- */

static void print_tasks(const pl_tasks *tasks)
{
    for (size_t i = 0; i < tasks->count; i++) {
        const pl_task *task = &tasks->tasks[i];
        const char *form = pl_task_form_name(task->form),
                   *kind = pl_task_kind_name(task->kind);
        pl_term_print("task %s: %s%s%s, %s items, %zu shot%s (%s)\n",
                      task->label, form, strcmp(form, kind) ? ", " : "",
                      strcmp(form, kind) ? kind : "",
                      pl_units_count(task->asked).text, task->manner.shots,
                      task->manner.shots == 1 ? "" : "s", task->path);
    }
}

static void say_cut(const pl_requests *requests)
{
    if (requests->cut)
        pl_log_say(&pl_term_log, PL_LOG_NOTE,
                   "%s of %s requests are longer than the model's context of "
                   "%zu tokens: they lose their beginning",
                   pl_units_count(requests->cut).text,
                   pl_units_count(requests->requests).text, requests->T);
}

void pl_eval_tasks_say(const pl_requests *requests)
{
    print_tasks(&requests->tasks);
    fflush(stdout);
    say_cut(requests);
}

/* ---- while it runs ---- */

static void show_progress(void *context, const pl_progress *progress)
{
    view *v = context;
    const double now = pl_clock_seconds();
    if (now - v->shown < 0.2)
        return;
    v->shown = now;
    pl_term_progress("asking: %llu of %llu, %.0f %%, %.0f tok/s, %s left",
                     (unsigned long long)progress->done,
                     (unsigned long long)progress->total,
                     100.0 * progress->share, progress->tokens_per_second,
                     pl_units_duration(progress->seconds_left).text);
}

/* {"task": ..., "line": 1, "gold": 0, "acc": 2, ..., "logprobs": [...]}: which
 * candidate each measure finds likeliest. */
static void write_item(void *context, const pl_ask_answer *answer)
{
    view *v = context;
    char text[512 + 32 * PL_TASK_MOST_CHOICES];
    size_t used = (size_t)snprintf(
        text, sizeof text, "{\"task\": \"%s\", \"line\": %zu, \"gold\": %zu",
        answer->task->label, answer->item->line, answer->item->gold);
    if (v->items.fd < 0 || v->status)
        return;
    for (int m = 0; m < PL_MEASURES; m++)
        if (answer->task->kind != PL_TASK_LANGUAGE &&
            pl_ask_has_measure(answer->task->kind, (pl_measure)m))
            used += (size_t)snprintf(
                text + used, sizeof text - used, ", \"%s\": %zu",
                pl_ask_measure_name((pl_measure)m), answer->picks[m]);
    used += (size_t)snprintf(text + used, sizeof text - used,
                             ", \"greedy\": %s, \"cut\": %s, \"logprobs\": [",
                             answer->greedy ? "true" : "false",
                             answer->cut ? "true" : "false");
    for (size_t i = 0; i < answer->item->count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.17g",
                                 i ? ", " : "", answer->logprobs[i]);
    used += (size_t)snprintf(text + used, sizeof text - used, "]}\n");
    v->status = pl_file_append(&v->items, text, used, &v->trouble);
}

static int stop(void *context)
{
    const view *v = context;
    return pl_cli_signal() || v->status;
}

/* ---- results ---- */

/* "0.2540 +- 0.0043", or "-". */
static const char *measured(const pl_measured *m, char text[40])
{
    if (!isfinite(m->value))
        snprintf(text, 40, "-");
    else if (isfinite(m->error))
        snprintf(text, 40, m->value < 1000.0 ? "%.4f +- %.4f" : "%.4g +- %.2g",
                 m->value, m->error);
    else
        snprintf(text, 40, m->value < 1000.0 ? "%.4f" : "%.4g", m->value);
    return text;
}

static void print_table(const view *v)
{
    char text[5][40];
    printf("\n%-24s %8s  %-18s %-18s %-18s %-18s %6s %8s\n", "task", "items",
           "acc", "acc_norm", "acc_tokens", "perplexity", "chance", "centred");
    for (size_t i = 0; i < v->requests.tasks.count; i++) {
        const pl_task_result *r = &v->results[i];
        pl_term_print("%-24s %8s  %-18s %-18s %-18s %-18s %6.4f %8.4f\n",
                      r->label, pl_units_count(r->items).text,
                      measured(&r->accuracy[PL_MEASURE_WHOLE], text[0]),
                      measured(&r->accuracy[PL_MEASURE_CHARACTERS], text[1]),
                      measured(&r->accuracy[PL_MEASURE_TOKENS], text[2]),
                      measured(&r->perplexity, text[3]), r->chance, r->centred);
    }
    printf("mean of the centred accuracies, as CORE has it: %.4f (%zu task%s)"
           "\n",
           pl_ask_centred(v->results, v->requests.tasks.count),
           v->requests.tasks.count, v->requests.tasks.count == 1 ? "" : "s");
}

static void put_measured(pl_json_text *j, const char *name,
                         const pl_measured *m)
{
    char error[64];
    snprintf(error, sizeof error, "%s_stderr", name);
    if (!isfinite(m->value))
        return;
    pl_json_text_real(j, name, m->value);
    pl_json_text_real(j, error, m->error);
}

static pl_status print_json(const view *v, const pl_session *session,
                            pl_error *err)
{
    pl_json_text j = pl_json_text_begin(v->json, v->json_bytes);
    pl_json_text_whole(&j, "step", session->run.step);
    pl_json_text_open(&j, "tasks", '[');
    for (size_t i = 0; i < v->requests.tasks.count; i++) {
        const pl_task *task = &v->requests.tasks.tasks[i];
        const pl_task_result *r = &v->results[i];
        pl_json_text_open(&j, NULL, '{');
        pl_json_text_string(&j, "label", r->label);
        pl_json_text_shown(&j, "file", pl_path_shown(task->path));
        pl_json_text_string(&j, "form", pl_task_form_name(task->form));
        pl_json_text_string(&j, "kind", r->kind);
        pl_json_text_whole(&j, "items", r->items);
        pl_json_text_whole(&j, "shots", task->manner.shots);
        pl_json_text_whole(&j, "cut", r->cut);
        for (int m = 0; m < PL_MEASURES; m++)
            put_measured(&j, pl_ask_measure_name((pl_measure)m),
                         &r->accuracy[m]);
        put_measured(&j, "perplexity", &r->perplexity);
        pl_json_text_real(&j, "chance", r->chance);
        pl_json_text_real(&j, "centred", r->centred);
        pl_json_text_close(&j, '}');
    }
    pl_json_text_close(&j, ']');
    pl_json_text_real(&j, "centred",
                      pl_ask_centred(v->results, v->requests.tasks.count));
    pl_status status = pl_json_text_end(&j, err);
    if (!status)
        fwrite(j.text, 1, j.used, stdout);
    return status;
}

/* ---- */

static pl_status ask(view *v, pl_session *session, pl_error *err)
{
    const pl_ask_watch watch = { .context = v,
                                 .progress = show_progress,
                                 .answered = write_item,
                                 .stop = stop };
    if (session->run.shape.T < v->requests.T)
        v->requests.T = session->run.shape.T;
    pl_term_progress("encoding the tasks");
    pl_status status = pl_requests_check(&v->requests, &session->run.tokenizer,
                                         stop, v, err);
    pl_term_clear();
    if (status)
        return status;
    if (v->wish->json)
        say_cut(&v->requests);
    else
        pl_eval_tasks_say(&v->requests);
    status = pl_ask(session, &v->requests, &watch, v->results, err);
    pl_term_clear();
    if (v->status)
        return pl_fail(err, v->status, "%s", v->trouble.text);
    if (!status && v->wish->json)
        return print_json(v, session, err);
    if (!status)
        print_table(v);
    if (!v->wish->json)
        pl_train_view_peak(session);
    return status;
}

/* Of the model's window: what the config says, else all that it was made for.
 * Nobody trains here, so that the default of block_size has no say. */
static pl_status find_context(size_t *T, const pl_config *config,
                              const char *folder, pl_heap *scratch,
                              pl_error *err)
{
    pl_shape shape;
    *T = (size_t)config->block_size;
    if (pl_config_was_set(config, PL_KEY_block_size))
        return PL_OK;
    pl_status status = pl_pretrained_shape(&shape, folder, scratch, err);
    if (!status)
        *T = shape.T;
    return status;
}

/* Everything that asking needs is taken before the model is planned, so that
 * the plan counts it. The model's tokenizer says how much its ids may be; the
 * session reads it for itself. */
static pl_status open_tasks(view *v, const pl_config *config,
                            const char *folder, pl_heap *heap, pl_error *err)
{
    pl_tokenizer tokenizer;
    size_t T;
    pl_heap scratch = pl_heap_make(heap->limit_bytes);
    pl_status status = pl_dataset_read_tokenizer(&tokenizer, folder, &scratch,
                                                 err);
    if (!status)
        status = find_context(&T, config, folder, &scratch, err);
    if (!status)
        status = pl_requests_open(&v->requests, config, v->wish->paths,
                                  v->wish->count, T, &tokenizer, heap, err);
    pl_heap_close(&scratch);
    v->json_bytes = JSON_BYTES + TASK_JSON_BYTES * v->requests.tasks.count;
    if (!status)
        status = pl_heap_take(heap, &v->results, v->requests.tasks.count,
                              sizeof *v->results, err);
    if (!status)
        status = pl_heap_take(heap, &v->json, v->json_bytes, 1, err);
    return status;
}

pl_status pl_eval_tasks(pl_config *config, const char *folder,
                        const pl_eval_tasks_wish *wish, pl_heap *heap,
                        pl_error *err)
{
    static view v;
    pl_session session;
    pl_machine machine;
    v = (view){ .wish = wish, .items = PL_FILE_CLOSED };
    config->serve_slots = 1; /* one text after the other */
    pl_status status = open_tasks(&v, config, folder, heap, err);
    if (!status)
        status = pl_cli_machine(&machine, PL_MACHINE_RUN, config, heap, err);
    pl_term_progress("loading %s", folder);
    if (!status)
        status = pl_session_open_serve(&session, config, &machine, folder, 0,
                                       &pl_term_log, heap, err);
    pl_term_clear();
    if (status)
        return status;
    pl_heap_seal(heap);
    pl_cli_catch_signals();
    if (wish->items)
        status = pl_file_create(&v.items, wish->items, err);
    if (!status)
        status = ask(&v, &session, err);
    if (v.items.fd >= 0 && !status)
        status = pl_file_close(&v.items, err);
    pl_file_abandon(&v.items);
    pl_session_close(&session);
    return status;
}
