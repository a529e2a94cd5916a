/* ask.h: tasks put to a model: which candidates it finds likely, and what that
 * makes of it. Deterministic: the same bits for every plan, number of threads
 * and device, while a model trains (by the program that samples) and afterwards
 * (by the one that serves). */
#ifndef PL_TRAIN_ASK_H
#define PL_TRAIN_ASK_H

#include "store/events.h"
#include "train/request.h"
#include "train/scorer.h"

const char *pl_ask_measure_name(pl_measure measure);
/* Whether such a task has it: one continuation has one length. */
int pl_ask_has_measure(pl_task_kind kind, pl_measure measure);

/* What a model says to one item. */
typedef struct pl_ask_answer {
    const pl_task *task;
    const pl_task_item *item;
    const double *logprobs;    /* [item->count] */
    size_t picks[PL_MEASURES]; /* item->count where there is none */
    int greedy;                /* whether the right one is */
    int cut;                   /* a context lost its beginning */
} pl_ask_answer;

typedef struct pl_ask_watch {
    void *context;
    void (*progress)(void *context, const pl_progress *progress);
    void (*answered)(void *context, const pl_ask_answer *answer);
    int (*stop)(void *context); /* asked between any two steps */
} pl_ask_watch;

/* Asks all items of all tasks, which were checked; results[tasks.count]. The
 * tokenizer is the session's, T its model's. PL_E_STOPPED where the watch ended
 * it. */
PL_MUST_CHECK pl_status pl_ask(pl_session *session, const pl_requests *requests,
                               const pl_ask_watch *watch,
                               pl_task_result *results, pl_error *err);

/* CORE's mean: how far above guessing, from 0 to 1, by CORE's measure. */
double pl_ask_centred(const pl_task_result *results, size_t count);

#endif
