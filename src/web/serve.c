/* serve.c: see serve.h. Routes, and the one loop. */
#include "web/serve.h"
#include "base/clock.h"
#include "web/page.h"
#include "web/serve_parts.h"

#include <stdio.h>
#include <string.h>

/* ---- answers that are there at once ---- */

void pl_serve_complain(pl_serve *serve, pl_http_exchange *exchange,
                       const pl_complaint *complaint)
{
    static const char worst[] =
        "{\"error\": {\"message\": \"No memory is left.\", \"type\": "
        "\"server_error\", \"param\": null, \"code\": null}}\n";
    pl_json_line *line = &serve->line;
    pl_json_line_empty(line);
    pl_json_line_raw(line, "{\"error\": {\"message\": ");
    pl_json_line_string(line, complaint->message, strlen(complaint->message));
    pl_json_line_format(line,
                        ", \"type\": \"%s\", \"param\": ", complaint->type);
    if (*complaint->param)
        pl_json_line_string(line, complaint->param, strlen(complaint->param));
    else
        pl_json_line_raw(line, "null");
    pl_json_line_raw(line, ", \"code\": ");
    if (complaint->code)
        pl_json_line_string(line, complaint->code, strlen(complaint->code));
    else
        pl_json_line_raw(line, "null");
    pl_json_line_raw(line, "}}\n");
    if (line->failed)
        pl_http_reply_static(exchange, 503, PL_SERVE_JSON, worst,
                             sizeof worst - 1);
    else
        pl_http_reply(exchange, complaint->status, PL_SERVE_JSON, line->text,
                      line->used);
}

static void reply_line(pl_serve *serve, pl_http_exchange *exchange)
{
    pl_complaint complaint;
    if (!serve->line.failed) {
        pl_http_reply(exchange, 200, PL_SERVE_JSON, serve->line.text,
                      serve->line.used);
        return;
    }
    pl_complain(&complaint, 503, "", "No memory is left for the answer.");
    pl_serve_complain(serve, exchange, &complaint);
}

static void put_model(const pl_serve *serve, pl_json_line *line)
{
    pl_json_line_raw(line, "{\"id\": ");
    pl_json_line_string(line, serve->wish.model, strlen(serve->wish.model));
    pl_json_line_format(line,
                        ", \"object\": \"model\", \"created\": 0, "
                        "\"owned_by\": \"plimsoll\", \"max_model_len\": %zu}",
                        serve->wish.slots->T);
}

static void reply_models(pl_serve *serve, pl_http_exchange *exchange)
{
    pl_json_line_empty(&serve->line);
    pl_json_line_raw(&serve->line, "{\"object\": \"list\", \"data\": [");
    put_model(serve, &serve->line);
    pl_json_line_raw(&serve->line, "]}\n");
    reply_line(serve, exchange);
}

static void reply_model(pl_serve *serve, pl_http_exchange *exchange)
{
    pl_json_line_empty(&serve->line);
    put_model(serve, &serve->line);
    pl_json_line_raw(&serve->line, "\n");
    reply_line(serve, exchange);
}

static void reply_health(pl_serve *serve, pl_http_exchange *exchange)
{
    pl_json_line *line = &serve->line;
    pl_json_line_empty(line);
    pl_json_line_format(line,
                        "{\"status\": \"ok\", \"slots\": %zu, \"busy_slots\": "
                        "%zu, \"requests\": %zu, \"most_requests\": %zu, "
                        "\"context\": %zu, \"most_logprobs\": %d}\n",
                        serve->wish.slots->count, serve->decoder.running,
                        serve->present, serve->wish.queue, serve->wish.slots->T,
                        PL_SCORE_MOST_TOP);
    reply_line(serve, exchange);
}

/* ---- routes ---- */

/* The files of the page; no other name leads anywhere. */
static int reply_page(pl_http_exchange *exchange, const char *path)
{
    static const char *const files[][2] = { { "/", "serve.html" },
                                            { "/serve.css", "serve.css" },
                                            { "/serve.js", "serve.js" } };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const pl_page_file *file = pl_page_find(files[i][1]);
        if (strcmp(path, files[i][0]) != 0 || !file)
            continue;
        pl_http_reply_static(exchange, 200, file->type, file->bytes, file->n);
        return 1;
    }
    return 0;
}

static void handle_get(pl_serve *serve, const pl_http_request *http)
{
    static const char models[] = "/v1/models";
    const char *path = http->path;
    pl_complaint complaint;
    if (strcmp(path, "/health") == 0) {
        reply_health(serve, http->exchange);
    } else if (strcmp(path, models) == 0) {
        reply_models(serve, http->exchange);
    } else if (strncmp(path, models, sizeof models - 1) == 0 &&
               path[sizeof models - 1] == '/' &&
               strcmp(path + sizeof models, serve->wish.model) == 0) {
        reply_model(serve, http->exchange);
    } else if (!reply_page(http->exchange, path)) {
        pl_complain(&complaint, 404, "",
                    "There is no such page here. POST /v1/completions, GET "
                    "/v1/models, GET /health and GET / are.");
        pl_serve_complain(serve, http->exchange, &complaint);
    }
}

static void handle(void *context, const pl_http_request *http)
{
    pl_serve *serve = context;
    const int is_post = strcmp(http->method, "POST") == 0;
    pl_complaint complaint;
    if (strcmp(http->path, "/v1/completions") == 0 && is_post) {
        pl_serve_complete(serve, http);
        return;
    }
    if (!is_post && strcmp(http->path, "/v1/completions") != 0) {
        handle_get(serve, http);
        return;
    }
    if (strcmp(http->path, "/v1/chat/completions") == 0)
        pl_complain(&complaint, 404, "",
                    "This model has no chat template: it goes on with texts. "
                    "POST /v1/completions.");
    else
        pl_complain(&complaint, is_post ? 404 : 405, "",
                    "POST goes to /v1/completions, and nothing else does.");
    pl_serve_complain(serve, http->exchange, &complaint);
}

static void gone(void *context, pl_http_exchange *exchange)
{
    request *r = pl_http_tag(exchange);
    (void)context;
    if (r)
        pl_serve_forget(r);
}

/* ---- opening ---- */

/* What a BPE has of it; other vocabularies have no special tokens. */
static int32_t find_end_token(const pl_tokenizer *tokenizer)
{
    return tokenizer->kind == PL_TOKENIZER_BPE
               ? pl_bpe_end_token(tokenizer->bpe)
               : -1;
}

pl_status pl_serve_open(pl_serve **out, const pl_serve_wish *wish,
                        pl_heap *heap, pl_error *err)
{
    enum { TIMEOUT_SECONDS = 60 };
    pl_serve *serve;
    pl_status status = pl_heap_take(heap, &serve, 1, sizeof *serve, err);
    if (status)
        return status;
    serve->wish = *wish;
    serve->end_token = find_end_token(wish->tokenizer);
    serve->encoded_room = pl_tokenizer_most_ids(wish->tokenizer,
                                                PL_COMPLETION_BODY_BYTES);
    status = pl_heap_take(heap, &serve->requests, wish->queue,
                          sizeof *serve->requests, err);
    if (!status)
        status = pl_heap_take(heap, &serve->encoded, serve->encoded_room,
                              sizeof *serve->encoded, err);
    if (!status)
        status = pl_decoder_open(&serve->decoder, wish->slots, heap, err);
    if (!status)
        status = pl_http_open(
            &serve->http,
            &(pl_http_wish){ .host = wish->host,
                             .port = wish->port,
                             .token = wish->token,
                             .hosts = wish->hosts,
                             .max_body_bytes = PL_COMPLETION_BODY_BYTES,
                             .max_connections = PL_HTTP_MOST_CONNECTIONS,
                             .timeout_seconds = TIMEOUT_SECONDS,
                             .handle = handle,
                             .gone = gone,
                             .context = serve,
                             .log = wish->log },
            heap, err);
    *out = serve;
    return status;
}

const char *pl_serve_address(const pl_serve *serve)
{
    return pl_http_address(serve->http);
}

/* ---- the loop ---- */

enum { WAIT_MS = 200 };
#define POLL_SECONDS 0.02

/* Between the steps of a round: whoever asks for a little is answered, and who
 * went away is noticed, however long a round takes. */
static int look_around(void *context, const pl_step *done)
{
    pl_serve *serve = context;
    const double now = pl_clock_seconds();
    (void)done;
    if (now - serve->polled > POLL_SECONDS && !serve->poll_status) {
        serve->poll_status = pl_http_poll(serve->http, 0, &serve->poll_error);
        serve->polled = pl_clock_seconds();
    }
    return serve->poll_status || serve->wish.stopped(serve->wish.context);
}

/* A round, if there is anything to do, and the clients. */
static pl_status turn(pl_serve *serve, pl_error *err)
{
    const int busy = pl_decoder_busy(&serve->decoder);
    pl_status status = PL_OK;
    if (busy)
        status = pl_decoder_step(&serve->decoder, err);
    if (serve->poll_status)
        return pl_fail(err, serve->poll_status, "%s", serve->poll_error.text);
    if (!status)
        status = pl_http_poll(serve->http, busy ? 0 : WAIT_MS, err);
    serve->polled = pl_clock_seconds();
    return status;
}

pl_status pl_serve_run(pl_serve *serve, pl_error *err)
{
    const pl_run_watch watch = { serve, look_around };
    pl_status status = PL_OK;
    serve->wish.slots->watch = &watch;
    while (!status && !serve->wish.stopped(serve->wish.context))
        status = turn(serve, err);
    serve->wish.slots->watch = NULL;
    if (status == PL_E_STOPPED)
        return PL_OK; /* in the middle of a round */
    if (status) {
        pl_error ignored;
        pl_serve_fail_all(serve, err ? err->text : "the device failed");
        if (pl_http_poll(serve->http, WAIT_MS, &ignored))
            return status;
    }
    return status;
}

void pl_serve_close(pl_serve *serve)
{
    if (!serve)
        return;
    pl_http_close(serve->http);
    for (size_t i = 0; i < serve->wish.queue && serve->requests; i++)
        if (serve->requests[i].is_used)
            pl_serve_forget(&serve->requests[i]);
    pl_json_line_free(&serve->line);
}
