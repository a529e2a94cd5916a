/* svg.h: pictures as SVG: lines over steps, and stacked bars of bytes.
 *
 * Drawn by web/html.h, so that a picture stands in a page or is a file of its
 * own, and nothing in it can be anything but text. Colours are classes of
 * page/chart.css, which has them for light and dark. The same numbers give the
 * same bytes. Every picture has a title and a description; the numbers belong
 * in a table beside it. Takes no memory. */
#ifndef PL_WEB_SVG_H
#define PL_WEB_SVG_H

#include "web/html.h"

#include <stdint.h>

enum { PL_SVG_COLORS = 8, PL_SVG_GREY = PL_SVG_COLORS };

/* In a page whose head has chart.css, or a file of its own, which has it
 * inside and a background. */
typedef enum pl_svg_use { PL_SVG_IN_PAGE, PL_SVG_FILE } pl_svg_use;

/* ---- ticks ---- */

/* The ticks of a linear axis: multiples of `step`, which is 1, 2 or 5 times a
 * power of ten, that lie within low .. high; about `wanted` of them. */
typedef struct pl_svg_ticks {
    double first, step;
    int count;
} pl_svg_ticks;
pl_svg_ticks pl_svg_ticks_make(double low, double high, int wanted);

/* How the numbers of an axis are written. */
typedef enum pl_svg_unit {
    PL_SVG_NUMBER, /* 0.5, 3e-04 */
    PL_SVG_COUNT,  /* 1.5k, 20M */
    PL_SVG_BYTES,  /* 1.50 GB */
} pl_svg_unit;
enum { PL_SVG_LABEL_BYTES = 48 };
void pl_svg_label(double value, double step, pl_svg_unit unit,
                  char text[PL_SVG_LABEL_BYTES]);

/* ---- lines ---- */

/* A y that isn't finite interrupts a line. */
typedef struct pl_svg_point {
    double x, y;
    double low, high; /* of the band or the whisker; NaN: none */
} pl_svg_point;

enum {
    PL_SVG_LINE = 1,
    PL_SVG_BAND = 2,     /* from low to high, filled */
    PL_SVG_DOTS = 4,     /* a dot at each point */
    PL_SVG_WHISKERS = 8, /* from low to high, a line */
    PL_SVG_DASHED = 16,
};

typedef struct pl_svg_series {
    const char *name; /* NULL: not in the legend */
    const pl_svg_point *points;
    size_t count;
    int color;
    unsigned look;
} pl_svg_series;

typedef enum pl_svg_scale { PL_SVG_LINEAR, PL_SVG_LOGARITHMIC } pl_svg_scale;

typedef struct pl_svg_chart {
    const char *id;           /* unique in its page */
    const char *title, *text; /* text: what it shows, in a sentence */
    const char *x_name, *y_name;
    pl_svg_unit x_unit, y_unit;
    pl_svg_scale y_scale; /* a logarithmic one leaves out what isn't > 0 */
    int from_zero;        /* a linear one begins at 0 */
    const pl_svg_series *series;
    size_t n_series;
    const double *marks; /* places along x that need attention */
    size_t n_marks;
    const char *mark_name;
} pl_svg_chart;

void pl_svg_draw(pl_html *h, const pl_svg_chart *chart, pl_svg_use use);

/* ---- bars ---- */

typedef struct pl_svg_part {
    const char *name;
    int color;
} pl_svg_part;

/* One bar for each row, made of parts. */
typedef struct pl_svg_bars {
    const char *id;
    const char *title, *text, *subtitle; /* subtitle: NULL: none */
    const char *const *rows;
    size_t n_rows;
    const pl_svg_part *parts;
    size_t n_parts;
    const uint64_t *bytes; /* [row * n_parts + part] */
    uint64_t line_bytes;   /* that no bar should cross; 0: none */
    const char *line_name;
} pl_svg_bars;

void pl_svg_stack(pl_html *h, const pl_svg_bars *bars, pl_svg_use use);

/* ---- for svg_bars.c ---- */

/* <svg> with its title and description. */
void pl_svg_open(pl_html *h, const char *id, const char *title,
                 const char *text, double width, double height, pl_svg_use use);
/* Whose end (anchor "end"), middle or start is at x. */
void pl_svg_text(pl_html *h, double x, double y, const char *anchor,
                 const char *class, const char *text);
/* About how wide a text is, in pixels. */
double pl_svg_width(const char *text);

#endif
