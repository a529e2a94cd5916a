/* file_call.h: how base/file's files make system calls: every one can be told
 * to fail by a test, and is worded in one manner when it fails. For src/base
 * alone. */
#ifndef PL_BASE_FILE_CALL_H
#define PL_BASE_FILE_CALL_H

#include "base/status.h"

#include <errno.h>

/* Asked before every system call: nonzero, with errno set, if this is the one
 * that fails (pl_file_fail_at). */
int pl_file_fails_now(void);

/* A system call that may be told to fail and that resumes when interrupted. */
#define PL_FILE_CALL(result, call)                                             \
    do {                                                                       \
        (result) = pl_file_fails_now() ? -1 : (call);                          \
    } while ((result) == -1 && errno == EINTR)

/* The same before a call that writes, renames, makes, cuts or removes
 * something, or waits for the disk to have it (pl_file_fail_every). */
int pl_file_change_fails_now(void);

#define PL_FILE_CHANGE(result, call)                                           \
    do {                                                                       \
        (result) = pl_file_change_fails_now() ? -1 : (call);                   \
    } while ((result) == -1 && errno == EINTR)

typedef struct pl_file_reason {
    char text[256];
} pl_file_reason;

/* What the system says about an errno, and what to do about it. */
pl_file_reason pl_file_reason_of(int error);

/* "cannot <attempt> <path>: <reason>" */
pl_status pl_file_refused(pl_error *err, const char *attempt, const char *path,
                          int error);

/* The same where a name to write to is a symbolic link (ELOOP at an open with
 * O_NOFOLLOW). */
pl_status pl_file_is_link(pl_error *err, const char *attempt, const char *path);

#endif
