/* preview.c: see preview.h. */
#include "train/preview.h"
#include "base/clock.h"
#include "train/sampler.h"

#include <string.h>

typedef struct writing {
    pl_session *session;
    const pl_preview_watch *watch;
    pl_sampler sampler;
    size_t prompt; /* which is under way */
    size_t tokens; /* of its text */
    double began;
} writing;

static int wants_stop(const writing *w)
{
    return w->watch->stop && w->watch->stop(w->watch->context);
}

static int between_steps(void *context, const pl_step *step)
{
    (void)step;
    return wants_stop(context);
}

static void tell_progress(const writing *w)
{
    const pl_prompts *prompts = &w->session->prompts;
    const uint64_t each = (uint64_t)w->session->run.config->max_new_tokens,
                   done = w->prompt * each + w->tokens;
    const double seconds = pl_clock_seconds() - w->began;
    pl_progress progress = {
        .step = w->session->run.step,
        .done = done,
        .total = prompts->count * each,
    };
    if (!w->watch->progress)
        return;
    progress.share = (double)done / (double)progress.total;
    progress.tokens_per_second = seconds > 0.0 ? (double)done / seconds : 0.0;
    progress.seconds_left = done ? seconds * (1.0 / progress.share - 1.0) : 0.0;
    w->watch->progress(w->watch->context, &progress);
}

/* The bytes of a token behind the text; 0: they have no room. */
static pl_status add_token(const writing *w, int32_t token, size_t *used,
                           int *fits, pl_error *err)
{
    const pl_prompts *prompts = &w->session->prompts;
    char bytes[PL_TOKENIZER_TOKEN_BYTES];
    size_t count = 0;
    pl_status status = PL_OK;
    if (token < w->session->run.tokenizer.vocab_size) /* else it is padding */
        status = pl_tokenizer_decode(&w->session->run.tokenizer, token, bytes,
                                     &count, err);
    *fits = count <= prompts->text_bytes - *used;
    if (!status && *fits) {
        memcpy(prompts->text + *used, bytes, count);
        *used += count;
    }
    return status;
}

static pl_status write_text(writing *w, pl_sample_event *event, pl_error *err)
{
    const size_t count = (size_t)w->session->run.config->max_new_tokens;
    pl_status status = PL_OK;
    int fits = 1;
    for (w->tokens = 0; w->tokens < count && !status && fits; w->tokens++) {
        int32_t token = 0;
        tell_progress(w);
        if (wants_stop(w))
            return pl_fail(err, PL_E_STOPPED, "stopped while sampling");
        status = pl_sampler_next(&w->sampler, &token, err);
        if (!status && token < 0) {
            pl_log_say(w->session->run.log, PL_LOG_WARN,
                       "iteration %llu: the model's output is not a number, "
                       "the text ends there",
                       (unsigned long long)w->session->run.step);
            break;
        }
        if (!status)
            status = add_token(w, token, &event->text_bytes, &fits, err);
    }
    event->tokens = w->tokens;
    event->is_cut = !fits;
    return status;
}

static pl_status write_one(writing *w, pl_error *err)
{
    pl_session *session = w->session;
    const pl_prompts *prompts = &session->prompts;
    const pl_prompt *prompt = &prompts->items[w->prompt];
    pl_sample_event event = {
        .step = session->run.step,
        .index = w->prompt,
        .count = prompts->count,
        .prompt = prompt->text,
        .prompt_bytes = prompt->bytes,
        .text = prompts->text,
        .line_bytes = pl_samples_line_bytes(session->run.config, prompt->bytes),
    };
    pl_sampler_start(&w->sampler, 0, prompt->tokens, prompt->count);
    pl_status status = write_text(w, &event, err);
    if (status)
        return status;
    pl_metrics_sampled(&session->run.metrics, session->run.outdir.path, &event,
                       session->run.text);
    if (w->watch->sampled)
        w->watch->sampled(w->watch->context, &event);
    return PL_OK;
}

pl_status pl_preview_write(pl_session *session, const pl_preview_watch *watch,
                           pl_error *err)
{
    const pl_config *config = session->run.config;
    const pl_controls controls = session->controls;
    writing w = { .session = session,
                  .watch = watch,
                  .began = pl_clock_seconds() };
    const pl_run_watch steps = { .context = &w, .between = between_steps };
    w.sampler = (pl_sampler){
        .session = session,
        .sampling = { .temperature = config->temperature,
                      .top_k = config->top_k > 0 ? (size_t)config->top_k : 0,
                      .seed = (uint32_t)config->seed },
        .tokens = session->prompts.tokens,
        .capacity = session->prompts.capacity,
        .watch = &steps,
    };
    pl_status status = PL_OK;
    if (pl_samples_due(config, session->run.step) == 0 ||
        session->run.metrics.samples.step == session->run.step)
        return PL_OK;
    for (; w.prompt < session->prompts.count && !status; w.prompt++)
        status = write_one(&w, err);
    session->controls = controls;
    return status;
}
