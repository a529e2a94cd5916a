/* The folder of a run from outside: every file of it has the same bytes. The
 * report on it is well-formed, whatever they are. */
#include "fuzz/fuzz.h"
#include "support/wellformed.h"
#include "web/report.h"
#include "web/run_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void require(int condition)
{
    if (!condition)
        abort();
}

static const char *const names[] = { "metrics.jsonl", "samples.jsonl",
                                     "warnings.jsonl", "plan.json",
                                     "progress.json" };
enum { FILES = sizeof names / sizeof *names };

static char page[8 * 1024 * 1024];
static size_t used;

static void take(void *context, const char *text, size_t bytes)
{
    (void)context;
    require(bytes < sizeof page - used);
    memcpy(page + used, text, bytes);
    used += bytes;
}

static void report_on(const char *folder)
{
    static pl_run_files run;
    static pl_report report;
    pl_heap heap = pl_heap_make((size_t)1 << 28);
    pl_error err = { .status = PL_OK };
    size_t at;
    require(pl_run_files_read(&run, folder, &heap, &err) == PL_OK);
    require(pl_report_make(&report, &run, 1, &heap, &err) == PL_OK);
    used = 0;
    pl_html h = pl_html_begin(take, NULL);
    pl_report_write(&h, &report);
    pl_html_end(&h);
    require(wellformed_trouble(page, used, &at) == NULL);
    used = 0;
    pl_report_markdown(take, NULL, &report, "x");
    require(!memchr(page, '\033', used));
    pl_heap_close(&heap);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char folder[] = "/tmp/plimsoll-fuzz-XXXXXX";
    char path[128];
    require(mkdtemp(folder) != NULL);
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        FILE *file = fopen(path, "wb");
        require(file != NULL && fwrite(data, 1, size, file) == size);
        fclose(file);
    }
    report_on(folder);
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
    return 0;
}
