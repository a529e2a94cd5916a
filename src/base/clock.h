/* clock.h: how long something took, and for people when. Never a part of a
 * result. */
#ifndef PL_BASE_CLOCK_H
#define PL_BASE_CLOCK_H

/* Seconds since some fixed moment; a clock that is set doesn't change it. */
double pl_clock_seconds(void);

/* Seconds that the processor has spent on the thread that asks. */
double pl_clock_thread_seconds(void);

/* Seconds since 1970, as this machine believes: it may jump. */
double pl_clock_date(void);

/* Sleeps for so long, or until a signal arrives. */
void pl_clock_sleep(double seconds);

#endif
