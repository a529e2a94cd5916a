/* serve_parts.h: what serve.c and serve_request.c share. Private to them. */
#ifndef PL_WEB_SERVE_PARTS_H
#define PL_WEB_SERVE_PARTS_H

#include "train/decoder.h"
#include "web/choice.h"
#include "web/http.h"
#include "web/serve.h"

/* A request to /v1/completions from its arrival to the end of its answer. */
typedef struct request {
    pl_serve *serve;
    int is_used;
    pl_http_exchange *exchange; /* NULL: nobody waits for the answer */
    pl_heap heap;
    pl_completion wish;
    pl_choice *choices;
    size_t count, ended;
    size_t prompt_tokens, completion_tokens;
    size_t bytes; /* that it counts with among all requests */
    char id[40];
    int64_t created;
    int failed; /* an answer can't be made: no memory */
} request;

struct pl_serve {
    pl_serve_wish wish;
    pl_http *http;
    pl_decoder decoder;
    request *requests; /* [queue] */
    size_t present, bytes;
    uint64_t served, texts; /* requests so far; texts without a seed */
    int32_t end_token;      /* -1: the vocabulary has none */
    int32_t *encoded;       /* [encoded_room] */
    size_t encoded_room;    /* for a text of PL_COMPLETION_BODY_BYTES */
    pl_json_line line;      /* the answer that is being made */
    double polled;          /* when the clients were last asked */
    pl_status poll_status;  /* of asking them in the middle of a round */
    pl_error poll_error;
};

enum { PL_SERVE_MODEL_BYTES = 200 };

/* Answers, or takes it on. */
void pl_serve_complete(pl_serve *serve, const pl_http_request *http);
/* Its client is gone. */
void pl_serve_forget(request *r);
/* The same answer for all that are there. */
void pl_serve_fail_all(pl_serve *serve, const char *message);

/* {"error": ...} */
void pl_serve_complain(pl_serve *serve, pl_http_exchange *exchange,
                       const pl_complaint *complaint);

#define PL_SERVE_JSON "application/json; charset=utf-8"

#endif
