/* file_call.c: see file_call.h. Owns the countdown to a test's fault and the
 * wording of what the system refused. */
#include "base/file_call.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

/* The one state of base/file that changes: off outside of tests. */
static struct {
    long countdown;
    int error;
    int happened;
    long every; /* of the calls that change something; 0: off */
    long from;  /* likewise, and all behind it */
    long changes;
} fault;

void pl_file_fail_at(long nth, int error)
{
    fault.countdown = nth;
    fault.error = error;
    fault.happened = 0;
}

void pl_file_fail_every(long nth, int error)
{
    fault.every = nth;
    fault.changes = 0;
    fault.error = error;
    fault.happened = 0;
}

void pl_file_fail_from(long nth, int error)
{
    fault.from = nth;
    fault.changes = 0;
    fault.error = error;
    fault.happened = 0;
}

int pl_file_fault_happened(void)
{
    return fault.happened;
}

int pl_file_fails_now(void)
{
    if (fault.countdown == 0 || --fault.countdown > 0)
        return 0;
    fault.happened = 1;
    errno = fault.error;
    return 1;
}

/* Counts only where a test asked for it: threads come by here too. */
static int is_due(void)
{
    if (fault.every == 0 && fault.from == 0)
        return 0;
    fault.changes++;
    return (fault.every > 0 && fault.changes % fault.every == 0) ||
           (fault.from > 0 && fault.changes >= fault.from);
}

int pl_file_change_fails_now(void)
{
    if (is_due()) {
        fault.happened = 1;
        errno = fault.error;
        return 1;
    }
    return pl_file_fails_now();
}

/* A sentence, or NULL. */
static const char *hint_of(int error)
{
    switch (error) {
    case ENOENT:
        return "Check the name, and that its folder exists";
    case ENOTDIR:
        return "A part of the path is a file, not a folder";
    case EACCES:
    case EPERM:
    case EROFS:
        return "Check the permissions of the file and of its folders";
    case ENOSPC:
    case EDQUOT:
        return "Free some space on that disk or choose a folder on another";
    case EFBIG:
        return "Raise this process's limit on files (ulimit -f unlimited), "
               "or choose a disk that takes larger ones";
    case EMFILE:
    case ENFILE:
        return "Too many files are open: raise the limit (ulimit -n)";
    default:
        return NULL;
    }
}

pl_file_reason pl_file_reason_of(int error)
{
    const char *hint = hint_of(error);
    pl_file_reason reason;
    if (hint)
        snprintf(reason.text, sizeof reason.text, "%s. %s", strerror(error),
                 hint);
    else
        snprintf(reason.text, sizeof reason.text, "%s", strerror(error));
    return reason;
}

pl_status pl_file_refused(pl_error *err, const char *attempt, const char *path,
                          int error)
{
    return pl_fail(err, PL_E_IO, "cannot %s %s: %s", attempt,
                   pl_path_shown(path), pl_file_reason_of(error).text);
}

pl_status pl_file_is_link(pl_error *err, const char *attempt, const char *path)
{
    return pl_fail(err, PL_E_IO,
                   "cannot %s %s: it is a symbolic link, and nothing is "
                   "written through one: what it points to may be somebody "
                   "else's. Remove it, or put a plain file in its place",
                   attempt, pl_path_shown(path));
}
