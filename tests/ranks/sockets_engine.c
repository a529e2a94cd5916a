/* sockets_engine.c: an engine (comm/engine.h) over sockets of one machine, for
 * tests alone: so that sanitizers see what several processes of a run do, which
 * MPI's own memory is in the way of.
 *
 * PL_SOCKETS_FOLDER, PL_SOCKETS_RANK and PL_SOCKETS_RANKS in the environment
 * say where they meet, and who this is. A message that is sent is copied, and
 * done at once; one that arrives before it is asked for is kept. A message of
 * another size than was asked for is an error. */
#include "comm/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST_RANKS = 16 };

typedef struct message {
    struct message *next;
    size_t bytes, done;
    int tag;
    char data[];
} message;

/* A receive that is under way; done once `data` has all of it. */
typedef struct wish {
    struct wish *next;
    size_t bytes, came; /* what was asked for, and what has come */
    int tag, from, is_done;
    void *data;
} wish;

typedef struct head {
    size_t bytes;
    int tag;
} head;

typedef struct peer {
    int socket;
    message *out, **last_out; /* to be written */
    message *in, **last_in;   /* arrived, and nobody has asked */
    wish *wishes, **last_wish;
    message *reading; /* partly here */
    head reading_head;
    size_t head_done;
} peer;

static peer peers[MOST_RANKS];
static int rank, ranks;

static int fail(char *why, const char *what)
{
    snprintf(why, PL_COMM_TEXT_BYTES, "%s: %s", what, strerror(errno));
    return 1;
}

/* ---- opening ---- */

static struct sockaddr_un place_of(int other)
{
    struct sockaddr_un place = { .sun_family = AF_UNIX };
    snprintf(place.sun_path, sizeof place.sun_path, "%s/%d",
             getenv("PL_SOCKETS_FOLDER"), other);
    return place;
}

static void take_peer(int other, int fd)
{
    peer *p = &peers[other];
    fcntl(fd, F_SETFL, O_NONBLOCK);
    *p = (peer){ .socket = fd };
    p->last_out = &p->out;
    p->last_in = &p->in;
    p->last_wish = &p->wishes;
}

/* To those before it; who they are they know by the first byte. */
static int connect_to(int other, char *why)
{
    const struct sockaddr_un place = place_of(other);
    const unsigned char own = (unsigned char)rank;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    for (int i = 0; i < 2000; i++) {
        if (connect(fd, (const struct sockaddr *)&place, sizeof place) == 0) {
            if (write(fd, &own, 1) != 1)
                return fail(why, "write");
            take_peer(other, fd);
            return 0;
        }
        usleep(10000);
    }
    return fail(why, "connect");
}

static int open_sockets(pl_comm_who *who, const pl_comm_patience *patience,
                        char *why)
{
    (void)patience;
    rank = atoi(getenv("PL_SOCKETS_RANK"));
    ranks = atoi(getenv("PL_SOCKETS_RANKS"));
    const struct sockaddr_un own = place_of(rank);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&own, sizeof own) ||
        listen(fd, MOST_RANKS))
        return fail(why, "listen");
    for (int i = 0; i < rank; i++)
        if (connect_to(i, why))
            return 1;
    for (int i = rank + 1; i < ranks; i++) {
        unsigned char other;
        int in = accept(fd, NULL, NULL);
        if (in < 0 || read(in, &other, 1) != 1)
            return fail(why, "accept");
        take_peer(other, in);
    }
    close(fd);
    *who =
        (pl_comm_who){ .rank = rank, .ranks = ranks, .may_change_threads = 1 };
    snprintf(who->engine, sizeof who->engine, "sockets");
    return 0;
}

/* ---- moving on ---- */

static void write_out(peer *p)
{
    while (p->out) {
        message *m = p->out;
        ssize_t n = send(p->socket, m->data + m->done, m->bytes - m->done,
                         MSG_NOSIGNAL);
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
            n = (ssize_t)(m->bytes - m->done); /* nobody is there any more */
        if (n <= 0)
            return;
        m->done += (size_t)n;
        if (m->done < m->bytes)
            return;
        p->out = m->next;
        if (!p->out)
            p->last_out = &p->out;
        free(m);
    }
}

static void match(peer *p)
{
    for (wish *w = p->wishes; w; w = w->next)
        for (message **at = &p->in; !w->is_done && *at; at = &(*at)->next) {
            message *m = *at;
            if (m->tag != w->tag)
                continue;
            memcpy(w->data, m->data, m->bytes < w->bytes ? m->bytes : w->bytes);
            w->is_done = 1;
            w->came = m->bytes;
            *at = m->next;
            if (!*at)
                p->last_in = at;
            free(m);
            break;
        }
}

static int read_in(peer *p)
{
    if (!p->reading) {
        ssize_t n = recv(p->socket, (char *)&p->reading_head + p->head_done,
                         sizeof(head) - p->head_done, 0);
        if (n <= 0)
            return 0;
        p->head_done += (size_t)n;
        if (p->head_done < sizeof(head))
            return 0;
        p->head_done = 0;
        p->reading = calloc(1, sizeof(message) + p->reading_head.bytes);
        p->reading->bytes = p->reading_head.bytes;
        p->reading->tag = p->reading_head.tag;
    }
    message *m = p->reading;
    ssize_t n = m->done < m->bytes
                    ? recv(p->socket, m->data + m->done, m->bytes - m->done, 0)
                    : 0;
    if (n > 0)
        m->done += (size_t)n;
    if (m->done < m->bytes)
        return 0;
    *p->last_in = m;
    p->last_in = &m->next;
    p->reading = NULL;
    return 1;
}

static void move_on(void)
{
    for (int i = 0; i < ranks; i++) {
        if (i == rank)
            continue;
        write_out(&peers[i]);
        while (read_in(&peers[i]))
            continue;
        match(&peers[i]);
    }
}

/* ---- the engine ---- */

static char sent; /* what a handle of a message is that has left */

static int send_message(int to, int tag, const void *data, size_t bytes,
                        pl_comm_request *request, char *why)
{
    const head h = { bytes, tag };
    message *m = calloc(1, sizeof *m + sizeof h + bytes);
    (void)why;
    m->bytes = sizeof h + bytes;
    memcpy(m->data, &h, sizeof h);
    if (bytes)
        memcpy(m->data + sizeof h, data, bytes);
    *peers[to].last_out = m;
    peers[to].last_out = &m->next;
    request->handle = &sent;
    move_on();
    return 0;
}

static int receive(int from, int tag, void *data, size_t bytes,
                   pl_comm_request *request, char *why)
{
    wish *w = calloc(1, sizeof *w);
    (void)why;
    *w = (wish){ .bytes = bytes, .tag = tag, .from = from, .data = data };
    *peers[from].last_wish = w;
    peers[from].last_wish = &w->next;
    request->handle = w;
    return 0;
}

static void drop(wish *w)
{
    peer *p = &peers[w->from];
    wish **at = &p->wishes;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    if (!*at)
        p->last_wish = at;
    free(w);
}

static int done(pl_comm_request *request, int *is_done, char *why)
{
    const wish *w = request->handle == &sent ? NULL : request->handle;
    move_on();
    *is_done = !w || w->is_done;
    if (!w || !*is_done)
        return 0;
    const size_t bytes = w->bytes, came = w->came;
    drop(request->handle);
    if (came == bytes)
        return 0;
    snprintf(why, PL_COMM_TEXT_BYTES, "%zu bytes have come, not %zu", came,
             bytes);
    return 1;
}

static void close_sockets(const pl_comm_patience *patience)
{
    (void)patience;
    for (int i = 0; i < ranks; i++) {
        peer *p = &peers[i];
        while (i != rank && p->out)
            write_out(p);
        if (i == rank)
            continue;
        while (p->wishes)
            drop(p->wishes);
        close(p->socket);
        for (message *m = p->in, *next; m; m = next) {
            next = m->next;
            free(m);
        }
        free(p->reading);
    }
}

static void give_up(int exit_code)
{
    _exit(exit_code);
}

static const pl_comm_engine engine = {
    .version = PL_COMM_ENGINE_VERSION,
    .open = open_sockets,
    .send = send_message,
    .receive = receive,
    .done = done,
    .close = close_sockets,
    .give_up = give_up,
};

const pl_comm_engine *pl_comm_engine_here(void);

const pl_comm_engine *pl_comm_engine_here(void)
{
    return &engine;
}
