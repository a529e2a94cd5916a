/* asserts.c: see asserts.h. */
#include "support/asserts.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" doesn't say \"%s\"", text, part);
}

static void die_into(int fd, void (*act)(void *context), void *context)
{
    const struct rlimit none = { 0, 0 };
    setrlimit(RLIMIT_CORE, &none);
    signal(SIGABRT, SIG_DFL);
    dup2(fd, STDERR_FILENO);
    act(context);
    _exit(0);
}

void assert_dies(void (*act)(void *context), void *context, const char *part)
{
    char said[4096];
    size_t used = 0;
    int ends[2], how;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        die_into(ends[1], act, context);
    close(ends[1]);
    for (;;) {
        ssize_t got = read(ends[0], said + used, sizeof said - 1 - used);
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    said[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &how, 0), child);
    if (!WIFSIGNALED(how) || WTERMSIG(how) != SIGABRT)
        fail_msg("it lived (wait status %#x) and said \"%s\"", (unsigned)how,
                 said);
    assert_contains(said, "internal error");
    assert_contains(said, part);
}
