/* trainer.c: nanoGPT's loop over programs of the step list. */
#include "train/trainer.h"
#include "store/checkpoint.h"
#include "train/preview.h"
#include "train/quiz.h"
#include "train/trainer_looks.h"
#include "train/trainer_update.h"

#include <math.h>
#include <string.h>

pl_status pl_train_update(pl_session *session, pl_update_event *event,
                          pl_error *err)
{
    const pl_listener nobody = { .context = NULL };
    return pl_update(session, &nobody, event, err);
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

/* Rank 0 writes, and the others write or give it what they keep; how it ended
 * all know. */
static pl_status save_shared(pl_session *session, pl_error *err)
{
    pl_ranks *ranks = &session->ranks;
    pl_error trouble;
    pl_status ended = PL_OK, status;
    if (!ranks->comm)
        return pl_checkpoint_save(&session->run, err);
    if (session->run.rank == 0) {
        ended = pl_checkpoint_save(&session->run, err);
        if (ended == PL_E_RANKS) /* it is no matter of files */
            return ended;
        status = pl_ranks_end_service(ranks, ended, &trouble);
        return status ? pl_fail(err, status, "%s", trouble.text) : ended;
    }
    status = pl_ranks_serve(ranks, &ended, err);
    if (status || ended)
        return status ? status : pl_fail(err, ended, "rank 0 could not save");
    session->run.outdir.newest = session->run.step;
    return PL_OK;
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

/* A save that fails on the way is no reason to end: the next one may not. A
 * rank that is gone is one. */
static pl_status save_if_possible(loop *l, pl_error *err)
{
    pl_error trouble;
    pl_status status = save(l, &trouble);
    if (status == PL_E_RANKS)
        return pl_fail(err, status, "%s", trouble.text);
    if (status)
        pl_log_say(l->session->run.log, PL_LOG_WARN,
                   "%s. The run goes on and tries again at the next "
                   "interval",
                   trouble.text);
    return PL_OK;
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
    session->run.val_loss = isfinite(event.val.loss) ? event.val.loss
                                                     : HUGE_VAL;
    session->run.val_bpb = isfinite(event.val.bpb) ? event.val.bpb : HUGE_VAL;
    if (event.improved) {
        session->run.best_val_loss = event.val.loss;
        session->run.best_val_bpb = session->run.val_bpb;
    }
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
    return l->session->run.purpose == PL_RUN_TRAINS && l->session->run.rank == 0
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
    l->session->fails_alike = 1;
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
    pl_status status = pl_update(l->session, l->listener, &event, err);
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

/* Where several processes share the run, all stop or none. */
static pl_status agree_on(const loop *l, pl_status status, pl_error *err)
{
    pl_status voted = pl_ranks_agree_stop(&l->session->ranks, &status, err);
    return voted ? voted : status;
}

static pl_status stop_if_asked(const loop *l, pl_error *err)
{
    const pl_listener *listener = l->listener;
    pl_status status = PL_OK;
    if (listener->stop && listener->stop(listener->context))
        status = stopped(l, err);
    return agree_on(l, status, err);
}

/* Rank 0 writes texts and is asked tasks. */
static pl_status look_at_model(loop *l, pl_error *err)
{
    pl_status status = sample(l, err);
    if (!status)
        status = quiz(l, err);
    return agree_on(l, status, err);
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
            status = save_if_possible(l, err);
        if (!status)
            status = look_at_model(l, err);
        if (status || session->run.purpose != PL_RUN_TRAINS ||
            session->run.step >= (uint64_t)config->max_iters)
            return status;
        status = stop_if_asked(l, err);
        if (!status)
            status = update(l, err);
        if (!status)
            status = stop_if_asked(l, err);
        if (status)
            return status;
    }
}

/* What is lost when the last save fails. */
static pl_status lost(const loop *l, pl_status saved, const pl_error *trouble,
                      pl_error *err)
{
    char name[PL_OUTDIR_NAME_BYTES];
    pl_session *session = l->session;
    session->fails_alike = saved != PL_E_RANKS;
    if (session->run.outdir.newest == PL_OUTDIR_NO_STEP)
        return pl_fail(err, saved,
                       "%s. It was tried %d times. All %llu iterations are "
                       "lost: there is no checkpoint",
                       trouble->text, LAST_TRIES,
                       (unsigned long long)session->run.step);
    pl_outdir_name(name, session->run.outdir.newest);
    return pl_fail(err, saved,
                   "%s. It was tried %d times. The iterations from %llu to "
                   "%llu are lost: the newest checkpoint is %s/%s",
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
 * it is known to be no good, or other processes have some of it and the run has
 * failed; and a run that ends as it should leaves a checkpoint, whatever it
 * learnt. */
static int ends_with_save(const loop *l, pl_status status)
{
    const pl_config *config = l->session->run.config;
    if (l->session->run.purpose != PL_RUN_TRAINS || l->session->is_torn ||
        l->skipped_in_a_row >= config->max_skipped ||
        (status && status != PL_E_STOPPED && l->session->ranks.comm) ||
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
    if (session->ranks.comm && (!status || status == PL_E_STOPPED)) {
        pl_status summed = pl_ranks_sum_up(&session->ranks, err);
        status = summed ? summed : status;
    }

    if (!ends_with_save(&l, status))
        return status;
    if (l.skipped_in_a_row > 0) /* whether it is good is yet unknown */
        session->run.outdir.keep++;
    for (int i = 0; i < LAST_TRIES && saved && saved != PL_E_RANKS; i++)
        saved = save(&l, &trouble);
    if (!saved)
        return status;
    if (!status || status == PL_E_STOPPED)
        return lost(&l, saved, &trouble, err);
    lost(&l, saved, &trouble, &lost_text);
    return pl_fail_in(err, status, "%s; and then: ", lost_text.text);
}
