/* http_parts.h: what the files of http share, and nobody else. */
#ifndef PL_WEB_HTTP_PARTS_H
#define PL_WEB_HTTP_PARTS_H

#include "web/http.h"
#include "web/http_api.h"

#include <poll.h>

enum {
    PL_HTTP_HEAD_BYTES = 32 * 1024, /* of a connection: its request's head and
                                       what is about to be sent */
    PL_HTTP_TOKEN_BYTES = 256,
    PL_HTTP_ADDRESS_BYTES = 320,
};

/* Where an exchange is. DEFERRED and STREAM_WAITS are suspended: the library
 * doesn't look at their connections. */
typedef enum pl_http_state {
    PL_HTTP_IDLE,     /* no request, or its head isn't whole yet */
    PL_HTTP_READING,  /* its body comes in */
    PL_HTTP_HANDLING, /* the handler runs */
    PL_HTTP_DEFERRED,
    PL_HTTP_ANSWERED, /* the answer is made; the library sends it */
    PL_HTTP_STREAMING,
    PL_HTTP_STREAM_WAITS, /* for a push */
    PL_HTTP_LOST          /* to be cut off */
} pl_http_state;

struct pl_http_exchange {
    pl_http *http;
    struct MHD_Connection *connection; /* NULL: this place is free */
    int fd;
    pl_http_state state;
    double since; /* when it began to be idle, or to be answered */
    char *body;   /* a lump */
    size_t body_bytes, body_capacity;
    int refusal; /* a status to answer with when all of the body is there */
    int takes_cookie;
    struct MHD_Response *answer; /* made, not handed over yet */
    unsigned answer_status;
    char *stream; /* a lump: bytes from `stream_first` on wait */
    size_t stream_first, stream_bytes, stream_capacity;
    int stream_finished;
    void *tag;
};

/* Reasons to refuse a request that are worth a word to the user, once each. */
typedef enum pl_http_refusal {
    PL_HTTP_REFUSED_HOST,
    PL_HTTP_REFUSED_ORIGIN,
    PL_HTTP_REFUSED_TOKEN,
    PL_HTTP_REFUSALS
} pl_http_refusal;

struct pl_http {
    pl_http_wish wish;
    const pl_mhd_calls *calls;
    struct MHD_Daemon *daemon;
    int epoll_fd, port;
    int is_loopback; /* only this machine reaches it */
    char bound[64];  /* the address, as Host has it: "[::1]" */
    char address[PL_HTTP_ADDRESS_BYTES];
    char token[PL_HTTP_TOKEN_BYTES]; /* "": none */
    char cookie[32];                 /* its name */
    char said[256];                  /* the library's last words */
    int told[PL_HTTP_REFUSALS];
    pl_http_exchange *exchanges; /* wish.max_connections of them */
    struct pollfd *polls;        /* for the library's, and one for each */
    int resumed;                 /* a connection goes on: don't wait */
    double last_look;            /* at who is too slow */
    int is_closing;
};

/* ---- http_listen.c: sockets ---- */

/* Opens a socket that listens as the wish says; fills port, bound, address and
 * is_loopback. */
PL_MUST_CHECK pl_status pl_http_listen(pl_http *http, int *fd, pl_error *err);
/* The socket is given back. */
void pl_http_unlisten(int fd);
/* Whether `text` (n bytes) is an IP address as Host has it: "127.0.0.1",
 * "[::1]". */
int pl_http_is_address(const char *text, size_t n);
/* Cuts a connection off: the library then finds its end. */
void pl_http_cut_off(int fd);

/* ---- http_guard.c: who may ask ---- */

/* 0, or the status that refuses this request, with a text for it. Sets
 * takes_cookie. */
int pl_http_guard(pl_http_exchange *exchange, const char **text);

/* ---- http_answer.c ---- */

/* Lets the library go on with a connection that was suspended. */
void pl_http_resume(pl_http_exchange *exchange);

#endif
