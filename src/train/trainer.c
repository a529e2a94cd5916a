/* trainer.c: nanoGPT's loop over programs of the step list. */
#include "train/trainer.h"
#include "base/clock.h"
#include "model/schedule.h"
#include "train/checkpoint.h"

#include <math.h>
#include <string.h>

/* So many updates in a row without a finite gradient will not mend. */
enum { MAX_SKIPPED = 10 };

/* What AdamW needs to know of update `step`. */
static void set_optimizer(pl_scalars *s, const pl_config *config, uint64_t step)
{
    double t = (double)step + 1.0;
    s->learning_rate = pl_schedule_rate(config, step);
    s->beta1 = config->beta1;
    s->beta2 = config->beta2;
    s->eps = 1e-8;
    s->weight_decay = config->weight_decay;
    s->grad_clip = (float)config->grad_clip;
    s->correction1 = 1.0 - pow(config->beta1, t);
    s->correction2 = 1.0 - pow(config->beta2, t);
}

/* One batch: its micro-batches one after the other, then what waits for all of
 * them. Adds its losses to *sum, sequence by sequence. */
static pl_status run_batch(pl_session *session, const pl_batch_key *key,
                           size_t first, double *sum, pl_error *err)
{
    const pl_gpt_layout *layout = &session->gpt.layout;
    pl_scalars *scalars = pl_session_scalars(session);
    int32_t *tokens = pl_device_host(session->device,
                                     session->gpt.train_tokens);
    pl_status status = pl_batch_load(&session->dataset, key, (uint32_t)first,
                                     (uint32_t)layout->batch, session->shape.T,
                                     tokens, err);
    if (status)
        return status;
    scalars->batch_first = (uint32_t)first;
    for (size_t at = 0; at < layout->batch; at += layout->micro) {
        scalars->micro_first = (uint32_t)at;
        pl_device_run(session->device, PL_TRAIN, PL_PART_LOOP);
    }
    scalars->micro_first = 0;
    pl_device_run(session->device, PL_TRAIN, PL_PART_REST);
    const double *sums = pl_device_host(session->device,
                                        session->gpt.train_sums);
    for (size_t i = 0; i < layout->batch; i++)
        *sum += sums[i];
    return PL_OK;
}

pl_status pl_train_update(pl_session *session, pl_update_event *event,
                          pl_error *err)
{
    const pl_config *config = session->config;
    const size_t batch = session->gpt.layout.batch,
                 batches = (size_t)config->gradient_accumulation_steps;
    const double tokens = (double)batch * (double)batches *
                          (double)session->shape.T;
    const pl_batch_key key = { .use = PL_BATCH_TRAIN,
                               .seed = (uint32_t)config->seed,
                               .step = (uint32_t)session->step };
    pl_scalars *scalars = pl_session_scalars(session);
    double begin = pl_clock_seconds(), sum = 0.0;

    set_optimizer(scalars, config, session->step);
    scalars->loss_scale = session->scaler.scale;
    scalars->dlogit_scale = (float)(session->scaler.scale / tokens);
    scalars->seed = (uint32_t)config->seed;
    scalars->step = (uint32_t)session->step;
    for (size_t i = 0; i < batches; i++) {
        pl_status status = run_batch(session, &key, i * batch, &sum, err);
        if (status)
            return status;
    }
    pl_device_run(session->device, PL_UPDATE_WEIGHTS, PL_PART_REST);
    *event = (pl_update_event){
        .step = session->step,
        .loss = sum / tokens,
        .step_ms = (pl_clock_seconds() - begin) * 1e3,
        .learning_rate = scalars->learning_rate,
        .grad_norm = (double)scalars->grad_norm,
        .skipped = (int)scalars->skipped,
    };
    int mended = pl_scaler_update(&session->scaler, event->skipped);
    event->loss_scale = session->scaler.scale;
    event->diverged = event->skipped && !mended;
    session->step++;
    session->skipped += scalars->skipped;
    return PL_OK;
}

/* ---- the loop ---- */

/* These updates, counted from the start, are profiled: the first warms the
 * caches up. */
enum { PROFILE_FROM = 1, PROFILE_TO = 4 };

typedef struct loop {
    pl_session *session;
    const pl_listener *listener;
    int skipped_in_a_row;
    uint64_t saved_step; /* of the newest checkpoint that is on disk */
    int updates;         /* done by this loop */
} loop;

static int wants_stop(const loop *l)
{
    return l->listener->stop && l->listener->stop(l->listener->context);
}

/* Another run's best is not this one's: it would be sampled from. */
static pl_status forget_best(pl_session *session, pl_error *err)
{
    char path[PL_PATH_BYTES];
    pl_status status = pl_path_join(path, session->config->out_dir,
                                    PL_CHECKPOINT_BEST, err);
    if (!status)
        status = pl_folder_remove_flat(path, err);
    session->has_own_best = !status;
    return status;
}

static pl_status save(loop *l, const char *name, pl_error *err)
{
    if (l->listener->saving)
        l->listener->saving(l->listener->context, name);
    pl_status status = pl_checkpoint_save(l->session, name, err);
    if (status)
        return status;
    l->saved_step = l->session->step;
    if (strcmp(name, PL_CHECKPOINT_BEST) == 0)
        l->session->has_own_best = 1;
    return l->session->has_own_best ? PL_OK : forget_best(l->session, err);
}

/* A save that fails on the way is no reason to end: the next one may not. */
static void save_if_possible(loop *l, const char *name)
{
    pl_error trouble;
    if (save(l, name, &trouble))
        pl_log_say(l->session->log, PL_LOG_WARN,
                   "%s. The run goes on and tries again at the next "
                   "evaluation",
                   trouble.text);
}

static pl_status evaluate(loop *l, pl_error *err)
{
    pl_session *session = l->session;
    const pl_listener *listener = l->listener;
    const pl_eval_watch watch = { .context = listener->context,
                                  .progress = listener->evaluating,
                                  .stop = listener->stop };
    pl_eval_event event = { .step = session->step };
    pl_status status = pl_evaluate(session, PL_SPLIT_TRAIN, &watch,
                                   &event.train, err);
    if (!status)
        status = pl_evaluate(session, PL_SPLIT_VAL, &watch, &event.val, err);
    if (status)
        return status;
    event.improved = event.val.loss < session->best_val_loss;
    if (event.improved)
        session->best_val_loss = event.val.loss;
    if (listener->evaluated)
        listener->evaluated(listener->context, &event);
    if (session->step == 0 || session->config->eval_only)
        return PL_OK;
    if (session->config->always_save_checkpoint)
        save_if_possible(l, PL_CHECKPOINT_NEWEST);
    else if (event.improved)
        save_if_possible(l, PL_CHECKPOINT_BEST);
    return PL_OK;
}

static void profile(pl_session *session, int on)
{
    static const pl_program_id programs[] = { PL_TRAIN, PL_UPDATE_WEIGHTS };
    for (int i = 0; i < 2; i++)
        pl_device_profile(session->device, programs[i],
                          on ? session->step_seconds[programs[i]] : NULL);
}

/* What the profiled updates say of the machine, for this run and the next. A
 * cache that can't be written is not worth a word. */
static void learn_rates(pl_session *session)
{
    const pl_gpt_layout *layout = &session->gpt.layout;
    const double updates = PROFILE_TO - PROFILE_FROM,
                 batches = updates *
                           (double)session->config->gradient_accumulation_steps;
    pl_observed seen = { .least_seconds = 0.0 };
    profile(session, 0);
    pl_cost_observe(&seen, &session->gpt, PL_TRAIN,
                    session->step_seconds[PL_TRAIN],
                    batches * (double)(layout->batch / layout->micro), batches);
    pl_cost_observe(&seen, &session->gpt, PL_UPDATE_WEIGHTS,
                    session->step_seconds[PL_UPDATE_WEIGHTS], updates, updates);
    pl_rates_learn(&session->machine.rates, &seen);
    pl_status kept = pl_machine_remember(
        &session->machine, session->gpt.layout.threads, session->text,
        PL_SESSION_TEXT_BYTES, NULL);
    (void)kept;
}

static pl_status update(loop *l, pl_error *err)
{
    pl_update_event event;
    if (l->updates == PROFILE_FROM)
        profile(l->session, 1);
    pl_status status = pl_train_update(l->session, &event, err);
    if (status)
        return status;
    if (++l->updates == PROFILE_TO)
        learn_rates(l->session);
    if (l->listener->updated)
        l->listener->updated(l->listener->context, &event);
    l->skipped_in_a_row = event.diverged ? l->skipped_in_a_row + 1 : 0;
    if (l->skipped_in_a_row >= MAX_SKIPPED)
        return pl_fail(err, PL_E_CONFIG,
                       "the gradients were not finite in %d updates in a row "
                       "(loss %g at iteration %llu): the run has diverged. "
                       "Lower learning_rate, or resume from an earlier "
                       "checkpoint in %s",
                       MAX_SKIPPED, event.loss, (unsigned long long)event.step,
                       l->session->config->out_dir);
    return PL_OK;
}

/* Evaluations stand before the update of their step, the first one before all
 * training, as in nanoGPT. */
static pl_status run(loop *l, pl_error *err)
{
    pl_session *session = l->session;
    const pl_config *config = session->config;
    for (;;) {
        if (session->step % (uint64_t)config->eval_interval == 0 ||
            config->eval_only) {
            pl_status status = evaluate(l, err);
            if (status)
                return status;
        }
        if (config->eval_only || session->step >= (uint64_t)config->max_iters)
            return PL_OK;
        pl_status status = update(l, err);
        if (status)
            return status;
        if (wants_stop(l))
            return pl_fail(err, PL_E_STOPPED, "stopped after iteration %llu",
                           (unsigned long long)session->step);
    }
}

pl_status pl_train(pl_session *session, const pl_listener *listener,
                   pl_error *err)
{
    loop l = { .session = session,
               .listener = listener,
               .saved_step = session->step }; /* a start is no progress */
    pl_error trouble;
    pl_status status = run(&l, err);

    if (session->config->eval_only || session->step == l.saved_step ||
        l.skipped_in_a_row > 0)
        return status; /* nothing was learnt since, or nothing good */
    pl_status saved = save(&l, PL_CHECKPOINT_NEWEST, &trouble);
    if (!saved)
        return status;
    if (!status || status == PL_E_STOPPED)
        return pl_fail(err, saved, "%s", trouble.text);
    return pl_fail_in(err, status, "%s; and then: ", trouble.text);
}
