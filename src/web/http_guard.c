/* http_guard.c: which requests http.h lets through. A page of somebody else's,
 * open in the same browser, may send requests here: it is known by the Host
 * that its name gave it (DNS rebinding), by its Origin, or by what the browser
 * says of the request (Sec-Fetch-Site). */
#include "web/http_parts.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *header(const pl_http_exchange *exchange, const char *name)
{
    return exchange->http->calls->MHD_lookup_connection_value(
        exchange->connection, MHD_HEADER_KIND, name);
}

/* ---- Host ---- */

static enum MHD_Result count_host(void *context, enum MHD_ValueKind kind,
                                  const char *key, const char *value)
{
    int *count = context;
    (void)kind;
    (void)value;
    *count += strcasecmp(key, "Host") == 0;
    return MHD_YES;
}

static int has_name(const char *host, size_t n, const char *name)
{
    return strlen(name) == n && strncasecmp(host, name, n) == 0;
}

/* The bytes of `host` before its port. The port isn't compared: behind a
 * tunnel (ssh -L) it is another one, and a name is what rebinding needs. */
static size_t name_bytes(const char *host)
{
    size_t n = host[0] == '[' ? strcspn(host, "]") : strcspn(host, ":");
    return n + (host[n] == ']');
}

static int host_is_ours(const pl_http *http, const char *host)
{
    size_t n = name_bytes(host);
    if (host[n] != '\0' &&
        (host[n] != ':' ||
         strspn(host + n + 1, "0123456789") != strlen(host + n + 1)))
        return 0;
    const char *const *names = http->wish.hosts;
    for (size_t i = 0; names && names[i]; i++)
        if (has_name(host, n, names[i]))
            return 1;
    if (has_name(host, n, "localhost") || has_name(host, n, http->bound))
        return 1;
    if (http->is_loopback)
        return has_name(host, n, "127.0.0.1") || has_name(host, n, "[::1]");
    /* a number needs no DNS that could lie */
    return pl_http_is_address(host, n);
}

/* ---- where it comes from ---- */

static int same_site(const pl_http_exchange *exchange, const char *host)
{
    const char *origin = header(exchange, "Origin");
    const char *site = header(exchange, "Sec-Fetch-Site");
    const char *mode = header(exchange, "Sec-Fetch-Mode");
    if (origin) {
        const char *rest = NULL;
        if (strncasecmp(origin, "http://", 7) == 0)
            rest = origin + 7;
        else if (strncasecmp(origin, "https://", 8) == 0)
            rest = origin + 8; /* a proxy in front of us */
        if (!rest || strcasecmp(rest, host) != 0)
            return 0;
    }
    /* a link on another page may lead here; its scripts and images may not */
    if (site && (strcasecmp(site, "cross-site") == 0 ||
                 strcasecmp(site, "same-site") == 0))
        return mode && strcasecmp(mode, "navigate") == 0;
    return 1;
}

/* ---- the token ---- */

/* Takes as long whatever the difference is. */
static int is_token(const pl_http *http, const char *text)
{
    unsigned char difference = 0;
    size_t n = text ? strlen(text) : 0;
    size_t need = strlen(http->token);
    for (size_t i = 0; i < need; i++)
        difference |= (unsigned char)(http->token[i] ^
                                      (i < n ? text[i] : '\0'));
    return text && n == need && difference == 0;
}

static int has_token(pl_http_exchange *exchange)
{
    const pl_http *http = exchange->http;
    const char *bearer = header(exchange, "Authorization");
    if (bearer && strncasecmp(bearer, "Bearer ", 7) == 0 &&
        is_token(http, bearer + 7 + strspn(bearer + 7, " ")))
        return 1;
    if (is_token(http,
                 http->calls->MHD_lookup_connection_value(
                     exchange->connection, MHD_COOKIE_KIND, http->cookie)))
        return 1;
    if (!is_token(http,
                  http->calls->MHD_lookup_connection_value(
                      exchange->connection, MHD_GET_ARGUMENT_KIND, "token")))
        return 0;
    exchange->takes_cookie = 1;
    return 1;
}

/* ---- all of it ---- */

static int is_first(pl_http *http, pl_http_refusal kind)
{
    int first = !http->told[kind];
    http->told[kind] = 1;
    return first;
}

int pl_http_guard(pl_http_exchange *exchange, const char **text)
{
    pl_http *http = exchange->http;
    const char *host = header(exchange, "Host");
    int count = 0;
    http->calls->MHD_get_connection_values(exchange->connection,
                                           MHD_HEADER_KIND, count_host, &count);
    if (!host || count != 1) {
        *text = "A request has one Host.\n";
        return 400;
    }
    if (!host_is_ours(http, host)) {
        if (is_first(http, PL_HTTP_REFUSED_HOST))
            pl_log_say(http->wish.log, PL_LOG_WARN,
                       "a request for the host '%.100s' was refused, since no "
                       "such name is known here: a page elsewhere may have "
                       "sent it",
                       host);
        *text = "This server has no such name.\n";
        return 403;
    }
    if (!same_site(exchange, host)) {
        if (is_first(http, PL_HTTP_REFUSED_ORIGIN))
            pl_log_say(http->wish.log, PL_LOG_WARN,
                       "a request that another page sent ('%.100s') was "
                       "refused",
                       header(exchange, "Origin") ? header(exchange, "Origin")
                                                  : "unknown");
        *text = "Requests from other pages are refused.\n";
        return 403;
    }
    if (http->token[0] && !has_token(exchange)) {
        if (is_first(http, PL_HTTP_REFUSED_TOKEN))
            pl_log_say(http->wish.log, PL_LOG_WARN,
                       "a request without the token was refused");
        *text = "The token is missing or wrong: open the address that ends in "
                "?token=..., or send Authorization: Bearer ...\n";
        return 401;
    }
    return 0;
}
