/* report.c: the page. */
#include "web/report.h"
#include "base/units.h"
#include "web/shell.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void text_of(pl_html *h, const pl_run_text *text)
{
    pl_html_bytes(h, text->text, text->bytes);
}

/* ---- numbers ---- */

static void write_cards(pl_html *h, const pl_run_files *run)
{
    pl_report_fact facts[PL_REPORT_FACTS];
    const size_t count = pl_report_facts(run, facts);
    pl_html_open(h, PL_TAG_ul);
    pl_html_attr(h, PL_ATTR_class, "cards");
    for (size_t i = 0; i < count; i++) {
        pl_html_open(h, PL_TAG_li);
        pl_html_put(h, PL_TAG_b, NULL, facts[i].text);
        pl_html_put(h, PL_TAG_span, NULL, facts[i].name);
        pl_html_close(h);
    }
    pl_html_close(h);
}

static void write_evals(pl_html *h, const pl_run_files *run)
{
    if (run->n_evals == 0)
        return;
    pl_html_open(h, PL_TAG_details);
    pl_html_put(h, PL_TAG_summary, NULL, "The evaluations as a table");
    pl_html_open(h, PL_TAG_table);
    pl_html_open(h, PL_TAG_thead);
    pl_html_open(h, PL_TAG_tr);
    pl_shell_head(h, "col", "number", "iteration");
    pl_shell_head(h, "col", "number", "train loss");
    pl_shell_head(h, "col", "number", "validation loss");
    if (run->has_bpb)
        pl_shell_head(h, "col", "number", "bits per byte");
    pl_html_close(h);
    pl_html_close(h);
    pl_html_open(h, PL_TAG_tbody);
    for (size_t i = 0; i < run->n_evals; i++) {
        const pl_run_eval *e = &run->evals[i];
        char text[PL_REPORT_LOSS_BYTES];
        if (!pl_report_shows_eval(run, i))
            continue;
        pl_html_open(h, PL_TAG_tr);
        pl_html_put(h, PL_TAG_td, "number", pl_units_count(e->step).text);
        pl_report_loss(e->train, e->train_error, text);
        pl_html_put(h, PL_TAG_td, "number", text);
        pl_report_loss(e->val, e->val_error, text);
        pl_html_put(h, PL_TAG_td, "number", text);
        pl_report_loss(e->bpb, (double)NAN, text);
        if (run->has_bpb)
            pl_html_put(h, PL_TAG_td, "number", text);
        pl_html_close(h);
    }
    pl_html_close(h);
    pl_html_close(h);
    pl_html_close(h);
}

static void write_chart(pl_html *h, const pl_report *r, size_t at)
{
    const pl_run_files *run = r->runs;
    pl_html_open(h, PL_TAG_figure);
    pl_svg_draw(h, &r->charts[at].chart, PL_SVG_IN_PAGE);
    if (at == 0 && r->count == 1 && run->bucket_updates > 1) {
        pl_html_open(h, PL_TAG_figcaption);
        pl_html_textf(
            h,
            "Each point of the updates is the mean of %s of them; the "
            "band reaches from the least to the largest. Evaluations "
            "have their standard errors.",
            pl_units_count(run->bucket_updates).text);
        pl_html_close(h);
    } else if (at == 0) {
        pl_html_put(h, PL_TAG_figcaption, NULL,
                    "Evaluations have their standard errors.");
    }
    pl_html_close(h);
}

/* ---- warnings, the plan, samples, the config ---- */

static void write_warnings(pl_html *h, const pl_run_files *run)
{
    for (size_t i = 0; i < run->n_warnings; i++) {
        pl_html_open(h, PL_TAG_p);
        pl_html_attr(h, PL_ATTR_class, "warning");
        text_of(h, &run->warnings[i]);
        pl_html_close(h);
    }
    if (run->all_warnings > run->n_warnings) {
        pl_html_open(h, PL_TAG_p);
        pl_html_textf(h, "There were %s more before these.",
                      pl_units_count(run->all_warnings - run->n_warnings).text);
        pl_html_close(h);
    }
    if (run->lines_lost) {
        pl_html_open(h, PL_TAG_p);
        pl_html_attr(h, PL_ATTR_class, "warning");
        pl_html_textf(h, "%s lines of its files could not be read.",
                      pl_units_count(run->lines_lost).text);
        pl_html_close(h);
    }
}

static void write_plan(pl_html *h, const pl_run_files *run, size_t number)
{
    char id[32];
    if (!run->has_plan)
        return;
    snprintf(id, sizeof id, "plan%zu", number + 1);
    pl_html_put(h, PL_TAG_h3, NULL, "The line: what takes what");
    pl_html_open(h, PL_TAG_figure);
    pl_plan_picture_draw(h, &run->plan, id, PL_SVG_IN_PAGE);
    pl_html_open(h, PL_TAG_figcaption);
    text_of(h, &run->layout);
    pl_html_text(h, "; ");
    text_of(h, &run->device);
    pl_html_close(h);
    pl_html_close(h);
    pl_html_open(h, PL_TAG_details);
    pl_html_put(h, PL_TAG_summary, NULL, "Planned and actual bytes as a table");
    pl_plan_picture_table(h, &run->plan,
                          "Bytes by class, at the peak of each program. Actual "
                          "are those that were in memory when it ran");
    pl_html_close(h);
}

static void write_sample(pl_html *h, const pl_run_sample *sample)
{
    pl_html_open(h, PL_TAG_pre);
    pl_html_open(h, PL_TAG_b);
    text_of(h, &sample->prompt);
    pl_html_close(h);
    text_of(h, &sample->text);
    if (sample->is_cut)
        pl_html_text(h, " ...");
    pl_html_close(h);
}

static void write_tasks(pl_html *h, const pl_run_files *run)
{
    static const char *const heads[] = { "iteration", "items",      "acc",
                                         "acc_norm",  "perplexity", "centred" };
    char text[PL_REPORT_TASK_CELLS][PL_REPORT_LOSS_BYTES];
    if (run->n_tasks == 0)
        return;
    pl_html_put(h, PL_TAG_h3, NULL, "What it answers");
    pl_html_open(h, PL_TAG_table);
    pl_html_open(h, PL_TAG_thead);
    pl_html_open(h, PL_TAG_tr);
    pl_shell_head(h, "col", NULL, "task");
    for (int i = 0; i < PL_REPORT_TASK_CELLS; i++)
        pl_shell_head(h, "col", "number", heads[i]);
    pl_html_close(h);
    pl_html_close(h);
    pl_html_open(h, PL_TAG_tbody);
    for (size_t i = 0; i < run->n_tasks; i++) {
        pl_report_task(&run->tasks[i], text);
        pl_html_open(h, PL_TAG_tr);
        pl_html_open(h, PL_TAG_th);
        pl_html_attr(h, PL_ATTR_scope, "row");
        text_of(h, &run->tasks[i].label);
        pl_html_close(h);
        for (int k = 0; k < PL_REPORT_TASK_CELLS; k++)
            pl_html_put(h, PL_TAG_td, "number", text[k]);
        pl_html_close(h);
    }
    pl_html_close(h);
    pl_html_close(h);
}

/* Those of the newest step open, the others folded. */
static void write_samples(pl_html *h, const pl_run_files *run)
{
    size_t end = run->n_samples;
    if (end == 0)
        return;
    pl_html_put(h, PL_TAG_h3, NULL, "What it writes");
    while (end > 0) {
        const uint64_t step = run->samples[end - 1].step;
        size_t first = end;
        while (first > 0 && run->samples[first - 1].step == step)
            first--;
        pl_html_open(h, PL_TAG_details);
        if (end == run->n_samples)
            pl_html_attr(h, PL_ATTR_open, "open");
        pl_html_open(h, PL_TAG_summary);
        pl_html_textf(h, "iteration %s", pl_units_count(step).text);
        pl_html_close(h);
        for (size_t i = first; i < end; i++)
            write_sample(h, &run->samples[i]);
        pl_html_close(h);
        end = first;
    }
}

static void key_table(pl_html *h, const pl_run_files *run, int were_set)
{
    pl_html_open(h, PL_TAG_table);
    pl_html_attr(h, PL_ATTR_class, "keys");
    pl_html_open(h, PL_TAG_tbody);
    for (size_t i = 0; i < run->n_keys; i++) {
        const pl_run_key *key = &run->keys[i];
        if (pl_report_is_set(key) != were_set)
            continue;
        pl_html_open(h, PL_TAG_tr);
        pl_html_open(h, PL_TAG_th);
        pl_html_attr(h, PL_ATTR_scope, "row");
        text_of(h, &key->name);
        pl_html_close(h);
        pl_html_open(h, PL_TAG_td);
        pl_html_open(h, PL_TAG_code);
        text_of(h, &key->value);
        pl_html_close(h);
        pl_html_close(h);
        pl_html_open(h, PL_TAG_td);
        pl_html_attr(h, PL_ATTR_class, "origin");
        if (were_set)
            text_of(h, &key->from);
        pl_html_close(h);
        pl_html_close(h);
    }
    pl_html_close(h);
    pl_html_close(h);
}

static void write_config(pl_html *h, const pl_run_files *run)
{
    if (run->n_keys == 0)
        return;
    pl_html_put(h, PL_TAG_h3, NULL, "The config");
    key_table(h, run, 1);
    pl_html_open(h, PL_TAG_details);
    pl_html_put(h, PL_TAG_summary, NULL, "Keys that have their default");
    key_table(h, run, 0);
    pl_html_close(h);
    pl_html_put(h, PL_TAG_h3, NULL, "To repeat it");
    pl_html_open(h, PL_TAG_pre);
    pl_html_text(h, "plimsoll train");
    for (size_t i = 0; i < run->n_keys; i++) {
        char text[2600];
        if (pl_report_argument(run, i, text, sizeof text)) {
            pl_html_text(h, " \\\n    ");
            pl_html_text(h, text);
        }
    }
    pl_html_close(h);
}

/* ---- several runs ---- */

/* A validation loss, and bits per byte of the same evaluation if any run has
 * such. */
static void eval_cells(pl_html *h, const pl_run_files *run,
                       const pl_run_eval *eval, int has_bpb)
{
    char text[PL_REPORT_LOSS_BYTES] = "-";
    if (run->has_eval)
        pl_report_loss(eval->val, eval->val_error, text);
    pl_html_put(h, PL_TAG_td, "number", text);
    if (!has_bpb)
        return;
    pl_report_loss(run->has_eval ? eval->bpb : (double)NAN, (double)NAN, text);
    pl_html_put(h, PL_TAG_td, "number", text);
}

static void results_row(pl_html *h, const pl_report *r, size_t at, int has_bpb)
{
    const pl_run_files *run = &r->runs[at];
    const double ms = pl_run_mean(&run->step_ms);
    char text[PL_REPORT_LOSS_BYTES];
    pl_html_open(h, PL_TAG_tr);
    pl_html_open(h, PL_TAG_th);
    pl_html_attr(h, PL_ATTR_scope, "row");
    pl_html_open(h, PL_TAG_a);
    snprintf(text, sizeof text, "run%zu", at + 1);
    pl_html_link(h, text);
    pl_html_text(h, r->names[at]);
    pl_html_close(h);
    pl_html_close(h);
    pl_html_put(h, PL_TAG_td, "number", pl_units_count(run->next_step).text);
    eval_cells(h, run, &run->best, has_bpb);
    eval_cells(h, run, &run->last, has_bpb);
    pl_html_put(
        h, PL_TAG_td, "number",
        run->update_tokens && ms > 0.0
            ? pl_units_count((uint64_t)(1e3 * (double)run->update_tokens / ms))
                  .text
            : "-");
    pl_html_close(h);
}

static void write_results(pl_html *h, const pl_report *r)
{
    static const struct {
        const char *text;
        int is_bpb;
    } heads[] = {
        { "iterations", 0 },
        { "best validation loss", 0 },
        { "bits per byte of the best", 1 },
        { "last validation loss", 0 },
        { "bits per byte of the last", 1 },
        { "tokens/s", 0 },
    };
    int has_bpb = 0;
    for (size_t i = 0; i < r->count; i++)
        has_bpb |= r->runs[i].has_bpb;
    pl_html_open(h, PL_TAG_table);
    pl_html_open(h, PL_TAG_thead);
    pl_html_open(h, PL_TAG_tr);
    pl_shell_head(h, "col", NULL, "run");
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        if (has_bpb || !heads[i].is_bpb)
            pl_shell_head(h, "col", "number", heads[i].text);
    pl_html_close(h);
    pl_html_close(h);
    pl_html_open(h, PL_TAG_tbody);
    for (size_t i = 0; i < r->count; i++)
        results_row(h, r, i, has_bpb);
    pl_html_close(h);
    pl_html_close(h);
}

static void difference_row(pl_html *h, const pl_report *r, size_t key)
{
    const pl_run_key *first = &r->runs[0].keys[key];
    pl_html_open(h, PL_TAG_tr);
    pl_html_open(h, PL_TAG_th);
    pl_html_attr(h, PL_ATTR_scope, "row");
    text_of(h, &first->name);
    pl_html_close(h);
    for (size_t i = 0; i < r->count; i++) {
        const pl_run_text *value = pl_run_files_key(&r->runs[i],
                                                    first->name.text);
        pl_html_open(h, PL_TAG_td);
        pl_html_open(h, PL_TAG_code);
        if (value)
            text_of(h, value);
        pl_html_close(h);
        pl_html_close(h);
    }
    pl_html_close(h);
}

static void write_differences(pl_html *h, const pl_report *r)
{
    int any = 0;
    pl_html_open(h, PL_TAG_table);
    pl_html_open(h, PL_TAG_thead);
    pl_html_open(h, PL_TAG_tr);
    pl_shell_head(h, "col", NULL, "key");
    for (size_t i = 0; i < r->count; i++)
        pl_shell_head(h, "col", NULL, r->names[i]);
    pl_html_close(h);
    pl_html_close(h);
    pl_html_open(h, PL_TAG_tbody);
    for (size_t key = 0; key < r->runs[0].n_keys; key++)
        if (pl_report_differs(r, key)) {
            difference_row(h, r, key);
            any = 1;
        }
    pl_html_close(h);
    pl_html_close(h);
    if (!any)
        pl_html_put(h, PL_TAG_p, NULL, "They have the same keys.");
}

/* ---- the page ---- */

static void write_run(pl_html *h, const pl_report *r, size_t at)
{
    const pl_run_files *run = &r->runs[at];
    char id[32];
    snprintf(id, sizeof id, "run%zu", at + 1);
    if (r->count > 1) {
        pl_shell_section(h, id, r->names[at]);
        write_cards(h, run);
        write_warnings(h, run);
        write_evals(h, run);
    }
    write_plan(h, run, at);
    write_tasks(h, run);
    write_samples(h, run);
    write_config(h, run);
    if (r->count > 1)
        pl_html_close(h);
}

void pl_report_write(pl_html *h, const pl_report *r)
{
    char title[64];
    snprintf(title, sizeof title, "%zu runs", r->count);
    if (r->count > 1) {
        pl_shell_begin(h, title, NULL);
        write_results(h, r);
    } else {
        pl_shell_begin(h, r->names[0], r->runs->folder);
        write_cards(h, r->runs);
        write_warnings(h, r->runs);
    }
    for (size_t i = 0; i < r->n_charts; i++) {
        write_chart(h, r, i);
        if (i == 0 && r->count == 1)
            write_evals(h, r->runs);
    }
    if (r->count > 1) {
        pl_shell_section(h, "keys", "Keys in which they differ");
        write_differences(h, r);
        pl_html_close(h);
    }
    for (size_t i = 0; i < r->count; i++)
        write_run(h, r, i);
    pl_shell_end(h);
}
