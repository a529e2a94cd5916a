/* http.c: see http.h. Connections, and what becomes of a request; http_answer.c
 * has the answers. */
#include "web/http_parts.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 1000 }; /* how often somebody looks for slow clients */

/* ---- connections ---- */

static void forget_request(pl_http_exchange *exchange)
{
    if (exchange->answer)
        exchange->http->calls->MHD_destroy_response(exchange->answer);
    pl_lump_free(exchange->body);
    pl_lump_free(exchange->stream);
    pl_http_exchange empty = { .http = exchange->http,
                               .connection = exchange->connection,
                               .fd = exchange->fd,
                               .since = pl_clock_seconds() };
    *exchange = empty;
}

static void on_connection(void *context, struct MHD_Connection *connection,
                          void **own, enum MHD_ConnectionNotificationCode event)
{
    pl_http *http = context;
    pl_http_exchange *exchange = *own;
    if (event == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (exchange) {
            forget_request(exchange);
            exchange->connection = NULL;
        }
        return;
    }
    for (unsigned i = 0; i < http->wish.max_connections; i++) {
        if (http->exchanges[i].connection)
            continue;
        exchange = &http->exchanges[i];
        const union MHD_ConnectionInfo *info =
            http->calls->MHD_get_connection_info(
                connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (!info)
            return;
        exchange->connection = connection;
        exchange->fd = info->connect_fd;
        forget_request(exchange);
        *own = exchange;
        return;
    }
}

/* Whether the handler, which owns the exchange, still wants to write to it. */
static int is_owned(const pl_http_exchange *exchange)
{
    return exchange->state == PL_HTTP_DEFERRED ||
           ((exchange->state == PL_HTTP_STREAMING ||
             exchange->state == PL_HTTP_STREAM_WAITS) &&
            !exchange->stream_finished);
}

static void tell_gone(pl_http_exchange *exchange)
{
    pl_http *http = exchange->http;
    int owned = is_owned(exchange);
    exchange->state = PL_HTTP_LOST;
    if (owned && http->wish.gone && !http->is_closing)
        http->wish.gone(http->wish.context, exchange);
}

static void on_completed(void *context, struct MHD_Connection *connection,
                         void **own, enum MHD_RequestTerminationCode code)
{
    (void)context;
    (void)connection;
    (void)code;
    pl_http_exchange *exchange = *own;
    if (!exchange)
        return;
    *own = NULL;
    tell_gone(exchange);
    forget_request(exchange);
}

/* ---- a request ---- */

/* The size that a request's head states for its body; 0 where it states none.
 */
static unsigned long long stated_bytes(const pl_http_exchange *exchange)
{
    const char *text = exchange->http->calls->MHD_lookup_connection_value(
        exchange->connection, MHD_HEADER_KIND, "Content-Length");
    return text ? strtoull(text, NULL, 10) : 0;
}

static enum MHD_Result hand_over(pl_http_exchange *exchange)
{
    const pl_mhd_calls *calls = exchange->http->calls;
    enum MHD_Result result = calls->MHD_queue_response(
        exchange->connection, exchange->answer_status, exchange->answer);
    calls->MHD_destroy_response(exchange->answer);
    exchange->answer = NULL;
    return result;
}

static enum MHD_Result refuse(pl_http_exchange *exchange, int status,
                              const char *text)
{
    exchange->state = PL_HTTP_HANDLING;
    pl_http_reply_static(exchange, status, "text/plain; charset=utf-8", text,
                         strlen(text));
    return exchange->answer ? hand_over(exchange) : MHD_NO;
}

static const char too_large[] = "The body is larger than this server takes.\n";

static enum MHD_Result begin(pl_http_exchange *exchange, const char *method)
{
    const char *text = NULL;
    exchange->state = PL_HTTP_READING;
    int status = pl_http_guard(exchange, &text);
    if (status)
        return refuse(exchange, status, text);
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0 &&
        strcmp(method, "POST") != 0)
        return refuse(exchange, 405, "Only GET, HEAD and POST are known.\n");
    if (stated_bytes(exchange) > exchange->http->wish.max_body_bytes)
        return refuse(exchange, 413, too_large);
    return MHD_YES;
}

/* A body whose size wasn't stated is answered at its end, so what is too much
 * is passed over, up to a point. */
static enum MHD_Result take_body(pl_http_exchange *exchange, const char *data,
                                 size_t bytes)
{
    size_t most = exchange->http->wish.max_body_bytes;
    size_t need = exchange->body_bytes + bytes;
    if (exchange->refusal || need > most) {
        if (!exchange->refusal)
            exchange->refusal = 413;
        exchange->body_bytes = need;
        return need > 2 * most + PL_HTTP_HEAD_BYTES ? MHD_NO : MHD_YES;
    }
    if (need + 1 > exchange->body_capacity) {
        size_t capacity = 2 * need + 4096;
        if (capacity > most + 1)
            capacity = most + 1;
        if (pl_lump_resize(&exchange->body, capacity, NULL) != PL_OK) {
            exchange->refusal = 503;
            return MHD_YES;
        }
        exchange->body_capacity = capacity;
    }
    memcpy(exchange->body + exchange->body_bytes, data, bytes);
    exchange->body_bytes = need;
    exchange->body[need] = '\0';
    return MHD_YES;
}

static enum MHD_Result handle(pl_http_exchange *exchange, const char *path,
                              const char *method)
{
    pl_http *http = exchange->http;
    if (exchange->refusal == 413)
        return refuse(exchange, 413, too_large);
    if (exchange->refusal)
        return refuse(exchange, 503, "No memory is left for this body.\n");
    pl_http_request request = {
        .method = strcmp(method, "HEAD") == 0 ? "GET" : method,
        .path = path,
        .body = exchange->body ? exchange->body : "",
        .body_bytes = exchange->body_bytes,
        .exchange = exchange,
    };
    exchange->state = PL_HTTP_HANDLING;
    http->wish.handle(http->wish.context, &request);
    PL_CHECK(exchange->state != PL_HTTP_HANDLING);
    if (exchange->state == PL_HTTP_DEFERRED)
        http->calls->MHD_suspend_connection(exchange->connection);
    if (exchange->state == PL_HTTP_DEFERRED)
        return MHD_YES;
    return exchange->answer ? hand_over(exchange) : MHD_NO;
}

/* Called with the head, with each part of the body, with the body's end, and
 * once more when a deferred request goes on. */
static enum MHD_Result on_request(void *context,
                                  struct MHD_Connection *connection,
                                  const char *path, const char *method,
                                  const char *version, const char *data,
                                  size_t *bytes, void **own)
{
    const pl_http *http = context;
    const union MHD_ConnectionInfo *info = http->calls->MHD_get_connection_info(
        connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    pl_http_exchange *exchange = info ? info->socket_context : NULL;
    (void)version;
    if (!exchange)
        return MHD_NO;
    *own = exchange;
    switch (exchange->state) {
    case PL_HTTP_IDLE:
        return begin(exchange, method);
    case PL_HTTP_READING:
        if (*bytes == 0)
            return handle(exchange, path, method);
        enum MHD_Result result = take_body(exchange, data, *bytes);
        *bytes = 0;
        return result;
    case PL_HTTP_LOST:
        return MHD_NO;
    default:
        if (exchange->answer)
            return hand_over(exchange);
        *bytes = 0; /* of a request that was refused by its head */
        return exchange->state == PL_HTTP_STREAMING ? MHD_NO : MHD_YES;
    }
}

const char *pl_http_query(const pl_http_request *request, const char *name)
{
    const pl_http_exchange *exchange = request->exchange;
    return exchange->http->calls->MHD_lookup_connection_value(
        exchange->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *pl_http_header(const pl_http_request *request, const char *name)
{
    const pl_http_exchange *exchange = request->exchange;
    return exchange->http->calls->MHD_lookup_connection_value(
        exchange->connection, MHD_HEADER_KIND, name);
}

/* ---- polling ---- */

static int is_suspended(const pl_http_exchange *exchange)
{
    return exchange->connection && (exchange->state == PL_HTTP_DEFERRED ||
                                    exchange->state == PL_HTTP_STREAM_WAITS);
}

/* The library doesn't look at connections that it suspended: we look whether
 * their clients are still there. */
static nfds_t gather(pl_http *http, int *connections)
{
    nfds_t count = 1;
    http->polls[0] = (struct pollfd){ http->epoll_fd, POLLIN, 0 };
    *connections = 0;
    for (unsigned i = 0; i < http->wish.max_connections; i++) {
        const pl_http_exchange *exchange = &http->exchanges[i];
        *connections += exchange->connection != NULL;
        if (is_suspended(exchange))
            http->polls[count++] = (struct pollfd){ exchange->fd, POLLRDHUP,
                                                    0 };
    }
    return count;
}

static void find_gone(pl_http *http)
{
    nfds_t at = 1;
    for (unsigned i = 0; i < http->wish.max_connections; i++) {
        pl_http_exchange *exchange = &http->exchanges[i];
        if (!is_suspended(exchange))
            continue;
        if (http->polls[at++].revents) {
            tell_gone(exchange);
            pl_http_resume(exchange);
        }
    }
}

/* The library's own limit is about silence: a byte now and then holds a
 * connection for ever. */
static void cut_off_slow(pl_http *http)
{
    double now = pl_clock_seconds();
    double most = http->wish.timeout_seconds;
    if (now - http->last_look < LOOK_MS / 1e3 / 2)
        return;
    http->last_look = now;
    for (unsigned i = 0; i < http->wish.max_connections; i++) {
        const pl_http_exchange *exchange = &http->exchanges[i];
        if (!exchange->connection)
            continue;
        double waited = now - exchange->since;
        int is_asking = exchange->state == PL_HTTP_IDLE ||
                        exchange->state == PL_HTTP_READING;
        int is_taking = exchange->state == PL_HTTP_ANSWERED ||
                        (exchange->state == PL_HTTP_STREAMING &&
                         exchange->stream_finished);
        if ((is_asking && waited > 2 * most) ||
            (is_taking && waited > 4 * most))
            pl_http_cut_off(exchange->fd);
    }
}

pl_status pl_http_poll(pl_http *http, int milliseconds, pl_error *err)
{
    MHD_UNSIGNED_LONG_LONG most;
    int connections, wait = milliseconds;
    nfds_t count = gather(http, &connections);
    if (connections && wait > LOOK_MS)
        wait = LOOK_MS;
    if (http->calls->MHD_get_timeout(http->daemon, &most) == MHD_YES &&
        most < (unsigned)wait)
        wait = (int)most;
    if (http->resumed)
        wait = 0;
    int ready = poll(http->polls, count, wait);
    if (ready < 0 && errno != EINTR)
        return pl_fail(err, PL_E_IO, "cannot wait for requests: %s",
                       strerror(errno));
    if (ready > 0)
        find_gone(http);
    http->resumed = 0;
    if (http->calls->MHD_run(http->daemon) != MHD_YES)
        return pl_fail(err, PL_E_IO, "libmicrohttpd cannot go on: %s",
                       http->said[0] ? http->said : "it says no reason");
    cut_off_slow(http);
    return PL_OK;
}

/* ---- open and close ---- */

static void on_words(void *context, const char *format, va_list arguments)
{
    pl_http *http = context;
    vsnprintf(http->said, sizeof http->said, format, arguments);
    http->said[strcspn(http->said, "\n")] = '\0';
}

static pl_status check_wish(const pl_http_wish *wish, pl_error *err)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmno"
                                  "pqrstuvwxyz0123456789-._~";
    PL_CHECK(wish->handle && wish->max_connections > 0 &&
             wish->max_connections <= PL_HTTP_MOST_CONNECTIONS &&
             wish->timeout_seconds > 0);
    if (wish->port < 0 || wish->port > 65535)
        return pl_fail(err, PL_E_USAGE,
                       "%d is no port: these are numbers from 1 to 65535, and "
                       "0 for any that is free",
                       wish->port);
    size_t n = wish->token ? strlen(wish->token) : 8;
    if (n < 8 || n >= PL_HTTP_TOKEN_BYTES ||
        (wish->token && strspn(wish->token, allowed) != n))
        return pl_fail(err, PL_E_USAGE,
                       "this is no token: it has 8 to %d letters, digits and "
                       "'-', '.', '_', '~'",
                       PL_HTTP_TOKEN_BYTES - 1);
    return PL_OK;
}

static pl_status start(pl_http *http, int fd, pl_error *err)
{
    const pl_http_wish *wish = &http->wish;
    http->daemon = http->calls->MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL,
        NULL, on_request, http, MHD_OPTION_EXTERNAL_LOGGER, on_words, http,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        wish->max_connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        wish->max_per_ip, MHD_OPTION_CONNECTION_TIMEOUT, wish->timeout_seconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)PL_HTTP_HEAD_BYTES,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, http, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,
        MHD_OPTION_END);
    const union MHD_DaemonInfo *info = http->daemon
                                           ? http->calls->MHD_get_daemon_info(
                                                 http->daemon,
                                                 MHD_DAEMON_INFO_EPOLL_FD)
                                           : NULL;
    if (!http->daemon)
        return pl_fail(err, PL_E_IO, "libmicrohttpd %s cannot start: %s",
                       http->calls->MHD_get_version(),
                       http->said[0] ? http->said : "it says no reason");
    if (!info) {
        http->calls->MHD_stop_daemon(http->daemon);
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "libmicrohttpd %s was built without epoll, by which "
                       "this server waits",
                       http->calls->MHD_get_version());
    }
    http->epoll_fd = info->epoll_fd;
    return PL_OK;
}

pl_status pl_http_open(pl_http **out, const pl_http_wish *wish, pl_heap *heap,
                       pl_error *err)
{
    const pl_mhd_calls *calls;
    pl_http *http;
    int fd;
    pl_status status = check_wish(wish, err);
    if (status != PL_OK || (status = pl_mhd_load(&calls, err)) != PL_OK ||
        (status = pl_heap_take(heap, &http, 1, sizeof *http, err)) != PL_OK)
        return status;
    http->wish = *wish;
    http->calls = calls;
    if (!wish->host)
        http->wish.host = "127.0.0.1";
    if (wish->token)
        snprintf(http->token, sizeof http->token, "%s", wish->token);
    status = pl_heap_take(heap, &http->exchanges, wish->max_connections,
                          sizeof *http->exchanges, err);
    if (status == PL_OK)
        status = pl_heap_take(heap, &http->polls, wish->max_connections + 1,
                              sizeof *http->polls, err);
    if (status != PL_OK || (status = pl_http_listen(http, &fd, err)) != PL_OK)
        return status;
    for (unsigned i = 0; i < wish->max_connections; i++)
        http->exchanges[i].http = http;
    snprintf(http->cookie, sizeof http->cookie, "plimsoll_%d", http->port);
    status = start(http, fd, err);
    if (status != PL_OK) {
        pl_http_unlisten(fd);
        return status;
    }
    *out = http;
    return PL_OK;
}

int pl_http_port(const pl_http *http)
{
    return http->port;
}

const char *pl_http_address(const pl_http *http)
{
    return http->address;
}

void pl_http_close(pl_http *http)
{
    if (!http)
        return;
    http->is_closing = 1;
    for (unsigned i = 0; i < http->wish.max_connections; i++) {
        pl_http_exchange *exchange = &http->exchanges[i];
        if (is_suspended(exchange)) {
            exchange->state = PL_HTTP_LOST;
            pl_http_resume(exchange);
        }
    }
    http->calls->MHD_stop_daemon(http->daemon);
}
