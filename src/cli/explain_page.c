/* explain_page.c: an explanation of nanoGPT's memory as a page with a picture,
 * to be posted where people ask for help. */
#include "base/units.h"
#include "cli/explain_view.h"
#include "web/plan_picture.h"
#include "web/shell.h"

#include <stdio.h>
#include <string.h>

static int on_cuda(const pl_explain *e)
{
    return e->job.device == PL_TORCH_CUDA;
}

/* ---- the picture ---- */

/* What bars tell: the copies of logits are one thing there. The table has each
 * item. */
typedef enum detail { FOR_BARS, FOR_TABLE } detail;

static const char *part_name(pl_item item, detail how)
{
    static const char *const groups[PL_ITEM_COUNT] = {
        [PL_ITEM_SCORES] = "attention scores",
        [PL_ITEM_LOGITS] = "logits and their copies",
        [PL_ITEM_KEPT] = "logits and their copies",
        [PL_ITEM_LOGPROBS] = "logits and their copies",
        [PL_ITEM_LOGPROBS32] = "logits and their copies",
        [PL_ITEM_DLOGPROBS] = "logits and their copies",
        [PL_ITEM_DLOGITS] = "logits and their copies",
        [PL_ITEM_MASKS] = "other",
        [PL_ITEM_TEMPORARY] = "other",
        [PL_ITEM_DWEIGHTS] = "other",
        [PL_ITEM_OPTIMIZER] = "other",
        [PL_ITEM_TOKENS] = "other",
    };
    return how == FOR_BARS && groups[item] ? groups[item] : pl_item_name(item);
}

static void add_items(pl_plan_picture *p, const pl_explain *e, detail how)
{
    for (int item = 0; item < PL_ITEM_COUNT; item++) {
        const char *name = part_name((pl_item)item, how);
        size_t part = 0;
        while (part < p->n_parts && strcmp(p->parts[part].text, name) != 0)
            part++;
        if (part == p->n_parts)
            part = pl_plan_picture_part(p, name);
        for (int i = 0; i < PL_EXPLAIN_COLUMNS; i++)
            p->bytes[i][part] += pl_explain_column(&e->result, i)->items[item];
    }
}

static void add_rest(pl_plan_picture *p, const pl_explain *e)
{
    const size_t slack = pl_plan_picture_part(p, "allocator's slack"),
                 context = pl_plan_picture_part(
                     p, on_cuda(e) ? "CUDA context" : "Python, PyTorch");
    for (int i = 0; i < PL_EXPLAIN_COLUMNS; i++) {
        const size_t live = pl_explain_column(&e->result, i)->live_bytes,
                     need = pl_explain_column_bytes(e->need_bytes, i);
        p->bytes[i][slack] = need > live ? need - live : 0;
        p->bytes[i][context] = e->context_bytes;
    }
}

static pl_plan_picture make_picture(const pl_explain *e, detail how)
{
    const pl_nanogpt_job *j = &e->job;
    pl_plan_picture p = { .n_rows = 0 };
    for (int i = 0; i < PL_EXPLAIN_COLUMNS; i++)
        pl_plan_picture_row(&p, pl_explain_columns[i]);
    const size_t own = pl_plan_picture_row(&p, "Plimsoll");
    add_items(&p, e, how);
    add_rest(&p, e);
    p.bytes[own][pl_plan_picture_part(&p, "all of Plimsoll")] = e->own_bytes;
    snprintf(p.title, sizeof p.title, "nanoGPT on PyTorch, %s",
             !on_cuda(e)                    ? "CPU"
             : j->dtype == PL_TORCH_FLOAT32 ? "float32"
             : j->dtype == PL_TORCH_FLOAT16 ? "float16"
                                            : "bfloat16");
    snprintf(p.subtitle, sizeof p.subtitle,
             "%.2f M parameters, %zu x %zu tokens at once",
             (double)e->result.parameters / 1e6, j->B, j->T);
    p.line_bytes = e->memory_bytes;
    snprintf(p.line_name.text, sizeof p.line_name.text,
             "%s:", e->card ? e->card->name : "the line");
    return p;
}

void pl_explain_write_picture(pl_html *h, const pl_explain *e)
{
    const pl_plan_picture picture = make_picture(e, FOR_BARS);
    pl_plan_picture_draw(h, &picture, "explain", PL_SVG_FILE);
}

/* ---- the page ---- */

static void write_verdict(pl_html *h, const pl_explain *e)
{
    const pl_tape_failure *f = pl_nanogpt_failure(&e->result);
    if (e->memory_bytes) {
        pl_html_open(h, PL_TAG_p);
        pl_html_attr(h, PL_ATTR_class, f ? "verdict bad" : "verdict good");
        if (f)
            pl_html_textf(h, "nanoGPT runs out of memory %s.",
                          pl_explain_phase(f->phase));
        else
            pl_html_text(h, "nanoGPT fits: training and evaluation, in eager "
                            "mode.");
        pl_html_close(h);
    }
    if (e->memory_bytes && f) {
        pl_html_open(h, PL_TAG_p);
        pl_html_textf(h, "It asks for %s (%s) beside %s of live tensors, at ",
                      pl_units_bytes(f->wanted_bytes).text, f->name,
                      pl_units_bytes(f->live_bytes).text);
        pl_html_put(h, PL_TAG_code, NULL, f->line);
        pl_html_close(h);
    }
    pl_html_open(h, PL_TAG_p);
    pl_html_textf(h,
                  "Plimsoll trains and evaluates the same model, float32 and "
                  "exact AdamW, in %s; at the least in %s.",
                  pl_units_bytes(e->own_bytes).text,
                  pl_units_bytes(e->own_least).text);
    pl_html_close(h);
}

static void head_row(pl_html *h, const char *first, const char *last)
{
    pl_html_open(h, PL_TAG_thead);
    pl_html_open(h, PL_TAG_tr);
    pl_shell_head(h, "col", NULL, first);
    for (int i = 0; i < PL_EXPLAIN_COLUMNS; i++)
        pl_shell_head(h, "col", "number", pl_explain_columns[i]);
    if (last)
        pl_shell_head(h, "col", NULL, last);
    pl_html_close(h);
    pl_html_close(h);
}

static const char *fits_text(const pl_explain *e, int fits)
{
    return !e->memory_bytes ? "" : fits ? "fits" : "does not fit";
}

static void write_ways(pl_html *h, const pl_explain *e)
{
    pl_html_open(h, PL_TAG_table);
    head_row(h, "live tensors, if run", "");
    pl_html_open(h, PL_TAG_tbody);
    for (size_t w = 0; w < e->way_count; w++) {
        const pl_explain_way *way = &e->ways[w];
        pl_html_open(h, PL_TAG_tr);
        pl_shell_head(h, "row", NULL, way->name);
        for (int i = 0; i < PL_EXPLAIN_COLUMNS; i++)
            pl_html_put(
                h, PL_TAG_td, "number",
                pl_units_bytes(pl_explain_column(&way->result, i)->live_bytes)
                    .text);
        pl_html_put(h, PL_TAG_td, NULL,
                    fits_text(e, pl_nanogpt_failure(&way->result) == NULL));
        pl_html_close(h);
    }
    pl_html_close(h);
    pl_html_close(h);
}

static void write_advice(pl_html *h, const pl_explain *e)
{
    pl_html_open(h, PL_TAG_table);
    head_row(h, "live tensors, with", "what it is");
    pl_html_open(h, PL_TAG_tbody);
    for (size_t i = 0; i < e->advice.count; i++) {
        const pl_advice *row = &e->advice.rows[i];
        const size_t bytes[] = { row->train_bytes, row->eval_first_bytes,
                                 row->eval_later_bytes };
        pl_html_open(h, PL_TAG_tr);
        pl_shell_head(h, "row", NULL, row->name);
        for (int k = 0; k < PL_EXPLAIN_COLUMNS; k++)
            pl_html_put(h, PL_TAG_td, "number", pl_units_bytes(bytes[k]).text);
        pl_html_open(h, PL_TAG_td);
        if (e->memory_bytes)
            pl_html_textf(h, "%s; ", fits_text(e, row->fits));
        pl_html_text(h, row->note);
        pl_html_close(h);
        pl_html_close(h);
    }
    pl_html_close(h);
    pl_html_close(h);
}

void pl_explain_write_page(pl_html *h, const pl_explain *e)
{
    const pl_plan_picture picture = make_picture(e, FOR_BARS),
                          items = make_picture(e, FOR_TABLE);
    char under[256];
    snprintf(under, sizeof under,
             "%zu layers, %zu heads, %zu channels, context %zu, vocabulary "
             "%zu: %s parameters",
             e->job.L, e->heads, e->job.C, e->job.T, e->job.V,
             pl_units_count(e->result.parameters).text);
    pl_shell_begin(h, "What nanoGPT needs", under);
    write_verdict(h, e);
    pl_html_open(h, PL_TAG_figure);
    pl_plan_picture_draw(h, &picture, "explain", PL_SVG_IN_PAGE);
    pl_html_close(h);
    pl_plan_picture_table(h, &items, "Bytes at the peak, in eager mode");
    pl_shell_section(h, "ways", "Run in other ways");
    write_ways(h, e);
    pl_html_close(h);
    pl_shell_section(h, "advice", "What the usual advice buys");
    write_advice(h, e);
    pl_html_close(h);
    pl_shell_section(h, "config", "The config");
    pl_shell_config(h, e->config, PL_FOR_TRAIN | PL_FOR_EXPLAIN);
    pl_html_close(h);
    pl_shell_end(h);
}
