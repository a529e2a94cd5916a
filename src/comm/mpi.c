/* mpi.c: the engine over MPI, Open MPI's or MPICH's: the only user of mpi.h.
 * Becomes a library of its own, plimsoll-mpi.so, where MPI is found. */
#include "comm/engine.h"

#include <limits.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An MPI_Request is a number in one MPI and a pointer in another: they lie in a
 * table, and a handle is a place in it. */
enum { MOST_REQUESTS = 4096 };
static MPI_Request requests[MOST_REQUESTS];
static unsigned char used[MOST_REQUESTS];
static unsigned char is_sent[MOST_REQUESTS]; /* or it is received */
static int lengths[MOST_REQUESTS];

static int fail(char *why, const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    snprintf(why, PL_COMM_TEXT_BYTES, "%s: %.200s", what, text);
    return 1;
}

static void name_engine(char text[PL_COMM_TEXT_BYTES])
{
    static const char other[] = "MPICH Version:\t";
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = '\0';
    if (strncmp(version, other, sizeof other - 1) == 0)
        snprintf(text, PL_COMM_TEXT_BYTES, "MPICH %.*s", PL_COMM_TEXT_BYTES - 7,
                 version + sizeof other - 1);
    else
        snprintf(text, PL_COMM_TEXT_BYTES, "%.*s", PL_COMM_TEXT_BYTES - 1,
                 version);
}

/* What is said, and the code, when an alarm ends this process. */
static pl_comm_patience last;

static void leave(int signal)
{
    (void)signal;
    if (write(STDERR_FILENO, last.text, strlen(last.text)) < 0)
        last.text[0] = '\0'; /* nobody hears it */
    _Exit(last.exit_code);
}

static void lose_patience_after(const pl_comm_patience *patience)
{
    last = *patience;
    signal(SIGALRM, leave);
    alarm(last.seconds);
}

static int open_mpi(pl_comm_who *who, const pl_comm_patience *patience,
                    char *why)
{
    int provided = MPI_THREAD_SINGLE, started = 0;
    MPI_Initialized(&started);
    lose_patience_after(patience);
    /* one thread speaks at a time; the others only compute */
    int code = started ? MPI_SUCCESS
                       : MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED,
                                         &provided);
    alarm(0);
    if (code != MPI_SUCCESS)
        return fail(why, "MPI_Init_thread", code);
    if (!started && provided < MPI_THREAD_FUNNELED) {
        snprintf(why, PL_COMM_TEXT_BYTES,
                 "this MPI allows no threads beside it (MPI_THREAD_FUNNELED)");
        return 1;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    who->may_change_threads = provided >= MPI_THREAD_SERIALIZED;
    MPI_Comm_rank(MPI_COMM_WORLD, &who->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &who->ranks);
    name_engine(who->engine);
    return 0;
}

static int take(pl_comm_request *request, char *why)
{
    for (size_t i = 0; i < MOST_REQUESTS; i++)
        if (!used[i]) {
            used[i] = 1;
            request->handle = &requests[i];
            return 0;
        }
    snprintf(why, PL_COMM_TEXT_BYTES, "more than %d messages are under way",
             MOST_REQUESTS);
    return 1;
}

static int begin(int is_send, int other, int tag, void *data, size_t bytes,
                 pl_comm_request *request, char *why)
{
    if (bytes > INT_MAX) {
        snprintf(why, PL_COMM_TEXT_BYTES, "a message of %zu bytes", bytes);
        return 1;
    }
    if (take(request, why))
        return 1;
    is_sent[(MPI_Request *)request->handle - requests] = is_send != 0;
    lengths[(MPI_Request *)request->handle - requests] = (int)bytes;
    int code = is_send ? MPI_Isend(data, (int)bytes, MPI_BYTE, other, tag,
                                   MPI_COMM_WORLD, request->handle)
                       : MPI_Irecv(data, (int)bytes, MPI_BYTE, other, tag,
                                   MPI_COMM_WORLD, request->handle);
    if (code == MPI_SUCCESS)
        return 0;
    used[(MPI_Request *)request->handle - requests] = 0;
    return fail(why, is_send ? "MPI_Isend" : "MPI_Irecv", code);
}

static int send(int to, int tag, const void *data, size_t bytes,
                pl_comm_request *request, char *why)
{
    return begin(1, to, tag, (void *)(size_t)data, bytes, request, why);
}

static int receive(int from, int tag, void *data, size_t bytes,
                   pl_comm_request *request, char *why)
{
    return begin(0, from, tag, data, bytes, request, why);
}

static int done(pl_comm_request *request, int *is_done, char *why)
{
    MPI_Request *own = request->handle;
    const ptrdiff_t place = own - requests;
    MPI_Status arrived;
    int bytes = lengths[place], code = MPI_Test(own, is_done, &arrived);
    if (code != MPI_SUCCESS)
        return fail(why, "MPI_Test", code);
    if (!*is_done)
        return 0;
    used[place] = 0;
    if (!is_sent[place])
        MPI_Get_count(&arrived, MPI_BYTE, &bytes);
    if (bytes == lengths[place])
        return 0;
    snprintf(why, PL_COMM_TEXT_BYTES, "a message of %d bytes instead of %d",
             bytes, lengths[place]);
    return 1;
}

/* Cancelling waits for what has begun to arrive: the alarm is set first. */
static void close_mpi(const pl_comm_patience *patience)
{
    lose_patience_after(patience);
    for (size_t i = 0; i < MOST_REQUESTS; i++)
        if (used[i] && !is_sent[i]) {
            MPI_Cancel(&requests[i]);
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
            used[i] = 0;
        }
    MPI_Finalize();
    alarm(0);
}

/* MPI_Abort asks the launcher, which may be out of reach: then this process
 * ends alone. */
static void give_up(int exit_code)
{
    const pl_comm_patience patience = { .seconds = 5, .exit_code = exit_code };
    lose_patience_after(&patience);
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    _Exit(exit_code);
}

static const pl_comm_engine engine = {
    .version = PL_COMM_ENGINE_VERSION,
    .open = open_mpi,
    .send = send,
    .receive = receive,
    .done = done,
    .close = close_mpi,
    .give_up = give_up,
};

__attribute__((visibility("default"))) const pl_comm_engine *
pl_comm_engine_here(void);

const pl_comm_engine *pl_comm_engine_here(void)
{
    return &engine;
}
