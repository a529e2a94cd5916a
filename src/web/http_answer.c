/* http_answer.c: the answers of http.h, and the headers that all of them
 * have. */
#include "web/http_parts.h"

#include "base/check.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>

/* Nothing but what this server sends is loaded or asked by a page of its, no
 * script or style is in a page's text, and no other page shows it in a frame.
 */
static const char *const headers[][2] = {
    { "Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; "
      "img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; "
      "base-uri 'none'; form-action 'none'" },
    { "X-Content-Type-Options", "nosniff" },
    { "X-Frame-Options", "DENY" },
    { "Referrer-Policy", "no-referrer" },
    { "Cross-Origin-Resource-Policy", "same-origin" },
    { "Cross-Origin-Opener-Policy", "same-origin" },
    { "Cache-Control", "no-store" },
};

static int add(const pl_http *http, struct MHD_Response *response,
               const char *name, const char *value)
{
    return http->calls->MHD_add_response_header(response, name, value) ==
           MHD_YES;
}

static int add_headers(const pl_http_exchange *exchange,
                       struct MHD_Response *response, int status,
                       const char *type)
{
    const pl_http *http = exchange->http;
    int done = add(http, response, "Content-Type", type);
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        done = done && add(http, response, headers[i][0], headers[i][1]);
    if (status == 401)
        done = done && add(http, response, "WWW-Authenticate", "Bearer");
    if (status == 405)
        done = done && add(http, response, "Allow", "GET, HEAD, POST");
    if (status == 429)
        done = done && add(http, response, "Retry-After", "1");
    if (exchange->takes_cookie) {
        char text[PL_HTTP_TOKEN_BYTES + 96];
        snprintf(text, sizeof text, "%s=%s; Path=/; HttpOnly; SameSite=Strict",
                 http->cookie, http->token);
        done = done && add(http, response, "Set-Cookie", text);
    }
    return done;
}

void pl_http_resume(pl_http_exchange *exchange)
{
    exchange->http->calls->MHD_resume_connection(exchange->connection);
    exchange->http->resumed = 1;
}

static int may_answer(const pl_http_exchange *exchange)
{
    return exchange->state == PL_HTTP_HANDLING ||
           exchange->state == PL_HTTP_DEFERRED;
}

/* An answer that can't be made for want of memory cuts the client off; of a
 * stream's, whose handler goes on, `gone` tells. */
static void answer(pl_http_exchange *exchange, int status, const char *type,
                   struct MHD_Response *response, pl_http_state next)
{
    PL_CHECK(may_answer(exchange));
    int was_deferred = exchange->state == PL_HTTP_DEFERRED;
    exchange->state = next;
    exchange->since = pl_clock_seconds();
    if (response && !add_headers(exchange, response, status, type)) {
        exchange->http->calls->MHD_destroy_response(response);
        response = NULL;
    }
    exchange->answer = response;
    exchange->answer_status = (unsigned)status;
    if (!response && next == PL_HTTP_ANSWERED)
        exchange->state = PL_HTTP_LOST;
    if (was_deferred)
        pl_http_resume(exchange);
}

static void reply(pl_http_exchange *exchange, int status, const char *type,
                  const void *bytes, size_t n, enum MHD_ResponseMemoryMode mode)
{
    /* the library copies the bytes, or leaves them alone */
    struct MHD_Response *response =
        exchange->http->calls->MHD_create_response_from_buffer(
            n, (void *)(uintptr_t)bytes, mode);
    answer(exchange, status, type, response, PL_HTTP_ANSWERED);
}

void pl_http_reply(pl_http_exchange *exchange, int status, const char *type,
                   const void *bytes, size_t n)
{
    reply(exchange, status, type, bytes, n, MHD_RESPMEM_MUST_COPY);
}

void pl_http_reply_static(pl_http_exchange *exchange, int status,
                          const char *type, const void *bytes, size_t n)
{
    reply(exchange, status, type, bytes, n, MHD_RESPMEM_PERSISTENT);
}

void pl_http_defer(pl_http_exchange *exchange)
{
    PL_CHECK(exchange->state == PL_HTTP_HANDLING);
    exchange->state = PL_HTTP_DEFERRED;
}

/* ---- streams ---- */

static ssize_t read_stream(void *context, uint64_t position, char *out,
                           size_t most)
{
    pl_http_exchange *exchange = context;
    (void)position;
    size_t n = exchange->stream_bytes - exchange->stream_first;
    if (exchange->state == PL_HTTP_LOST)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (n == 0 && exchange->stream_finished)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n == 0) {
        exchange->state = PL_HTTP_STREAM_WAITS;
        exchange->http->calls->MHD_suspend_connection(exchange->connection);
        return 0;
    }
    if (n > most)
        n = most;
    memcpy(out, exchange->stream + exchange->stream_first, n);
    exchange->stream_first += n;
    if (exchange->stream_first == exchange->stream_bytes)
        exchange->stream_first = exchange->stream_bytes = 0;
    return (ssize_t)n;
}

void pl_http_begin_stream(pl_http_exchange *exchange, int status,
                          const char *type)
{
    struct MHD_Response *response =
        exchange->http->calls->MHD_create_response_from_callback(
            MHD_SIZE_UNKNOWN, 4096, read_stream, exchange, NULL);
    answer(exchange, status, type, response, PL_HTTP_STREAMING);
}

static int append(pl_http_exchange *exchange, const void *bytes, size_t n)
{
    size_t waiting = exchange->stream_bytes - exchange->stream_first;
    if (n > PL_HTTP_STREAM_BYTES || waiting + n > PL_HTTP_STREAM_BYTES)
        return 0;
    if (exchange->stream_first) {
        memmove(exchange->stream, exchange->stream + exchange->stream_first,
                waiting);
        exchange->stream_first = 0;
        exchange->stream_bytes = waiting;
    }
    if (waiting + n > exchange->stream_capacity) {
        size_t capacity = 2 * (waiting + n) + 1024;
        if (pl_lump_resize(&exchange->stream, capacity, NULL) != PL_OK)
            return 0;
        exchange->stream_capacity = capacity;
    }
    memcpy(exchange->stream + waiting, bytes, n);
    exchange->stream_bytes = waiting + n;
    return 1;
}

/* Lets the library ask for bytes again, where it waited for them. */
static void go_on(pl_http_exchange *exchange, pl_http_state next)
{
    int waited = exchange->state == PL_HTTP_STREAM_WAITS;
    exchange->state = next;
    if (waited)
        pl_http_resume(exchange);
}

int pl_http_push(pl_http_exchange *exchange, const void *bytes, size_t n)
{
    PL_CHECK(exchange->state == PL_HTTP_STREAMING ||
             exchange->state == PL_HTTP_STREAM_WAITS);
    PL_CHECK(!exchange->stream_finished);
    if (n == 0)
        return 1;
    if (!append(exchange, bytes, n)) {
        if (!exchange->answer)
            pl_http_cut_off(exchange->fd);
        go_on(exchange, PL_HTTP_LOST);
        return 0;
    }
    go_on(exchange, PL_HTTP_STREAMING);
    return 1;
}

void pl_http_finish(pl_http_exchange *exchange)
{
    PL_CHECK(exchange->state == PL_HTTP_STREAMING ||
             exchange->state == PL_HTTP_STREAM_WAITS);
    exchange->stream_finished = 1;
    exchange->since = pl_clock_seconds();
    go_on(exchange, PL_HTTP_STREAMING);
}

/* ---- what a handler keeps ---- */

void pl_http_set_tag(pl_http_exchange *exchange, void *tag)
{
    exchange->tag = tag;
}

void *pl_http_tag(const pl_http_exchange *exchange)
{
    return exchange->tag;
}
