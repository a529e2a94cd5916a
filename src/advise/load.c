/* load.c: see load.h. */
#include "advise/load.h"
#include "base/clock.h"
#include "base/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "cpu  user nice system idle iowait irq softirq steal ...", in ticks. */
void pl_load_parse_stat(pl_load *load, const char *text)
{
    enum { STEAL = 7, FIELDS = 8 };
    double sum = 0.0, stolen = 0.0;
    if (strncmp(text, "cpu ", 4) != 0)
        return;
    text += 4;
    for (int i = 0; i < FIELDS; i++) {
        char *end;
        const double value = strtod(text, &end);
        if (end == text || !(value >= 0.0))
            return;
        sum += value;
        stolen = i == STEAL ? value : 0.0;
        text = end;
    }
    load->stolen_ticks = stolen;
    load->ticks = sum;
}

pl_load pl_load_read(void)
{
    char text[512];
    size_t got = 0;
    pl_file file;
    pl_load load = { .seconds = pl_clock_seconds(),
                     .thread_seconds = pl_clock_thread_seconds() };
    if (pl_file_open_read(&file, "/proc/stat", NULL))
        return load;
    if (!pl_file_read_some(&file, text, sizeof text - 1, &got, NULL)) {
        text[got] = '\0';
        pl_load_parse_stat(&load, text);
    }
    pl_file_abandon(&file);
    return load;
}

double pl_load_quiet(const pl_load *from, const pl_load *to)
{
    const double seconds = to->seconds - from->seconds,
                 mine = to->thread_seconds - from->thread_seconds,
                 ticks = to->ticks - from->ticks,
                 stolen = to->stolen_ticks - from->stolen_ticks;
    if (!(seconds > 0.0) || !(mine > 0.0))
        return 0.0;
    const double left = ticks > 0.0 && stolen > 0.0 && from->ticks > 0.0
                            ? 1.0 - stolen / ticks
                            : 1.0;
    return fmin(mine / seconds, 1.0) * fmax(left, 0.0);
}
