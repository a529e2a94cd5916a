/* status.h: how a failure of the world travels.
 *
 * A function that can fail because of the world (a file, the user's input,
 * the machine's memory) returns a pl_status and takes a trailing pl_error *.
 * The message is written where the knowledge is: path, tensor, line, what was
 * expected, what was found, what to do. `err` may be NULL and is untouched on
 * success. Our own mistakes are PL_CHECK's business (check.h). */
#ifndef PL_BASE_STATUS_H
#define PL_BASE_STATUS_H

/* One table of codes: enum, name, the process's exit code, and what it means,
 * for `plimsoll --help`. */
#define PL_STATUS_TABLE(X)                                                     \
    X(PL_OK, "ok", 0, "done")                                                  \
    X(PL_E_IO, "input/output", 1,                                              \
      "a file or folder: missing, the wrong kind, in use, no room")            \
    X(PL_E_USAGE, "usage", 2,                                                  \
      "the command line: an unknown or missing command, key or argument")      \
    X(PL_E_CONFIG, "config", 3,                                                \
      "a config file, or a value that can't be or doesn't go with others")     \
    X(PL_E_FORMAT, "format", 4,                                                \
      "what a file holds: broken, empty, or not of this model or data")        \
    X(PL_E_MEMORY, "memory", 5,                                                \
      "it doesn't fit the memory: a run, or a plan of one")                    \
    X(PL_E_UNSUPPORTED, "unsupported", 6,                                      \
      "sound, but nothing that this program does")                             \
    X(PL_E_RANKS, "ranks", 7,                                                  \
      "another process of the run ended, hangs or can't be reached")           \
    X(PL_E_STOPPED, "stopped", 130,                                            \
      "stopped by Ctrl-C (by another signal: 128 + its number)")

typedef enum pl_status {
#define PL_STATUS_ENUM(code, name, exit_code, meaning) code,
    PL_STATUS_TABLE(PL_STATUS_ENUM)
#undef PL_STATUS_ENUM
        PL_STATUS_COUNT
} pl_status;

enum { PL_ERROR_TEXT_BYTES = 1536 };

typedef struct pl_error {
    pl_status status;
    char text[PL_ERROR_TEXT_BYTES]; /* UTF-8, may have several lines */
} pl_error;

#define PL_MUST_CHECK        __attribute__((warn_unused_result))
#define PL_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Fills `err` (if any) and returns `status`: `return pl_fail(err, ...)`. */
PL_PRINTF(3, 4)
pl_status pl_fail(pl_error *err, pl_status status, const char *fmt, ...);

/* Puts "prefix" before the message that is there: context on the way up. */
PL_PRINTF(3, 4)
pl_status pl_fail_in(pl_error *err, pl_status status, const char *fmt, ...);

const char *pl_status_name(pl_status status);
const char *pl_status_meaning(pl_status status);

/* What a process that ends with `status` returns to its shell. */
int pl_status_exit_code(pl_status status);

#endif
