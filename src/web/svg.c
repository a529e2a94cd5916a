/* svg.c: see svg.h. Owns axes and lines; svg_bars.c has the bars. */
#include "web/svg.h"
#include "base/exact.h"
#include "base/units.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Of a chart, in pixels: the axes leave the rest to the lines. */
enum {
    WIDTH = 760,
    HEIGHT = 300,
    LEFT = 64,
    RIGHT = 20,
    TOP = 58,
    BOTTOM = 46,
};

/* ---- ticks ---- */

/* Numbers that are drawn lie between these: what is beyond is left out. */
#define LEAST 1e-100
#define MOST  1e100

/* The largest power of ten that is at most `value`, found without a logarithm,
 * so that it is the same everywhere. */
static double power_below(double value)
{
    double power = 1.0;
    value = fmin(fmax(value, LEAST), MOST);
    while (power > value)
        power /= 10.0;
    while (power * 10.0 <= value)
        power *= 10.0;
    return power;
}

pl_svg_ticks pl_svg_ticks_make(double low, double high, int wanted)
{
    double rough = (high - low) / wanted;
    if (!(rough > LEAST && rough < MOST))
        return (pl_svg_ticks){ .first = low, .step = 1.0, .count = 1 };
    const double power = power_below(rough);
    const double times = rough / power;
    const double step = power * (times < 1.5   ? 1.0
                                 : times < 3.5 ? 2.0
                                 : times < 7.5 ? 5.0
                                               : 10.0);
    pl_svg_ticks ticks = { .first = ceil(low / step - 1e-9) * step,
                           .step = step };
    ticks.count = 1 + (int)floor((high - ticks.first) / step + 1e-9);
    return ticks;
}

/* Digits behind the point that tell multiples of `step` apart. */
static int digits_of(double step)
{
    int digits = 0;
    while (digits < 9 && step < 0.999) {
        step *= 10.0;
        digits++;
    }
    return digits;
}

static void count_label(double value, double step, char *text)
{
    static const char *const ends[] = { "", "k", "M", "G", "T" };
    int at = 0;
    while (at < 4 && fabs(value) >= 1000.0) {
        value /= 1000.0;
        step /= 1000.0;
        at++;
    }
    snprintf(text, PL_SVG_LABEL_BYTES, "%.*f%s", digits_of(step), value,
             ends[at]);
}

void pl_svg_label(double value, double step, pl_svg_unit unit,
                  char text[PL_SVG_LABEL_BYTES])
{
    if (fabs(value) < 1e-9 * step)
        value = 0.0;
    if (unit == PL_SVG_BYTES)
        snprintf(text, PL_SVG_LABEL_BYTES, "%s",
                 value > 0.0 ? pl_units_bytes((uint64_t)(value + 0.5)).text
                             : "0");
    else if (unit == PL_SVG_COUNT)
        count_label(value, step, text);
    else if (value != 0.0 && (step < 1e-3 || step >= 1e6))
        snprintf(text, PL_SVG_LABEL_BYTES, "%.1e", value);
    else
        snprintf(text, PL_SVG_LABEL_BYTES, "%.*f", digits_of(step), value);
}

/* ---- parts of every picture ---- */

double pl_svg_width(const char *text)
{
    double width = 0.0;
    for (; *text; text++)
        width += pl_utf8_starts(*text) ? 6.6 : 0.0;
    return width;
}

void pl_svg_open(pl_html *h, const char *id, const char *title,
                 const char *text, double width, double height, pl_svg_use use)
{
    pl_html_open(h, PL_TAG_svg);
    pl_html_attr(h, PL_ATTR_xmlns, "http://www.w3.org/2000/svg");
    pl_html_attr(h, PL_ATTR_class, "chart");
    pl_html_attrf(h, PL_ATTR_viewBox, "0 0 %.0f %.0f", width, height);
    if (use == PL_SVG_FILE) {
        pl_html_attrf(h, PL_ATTR_width, "%.0f", width);
        pl_html_attrf(h, PL_ATTR_height, "%.0f", height);
    }
    pl_html_attr(h, PL_ATTR_role, "img");
    pl_html_attrf(h, PL_ATTR_aria_labelledby, "%s-title %s-text", id, id);
    pl_html_open(h, PL_TAG_title);
    pl_html_attrf(h, PL_ATTR_id, "%s-title", id);
    pl_html_text(h, title);
    pl_html_close(h);
    pl_html_open(h, PL_TAG_desc);
    pl_html_attrf(h, PL_ATTR_id, "%s-text", id);
    pl_html_text(h, text);
    pl_html_close(h);
    if (use == PL_SVG_FILE)
        pl_html_sheet(h, "chart.css");
    pl_html_open(h, PL_TAG_rect);
    pl_html_attr(h, PL_ATTR_class, "paper");
    pl_html_attrf(h, PL_ATTR_width, "%.0f", width);
    pl_html_attrf(h, PL_ATTR_height, "%.0f", height);
    pl_html_attr(h, PL_ATTR_rx, "8");
    pl_html_close(h);
}

void pl_svg_text(pl_html *h, double x, double y, const char *anchor,
                 const char *class, const char *text)
{
    pl_html_open(h, PL_TAG_text);
    pl_html_attrf(h, PL_ATTR_x, "%.1f", x);
    pl_html_attrf(h, PL_ATTR_y, "%.1f", y);
    if (strcmp(anchor, "start") != 0)
        pl_html_attr(h, PL_ATTR_text_anchor, anchor);
    if (class)
        pl_html_attr(h, PL_ATTR_class, class);
    pl_html_text(h, text);
    pl_html_close(h);
}

static void line(pl_html *h, double x1, double y1, double x2, double y2,
                 const char *class)
{
    pl_html_open(h, PL_TAG_line);
    pl_html_attrf(h, PL_ATTR_x1, "%.1f", x1);
    pl_html_attrf(h, PL_ATTR_y1, "%.1f", y1);
    pl_html_attrf(h, PL_ATTR_x2, "%.1f", x2);
    pl_html_attrf(h, PL_ATTR_y2, "%.1f", y2);
    pl_html_attr(h, PL_ATTR_class, class);
    pl_html_close(h);
}

/* ---- the frame of a chart ---- */

typedef struct frame {
    const pl_svg_chart *chart;
    double x_low, x_high, y_low, y_high; /* y as it is scaled */
} frame;

static double scaled(const frame *f, double y)
{
    if (!(fabs(y) < MOST))
        return (double)NAN;
    if (f->chart->y_scale == PL_SVG_LINEAR)
        return y;
    return y > LEAST ? pl_exact_log(y) : (double)NAN;
}

static double x_of(const frame *f, double x)
{
    return LEFT +
           (x - f->x_low) / (f->x_high - f->x_low) * (WIDTH - LEFT - RIGHT);
}

static double y_of(const frame *f, double y)
{
    const double share = (scaled(f, y) - f->y_low) / (f->y_high - f->y_low);
    return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP);
}

static void widen(double value, double *low, double *high)
{
    if (!isfinite(value))
        return;
    *low = value < *low ? value : *low;
    *high = value > *high ? value : *high;
}

static void apart(double *low, double *high, double empty)
{
    if (!isfinite(*low) || !isfinite(*high)) {
        *low = 0.0;
        *high = empty;
    } else if (!(*high - *low > 1e-12 * fabs(*high))) {
        const double by = *high != 0.0 ? 0.05 * fabs(*high) : 0.5;
        *low -= by;
        *high += by;
    }
}

static frame make_frame(const pl_svg_chart *chart)
{
    frame f = { chart, HUGE_VAL, -HUGE_VAL, HUGE_VAL, -HUGE_VAL };
    for (size_t i = 0; i < chart->n_series; i++)
        for (size_t k = 0; k < chart->series[i].count; k++) {
            const pl_svg_point *p = &chart->series[i].points[k];
            widen(fabs(p->x) < MOST ? p->x : (double)NAN, &f.x_low, &f.x_high);
            widen(scaled(&f, p->y), &f.y_low, &f.y_high);
            if (chart->series[i].look & (PL_SVG_BAND | PL_SVG_WHISKERS)) {
                widen(scaled(&f, p->low), &f.y_low, &f.y_high);
                widen(scaled(&f, p->high), &f.y_low, &f.y_high);
            }
        }
    if (chart->from_zero && chart->y_scale == PL_SVG_LINEAR)
        widen(0.0, &f.y_low, &f.y_high);
    apart(&f.x_low, &f.x_high, 1.0);
    apart(&f.y_low, &f.y_high, 1.0);
    const double air = 0.04 * (f.y_high - f.y_low);
    f.y_high += air;
    if (!(chart->from_zero && f.y_low == 0.0))
        f.y_low -= air;
    return f;
}

static void y_tick(pl_html *h, const frame *f, double value, double step)
{
    char text[PL_SVG_LABEL_BYTES];
    const double y = y_of(f, value);
    line(h, LEFT, y, WIDTH - RIGHT, y, "grid");
    pl_svg_label(value, step, f->chart->y_unit, text);
    pl_svg_text(h, LEFT - 8, y + 4, "end", "tick", text);
}

/* 1, 2 and 5 times a power of ten; where these are too many, 1 only. */
static int power_ticks(pl_html *h, const frame *f, double power)
{
    static const double times[] = { 1.0, 2.0, 5.0 };
    const double low = pl_exact_exp(f->y_low), high = pl_exact_exp(f->y_high);
    const int every = f->y_high - f->y_low > 7.0 ? 3 : 1;
    int drawn = 0;
    for (int i = 0; i < 3; i += every)
        if (times[i] * power >= low && times[i] * power <= high) {
            y_tick(h, f, times[i] * power, power);
            drawn++;
        }
    return drawn;
}

static void log_ticks(pl_html *h, const frame *f)
{
    const double low = pl_exact_exp(f->y_low), high = pl_exact_exp(f->y_high),
                 by = f->y_high - f->y_low > 46.0 ? 1e20 : 10.0;
    double power = power_below(low);
    int drawn = 0;
    while (power <= high) {
        drawn += power_ticks(h, f, power);
        power *= by;
    }
    if (drawn < 2) {
        const pl_svg_ticks ticks = pl_svg_ticks_make(low, high, 4);
        for (int i = 0; i < ticks.count; i++)
            y_tick(h, f, ticks.first + i * ticks.step, ticks.step);
    }
}

static void draw_axes(pl_html *h, const frame *f)
{
    const pl_svg_chart *chart = f->chart;
    pl_svg_ticks ticks = pl_svg_ticks_make(f->y_low, f->y_high, 5);
    if (chart->y_scale == PL_SVG_LOGARITHMIC)
        log_ticks(h, f);
    for (int i = 0; i < ticks.count && chart->y_scale == PL_SVG_LINEAR; i++)
        y_tick(h, f, ticks.first + i * ticks.step, ticks.step);
    ticks = pl_svg_ticks_make(f->x_low, f->x_high, 8);
    for (int i = 0; i < ticks.count; i++) {
        char text[PL_SVG_LABEL_BYTES];
        const double value = ticks.first + i * ticks.step, x = x_of(f, value);
        line(h, x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 4, "axis");
        pl_svg_label(value, ticks.step, chart->x_unit, text);
        pl_svg_text(h, x, HEIGHT - BOTTOM + 17, "middle", "tick", text);
    }
    line(h, LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis");
    pl_svg_text(h, WIDTH - RIGHT, HEIGHT - 10, "end", "name", chart->x_name);
    pl_svg_text(h, LEFT, TOP - 8, "start", "name", chart->y_name);
}

/* ---- series ---- */

static int is_drawn(const frame *f, const pl_svg_point *p)
{
    return fabs(p->x) < MOST && isfinite(scaled(f, p->y));
}

static int has_error(const frame *f, const pl_svg_point *p)
{
    return is_drawn(f, p) && isfinite(scaled(f, p->low)) &&
           isfinite(scaled(f, p->high));
}

static void draw_line(pl_html *h, const frame *f, const pl_svg_series *s)
{
    int pen = 0;
    pl_html_open(h, PL_TAG_path);
    pl_html_attrf(h, PL_ATTR_class, "line s%d%s", s->color,
                  s->look & PL_SVG_DASHED ? " dashed" : "");
    pl_html_attr_begin(h, PL_ATTR_d);
    for (size_t i = 0; i < s->count; i++) {
        const pl_svg_point *p = &s->points[i];
        if (is_drawn(f, p))
            pl_html_attr_add(h, "%c%.1f %.1f", pen ? 'L' : 'M', x_of(f, p->x),
                             y_of(f, p->y));
        pen = is_drawn(f, p);
    }
    pl_html_attr_end(h);
    pl_html_close(h);
}

/* Along the upper ends and back along the lower ones. */
static void draw_band(pl_html *h, const frame *f, const pl_svg_series *s)
{
    int pen = 0;
    pl_html_open(h, PL_TAG_path);
    pl_html_attrf(h, PL_ATTR_class, "band f%d", s->color);
    pl_html_attr_begin(h, PL_ATTR_d);
    for (size_t k = 0; k < 2 * s->count; k++) {
        const int back = k >= s->count;
        const pl_svg_point *p = &s->points[back ? 2 * s->count - 1 - k : k];
        if (!has_error(f, p))
            continue;
        pl_html_attr_add(h, "%c%.1f %.1f", pen ? 'L' : 'M', x_of(f, p->x),
                         y_of(f, back ? p->low : p->high));
        pen = 1;
    }
    if (pen)
        pl_html_attr_add(h, "Z");
    pl_html_attr_end(h);
    pl_html_close(h);
}

static void draw_points(pl_html *h, const frame *f, const pl_svg_series *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const pl_svg_point *p = &s->points[i];
        char class[24];
        snprintf(class, sizeof class, "whisker s%d", s->color);
        if (s->look & PL_SVG_WHISKERS && has_error(f, p))
            line(h, x_of(f, p->x), y_of(f, p->low), x_of(f, p->x),
                 y_of(f, p->high), class);
        if (!(s->look & PL_SVG_DOTS) || !is_drawn(f, p))
            continue;
        pl_html_open(h, PL_TAG_circle);
        pl_html_attrf(h, PL_ATTR_cx, "%.1f", x_of(f, p->x));
        pl_html_attrf(h, PL_ATTR_cy, "%.1f", y_of(f, p->y));
        pl_html_attr(h, PL_ATTR_r, s->count > 60 ? "1.6" : "2.6");
        pl_html_attrf(h, PL_ATTR_class, "f%d", s->color);
        pl_html_close(h);
    }
}

static void draw_marks(pl_html *h, const frame *f)
{
    const pl_svg_chart *chart = f->chart;
    for (size_t i = 0; i < chart->n_marks; i++) {
        const double x = x_of(f, chart->marks[i]);
        line(h, x, TOP, x, HEIGHT - BOTTOM, "mark");
        pl_html_open(h, PL_TAG_path);
        pl_html_attr(h, PL_ATTR_class, "flag");
        pl_html_attrf(h, PL_ATTR_d, "M%.1f %dL%.1f %dL%.1f %dZ", x,
                      HEIGHT - BOTTOM, x - 4, HEIGHT - BOTTOM + 7, x + 4,
                      HEIGHT - BOTTOM + 7);
        pl_html_close(h);
    }
}

/* What has no room beside the title is left out: the table names it. */
static double legend_entry(pl_html *h, double right, double least,
                           const char *name, const char *class)
{
    const double left = right - pl_svg_width(name) - 24;
    if (left < least)
        return right;
    line(h, left, TOP - 34, left + 14, TOP - 34, class);
    pl_svg_text(h, left + 19, TOP - 30, "start", NULL, name);
    return left - 12;
}

/* From the right, the last first. */
static void draw_legend(pl_html *h, const pl_svg_chart *chart)
{
    const double least = 32 + 1.3 * pl_svg_width(chart->title);
    double right = WIDTH - RIGHT;
    if (chart->n_marks > 0 && chart->mark_name)
        right = legend_entry(h, right, least, chart->mark_name, "mark key");
    for (size_t i = chart->n_series; i > 0; i--) {
        const pl_svg_series *s = &chart->series[i - 1];
        char class[40];
        snprintf(class, sizeof class, "line key s%d%s", s->color,
                 s->look & PL_SVG_DASHED ? " dashed" : "");
        if (s->name)
            right = legend_entry(h, right, least, s->name, class);
    }
}

void pl_svg_draw(pl_html *h, const pl_svg_chart *chart, pl_svg_use use)
{
    const frame f = make_frame(chart);
    pl_svg_open(h, chart->id, chart->title, chart->text, WIDTH, HEIGHT, use);
    pl_svg_text(h, 16, 24, "start", "head", chart->title);
    draw_legend(h, chart);
    draw_axes(h, &f);
    draw_marks(h, &f);
    for (size_t i = 0; i < chart->n_series; i++) {
        const pl_svg_series *s = &chart->series[i];
        if (s->look & PL_SVG_BAND)
            draw_band(h, &f, s);
        if (s->look & PL_SVG_LINE)
            draw_line(h, &f, s);
        if (s->look & (PL_SVG_DOTS | PL_SVG_WHISKERS))
            draw_points(h, &f, s);
    }
    pl_html_close(h);
}
