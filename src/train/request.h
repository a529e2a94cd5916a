/* request.h: what a task (data/task.h) asks of a model, as tokens: those of one
 * candidate of an item, with the examples before it. Knows no session.
 *
 * As lm-eval does it: context and continuation are encoded together and cut
 * where the context alone ends; white space at a context's end belongs to the
 * continuation; what is longer than the model's window loses its beginning; an
 * empty context is a special token. */
#ifndef PL_TRAIN_REQUEST_H
#define PL_TRAIN_REQUEST_H

#include "config/config.h"
#include "data/task.h"
#include "text/tokenizer.h"

/* Tasks, with the memory that asking takes for the longest request. */
typedef struct pl_requests {
    pl_tasks tasks;
    size_t T; /* of the model's window */
    char *text;
    int32_t *whole, *part, *cached;
    double *logprobs; /* [PL_TASK_MOST_CHOICES] */
    size_t *lengths;  /* of the candidates, in tokens */
    size_t text_bytes;
    size_t room;  /* ids that such a text may have */
    size_t bytes; /* of memory that all of this takes */
    /* what there is to do, once it was checked */
    uint64_t items, requests, tokens;
    uint64_t cut; /* requests that are longer than the window */
} pl_requests;

/* Reads the tasks as a config has them asked, with memory for what this
 * tokenizer may make of them. All of it is `heap`'s. */
PL_MUST_CHECK pl_status pl_requests_open(pl_requests *requests,
                                         const pl_config *config,
                                         const char *const *paths, size_t count,
                                         size_t T,
                                         const pl_tokenizer *tokenizer,
                                         pl_heap *heap, pl_error *err);
/* The same of the key `tasks`. */
PL_MUST_CHECK pl_status pl_requests_open_keyed(pl_requests *requests,
                                               const pl_config *config,
                                               size_t T,
                                               const pl_tokenizer *tokenizer,
                                               pl_heap *heap, pl_error *err);

/* Encodes every request once. PL_E_FORMAT says which item can't be asked: a
 * character that the tokenizer doesn't know, a continuation without tokens or
 * longer than the window. `stop` may be NULL; not 0: PL_E_STOPPED. */
PL_MUST_CHECK pl_status pl_requests_check(pl_requests *requests,
                                          const pl_tokenizer *tokenizer,
                                          int (*stop)(void *context),
                                          void *context, pl_error *err);

typedef struct pl_request {
    const int32_t *tokens; /* in the memory above, until the next one */
    size_t count;          /* at most T + 1 */
    size_t from;           /* the continuation's first, 1 at least */
    int cut;               /* there were more, before them */
} pl_request;

/* Candidate `at` of item `item`. */
PL_MUST_CHECK pl_status pl_request_encode(
    pl_request *request, const pl_requests *requests, const pl_task *task,
    size_t item, size_t at, const pl_tokenizer *tokenizer, pl_error *err);

#endif
