/* comm.c: see comm.h; comm_together.c has what all ranks do at once.
 *
 * Two kinds of messages: data, which both sides expect, and news, which come at
 * any time: a beat (I am here), a stop, an end. For news a receive is always
 * under way from every rank.
 *
 * Where the engine allows several threads, one of them beats by itself (the
 * pulse): whatever holds a rank up, a file that is written for one, the others
 * hear of it. Its lock is that of the engine and of what is known here. */
#include "comm/comm.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "comm/engine.h"

#include <dlfcn.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
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
    size_t memory;         /* of the engine */
    atomic_int is_stopped; /* by another rank's news */
    atomic_int has_ended;  /* another rank has */
    pl_error end;          /* why the run is over; no status: it isn't */
    int is_told;           /* that: nothing is asked of the engine any more */
    other *others;         /* [ranks]; the own one is not used */
    pl_pulse *pulse;       /* NULL: nobody beats but who calls */
};

/* ---- opening ---- */

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

/* Seconds between beats. */
static double between_beats(const pl_comm *comm)
{
    return fmin(comm->timeout / 8.0, 1.0);
}

static void beat_aside(void *context);

pl_status pl_comm_open(pl_comm **out, const char *path, double timeout_seconds,
                       pl_heap *heap, pl_error *err)
{
    char why[PL_COMM_TEXT_BYTES] = "";
    pl_comm *comm = NULL;
    const pl_comm_engine *engine = NULL;
    size_t before = 0, after = 0;
    *out = NULL;
    pl_status status = find_engine(&engine, path, err);
    PL_CHECK(status || engine);
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
    comm->memory = (after > before ? after - before : 0) + ROOM_BYTES +
                   PL_THREAD_STACK_BYTES;
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
    if (!status && comm->who.may_change_threads)
        status = pl_pulse_open(&comm->pulse, beat_aside, comm,
                               between_beats(comm), heap, err);
    *out = comm;
    return status;
}

void pl_comm_close(pl_comm *comm)
{
    static const double more = 5.0; /* all is done; files are being closed */
    if (!comm)
        return;
    const pl_comm_patience patience = wait_until("ended", comm->timeout + more);
    pl_pulse_close(comm->pulse);
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
    pl_pulse_lock(comm->pulse);
    comm->timeout = seconds;
    pl_pulse_unlock(comm->pulse);
    pl_pulse_set_seconds(comm->pulse, between_beats(comm));
}

void pl_comm_name_rank(pl_comm *comm, int rank, const char *host)
{
    pl_pulse_lock(comm->pulse);
    snprintf(comm->others[rank].host, PL_COMM_HOST_BYTES, "%s", host);
    pl_pulse_unlock(comm->pulse);
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
    int is_first = 1;
    pl_pulse_lock(comm->pulse);
    const double since = pl_clock_seconds() - 0.5 * comm->timeout;
    for (int i = 0; i < comm->who.rank; i++)
        is_first = is_first && !(comm->others[i].heard > since);
    pl_pulse_unlock(comm->pulse);
    return is_first;
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

/* Whether the last news for it have left. */
static pl_status look_at_news(pl_comm *comm, int rank, int *have_left,
                              pl_error *err)
{
    other *o = &comm->others[rank];
    char why[PL_COMM_TEXT_BYTES] = "";
    *have_left = 1;
    if (o->is_sending && comm->engine->done(&o->sending, have_left, why))
        return broken(comm, rank, why, err);
    o->is_sending = !*have_left;
    return PL_OK;
}

static pl_status send_news(pl_comm *comm, int rank, const news *what,
                           pl_error *err)
{
    other *o = &comm->others[rank];
    char why[PL_COMM_TEXT_BYTES] = "";
    o->out = *what;
    if (comm->engine->send(rank, TAG_NEWS, &o->out, sizeof o->out, &o->sending,
                           why))
        return broken(comm, rank, why, err);
    o->is_sending = 1;
    return PL_OK;
}

/* News of `rank`, if the last ones have left; a beat can wait. */
static pl_status tell(pl_comm *comm, int rank, const news *what, pl_error *err)
{
    static const double nap = 1e-3;
    int have_left;
    pl_status status = look_at_news(comm, rank, &have_left, err);
    while (!status && !have_left && what->kind != NEWS_BEAT &&
           pl_clock_seconds() - comm->others[rank].heard <= comm->timeout) {
        pl_pulse_unlock(comm->pulse); /* it isn't to fall silent meanwhile */
        pl_clock_sleep(nap);
        pl_pulse_lock(comm->pulse);
        status = look_at_news(comm, rank, &have_left, err);
    }
    /* or it is gone: whoever waits for it will say so */
    return status || !have_left ? status : send_news(comm, rank, what, err);
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

/* All that has arrived of it: who was stopped for a while has a lot to hear. */
static pl_status listen_to(pl_comm *comm, int rank, pl_error *err)
{
    other *o = &comm->others[rank];
    char why[PL_COMM_TEXT_BYTES] = "";
    for (;;) {
        int is_done = 0;
        if (comm->engine->done(&o->receiving, &is_done, why))
            return broken(comm, rank, why, err);
        if (!is_done)
            return PL_OK;
        o->heard = pl_clock_seconds();
        take_news(comm, rank);
        pl_status status = begin_listening(comm, rank, err);
        if (status)
            return status;
    }
}

/* What has arrived of all others. */
static pl_status listen(pl_comm *comm, pl_error *err)
{
    for (int i = 0; i < comm->who.ranks; i++) {
        pl_status status = i == comm->who.rank ? PL_OK
                                               : listen_to(comm, i, err);
        if (status)
            return status;
    }
    if (comm->has_ended)
        return pl_fail(err, comm->end.status, "%s", comm->end.text);
    return PL_OK;
}

static pl_status silent(const pl_comm *comm, int rank, pl_error *err)
{
    return pl_fail(err, PL_E_RANKS,
                   "%s has not been heard from for %.0f s (comm_timeout): it "
                   "has ended, hangs, or can't be reached",
                   pl_comm_rank_name(comm, rank).text, comm->timeout);
}

/* Whoever it is, also where nobody waits for it: an update may take longer. */
static pl_status miss_the_silent(const pl_comm *comm, pl_error *err)
{
    const double since = pl_clock_seconds() - comm->timeout;
    for (int i = 0; i < comm->who.ranks; i++)
        if (i != comm->who.rank && comm->others[i].heard < since)
            return silent(comm, i, err);
    return PL_OK;
}

static pl_status beat(pl_comm *comm, pl_error *err)
{
    const news beat = { .kind = NEWS_BEAT };
    comm->beaten = pl_clock_seconds();
    pl_status status = listen(comm, err);
    if (!status)
        status = tell_all(comm, &beat, err);
    return status ? status : miss_the_silent(comm, err);
}

static pl_status beat_if_due(pl_comm *comm, pl_error *err)
{
    return pl_clock_seconds() - comm->beaten < between_beats(comm)
               ? PL_OK
               : beat(comm, err);
}

/* The pulse's, which has the lock. What it finds out the next who calls is told
 * of. */
static void beat_aside(void *context)
{
    pl_comm *comm = context;
    pl_error trouble;
    if (!comm->end.status && beat(comm, &trouble))
        comm->end = trouble;
}

/* ---- the end ---- */

/* All that listen, within a moment; one that doesn't is no reason to leave
 * another out. */
static void tell_end(pl_comm *comm, const pl_error *why)
{
    static const double patience = 1.0, nap = 1e-3;
    const double began = pl_clock_seconds();
    news end = { .kind = NEWS_END, .code = (uint32_t)why->status };
    int left = comm->who.ranks - 1;
    snprintf(end.text, sizeof end.text, "%.*s", NEWS_TEXT_BYTES - 1, why->text);
    while (left > 0 && pl_clock_seconds() - began < patience) {
        left = 0;
        for (int i = 0; i < comm->who.ranks; i++) {
            const int has_end = comm->others[i].out.kind == NEWS_END;
            int have_left = 1;
            pl_error ignored;
            if (i == comm->who.rank ||
                look_at_news(comm, i, &have_left, &ignored))
                continue;
            if (have_left && !has_end && send_news(comm, i, &end, &ignored))
                continue;
            left += !have_left || !has_end;
        }
        if (left > 0)
            pl_clock_sleep(nap);
    }
}

/* Whoever asks something of the engine enters, and leaves with what became of
 * it. */
static pl_status enter(pl_comm *comm, pl_error *trouble)
{
    pl_pulse_lock(comm->pulse);
    *trouble = comm->end;
    return comm->end.status;
}

/* The first thing that fails ends the run, and the others are told at once: a
 * message that is under way may be meant for memory of those who wait for it,
 * and after them the engine has to leave it alone. It isn't cancelled, which
 * may take for ever. */
static pl_status leave(pl_comm *comm, pl_status status, const pl_error *trouble,
                       pl_error *err)
{
    if (status && !comm->is_told) {
        comm->end = *trouble;
        if (!comm->has_ended)
            tell_end(comm, trouble);
        comm->is_told = 1;
    }
    pl_pulse_unlock(comm->pulse);
    return status ? pl_fail(err, status, "%s", trouble->text) : PL_OK;
}

void pl_comm_give_up(pl_comm *comm, const pl_error *why)
{
    static const double patience = 1.0;
    pl_error trouble;
    pl_status status = enter(comm, &trouble);
    (void)leave(comm, status ? status : why->status, status ? &trouble : why,
                NULL);
    /* they say it themselves, too, the first that is left as soon as it looks:
     * within a second; or who found out ends all */
    pl_clock_sleep(comm->has_ended               ? 2.0 * patience
                   : pl_comm_is_first_left(comm) ? 0.25 * patience
                                                 : 1.5 * patience);
    pl_pulse_lock(comm->pulse);
    comm->engine->give_up(pl_status_exit_code(why->status));
}

/* ---- now and then ---- */

pl_status pl_comm_beat(pl_comm *comm, pl_error *err)
{
    pl_error trouble;
    pl_status status = enter(comm, &trouble);
    if (!status)
        status = beat_if_due(comm, &trouble);
    return leave(comm, status, &trouble, err);
}

pl_status pl_comm_say_stop(pl_comm *comm, pl_error *err)
{
    const news stop = { .kind = NEWS_STOP };
    pl_error trouble;
    pl_status status = enter(comm, &trouble);
    comm->is_stopped = 1;
    if (!status)
        status = tell_all(comm, &stop, &trouble);
    return leave(comm, status, &trouble, err);
}

/* ---- data ---- */

pl_status pl_comm_begin_send(pl_comm *comm, int to, const void *data,
                             size_t bytes, pl_comm_message *message,
                             pl_error *err)
{
    char why[PL_COMM_TEXT_BYTES] = "";
    pl_comm_request request;
    pl_error trouble;
    pl_status status = enter(comm, &trouble);
    if (!status && comm->engine->send(to, TAG_DATA, data, bytes, &request, why))
        status = broken(comm, to, why, &trouble);
    if (!status) {
        *message = (pl_comm_message){ request.handle, to, 1 };
        comm->sent += bytes;
    }
    return leave(comm, status, &trouble, err);
}

pl_status pl_comm_begin_receive(pl_comm *comm, int from, void *data,
                                size_t bytes, pl_comm_message *message,
                                pl_error *err)
{
    char why[PL_COMM_TEXT_BYTES] = "";
    pl_comm_request request;
    pl_error trouble;
    pl_status status = enter(comm, &trouble);
    if (!status &&
        comm->engine->receive(from, TAG_DATA, data, bytes, &request, why))
        status = broken(comm, from, why, &trouble);
    if (!status)
        *message = (pl_comm_message){ request.handle, from, 0 };
    return leave(comm, status, &trouble, err);
}

static pl_status look(pl_comm *comm, pl_comm_message *message, int *is_done,
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
        if (!message->is_sent) /* what has left may wait at this end */
            comm->others[message->other].heard = pl_clock_seconds();
        message->handle = NULL;
    }
    return PL_OK;
}

pl_status pl_comm_look(pl_comm *comm, pl_comm_message *message, int *is_done,
                       pl_error *err)
{
    pl_error trouble;
    pl_status status = enter(comm, &trouble);
    if (!status)
        status = look(comm, message, is_done, &trouble);
    return leave(comm, status, &trouble, err);
}

/* The same, and what else there is to do while waiting. */
static pl_status look_around(pl_comm *comm, pl_comm_message *message,
                             int *is_done, pl_error *err)
{
    pl_status status = look(comm, message, is_done, err);
    if (status || *is_done)
        return status;
    status = listen(comm, err);
    if (!status)
        status = beat_if_due(comm, err);
    if (status)
        return status;
    if (pl_clock_seconds() - comm->others[message->other].heard > comm->timeout)
        return silent(comm, message->other, err);
    return PL_OK;
}

pl_status pl_comm_wait(pl_comm *comm, pl_comm_message *message, pl_error *err)
{
    enum { LOOKS = 64 }; /* before it sleeps between them */
    static const double nap = 50e-6;
    const double began = pl_clock_seconds();
    pl_status status = PL_OK;
    int is_done = message->handle == NULL;
    for (int i = 0; !is_done && !status; i++) {
        pl_error trouble;
        if (i >= LOOKS)
            pl_clock_sleep(nap);
        status = enter(comm, &trouble);
        if (!status)
            status = look_around(comm, message, &is_done, &trouble);
        status = leave(comm, status, &trouble, err);
    }
    comm->waited += pl_clock_seconds() - began;
    return status;
}
