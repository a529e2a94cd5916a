/* report.h: runs as a page that is one file, and as Markdown with pictures
 * beside it. Knows only what the files of the runs say (run_files.h); what is
 * in there is shown as text, whatever it is. The same files give the same
 * bytes. */
#ifndef PL_WEB_REPORT_H
#define PL_WEB_REPORT_H

#include "web/run_files.h"

enum { PL_REPORT_RUNS = PL_SVG_COLORS, PL_REPORT_CHARTS = 5 };

typedef struct pl_report_chart {
    const char *name; /* "loss": of its place, and of its file */
    pl_svg_chart chart;
    pl_svg_series series[3 * PL_REPORT_RUNS];
} pl_report_chart;

typedef struct pl_report {
    const pl_run_files *runs;
    size_t count;
    char names[PL_REPORT_RUNS][128]; /* of the folders, without the way */
    pl_report_chart charts[PL_REPORT_CHARTS];
    size_t n_charts;
} pl_report;

/* `runs` must live as long. */
PL_MUST_CHECK pl_status pl_report_make(pl_report *report,
                                       const pl_run_files *runs, size_t count,
                                       pl_heap *heap, pl_error *err);

void pl_report_write(pl_html *h, const pl_report *report);

/* The Markdown page. Its pictures are `prefix`-loss.svg and so on, and
 * `prefix`-plan.svg, -plan2.svg ..., which pl_report_picture draws; without a
 * prefix (NULL) there are none. */
void pl_report_markdown(pl_html_sink *sink, void *context,
                        const pl_report *report, const char *prefix);
/* How many pictures there are; and the ending of one's name ("loss"). */
size_t pl_report_pictures(const pl_report *report);
enum { PL_REPORT_NAME_BYTES = 32 };
void pl_report_picture_name(const pl_report *report, size_t at,
                            char name[PL_REPORT_NAME_BYTES]);
void pl_report_picture(pl_html *h, const pl_report *report, size_t at);

/* ---- for report_markdown.c ---- */

/* What is said of a run in a few words: up to PL_REPORT_FACTS of them. */
typedef struct pl_report_fact {
    const char *name;
    char text[160];
} pl_report_fact;
enum { PL_REPORT_FACTS = 12 };
size_t pl_report_facts(const pl_run_files *run,
                       pl_report_fact facts[PL_REPORT_FACTS]);

/* Whether a key was set, by what the run says or by its value. */
int pl_report_is_set(const pl_run_key *key);

/* Whether the runs differ in key number `key` of the first run. */
int pl_report_differs(const pl_report *report, size_t key);

/* "2.3412 ± 0.0045"; "-": unknown. */
enum { PL_REPORT_LOSS_BYTES = 64 };
void pl_report_loss(double loss, double error, char text[PL_REPORT_LOSS_BYTES]);

/* A row of the table of tasks, behind the label: iteration, items, acc,
 * acc_norm, perplexity, centred. */
enum { PL_REPORT_TASK_CELLS = 6 };
void pl_report_task(const pl_run_task *task,
                    char text[PL_REPORT_TASK_CELLS][PL_REPORT_LOSS_BYTES]);

/* The command that makes the run again, piece by piece: an argument of it, or 0
 * if key number `at` needs none. */
int pl_report_argument(const pl_run_files *run, size_t at, char *text,
                       size_t capacity);

/* Evaluations that a table shows: every so many, and the last. */
int pl_report_shows_eval(const pl_run_files *run, size_t at);

#endif
