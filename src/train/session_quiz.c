/* session_quiz.c: see session_quiz.h. */
#include "train/session_quiz.h"
#include "store/task_lines.h"

static pl_status check(const pl_config *config, const pl_tokenizer *tokenizer,
                       const char *folder, pl_error *err)
{
    const long long interval = (long long)config->task_interval;
    if (config->tasks.count == 0 || *pl_texts_at(&config->tasks, 0) == '\0')
        return pl_fail(err, PL_E_CONFIG,
                       "task_interval = %lld, but there are no tasks. Name "
                       "files or folders, tasks = ['arc.jsonl'], or set "
                       "task_interval = 0",
                       interval);
    if (tokenizer->kind == PL_TOKENIZER_NONE)
        return pl_fail(err, PL_E_CONFIG,
                       "task_interval = %lld, but %s has token ids without a "
                       "tokenizer: no task can be read. Put the tokenizer "
                       "beside the data, or set task_interval = 0",
                       interval, folder);
    return PL_OK;
}

pl_status pl_session_quiz_open(pl_session_quiz *quiz, const pl_config *config,
                               const pl_tokenizer *tokenizer,
                               const char *folder, pl_heap *heap, pl_error *err)
{
    pl_requests *requests = &quiz->requests;
    *quiz = (pl_session_quiz){ .results = NULL };
    if (config->task_interval == 0)
        return PL_OK;
    pl_status status = check(config, tokenizer, folder, err);
    if (!status)
        status = pl_requests_open_keyed(
            requests, config, (size_t)config->block_size, tokenizer, heap, err);
    if (!status && requests->tasks.count > PL_TASK_LINES_MOST)
        status = pl_fail(err, PL_E_CONFIG,
                         "tasks has %zu of them, and a training asks %d at the "
                         "most",
                         requests->tasks.count, PL_TASK_LINES_MOST);
    if (!status)
        status = pl_requests_check(requests, tokenizer, NULL, NULL, err);
    if (!status)
        status = pl_heap_take(heap, &quiz->results, requests->tasks.count,
                              sizeof *quiz->results, err);
    return status;
}
