/* comm.c: see comm.h.
 *
 * Two kinds of messages: data, which both sides expect, and news, which come at
 * any time: a beat (I am here), a stop, an end. For news a receive is always
 * under way from every rank. */
#include "comm/comm.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/memory.h"
#include "comm/engine.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Messages under way: the engine may copy them. */
enum { ROOM_BYTES = 16 * 1024 * 1024 };

enum { TAG_DATA = 1, TAG_NEWS = 2, NEWS_TEXT_BYTES = 232 };

typedef enum news_kind { NEWS_BEAT = 1, NEWS_STOP, NEWS_END } news_kind;

typedef struct news {
    uint32_t kind;
    uint32_t code; /* of an end: the status */
    char text[NEWS_TEXT_BYTES];
} news;

/* Another rank, as it is known here. */
typedef struct other {
    char host[PL_COMM_HOST_BYTES];
    double heard; /* when it was, last */
    news in, out;
    pl_comm_request receiving, sending;
    int is_sending;
} other;

struct pl_comm {
    const pl_comm_engine *engine;
    pl_comm_who who;
    double timeout, beaten; /* when all were told last that this one is here */
    double waited;
    uint64_t sent;
    size_t memory;  /* of the engine */
    int is_stopped; /* by another rank's news */
    int has_ended;  /* another rank has */
    pl_error end;   /* and why */
    other *others;  /* [ranks]; the own one is not used */
};

/* ---- opening ---- */

int pl_comm_started(const char *(*variable)(const char *name))
{
    static const char *const names[] = {
        "OMPI_COMM_WORLD_SIZE", /* Open MPI's mpirun */
        "PMI_SIZE",             /* MPICH's, and srun --mpi=pmi2 */
        "MPI_LOCALNRANKS",      /* an older MPICH's */
        "SLURM_STEP_NUM_TASKS", /* srun */
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = variable(names[i]);
        const long count = text ? strtol(text, NULL, 10) : 0;
        if (count > 0) /* a launcher within a launcher: the first is nearer */
            return count < 1 << 20 ? (int)count : 1 << 20;
    }
    return 1;
}

static pl_status begin_listening(pl_comm *comm, int rank, pl_error *err)
{
    other *o = &comm->others[rank];
    char why[PL_COMM_TEXT_BYTES] = "";
    if (comm->engine->receive(rank, TAG_NEWS, &o->in, sizeof o->in,
                              &o->receiving, why))
        return pl_fail(err, PL_E_RANKS, "nothing can be heard of rank %d: %s",
                       rank, why);
    return PL_OK;
}

static pl_status find_engine(const pl_comm_engine **engine, const char *path,
                             pl_error *err)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    pl_comm_engine_of *find = NULL;
    if (!library)
        return pl_fail(err, PL_E_RANKS,
                       "a launcher has started several processes, and what "
                       "lets them talk can't be opened: %s. Install MPI "
                       "(Debian's libopenmpi-dev) and build again",
                       dlerror());
    *(void **)(void *)&find = dlsym(library, "pl_comm_engine_here");
    *engine = find ? find() : NULL;
    if (!*engine || (*engine)->version != PL_COMM_ENGINE_VERSION)
        return pl_fail(err, PL_E_RANKS,
                       "%s belongs to another version of this program", path);
    return PL_OK;
}

/* Within MPI: `what` is to be true after so many seconds. */
static pl_comm_patience wait_until(const char *what, double seconds)
{
    pl_comm_patience patience = {
        .seconds = seconds < 1e6 ? (unsigned)ceil(seconds) : 1000000,
        .exit_code = pl_status_exit_code(PL_E_RANKS),
    };
    snprintf(patience.text, sizeof patience.text,
             "warning: not all ranks have %s within %u s (see comm_timeout): "
             "one has ended, hangs, or can't be reached\n",
             what, patience.seconds);
    return patience;
}

pl_status pl_comm_open(pl_comm **out, const char *path, double timeout_seconds,
                       pl_heap *heap, pl_error *err)
{
    char why[PL_COMM_TEXT_BYTES] = "";
    pl_comm *comm = NULL;
    const pl_comm_engine *engine = NULL;
    size_t before = 0, after = 0;
    *out = NULL;
    pl_status status = find_engine(&engine, path, err);
    if (!status)
        status = pl_heap_take(heap, &comm, 1, sizeof *comm, err);
    if (status)
        return status;
    *comm = (pl_comm){ .engine = engine, .timeout = timeout_seconds };
    status = pl_memory_now_bytes(&before, err);
    if (status)
        return status;
    const pl_comm_patience patience = wait_until("begun", timeout_seconds);
    if (engine->open(&comm->who, &patience, why))
        return pl_fail(err, PL_E_RANKS, "%s", why);
    status = pl_memory_now_bytes(&after, err);
    if (status)
        return status;
    comm->memory = (after > before ? after - before : 0) + ROOM_BYTES;
    const int ranks = comm->who.ranks;
    status = pl_heap_take(heap, &comm->others, (size_t)ranks,
                          sizeof *comm->others, err);
    const double now = pl_clock_seconds();
    comm->beaten = now;
    for (int i = 0; i < ranks && !status; i++) {
        comm->others[i] = (other){ .heard = now };
        if (i != comm->who.rank)
            status = begin_listening(comm, i, err);
    }
    *out = comm;
    return status;
}

void pl_comm_close(pl_comm *comm)
{
    static const double more = 5.0; /* all is done; files are being closed */
    if (!comm)
        return;
    const pl_comm_patience patience = wait_until("ended", comm->timeout + more);
    for (int i = 0; i < comm->who.ranks; i++) /* no more news */
        if (i != comm->who.rank)
            comm->engine->cancel(&comm->others[i].receiving);
    comm->engine->close(&patience);
}

int pl_comm_rank(const pl_comm *comm)
{
    return comm->who.rank;
}

int pl_comm_ranks(const pl_comm *comm)
{
    return comm->who.ranks;
}

const char *pl_comm_engine_name(const pl_comm *comm)
{
    return comm->who.engine;
}

int pl_comm_may_change_threads(const pl_comm *comm)
{
    return comm->who.may_change_threads;
}

void pl_comm_set_timeout(pl_comm *comm, double seconds)
{
    comm->timeout = seconds;
}

void pl_comm_name_rank(pl_comm *comm, int rank, const char *host)
{
    snprintf(comm->others[rank].host, PL_COMM_HOST_BYTES, "%s", host);
}

size_t pl_comm_memory_bytes(const pl_comm *comm)
{
    return comm->memory;
}

/* Open MPI 4.1 was seen with 7.8 to 8.2 MB, on 2 to 16 ranks. */
size_t pl_comm_usual_bytes(size_t ranks)
{
    enum { FIXED_BYTES = 10 * 1024 * 1024, RANK_BYTES = 16 * 1024 };
    return FIXED_BYTES + ranks * RANK_BYTES + ROOM_BYTES;
}

int pl_comm_was_told(const pl_comm *comm)
{
    return comm->has_ended;
}

/* Who is there was heard a moment ago; who is gone, not for a timeout or, where
 * others have noticed before this one, almost. */
int pl_comm_is_first_left(const pl_comm *comm)
{
    const double since = pl_clock_seconds() - 0.5 * comm->timeout;
    for (int i = 0; i < comm->who.rank; i++)
        if (comm->others[i].heard > since)
            return 0;
    return 1;
}

uint64_t pl_comm_sent_bytes(const pl_comm *comm)
{
    return comm->sent;
}

double pl_comm_waited_seconds(const pl_comm *comm)
{
    return comm->waited;
}

int pl_comm_is_stopped(const pl_comm *comm)
{
    return comm->is_stopped;
}

/* ---- news ---- */

pl_comm_name pl_comm_rank_name(const pl_comm *comm, int rank)
{
    pl_comm_name name;
    const char *host = comm->others[rank].host;
    snprintf(name.text, sizeof name.text, host[0] ? "rank %d (%s)" : "rank %d",
             rank, host);
    return name;
}

static pl_status broken(const pl_comm *comm, int rank, const char *why,
                        pl_error *err)
{
    comm->others[rank].heard = -HUGE_VAL;
    return pl_fail(err, PL_E_RANKS, "the connection to %s is broken: %s",
                   pl_comm_rank_name(comm, rank).text, why);
}

/* News of `rank`, if the last ones have left; a beat can wait, an end is sent
 * over it. */
static pl_status tell(pl_comm *comm, int rank, const news *what, pl_error *err)
{
    other *o = &comm->others[rank];
    char why[PL_COMM_TEXT_BYTES] = "";
    int is_done = 1;
    if (o->is_sending && comm->engine->done(&o->sending, &is_done, why))
        return broken(comm, rank, why, err);
    if (!is_done && what->kind == NEWS_BEAT)
        return PL_OK;
    while (!is_done) {
        if (comm->engine->done(&o->sending, &is_done, why))
            return broken(comm, rank, why, err);
        if (pl_clock_seconds() - o->heard > comm->timeout)
            return PL_OK; /* it is gone: whoever waits for it will say so */
    }
    o->out = *what;
    o->is_sending = 1;
    if (comm->engine->send(rank, TAG_NEWS, &o->out, sizeof o->out, &o->sending,
                           why))
        return broken(comm, rank, why, err);
    return PL_OK;
}

static pl_status tell_all(pl_comm *comm, const news *what, pl_error *err)
{
    pl_status status = PL_OK;
    for (int i = 0; i < comm->who.ranks && !status; i++)
        if (i != comm->who.rank)
            status = tell(comm, i, what, err);
    return status;
}

static void take_news(pl_comm *comm, int rank)
{
    const other *o = &comm->others[rank];
    const int text = (int)strnlen(o->in.text, sizeof o->in.text);
    if (o->in.kind == NEWS_STOP)
        comm->is_stopped = 1;
    if (o->in.kind != NEWS_END || comm->has_ended)
        return;
    comm->has_ended = 1;
    pl_fail(&comm->end, PL_E_RANKS, "%s has ended the run: %.*s",
            pl_comm_rank_name(comm, rank).text, text, o->in.text);
}

/* What has arrived of all others. */
static pl_status listen(pl_comm *comm, pl_error *err)
{
    for (int i = 0; i < comm->who.ranks; i++) {
        other *o = &comm->others[i];
        char why[PL_COMM_TEXT_BYTES] = "";
        int is_done = 0;
        if (i == comm->who.rank)
            continue;
        if (comm->engine->done(&o->receiving, &is_done, why))
            return broken(comm, i, why, err);
        if (!is_done)
            continue;
        o->heard = pl_clock_seconds();
        take_news(comm, i);
        pl_status status = begin_listening(comm, i, err);
        if (status)
            return status;
    }
    if (comm->has_ended)
        return pl_fail(err, comm->end.status, "%s", comm->end.text);
    return PL_OK;
}

pl_status pl_comm_beat(pl_comm *comm, pl_error *err)
{
    const double now = pl_clock_seconds(), between = comm->timeout / 8.0;
    const news beat = { .kind = NEWS_BEAT };
    if (now - comm->beaten < (between < 1.0 ? between : 1.0))
        return PL_OK;
    comm->beaten = now;
    pl_status status = listen(comm, err);
    return status ? status : tell_all(comm, &beat, err);
}

pl_status pl_comm_say_stop(pl_comm *comm, pl_error *err)
{
    const news stop = { .kind = NEWS_STOP };
    comm->is_stopped = 1;
    return tell_all(comm, &stop, err);
}

void pl_comm_give_up(pl_comm *comm, const pl_error *why)
{
    static const double patience = 1.0;
    news end = { .kind = NEWS_END, .code = (uint32_t)why->status };
    pl_error ignored;
    snprintf(end.text, sizeof end.text, "%.*s", NEWS_TEXT_BYTES - 1, why->text);
    if (!comm->has_ended && !tell_all(comm, &end, &ignored)) {
        const double began = pl_clock_seconds();
        for (int i = 0; i < comm->who.ranks; i++) {
            char text[PL_COMM_TEXT_BYTES];
            int is_done = i == comm->who.rank;
            while (!is_done && pl_clock_seconds() - began < patience)
                if (comm->engine->done(&comm->others[i].sending, &is_done,
                                       text))
                    break;
        }
        /* the first says it, too, as soon as it looks: within a second */
        pl_clock_sleep(pl_comm_is_first_left(comm) ? 0.25 * patience
                                                   : 1.5 * patience);
    } else {
        pl_clock_sleep(2.0 * patience); /* who found out ends all */
    }
    comm->engine->give_up(pl_status_exit_code(why->status));
}

/* ---- data ---- */

pl_status pl_comm_begin_send(pl_comm *comm, int to, const void *data,
                             size_t bytes, pl_comm_message *message,
                             pl_error *err)
{
    char why[PL_COMM_TEXT_BYTES] = "";
    pl_comm_request request;
    if (comm->engine->send(to, TAG_DATA, data, bytes, &request, why))
        return broken(comm, to, why, err);
    *message = (pl_comm_message){ request.handle, to };
    comm->sent += bytes;
    return PL_OK;
}

pl_status pl_comm_begin_receive(pl_comm *comm, int from, void *data,
                                size_t bytes, pl_comm_message *message,
                                pl_error *err)
{
    char why[PL_COMM_TEXT_BYTES] = "";
    pl_comm_request request;
    if (comm->engine->receive(from, TAG_DATA, data, bytes, &request, why))
        return broken(comm, from, why, err);
    *message = (pl_comm_message){ request.handle, from };
    return PL_OK;
}

static pl_status silent(const pl_comm *comm, int rank, pl_error *err)
{
    return pl_fail(err, PL_E_RANKS,
                   "%s has not been heard from for %.0f s (comm_timeout): it "
                   "has ended, hangs, or can't be reached",
                   pl_comm_rank_name(comm, rank).text, comm->timeout);
}

pl_status pl_comm_look(pl_comm *comm, pl_comm_message *message, int *is_done,
                       pl_error *err)
{
    char why[PL_COMM_TEXT_BYTES] = "";
    pl_comm_request request = { message->handle };
    *is_done = !message->handle;
    if (*is_done)
        return PL_OK;
    if (comm->engine->done(&request, is_done, why))
        return broken(comm, message->other, why, err);
    if (*is_done) {
        comm->others[message->other].heard = pl_clock_seconds();
        message->handle = NULL;
    }
    return PL_OK;
}

/* The same, and what else there is to do while waiting. */
static pl_status look_around(pl_comm *comm, pl_comm_message *message,
                             int *is_done, pl_error *err)
{
    pl_status status = pl_comm_look(comm, message, is_done, err);
    if (status || *is_done)
        return status;
    status = listen(comm, err);
    if (!status)
        status = pl_comm_beat(comm, err);
    if (status)
        return status;
    if (pl_clock_seconds() - comm->others[message->other].heard > comm->timeout)
        return silent(comm, message->other, err);
    return PL_OK;
}

/* Whoever waited gives up, and its memory may be another's soon. */
static void forget(pl_comm *comm, pl_comm_message *message)
{
    pl_comm_request request = { message->handle };
    if (message->handle)
        comm->engine->cancel(&request);
    message->handle = NULL;
}

pl_status pl_comm_wait(pl_comm *comm, pl_comm_message *message, pl_error *err)
{
    enum { LOOKS = 64 }; /* before it sleeps between them */
    static const double nap = 50e-6;
    const double began = pl_clock_seconds();
    pl_status status = PL_OK;
    int is_done = message->handle == NULL;
    for (int i = 0; !is_done && !status; i++) {
        if (i >= LOOKS)
            pl_clock_sleep(nap);
        status = look_around(comm, message, &is_done, err);
    }
    comm->waited += pl_clock_seconds() - began;
    if (status)
        forget(comm, message);
    return status;
}

pl_status pl_comm_exchange(pl_comm *comm, int partner, const void *out,
                           void *in, size_t bytes, pl_error *err)
{
    pl_comm_message sending = { NULL, 0 }, receiving = { NULL, 0 };
    pl_status status = pl_comm_begin_receive(comm, partner, in, bytes,
                                             &receiving, err);
    if (!status)
        status = pl_comm_begin_send(comm, partner, out, bytes, &sending, err);
    if (!status)
        status = pl_comm_wait(comm, &receiving, err);
    if (!status)
        return pl_comm_wait(comm, &sending, err);
    forget(comm, &receiving);
    forget(comm, &sending);
    return status;
}

/* A binomial tree: who has it sends it twice as far each time. */
pl_status pl_comm_broadcast(pl_comm *comm, void *data, size_t bytes,
                            pl_error *err)
{
    const int rank = comm->who.rank, ranks = comm->who.ranks;
    pl_status status = PL_OK;
    for (int far = 1; far < ranks && !status; far *= 2) {
        pl_comm_message message = { NULL, 0 };
        if (rank < far && rank + far < ranks)
            status = pl_comm_begin_send(comm, rank + far, data, bytes, &message,
                                        err);
        else if (rank >= far && rank < 2 * far)
            status = pl_comm_begin_receive(comm, rank - far, data, bytes,
                                           &message, err);
        if (!status)
            status = pl_comm_wait(comm, &message, err);
    }
    return status;
}

/* Recursive doubling: after each round a rank has what twice as many had. */
pl_status pl_comm_gather_all(pl_comm *comm, void *all, size_t bytes,
                             pl_error *err)
{
    const int rank = comm->who.rank, ranks = comm->who.ranks;
    pl_status status = PL_OK;
    PL_CHECK((ranks & (ranks - 1)) == 0);
    for (int far = 1; far < ranks && !status; far *= 2) {
        const int partner = rank ^ far, own = rank & ~(far - 1),
                  theirs = partner & ~(far - 1);
        status = pl_comm_exchange(
            comm, partner, (char *)all + (size_t)own * bytes,
            (char *)all + (size_t)theirs * bytes, (size_t)far * bytes, err);
    }
    return status;
}

pl_status pl_comm_any(pl_comm *comm, int *flag, pl_error *err)
{
    pl_status status = PL_OK;
    for (int far = 1; far < comm->who.ranks && !status; far *= 2) {
        int theirs = 0;
        status = pl_comm_exchange(comm, comm->who.rank ^ far, flag, &theirs,
                                  sizeof theirs, err);
        *flag = *flag || theirs;
    }
    return status;
}
