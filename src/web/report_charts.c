/* report_charts.c: the numbers of runs as points. */
#include "web/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- points ---- */

/* What a chart shows of a bucket. */
typedef enum wanted { LOSS, RATE, NORM, SPEED } wanted;

static pl_svg_point point_of(const pl_run_files *run, const pl_run_bucket *b,
                             wanted what)
{
    const pl_run_sum *sum = what == LOSS   ? &b->loss
                            : what == RATE ? &b->rate
                            : what == NORM ? &b->grad_norm
                                           : &b->step_ms;
    pl_svg_point p = { .x = 0.5 * ((double)b->first + (double)b->last),
                       .y = pl_run_mean(sum),
                       .low = sum->count ? sum->low : (double)NAN,
                       .high = sum->count ? sum->high : (double)NAN };
    if (what == SPEED) {
        p.y = p.y > 0.0 ? 1e3 * (double)run->update_tokens / p.y : (double)NAN;
        p.low = p.high = (double)NAN;
    }
    return p;
}

static pl_status bucket_points(const pl_run_files *run, wanted what,
                               pl_svg_series *to, pl_heap *heap, pl_error *err)
{
    pl_svg_point *points;
    pl_status status = pl_heap_take(heap, &points, run->n_buckets + 1,
                                    sizeof *points, err);
    if (status)
        return status;
    for (size_t i = 0; i < run->n_buckets; i++)
        points[i] = point_of(run, &run->buckets[i], what);
    to->points = points;
    to->count = run->n_buckets;
    return PL_OK;
}

/* More would be a thick line. */
enum { MOST_DOTS = 120 };

typedef enum split { TRAIN, VAL } split;

static pl_status eval_points(const pl_run_files *run, split which,
                             pl_svg_series *to, pl_heap *heap, pl_error *err)
{
    pl_svg_point *points;
    pl_status status = pl_heap_take(heap, &points, run->n_evals + 1,
                                    sizeof *points, err);
    if (status)
        return status;
    for (size_t i = 0; i < run->n_evals; i++) {
        const pl_run_eval *e = &run->evals[i];
        const double loss = which == VAL ? e->val : e->train,
                     error = which == VAL ? e->val_error : e->train_error;
        points[i] = (pl_svg_point){ .x = (double)e->step,
                                    .y = loss,
                                    .low = loss - error,
                                    .high = loss + error };
    }
    to->points = points;
    to->count = run->n_evals;
    if (run->n_evals > MOST_DOTS)
        to->look &= ~(unsigned)PL_SVG_DOTS;
    return PL_OK;
}

/* ---- charts ---- */

static pl_report_chart *begin(pl_report *r, const char *name, const char *title,
                              const char *text, const char *y_name)
{
    pl_report_chart *c = &r->charts[r->n_charts++];
    c->name = name;
    c->chart = (pl_svg_chart){ .id = name,
                               .title = title,
                               .text = text,
                               .x_name = "iteration",
                               .x_unit = PL_SVG_COUNT,
                               .y_name = y_name,
                               .series = c->series };
    return c;
}

static pl_svg_series *add(pl_report_chart *c, const char *name, int color,
                          unsigned look)
{
    pl_svg_series *s = &c->series[c->chart.n_series++];
    *s = (pl_svg_series){ .name = name, .color = color, .look = look };
    return s;
}

/* One run: its updates and both splits; several: how each validates. */
static pl_status add_loss(pl_report *r, pl_heap *heap, pl_error *err)
{
    const unsigned dots = PL_SVG_LINE | PL_SVG_DOTS | PL_SVG_WHISKERS;
    pl_report_chart *c = begin(r, "loss", "Loss",
                               "Validation loss with standard errors, over "
                               "iterations",
                               r->count > 1 ? "validation loss" : "loss");
    pl_status status = PL_OK;
    if (r->count == 1) {
        status = bucket_points(
            r->runs, LOSS,
            add(c, "updates", PL_SVG_GREY, PL_SVG_LINE | PL_SVG_BAND), heap,
            err);
        if (!status)
            status = eval_points(r->runs, TRAIN, add(c, "train", 1, dots), heap,
                                 err);
        if (!status)
            status = eval_points(r->runs, VAL, add(c, "validation", 0, dots),
                                 heap, err);
        return status;
    }
    for (size_t i = 0; i < r->count && !status; i++)
        status = eval_points(&r->runs[i], VAL,
                             add(c, r->names[i], (int)i, dots), heap, err);
    return status;
}

static pl_status add_buckets(pl_report *r, pl_report_chart *c, wanted what,
                             unsigned look, pl_heap *heap, pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t i = 0; i < r->count && !status; i++)
        status = bucket_points(
            &r->runs[i], what,
            add(c, r->count > 1 ? r->names[i] : NULL, (int)i, look), heap, err);
    return status;
}

/* Where one number is many times another, a logarithmic scale has room for
 * both. */
static void scale(pl_report_chart *c, double ratio)
{
    double low = HUGE_VAL, high = 0.0;
    for (size_t i = 0; i < c->chart.n_series; i++)
        for (size_t k = 0; k < c->series[i].count; k++) {
            const double y = c->series[i].points[k].y;
            if (y > 0.0 && y < low)
                low = y;
            if (y > high)
                high = y;
        }
    if (high > ratio * low)
        c->chart.y_scale = PL_SVG_LOGARITHMIC;
}

static pl_status add_norm(pl_report *r, pl_heap *heap, pl_error *err)
{
    pl_report_chart *c = begin(r, "norm", "Gradient norm",
                               "Norm of the gradients, over iterations",
                               "norm");
    pl_status status = add_buckets(r, c, NORM, PL_SVG_LINE | PL_SVG_BAND, heap,
                                   err);
    if (status)
        return status;
    scale(c, 10.0);
    if (r->count == 1) {
        c->chart.marks = r->runs->skipped;
        c->chart.n_marks = r->runs->n_skipped;
        c->chart.mark_name = "skipped updates";
    }
    return PL_OK;
}

static pl_status add_speed(pl_report *r, pl_heap *heap, pl_error *err)
{
    int known = 0;
    for (size_t i = 0; i < r->count; i++)
        known |= r->runs[i].update_tokens > 0;
    if (!known)
        return PL_OK;
    pl_report_chart *c = begin(r, "speed", "Tokens per second",
                               "Tokens per second, over iterations",
                               "tokens/s");
    c->chart.from_zero = 1;
    c->chart.y_unit = PL_SVG_COUNT;
    return add_buckets(r, c, SPEED, PL_SVG_LINE, heap, err);
}

/* The last part of a path, without slashes behind it. */
static void name_it(char name[128], const char *folder)
{
    size_t end = strlen(folder), begin;
    while (end > 1 && folder[end - 1] == '/')
        end--;
    for (begin = end; begin > 0 && folder[begin - 1] != '/'; begin--)
        continue;
    if (begin == end)
        begin = 0;
    snprintf(name, 128, "%.*s", (int)(end - begin), folder + begin);
}

pl_status pl_report_make(pl_report *r, const pl_run_files *runs, size_t count,
                         pl_heap *heap, pl_error *err)
{
    *r = (pl_report){ .runs = runs, .count = count };
    for (size_t i = 0; i < count; i++)
        name_it(r->names[i], runs[i].folder);
    pl_status status = add_loss(r, heap, err);
    if (!status && count > 1)
        status = add_buckets(r,
                             begin(r, "updates", "Training loss",
                                   "Loss of the updates, over iterations",
                                   "loss"),
                             LOSS, PL_SVG_LINE, heap, err);
    for (size_t i = 0; i < r->n_charts; i++)
        scale(&r->charts[i], 8.0);
    if (!status)
        status = add_norm(r, heap, err);
    if (!status) {
        pl_report_chart *c = begin(r, "rate", "Learning rate",
                                   "Learning rate, over iterations",
                                   "learning rate");
        c->chart.from_zero = 1;
        status = add_buckets(r, c, RATE, PL_SVG_LINE, heap, err);
    }
    return status ? status : add_speed(r, heap, err);
}
