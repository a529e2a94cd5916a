/* train_view.c: see train_view.h. */
#include "cli/train_view.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/term.h"
#include "device/device.h"
#include "train/bench.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static double tokens_per_update(const pl_session *session)
{
    return (double)pl_config_update_tokens(session->run.config);
}

/* nanoGPT's count (after the PaLM paper): 6 N + 12 L H Q T per token. */
double pl_train_view_flops(const pl_session *session)
{
    const pl_shape *s = &session->run.shape;
    double per_token = 6.0 * (double)pl_param_count_nanogpt(s) +
                       12.0 * (double)s->L * (double)s->A * (double)s->T;
    return per_token * tokens_per_update(session);
}

/* Updates that are left, and the evaluations among them. */
static double seconds_left(const pl_train_view *view, uint64_t done)
{
    const pl_config *config = view->session->run.config;
    uint64_t end = (uint64_t)config->max_iters;
    if (done >= end)
        return 0.0;
    uint64_t interval = (uint64_t)config->eval_interval;
    double evaluations = (double)(end / interval - (done - 1) / interval);
    return (double)(end - done) * view->mean_ms * 1e-3 +
           evaluations * view->eval_seconds;
}

/* What the run's arithmetic could do at best. */
static double peak_flops(const pl_session *session)
{
    return pl_device_peak_flops(session->run.device,
                                session->run.gpt.layout.dtype);
}

/* How far the run is, for those who look at its folder. */
static void tell(const pl_train_view *view, pl_phase phase, uint64_t step,
                 double share, double tokens_per_second)
{
    pl_notes_tell(
        view->notes,
        &(pl_notes_now){
            .phase = phase,
            .step = step,
            .max_iters = (uint64_t)view->session->run.config->max_iters,
            .share = share,
            .tokens_per_second = tokens_per_second,
            .seconds_left = view->mean_ms > 0.0 ? seconds_left(view, step)
                                                : -1.0,
            .mfu = pl_mfu_share(&view->mfu),
            .peak_flops = view->mfu.peak_flops,
        });
}

static void updated(void *context, const pl_update_event *event)
{
    pl_train_view *view = context;
    const pl_session *session = view->session;
    uint64_t done = event->step + 1 - view->began_step;

    view->update_began = 0.0;
    view->mean_ms = done == 1 ? event->step_ms
                              : 0.9 * view->mean_ms + 0.1 * event->step_ms;
    pl_mfu_updated(&view->mfu, event->step_ms * 1e-3);
    if (pl_mfu_wants_probe(&view->mfu))
        pl_mfu_probed(&view->mfu, peak_flops(session));
    const double share = pl_mfu_share(&view->mfu);
    tell(view, PL_PHASE_TRAIN, event->step + 1, 0.0,
         tokens_per_update(session) / (event->step_ms * 1e-3));
    if (event->diverged)
        pl_log_say(&pl_term_log, PL_LOG_WARN,
                   "iteration %llu: the gradients are not finite, the weights "
                   "were left as they are",
                   (unsigned long long)event->step);
    else if (event->skipped)
        pl_log_say(&pl_term_log, PL_LOG_NOTE,
                   "iteration %llu: overflow in float16, skipped; the loss "
                   "scale is %g now (%llu skipped so far)",
                   (unsigned long long)event->step, event->loss_scale,
                   (unsigned long long)session->run.skipped);
    if (event->step % (uint64_t)session->run.config->log_interval != 0)
        return;
    pl_term_clear();
    printf("iter %llu: loss %.4f, time %.2fms, mfu %.2f%%, lr %.2e, norm %.3f, "
           "%.0f tok/s, %s left\n",
           (unsigned long long)event->step, event->loss, event->step_ms,
           share < 0.0 ? -100.0 : 100.0 * share, event->learning_rate,
           event->grad_norm,
           tokens_per_update(session) / (event->step_ms * 1e-3),
           pl_units_duration(seconds_left(view, event->step + 1)).text);
    fflush(stdout);
}

/* Whether it is time to draw a line of progress: what is over at once has none,
 * and none flickers. */
static int is_due(pl_train_view *view, double *began, double *now)
{
    *now = pl_clock_seconds();
    if (*began == 0.0)
        *began = *now;
    if (*now - *began < 1.0 || *now - view->shown < 0.2)
        return 0;
    view->shown = *now;
    return 1;
}

static void updating(void *context, const pl_progress *progress)
{
    pl_train_view *view = context;
    double now;
    tell(view, PL_PHASE_TRAIN, progress->step, progress->share,
         progress->tokens_per_second);
    if (!is_due(view, &view->update_began, &now))
        return;
    pl_term_progress(
        "iter %llu: %llu of %llu micro-batches, %.0f tok/s, %s left",
        (unsigned long long)progress->step, (unsigned long long)progress->done,
        (unsigned long long)progress->total, progress->tokens_per_second,
        pl_units_duration(progress->seconds_left).text);
}

static void gave_up(void *context, const pl_progress *progress)
{
    (void)context;
    pl_term_clear();
    printf("iteration %llu is given up after %llu of %llu micro-batches: a "
           "resumed run makes it anew\n",
           (unsigned long long)progress->step,
           (unsigned long long)progress->done,
           (unsigned long long)progress->total);
    fflush(stdout);
}

static void evaluating(void *context, pl_split split,
                       const pl_progress *progress)
{
    pl_train_view *view = context;
    double now, share = 0.5 * progress->share;
    if (split == PL_SPLIT_VAL)
        share += 0.5;
    tell(view, PL_PHASE_EVAL, progress->step, share,
         progress->tokens_per_second);
    if (!is_due(view, &view->eval_began, &now))
        return;
    pl_term_progress(
        "evaluating %s %3.0f %%, %.0f tok/s, %s left",
        split == PL_SPLIT_VAL ? "val" : "train", 100.0 * share,
        progress->tokens_per_second,
        pl_units_duration((now - view->eval_began) * (1.0 - share) / share)
            .text);
}

/* "0.0123 and 0.0234"; nothing is known of the error of one sequence. */
static void errors_text(char text[48], const pl_eval_event *event)
{
    const double train = event->train.standard_error,
                 val = event->val.standard_error;
    if (isfinite(train) && isfinite(val))
        snprintf(text, 48, "%.4f and %.4f", train, val);
    else
        snprintf(text, 48, "unknown");
}

static void evaluated(void *context, const pl_eval_event *event)
{
    char errors[48], bpb[32] = "";
    pl_train_view *view = context;
    size_t T = view->session->run.gpt.layout.eval_T;
    view->eval_seconds = pl_clock_seconds() - view->eval_began;
    view->eval_began = 0.0;
    pl_term_clear();
    errors_text(errors, event);
    if (event->val.bytes)
        snprintf(bpb, sizeof bpb, ", val bpb %.4f", event->val.bpb);
    printf("step %llu: train loss %.4f, val loss %.4f, +- %s%s (%s tokens "
           "each, context %zu%s)\n",
           (unsigned long long)event->step, event->train.loss, event->val.loss,
           errors, bpb, pl_units_count(event->val.tokens).text, T,
           T < view->session->run.shape.T ? ", not comparable with block_size"
                                          : "");
    fflush(stdout);
}

static void saving(void *context, uint64_t step)
{
    const pl_train_view *view = context;
    char name[PL_OUTDIR_NAME_BYTES];
    tell(view, PL_PHASE_SAVE, step, 0.0, 0.0);
    pl_outdir_name(name, step);
    pl_term_clear();
    pl_term_print("saving checkpoint to %s/%s\n",
                  view->session->run.outdir.path, name);
    fflush(stdout);
}

static void sampling(void *context, const pl_progress *progress)
{
    pl_train_view *view = context;
    double now;
    tell(view, PL_PHASE_SAMPLE, progress->step,
         progress->total ? (double)progress->done / (double)progress->total
                         : 0.0,
         progress->tokens_per_second);
    if (is_due(view, &view->sample_began, &now))
        pl_term_progress("sampling: %llu of %llu tokens, %.0f tok/s, %s left",
                         (unsigned long long)progress->done,
                         (unsigned long long)progress->total,
                         progress->tokens_per_second,
                         pl_units_duration(progress->seconds_left).text);
}

static void asking(void *context, const pl_progress *progress)
{
    pl_train_view *view = context;
    double now;
    tell(view, PL_PHASE_EVAL, progress->step, progress->share,
         progress->tokens_per_second);
    if (is_due(view, &view->quiz_began, &now))
        pl_term_progress("asking: %llu of %llu, %.0f %%, %.0f tok/s, %s left",
                         (unsigned long long)progress->done,
                         (unsigned long long)progress->total,
                         100.0 * progress->share, progress->tokens_per_second,
                         pl_units_duration(progress->seconds_left).text);
}

static void asked(void *context, const pl_task_event *event)
{
    pl_train_view *view = context;
    const pl_task_result *r = event->result;
    const pl_measured *acc = &r->accuracy[PL_MEASURE_WHOLE],
                      *norm = &r->accuracy[PL_MEASURE_CHARACTERS];
    view->quiz_began = 0.0;
    pl_term_clear();
    pl_term_print("task %llu: %s acc %.4f +- %.4f",
                  (unsigned long long)event->step, r->label, acc->value,
                  acc->error);
    if (isfinite(norm->value))
        printf(", acc_norm %.4f +- %.4f", norm->value, norm->error);
    if (isfinite(r->perplexity.value))
        printf(", perplexity %.4g", r->perplexity.value);
    printf(" (%s items, chance %.4f)\n", pl_units_count(r->items).text,
           r->chance);
    fflush(stdout);
}

/* The beginning of a text, on one line: the whole is in samples.jsonl. */
static void sampled(void *context, const pl_sample_event *event)
{
    enum { PROMPT = 32, SHOWN = 160 };
    pl_train_view *view = context;
    const size_t prompt = pl_utf8_whole_bytes(
        event->prompt,
        event->prompt_bytes < PROMPT ? event->prompt_bytes : PROMPT);
    const size_t shown = pl_utf8_whole_bytes(
        event->text, event->text_bytes < SHOWN ? event->text_bytes : SHOWN);
    view->sample_began = 0.0;
    pl_term_clear();
    printf("sample %llu.%zu: ", (unsigned long long)event->step,
           event->index + 1);
    pl_term_put(event->prompt, prompt);
    printf("%s|", prompt < event->prompt_bytes ? "..." : "");
    pl_term_put(event->text, shown);
    printf("%s\n", shown < event->text_bytes ? "..." : "");
    fflush(stdout);
}

void pl_train_view_peak(const pl_session *session)
{
    size_t planned = pl_session_host_bytes(session), peak;
    if (pl_memory_peak_bytes(&peak, NULL))
        return; /* no /proc: nothing to compare */
    printf("peak memory: %s of the %s that were planned (%s)\n",
           pl_units_bytes(peak).text, pl_units_bytes(planned).text,
           pl_units_exact(peak).text);
    if (session->driver_bytes)
        printf("%s of them are what the card's driver had taken when the card "
               "was open\n",
               pl_units_bytes(session->driver_bytes).text);
    if (session->machine.opened_bytes)
        printf("%s of them are what drivers of cards hold that aren't used; "
               "device = 'cpu' opens none\n",
               pl_units_bytes(session->machine.opened_bytes).text);
    if (peak > planned)
        pl_log_say(&pl_term_log, PL_LOG_WARN,
                   "the process held more than was planned: please report "
                   "this, with the config");
}

int pl_train_view_stop(void *context)
{
    const int number = pl_cli_signal();
    (void)context;
    return number == 0         ? PL_STOP_NOT
           : number == SIGUSR1 ? PL_STOP_AFTER_UPDATE
                               : PL_STOP_SOON;
}

pl_listener pl_train_view_begin(pl_train_view *view, const pl_session *session,
                                pl_notes *notes)
{
    *view = (pl_train_view){
        .session = session,
        .notes = notes,
        .began_step = session->run.step,
        .began = pl_clock_seconds(),
        .mfu = pl_mfu_make(pl_train_view_flops(session),
                           tokens_per_update(session) *
                               pl_bench_train_flops(&session->run.shape)),
    };
    pl_mfu_probed(&view->mfu, peak_flops(session));
    return (pl_listener){
        .context = view,
        .updating = updating,
        .updated = updated,
        .gave_up = gave_up,
        .evaluated = evaluated,
        .evaluating = evaluating,
        .saving = saving,
        .sampling = sampling,
        .sampled = sampled,
        .asking = asking,
        .asked = asked,
        .stop = pl_train_view_stop,
        .patience_seconds = 2.0,
    };
}
