/* plan_page.c: see plan_page.h. */
#include "web/plan_page.h"
#include "web/shell.h"

#include <stdio.h>
#include <string.h>

/* ---- the picture ---- */

static int has_program(const pl_gpt *gpt, int program)
{
    return gpt->graph.programs[program].n_steps > 0;
}

/* "12 layers, 12 heads, 576 channels, context 1,024: 77.36 M parameters" */
static void describe_model(const pl_shape *s, char *text, size_t capacity)
{
    snprintf(text, capacity,
             "%zu layers, %zu heads, %zu channels, context %s: %.2f M "
             "parameters",
             s->L, s->H, s->C, pl_units_count(s->T).text,
             (double)pl_param_count(s) / 1e6);
}

static void add_classes(pl_plan_picture *p, const pl_gpt *gpt,
                        const size_t at[PL_PROGRAM_COUNT])
{
    const pl_placement *place = &gpt->placement;
    size_t rest[PL_PROGRAM_COUNT];
    for (int i = 0; i < PL_PROGRAM_COUNT; i++)
        rest[i] = pl_placement_peak(place, (pl_program_id)i);
    for (int class = 0; class < PL_CLASS_COUNT; class ++) {
        const size_t part = pl_plan_picture_part(
            p, pl_class_name((pl_class) class));
        for (int i = 0; i < PL_PROGRAM_COUNT; i++) {
            rest[i] -= place->class_bytes[i][class];
            if (has_program(gpt, i))
                p->bytes[at[i]][part] = place->class_bytes[i][class];
        }
    }
    const size_t gaps = pl_plan_picture_part(p, "gaps, alignment");
    for (int i = 0; i < PL_PROGRAM_COUNT; i++)
        if (has_program(gpt, i))
            p->bytes[at[i]][gaps] = rest[i];
}

pl_plan_picture pl_plan_page_picture(const pl_plan_page *page)
{
    const pl_run_plan *run = page->run;
    const pl_gpt *gpt = &run->gpt;
    pl_plan_picture p = { .n_rows = 0 };
    size_t at[PL_PROGRAM_COUNT] = { 0 };
    for (int i = 0; i < PL_PROGRAM_COUNT; i++)
        if (has_program(gpt, i))
            at[i] = pl_plan_picture_row(&p, pl_program_name((pl_program_id)i));
    add_classes(&p, gpt, at);
    if (!run->host_bytes) { /* the host's memory holds these, too */
        const size_t reserve = pl_plan_picture_part(&p, "reserve"),
                     files = pl_plan_picture_part(&p, "files in memory");
        for (size_t i = 0; i < p.n_rows; i++) {
            p.bytes[i][reserve] = run->reserve_bytes;
            p.bytes[i][files] = run->files.bytes;
        }
    }
    snprintf(p.title, sizeof p.title, "%s of memory",
             pl_units_bytes(run->total_bytes).text);
    describe_model(&gpt->shape, p.subtitle, sizeof p.subtitle);
    if (page->machine->budget_bytes != SIZE_MAX)
        p.line_bytes = page->machine->budget_bytes;
    snprintf(p.line_name.text, sizeof p.line_name.text, "the line:");
    return p;
}

/* ---- the page ---- */

static void write_verdict(pl_html *h, const pl_plan_page *page)
{
    const size_t total = page->run->total_bytes,
                 budget = page->machine->budget_bytes;
    pl_html_open(h, PL_TAG_p);
    pl_html_attr(h, PL_ATTR_class,
                 page->run->fits ? "verdict good" : "verdict bad");
    if (budget == SIZE_MAX)
        pl_html_textf(h, "There is no budget: %s.", page->machine->budget_from);
    else if (page->run->fits)
        pl_html_textf(h, "It fits: %s to spare of %s (%s).",
                      pl_units_bytes(budget - total).text,
                      pl_units_bytes(budget).text, page->machine->budget_from);
    else if (total > budget)
        pl_html_textf(h, "It doesn't fit: %s are missing of %s (%s).",
                      pl_units_bytes(total - budget).text,
                      pl_units_bytes(budget).text, page->machine->budget_from);
    else
        pl_html_textf(h, "It doesn't fit: the host has %s.",
                      pl_units_bytes(page->machine->host_budget_bytes).text);
    pl_html_close(h);
}

static void write_numbers(pl_html *h, const pl_plan_page *page)
{
    const pl_run_plan *run = page->run;
    const pl_gpt *gpt = &run->gpt;
    char text[320], layout[160];
    pl_html_open(h, PL_TAG_table);
    pl_html_open(h, PL_TAG_tbody);
    snprintf(text, sizeof text, "%zu (%s)", gpt->shape.V, page->vocab_from);
    pl_shell_row(h, "vocabulary", text);
    pl_shell_row(h, "arena", pl_units_exact(gpt->placement.arena_bytes).text);
    pl_shell_row(h, "no placement needs less than",
                 pl_units_exact(gpt->placement.lower_bound_bytes).text);
    pl_shell_row(h, "reserve", pl_units_exact(run->reserve_bytes).text);
    pl_shell_row(h, "total", pl_units_exact(run->total_bytes).text);
    pl_run_plan_layout_text(&gpt->layout, gpt->shape.L, layout, sizeof layout);
    pl_shell_row(h, "layout", layout);
    pl_shell_row(h, "device", gpt->layout.device.text);
    pl_shell_row(h, "dtype", pl_config_word(page->config, PL_KEY_dtype));
    snprintf(text, sizeof text, "%s, predicted",
             pl_units_duration(run->update_seconds).text);
    pl_shell_row(h, "one update", text);
    pl_html_close(h);
    pl_html_close(h);
}

static const char *effect_text(pl_effect effect)
{
    return effect == PL_EFFECT_SAME         ? "same result, to the bit"
           : effect == PL_EFFECT_EVALUATION ? "another evaluation"
                                            : "another run";
}

static void percent_cell(pl_html *h, double change)
{
    char text[32];
    snprintf(text, sizeof text, "%+.1f %%", 100.0 * change);
    pl_html_put(h, PL_TAG_td, "number", text);
}

static void write_fixes(pl_html *h, const pl_plan_page *page)
{
    static const char *const heads[] = { "setting", "saves", "update",
                                         "evaluation", "what it is" };
    pl_html_open(h, PL_TAG_table);
    pl_html_open(h, PL_TAG_thead);
    pl_html_open(h, PL_TAG_tr);
    for (int i = 0; i < 5; i++)
        pl_shell_head(h, "col", i > 0 && i < 4 ? "number" : NULL, heads[i]);
    pl_html_close(h);
    pl_html_close(h);
    pl_html_open(h, PL_TAG_tbody);
    for (size_t i = 0; i < page->n_fixes; i++) {
        const pl_saving *fix = &page->fixes[i];
        const uint64_t size = (uint64_t)(fix->saved_bytes < 0
                                             ? -fix->saved_bytes
                                             : fix->saved_bytes);
        char saves[PL_UNITS_TEXT_BYTES + 1];
        snprintf(saves, sizeof saves, "%s%s", fix->saved_bytes < 0 ? "-" : "",
                 size ? pl_units_bytes(size).text : "0");
        pl_html_open(h, PL_TAG_tr);
        pl_shell_head(h, "row", NULL, fix->setting);
        pl_html_put(h, PL_TAG_td, "number", saves);
        percent_cell(h, fix->update_change);
        percent_cell(h, fix->eval_change);
        pl_html_put(h, PL_TAG_td, NULL, effect_text(fix->effect));
        pl_html_close(h);
    }
    pl_html_close(h);
    pl_html_close(h);
}

static void write_changes(pl_html *h, const pl_plan_page *page)
{
    pl_html_open(h, PL_TAG_table);
    pl_html_open(h, PL_TAG_tbody);
    for (size_t i = 0; i < page->n_changes; i++) {
        const pl_remedy *change = &page->changes[i];
        pl_html_open(h, PL_TAG_tr);
        pl_shell_head(h, "row", NULL, change->settings);
        pl_html_put(h, PL_TAG_td, "number",
                    pl_units_bytes(change->total_bytes).text);
        percent_cell(h, change->update_change);
        pl_html_open(h, PL_TAG_td);
        pl_html_textf(h, "%.2f M parameters", (double)change->parameters / 1e6);
        pl_html_close(h);
        pl_html_close(h);
    }
    pl_html_close(h);
    pl_html_close(h);
}

void pl_plan_page_write(pl_html *h, const pl_plan_page *page)
{
    const pl_plan_picture picture = pl_plan_page_picture(page);
    pl_shell_begin(h, "What takes what", picture.subtitle);
    write_verdict(h, page);
    pl_html_open(h, PL_TAG_figure);
    pl_plan_picture_draw(h, &picture, "plan", PL_SVG_IN_PAGE);
    pl_html_close(h);
    pl_plan_picture_table(h, &picture,
                          "Bytes by class, at the peak of each program");
    pl_shell_section(h, "numbers", "The plan");
    write_numbers(h, page);
    pl_html_close(h);
    if (page->n_changes) {
        pl_shell_section(h, "fits", "What would fit");
        write_changes(h, page);
        pl_html_close(h);
    }
    if (page->n_fixes) {
        pl_shell_section(h, "changes", "What would change it");
        write_fixes(h, page);
        pl_html_close(h);
    }
    pl_shell_section(h, "config", "The config");
    pl_shell_config(h, page->config, PL_FOR_TRAIN | PL_FOR_PLAN);
    pl_html_close(h);
    pl_shell_end(h);
}
