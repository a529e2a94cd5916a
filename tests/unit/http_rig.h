/* http_rig.h: a server in the test's own thread, and clients that talk to it
 * over the loopback address. */
#ifndef PL_TESTS_UNIT_HTTP_RIG_H
#define PL_TESTS_UNIT_HTTP_RIG_H

#include "base/clock.h"
#include "support/asserts.h"
#include "web/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static pl_heap heap;
static pl_error err;
static pl_http *http;
static pl_http_wish wish;
static char answer[4 * 1024 * 1024];
static char warnings[4096];

/* What the handler saw and keeps. */
static pl_http_exchange *kept, *lost;
static int asked;
static char asked_for[256];

static inline void handle(void *context, const pl_http_request *request)
{
    char text[8192];
    const char *name = pl_http_query(request, "name");
    const char *agent = pl_http_header(request, "User-Agent");
    assert_ptr_equal(context, &asked);
    asked++;
    snprintf(asked_for, sizeof asked_for, "%s", request->path);
    if (strcmp(request->path, "/later") == 0) {
        kept = request->exchange;
        pl_http_set_tag(kept, &asked);
        pl_http_defer(kept);
        return;
    }
    if (strcmp(request->path, "/stream") == 0) {
        kept = request->exchange;
        pl_http_begin_stream(kept, 200, "text/event-stream");
        return;
    }
    assert_int_equal(strlen(request->body), request->body_bytes);
    int n = snprintf(text, sizeof text, "%s %s name=%s agent=%s body=%.4096s",
                     request->method, request->path, name ? name : "-",
                     agent ? agent : "-", request->body);
    pl_http_reply(request->exchange, 200, "text/plain; charset=utf-8", text,
                  (size_t)n);
}

static inline void gone(void *context, pl_http_exchange *exchange)
{
    assert_ptr_equal(context, &asked);
    lost = exchange;
}

static inline void hear(void *context, pl_log_level level, const char *text)
{
    (void)context;
    assert_int_equal(level, PL_LOG_WARN);
    size_t n = strlen(warnings);
    snprintf(warnings + n, sizeof warnings - n, "%s\n", text);
}

static const pl_log hearing = { hear, NULL };

static inline int set_up(void **state)
{
    (void)state;
    memset(&err, 0, sizeof err);
    memset(&wish, 0, sizeof wish);
    heap = pl_heap_make(8 << 20);
    http = NULL;
    kept = lost = NULL;
    asked = 0;
    asked_for[0] = warnings[0] = '\0';
    wish.max_body_bytes = 4096;
    wish.max_connections = 8;
    wish.timeout_seconds = 10;
    wish.handle = handle;
    wish.gone = gone;
    wish.context = &asked;
    wish.log = &hearing;
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    pl_http_close(http);
    pl_heap_close(&heap);
    return 0;
}

static inline void serve(void)
{
    if (pl_http_open(&http, &wish, &heap, &err) != PL_OK)
        fail_msg("%s", err.text);
}

static inline void poll_once(int ms)
{
    if (pl_http_poll(http, ms, &err) != PL_OK)
        fail_msg("%s", err.text);
}

static inline void poll_for(double seconds)
{
    for (double end = pl_clock_seconds() + seconds; pl_clock_seconds() < end;)
        poll_once(5);
}

static inline int dial(void)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)pl_http_port(http)),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address),
                     0);
    return fd;
}

static inline void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL),
                     (ssize_t)strlen(text));
}

/* Adds to `answer` what is there; 0: the other side has closed. */
static inline int hear_some(int fd, size_t *n)
{
    ssize_t got = recv(fd, answer + *n, sizeof answer - 1 - *n, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 1;
    if (got <= 0)
        return 0;
    *n += (size_t)got;
    answer[*n] = '\0';
    return 1;
}

/* Until the other side closes, or `part` was said, for at most 5 s. */
static inline const char *hear_until(int fd, const char *part)
{
    size_t n = 0;
    answer[0] = '\0';
    for (double end = pl_clock_seconds() + 5; pl_clock_seconds() < end;) {
        poll_once(5);
        if (!hear_some(fd, &n) || (part && strstr(answer, part)))
            return answer;
    }
    fail_msg("nothing more came. So far: %s", answer);
    return answer;
}

/* The answer to `text`, whose connection closes then. */
static inline const char *talk(const char *text)
{
    int fd = dial();
    say(fd, text);
    hear_until(fd, NULL);
    close(fd);
    return answer;
}

static inline const char *get(const char *path, const char *headers)
{
    char text[2048];
    snprintf(text, sizeof text,
             "GET %s HTTP/1.1\r\nConnection: close\r\n%s\r\n", path, headers);
    return talk(text);
}

#define HOST "Host: 127.0.0.1\r\n"

static inline void status_is(int status)
{
    char line[32];
    snprintf(line, sizeof line, "HTTP/1.1 %d ", status);
    if (strncmp(answer, line, strlen(line)) != 0)
        fail_msg("expected %d, got: %.300s", status, answer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
