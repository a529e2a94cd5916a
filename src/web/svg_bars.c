/* svg_bars.c: stacked bars of bytes, and the line that they must not cross. */
#include "base/units.h"
#include "web/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* In pixels. */
enum {
    WIDTH = 760,
    LEFT = 90,
    RIGHT = 96, /* the sum stands there */
    HEAD = 62,
    ROW = 34,
    BAR = 24,
    AXIS = 34,
    LEGEND_ROW = 22,
    MARGIN = 16,
};

typedef struct sheet {
    const pl_svg_bars *bars;
    double most;   /* bytes at the right end of the axis */
    double bottom; /* of the bars */
} sheet;

static uint64_t sum_of(const pl_svg_bars *b, size_t row)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < b->n_parts; i++)
        sum += b->bytes[row * b->n_parts + i];
    return sum;
}

static int is_used(const pl_svg_bars *b, size_t part)
{
    for (size_t row = 0; row < b->n_rows; row++)
        if (b->bytes[row * b->n_parts + part] > 0)
            return 1;
    return 0;
}

static double x_of(const sheet *s, double bytes)
{
    return LEFT + bytes / s->most * (WIDTH - LEFT - RIGHT);
}

static void rect(pl_html *h, double x, double y, double width, double height,
                 const char *class)
{
    pl_html_open(h, PL_TAG_rect);
    pl_html_attrf(h, PL_ATTR_x, "%.1f", x);
    pl_html_attrf(h, PL_ATTR_y, "%.1f", y);
    pl_html_attrf(h, PL_ATTR_width, "%.1f", width);
    pl_html_attrf(h, PL_ATTR_height, "%.1f", height);
    pl_html_attr(h, PL_ATTR_class, class);
}

static void draw_axis(pl_html *h, const sheet *s)
{
    const pl_svg_ticks ticks = pl_svg_ticks_make(0.0, s->most, 6);
    for (int i = 0; i < ticks.count; i++) {
        char text[PL_SVG_LABEL_BYTES];
        const double x = x_of(s, i * ticks.step);
        pl_html_open(h, PL_TAG_line);
        pl_html_attrf(h, PL_ATTR_x1, "%.1f", x);
        pl_html_attrf(h, PL_ATTR_y1, "%d", HEAD - 4);
        pl_html_attrf(h, PL_ATTR_x2, "%.1f", x);
        pl_html_attrf(h, PL_ATTR_y2, "%.1f", s->bottom);
        pl_html_attr(h, PL_ATTR_class, i ? "grid" : "axis");
        pl_html_close(h);
        pl_svg_label(i * ticks.step, ticks.step, PL_SVG_BYTES, text);
        pl_svg_text(h, x, s->bottom + 17, "middle", "tick", text);
    }
}

/* Each with a title of its own, which a browser shows under the pointer, and
 * with its bytes where they have room. */
static void draw_part(pl_html *h, const sheet *s, size_t row, size_t part,
                      double from)
{
    const pl_svg_bars *b = s->bars;
    const uint64_t bytes = b->bytes[row * b->n_parts + part];
    const pl_units_text text = pl_units_bytes(bytes);
    const double x = x_of(s, from), y = HEAD + (double)row * ROW;
    const double width = x_of(s, from + (double)bytes) - x;
    char class[24];
    snprintf(class, sizeof class, "part f%d", b->parts[part].color);
    pl_html_open(h, PL_TAG_g);
    pl_html_open(h, PL_TAG_title);
    pl_html_textf(h, "%s, %s: %s", b->rows[row], b->parts[part].name,
                  text.text);
    pl_html_close(h);
    rect(h, x, y, width, BAR, class);
    pl_html_close(h);
    if (width > pl_svg_width(text.text) + 8)
        pl_svg_text(h, x + width / 2, y + BAR / 2 + 4, "middle", "inside",
                    text.text);
    pl_html_close(h);
}

static void draw_row(pl_html *h, const sheet *s, size_t row)
{
    const pl_svg_bars *b = s->bars;
    const double y = HEAD + (double)row * ROW;
    const uint64_t sum = sum_of(b, row);
    double from = 0.0;
    pl_svg_text(h, LEFT - 10, y + BAR / 2 + 4, "end", NULL, b->rows[row]);
    for (size_t i = 0; i < b->n_parts; i++) {
        const uint64_t bytes = b->bytes[row * b->n_parts + i];
        if (bytes > 0)
            draw_part(h, s, row, i, from);
        from += (double)bytes;
    }
    if (b->line_bytes > 0 && sum > b->line_bytes) {
        const double x = x_of(s, (double)b->line_bytes);
        rect(h, x, y, x_of(s, (double)sum) - x, BAR, "over");
        pl_html_close(h);
    }
    double x = x_of(s, (double)sum);
    if (b->line_bytes > sum && x + 8 + 62 > x_of(s, (double)b->line_bytes))
        x = x_of(s, (double)b->line_bytes);
    pl_svg_text(h, x + 8, y + BAR / 2 + 4, "start", "sum",
                pl_units_bytes(sum).text);
}

/* A load line as ships have it: a circle, and the line through it. */
static void draw_line(pl_html *h, const sheet *s)
{
    const pl_svg_bars *b = s->bars;
    const double x = x_of(s, (double)b->line_bytes);
    char text[160];
    pl_html_open(h, PL_TAG_path);
    pl_html_attr(h, PL_ATTR_class, "limit");
    pl_html_attrf(h, PL_ATTR_d, "M%.1f %dV%.1f", x, HEAD - 22, s->bottom + 3);
    pl_html_close(h);
    pl_html_open(h, PL_TAG_circle);
    pl_html_attr(h, PL_ATTR_class, "disc");
    pl_html_attrf(h, PL_ATTR_cx, "%.1f", x);
    pl_html_attrf(h, PL_ATTR_cy, "%d", HEAD - 13);
    pl_html_attr(h, PL_ATTR_r, "5");
    pl_html_close(h);
    snprintf(text, sizeof text, "%s %s", b->line_name,
             pl_units_bytes(b->line_bytes).text);
    pl_svg_text(h, x - 10, HEAD - 9, "end", "limit-name", text);
}

/* How many rows the legend takes; with `h` NULL nothing is drawn. */
static int draw_legend(pl_html *h, const sheet *s)
{
    const pl_svg_bars *b = s->bars;
    double x = LEFT;
    int rows = 1;
    for (size_t i = 0; i < b->n_parts; i++) {
        const double width = 1.14 * pl_svg_width(b->parts[i].name) + 38;
        const double y = s->bottom + AXIS + rows * LEGEND_ROW - 12;
        char class[24];
        if (!is_used(b, i))
            continue;
        if (x + width > WIDTH - MARGIN && x > LEFT) {
            x = LEFT;
            rows++;
            i--;
            continue;
        }
        snprintf(class, sizeof class, "f%d", b->parts[i].color);
        if (h) {
            rect(h, x, y - 9, 11, 11, class);
            pl_html_close(h);
            pl_svg_text(h, x + 17, y + 1, "start", NULL, b->parts[i].name);
        }
        x += width;
    }
    return rows;
}

void pl_svg_stack(pl_html *h, const pl_svg_bars *bars, pl_svg_use use)
{
    sheet s = { .bars = bars,
                .most = (double)bars->line_bytes,
                .bottom = HEAD + (double)bars->n_rows * ROW };
    for (size_t row = 0; row < bars->n_rows; row++)
        s.most = fmax(s.most, (double)sum_of(bars, row));
    if (!(s.most > 0.0))
        s.most = 1.0;
    const double height = s.bottom + AXIS + draw_legend(NULL, &s) * LEGEND_ROW +
                          6;
    pl_svg_open(h, bars->id, bars->title, bars->text, WIDTH, height, use);
    pl_svg_text(h, MARGIN, 24, "start", "head", bars->title);
    if (bars->subtitle)
        pl_svg_text(h, WIDTH - MARGIN, 24, "end", "name", bars->subtitle);
    draw_axis(h, &s);
    for (size_t row = 0; row < bars->n_rows; row++)
        draw_row(h, &s, row);
    if (bars->line_bytes > 0)
        draw_line(h, &s);
    draw_legend(h, &s);
    pl_html_close(h);
}
