/* Ranks that speak over sockets (tests/ranks/sockets_engine.c): one that is
 * busy is heard all the time, one that hangs isn't, and then all others know,
 * soon. */
#include "base/clock.h"
#include "comm/comm.h"
#include "support/scratch.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST = 4, BIG_BYTES = 4 * 1024 * 1024 };

static const double timeout = 1.0;

/* What rank `rank` does; 0, or what its process ends with. */
typedef int part(pl_comm *comm, int rank);

static int play(part *does, int rank, int ranks)
{
    char text[16];
    pl_comm *comm;
    pl_error err = { 0 };
    pl_heap heap = pl_heap_make(1 << 20);
    snprintf(text, sizeof text, "%d", rank);
    setenv("PL_SOCKETS_RANK", text, 1);
    snprintf(text, sizeof text, "%d", ranks);
    setenv("PL_SOCKETS_RANKS", text, 1);
    if (pl_comm_open(&comm, getenv("SOCKETS_ENGINE"), 5.0 * timeout, &heap,
                     &err)) {
        fprintf(stderr, "rank %d: %s\n", rank, err.text);
        return 1;
    }
    pl_comm_set_timeout(comm, timeout);
    const int code = does(comm, rank);
    if (code == 0)
        pl_comm_close(comm);
    pl_heap_close(&heap);
    return code;
}

/* Each in a process of its own. codes[i]: what rank i ended with; one that has
 * stopped itself is ended after the others: -1. */
static void play_all(part *does, int ranks, int stops, int codes[MOST])
{
    pid_t pids[MOST];
    scratch folder;
    scratch_open(&folder);
    setenv("PL_SOCKETS_FOLDER", folder.folder, 1);
    for (int i = 0; i < ranks; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            _exit(play(does, i, ranks));
    }
    for (int i = 0; i < ranks; i++) {
        int how;
        if (i == stops)
            continue;
        assert_int_equal(waitpid(pids[i], &how, 0), pids[i]);
        codes[i] = WIFEXITED(how) ? WEXITSTATUS(how) : 100 + WTERMSIG(how);
    }
    if (stops >= 0) {
        kill(pids[stops], SIGKILL);
        assert_int_equal(waitpid(pids[stops], NULL, 0), pids[stops]);
        codes[stops] = -1;
    }
    scratch_close(&folder);
}

/* ---- busy ---- */

/* As if it wrote a file: it says nothing itself for three times as long as a
 * silent rank is waited for. */
static int be_busy(pl_comm *comm, int rank)
{
    pl_error err = { 0 };
    int flag = 0;
    if (rank == 1)
        pl_clock_sleep(3.0 * timeout);
    if (!pl_comm_any(comm, &flag, &err))
        return 0;
    fprintf(stderr, "rank %d: %s\n", rank, err.text);
    return 1;
}

static void a_rank_that_is_busy_is_heard(void **state)
{
    int codes[MOST];
    (void)state;
    play_all(be_busy, 2, -1, codes);
    assert_int_equal(codes[0], 0);
    assert_int_equal(codes[1], 0);
}

/* ---- gone ---- */

static char big[BIG_BYTES];

/* Rank 3 hangs, rank 2 waits for it, with less patience than the others, which
 * compute. */
static int lose_one(pl_comm *comm, int rank)
{
    pl_comm_message message = { .handle = NULL };
    pl_error err = { 0 };
    pl_status status = PL_OK;
    if (rank == 3)
        kill(getpid(), SIGSTOP);
    const double began = pl_clock_seconds();
    if (rank == 2) {
        pl_comm_set_timeout(comm, 0.5 * timeout);
        status = pl_comm_begin_receive(comm, 3, big, sizeof big, &message,
                                       &err);
        if (!status)
            status = pl_comm_wait(comm, &message, &err);
        if (!strstr(err.text, "rank 3 has not been heard from"))
            return 1;
    } else {
        while (!status && pl_clock_seconds() - began < 10.0 * timeout) {
            pl_clock_sleep(0.01);
            status = pl_comm_beat(comm, &err);
        }
        if (!strstr(err.text, "rank 2 has ended the run: rank 3 has not")) {
            fprintf(stderr, "rank %d: %s\n", rank, err.text);
            return 2;
        }
    }
    if (status != PL_E_RANKS)
        return 3;
    if (pl_clock_seconds() - began > 4.0 * timeout)
        return 4;
    if (!pl_comm_beat(comm, &err) || pl_comm_was_told(comm) == (rank == 2))
        return 5;
    pl_comm_give_up(comm, &err);
    return 6;
}

/* Rank 3 hangs, and nobody waits for it: each of the others finds out by
 * itself, or is told. */
static int lose_one_unwaited(pl_comm *comm, int rank)
{
    pl_error err = { 0 };
    pl_status status = PL_OK;
    if (rank == 3)
        kill(getpid(), SIGSTOP);
    const double began = pl_clock_seconds();
    while (!status && pl_clock_seconds() - began < 10.0 * timeout) {
        pl_clock_sleep(0.01); /* computes */
        status = pl_comm_beat(comm, &err);
    }
    if (status != PL_E_RANKS || !strstr(err.text, "rank 3 has not been heard"))
        return 1;
    if (pl_clock_seconds() - began > 4.0 * timeout)
        return 2;
    pl_comm_give_up(comm, &err);
    return 3;
}

/* Rank 3 is gone, and the others end as those that have lost a rank. */
static void check_ends(part *does)
{
    int codes[MOST];
    play_all(does, 4, 3, codes);
    for (int i = 0; i < 3; i++)
        assert_int_equal(codes[i], pl_status_exit_code(PL_E_RANKS));
}

static void a_rank_that_nobody_waits_for_is_missed(void **state)
{
    (void)state;
    check_ends(lose_one_unwaited);
}

/* Before whoever found out has done anything else. */
static void all_are_told_who_is_gone(void **state)
{
    (void)state;
    check_ends(lose_one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_is_busy_is_heard),
        cmocka_unit_test(a_rank_that_nobody_waits_for_is_missed),
        cmocka_unit_test(all_are_told_who_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
