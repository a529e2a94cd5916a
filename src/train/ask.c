/* ask.c: see ask.h. */
#include "train/ask.h"
#include "base/clock.h"
#include "base/exact.h"
#include "data/task_text.h"

#include <math.h>
#include <string.h>

const char *pl_ask_measure_name(pl_measure measure)
{
    static const char *const names[] = {
#define NAME(id, name) name,
        PL_MEASURE_TABLE(NAME)
#undef NAME
    };
    return names[measure];
}

int pl_ask_has_measure(pl_task_kind kind, pl_measure measure)
{
    switch (measure) {
    case PL_MEASURE_WHOLE:
        return 1;
    case PL_MEASURE_CHARACTERS:
    case PL_MEASURE_BYTES:
        return kind == PL_TASK_CHOICE;
    case PL_MEASURE_TOKENS:
        return kind != PL_TASK_LANGUAGE;
    case PL_MEASURES:
        break;
    }
    return 0;
}

/* ---- one item ---- */

typedef struct asking {
    pl_session *session;
    const pl_requests *requests;
    const pl_ask_watch *watch;
    pl_scorer scorer;
    uint64_t asked, tokens; /* so far */
    double began;
} asking;

static int wants_stop(const asking *a)
{
    return a->watch->stop && a->watch->stop(a->watch->context);
}

static int between_steps(void *context, const pl_step *step)
{
    (void)step;
    return wants_stop(context);
}

static void tell_progress(const asking *a)
{
    const double seconds = pl_clock_seconds() - a->began,
                 share = a->requests->tokens
                             ? (double)a->tokens / (double)a->requests->tokens
                             : 0.0;
    const pl_progress progress = {
        .step = a->session->run.step,
        .done = a->asked,
        .total = a->requests->requests,
        .share = share,
        .tokens_per_second = seconds > 0.0 ? (double)a->tokens / seconds : 0.0,
        .seconds_left = share > 0.0 ? seconds * (1.0 / share - 1.0) : 0.0,
    };
    if (a->watch->progress)
        a->watch->progress(a->watch->context, &progress);
}

/* What a log probability is divided by. lm-eval counts what a line calls its
 * choice, without what stands between it and its context. */
static double length_of(const pl_task *task, const pl_task_item *item,
                        size_t at, pl_measure measure, size_t tokens)
{
    const pl_task_text text = pl_task_continuation(task->kind, item, at);
    switch (measure) {
    case PL_MEASURE_CHARACTERS:
        return (double)pl_task_text_characters(text.text, text.bytes);
    case PL_MEASURE_BYTES:
        return (double)text.bytes;
    case PL_MEASURE_TOKENS:
        return (double)tokens;
    case PL_MEASURE_WHOLE:
    case PL_MEASURES:
        break;
    }
    return 1.0;
}

/* The first of the likeliest. What has no length is the least likely. */
static size_t pick(const asking *a, const pl_ask_answer *answer,
                   pl_measure measure)
{
    const pl_task_item *item = answer->item;
    size_t best = 0;
    double most = -HUGE_VAL;
    for (size_t i = 0; i < item->count; i++) {
        const double length = length_of(answer->task, item, i, measure,
                                        a->requests->lengths[i]);
        const double score = length > 0.0 ? answer->logprobs[i] / length
                                          : -HUGE_VAL;
        if (score > most) {
            most = score;
            best = i;
        }
    }
    return best;
}

static pl_status ask_item(asking *a, const pl_task *task, size_t at,
                          pl_ask_answer *answer, pl_error *err)
{
    const pl_task_item *item = &task->items[at];
    *answer = (pl_ask_answer){ .task = task,
                               .item = item,
                               .logprobs = a->requests->logprobs };
    for (size_t i = 0; i < item->count; i++) {
        pl_request request;
        pl_scored scored;
        tell_progress(a);
        if (wants_stop(a))
            return pl_fail(err, PL_E_STOPPED, "stopped while asking %s",
                           task->label);
        pl_status status = pl_request_encode(&request, a->requests, task, at, i,
                                             &a->session->run.tokenizer, err);
        if (!status)
            status = pl_scorer_score(&a->scorer, request.tokens, request.count,
                                     request.from, &scored, err);
        if (status)
            return status;
        a->requests->logprobs[i] = scored.logprob;
        a->requests->lengths[i] = request.count - request.from;
        answer->cut |= request.cut;
        if (i == item->gold)
            answer->greedy = scored.greedy;
        a->asked++;
        a->tokens += request.count;
    }
    for (int m = 0; m < PL_MEASURES; m++)
        answer->picks[m] = pl_ask_has_measure(task->kind, (pl_measure)m)
                               ? pick(a, answer, (pl_measure)m)
                               : item->count;
    return PL_OK;
}

/* ---- a task ---- */

typedef struct sums {
    uint64_t right[PL_MEASURES], cut;
    double logprobs, squares; /* of a language task's continuations */
} sums;

static int is_right(const pl_ask_answer *answer, int measure)
{
    return answer->task->kind == PL_TASK_LANGUAGE
               ? answer->greedy
               : answer->picks[measure] == answer->item->gold;
}

/* The mean of so many times 1 among 0s, as lm-eval has its error. */
static pl_measured share_of(uint64_t right, double n)
{
    const double mean = (double)right / n;
    return (pl_measured){ .value = mean,
                          .error = n > 1.0
                                       ? sqrt(mean * (1.0 - mean) / (n - 1.0))
                                       : (double)NAN };
}

/* exp of minus the mean; its error by the slope of that. */
static pl_measured perplexity_of(const sums *s, double n)
{
    const double mean = s->logprobs / n, value = pl_exact_exp(-mean),
                 variance = (s->squares - n * mean * mean) / (n - 1.0);
    return (pl_measured){ .value = value,
                          .error = n > 1.0
                                       ? value * sqrt(fmax(variance, 0.0) / n)
                                       : (double)NAN };
}

static pl_task_result conclude(const pl_task *task, const sums *s)
{
    static const pl_measured none = { (double)NAN, (double)NAN };
    const double n = (double)task->asked;
    const pl_measure core = task->kind == PL_TASK_LANGUAGE ? PL_MEASURE_WHOLE
                                                           : PL_MEASURE_TOKENS;
    pl_task_result result = {
        .label = task->label,
        .kind = pl_task_kind_name(task->kind),
        .items = task->asked,
        .cut = s->cut,
        .perplexity = task->kind == PL_TASK_LANGUAGE ? perplexity_of(s, n)
                                                     : none,
        .chance = task->chance,
    };
    for (int m = 0; m < PL_MEASURES; m++)
        result.accuracy[m] = pl_ask_has_measure(task->kind, (pl_measure)m)
                                 ? share_of(s->right[m], n)
                                 : none;
    result.centred = (result.accuracy[core].value - task->chance) /
                     (1.0 - task->chance);
    return result;
}

static pl_status ask_task(asking *a, const pl_task *task,
                          pl_task_result *result, pl_error *err)
{
    sums s = { .cut = 0 };
    for (size_t i = 0; i < task->asked; i++) {
        pl_ask_answer answer;
        pl_status status = ask_item(a, task, i, &answer, err);
        if (status)
            return status;
        for (int m = 0; m < PL_MEASURES; m++)
            s.right[m] += (uint64_t)is_right(&answer, m);
        s.cut += (uint64_t)answer.cut;
        s.logprobs += answer.logprobs[0];
        s.squares += answer.logprobs[0] * answer.logprobs[0];
        if (a->watch->answered)
            a->watch->answered(a->watch->context, &answer);
    }
    *result = conclude(task, &s);
    return PL_OK;
}

pl_status pl_ask(pl_session *session, const pl_requests *requests,
                 const pl_ask_watch *watch, pl_task_result *results,
                 pl_error *err)
{
    const pl_tasks *tasks = &requests->tasks;
    asking a = { .session = session,
                 .requests = requests,
                 .watch = watch,
                 .began = pl_clock_seconds() };
    const pl_run_watch steps = { .context = &a, .between = between_steps };
    pl_status status = PL_OK;
    a.scorer = pl_scorer_make(session, requests->cached, &steps);
    for (size_t i = 0; i < tasks->count && !status; i++)
        status = ask_task(&a, &tasks->tasks[i], &results[i], err);
    return status;
}

double pl_ask_centred(const pl_task_result *results, size_t count)
{
    double sum = 0.0;
    for (size_t i = 0; i < count; i++)
        sum += results[i].centred;
    return sum / (double)count;
}
