/* http_listen.c: the sockets of http.h. They are opened here and not by the
 * library, whose error would be a number without a reason. */
#include "web/http_parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef union any_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
} any_address;

/* The address that `host` names, with its port; its size, or 0. */
static socklen_t read_address(const char *host, int port, any_address *address)
{
    if (strcmp(host, "localhost") == 0)
        host = "127.0.0.1";
    memset(address, 0, sizeof *address);
    if (inet_pton(AF_INET, host, &address->four.sin_addr) == 1) {
        address->four.sin_family = AF_INET;
        address->four.sin_port = htons((uint16_t)port);
        return sizeof address->four;
    }
    if (inet_pton(AF_INET6, host, &address->six.sin6_addr) == 1) {
        address->six.sin6_family = AF_INET6;
        address->six.sin6_port = htons((uint16_t)port);
        return sizeof address->six;
    }
    return 0;
}

static int is_loopback(const any_address *address)
{
    if (address->any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&address->six.sin6_addr);
    return ntohl(address->four.sin_addr.s_addr) >> 24 == 127;
}

/* 0.0.0.0 and ::, which stand for all addresses of this machine. */
static int is_any(const any_address *address)
{
    if (address->any.sa_family == AF_INET6)
        return IN6_IS_ADDR_UNSPECIFIED(&address->six.sin6_addr);
    return address->four.sin_addr.s_addr == htonl(INADDR_ANY);
}

static pl_status refused(const pl_http *http, int error, pl_error *err)
{
    const char *host = http->wish.host;
    if (error == EADDRINUSE)
        return pl_fail(err, PL_E_IO,
                       "port %d of %s is in use by another program. Another "
                       "one is taken with --port=N, any free one with --port=0",
                       http->wish.port, host);
    if (error == EACCES)
        return pl_fail(err, PL_E_IO,
                       "port %d is not for ordinary users: take one from 1024 "
                       "on, with --port=N",
                       http->wish.port);
    if (error == EADDRNOTAVAIL)
        return pl_fail(err, PL_E_IO,
                       "%s is no address of this machine, so nothing can "
                       "listen there",
                       host);
    return pl_fail(err, PL_E_IO, "cannot listen on port %d of %s: %s",
                   http->wish.port, host, strerror(error));
}

static void note_address(pl_http *http, const any_address *address)
{
    char text[INET6_ADDRSTRLEN] = "";
    int six = address->any.sa_family == AF_INET6;
    inet_ntop(address->any.sa_family,
              six ? (const void *)&address->six.sin6_addr
                  : (const void *)&address->four.sin_addr,
              text, sizeof text);
    snprintf(http->bound, sizeof http->bound, six ? "[%s]" : "%s", text);
    const char *name = http->bound;
    if (is_any(address) && http->wish.hosts && http->wish.hosts[0])
        name = http->wish.hosts[0];
    else if (is_any(address))
        name = six ? "[::1]" : "127.0.0.1";
    snprintf(http->address, sizeof http->address, "http://%s:%d/", name,
             http->port);
}

pl_status pl_http_listen(pl_http *http, int *fd, pl_error *err)
{
    any_address address;
    const char *host = http->wish.host;
    socklen_t size = read_address(host, http->wish.port, &address);
    if (!size)
        return pl_fail(err, PL_E_USAGE,
                       "'%s' is no address to listen on: 127.0.0.1 is for this "
                       "machine alone, 0.0.0.0 for all that reach it",
                       host);
    http->is_loopback = is_loopback(&address);
    if (!http->is_loopback && !http->token[0])
        return pl_fail(err, PL_E_USAGE,
                       "other machines reach %s, so that a token is needed: "
                       "--token=TEXT, which clients then have to give",
                       host);
    int family = address.any.sa_family;
    *fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return refused(http, errno, err);
    int yes = 1;
    /* a port whose last server has just ended is free */
    setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (family == AF_INET6)
        setsockopt(*fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    if (bind(*fd, &address.any, size) != 0 || listen(*fd, 64) != 0 ||
        getsockname(*fd, &address.any, &size) != 0) {
        int error = errno;
        close(*fd);
        return refused(http, error, err);
    }
    http->port = ntohs(family == AF_INET6 ? address.six.sin6_port
                                          : address.four.sin_port);
    note_address(http, &address);
    return PL_OK;
}

void pl_http_unlisten(int fd)
{
    close(fd);
}

int pl_http_is_address(const char *text, size_t n)
{
    char copy[INET6_ADDRSTRLEN + 2];
    any_address address;
    if (n == 0 || n >= sizeof copy)
        return 0;
    memcpy(copy, text, n);
    copy[n] = '\0';
    if (copy[0] != '[')
        return inet_pton(AF_INET, copy, &address.four.sin_addr) == 1;
    if (copy[n - 1] != ']')
        return 0;
    copy[n - 1] = '\0';
    return inet_pton(AF_INET6, copy + 1, &address.six.sin6_addr) == 1;
}

void pl_http_cut_off(int fd)
{
    shutdown(fd, SHUT_RDWR);
}
