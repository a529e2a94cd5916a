/* serve_request.c: requests to /v1/completions: taken on, written, answered. */
#include "base/clock.h"
#include "web/serve_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- answers ---- */

static void put_head(const request *r, pl_json_line *line)
{
    pl_json_line_format(line,
                        "{\"id\": \"%s\", \"object\": \"text_completion\", "
                        "\"created\": %" PRId64 ", \"model\": ",
                        r->id, r->created);
    pl_json_line_string(line, r->serve->wish.model,
                        strlen(r->serve->wish.model));
    pl_json_line_raw(line, ", \"choices\": [");
}

static void put_usage(const request *r, pl_json_line *line)
{
    pl_json_line_format(line,
                        ", \"usage\": {\"prompt_tokens\": %zu, "
                        "\"completion_tokens\": %zu, \"total_tokens\": %zu}",
                        r->prompt_tokens, r->completion_tokens,
                        r->prompt_tokens + r->completion_tokens);
}

/* Gives back all that the request has. */
static void release(request *r)
{
    pl_serve *serve = r->serve;
    for (size_t i = 0; i < r->count; i++)
        pl_choice_close(&r->choices[i]);
    pl_heap_close(&r->heap);
    serve->bytes -= r->bytes;
    serve->present--;
    *r = (request){ .serve = serve };
}

void pl_serve_forget(request *r)
{
    r->exchange = NULL;
    for (size_t i = 0; i < r->count; i++)
        pl_decoder_drop(&r->serve->decoder, &r->choices[i].text);
    release(r);
}

/* Sends serve->line as an event. The client may be gone then: its texts end
 * with the next token, or aren't begun. */
static void push(request *r)
{
    pl_json_line *line = &r->serve->line;
    pl_json_line_raw(line, "\n\n");
    if (!r->exchange)
        return;
    if (line->failed) {
        pl_http_finish(r->exchange); /* without [DONE]: it is cut short */
        r->exchange = NULL;
    } else if (!pl_http_push(r->exchange, line->text, line->used)) {
        r->exchange = NULL;
    }
}

static void push_choice(request *r, pl_choice *choice)
{
    pl_json_line *line = &r->serve->line;
    pl_json_line_empty(line);
    pl_json_line_raw(line, "data: ");
    put_head(r, line);
    pl_choice_put(choice, line);
    pl_json_line_raw(line,
                     r->wish.include_usage ? "], \"usage\": null}" : "]}");
    push(r);
}

static void end_stream(request *r)
{
    pl_json_line *line = &r->serve->line;
    pl_json_line_empty(line);
    if (r->wish.include_usage) {
        pl_json_line_raw(line, "data: ");
        put_head(r, line);
        pl_json_line_raw(line, "]");
        put_usage(r, line);
        pl_json_line_raw(line, "}\n\n");
    }
    pl_json_line_raw(line, "data: [DONE]");
    push(r);
    if (r->exchange)
        pl_http_finish(r->exchange);
}

static void reply(request *r)
{
    pl_serve *serve = r->serve;
    pl_json_line *line = &serve->line;
    pl_json_line_empty(line);
    put_head(r, line);
    for (size_t i = 0; i < r->count; i++) {
        pl_json_line_raw(line, i > 0 ? ", " : "");
        pl_choice_put(&r->choices[i], line);
        r->failed |= r->choices[i].failed;
    }
    pl_json_line_raw(line, "]");
    put_usage(r, line);
    pl_json_line_raw(line, "}\n");
    if (line->failed || r->failed) {
        pl_complaint complaint;
        pl_complain(&complaint, 503, "", "No memory is left for the answer.");
        pl_serve_complain(serve, r->exchange, &complaint);
    } else {
        pl_http_reply(r->exchange, 200, PL_SERVE_JSON, line->text, line->used);
    }
}

/* ---- what the decoder tells ---- */

/* A choice begins with its text. */
static pl_choice *choice_of(pl_decoding *text)
{
    return (pl_choice *)(void *)text;
}

static pl_decoding_end take_token(void *context, pl_decoding *text,
                                  size_t index, const pl_score *score)
{
    pl_choice *choice = choice_of(text);
    request *r = context;
    const int is_echo = index < text->prompt;
    if (!r->exchange)
        return PL_DECODING_FINISHED;
    r->completion_tokens += !is_echo;
    const pl_decoding_end said = pl_choice_take(choice, text->tokens[index],
                                                score, is_echo);
    if (r->wish.stream && said == PL_DECODING_GOES_ON &&
        pl_choice_has_news(choice))
        push_choice(r, choice);
    return r->exchange ? said : PL_DECODING_FINISHED;
}

static void end_text(void *context, pl_decoding *text, pl_decoding_end end)
{
    pl_choice *choice = choice_of(text);
    request *r = context;
    pl_choice_end(choice, end == PL_DECODING_LENGTH ? "length" : "stop");
    r->ended++;
    if (!r->exchange) {
        pl_serve_forget(r);
        return;
    }
    if (r->wish.stream)
        push_choice(r, choice);
    if (!r->exchange) {
        pl_serve_forget(r);
        return;
    }
    if (r->ended < r->count)
        return;
    if (r->wish.stream)
        end_stream(r);
    else
        reply(r);
    release(r);
}

/* ---- taking it on ---- */

/* The prompt's tokens, which are the request's or serve->encoded. */
static int encode(request *r, const pl_completion_prompt *prompt,
                  const int32_t **tokens, size_t *count,
                  pl_complaint *complaint)
{
    pl_serve *serve = r->serve;
    pl_error err = { 0 };
    *tokens = prompt->tokens;
    *count = prompt->count;
    if (prompt->text) {
        *tokens = serve->encoded;
        if (pl_tokenizer_encode(serve->wish.tokenizer, prompt->text,
                                prompt->bytes, "prompt", serve->encoded,
                                serve->encoded_room, count, &err))
            return pl_complain(complaint, 400, "prompt", "%s.", err.text);
    }
    if (*count > 0)
        return 1;
    if (serve->end_token < 0)
        return pl_complain(complaint, 400, "prompt",
                           "The 'prompt' is empty. A model goes on from at "
                           "least one token, and this one's vocabulary has no "
                           "<|endoftext|> to begin with.");
    *tokens = &serve->end_token; /* what OpenAI's models begin with */
    *count = 1;
    return 1;
}

/* sample's seeds have 32 bits; the others are folded. */
static uint32_t seed_of(int64_t seed)
{
    const uint64_t bits = (uint64_t)seed;
    return (uint32_t)(bits ^ bits >> 32);
}

static int too_large(pl_complaint *complaint)
{
    return pl_complain(complaint, 400, "",
                       "The request and its answer would take too much "
                       "memory. Ask for fewer prompts or tokens, or fewer "
                       "'logprobs', at once.");
}

static int make_choice(request *r, size_t index, const int32_t *tokens,
                       size_t count, pl_complaint *complaint)
{
    pl_serve *serve = r->serve;
    const pl_completion *wish = &r->wish;
    pl_choice *choice = &r->choices[index];
    const int scored = wish->logprobs >= 0;
    const size_t most = count + wish->max_tokens;
    int32_t *own;
    if (pl_heap_take(&r->heap, &own, most, sizeof *own, NULL))
        return too_large(complaint);
    memcpy(own, tokens, count * sizeof *own);
    choice->index = index;
    choice->text = (pl_decoding){
        .tokens = own,
        .count = count,
        .most = most,
        .sampling = { .temperature = wish->temperature,
                      .top_k = wish->top_k,
                      .top_p = wish->top_p,
                      .seed = wish->has_seed ? seed_of(wish->seed)
                                             : serve->wish.seed },
        .sample = wish->has_seed ? (uint32_t)(index % wish->n)
                                 : (uint32_t)serve->texts++,
        .end_token = serve->end_token,
        .scored = scored,
        .prompt_scored = scored && wish->echo,
        .top = scored ? (size_t)wish->logprobs : 0,
        .taker = { r, take_token, end_text },
    };
    if (!pl_choice_open(choice, wish, serve->wish.tokenizer, &r->heap))
        return too_large(complaint);
    if (wish->echo && !scored)
        for (size_t i = 0; i < count; i++)
            (void)pl_choice_take(choice, own[i], NULL, 1);
    return 1;
}

/* One prompt, which is answered n times. */
static int make_prompt(request *r, size_t number, pl_complaint *complaint)
{
    const pl_completion *wish = &r->wish;
    const size_t T = r->serve->wish.slots->T;
    const int32_t *tokens;
    size_t count;
    if (!encode(r, &wish->prompts[number], &tokens, &count, complaint))
        return 0;
    if (count > T || wish->max_tokens > T - count) {
        pl_complain(complaint, 400, "prompt",
                    "This model's context has %zu tokens. You asked for %zu: "
                    "%zu of the prompt and %zu of the completion. Make one of "
                    "them shorter.",
                    T, count + wish->max_tokens, count, wish->max_tokens);
        complaint->code = "context_length_exceeded";
        return 0;
    }
    r->prompt_tokens += count;
    for (size_t i = 0; i < wish->n; i++)
        if (!make_choice(r, number * wish->n + i, tokens, count, complaint))
            return 0;
    return 1;
}

static int make_request(request *r, const pl_http_request *http,
                        pl_complaint *complaint)
{
    pl_serve *serve = r->serve;
    const pl_completion_limits limits = { .vocabulary = serve->wish.slots->V,
                                          .most_top = PL_SCORE_MOST_TOP };
    if (!pl_completion_read(&r->wish, http->body, http->body_bytes, &limits,
                            &r->heap, complaint))
        return 0;
    const size_t count = r->wish.prompt_count * r->wish.n;
    if (pl_heap_take(&r->heap, &r->choices, count, sizeof *r->choices, NULL))
        return too_large(complaint);
    r->count = count;
    for (size_t i = 0; i < r->wish.prompt_count; i++)
        if (!make_prompt(r, i, complaint))
            return 0;
    r->bytes = r->heap.taken_bytes;
    if (serve->bytes + r->bytes <= PL_SERVE_REQUEST_BYTES)
        return 1;
    r->bytes = 0;
    if (serve->bytes == 0)
        return too_large(complaint);
    return pl_complain(complaint, 429, "",
                       "The requests that are there take all memory that is "
                       "meant for them. Come back later.");
}

static request *find_free(pl_serve *serve)
{
    for (size_t i = 0; i < serve->wish.queue; i++)
        if (!serve->requests[i].is_used)
            return &serve->requests[i];
    return NULL;
}

void pl_serve_complete(pl_serve *serve, const pl_http_request *http)
{
    pl_complaint complaint;
    request *r = find_free(serve);
    if (!r) {
        pl_complain(&complaint, 429, "",
                    "%zu requests are there, and no more are taken. Come back "
                    "later.",
                    serve->wish.queue);
        complaint.code = "queue_full";
        pl_serve_complain(serve, http->exchange, &complaint);
        return;
    }
    *r = (request){ .serve = serve,
                    .is_used = 1,
                    .exchange = http->exchange,
                    .heap = pl_heap_make(PL_SERVE_REQUEST_BYTES),
                    .created = (int64_t)pl_clock_date() };
    serve->present++;
    snprintf(r->id, sizeof r->id, "cmpl-%08" PRIx64 "%08" PRIx64,
             (uint64_t)r->created, serve->served++);
    if (!make_request(r, http, &complaint)) {
        pl_serve_complain(serve, http->exchange, &complaint);
        release(r);
        return;
    }
    serve->bytes += r->bytes;
    pl_http_set_tag(http->exchange, r);
    if (r->wish.stream)
        pl_http_begin_stream(http->exchange, 200,
                             "text/event-stream; charset=utf-8");
    else
        pl_http_defer(http->exchange);
    for (size_t i = 0; i < r->count; i++)
        pl_decoder_add(&serve->decoder, &r->choices[i].text);
}

void pl_serve_fail_all(pl_serve *serve, const char *message)
{
    for (size_t i = 0; i < serve->wish.queue; i++) {
        request *r = &serve->requests[i];
        pl_complaint complaint;
        if (!r->is_used)
            continue;
        pl_complain(&complaint, 500, "", "%s.", message);
        if (r->exchange && r->wish.stream)
            pl_http_finish(r->exchange);
        else if (r->exchange)
            pl_serve_complain(serve, r->exchange, &complaint);
        pl_serve_forget(r);
    }
}
