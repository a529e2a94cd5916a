/* clock.h: how long something took. Never a date, never a part of a result. */
#ifndef PL_BASE_CLOCK_H
#define PL_BASE_CLOCK_H

/* Seconds since some fixed moment; a clock that is set doesn't change it. */
double pl_clock_seconds(void);

#endif
