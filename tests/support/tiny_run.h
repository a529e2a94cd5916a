/* tiny_run.h: a small training run in a scratch folder, for the tests of
 * train/ and what lies below it. */
#ifndef PL_TESTS_SUPPORT_TINY_RUN_H
#define PL_TESTS_SUPPORT_TINY_RUN_H

#include "base/arena.h"
#include "config/config.h"
#include "support/scratch.h"
#include "train/session.h"

typedef struct tiny_run {
    scratch folder;
    pl_heap heap;
    pl_config config;
    pl_run_purpose purpose; /* PL_RUN_TRAINS unless it is set */
    pl_comm *comm;          /* NULL unless it is set: others share the run */
    pl_session session;
    int is_open;
} tiny_run;

/* A dataset of random tokens that has some structure to learn, and a config of
 * sizes that divide nothing: 2 layers, 3 heads, 24 channels, T 13, batch 5,
 * accumulation 2, vocabulary 61, dropout and biases on, laid out literally. On
 * the device that silly_device.h says. */
void tiny_run_make(tiny_run *run);
/* Applies "--key=value". */
void tiny_run_set(tiny_run *run, const char *argument);
/* Opens the session, or says why not. */
pl_status tiny_run_try(tiny_run *run, pl_error *err);
/* Opens the session; fails the test on an error. */
void tiny_run_open(tiny_run *run);
/* Closes the session and gives its heap back; the folder stays. */
void tiny_run_close(tiny_run *run);
/* All of it. */
void tiny_run_remove(tiny_run *run);

/* Updates the weights `count` times; returns the last loss. */
double tiny_run_train(tiny_run *run, int count);
/* Runs pl_train, with a stop once iteration `after` is reached. */
pl_status tiny_run_until(tiny_run *run, uint64_t after, pl_error *err);
/* Whether out/step-<step> is there, whole. */
int tiny_run_has_step(const tiny_run *run, int step);
/* What counts against the budget beside the arena: the reserve, or nothing
 * where the device has memory of its own. */
size_t tiny_run_beside(const tiny_run *run);
/* A hash of every weight and moment, and of workers' outer state, to compare
 * runs bit by bit. */
unsigned long long tiny_run_hash(tiny_run *run);

#endif
