/* task_lines.c: see task_lines.h. */
#include "store/task_lines.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIDTH(name, value) +(int)(sizeof ", \"" name "\": -1.23456789e-308" - 1)
_Static_assert((int)sizeof "{\"step\": 18446744073709551615, \"task\": \"\", "
                           "\"kind\": \"multiple choice\", \"items\": "
                           "18446744073709551615, \"cut\": "
                           "18446744073709551615}\n" +
                       (int)PL_TASK_LINES_LABEL_BYTES PL_TASK_NUMBERS(WIDTH) <=
                   (int)PL_TASK_LINES_BYTES,
               "the longest line has room");

static size_t put(char *text, size_t used, const char *name, double value)
{
    if (!isfinite(value))
        return used;
    return used + (size_t)snprintf(text + used, PL_TASK_LINES_BYTES - used,
                                   ", \"%s\": %.9g", name, value);
}

size_t pl_task_line_write(char text[PL_TASK_LINES_BYTES], uint64_t step,
                          const pl_task_result *r)
{
    size_t used = (size_t)snprintf(text, PL_TASK_LINES_BYTES,
                                   "{\"step\": %" PRIu64
                                   ", \"task\": \"%.*s\", \"kind\": \"%s\", "
                                   "\"items\": %" PRIu64 ", \"cut\": %" PRIu64,
                                   step, PL_TASK_LINES_LABEL_BYTES - 1,
                                   r->label, r->kind, r->items, r->cut);
#define PUT(name, value) used = put(text, used, name, value);
    PL_TASK_NUMBERS(PUT)
    memcpy(text + used, "}\n", 2);
    return used + 2;
}

int pl_task_lines_due(const pl_config *config, uint64_t step)
{
    const int64_t interval = config->task_interval;
    return interval > 0 && step > 0 && pl_config_is_due(config, interval, step);
}

uint64_t pl_task_lines_most(const pl_config *config)
{
    static const char end[] = ".jsonl";
    uint64_t tasks = 0;
    if (config->task_interval == 0)
        return 0;
    for (size_t i = 0; i < config->tasks.count; i++) {
        const char *path = pl_texts_at(&config->tasks, i);
        const size_t bytes = strlen(path);
        tasks += bytes >= sizeof end &&
                         strcmp(path + bytes + 1 - sizeof end, end) == 0
                     ? 1
                     : PL_TASK_LINES_MOST;
    }
    if (tasks > PL_TASK_LINES_MOST)
        tasks = PL_TASK_LINES_MOST;
    return tasks *
           ((uint64_t)config->max_iters / (uint64_t)config->task_interval);
}
