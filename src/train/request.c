/* request.c: see request.h. */
#include "train/request.h"
#include "base/check.h"
#include "base/path.h"
#include "data/task_text.h"

#include <stdio.h>
#include <string.h>

/* ---- text ---- */

/* The examples, the context and the continuation, one behind the other. Without
 * memory they are only counted. */
typedef struct page {
    char *text; /* NULL: none */
    size_t used;
    size_t context; /* of them, up to the continuation */
} page;

static void put(page *p, pl_task_text text)
{
    if (p->text)
        memcpy(p->text + p->used, text.text, text.bytes);
    p->used += text.bytes;
}

static void compose(page *p, const pl_task *task, size_t item, size_t at)
{
    const pl_task_manner *manner = &task->manner;
    const pl_task_item *own = &task->items[item];
    for (size_t i = 0; i < manner->shots; i++) {
        const pl_task_item *shot = pl_task_shot(task, item, i);
        put(p, pl_task_context(task->kind, shot, shot->gold));
        put(p, manner->between);
        put(p, pl_task_continuation(task->kind, shot, shot->gold));
        put(p, manner->behind);
    }
    put(p, pl_task_context(task->kind, own, at));
    p->context = p->used;
    put(p, manner->between);
    put(p, pl_task_continuation(task->kind, own, at));
}

/* ---- memory ---- */

static size_t longest(const pl_tasks *tasks)
{
    size_t most = 0;
    for (size_t t = 0; t < tasks->count; t++)
        for (size_t i = 0; i < tasks->tasks[t].asked; i++)
            for (size_t k = 0; k < tasks->tasks[t].items[i].count; k++) {
                page p = { .text = NULL };
                compose(&p, &tasks->tasks[t], i, k);
                most = p.used > most ? p.used : most;
            }
    return most;
}

static pl_status take_memory(pl_requests *r, const pl_tokenizer *tokenizer,
                             pl_heap *heap, pl_error *err)
{
    r->text_bytes = longest(&r->tasks);
    r->room = pl_tokenizer_most_ids(tokenizer, r->text_bytes);
    pl_status status = pl_heap_take(heap, &r->text, r->text_bytes + 1, 1, err);
    if (!status) /* a token in front of them where a context is empty */
        status = pl_heap_take(heap, &r->whole, r->room + 1, sizeof *r->whole,
                              err);
    if (!status)
        status = pl_heap_take(heap, &r->part, r->room + 1, sizeof *r->part,
                              err);
    if (!status)
        status = pl_heap_take(heap, &r->cached, r->T, sizeof *r->cached, err);
    if (!status)
        status = pl_heap_take(heap, &r->logprobs, PL_TASK_MOST_CHOICES,
                              sizeof *r->logprobs, err);
    if (!status)
        status = pl_heap_take(heap, &r->lengths, PL_TASK_MOST_CHOICES,
                              sizeof *r->lengths, err);
    return status;
}

static pl_task_text text_of(const char *text)
{
    return (pl_task_text){ text, strlen(text) };
}

pl_status pl_requests_open(pl_requests *requests, const pl_config *config,
                           const char *const *paths, size_t count, size_t T,
                           const pl_tokenizer *tokenizer, pl_heap *heap,
                           pl_error *err)
{
    const size_t before = heap->taken_bytes;
    const pl_task_manner manner = {
        .shots = (size_t)config->shots,
        .limit = config->task_limit == PL_NONE ? 0 : (size_t)config->task_limit,
        .between = text_of(config->continuation_delimiter),
        .behind = text_of(config->example_delimiter),
    };
    *requests = (pl_requests){ .T = T };
    pl_status status = pl_tasks_read(&requests->tasks, paths, count, &manner,
                                     heap, err);
    if (!status)
        status = take_memory(requests, tokenizer, heap, err);
    requests->bytes = heap->taken_bytes - before;
    return status;
}

pl_status pl_requests_open_keyed(pl_requests *requests, const pl_config *config,
                                 size_t T, const pl_tokenizer *tokenizer,
                                 pl_heap *heap, pl_error *err)
{
    const pl_texts *tasks = &config->tasks;
    const char **paths;
    pl_status status = pl_heap_take(heap, &paths, tasks->count, sizeof *paths,
                                    err);
    for (size_t i = 0; i < tasks->count && !status; i++)
        paths[i] = pl_texts_at(tasks, i);
    return status ? status
                  : pl_requests_open(requests, config, paths, tasks->count, T,
                                     tokenizer, heap, err);
}

/* ---- tokens ---- */

/* What stands for an empty context: as in lm-eval, a token that texts begin
 * with, or end with. -1: there is none. */
static int32_t first_token(const pl_tokenizer *tokenizer)
{
    if (tokenizer->kind != PL_TOKENIZER_BPE)
        return -1;
    const int32_t end = pl_bpe_special(tokenizer->bpe, "<|endoftext|>");
    return end >= 0 ? end : pl_bpe_special_at(tokenizer->bpe, 0);
}

/* Without a context, the tokens behind one that stands for it. */
static pl_status begin_empty(pl_request *request, const pl_task *task,
                             size_t item, size_t at,
                             const pl_tokenizer *tokenizer,
                             const pl_requests *requests, pl_error *err)
{
    const int32_t first = first_token(tokenizer);
    request->from = 1;
    if (first >= 0 && request->count > 1 && requests->whole[1] == first)
        return PL_OK; /* it has one */
    if (first < 0)
        return pl_fail(err, PL_E_FORMAT,
                       "%s:%zu: candidate %zu has an empty context, and this "
                       "tokenizer has no special token that could stand for it",
                       pl_path_shown(task->path), task->items[item].line,
                       at + 1);
    requests->whole[0] = first;
    request->tokens = requests->whole;
    request->count++;
    return PL_OK;
}

pl_status pl_request_encode(pl_request *request, const pl_requests *requests,
                            const pl_task *task, size_t item, size_t at,
                            const pl_tokenizer *tokenizer, pl_error *err)
{
    const size_t T = requests->T;
    char name[PL_PATH_BYTES];
    page p = { .text = requests->text };
    size_t context = 0;
    compose(&p, task, item, at);
    PL_CHECK(p.used <= requests->text_bytes);
    p.context -= pl_task_text_tail(p.text, p.context);
    snprintf(name, sizeof name, "%s:%zu", pl_path_shown(task->path),
             task->items[item].line);
    *request = (pl_request){ .tokens = requests->whole + 1 };
    pl_status status = pl_tokenizer_encode(tokenizer, p.text, p.used, name,
                                           requests->whole + 1, requests->room,
                                           &request->count, err);
    if (!status)
        status = pl_tokenizer_encode(tokenizer, p.text, p.context, name,
                                     requests->part, requests->room, &context,
                                     err);
    if (status)
        return status;
    if (context >= request->count)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: candidate %zu has an empty continuation: no token "
                       "of its own is behind those of the context",
                       name, at + 1);
    request->from = context;
    if (context == 0)
        status = begin_empty(request, task, item, at, tokenizer, requests, err);
    if (status)
        return status;
    if (request->count - request->from > T)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: candidate %zu has a continuation of %zu tokens, "
                       "and the model's context has %zu (block_size)",
                       name, at + 1, request->count - request->from, T);
    if (request->count > T + 1) {
        const size_t more = request->count - (T + 1);
        request->tokens += more;
        request->count -= more;
        request->from -= more;
        request->cut = 1;
    }
    return PL_OK;
}

pl_status pl_requests_check(pl_requests *requests,
                            const pl_tokenizer *tokenizer,
                            int (*stop)(void *context), void *context,
                            pl_error *err)
{
    const pl_tasks *tasks = &requests->tasks;
    requests->items = requests->requests = requests->tokens = 0;
    requests->cut = 0;
    for (size_t t = 0; t < tasks->count; t++) {
        const pl_task *task = &tasks->tasks[t];
        requests->items += task->asked;
        for (size_t i = 0; i < task->asked; i++)
            for (size_t k = 0; k < task->items[i].count; k++) {
                pl_request request;
                pl_status status = pl_request_encode(&request, requests, task,
                                                     i, k, tokenizer, err);
                if (status)
                    return status;
                if (stop && stop(context))
                    return pl_fail(err, PL_E_STOPPED, "stopped");
                requests->requests++;
                requests->tokens += request.count;
                requests->cut += (uint64_t)request.cut;
            }
    }
    return PL_OK;
}
