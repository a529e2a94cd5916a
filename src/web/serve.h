/* serve.h: a model behind OpenAI's /v1/completions, and a page to try it.
 *
 *   POST /v1/completions   texts and their scores (completions.h)
 *   GET  /v1/models        the one model that is here
 *   GET  /health           that it is, and how busy
 *   GET  /                 the page
 *
 * One thread does it all: between two rounds of the decoder the server is
 * polled. A request waits in a queue of bounded length; a client that goes away
 * frees its slots. What requests take is bounded, and planned: PL_SERVE_BYTES.
 */
#ifndef PL_WEB_SERVE_H
#define PL_WEB_SERVE_H

#include "base/log.h"
#include "text/tokenizer.h"
#include "train/slots.h"

typedef struct pl_serve pl_serve;

enum {
    /* of all requests that are there at once */
    PL_SERVE_REQUEST_BYTES = 8 * 1024 * 1024,
    /* of the host's memory for all that isn't planned otherwise: these, JSON on
     * its way in and out, connections */
    PL_SERVE_BYTES = 48 * 1024 * 1024,
};

typedef struct pl_serve_wish {
    pl_slots *slots;
    const pl_tokenizer *tokenizer;
    const char *model; /* its name, for clients */
    uint32_t seed;     /* of requests that have none */
    size_t queue;      /* requests that are there at once */
    const char *host;  /* as pl_http_wish has them */
    int port;
    const char *token;
    const char *const *hosts; /* names of this machine, then NULL; or NULL */
    int (*stopped)(void *context); /* asked all the time: not 0 ends it */
    void *context;
    const pl_log *log;
} pl_serve_wish;

/* Listens. All memory but that of requests is `heap`'s. */
PL_MUST_CHECK pl_status pl_serve_open(pl_serve **serve,
                                      const pl_serve_wish *wish, pl_heap *heap,
                                      pl_error *err);
const char *pl_serve_address(const pl_serve *serve);

/* Serves until `stopped` says so, or the device fails. */
PL_MUST_CHECK pl_status pl_serve_run(pl_serve *serve, pl_error *err);

void pl_serve_close(pl_serve *serve); /* NULL is fine */

#endif
