/* trainer.c: nanoGPT's loop over programs of the step list. */
#include "train/trainer.h"
#include "base/clock.h"
#include "base/exact.h"
#include "model/schedule.h"
#include "store/checkpoint.h"
#include "train/diloco.h"
#include "train/pace.h"
#include "train/preview.h"
#include "train/quiz.h"
#include "train/trainer_looks.h"

#include <math.h>
#include <string.h>

/* What the optimizers need to know of update `step`. */
static void set_optimizer(pl_controls *s, const pl_config *config,
                          uint64_t step)
{
    double t = (double)step + 1.0;
    s->learning_rate = pl_schedule_rate(config, step);
    s->beta1 = config->beta1;
    s->beta2 = config->beta2;
    s->eps = 1e-8;
    s->weight_decay = config->weight_decay;
    s->grad_clip = (float)config->grad_clip;
    s->correction1 = 1.0 - pl_exact_pow(config->beta1, t);
    s->correction2 = 1.0 - pl_exact_pow(config->beta2, t);
    s->muon_rate = pl_schedule_muon_rate(config, step);
    s->muon_momentum = config->muon_momentum;
    s->muon_decay = config->muon_weight_decay;
}

/* An update that is under way. */
typedef struct under_way {
    pl_session *session;
    const pl_listener *listener;
    pl_progress progress;
    double tokens; /* of all of it */
    double sum;    /* of the losses so far */
    pl_pace pace;
    double looked; /* of the pace's work, when the listener was told last */
    pl_status broken; /* of the other processes */
    pl_error trouble;
} under_way;

static void set_progress(under_way *u, double now)
{
    const double seconds = now - u->pace.begin;
    u->progress.share = pl_pace_share(&u->pace);
    u->progress.tokens_per_second =
        seconds > 0.0 ? u->progress.share * u->tokens / seconds : 0.0;
    u->progress.seconds_left = pl_pace_left(&u->pace, now);
}

/* Not 0: the update is to be given up. */
static int look(under_way *u)
{
    static const double between_looks = 0.01;
    const pl_listener *listener = u->listener;
    const int stop = listener->stop ? listener->stop(listener->context)
                                    : PL_STOP_NOT;
    const int due = listener->updating &&
                    u->pace.done - u->looked >= between_looks;
    if (!due && stop != PL_STOP_SOON)
        return 0;
    const double now = pl_clock_seconds();
    set_progress(u, now);
    if (due) {
        u->looked = u->pace.done;
        listener->updating(listener->context, &u->progress);
    }
    return stop == PL_STOP_SOON &&
           pl_pace_gives_up(&u->pace, now, listener->patience_seconds);
}

/* Others are told that this process is here, and whether it gives up. */
static int look_around(under_way *u)
{
    pl_comm *comm = u->session->ranks.comm;
    const int stop = look(u);
    if (!comm)
        return stop;
    u->broken = pl_comm_beat(comm, &u->trouble);
    if (!u->broken && stop && !pl_comm_is_stopped(comm))
        u->broken = pl_comm_say_stop(comm, &u->trouble);
    return stop || u->broken || pl_comm_is_stopped(comm);
}

static int between_steps(void *context, const pl_step *step)
{
    under_way *u = context;
    u->pace.done += pl_cost_step(step, pl_machine_rates(&u->session->machine));
    return look_around(u);
}

static pl_status stopped_within(const under_way *u, pl_error *err)
{
    if (u->broken)
        return pl_fail(err, u->broken, "%s", u->trouble.text);
    return pl_fail(err, PL_E_STOPPED, "stopped within iteration %llu",
                   (unsigned long long)u->session->run.step);
}

/* PL_E_STOPPED: the update is to be given up. */
static pl_status run_part(under_way *u, pl_program_id id, pl_part part,
                          pl_error *err)
{
    const pl_run_watch watch = { .context = u, .between = between_steps };
    const pl_program *program = &u->session->run.gpt.graph.programs[id];
    const size_t end = part == PL_PART_LOOP ? program->loop_steps
                                            : program->n_steps;
    const int any = part == PL_PART_LOOP || end > program->loop_steps;
    pl_run_end how;
    pl_status status = pl_session_run_watched(u->session, id, part, &watch,
                                              &how, err);
    if (status)
        return status;
    if (how == PL_RUN_STOPPED ||
        (any && between_steps(u, &program->steps[end - 1])))
        return stopped_within(u, err);
    return PL_OK;
}

/* Adds the losses of a batch to the sum, sequence by sequence; where other
 * processes have the rest of them, they are kept until all are there. `first` is
 * the batch's first sequence in the update. */
static pl_status add_losses(under_way *u, size_t first, pl_error *err)
{
    pl_run *run = &u->session->run;
    double *kept = u->session->losses;
    double *sums = (double *)(void *)run->stage;
    const size_t most = PL_RUN_STAGE_BYTES / sizeof *sums,
                 batch = run->gpt.layout.batch;
    for (size_t at = 0; at < batch;) {
        const size_t count = batch - at < most ? batch - at : most;
        pl_status status = pl_device_read(run->device, run->gpt.train_sums,
                                          at * sizeof *sums, sums,
                                          count * sizeof *sums, err);
        if (status)
            return status;
        for (size_t i = 0; i < count && !kept; i++)
            u->sum += sums[i];
        for (size_t i = 0; i < count && kept; i++)
            kept[first + at + i] = sums[i];
        at += count;
    }
    return PL_OK;
}

/* Whether processes share every update; workers (DiLoCo) make their own. */
static int is_shared(const pl_session *session)
{
    return session->ranks.comm && !pl_gpt_workers(&session->run.gpt.layout);
}

/* The losses of all processes, in the order of the update. */
static pl_status gather_losses(under_way *u, pl_error *err)
{
    pl_session *session = u->session;
    const pl_gpt_layout *layout = &session->run.gpt.layout;
    const size_t own = layout->batch * layout->batches,
                 all = own * pl_gpt_ranks(layout);
    if (!session->losses)
        return PL_OK;
    pl_status status = pl_comm_gather_all(session->ranks.comm, session->losses,
                                          own * sizeof *session->losses,
                                          PL_COMM_MAY_STOP, err);
    for (size_t i = 0; i < all && !status; i++)
        u->sum += session->losses[i];
    return status;
}

/* One batch: its micro-batches one after the other, then what waits for all of
 * them. */
static pl_status run_batch(under_way *u, const pl_batch_key *key, size_t first,
                           pl_error *err)
{
    pl_session *session = u->session;
    const pl_gpt_layout *layout = &session->run.gpt.layout;
    pl_status status = PL_OK;
    for (size_t i = 0; i < layout->batch && !status; i++)
        status = pl_session_load_row(session, session->run.gpt.train_tokens, i,
                                     key, first + i, session->run.shape.T, err);
    session->controls.batch_first = (uint32_t)first;
    for (size_t at = 0; at < layout->batch && !status; at += layout->micro) {
        session->controls.micro_first = (uint32_t)at;
        status = run_part(u, PL_TRAIN, PL_PART_LOOP, err);
        u->progress.done += !status;
    }
    session->controls.micro_first = 0;
    if (!status)
        status = run_part(u, PL_TRAIN, PL_PART_REST, err);
    return status ? status : add_losses(u, first, err);
}

/* Group number `group` is in the gradients: as a binary counter carries, so are
 * groups added (model/gpt_groups.c). After the last one the gradients are the
 * sum of all. */
static pl_status add_group(under_way *u, size_t group, pl_error *err)
{
    pl_session *session = u->session;
    size_t digit = 0;
    pl_status status = PL_OK;
    for (; group >> digit & 1 && !status; digit++) {
        session->controls.digit = (uint32_t)digit;
        status = run_part(u, PL_ADD_GROUPS, PL_PART_LOOP, err);
    }
    session->controls.digit = (uint32_t)digit;
    if (!status && group + 1 < session->run.gpt.layout.groups)
        status = run_part(u, PL_ADD_GROUPS, PL_PART_REST, err);
    return status;
}

/* As if the update had never begun: all that it left are gradients. Sums of
 * groups are put by before anything is added to them. */
static pl_status clear_gradients(pl_session *session, pl_error *err)
{
    const pl_gpt *gpt = &session->run.gpt;
    pl_status status = PL_OK;
    for (size_t i = 0; i < pl_param_slots(&gpt->shape) && !status; i++)
        if (gpt->gradients[i] != PL_NO_BUFFER)
            status = pl_device_clear(session->run.device, gpt->gradients[i],
                                     err);
    return status;
}

static under_way begin_update(pl_session *session, const pl_listener *listener)
{
    const pl_gpt_layout *layout = &session->run.gpt.layout;
    const size_t batches = layout->batches;
    const double predicted = pl_cost_update(
                     &session->run.gpt, pl_machine_rates(&session->machine)),
                 took = session->update_seconds;
    return (under_way){
        .session = session,
        .listener = listener,
        .progress = { .step = session->run.step,
                      .total = batches * (layout->batch / layout->micro) },
        .tokens = (double)pl_config_update_tokens(session->run.config),
        .pace = pl_pace_make(pl_clock_seconds(), predicted,
                             took > 0.0 ? took / predicted : 1.0),
        .looked = -1.0, /* so that the first step is told of */
    };
}

static void set_controls(const under_way *u)
{
    const pl_session *session = u->session;
    const pl_config *config = session->run.config;
    pl_controls *controls = &u->session->controls;
    set_optimizer(controls, config, session->run.step);
    controls->loss_scale = session->run.scaler.scale;
    const size_t workers = pl_gpt_workers(&session->run.gpt.layout);
    controls->dlogit_scale = (float)(session->run.scaler.scale / u->tokens *
                                     (double)(workers ? workers : 1));
    controls->seed = (uint32_t)config->seed;
    controls->step = (uint32_t)session->run.step;
}

/* All batches of an update: its gradients, and the sum of its losses. */
static pl_status run_batches(under_way *u, pl_error *err)
{
    const pl_session *session = u->session;
    const pl_config *config = session->run.config;
    const pl_gpt_layout *layout = &session->run.gpt.layout;
    const size_t per_group = layout->batches / layout->groups,
                 before = layout->rank * layout->batches; /* other ranks' */
    const pl_batch_key key = { .use = PL_BATCH_TRAIN,
                               .seed = (uint32_t)config->seed,
                               .step = (uint32_t)session->run.step };
    pl_status status = PL_OK;
    for (size_t i = 0; i < layout->batches && !status; i++) {
        status = run_batch(u, &key, (before + i) * layout->batch, err);
        if (!status && (i + 1) % per_group == 0)
            status = add_group(u, i / per_group, err);
    }
    if (pl_gpt_workers(layout))
        status = pl_diloco_vote(u->session, status, err);
    if (!status)
        status = gather_losses(u, err);
    if (!status && is_shared(session))
        status = pl_ranks_add_gradients(&u->session->ranks, &u->session->run,
                                        err);
    return status;
}

/* Partial sums of the norm, of all processes: until then the update can be
 * given up. */
static pl_status measure_gradients(under_way *u, pl_error *err)
{
    pl_session *session = u->session;
    pl_status status = pl_session_run(session, PL_UPDATE_WEIGHTS, PL_PART_LOOP,
                                      err);
    if (!status && is_shared(session))
        status = pl_ranks_share_partials(&session->ranks, &session->run, err);
    return status;
}

/* The optimizer, and what it says of itself. Where the loss isn't finite the
 * norm isn't either, and nothing is updated. */
static pl_status apply(under_way *u, pl_outcome *outcome, pl_error *err)
{
    pl_session *session = u->session;
    const size_t workers = pl_gpt_workers(&session->run.gpt.layout);
    if (!isfinite(workers ? pl_diloco_own_loss(session, u->sum) : u->sum))
        session->controls.loss_scale = (double)NAN;
    pl_status status = pl_session_run(session, PL_UPDATE_WEIGHTS, PL_PART_REST,
                                      err);
    if (!status)
        status = pl_device_read(session->run.device, session->run.gpt.outcome,
                                0, outcome, sizeof *outcome, err);
    if (!status && workers)
        status = pl_diloco_any_skipped(session, &outcome->skipped, err);
    if (!status && is_shared(session))
        status = pl_ranks_share_weights(&session->ranks, &session->run, err);
    if (!status && is_shared(session)) /* what it doesn't own, too */
        status = clear_gradients(session, err);
    return status;
}

/* Workers meet after so many updates. */
static pl_status sync_if_due(pl_session *session, pl_error *err)
{
    const pl_gpt_layout *layout = &session->run.gpt.layout;
    if (!pl_gpt_workers(layout) ||
        (session->run.step + 1) % layout->sync_interval)
        return PL_OK;
    pl_status status = pl_diloco_sync(session, err);
    if (!status)
        status = clear_gradients(session, err);
    session->is_torn = status != PL_OK;
    return status;
}

static pl_status update_weights(pl_session *session,
                                const pl_listener *listener,
                                pl_update_event *event, pl_error *err)
{
    under_way u = begin_update(session, listener);
    pl_outcome outcome;
    set_controls(&u);
    pl_status status = run_batches(&u, err);
    if (!status)
        status = measure_gradients(&u, err);
    if (status) {
        pl_error trouble;
        pl_status cleared = clear_gradients(session, &trouble);
        if (cleared && status == PL_E_STOPPED)
            return pl_fail(err, cleared, "%s", trouble.text);
    }
    if (status == PL_E_STOPPED && listener->gave_up)
        listener->gave_up(listener->context, &u.progress);
    if (!status)
        status = apply(&u, &outcome, err);
    if (!status)
        status = sync_if_due(session, err);
    if (status)
        return status;
    session->update_seconds = pl_clock_seconds() - u.pace.begin;
    *event = (pl_update_event){
        .step = session->run.step,
        .loss = u.sum / u.tokens,
        .step_ms = session->update_seconds * 1e3,
        .learning_rate = session->controls.learning_rate,
        .grad_norm = (double)outcome.grad_norm,
        .skipped = (int)outcome.skipped,
        .arithmetic = (int)session->run.gpt.layout.device.arithmetic,
    };
    int mended = pl_scaler_update(&session->run.scaler, event->skipped);
    event->loss_scale = session->run.scaler.scale;
    event->diverged = event->skipped && !mended;
    session->run.step++;
    session->run.val_loss = HUGE_VAL;
    session->run.val_bpb = HUGE_VAL;
    session->run.skipped += outcome.skipped;
    return PL_OK;
}

pl_status pl_train_update(pl_session *session, pl_update_event *event,
                          pl_error *err)
{
    const pl_listener nobody = { .context = NULL };
    return update_weights(session, &nobody, event, err);
}

/* ---- the loop ---- */

/* These updates, counted from the start, are profiled: the first warms the
 * caches up. */
enum { PROFILE_FROM = 1, PROFILE_TO = 4 };

/* At the end of a run a save that fails is tried again: so often. */
enum { LAST_TRIES = 3 };

typedef struct loop {
    pl_session *session;
    const pl_listener *listener;
    int64_t skipped_in_a_row;
    uint64_t began_step;
    uint64_t saved_step; /* of the newest checkpoint that is on disk */
    int saved_evaluated; /* and that one has its step's evaluation */
    int updates;         /* done by this loop */
    pl_looks looks;      /* at those that were profiled */
} loop;

/* Whether one of the processes wants it: all know the same. */
static pl_status wants_stop(const loop *l, int *stop, pl_error *err)
{
    pl_comm *comm = l->session->ranks.comm;
    *stop = l->listener->stop && l->listener->stop(l->listener->context);
    return comm ? pl_comm_any(comm, stop, err) : PL_OK;
}

/* Rank 0 writes, and the others give it what they keep; how it ended all
 * know. */
static pl_status save_shared(pl_session *session, pl_error *err)
{
    pl_ranks *ranks = &session->ranks;
    pl_error trouble;
    pl_status ended = PL_OK, status;
    if (!ranks->comm)
        return pl_checkpoint_save(&session->run, err);
    if (session->run.rank == 0) {
        ended = pl_checkpoint_save(&session->run, err);
        status = pl_ranks_end_service(ranks, ended, &trouble);
        return status ? pl_fail(err, status, "%s", trouble.text) : ended;
    }
    status = pl_ranks_serve(ranks, &session->run, &ended, err);
    return status  ? status
           : ended ? pl_fail(err, ended, "rank 0 could not save")
                   : PL_OK;
}

static pl_status save(loop *l, pl_error *err)
{
    if (l->listener->saving)
        l->listener->saving(l->listener->context, l->session->run.step);
    pl_status status = save_shared(l->session, err);
    if (status)
        return status;
    l->saved_step = l->session->run.step;
    l->saved_evaluated = isfinite(l->session->run.val_loss);
    return PL_OK;
}

/* Whether the newest checkpoint says all there is. A stop comes before the
 * evaluation of its step: what it saved lacks that. */
static int is_saved(const loop *l)
{
    return l->session->run.step == l->saved_step &&
           (l->saved_evaluated || !isfinite(l->session->run.val_loss));
}

/* A save that fails on the way is no reason to end: the next one may not. */
static void save_if_possible(loop *l)
{
    pl_error trouble;
    if (save(l, &trouble))
        pl_log_say(l->session->run.log, PL_LOG_WARN,
                   "%s The run goes on and tries again at the next "
                   "interval",
                   trouble.text);
}

typedef enum progress { NOT_EVALUATED, EVALUATED, IMPROVED } progress;

/* Whether this is a step to save at; there is nothing new in the first, and
 * where updates are being skipped the one before may be the last good one. */
static int is_due(const loop *l, progress seen)
{
    const pl_config *config = l->session->run.config;
    const uint64_t step = l->session->run.step;
    if (l->session->run.purpose != PL_RUN_TRAINS || step == 0 || is_saved(l) ||
        l->skipped_in_a_row > 0)
        return 0;
    if (!config->always_save_checkpoint && seen == IMPROVED)
        return 1;
    if (config->save_interval != PL_NONE)
        return step % (uint64_t)config->save_interval == 0;
    return config->always_save_checkpoint && seen != NOT_EVALUATED;
}

static pl_status evaluate(loop *l, progress *seen, pl_error *err)
{
    pl_session *session = l->session;
    const pl_listener *listener = l->listener;
    const pl_eval_watch watch = { .context = listener->context,
                                  .progress = listener->evaluating,
                                  .stop = listener->stop };
    pl_eval_event event = { .step = session->run.step };
    pl_status status = pl_evaluate(session, PL_SPLIT_TRAIN, &watch,
                                   &event.train, err);
    if (!status)
        status = pl_evaluate(session, PL_SPLIT_VAL, &watch, &event.val, err);
    if (status)
        return status;
    event.improved = event.val.loss < session->run.best_val_loss;
    if (event.improved)
        session->run.best_val_loss = event.val.loss;
    session->run.val_loss = isfinite(event.val.loss) ? event.val.loss
                                                     : HUGE_VAL;
    session->run.val_bpb = isfinite(event.val.bpb) ? event.val.bpb : HUGE_VAL;
    pl_metrics_evaluated(&session->run.metrics, &event);
    if (listener->evaluated)
        listener->evaluated(listener->context, &event);
    *seen = event.improved ? IMPROVED : EVALUATED;
    return PL_OK;
}

/* Texts follow the checkpoint of their step, so that a stop finds it saved. A
 * run that goes on from there has them already, or writes all of them. */
static pl_status sample(loop *l, pl_error *err)
{
    pl_session *session = l->session;
    const pl_listener *listener = l->listener;
    const pl_preview_watch watch = { .context = listener->context,
                                     .progress = listener->sampling,
                                     .sampled = listener->sampled,
                                     .stop = listener->stop };
    return session->run.purpose == PL_RUN_TRAINS && session->run.rank == 0
               ? pl_preview_write(session, &watch, err)
               : PL_OK;
}

/* Likewise tasks. */
static pl_status quiz(loop *l, pl_error *err)
{
    const pl_listener *listener = l->listener;
    const pl_quiz_watch watch = { .context = listener->context,
                                  .progress = listener->asking,
                                  .asked = listener->asked,
                                  .stop = listener->stop };
    return l->session->run.purpose == PL_RUN_TRAINS &&
                   l->session->run.rank == 0
               ? pl_quiz(l->session, &watch, err)
               : PL_OK;
}

static pl_status give_up(const loop *l, const pl_update_event *event,
                         pl_error *err)
{
    char name[PL_OUTDIR_NAME_BYTES];
    const pl_outdir *outdir = &l->session->run.outdir;
    const long long skipped = (long long)l->skipped_in_a_row;
    const unsigned long long step = event->step;
    if (outdir->newest == PL_OUTDIR_NO_STEP)
        return pl_fail(err, PL_E_CONFIG,
                       "the loss or the gradients were not finite in %lld "
                       "updates in a row (loss %g at iteration %llu): the run "
                       "has diverged. Lower learning_rate and begin again: "
                       "there is no checkpoint yet in %s",
                       skipped, event->loss, step, outdir->path);
    pl_outdir_name(name, outdir->newest);
    return pl_fail(err, PL_E_CONFIG,
                   "the loss or the gradients were not finite in %lld updates "
                   "in a row (loss %g at iteration %llu): the run has "
                   "diverged. Lower learning_rate and go on from the last good "
                   "checkpoint, %s/%s",
                   skipped, event->loss, step, outdir->path, name);
}

static pl_status update(loop *l, pl_error *err)
{
    const int looks = l->updates >= PROFILE_FROM && l->updates < PROFILE_TO;
    pl_update_event event;
    pl_load from = { 0 };
    if (looks) {
        pl_trainer_profile(l->session, 1);
        from = pl_machine_load(&l->session->machine);
    }
    pl_status status = update_weights(l->session, l->listener, &event, err);
    if (looks && !status)
        pl_trainer_look(l->session, &l->looks, &from);
    if (looks)
        pl_trainer_profile(l->session, 0);
    if (status)
        return status;
    if (++l->updates == PROFILE_TO)
        pl_trainer_learn(l->session, &l->looks);
    pl_metrics_updated(&l->session->run.metrics, &event);
    if (l->listener->updated)
        l->listener->updated(l->listener->context, &event);
    l->skipped_in_a_row = event.diverged ? l->skipped_in_a_row + 1 : 0;
    if (l->skipped_in_a_row >= l->session->run.config->max_skipped)
        return give_up(l, &event, err);
    return PL_OK;
}

static pl_status stopped(const loop *l, pl_error *err)
{
    return pl_fail(err, PL_E_STOPPED, "stopped after iteration %llu",
                   (unsigned long long)l->session->run.step);
}

/* Evaluations stand before the update of their step, the first one before all
 * training, as in nanoGPT. */
static pl_status run(loop *l, pl_error *err)
{
    pl_session *session = l->session;
    const pl_config *config = session->run.config;
    for (;;) {
        progress seen = NOT_EVALUATED;
        pl_status status = PL_OK;
        if (pl_config_is_due(config, config->eval_interval,
                             session->run.step) ||
            session->run.purpose != PL_RUN_TRAINS)
            status = evaluate(l, &seen, err);
        if (status)
            return status;
        if (is_due(l, seen))
            save_if_possible(l);
        status = sample(l, err);
        if (!status)
            status = quiz(l, err);
        if (status)
            return status;
        if (session->run.purpose != PL_RUN_TRAINS ||
            session->run.step >= (uint64_t)config->max_iters)
            return PL_OK;
        int stop;
        status = wants_stop(l, &stop, err);
        if (!status && stop)
            status = stopped(l, err);
        if (!status)
            status = update(l, err);
        if (!status)
            status = wants_stop(l, &stop, err);
        if (!status && stop)
            status = stopped(l, err);
        if (status)
            return status;
    }
}

/* What is lost when the last save fails. */
static pl_status lost(const loop *l, pl_status saved, const pl_error *trouble,
                      pl_error *err)
{
    char name[PL_OUTDIR_NAME_BYTES];
    const pl_session *session = l->session;
    if (session->run.outdir.newest == PL_OUTDIR_NO_STEP)
        return pl_fail(err, saved,
                       "%s It was tried %d times. All %llu iterations are "
                       "lost: there is no checkpoint",
                       trouble->text, LAST_TRIES,
                       (unsigned long long)session->run.step);
    pl_outdir_name(name, session->run.outdir.newest);
    return pl_fail(err, saved,
                   "%s It was tried %d times. The iterations from %llu to %llu "
                   "are lost: the newest checkpoint is %s/%s",
                   trouble->text, LAST_TRIES,
                   (unsigned long long)session->run.outdir.newest,
                   (unsigned long long)session->run.step,
                   session->run.outdir.path, name);
}

/* A run that trains nothing is what was asked for, or a max_iters that was
 * forgotten. */
static void say_if_done(const pl_session *session)
{
    const long long most = (long long)session->run.config->max_iters;
    if (session->run.purpose != PL_RUN_TRAINS ||
        session->run.step < (uint64_t)most)
        return;
    pl_log_say(session->run.log, PL_LOG_NOTE,
               "max_iters is %lld and this is iteration %llu: nothing is left "
               "to train. %s",
               most, (unsigned long long)session->run.step,
               session->run.outdir.newest == PL_OUTDIR_NO_STEP
                   ? "The weights are saved as they are"
                   : "To go on: a larger max_iters");
}

/* Whether the end of a run saves: what was learnt and isn't saved yet, unless
 * it is known to be no good; and a run that ends as it should leaves a
 * checkpoint, whatever it learnt. */
static int ends_with_save(const loop *l, pl_status status)
{
    const pl_config *config = l->session->run.config;
    if (l->session->run.purpose != PL_RUN_TRAINS || l->session->is_torn ||
        l->skipped_in_a_row >= config->max_skipped ||
        (status && status != PL_E_STOPPED &&
         l->session->run.step == l->began_step))
        return 0;
    return !is_saved(l);
}

pl_status pl_train(pl_session *session, const pl_listener *listener,
                   pl_error *err)
{
    loop l = { .session = session,
               .listener = listener,
               .began_step = session->run.step,
               .saved_step = session->run.outdir.newest,
               .saved_evaluated = isfinite(session->run.val_loss) };
    pl_error trouble, lost_text = { 0 };
    say_if_done(session);
    pl_status status = run(&l, err), saved = PL_E_IO;

    if (!ends_with_save(&l, status))
        return status;
    if (l.skipped_in_a_row > 0) /* whether it is good is yet unknown */
        session->run.outdir.keep++;
    for (int i = 0; i < LAST_TRIES && saved; i++)
        saved = save(&l, &trouble);
    if (!saved)
        return status;
    if (!status || status == PL_E_STOPPED)
        return lost(&l, saved, &trouble, err);
    lost(&l, saved, &trouble, &lost_text);
    return pl_fail_in(err, status, "%s; and then: ", lost_text.text);
}
