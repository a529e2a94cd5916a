#include "unit/http_rig.h"

/* ---- who may ask ---- */

static void other_names_are_refused_and_told_once(void **state)
{
    static const char *const bad[] = {
        "Host: evil.example\r\n",      "Host: 127.0.0.1.evil.example\r\n",
        "Host: localhost.evil\r\n",    "Host: 127.0.0.1:80:80\r\n",
        "Host: 127.0.0.1@evil\r\n",    "Host: 192.168.0.1\r\n",
        "Host: localhost:80evil\r\n",  "Host: [::1]evil\r\n",
        "Host: evil.example:8377\r\n", "Host: 10.0.0.1:8377\r\n",
    };
    static const char *const good[] = {
        "Host: localhost\r\n",      "Host: LOCALHOST:9\r\n",
        "Host: 127.0.0.1:8377\r\n", "Host: [::1]:8377\r\n",
        "Host: friend.example\r\n",
    };
    static const char *const names[] = { "friend.example", NULL };
    (void)state;
    wish.hosts = names;
    serve();
    assert_contains(pl_http_address(http), "http://127.0.0.1:");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        get("/", bad[i]);
        status_is(403);
    }
    assert_int_equal(asked, 0);
    assert_contains(warnings, "'evil.example' was refused");
    assert_null(strstr(warnings, "localhost.evil"));
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        get("/", good[i]);
        status_is(200);
    }
}

static void a_request_has_one_host(void **state)
{
    (void)state;
    serve();
    get("/", "");
    status_is(400);
    get("/", HOST "Host: evil.example\r\n");
    status_is(400);
    talk("GET / HTTP/1.0\r\n\r\n");
    assert_contains(answer, " 400 ");
    assert_int_equal(asked, 0);
}

static void other_pages_are_refused(void **state)
{
    static const char *const bad[] = {
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
        "Origin: http://127.0.0.1:1\r\n", /* another server of this machine */
        "Origin: file://\r\n",
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n",
        "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: cors\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
    };
    static const char *const good[] = {
        "Origin: http://127.0.0.1\r\n",
        "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\n",
        "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n",
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n",
    };
    char text[256];
    (void)state;
    serve();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        snprintf(text, sizeof text, HOST "%s", bad[i]);
        get("/", text);
        status_is(403);
    }
    assert_int_equal(asked, 0);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        snprintf(text, sizeof text, HOST "%s", good[i]);
        get("/", text);
        status_is(200);
    }
}

static void a_token_is_asked_for(void **state)
{
    (void)state;
    wish.token = "abcdefgh1234";
    serve();
    char text[256];
    get("/", HOST);
    status_is(401);
    assert_contains(answer, "WWW-Authenticate: Bearer");
    assert_null(strstr(answer, "abcdefgh1234"));
    get("/?token=abcdefgh123", HOST);
    status_is(401);
    get("/?token=abcdefgh12345", HOST);
    status_is(401);
    get("/", HOST "Authorization: Bearer abcdefgh123X\r\n");
    status_is(401);
    get("/", HOST "Authorization: Basic abcdefgh1234\r\n");
    status_is(401);
    assert_int_equal(asked, 0);
    get("/", HOST "Authorization: Bearer abcdefgh1234\r\n");
    status_is(200);
    assert_null(strstr(answer, "Set-Cookie"));
    get("/?token=abcdefgh1234", HOST);
    status_is(200);
    snprintf(text, sizeof text,
             "Set-Cookie: plimsoll_%d=abcdefgh1234; Path=/; HttpOnly; "
             "SameSite=Strict",
             pl_http_port(http));
    assert_contains(answer, text);
    snprintf(text, sizeof text, HOST "Cookie: plimsoll_%d=abcdefgh1234\r\n",
             pl_http_port(http));
    get("/", text);
    status_is(200);
    snprintf(text, sizeof text, HOST "Cookie: plimsoll_%d=abcdefgh\r\n",
             pl_http_port(http));
    get("/", text);
    status_is(401);
}

static void only_three_methods_are_known(void **state)
{
    static const char *const methods[] = { "OPTIONS", "PUT", "DELETE", "TRACE",
                                           "BREW" };
    char text[256];
    (void)state;
    serve();
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        snprintf(text, sizeof text,
                 "%s / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n",
                 methods[i]);
        talk(text);
        status_is(405);
    }
    assert_int_equal(asked, 0);
}

static void every_answer_has_the_headers_that_keep_it_safe(void **state)
{
    (void)state;
    serve();
    for (int i = 0; i < 2; i++) {
        get("/", i == 0 ? HOST : "Host: evil.example\r\n");
        status_is(i == 0 ? 200 : 403);
        assert_contains(answer, "Content-Security-Policy: default-src 'none'");
        assert_contains(answer, "X-Content-Type-Options: nosniff");
        assert_contains(answer, "Referrer-Policy: no-referrer");
        assert_contains(answer, "Cache-Control: no-store");
        assert_contains(answer, "Cross-Origin-Resource-Policy: same-origin");
        assert_null(strstr(answer, "Access-Control-"));
        assert_null(strstr(answer, "Set-Cookie"));
    }
}

/* ---- opening ---- */

static void expect_refusal(pl_status status, const char *part)
{
    assert_int_equal(pl_http_open(&http, &wish, &heap, &err), status);
    assert_contains(err.text, part);
    assert_null(http);
}

static void what_cannot_be_opened_says_why(void **state)
{
    (void)state;
    wish.host = "elsewhere";
    expect_refusal(PL_E_USAGE, "'elsewhere' is no address");
    wish.host = "0.0.0.0";
    expect_refusal(PL_E_USAGE, "a token is needed");
    wish.host = "::";
    expect_refusal(PL_E_USAGE, "a token is needed");
    wish.host = "192.0.2.1";
    wish.token = "abcdefgh";
    expect_refusal(PL_E_IO, "192.0.2.1 is no address of this machine");
    wish.host = NULL;
    wish.token = "short";
    expect_refusal(PL_E_USAGE, "this is no token");
    wish.token = "has a space and \r\n";
    expect_refusal(PL_E_USAGE, "this is no token");
    wish.token = NULL;
    wish.port = 65536;
    expect_refusal(PL_E_USAGE, "65536 is no port");
}

static void a_port_that_is_taken_is_named(void **state)
{
    (void)state;
    serve();
    pl_http *second = NULL;
    char text[64];
    wish.port = pl_http_port(http);
    assert_int_equal(pl_http_open(&second, &wish, &heap, &err), PL_E_IO);
    snprintf(text, sizeof text, "port %d of 127.0.0.1 is in use", wish.port);
    assert_contains(err.text, text);
    snprintf(text, sizeof text, "http://127.0.0.1:%d/", wish.port);
    assert_string_equal(pl_http_address(http), text);
}

static void all_addresses_are_served_with_a_token(void **state)
{
    (void)state;
    static const char *const names[] = { "friend.example", NULL };
    wish.host = "0.0.0.0";
    wish.token = "abcdefgh";
    wish.hosts = names;
    serve();
    assert_contains(pl_http_address(http), "http://friend.example:");
    get("/?token=abcdefgh", "Host: 192.168.7.7:80\r\n");
    status_is(200);
    get("/?token=abcdefgh", "Host: evil.example\r\n");
    status_is(403);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_answer_has_the_headers_that_keep_it_safe),
        TEST(other_names_are_refused_and_told_once),
        TEST(a_request_has_one_host),
        TEST(other_pages_are_refused),
        TEST(a_token_is_asked_for),
        TEST(only_three_methods_are_known),
        TEST(what_cannot_be_opened_says_why),
        TEST(a_port_that_is_taken_is_named),
        TEST(all_addresses_are_served_with_a_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
