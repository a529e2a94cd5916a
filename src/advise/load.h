/* load.h: how undisturbed a measurement was. Whatever else runs on the machine
 * can only make it slow; this says how much of the time was ours. */
#ifndef PL_ADVISE_LOAD_H
#define PL_ADVISE_LOAD_H

/* What the clocks say at one moment. */
typedef struct pl_load {
    double seconds;             /* gone by */
    double thread_seconds;      /* of them on a processor: the asking thread */
    double stolen_ticks, ticks; /* of all processors: what a hypervisor gave to
                                 * others, and all; 0: unknown */
} pl_load;

typedef pl_load pl_load_reader(void);

/* Reads the clocks and /proc/stat. Allocates nothing. */
pl_load pl_load_read(void);

/* The same from the text of /proc/stat. */
void pl_load_parse_stat(pl_load *load, const char *text);

/* The share of the time between two moments that was ours: 1 undisturbed, 0 not
 * at all. A thread that waits for others at barriers is disturbed with them. */
double pl_load_quiet(const pl_load *from, const pl_load *to);

#endif
