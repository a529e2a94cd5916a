/* live_process.c: see live_process.h. */
#include "cli/live_process.h"
#include "base/path.h"
#include "cli/term.h"
#include "web/live.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the new process: never returns. The pipe's end tells it that the run is
 * over; a run that is killed is told of by the kernel. */
static void become_page(int parent, int input, const char *out_dir,
                        const char *port)
{
    char folder[PL_PATH_BYTES], setting[32];
    char *const with_port[] = { "plimsoll", "live", "--until_eof", setting,
                                "--",       folder, NULL };
    char *const without[] = { "plimsoll", "live", "--until_eof",
                              "--",       folder, NULL };
    snprintf(folder, sizeof folder, "%s", out_dir);
    snprintf(setting, sizeof setting, "--port=%s", port ? port : "");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(input, STDIN_FILENO) < 0)
        _exit(1);
    execv("/proc/self/exe", port ? with_port : without);
    _exit(127);
}

pl_status pl_live_process_start(pl_live_process *live, const char *out_dir,
                                const char *port, pl_error *err)
{
    int ends[2];
    if (port &&
        (strlen(port) > 5 || strspn(port, "0123456789") != strlen(port)))
        return pl_fail(err, PL_E_USAGE,
                       "--live=%s: a port is a number from 0 to 65535, where 0 "
                       "is any that is free. `--live` alone takes %d",
                       port, (int)PL_LIVE_PORT);
    if (pipe2(ends, O_CLOEXEC) != 0) {
        pl_log_say(&pl_term_log, PL_LOG_WARN,
                   "there is no live page: %s. The run goes on without it",
                   strerror(errno));
        return PL_OK;
    }
    fflush(stdout);
    const int self = getpid(), pid = fork();
    if (pid == 0)
        become_page(self, ends[0], out_dir, port);
    close(ends[0]);
    if (pid < 0) {
        pl_log_say(&pl_term_log, PL_LOG_WARN,
                   "there is no live page: %s. The run goes on without it",
                   strerror(errno));
        close(ends[1]);
        return PL_OK;
    }
    *live = (pl_live_process){ .pid = pid, .pipe = ends[1] };
    return PL_OK;
}

size_t pl_live_process_bytes(const pl_live_process *live)
{
    return live->pid ? (size_t)PL_LIVE_BYTES : 0;
}

void pl_live_process_end(pl_live_process *live)
{
    if (!live->pid)
        return;
    close(live->pipe);
    kill(live->pid, SIGTERM);
    waitpid(live->pid, NULL, 0);
    *live = (pl_live_process)PL_LIVE_NO_PROCESS;
}
