/* plan_picture.h: what takes what, as stacked bars and as a table: a row for
 * each program, a part for each class of bytes, against the line. For plans
 * that were just made, and for those that a run's folder tells of. */
#ifndef PL_WEB_PLAN_PICTURE_H
#define PL_WEB_PLAN_PICTURE_H

#include "web/svg.h"

enum {
    PL_PICTURE_ROWS = 8,
    PL_PICTURE_PARTS = 24,
    PL_PICTURE_NAME_BYTES = 48,
    PL_PICTURE_TITLE_BYTES = 160,
};

typedef struct pl_picture_name {
    char text[PL_PICTURE_NAME_BYTES];
} pl_picture_name;

typedef struct pl_plan_picture {
    char title[PL_PICTURE_TITLE_BYTES], subtitle[PL_PICTURE_TITLE_BYTES];
    pl_picture_name rows[PL_PICTURE_ROWS], parts[PL_PICTURE_PARTS];
    size_t n_rows, n_parts;
    uint64_t bytes[PL_PICTURE_ROWS][PL_PICTURE_PARTS];
    /* what a run was seen to have of them, and whether it was seen */
    uint64_t actual[PL_PICTURE_ROWS][PL_PICTURE_PARTS];
    int has_actual[PL_PICTURE_ROWS];
    uint64_t line_bytes; /* 0: there is none */
    pl_picture_name line_name;
} pl_plan_picture;

/* Adds a row or a part; its number, which is the last one's where there is no
 * more room. The name is cut to what it may have. */
size_t pl_plan_picture_row(pl_plan_picture *p, const char *name);
size_t pl_plan_picture_part(pl_plan_picture *p, const char *name);

/* The part of that name, which is added where there is none. */
size_t pl_plan_picture_find(pl_plan_picture *p, const char *name);

uint64_t pl_plan_picture_sum(const pl_plan_picture *p, size_t row);

/* ---- as a table: planned bytes, and actual ones behind them if a run has
 * any ---- */

typedef struct pl_picture_cell {
    char text[PL_PICTURE_NAME_BYTES + 16];
} pl_picture_cell;

size_t pl_plan_picture_columns(const pl_plan_picture *p);
/* "train"; "train, planned" and "train, actual". */
pl_picture_cell pl_plan_picture_head(const pl_plan_picture *p, size_t column);
/* Bytes in a column, "-" for none; n_parts is their sum. */
pl_picture_cell pl_plan_picture_cell(const pl_plan_picture *p, size_t part,
                                     size_t column);
/* Whether a part has any bytes. */
int pl_plan_picture_has(const pl_plan_picture *p, size_t part);

void pl_plan_picture_draw(pl_html *h, const pl_plan_picture *whole,
                          const char *id, pl_svg_use use);
/* The same numbers as a table of HTML. */
void pl_plan_picture_table(pl_html *h, const pl_plan_picture *p,
                           const char *caption);

#endif
