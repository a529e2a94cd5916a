/* http.h: a small HTTP server that is polled, around libmicrohttpd.
 *
 * Owns sockets, connections and what makes a server on somebody's machine
 * safe: it listens on the loopback address unless told otherwise, and then only
 * with a token; a request's Host must be a name of this machine (against DNS
 * rebinding) and its Origin, where there is one, this very page; nothing is
 * allowed across sites; sizes, connections and time are bounded. Knows nothing
 * of what is served.
 *
 * One thread owns it all: everything happens in pl_http_poll, and the handler's
 * answers may be given between two polls. The library is opened at run time
 * (http_api.h), so that who serves nothing doesn't carry it. */
#ifndef PL_WEB_HTTP_H
#define PL_WEB_HTTP_H

#include "base/arena.h"
#include "base/log.h"
#include "base/status.h"

#include <stddef.h>

typedef struct pl_http pl_http;
typedef struct pl_http_exchange pl_http_exchange; /* a request, its answer */

typedef struct pl_http_request {
    const char *method;         /* "GET" (HEAD is one, too) or "POST" */
    const char *path;           /* "/v1/models": decoded, without its query */
    const char *body;           /* all of it, a zero behind it; "" */
    size_t body_bytes;          /* without that zero */
    pl_http_exchange *exchange; /* for the calls below */
} pl_http_request;

/* Of a request while its handler runs: a value, or NULL. */
const char *pl_http_query(const pl_http_request *request, const char *name);
const char *pl_http_header(const pl_http_request *request, const char *name);

/* ---- answers ---- */

/* A handler calls exactly one of pl_http_reply, pl_http_reply_static,
 * pl_http_begin_stream and pl_http_defer; after the last, one of the first
 * three comes later. `type` is a Content-Type with its charset.
 *
 * An exchange belongs to the handler until it replied or finished, until `gone`
 * was called with it, or until a push returned 0; it isn't touched after that.
 */

/* The bytes are copied. */
void pl_http_reply(pl_http_exchange *exchange, int status, const char *type,
                   const void *bytes, size_t n);
/* The bytes stay where they are for as long as the server is open. */
void pl_http_reply_static(pl_http_exchange *exchange, int status,
                          const char *type, const void *bytes, size_t n);

/* An answer in parts (text/event-stream), each sent as soon as the client takes
 * it: any number of pushes, then pl_http_finish. */
void pl_http_begin_stream(pl_http_exchange *exchange, int status,
                          const char *type);
enum { PL_HTTP_STREAM_BYTES = 1024 * 1024 }; /* what may wait for a client */
/* 0: the exchange is over, since more than PL_HTTP_STREAM_BYTES would wait, or
 * no memory is left for it. */
PL_MUST_CHECK int pl_http_push(pl_http_exchange *exchange, const void *bytes,
                               size_t n);
void pl_http_finish(pl_http_exchange *exchange);

/* The answer comes later; until then `gone` tells whether it is still wanted.
 */
void pl_http_defer(pl_http_exchange *exchange);

/* What a handler may keep beside an exchange: NULL at first. */
void pl_http_set_tag(pl_http_exchange *exchange, void *tag);
void *pl_http_tag(const pl_http_exchange *exchange);

/* ---- the server ---- */

typedef struct pl_http_wish {
    const char *host;         /* an address; NULL or "localhost": 127.0.0.1 */
    int port;                 /* 0: any that is free */
    const char *token;        /* NULL: none is asked for */
    const char *const *hosts; /* further names that Host may have, then NULL;
                                 NULL: none */
    size_t max_body_bytes;
    unsigned max_connections, max_per_ip; /* at once; max_per_ip 0: any */
    unsigned timeout_seconds; /* without a byte; a request takes twice as long
                                 at most */
    void (*handle)(void *context, const pl_http_request *request);
    /* A client went away before its answer was complete. NULL: nobody asks. */
    void (*gone)(void *context, pl_http_exchange *exchange);
    void *context;
    const pl_log *log; /* what was refused, and why: once each. May be NULL */
} pl_http_wish;

enum { PL_HTTP_MOST_CONNECTIONS = 1024 };

/* Takes its tables from `heap`; what requests and answers need for a while are
 * lumps. Errors: PL_E_UNSUPPORTED where the library is missing, PL_E_USAGE for
 * an address that other machines reach without a token, or no address at all,
 * PL_E_IO for a port that is taken or not allowed. */
PL_MUST_CHECK pl_status pl_http_open(pl_http **http, const pl_http_wish *wish,
                                     pl_heap *heap, pl_error *err);
int pl_http_port(const pl_http *http);
/* How a browser reaches it: "http://127.0.0.1:8377/"; where it listens on all
 * addresses, by the first of `hosts`. Lives as long as the server. */
const char *pl_http_address(const pl_http *http);

/* Waits at most so long (0: not at all) for something to do, and does it: the
 * handler is called from here, and `gone`. An error is one of the server as a
 * whole. */
PL_MUST_CHECK pl_status pl_http_poll(pl_http *http, int milliseconds,
                                     pl_error *err);
/* Whoever still waits is cut off; `gone` is not called any more. NULL is
 * fine. */
void pl_http_close(pl_http *http);

#endif
