/* storm.c: many clients of `plimsoll serve` at once, most of them rude.
 *
 *   storm PORT REQUESTS SLOW
 *
 * Sends REQUESTS requests over as many connections as a crowd has: good ones,
 * streams, broken HTTP, bodies that are too large or no JSON, and clients that
 * leave at any moment; meanwhile SLOW others send a byte now and then. A good
 * request has one right answer, which the first of its kind had: whoever else
 * is there, its bits are its own. At the end nothing of all that is left in the
 * server. Exit 0: so it was. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    CROWD = 48,
    MOST_SLOW = 512,
    ROOM = 1 << 16, /* of an answer */
    KINDS_OF_TEXT = 12,
    PATIENCE_MS = 60000,
};

/* What a client is up to. */
typedef enum way {
    GOOD,
    STREAM,
    LEAVES, /* at some byte of its request or answer */
    NO_JSON,
    TOO_LARGE,
    NO_HTTP,
    SLOWLY,
    WAYS
} way;

static const char *const names[WAYS] = { "good",    "streamed",  "left",
                                         "no json", "too large", "no http",
                                         "slow" };

typedef struct client {
    int fd; /* -1: none */
    way way;
    int text;    /* which of the prompts */
    size_t goes; /* bytes after which it leaves; 0: never */
    char request[2048];
    size_t bytes, sent;
    char *answer; /* [ROOM] */
    size_t got;
    double since;
} client;

static int port;
static uint32_t state = 12345;
static client crowd[CROWD + MOST_SLOW];
static char *rights[2][KINDS_OF_TEXT]; /* the answers, of plain and streamed */
static long done[WAYS], refused, begun;

static uint32_t draw(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void die(const client *c, const char *what)
{
    fprintf(stderr, "storm: %s client: %s\n--- asked\n%.600s\n--- got\n%.*s\n",
            names[c->way], what, c->request,
            (int)(c->got < 2000 ? c->got : 2000), c->answer);
    exit(1);
}

static int connect_to(void)
{
    const struct sockaddr_in to = { .sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)port),
                                    .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) != 0) {
        perror("storm: connect");
        exit(1);
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

/* ---- what they ask ---- */

static void ask(client *c, const char *body)
{
    c->bytes = (size_t)snprintf(
        c->request, sizeof c->request,
        "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
        "Content-Type: application/json\r\nConnection: close\r\n"
        "Content-Length: %zu\r\n\r\n%s",
        port, strlen(body), body);
}

static void ask_well(client *c, int is_stream)
{
    char body[512];
    c->text = (int)(draw() % KINDS_OF_TEXT);
    snprintf(body, sizeof body,
             "{\"prompt\": \"the cat number %d %s\", \"max_tokens\": %d, "
             "\"seed\": %d, \"temperature\": %s, \"logprobs\": %d, \"echo\": "
             "%s, \"stream\": %s}",
             c->text, c->text % 2 ? "sat on" : "", 1 + c->text, c->text,
             c->text % 3 ? "0.9" : "0", c->text % 4,
             c->text % 5 ? "false" : "true", is_stream ? "true" : "false");
    ask(c, body);
}

static void ask_badly(client *c)
{
    static const char *const requests[] = {
        "GET\r\n\r\n",
        "\r\n\r\n\r\n\r\n",
        "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Content-Length: -5\r\n\r\n{}",
        "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Content-Length: 99999999999999999999\r\n\r\n{}",
        "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
        "GET /../../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Connection: close\r\n\r\n",
        "GET /%2e%2e/%00 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Connection: close\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        "POST / HTTP/9.9\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
        "DELETE /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Connection: close\r\n\r\n",
    };
    enum { COUNT = sizeof requests / sizeof requests[0] };
    const uint32_t which = draw() % (COUNT + 1);
    c->bytes = which < COUNT ? strlen(requests[which]) : 1500;
    if (which < COUNT)
        memcpy(c->request, requests[which], c->bytes);
    for (size_t i = 0; which == COUNT && i < c->bytes; i++)
        c->request[i] = (char)draw();
}

static void begin(client *c, way how)
{
    char *answer = c->answer ? c->answer : malloc(ROOM);
    *c = (client){
        .fd = connect_to(), .way = how, .answer = answer, .since = now_ms()
    };
    switch (how) {
    case GOOD:
    case STREAM:
        ask_well(c, how == STREAM);
        break;
    case LEAVES:
    case SLOWLY:
        ask_well(c, draw() % 2 != 0);
        c->goes = 1 + draw() % (c->bytes + 400);
        break;
    case NO_JSON:
        ask(c, draw() % 2 ? "{\"prompt\": " : "{\"prompt\": [[1], 2, 9e9]}");
        break;
    case TOO_LARGE:
        c->bytes = (size_t)snprintf(
            c->request, sizeof c->request,
            "POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
            "Connection: close\r\nContent-Length: 50000000\r\n\r\n{\"a\": \"",
            port);
        break;
    default:
        ask_badly(c);
    }
}

/* ---- what they get ---- */

/* What an answer has of its own: its number and its moment. */
static void blot(char *text, const char *before, size_t count)
{
    for (char *at = text; (at = strstr(at, before));) {
        at += strlen(before);
        for (size_t i = 0; i < count && at[i]; i++)
            at[i] = '-';
    }
}

static void expect_right(client *c)
{
    char *body = strstr(c->answer, "\r\n\r\n");
    char **right = &rights[c->way == STREAM][c->text];
    if (!body)
        die(c, "no whole answer");
    blot(body, "\"id\": \"cmpl-", 16);
    blot(body, "\"created\": ", 10);
    if (c->way == GOOD && !strstr(body, "\"finish_reason\": \""))
        die(c, "an answer that isn't whole");
    if (c->way == STREAM && !strstr(body, "data: [DONE]"))
        die(c, "a stream that isn't whole");
    if (c->way == STREAM)
        return; /* cut where its pieces were sent: by chunks of HTTP */
    if (!*right)
        *right = strdup(body);
    else if (strcmp(*right, body) != 0) {
        fprintf(stderr, "storm: before it was\n%s\n", *right);
        die(c, "another answer than the same request had before");
    }
}

static void judge(client *c)
{
    int number = 0;
    c->answer[c->got < ROOM ? c->got : ROOM - 1] = '\0';
    const int is_http = sscanf(c->answer, "HTTP/1.%*d %d", &number) == 1;
    if ((c->way == GOOD || c->way == STREAM || c->way == NO_JSON) &&
        number == 429) {
        refused++;
        if (!strstr(c->answer, "Retry-After: "))
            die(c, "a refusal that doesn't say when to come back");
        return;
    }
    if ((c->way == GOOD || c->way == STREAM) && number != 200)
        die(c, "no answer, or a wrong one");
    if (c->way == GOOD || c->way == STREAM)
        expect_right(c);
    if (c->way == NO_JSON &&
        (number != 400 || !strstr(c->answer, "\"invalid_request_error\"")))
        die(c, "400 was expected");
    if (c->way == TOO_LARGE && is_http && number != 413)
        die(c, "413 was expected");
    if (c->way == NO_HTTP && is_http && (number < 400 || number > 505))
        die(c, "an answer to nonsense");
    if (strstr(c->answer, "root:x:"))
        die(c, "a file that is nobody's business");
}

static void end(client *c)
{
    close(c->fd);
    c->fd = -1;
    done[c->way]++;
}

/* ---- their moments ---- */

static void send_some(client *c)
{
    size_t left = c->bytes - c->sent;
    if (c->way == SLOWLY && left > 1)
        left = 1;
    const ssize_t n = send(c->fd, c->request + c->sent, left, MSG_NOSIGNAL);
    if (n > 0)
        c->sent += (size_t)n;
    else if (errno != EAGAIN)
        c->sent = c->bytes; /* it was cut off: what came back says why */
}

static void read_some(client *c)
{
    char rest[4096];
    const int is_full = c->got + 1 >= ROOM;
    const ssize_t n = is_full
                          ? read(c->fd, rest, sizeof rest)
                          : read(c->fd, c->answer + c->got, ROOM - 1 - c->got);
    if (n > 0 && !is_full)
        c->got += (size_t)n;
    if (n > 0 || (n < 0 && errno == EAGAIN))
        return;
    if (c->way != SLOWLY && c->way != LEAVES)
        judge(c);
    end(c);
}

static int wants_to_write(const client *c)
{
    /* a slow one has its moment now and then */
    return c->sent < c->bytes && (c->way != SLOWLY || draw() % 16 == 0);
}

static void move(client *c, int events)
{
    if (events & POLLOUT)
        send_some(c);
    if (c->goes && c->way == LEAVES && c->sent + c->got >= c->goes) {
        end(c);
        return;
    }
    /* nonsense may be the beginning of something: nobody waits for its end */
    if (c->way == NO_HTTP && c->sent == c->bytes && now_ms() - c->since > 500) {
        end(c);
        return;
    }
    if (events & (POLLIN | POLLHUP | POLLERR))
        read_some(c);
    else if (c->way != SLOWLY && now_ms() - c->since > PATIENCE_MS)
        die(c, "no answer in a minute");
}

static void pass(size_t count, int wait_ms)
{
    static struct pollfd polled[CROWD + MOST_SLOW];
    static client *who[CROWD + MOST_SLOW];
    nfds_t n = 0;
    for (size_t i = 0; i < count; i++) {
        client *c = &crowd[i];
        if (c->fd < 0)
            continue;
        who[n] = c;
        polled[n++] = (struct pollfd){
            .fd = c->fd,
            .events = (short)(POLLIN | (wants_to_write(c) ? POLLOUT : 0)),
        };
    }
    poll(polled, n, wait_ms);
    for (nfds_t i = 0; i < n; i++)
        move(who[i], polled[i].revents);
}

/* ---- afterwards ---- */

/* Nothing that was asked for is there any more. */
static void expect_quiet(void)
{
    client c = { .way = GOOD };
    c.answer = malloc(ROOM);
    for (int tries = 0; tries < 300; tries++) {
        const struct timespec moment = { 0, 100000000 };
        ssize_t n;
        c.fd = connect_to();
        fcntl(c.fd, F_SETFL, 0);
        c.bytes = (size_t)snprintf(c.request, sizeof c.request,
                                   "GET /health HTTP/1.1\r\nHost: localhost:%d"
                                   "\r\nConnection: close\r\n\r\n",
                                   port);
        c.got = 0;
        if (send(c.fd, c.request, c.bytes, MSG_NOSIGNAL) != (ssize_t)c.bytes)
            die(&c, "the server is gone");
        while ((n = read(c.fd, c.answer + c.got, ROOM - 1 - c.got)) > 0)
            c.got += (size_t)n;
        c.answer[c.got] = '\0';
        close(c.fd);
        if (strstr(c.answer, "\"busy_slots\": 0, \"requests\": 0,")) {
            free(c.answer);
            return;
        }
        nanosleep(&moment, NULL);
    }
    die(&c, "requests that nobody waits for are still there");
}

static way choose_way(void)
{
    const uint32_t number = draw() % 20;
    return number < 7    ? GOOD
           : number < 10 ? STREAM
           : number < 14 ? LEAVES
           : number < 16 ? NO_JSON
           : number < 17 ? TOO_LARGE
                         : NO_HTTP;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "storm PORT REQUESTS SLOW\n");
        return 2;
    }
    port = atoi(argv[1]);
    const long requests = atol(argv[2]);
    const size_t slow = (size_t)atol(argv[3]),
                 count = CROWD + (slow < MOST_SLOW ? slow : MOST_SLOW);
    for (size_t i = 0; i < count; i++)
        crowd[i].fd = -1;
    for (size_t i = CROWD; i < count; i++)
        begin(&crowd[i], SLOWLY);
    for (int busy = 1; busy;) {
        busy = 0;
        for (size_t i = 0; i < CROWD; i++) {
            if (crowd[i].fd < 0 && begun < requests) {
                begin(&crowd[i], choose_way());
                begun++;
            }
            busy |= crowd[i].fd >= 0;
        }
        pass(count, 20);
    }
    for (size_t i = CROWD; i < count; i++)
        if (crowd[i].fd >= 0)
            end(&crowd[i]);
    expect_quiet();
    for (int i = 0; i < WAYS; i++)
        printf("%s %ld, ", names[i], done[i]);
    printf("told to come back %ld\n", refused);
    for (size_t i = 0; i < count; i++)
        free(crowd[i].answer);
    for (int i = 0; i < KINDS_OF_TEXT; i++)
        free(rights[0][i]);
    return done[GOOD] > refused ? 0 : 1;
}
