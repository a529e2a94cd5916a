/* plan_picture.c: see plan_picture.h. */
#include "web/plan_picture.h"
#include "base/units.h"

#include <stdio.h>
#include <string.h>

/* ---- what there is ---- */

static void name_it(pl_picture_name *to, const char *name)
{
    snprintf(to->text, sizeof to->text, "%s", name);
}

size_t pl_plan_picture_row(pl_plan_picture *p, const char *name)
{
    if (p->n_rows < PL_PICTURE_ROWS)
        name_it(&p->rows[p->n_rows++], name);
    return p->n_rows - 1;
}

size_t pl_plan_picture_part(pl_plan_picture *p, const char *name)
{
    if (p->n_parts < PL_PICTURE_PARTS)
        name_it(&p->parts[p->n_parts++], name);
    return p->n_parts - 1;
}

size_t pl_plan_picture_find(pl_plan_picture *p, const char *name)
{
    for (size_t i = 0; i < p->n_parts; i++)
        if (strcmp(p->parts[i].text, name) == 0)
            return i;
    return pl_plan_picture_part(p, name);
}

static uint64_t sum_of(const uint64_t *bytes, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += bytes[i];
    return sum;
}

uint64_t pl_plan_picture_sum(const pl_plan_picture *p, size_t row)
{
    return sum_of(p->bytes[row], p->n_parts);
}

/* ---- columns ---- */

static int has_actual(const pl_plan_picture *p)
{
    for (size_t i = 0; i < p->n_rows; i++)
        if (p->has_actual[i])
            return 1;
    return 0;
}

size_t pl_plan_picture_columns(const pl_plan_picture *p)
{
    return has_actual(p) ? 2 * p->n_rows : p->n_rows;
}

pl_picture_cell pl_plan_picture_head(const pl_plan_picture *p, size_t column)
{
    const int both = has_actual(p);
    pl_picture_cell cell;
    snprintf(cell.text, sizeof cell.text, "%s%s",
             p->rows[both ? column / 2 : column].text,
             !both        ? ""
             : column % 2 ? ", actual"
                          : ", planned");
    return cell;
}

pl_picture_cell pl_plan_picture_cell(const pl_plan_picture *p, size_t part,
                                     size_t column)
{
    const int both = has_actual(p);
    const size_t row = both ? column / 2 : column;
    const uint64_t *list = both && column % 2 ? p->actual[row] : p->bytes[row],
                   bytes = part < p->n_parts ? list[part]
                                             : sum_of(list, p->n_parts);
    pl_picture_cell cell = { "-" };
    if (bytes)
        snprintf(cell.text, sizeof cell.text, "%s", pl_units_bytes(bytes).text);
    return cell;
}

int pl_plan_picture_has(const pl_plan_picture *p, size_t part)
{
    for (size_t i = 0; i < p->n_rows; i++)
        if (p->bytes[i][part] || p->actual[i][part])
            return 1;
    return 0;
}

/* ---- bars ---- */

/* The same thing has the same colour in every picture; what isn't known gets
 * one by its place. */
static int color_of(const pl_plan_picture *p, size_t part)
{
    static const struct {
        const char *name;
        int color;
    } known[] = {
        { "weights", 0 },           { "working copy", 5 },
        { "gradients", 1 },         { "moments", 2 },
        { "outer state", 6 },       { "control", 7 },
        { "packing", 7 },           { "saved activations", 3 },
        { "transient", 4 },         { "tokens", 6 },
        { "kv cache", 6 },          { "gaps, alignment", 8 },
        { "reserve", 8 },           { "other", 7 },
        { "all of Plimsoll", 0 },   { "16-bit copies of weights", 5 },
        { "allocator's slack", 8 }, { "CUDA context", 6 },
        { "Python, PyTorch", 7 },   { "files in memory", 7 },
        { "AdamW moments", 2 },     { "logits and their copies", 4 },
        { "attention scores", 6 },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(p->parts[part].text, known[i].name) == 0)
            return known[i].color;
    return (int)(part % PL_SVG_COLORS);
}

/* The picture in words, for those who can't see it. */
static void describe(const pl_plan_picture *p, char *text, size_t capacity)
{
    size_t used = 0;
    for (size_t i = 0; i < p->n_rows && used < capacity; i++)
        used += (size_t)snprintf(
            text + used, capacity - used, "%s%s %s", i ? ", " : "",
            p->rows[i].text, pl_units_bytes(pl_plan_picture_sum(p, i)).text);
    if (p->line_bytes && used < capacity)
        snprintf(text + used, capacity - used, "; %s %s", p->line_name.text,
                 pl_units_bytes(p->line_bytes).text);
}

/* What would be too narrow to be seen in every bar is drawn together, as
 * "other"; the table has it apart. */
static pl_plan_picture simplified(const pl_plan_picture *p)
{
    enum { NARROW = 400 }; /* of the longest bar: a part in so many */
    pl_plan_picture out = *p;
    uint64_t most = p->line_bytes;
    size_t n = 0, other = PL_PICTURE_PARTS;
    for (size_t row = 0; row < p->n_rows; row++)
        if (pl_plan_picture_sum(p, row) > most)
            most = pl_plan_picture_sum(p, row);
    memset(out.bytes, 0, sizeof out.bytes);
    for (size_t i = 0; i < p->n_parts; i++) {
        uint64_t widest = 0;
        for (size_t row = 0; row < p->n_rows; row++)
            if (p->bytes[row][i] > widest)
                widest = p->bytes[row][i];
        const int narrow = widest < most / NARROW;
        if (widest == 0)
            continue;
        const size_t to = !narrow                     ? n++
                          : other == PL_PICTURE_PARTS ? (other = n++)
                                                      : other;
        name_it(&out.parts[to], narrow ? "other" : p->parts[i].text);
        for (size_t row = 0; row < p->n_rows; row++)
            out.bytes[row][to] += p->bytes[row][i];
    }
    out.n_parts = n;
    return out;
}

void pl_plan_picture_draw(pl_html *h, const pl_plan_picture *whole,
                          const char *id, pl_svg_use use)
{
    const pl_plan_picture drawn = simplified(whole), *p = &drawn;
    const char *rows[PL_PICTURE_ROWS];
    pl_svg_part parts[PL_PICTURE_PARTS];
    uint64_t bytes[PL_PICTURE_ROWS * PL_PICTURE_PARTS];
    char text[512] = "";
    for (size_t i = 0; i < p->n_parts; i++)
        parts[i] = (pl_svg_part){ p->parts[i].text, color_of(p, i) };
    for (size_t i = 0; i < p->n_rows; i++) {
        rows[i] = p->rows[i].text;
        for (size_t k = 0; k < p->n_parts; k++)
            bytes[i * p->n_parts + k] = p->bytes[i][k];
    }
    describe(p, text, sizeof text);
    const pl_svg_bars bars = {
        .id = id,
        .title = p->title,
        .text = text,
        .subtitle = p->subtitle[0] ? p->subtitle : NULL,
        .rows = rows,
        .n_rows = p->n_rows,
        .parts = parts,
        .n_parts = p->n_parts,
        .bytes = bytes,
        .line_bytes = p->line_bytes,
        .line_name = p->line_name.text,
    };
    pl_svg_stack(h, &bars, use);
}

/* ---- the table ---- */

static void head_cell(pl_html *h, const char *scope, const char *text)
{
    pl_html_open(h, PL_TAG_th);
    pl_html_attr(h, PL_ATTR_scope, scope);
    if (strcmp(scope, "col") == 0)
        pl_html_attr(h, PL_ATTR_class, "number");
    pl_html_text(h, text);
    pl_html_close(h);
}

static void table_row(pl_html *h, const pl_plan_picture *p, size_t part,
                      const char *name)
{
    pl_html_open(h, PL_TAG_tr);
    if (part == p->n_parts)
        pl_html_attr(h, PL_ATTR_class, "total");
    head_cell(h, "row", name);
    for (size_t i = 0; i < pl_plan_picture_columns(p); i++)
        pl_html_put(h, PL_TAG_td, "number",
                    pl_plan_picture_cell(p, part, i).text);
    pl_html_close(h);
}

void pl_plan_picture_table(pl_html *h, const pl_plan_picture *p,
                           const char *caption)
{
    pl_html_open(h, PL_TAG_table);
    pl_html_put(h, PL_TAG_caption, NULL, caption);
    pl_html_open(h, PL_TAG_thead);
    pl_html_open(h, PL_TAG_tr);
    pl_html_put(h, PL_TAG_td, NULL, NULL);
    for (size_t i = 0; i < pl_plan_picture_columns(p); i++)
        head_cell(h, "col", pl_plan_picture_head(p, i).text);
    pl_html_close(h);
    pl_html_close(h);
    pl_html_open(h, PL_TAG_tbody);
    for (size_t i = 0; i < p->n_parts; i++)
        if (pl_plan_picture_has(p, i))
            table_row(h, p, i, p->parts[i].text);
    table_row(h, p, p->n_parts, "sum");
    pl_html_close(h);
    pl_html_close(h);
}
