/* cmd_report.c: runs as one file to look at, to keep and to send. */
#include "base/file.h"
#include "cli/command.h"
#include "cli/page_out.h"
#include "web/report.h"

#include <stdio.h>
#include <string.h>

static int ends_in(const char *text, const char *end)
{
    const size_t bytes = strlen(text), tail = strlen(end);
    return bytes >= tail && strcmp(text + bytes - tail, end) == 0;
}

static pl_status choose(const pl_config *config, pl_format_choice *to,
                        pl_error *err)
{
    *to = config->format != PL_FORMAT_AUTO ? config->format
          : ends_in(config->out, ".md")    ? PL_FORMAT_MD
                                           : PL_FORMAT_HTML;
    if (*to == PL_FORMAT_HTML || *to == PL_FORMAT_MD)
        return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "format = '%s' is for `plimsoll export` or `prepare`; a "
                   "report is 'html' or 'md'",
                   pl_config_word(config, PL_KEY_format));
}

static pl_status write_html(const pl_report *report, const char *path,
                            pl_error *err)
{
    pl_page_out out;
    pl_status status = pl_page_out_open(&out, path, err);
    if (status)
        return status;
    pl_html h = pl_html_begin(pl_page_out_take, &out);
    pl_report_write(&h, report);
    pl_html_end(&h);
    return pl_page_out_close(&out, err);
}

/* "report.md" -> "report": pictures are report-loss.svg and so on. */
static void prefix_of(const char *path, char prefix[PL_PATH_BYTES])
{
    size_t bytes = strlen(path);
    if (ends_in(path, ".md"))
        bytes -= 3;
    snprintf(prefix, PL_PATH_BYTES, "%.*s", (int)bytes, path);
}

static pl_status write_picture(const pl_report *report, size_t at,
                               const char *prefix, pl_error *err)
{
    char path[PL_PATH_BYTES], name[PL_REPORT_NAME_BYTES];
    pl_page_out out;
    pl_report_picture_name(report, at, name);
    if (snprintf(path, sizeof path, "%s-%s.svg", prefix, name) >=
        (int)sizeof path)
        return pl_fail(err, PL_E_IO, "%s: the name is too long", prefix);
    pl_status status = pl_page_out_open(&out, path, err);
    if (status)
        return status;
    pl_html h = pl_html_begin(pl_page_out_take, &out);
    pl_report_picture(&h, report, at);
    pl_html_end(&h);
    return pl_page_out_close(&out, err);
}

/* On standard output the tables stand alone: pictures would need a place. */
static pl_status write_markdown(const pl_report *report, const char *path,
                                pl_error *err)
{
    const int to_file = strcmp(path, "-") != 0;
    char prefix[PL_PATH_BYTES];
    pl_page_out out;
    pl_status status = pl_page_out_open(&out, path, err);
    prefix_of(path, prefix);
    for (size_t i = 0; i < pl_report_pictures(report) && to_file && !status;
         i++)
        if (i < report->n_charts || report->runs[i - report->n_charts].has_plan)
            status = write_picture(report, i, prefix, err);
    if (status)
        return status;
    const char *cut = strrchr(prefix, '/');
    pl_report_markdown(pl_page_out_take, &out, report,
                       to_file ? (cut ? cut + 1 : prefix) : NULL);
    return pl_page_out_close(&out, err);
}

static pl_status run_report(pl_cli_args *args, pl_heap *heap, pl_error *err)
{
    const pl_config *config = &args->config;
    const size_t count = args->path_count ? args->path_count : 1;
    const char *path = config->out;
    pl_format_choice format = PL_FORMAT_HTML;
    pl_run_files *runs;
    pl_report *report;
    if (count > PL_REPORT_RUNS)
        return pl_fail(err, PL_E_USAGE, "report takes %d runs at most, not %zu",
                       PL_REPORT_RUNS, count);
    pl_status status = choose(config, &format, err);
    if (path[0] == '\0')
        path = format == PL_FORMAT_MD ? "report.md" : "report.html";
    if (!status)
        status = pl_heap_take(heap, &runs, count, sizeof *runs, err);
    if (!status)
        status = pl_heap_take(heap, &report, 1, sizeof *report, err);
    for (size_t i = 0; i < count && !status; i++)
        status = pl_run_files_read(
            &runs[i], args->path_count ? args->paths[i] : config->out_dir, heap,
            err);
    if (!status)
        status = pl_report_make(report, runs, count, heap, err);
    if (status)
        return status;
    return format == PL_FORMAT_MD ? write_markdown(report, path, err)
                                  : write_html(report, path, err);
}

const pl_command pl_command_report = {
    .name = "report",
    .arguments = "[OUT_DIR ...] [--out=FILE] [--format=md]",
    .summary = "runs as one page with pictures, to keep and to send",
    .text =
        "Reads the files in the folders of runs, while they train or later, "
        "and writes a\npage that is one file: losses with standard errors, "
        "gradient norms with skipped\nupdates, the learning rate, tokens "
        "per second, what the memory was for, texts\nthat the model wrote "
        "(sample_interval), warnings, the config with its origins\nand the "
        "command that repeats it. Several runs are compared. The page has "
        "no\nscript, fetches nothing, and prints.\n\n"
        "--format=md writes Markdown with pictures beside it, for a "
        "README. --out=- is\nstandard output.\n\n"
        "  plimsoll report out --out=report.html\n"
        "  plimsoll report out-a out-b --out=runs.md\n",
    .keys = PL_FOR_REPORT,
    .run = run_report,
};
