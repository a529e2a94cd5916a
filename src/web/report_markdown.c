/* report_markdown.c: the report as Markdown, as GitHub reads it. Whatever comes
 * from a run's files is escaped: what could be markup has a backslash or is an
 * entity, control characters are shown as a terminal shows them, and texts are
 * lines of code, which nothing ends but a line that isn't indented. */
#include "base/units.h"
#include "base/utf8.h"
#include "web/report.h"
#include "web/shell.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct page {
    pl_html_sink *sink;
    void *context;
} page;

/* ---- out ---- */

static void raw(const page *p, const char *text)
{
    p->sink(p->context, text, strlen(text));
}

/* Text in a line or a cell of a table. */
static void bytes_of(const page *p, const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        char shown[PL_UTF8_SHOWN_BYTES] = "";
        at += pl_utf8_show(text + at, bytes - at, PL_UTF8_SHOW_BREAKS, shown);
        if (shown[1] != '\0' && shown[0] == '\\')
            raw(p, "\\");
        else if (shown[1] == '\0' && strchr("\\`*_{}[]()#+!|~$@:", shown[0]))
            raw(p, "\\");
        raw(p, strcmp(shown, "<") == 0   ? "&lt;"
               : strcmp(shown, ">") == 0 ? "&gt;"
               : strcmp(shown, "&") == 0 ? "&amp;"
                                         : shown);
    }
}

static void text_of(const page *p, const char *text)
{
    bytes_of(p, text, strlen(text));
}

/* Lines of code, each indented. */
static void code_of(const page *p, const char *text, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        char shown[PL_UTF8_SHOWN_BYTES] = "";
        at += pl_utf8_show(text + at, bytes - at, PL_UTF8_KEEP_BREAKS, shown);
        raw(p, strcmp(shown, "\n") == 0 ? "\n    " : shown);
    }
}

static void cell(const page *p, const char *text)
{
    raw(p, "| ");
    text_of(p, text);
    raw(p, " ");
}

static void cell_bytes(const page *p, const pl_run_text *text)
{
    raw(p, "| ");
    if (text)
        bytes_of(p, text->text, text->bytes);
    raw(p, " ");
}

/* The line under a head of so many cells; those behind the first are numbers,
 * or not. */
static void rule(const page *p, size_t cells, const char *rest)
{
    raw(p, "|\n|---");
    for (size_t i = 1; i < cells; i++)
        raw(p, rest);
    raw(p, "|\n");
}

static void picture(const page *p, const char *prefix, const char *name,
                    const char *title)
{
    if (!prefix)
        return;
    raw(p, "![");
    text_of(p, title);
    raw(p, "](<");
    for (const char *c = prefix; *c; c++) {
        const char text[2] = { *c, '\0' };
        raw(p, strchr("<>\\\n", *c) ? "_" : text);
    }
    raw(p, "-");
    raw(p, name);
    raw(p, ".svg>)\n\n");
}

/* ---- sections ---- */

static void write_facts(const page *p, const pl_run_files *run)
{
    pl_report_fact facts[PL_REPORT_FACTS];
    const size_t count = pl_report_facts(run, facts);
    raw(p, "| | ");
    rule(p, 2, "|---");
    for (size_t i = 0; i < count; i++) {
        cell(p, facts[i].name);
        cell(p, facts[i].text);
        raw(p, "|\n");
    }
    raw(p, "\n");
}

static void write_evals(const page *p, const pl_run_files *run)
{
    if (run->n_evals == 0)
        return;
    raw(p, "| iteration | train loss | validation loss ");
    raw(p, run->has_bpb ? "| bits per byte " : "");
    rule(p, run->has_bpb ? 4 : 3, "|---:");
    for (size_t i = 0; i < run->n_evals; i++) {
        const pl_run_eval *e = &run->evals[i];
        char text[PL_REPORT_LOSS_BYTES];
        if (!pl_report_shows_eval(run, i))
            continue;
        cell(p, pl_units_count(e->step).text);
        pl_report_loss(e->train, e->train_error, text);
        cell(p, text);
        pl_report_loss(e->val, e->val_error, text);
        cell(p, text);
        pl_report_loss(e->bpb, (double)NAN, text);
        if (run->has_bpb)
            cell(p, text);
        raw(p, "|\n");
    }
    raw(p, "\n");
}

static void plan_row(const page *p, const pl_plan_picture *plan, size_t part,
                     const char *name)
{
    cell(p, name);
    for (size_t i = 0; i < pl_plan_picture_columns(plan); i++)
        cell(p, pl_plan_picture_cell(plan, part, i).text);
    raw(p, "|\n");
}

static void write_plan(const page *p, const pl_run_files *run)
{
    const pl_plan_picture *plan = &run->plan;
    const size_t columns = pl_plan_picture_columns(plan);
    if (!run->has_plan || plan->n_rows == 0)
        return;
    raw(p, "| ");
    for (size_t i = 0; i < columns; i++)
        cell(p, pl_plan_picture_head(plan, i).text);
    rule(p, columns + 1, "|---:");
    for (size_t part = 0; part < plan->n_parts; part++)
        if (pl_plan_picture_has(plan, part))
            plan_row(p, plan, part, plan->parts[part].text);
    plan_row(p, plan, plan->n_parts, "sum");
    raw(p, "\n");
}

/* Of the newest step. */
static void write_tasks(const page *p, const pl_run_files *run)
{
    char text[PL_REPORT_TASK_CELLS][PL_REPORT_LOSS_BYTES];
    if (run->n_tasks == 0)
        return;
    raw(p, "| task | iteration | items | acc | acc_norm | perplexity | "
           "centred ");
    rule(p, PL_REPORT_TASK_CELLS + 1, "|---:");
    for (size_t i = 0; i < run->n_tasks; i++) {
        pl_report_task(&run->tasks[i], text);
        cell_bytes(p, &run->tasks[i].label);
        for (int k = 0; k < PL_REPORT_TASK_CELLS; k++)
            cell(p, text[k]);
        raw(p, "|\n");
    }
    raw(p, "\n");
}

static void write_samples(const page *p, const pl_run_files *run)
{
    if (run->n_samples == 0)
        return;
    const uint64_t step = run->samples[run->n_samples - 1].step;
    raw(p, "What it writes at iteration ");
    raw(p, pl_units_count(step).text);
    raw(p, ":\n\n");
    for (size_t i = 0; i < run->n_samples; i++) {
        const pl_run_sample *s = &run->samples[i];
        if (s->step != step)
            continue;
        raw(p, "    ");
        code_of(p, s->prompt.text, s->prompt.bytes);
        code_of(p, s->text.text, s->text.bytes);
        raw(p, "\n\n<!-- -->\n\n");
    }
}

static void write_config(const page *p, const pl_run_files *run)
{
    if (run->n_keys == 0)
        return;
    raw(p, "| key | value | from ");
    rule(p, 3, "|---");
    for (size_t i = 0; i < run->n_keys; i++) {
        const pl_run_key *key = &run->keys[i];
        if (!pl_report_is_set(key))
            continue;
        cell_bytes(p, &key->name);
        cell_bytes(p, &key->value);
        cell_bytes(p, &key->from);
        raw(p, "|\n");
    }
    raw(p, "\nTo repeat it:\n\n    plimsoll train");
    for (size_t i = 0; i < run->n_keys; i++) {
        char text[2600];
        if (pl_report_argument(run, i, text, sizeof text)) {
            raw(p, " \\\n        ");
            code_of(p, text, strlen(text));
        }
    }
    raw(p, "\n\n");
}

static void write_differences(const page *p, const pl_report *r)
{
    raw(p, "## Keys in which they differ\n\n| key ");
    for (size_t i = 0; i < r->count; i++)
        cell(p, r->names[i]);
    rule(p, r->count + 1, "|---");
    for (size_t key = 0; key < r->runs[0].n_keys; key++) {
        if (!pl_report_differs(r, key))
            continue;
        cell_bytes(p, &r->runs[0].keys[key].name);
        for (size_t i = 0; i < r->count; i++)
            cell_bytes(p, pl_run_files_key(&r->runs[i],
                                           r->runs[0].keys[key].name.text));
        raw(p, "|\n");
    }
    raw(p, "\n");
}

static void write_run(const page *p, const pl_report *r, size_t at,
                      const char *prefix)
{
    const pl_run_files *run = &r->runs[at];
    char name[PL_REPORT_NAME_BYTES];
    raw(p, "## ");
    text_of(p, r->names[at]);
    raw(p, "\n\n");
    write_facts(p, run);
    for (size_t i = 0; i < run->n_warnings; i++) {
        raw(p, "- ");
        bytes_of(p, run->warnings[i].text, run->warnings[i].bytes);
        raw(p, "\n\n");
    }
    write_evals(p, run);
    if (run->has_plan) {
        pl_report_picture_name(r, r->n_charts + at, name);
        picture(p, prefix, name, "What takes what");
    }
    write_plan(p, run);
    write_tasks(p, run);
    write_samples(p, run);
    write_config(p, run);
}

void pl_report_markdown(pl_html_sink *sink, void *context, const pl_report *r,
                        const char *prefix)
{
    const page p = { sink, context };
    raw(&p, PL_SHELL_MARKDOWN "\n\n# ");
    for (size_t i = 0; i < r->count; i++) {
        raw(&p, i ? ", " : "");
        text_of(&p, r->names[i]);
    }
    raw(&p, "\n\n");
    for (size_t i = 0; i < r->n_charts; i++)
        picture(&p, prefix, r->charts[i].name, r->charts[i].chart.title);
    if (r->count > 1)
        write_differences(&p, r);
    for (size_t i = 0; i < r->count; i++)
        write_run(&p, r, i, prefix);
}

/* ---- pictures ---- */

size_t pl_report_pictures(const pl_report *r)
{
    return r->n_charts + r->count;
}

void pl_report_picture_name(const pl_report *r, size_t at,
                            char name[PL_REPORT_NAME_BYTES])
{
    if (at < r->n_charts)
        snprintf(name, PL_REPORT_NAME_BYTES, "%s", r->charts[at].name);
    else if (at == r->n_charts)
        snprintf(name, PL_REPORT_NAME_BYTES, "plan");
    else
        snprintf(name, PL_REPORT_NAME_BYTES, "plan%zu", at - r->n_charts + 1);
}

void pl_report_picture(pl_html *h, const pl_report *r, size_t at)
{
    if (at < r->n_charts)
        pl_svg_draw(h, &r->charts[at].chart, PL_SVG_FILE);
    else
        pl_plan_picture_draw(h, &r->runs[at - r->n_charts].plan, "plan",
                             PL_SVG_FILE);
}
