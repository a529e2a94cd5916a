/* trainer_update.c: see trainer_update.h. */
#include "train/trainer_update.h"
#include "base/clock.h"
#include "base/exact.h"
#include "model/schedule.h"
#include "train/diloco.h"
#include "train/pace.h"

#include <math.h>

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
    /* where other processes share it */
    int has_voted; /* whether it is; each process does so once */
    int is_agreed; /* that it is finished */
    int moves;     /* gradients, while the last micro-batch goes on */
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

/* The same where other processes share the update: one that gives it up says so
 * to them, and after all have agreed that it is finished none does. */
static int look_around(under_way *u)
{
    const pl_comm *comm = u->session->ranks.comm;
    const int stop = look(u);
    if (!comm)
        return stop;
    return !u->is_agreed && (stop || pl_comm_is_stopped(comm));
}

static int between_steps(void *context, const pl_step *step)
{
    under_way *u = context;
    pl_session *session = u->session;
    u->pace.done += pl_cost_step(step, pl_machine_rates(&session->machine));
    if (u->moves)
        pl_ranks_reach(
            &session->ranks,
            (size_t)(step - session->run.gpt.graph.programs[PL_TRAIN].steps));
    return pl_ranks_have_failed(&session->ranks) || look_around(u);
}

static pl_status stopped_within(under_way *u, pl_error *err)
{
    pl_ranks *ranks = &u->session->ranks;
    if (pl_ranks_have_failed(ranks))
        return pl_ranks_add_gradients(ranks, err);
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
 * processes have the rest of them, they are kept until all are there. `first`
 * is the batch's first sequence in the update. */
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
                                          own * sizeof *session->losses, err);
    for (size_t i = 0; i < all && !status; i++)
        u->sum += session->losses[i];
    return status;
}

/* Before the last micro-batch of an update all processes agree that it is
 * finished, or that it isn't: during that one gradients begin to travel, where
 * no group has to be added to another first, and where steps are done when they
 * are told of, as a card's aren't. */
static pl_status agree(under_way *u, pl_status status, pl_error *err)
{
    pl_session *session = u->session;
    const int is_aside = session->run.gpt.layout.groups == 1 &&
                         pl_device_is_prompt(session->run.device);
    u->has_voted = 1;
    pl_status voted = pl_ranks_agree_stop(&session->ranks, &status, err);
    if (voted || status)
        return voted ? voted : status;
    u->is_agreed = 1;
    if (is_shared(session))
        pl_ranks_begin_gradients(&session->ranks, is_aside);
    return PL_OK;
}

static pl_status run_micro(under_way *u, int is_last, pl_error *err)
{
    pl_status status = PL_OK;
    if (is_last && u->session->ranks.comm)
        status = agree(u, PL_OK, err);
    if (status)
        return status;
    u->moves = u->is_agreed && is_shared(u->session);
    status = run_part(u, PL_TRAIN, PL_PART_LOOP, err);
    u->moves = 0;
    u->progress.done += !status;
    return status;
}

/* One batch: its micro-batches one after the other, then what waits for all of
 * them. */
static pl_status run_batch(under_way *u, const pl_batch_key *key, size_t first,
                           int is_last, pl_error *err)
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
        status = run_micro(u, is_last && at + layout->micro >= layout->batch,
                           err);
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
        status = run_batch(u, &key, (before + i) * layout->batch,
                           i + 1 == layout->batches, err);
        if (!status && (i + 1) % per_group == 0)
            status = add_group(u, i / per_group, err);
    }
    if (!session->ranks.comm)
        return status;
    if (!u->has_voted && status == PL_E_STOPPED) /* those who wait learn it */
        status = agree(u, status, err);
    if (!status && is_shared(session))
        status = pl_ranks_add_gradients(&u->session->ranks, err);
    return status ? status : gather_losses(u, err);
}

/* Partial sums of the norm, of all processes: until then the update can be
 * given up. */
static pl_status measure_gradients(under_way *u, pl_error *err)
{
    pl_session *session = u->session;
    pl_status status = pl_session_run(session, PL_UPDATE_WEIGHTS, PL_PART_LOOP,
                                      err);
    if (!status && is_shared(session))
        status = pl_ranks_share_partials(&session->ranks, err);
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
        status = pl_ranks_share_weights(&session->ranks, err);
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

/* What an update has cost that other processes share. */
static void count_work(pl_ranks *ranks, uint64_t sent, double waited,
                       double seconds)
{
    ranks->work.updates++;
    ranks->work.sent += pl_comm_sent_bytes(ranks->comm) - sent;
    ranks->work.waited += pl_comm_waited_seconds(ranks->comm) - waited;
    ranks->work.seconds += seconds;
}

pl_status pl_update(pl_session *session, const pl_listener *listener,
                    pl_update_event *event, pl_error *err)
{
    under_way u = begin_update(session, listener);
    pl_comm *comm = session->ranks.comm;
    const uint64_t sent = comm ? pl_comm_sent_bytes(comm) : 0;
    const double waited = comm ? pl_comm_waited_seconds(comm) : 0.0;
    pl_outcome outcome;
    set_controls(&u);
    pl_status status = run_batches(&u, err);
    if (!status)
        status = measure_gradients(&u, err);
    if (status) {
        pl_error trouble;
        pl_ranks_abandon(&session->ranks);
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
    if (comm)
        count_work(&session->ranks, sent, waited, session->update_seconds);
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
