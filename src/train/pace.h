/* pace.h: how far an update or an evaluation has come, how long the rest of it
 * will take, and whether a stop waits for it.
 *
 * Work is counted in the seconds that the rates predict for it; how long such a
 * second really takes is seen on the way. Pure: it is told the time. */
#ifndef PL_TRAIN_PACE_H
#define PL_TRAIN_PACE_H

typedef struct pl_pace {
    double begin;       /* by the clock */
    double total, done; /* predicted seconds, of all and so far */
    double prior;       /* what a predicted second took before */
    double asked;       /* when a stop was first asked for; negative: never */
} pl_pace;

pl_pace pl_pace_make(double now, double total, double prior);

/* What is done, from 0 to 1. */
double pl_pace_share(const pl_pace *pace);

/* What a predicted second takes: as before at first, then as it was seen. */
double pl_pace_factor(const pl_pace *pace, double now);

/* Seconds that are left. */
double pl_pace_left(const pl_pace *pace, double now);

/* A stop is asked for. Whether the end is too far away: not to be expected
 * within `patience` seconds from the moment when this was first asked. */
int pl_pace_gives_up(pl_pace *pace, double now, double patience);

#endif
