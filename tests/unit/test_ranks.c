/* Processes that share a run, over sockets (tests/ranks/sockets_engine.c): when
 * one of them is told to stop, all of them do, and the run goes on with the
 * bits that it would have had. */
#include "base/clock.h"
#include "support/tiny_run.h"
#include "train/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST = 4, TIMEOUT = 60 };

/* Who is stopped: once some `after` micro-batches of the first update are done
 * it waits, so that others are ahead of it, and then asks for a stop. */
typedef struct stopper {
    const tiny_run *run;
    int is_meant;
    size_t after, steps; /* of the update, so far */
    double wait;
    int is_updating, has_asked, gave_up;
} stopper;

/* Is called at the first step of an update, at least. */
static void updating(void *context, const pl_progress *progress)
{
    stopper *s = context;
    (void)progress;
    s->is_updating = 1;
}

static int stop(void *context)
{
    stopper *s = context;
    const pl_gpt *gpt = &s->run->session.run.gpt;
    s->steps += s->is_updating != 0;
    if (s->is_meant && !s->has_asked && s->is_updating &&
        s->steps >= s->after * gpt->graph.programs[PL_TRAIN].loop_steps) {
        pl_clock_sleep(s->wait);
        s->has_asked = 1;
    }
    return s->has_asked ? PL_STOP_SOON : PL_STOP_NOT;
}

static void gave_up(void *context, const pl_progress *progress)
{
    stopper *s = context;
    (void)progress;
    s->gave_up++;
}

/* As rank `rank`; what is wrong is written to stderr. */
static int train_as(tiny_run *run, int rank, int ranks, stopper *s)
{
    char text[16];
    pl_error err = { 0 };
    pl_comm *comm = NULL;
    const pl_listener listener = { .context = s,
                                   .updating = updating,
                                   .gave_up = gave_up,
                                   .stop = stop,
                                   .patience_seconds = 0.0 };
    snprintf(text, sizeof text, "%d", rank);
    s->run = run;
    setenv("PL_SOCKETS_RANK", text, 1);
    snprintf(text, sizeof text, "%d", ranks);
    setenv("PL_SOCKETS_RANKS", text, 1);
    pl_heap heap = pl_heap_make(1 << 20); /* which outlives the run's */
    pl_status status = pl_comm_open(&comm, getenv("SOCKETS_ENGINE"), TIMEOUT,
                                    &heap, &err);
    run->comm = comm;
    if (!status)
        status = tiny_run_try(run, &err);
    run->is_open = !status;
    if (!status)
        status = pl_train(&run->session, &listener, &err);
    if (status != PL_E_STOPPED || s->gave_up != 1) {
        fprintf(stderr, "rank %d: %d, %s, given up %d times\n", rank,
                (int)status, err.text, s->gave_up);
        _exit(1);
    }
    tiny_run_close(run);
    pl_comm_close(comm);
    run->comm = NULL;
    pl_heap_close(&heap);
    return 0;
}

static void make(tiny_run *run)
{
    static const char *const settings[] = { "--gradient_groups=4",
                                            "--batch_size=2",
                                            "--gradient_accumulation_steps=16",
                                            "--max_iters=2", "--threads=1" };
    tiny_run_make(run);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        tiny_run_set(run, settings[i]);
}

/* So many processes train until those in `who` (bits) are told to stop. */
static void stop_ranks(tiny_run *run, int ranks, unsigned who, size_t after,
                       double wait)
{
    pid_t others[MOST];
    setenv("PL_SOCKETS_FOLDER", run->folder.folder, 1);
    for (int i = 1; i < ranks; i++) {
        stopper s = { .is_meant = who >> i & 1, .after = after, .wait = wait };
        others[i] = fork();
        assert_true(others[i] >= 0);
        if (others[i] == 0)
            _exit(train_as(run, i, ranks, &s));
    }
    stopper s = { .is_meant = who & 1, .after = after, .wait = wait };
    int failed = train_as(run, 0, ranks, &s);
    for (int i = 1; i < ranks; i++) {
        int how;
        assert_int_equal(waitpid(others[i], &how, 0), others[i]);
        failed |= !WIFEXITED(how) || WEXITSTATUS(how) != 0;
    }
    assert_int_equal(failed, 0);
}

/* Stopped within its first update, and gone on with by one process. */
static void stop_and_go_on(int ranks, unsigned who, size_t after, double wait,
                           unsigned long long whole)
{
    tiny_run run;
    make(&run);
    stop_ranks(&run, ranks, who, after, wait);
    assert_true(tiny_run_has_step(&run, 0));
    tiny_run_set(&run, "--init_from=resume");
    tiny_run_open(&run);
    tiny_run_train(&run, 2);
    assert_true(tiny_run_hash(&run) == whole);
    tiny_run_remove(&run);
}

static unsigned long long train_undisturbed(void)
{
    tiny_run run;
    make(&run);
    tiny_run_open(&run);
    tiny_run_train(&run, 2);
    const unsigned long long hash = tiny_run_hash(&run);
    tiny_run_remove(&run);
    return hash;
}

/* Those who wait at their last micro-batch have voted already when another one
 * gives up. */
static void an_update_is_given_up_by_all_or_none(void **state)
{
    const unsigned long long whole = train_undisturbed();
    static const double ahead = 0.5, together = 0.0;
    (void)state;
    stop_and_go_on(2, 2, 1, ahead, whole); /* the other one */
    stop_and_go_on(2, 1, 1, ahead, whole); /* rank 0 */
    stop_and_go_on(2, 3, 3, together, whole);
    stop_and_go_on(4, 4, 1, ahead, whole);
    stop_and_go_on(4, 15, 2, together, whole);
    stop_and_go_on(4, 2, 0, together, whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_update_is_given_up_by_all_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
