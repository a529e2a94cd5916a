/* signals.c: what a signal does to a command. */
#include "cli/command.h"

#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int caught; /* any thread may be the one that is interrupted */

static atomic_int is_silent;

static void say(const char *text, size_t bytes)
{
    if (atomic_load(&is_silent))
        return;
    ssize_t ignored = write(STDERR_FILENO, text, bytes);
    (void)ignored;
}

/* The next one of the same kind kills at once (SA_RESETHAND). */
static void remember(int number)
{
    static const char text[] =
        "\nstopping; the same signal once more quits at once\n";
    atomic_store(&caught, number);
    say(text, sizeof text - 1);
}

/* Asks for less than the others, so it never takes their place. */
static void remember_gently(int number)
{
    static const char text[] =
        "\nstopping as soon as no update is under way; Ctrl-C is quicker\n";
    int none = 0;
    if (atomic_compare_exchange_strong(&caught, &none, number))
        say(text, sizeof text - 1);
}

void pl_cli_catch_signals(void)
{
    struct sigaction action = { 0 };
    action.sa_handler = remember;
    action.sa_flags = SA_RESTART | (int)SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN); /* a reader that went away: no death */
}

void pl_cli_catch_signals_silently(void)
{
    atomic_store(&is_silent, 1);
    pl_cli_catch_signals();
    pl_cli_catch_gentle_signal();
}

int pl_cli_signal_elsewhere(void)
{
    int none = 0;
    return atomic_compare_exchange_strong(&caught, &none, SIGTERM);
}

void pl_cli_catch_gentle_signal(void)
{
    struct sigaction action = { 0 };
    action.sa_handler = remember_gently;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGUSR1, &action, NULL);
}

int pl_cli_signal(void)
{
    return atomic_load(&caught);
}
