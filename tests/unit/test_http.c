#include "unit/http_rig.h"

/* ---- requests and answers ---- */

static void a_request_has_its_path_query_and_headers(void **state)
{
    (void)state;
    serve();
    get("/a%20b?name=x%3Cy&other=1", HOST "User-Agent: test\r\n");
    status_is(200);
    assert_contains(answer, "GET /a b name=x<y agent=test body=");
}

static void a_body_arrives_whole_in_parts(void **state)
{
    (void)state;
    serve();
    int fd = dial();
    say(fd, "POST /p HTTP/1.1\r\n" HOST
            "Connection: close\r\nContent-Length: 10\r\n\r\n01234");
    poll_for(0.05);
    assert_int_equal(asked, 0);
    say(fd, "56789");
    hear_until(fd, NULL);
    status_is(200);
    assert_contains(answer, "POST /p name=- agent=- body=0123456789");
    close(fd);
}

static void a_chunked_body_arrives_whole(void **state)
{
    (void)state;
    serve();
    talk("POST /p HTTP/1.1\r\n" HOST "Connection: close\r\n"
         "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    status_is(200);
    assert_contains(answer, "body=abcde");
}

static void several_requests_share_a_connection(void **state)
{
    (void)state;
    serve();
    int fd = dial();
    for (int i = 0; i < 3; i++) {
        say(fd, "GET /again HTTP/1.1\r\n" HOST "\r\n");
        hear_until(fd, "body=");
        status_is(200);
    }
    /* two at once are answered one after the other */
    say(fd,
        "GET /one HTTP/1.1\r\n" HOST "\r\nGET /two HTTP/1.1\r\n" HOST "\r\n");
    hear_until(fd, "/two");
    assert_contains(answer, "/one");
    assert_int_equal(asked, 5);
    close(fd);
}

static void head_is_a_get_without_a_body(void **state)
{
    (void)state;
    serve();
    talk("HEAD / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    status_is(200);
    assert_null(strstr(answer, "body="));
    assert_int_equal(asked, 1);
}

/* ---- limits ---- */

static void a_body_that_is_too_large_is_refused(void **state)
{
    char text[8192];
    (void)state;
    serve();
    /* by its head alone */
    talk("POST / HTTP/1.1\r\n" HOST "Content-Length: 4097\r\n\r\n");
    status_is(413);
    talk("POST / HTTP/1.1\r\n" HOST
         "Content-Length: 99999999999999999999\r\n\r\n");
    assert_contains(answer, " 4"); /* 400 or 413 */
    /* as it comes */
    int n = snprintf(text, sizeof text,
                     "POST / HTTP/1.1\r\n" HOST "Connection: close\r\n"
                     "Transfer-Encoding: chunked\r\n\r\n1388\r\n");
    memset(text + n, 'x', 5000);
    snprintf(text + n + 5000, sizeof text - (size_t)n - 5000, "\r\n0\r\n\r\n");
    talk(text);
    status_is(413);
    assert_int_equal(asked, 0);
    /* just not too large */
    n = snprintf(text, sizeof text,
                 "POST / HTTP/1.1\r\n" HOST "Connection: close\r\n"
                 "Content-Length: 4096\r\n\r\n");
    memset(text + n, 'x', 4096);
    text[n + 4096] = '\0';
    talk(text);
    status_is(200);
}

static void a_head_that_is_too_large_is_refused(void **state)
{
    static char text[80 * 1024];
    (void)state;
    serve();
    int n = snprintf(text, sizeof text, "GET / HTTP/1.1\r\n" HOST "X: ");
    memset(text + n, 'x', sizeof text - (size_t)n - 5);
    memcpy(text + sizeof text - 5, "\r\n\r\n", 5);
    int fd = dial();
    send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
    hear_until(fd, NULL);
    close(fd);
    assert_int_equal(asked, 0);
    assert_true(answer[0] == '\0' || strstr(answer, " 4"));
    get("/", HOST);
    status_is(200);
}

static void malformed_requests_do_no_harm(void **state)
{
    static const char *const texts[] = {
        "\r\n\r\n\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n" HOST "\r\n",
        "GET / HTTP/1.1\r\nHost\r\n\r\n",
        "GET / HTTP/1.1\r\n" HOST " folded: x\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        "POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\n" HOST "Content-Length: x\r\n\r\n",
        "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        "GET /%00%ff%zz HTTP/1.1\r\n" HOST "\r\n",
        "GET http://evil.example/ HTTP/1.1\r\n" HOST "\r\n",
    };
    (void)state;
    serve();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int fd = dial();
        say(fd, texts[i]);
        poll_for(0.02);
        shutdown(fd, SHUT_WR);
        poll_for(0.02);
        close(fd);
        poll_for(0.01);
    }
    get("/", HOST);
    status_is(200);
}

static void slow_clients_are_cut_off(void **state)
{
    (void)state;
    wish.timeout_seconds = 1;
    wish.max_connections = 2;
    serve();
    /* one byte now and then, which silence alone would never end */
    static const char text[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: aaaaaa";
    int fd[2] = { dial(), dial() };
    size_t sent = 0, n = 0;
    int open = 1;
    double begin = pl_clock_seconds();
    answer[0] = '\0';
    while (open && pl_clock_seconds() < begin + 8) {
        if (sent < sizeof text - 1)
            send(fd[0], text + sent++, 1, MSG_NOSIGNAL);
        poll_for(0.3);
        open = hear_some(fd[0], &n);
    }
    assert_false(open);
    assert_int_equal(asked, 0);
    /* whoever waited for a place has one now */
    get("/", HOST);
    status_is(200);
    close(fd[0]);
    close(fd[1]);
}

static void connections_are_limited(void **state)
{
    (void)state;
    wish.max_connections = 2;
    serve();
    int fd[3];
    size_t n = 0;
    for (int i = 0; i < 3; i++) {
        fd[i] = dial();
        say(fd[i], "GET /n HTTP/1.1\r\n" HOST "\r\n");
        poll_for(0.05);
    }
    assert_int_equal(asked, 2);
    close(fd[0]);
    poll_for(0.1);
    answer[0] = '\0';
    hear_some(fd[2], &n);
    status_is(200);
    assert_int_equal(asked, 3);
    close(fd[1]);
    close(fd[2]);
}

/* ---- answers that come later ---- */

static void an_answer_may_come_later(void **state)
{
    (void)state;
    serve();
    int fd = dial();
    size_t n = 0;
    say(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    poll_for(0.05);
    assert_non_null(kept);
    assert_ptr_equal(pl_http_tag(kept), &asked);
    answer[0] = '\0';
    assert_true(hear_some(fd, &n));
    assert_int_equal(n, 0);
    /* others are served meanwhile */
    get("/now", HOST);
    status_is(200);
    pl_http_reply(kept, 201, "text/plain", "at last", 7);
    hear_until(fd, "at last");
    status_is(201);
    /* the connection goes on */
    say(fd, "GET /again HTTP/1.1\r\n" HOST "\r\n");
    hear_until(fd, "/again");
    assert_null(lost);
    close(fd);
}

static void who_goes_before_the_answer_is_told(void **state)
{
    (void)state;
    serve();
    int fd = dial();
    say(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    poll_for(0.05);
    assert_non_null(kept);
    assert_null(lost);
    close(fd);
    poll_for(0.1);
    assert_ptr_equal(lost, kept);
    get("/", HOST);
    status_is(200);
}

static void a_stream_comes_in_parts(void **state)
{
    (void)state;
    serve();
    int fd = dial();
    say(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    hear_until(fd, "text/event-stream");
    status_is(200);
    for (int i = 0; i < 3; i++) {
        char part[32];
        snprintf(part, sizeof part, "data: part %d\n\n", i);
        assert_true(pl_http_push(kept, part, strlen(part)));
        hear_until(fd, part);
    }
    assert_true(pl_http_push(kept, "last\n", 5));
    pl_http_finish(kept);
    hear_until(fd, "0\r\n\r\n");
    assert_contains(answer, "last\n");
    say(fd, "GET /again HTTP/1.1\r\n" HOST "\r\n");
    hear_until(fd, "/again");
    assert_null(lost);
    close(fd);
}

static void a_stream_may_begin_later(void **state)
{
    (void)state;
    serve();
    int fd = dial();
    say(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    poll_for(0.05);
    pl_http_begin_stream(kept, 200, "text/event-stream");
    assert_true(pl_http_push(kept, "one", 3));
    assert_true(pl_http_push(kept, "two", 3));
    hear_until(fd, "onetwo");
    pl_http_finish(kept);
    hear_until(fd, "0\r\n\r\n");
    close(fd);
}

static void who_leaves_a_stream_is_told(void **state)
{
    (void)state;
    serve();
    for (int waiting = 0; waiting < 2; waiting++) {
        kept = lost = NULL;
        int fd = dial();
        say(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
        hear_until(fd, "text/event-stream");
        if (!waiting)
            assert_true(pl_http_push(kept, "part", 4));
        close(fd);
        for (int i = 0; i < 100 && !lost; i++) {
            poll_once(5);
            if (!waiting && !lost && !pl_http_push(kept, "more", 4))
                break;
        }
        assert_ptr_equal(lost, kept);
    }
}

static void who_doesnt_read_a_stream_is_cut_off(void **state)
{
    static char part[64 * 1024];
    (void)state;
    serve();
    memset(part, 'x', sizeof part);
    int fd = dial();
    say(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    poll_for(0.05);
    int pushes = 0;
    while (pushes < 10000 && pl_http_push(kept, part, sizeof part)) {
        pushes++;
        poll_once(0);
    }
    assert_in_range(pushes, PL_HTTP_STREAM_BYTES / sizeof part, 9999);
    poll_for(0.05);
    assert_null(lost); /* the push has told */
    close(fd);
    get("/", HOST);
    status_is(200);
}

static void closing_cuts_off_whoever_waits(void **state)
{
    (void)state;
    serve();
    int fd[2] = { dial(), dial() };
    say(fd[0], "GET /later HTTP/1.1\r\n" HOST "\r\n");
    say(fd[1], "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    poll_for(0.05);
    assert_int_equal(asked, 2);
    pl_http_close(http);
    http = NULL;
    assert_null(lost);
    close(fd[0]);
    close(fd[1]);
}

static void memory_that_is_refused_is_an_error(void **state)
{
    (void)state;
    for (long nth = 1; nth <= 3; nth++) {
        pl_arena_fail_at(nth);
        assert_int_equal(pl_http_open(&http, &wish, &heap, &err), PL_E_MEMORY);
    }
    pl_arena_fail_at(0);
    serve();
    /* a body's memory */
    pl_arena_fail_at(1);
    talk("POST /p HTTP/1.1\r\n" HOST
         "Connection: close\r\nContent-Length: 3\r\n\r\nabc");
    status_is(503);
    pl_arena_fail_at(0);
    /* a stream's */
    int fd = dial();
    say(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
    poll_for(0.05);
    pl_arena_fail_at(1);
    assert_false(pl_http_push(kept, "x", 1));
    pl_arena_fail_at(0);
    poll_for(0.05);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_has_its_path_query_and_headers),
        TEST(a_body_arrives_whole_in_parts),
        TEST(a_chunked_body_arrives_whole),
        TEST(several_requests_share_a_connection),
        TEST(head_is_a_get_without_a_body),
        TEST(a_body_that_is_too_large_is_refused),
        TEST(a_head_that_is_too_large_is_refused),
        TEST(malformed_requests_do_no_harm),
        TEST(slow_clients_are_cut_off),
        TEST(connections_are_limited),
        TEST(an_answer_may_come_later),
        TEST(who_goes_before_the_answer_is_told),
        TEST(a_stream_comes_in_parts),
        TEST(a_stream_may_begin_later),
        TEST(who_leaves_a_stream_is_told),
        TEST(who_doesnt_read_a_stream_is_cut_off),
        TEST(closing_cuts_off_whoever_waits),
        TEST(memory_that_is_refused_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
