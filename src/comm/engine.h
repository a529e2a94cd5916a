/* engine.h: what carries bytes between the processes of a run: a table of
 * functions in a library of its own, so that the program needs no MPI.
 *
 * comm.c opens it, and only where a launcher has started several processes. The
 * library exports one function, pl_comm_engine_here. */
#ifndef PL_COMM_ENGINE_H
#define PL_COMM_ENGINE_H

#include <stddef.h>

enum { PL_COMM_ENGINE_VERSION = 3, PL_COMM_TEXT_BYTES = 256 };

/* Who this process is, among all that were started together. */
typedef struct pl_comm_who {
    int rank, ranks;
    int may_change_threads;          /* several may call, in turns */
    char engine[PL_COMM_TEXT_BYTES]; /* "Open MPI 4.1.4", for people */
} pl_comm_who;

/* A message that is under way. */
typedef struct pl_comm_request {
    void *handle; /* the engine's own */
} pl_comm_request;

/* Opening and closing wait for all others within MPI, where nobody looks at a
 * clock: after so many seconds the process writes `text`, a whole line, to
 * stderr and ends with the code. */
typedef struct pl_comm_patience {
    unsigned seconds;
    int exit_code;
    char text[PL_COMM_TEXT_BYTES];
} pl_comm_patience;

/* Functions that can fail return 0, or leave a text for people in `why`, which
 * holds PL_COMM_TEXT_BYTES, and return another number. All are called by one
 * thread at a time. Between two processes messages of one tag arrive in their
 * order. */
typedef struct pl_comm_engine {
    unsigned version; /* PL_COMM_ENGINE_VERSION */
    int (*open)(pl_comm_who *who, const pl_comm_patience *patience, char *why);
    /* The bytes stay untouched, or unread, until it is done. */
    int (*send)(int to, int tag, const void *data, size_t bytes,
                pl_comm_request *request, char *why);
    int (*receive)(int from, int tag, void *data, size_t bytes,
                   pl_comm_request *request, char *why);
    /* Whether it is done; then the request is no more. Moves others on, too. */
    int (*done)(pl_comm_request *request, int *is_done, char *why);
    /* Waits for all others; only after a run that ended as it should. What is
     * still to be received is forgotten. */
    void (*close)(const pl_comm_patience *patience);
    /* Ends all processes of the run that it can reach, and this one. */
    void (*give_up)(int exit_code);
} pl_comm_engine;

typedef const pl_comm_engine *pl_comm_engine_of(void);

#endif
