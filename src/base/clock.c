/* clock.c: see clock.h. */
#include "base/clock.h"

#include <time.h>

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double pl_clock_seconds(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

double pl_clock_thread_seconds(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

double pl_clock_date(void)
{
    return read_clock(CLOCK_REALTIME);
}

void pl_clock_sleep(double seconds)
{
    const struct timespec t = {
        .tv_sec = (time_t)seconds,
        .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)
    };
    nanosleep(&t, NULL);
}
