/* quiz.c: see quiz.h. */
#include "train/quiz.h"
#include "train/ask.h"

static pl_status ask(pl_session *session, const pl_quiz_watch *watch,
                     pl_error *err)
{
    const pl_ask_watch asking = { .context = watch->context,
                                  .progress = watch->progress,
                                  .stop = watch->stop };
    const pl_requests *requests = &session->quiz.requests;
    pl_run *run = &session->run;
    pl_status status = pl_ask(session, requests, &asking, session->quiz.results,
                              err);
    if (status == PL_E_FORMAT) {
        /* as with a text, the run itself says so when it comes to that */
        pl_log_say(run->log, PL_LOG_WARN,
                   "iteration %llu: %s No task was asked",
                   (unsigned long long)run->step, err->text);
        return PL_OK;
    }
    for (size_t i = 0; i < requests->tasks.count && !status; i++) {
        const pl_task_event event = { .step = run->step,
                                      .index = i,
                                      .count = requests->tasks.count,
                                      .result = &session->quiz.results[i] };
        pl_metrics_asked(&run->metrics, run->outdir.path, &event);
        if (watch->asked)
            watch->asked(watch->context, &event);
    }
    return status;
}

pl_status pl_quiz(pl_session *session, const pl_quiz_watch *watch,
                  pl_error *err)
{
    const pl_controls controls = session->controls;
    if (!pl_task_lines_due(session->run.config, session->run.step) ||
        session->run.metrics.tasks.step == session->run.step)
        return PL_OK;
    pl_status status = ask(session, watch, err);
    session->controls = controls;
    return status;
}
