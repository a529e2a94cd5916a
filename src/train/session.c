/* session.c: setting up a run, in the order in which things can go wrong:
 * config, data, plan, memory, weights. */
#include "train/session.h"
#include "advise/runplan.h"
#include "base/memory.h"
#include "base/units.h"
#include "config/special.h"
#include "data/shard_check.h"
#include "device/choose.h"
#include "device/products.h"
#include "store/checkpoint.h"
#include "store/limits.h"
#include "store/pretrained.h"
#include "store/resume.h"
#include "store/vocabulary_check.h"
#include "train/medium.h"
#include "train/session_agree.h"
#include "train/session_rehearse.h"
#include "train/workers.h"

#include <math.h>
#include <stdio.h>

enum { STAGE_FLOATS = PL_RUN_STAGE_BYTES / sizeof(float) };

/* ---- parts ---- */

void pl_session_say_device(const pl_config *config, const pl_log *log)
{
    pl_device_info info;
    if (!pl_device_choose(&info, config, NULL) &&
        pl_device_is_another(config, &info))
        pl_log_say(log, PL_LOG_NOTE,
                   "device = '%s' is not here: %s computes instead",
                   config->device.text,
                   info.memory.spaces == PL_SPACES_APART ? info.text
                                                         : "the processor");
    if (!pl_device_choose(&info, config, NULL))
        pl_products_say(&info, config, log);
}

/* What the host counts with, of evaluations and of updates that are shared. */
static pl_status take_room(pl_session *session, pl_error *err)
{
    pl_run *run = &session->run;
    const pl_gpt_layout *layout = &run->gpt.layout;
    _Static_assert(sizeof *session->evaluated == PL_RUN_PLAN_EVALUATED_BYTES,
                   "what plans count");
    pl_status status = pl_heap_take(run->heap, &session->evaluated,
                                    pl_run_plan_evaluated(layout),
                                    sizeof *session->evaluated, err);
    if (!status && pl_gpt_ranks(layout) > 1)
        status = pl_heap_take(run->heap, &session->losses,
                              pl_run_plan_losses(layout),
                              sizeof *session->losses, err);
    return status;
}

pl_status pl_session_open_device(pl_session *session, pl_error *err)
{
    const pl_gpt *gpt = &session->run.gpt;
    pl_status status = pl_heap_take(session->run.heap, &session->run.text,
                                    PL_RUN_TEXT_BYTES, 1, err);
    if (!status)
        status = pl_heap_take(session->run.heap, &session->run.stage,
                              PL_RUN_STAGE_BYTES, 1, err);
    if (!status)
        status = pl_heap_take(session->run.heap, &session->run.halves,
                              STAGE_FLOATS, sizeof *session->run.halves, err);
    if (!status && gpt->layout.eval_micro)
        status = take_room(session, err);
    for (int i = 0; i < PL_PROGRAM_COUNT && !status; i++)
        status = pl_heap_take(session->run.heap, &session->step_seconds[i],
                              gpt->graph.programs[i].n_steps + 1,
                              sizeof(double), err);
    if (!status)
        status = pl_device_open(&session->run.device, &gpt->layout.device,
                                &gpt->graph, &gpt->placement, session->run.heap,
                                err);
    if (!status && pl_run_plan_is_apart(&gpt->layout) &&
        pl_memory_peak_bytes(&session->driver_bytes, NULL))
        session->driver_bytes = 0;
    if (status)
        return status;
    status = pl_run_write_rotary(&session->run, err);
    if (status)
        pl_device_close(session->run.device);
    return status;
}

size_t pl_session_host_bytes(const pl_session *session)
{
    return pl_run_plan_host_arena(&session->run.gpt) + session->reserve_bytes +
           session->driver_bytes + session->machine.opened_bytes +
           (session->ranks.comm ? pl_comm_memory_bytes(session->ranks.comm)
                                : 0);
}

/* Where several processes share the run, each is heard from while it computes,
 * whatever that is. */
typedef struct beating {
    pl_session *session;
    const pl_run_watch *watch;
    pl_status broken;
    pl_error trouble;
} beating;

static int beat(void *context, const pl_step *step)
{
    beating *b = context;
    b->broken = pl_comm_beat(b->session->ranks.comm, &b->trouble);
    return b->broken ||
           (b->watch && b->watch->between(b->watch->context, step));
}

pl_status pl_session_run_watched(pl_session *session, pl_program_id program,
                                 pl_part part, const pl_run_watch *watch,
                                 pl_run_end *end, pl_error *err)
{
    pl_device *device = session->run.device;
    beating b = { .session = session, .watch = watch, .broken = PL_OK };
    const pl_run_watch own = { .context = &b, .between = beat };
    const int beats = session->ranks.comm && program != PL_UPDATE_WEIGHTS &&
                      !session->ranks.is_aside; /* which beats itself */
    pl_status status = pl_device_set(device, &session->controls, err);
    if (!status)
        status = pl_device_run_watched(device, program, part,
                                       beats ? &own : watch, end, err);
    if (!status && b.broken)
        status = pl_fail(err, b.broken, "%s", b.trouble.text);
    return status;
}

pl_status pl_session_run(pl_session *session, pl_program_id program,
                         pl_part part, pl_error *err)
{
    pl_run_end end;
    return pl_session_run_watched(session, program, part, NULL, &end, err);
}

pl_status pl_session_load_row(pl_session *session, pl_buffer_id buffer,
                              size_t row, const pl_batch_key *key,
                              size_t sequence, size_t T, pl_error *err)
{
    int32_t *tokens = (int32_t *)(void *)session->run.stage;
    const size_t most = PL_RUN_STAGE_BYTES / sizeof *tokens;
    pl_status status = PL_OK;
    for (size_t at = 0; at < T + 1 && !status;) {
        const size_t count = T + 1 - at < most ? T + 1 - at : most;
        status = pl_batch_read(&session->run.dataset, key, (uint32_t)sequence,
                               T, at, count, tokens, err);
        if (!status)
            status = pl_device_write(session->run.device, buffer,
                                     (row * (T + 1) + at) * sizeof *tokens,
                                     tokens, count * sizeof *tokens, err);
        at += count;
    }
    return status;
}

static pl_status init_weights(pl_session *session, pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t i = 0; i < pl_param_slots(&session->run.shape); i++) {
        pl_param param = pl_param_at(&session->run.shape, i);
        size_t count = param.rows * param.cols;
        if (!pl_param_present(&session->run.shape, &param))
            continue;
        for (size_t at = 0; at < count && !status; at += STAGE_FLOATS) {
            size_t n = count - at < STAGE_FLOATS ? count - at : STAGE_FLOATS;
            pl_param_init(&session->run.shape, i,
                          (unsigned)session->run.config->seed, at, n,
                          (float *)(void *)session->run.stage);
            status = pl_run_write_weights(&session->run, i, at, n, err);
        }
    }
    return status;
}

pl_status pl_session_open_tokens(pl_session *session, pl_error *err)
{
    const pl_config *config = session->run.config;
    pl_status status = pl_dataset_open(&session->run.dataset, "data",
                                       config->dataset, session->run.heap, err);
    if (status)
        return status;
    /* Bare ids are bounded by what the config says, if it says anything. */
    if (session->run.dataset.tokenizer.kind == PL_TOKENIZER_NONE &&
        config->vocab_size != PL_NONE && config->vocab_size <= INT32_MAX)
        session->run.dataset.tokenizer.vocab_size = (int32_t)config->vocab_size;
    session->run.tokenizer = session->run.dataset.tokenizer;
    for (int split = 0; split < 2 && !status; split++) {
        const pl_shard_set *shards = &session->run.dataset.shards[split];
        status = pl_batch_check(shards->name, shards->n_tokens,
                                (size_t)config->block_size, err);
    }
    if (!status)
        status = pl_tokenizer_write(&session->run.tokenizer, session->run.heap,
                                    &session->run.tokenizer_file, err);
    if (!status)
        status = pl_tokenizer_write_hf(&session->run.tokenizer,
                                       session->run.heap,
                                       &session->run.hf_tokenizer, err);
    if (!status)
        status = pl_token_bytes_make(&session->token_bytes,
                                     &session->run.tokenizer, session->run.heap,
                                     err);
    if (status)
        pl_dataset_close(&session->run.dataset);
    session->has_dataset = !status;
    return status;
}

size_t pl_session_vocabulary(const pl_config *config,
                             const pl_tokenizer *tokenizer)
{
    const int bare = tokenizer->kind == PL_TOKENIZER_NONE;
    if (config->vocab_size != PL_NONE &&
        (bare || config->vocab_size >= (int64_t)tokenizer->vocab_size))
        return (size_t)(bare ? config->vocab_size : tokenizer->vocab_size);
    return pl_tokenizer_model_vocab(tokenizer);
}

pl_status pl_session_check_tokens(pl_session *session,
                                  const pl_machine *machine, uint64_t hashes[2],
                                  pl_error *err)
{
    pl_status status = PL_OK;
    for (int split = 0; split < 2 && !status; split++)
        status = pl_shard_check(&session->run.dataset.shards[split],
                                session->run.dataset.tokenizer.vocab_size,
                                machine->cache_folder, session->run.log,
                                &hashes[split], err);
    return status;
}

/* A checkpoint keeps every setting: each has to fit its line. */
static pl_status check_values(const pl_config *config, pl_error *err)
{
    for (int key = 0; key < PL_KEY_COUNT; key++)
        if (pl_key_is_kept((pl_key)key) &&
            pl_config_value_text(config, (pl_key)key, NULL, 0) >=
                PL_CHECKPOINT_VALUE_BYTES)
            return pl_fail(err, PL_E_CONFIG,
                           "%s: its value is longer than the %s that a "
                           "checkpoint can hold",
                           pl_key_row((pl_key)key)->name,
                           pl_units_exact(PL_CHECKPOINT_VALUE_BYTES - 1).text);
    return PL_OK;
}

/* ---- sessions ---- */

static uint64_t tokenizer_file_bytes(const pl_session *session)
{
    return pl_checkpoint_tokenizer_bytes(&session->run.tokenizer_file,
                                         &session->run.hf_tokenizer);
}

/* The plan, or the reason why there is none that fits. */
static pl_status make_plan(pl_session *session, const pl_machine *given,
                           size_t vocab_size, pl_error *err)
{
    pl_run_plan plan;
    pl_machine machine = *given;
    pl_medium medium;
    pl_status status = PL_OK;
    machine.tokenizer_bytes = pl_tokenizer_memory_bytes(
                                  &session->run.tokenizer) +
                              pl_token_bytes_room(&session->run.tokenizer) +
                              session->quiz.requests.bytes;
    if (session->run.purpose == PL_RUN_TRAINS)
        status = pl_medium_count(&medium, &machine, session->run.config,
                                 tokenizer_file_bytes(session), err);
    if (!status)
        status = pl_run_plan_make(&plan, session->run.config, &machine,
                                  vocab_size, session->run.log,
                                  session->run.heap, err);
    if (!status)
        status = pl_run_plan_check(&plan, &machine, err);
    if (status)
        return status;
    const size_t workers = pl_gpt_workers(&plan.gpt.layout);
    machine.files = NULL; /* it was counted */
    session->machine = machine;
    session->reserve_bytes = plan.reserve_bytes;
    session->files_bytes = plan.files.bytes;
    session->run.scaler = pl_scaler_make(
        plan.gpt.layout.dtype,
        (double)session->run.config->batch_size *
            (double)session->run.config->gradient_accumulation_steps *
            (double)plan.gpt.shape.T / (double)(workers ? workers : 1));
    session->run.gpt = plan.gpt;
    session->run.shape = plan.gpt.shape;
    return PL_OK;
}

/* Everything that needs no memory of the model's size. */
static pl_status open_surroundings(pl_session *session,
                                   const pl_machine *machine, pl_error *err)
{
    const pl_config *config = session->run.config;
    const int is_first = session->run.rank == 0,
              writes = session->run.purpose == PL_RUN_TRAINS && is_first;
    uint64_t hashes[2] = { 0, 0 };
    pl_status status = check_values(config, err);
    if (status)
        return status;
    pl_session_say_device(config, session->run.log);
    status = pl_workers_check(config, machine, err);
    if (!status)
        status = pl_session_open_tokens(session, err);
    if (status)
        return status;
    if (writes)
        status = pl_prompts_open(&session->prompts, &session->run, err);
    if (!status && writes)
        status = pl_session_quiz_open(
            &session->quiz, config, &session->run.tokenizer,
            session->run.dataset.folder, session->run.heap, err);
    session->run.tasks = session->quiz.requests.tasks.count;
    if (!status)
        status = pl_session_check_tokens(session, machine, hashes, err);
    if (!status && session->ranks.comm)
        status = pl_agree_data(session, hashes, err);
    /* before the plan, which may fail for this reason */
    if (!status && is_first && pl_config_beginning(config) == PL_BEGIN_MODEL)
        status = pl_vocabulary_check(&session->run, config->init_from, err);
    const size_t vocab_size = pl_session_vocabulary(config,
                                                    &session->run.tokenizer);
    if (!status)
        status = make_plan(session, machine, vocab_size, err);
    if (!status && session->ranks.comm)
        status = pl_agree_plan(session, err);
    if (!status && writes)
        status = pl_outdir_open(
            &session->run.outdir, config->out_dir, (size_t)config->keep,
            pl_medium_need(config, &session->run.gpt,
                           tokenizer_file_bytes(session)),
            pl_config_beginning(config) == PL_BEGIN_RESUME ? PL_OUTDIR_RESUMED
                                                           : PL_OUTDIR_NEW,
            session->run.log, err);
    if (!status && writes) {
        status = pl_limits_check(&session->run, err);
        if (status)
            pl_outdir_undo(&session->run.outdir);
    }
    if (status)
        pl_dataset_close(&session->run.dataset);
    return status;
}

/* What the weights come from. */
typedef struct weights_source {
    pl_beginning from;
    pl_resume resume;
    pl_pretrained pretrained;
} weights_source;

static pl_status check_folder(pl_session *session, pl_pretrained *pretrained,
                              pl_error *err)
{
    const char *folder = session->run.config->init_from;
    pl_shape shape;
    pl_status status = pl_pretrained_shape(&shape, folder, session->run.heap,
                                           err);
    if (status)
        return status;
    if (shape.T > session->run.shape.T ||     /* the rest is left out */
        shape.position == PL_POSITION_ROTARY) /* or there is no table */
        shape.T = session->run.shape.T;
    status = pl_resume_same_model(&shape, &session->run.shape, folder, err);
    if (!status)
        status = pl_pretrained_open(pretrained, folder, session->run.heap, err);
    if (!status)
        status = pl_pretrained_check(pretrained, &session->run.gpt, err);
    return status;
}

/* Looks before memory is taken; the files of a folder stay open. */
static pl_status find_weights(pl_session *session, weights_source *source,
                              pl_error *err)
{
    switch (source->from) {
    case PL_BEGIN_SCRATCH:
        return PL_OK;
    case PL_BEGIN_RESUME:
        return pl_resume_find(&source->resume, &session->run, err);
    case PL_BEGIN_MODEL:
        return check_folder(session, &source->pretrained, err);
    }
    return PL_OK;
}

static pl_status fill_weights(pl_session *session, weights_source *source,
                              pl_error *err)
{
    pl_status status = PL_OK;
    if (source->from == PL_BEGIN_RESUME)
        return pl_resume_load(&source->resume, &session->run, err);
    if (source->from == PL_BEGIN_SCRATCH) {
        status = init_weights(session, err);
    } else {
        status = pl_pretrained_load(&source->pretrained, &session->run, err);
        pl_log_say(session->run.log, PL_LOG_INFO, "Initializing from %s",
                   session->run.config->init_from);
    }
    if (status || session->run.purpose != PL_RUN_TRAINS || session->run.rank)
        return status;
    status = pl_outdir_move_earlier(&session->run.outdir, session->run.heap,
                                    err);
    if (!status)
        status = pl_metrics_open(&session->run.metrics,
                                 session->run.config->out_dir, "", NULL,
                                 session->run.log, session->run.heap, err);
    return status;
}

/* Where the run is, for the processes that share it. */
typedef struct place {
    uint64_t step, skipped, newest; /* checkpoint, for when the next is due */
    double best_val_loss, best_val_bpb, val_loss, val_bpb;
    pl_scaler scaler;
    char out_dir[PL_PATH_BYTES]; /* rank 0's: others only name it */
} place;

static pl_status share_place(pl_session *session, pl_error *err)
{
    pl_run *run = &session->run;
    place p = { .step = run->step,
                .skipped = run->skipped,
                .newest = run->outdir.newest,
                .best_val_loss = run->best_val_loss,
                .best_val_bpb = run->best_val_bpb,
                .val_loss = run->val_loss,
                .val_bpb = run->val_bpb,
                .scaler = run->scaler };
    snprintf(p.out_dir, sizeof p.out_dir, "%s",
             run->outdir.path ? run->outdir.path : "");
    pl_status status = pl_comm_broadcast(session->ranks.comm, &p, sizeof p,
                                         err);
    if (status || run->rank == 0)
        return status;
    snprintf(run->outdir.moved, sizeof run->outdir.moved, "%s", p.out_dir);
    run->outdir.path = run->outdir.moved;
    run->step = p.step;
    run->skipped = p.skipped;
    run->outdir.newest = p.newest;
    run->best_val_loss = p.best_val_loss;
    run->best_val_bpb = p.best_val_bpb;
    run->val_loss = p.val_loss;
    run->val_bpb = p.val_bpb;
    run->scaler = p.scaler;
    return PL_OK;
}

/* Rank 0 has the weights and moments, or gets them; then all have what is
 * theirs. */
static pl_status fill_ranks(pl_session *session, weights_source *source,
                            pl_error *err)
{
    pl_status status, ended = PL_OK;
    if (session->run.rank == 0) {
        status = fill_weights(session, source, err);
        if (!status)
            status = pl_ranks_end_service(&session->ranks, PL_OK, err);
    } else {
        status = pl_ranks_serve(&session->ranks, &ended, err);
    }
    const int each_has_its_own = source->from == PL_BEGIN_RESUME &&
                                 pl_gpt_workers(&session->run.gpt.layout);
    if (!status && !each_has_its_own)
        status = pl_ranks_send_weights(&session->ranks, err);
    return status ? status : share_place(session, err);
}

static pl_status open_train(pl_session *session, weights_source *source,
                            pl_error *err)
{
    pl_status status = PL_OK;
    if (session->run.rank == 0)
        status = find_weights(session, source, err);
    if (!status)
        status = pl_session_open_device(session, err);
    if (status)
        return status;
    status = pl_rehearse(session, err);
    if (!status && session->ranks.comm)
        status = pl_ranks_prepare(&session->ranks, &session->run,
                                  session->run.heap, err);
    if (!status)
        status = session->ranks.comm ? fill_ranks(session, source, err)
                                     : fill_weights(session, source, err);
    if (!status && pl_gpt_workers(&session->run.gpt.layout) &&
        source->from != PL_BEGIN_RESUME)
        status = pl_workers_begin(&session->run, err);
    if (status)
        pl_device_close(session->run.device);
    return status;
}

pl_status pl_session_open_train(pl_session *session, pl_run_purpose purpose,
                                const pl_config *config,
                                const pl_machine *machine, const pl_log *log,
                                pl_heap *heap, pl_error *err)
{
    pl_comm *comm = machine->comm;
    weights_source source = { .from = pl_config_beginning(config) };
    *session = (pl_session){ .run = pl_run_make(purpose, config, log, heap) };
    pl_status status = pl_ranks_open(&session->ranks, comm, heap, err);
    if (comm) {
        session->run.rank = (size_t)pl_comm_rank(comm);
        session->others = pl_ranks_others(&session->ranks);
        session->run.others = &session->others;
    }
    if (!status && comm) /* rank 0 knows how the run begins */
        status = pl_comm_broadcast(comm, &source.from, sizeof source.from, err);
    if (!status)
        status = open_surroundings(session, machine, err);
    if (status)
        return status;
    status = open_train(session, &source, err);
    pl_pretrained_close(&source.pretrained);
    if (status) {
        pl_metrics_close(&session->run.metrics);
        pl_outdir_undo(&session->run.outdir);
        pl_dataset_close(&session->run.dataset);
        return status;
    }
    pl_heap_seal(heap);
    return PL_OK;
}

pl_status pl_session_open_bench(pl_session *session, const pl_config *config,
                                const pl_machine *machine,
                                pl_new_weights weights, size_t vocab_size,
                                const pl_log *log, pl_heap *heap, pl_error *err)
{
    *session = (pl_session){ .run = pl_run_make(PL_RUN_IS_MEASURED, config, log,
                                                heap) };
    pl_session_say_device(config, log);
    pl_status status = make_plan(session, machine, vocab_size, err);
    if (!status)
        status = pl_session_open_device(session, err);
    if (status || weights == PL_NEW_ZEROS)
        return status;
    status = init_weights(session, err);
    if (status)
        pl_device_close(session->run.device);
    return status;
}

void pl_session_close(pl_session *session)
{
    pl_ranks_close(&session->ranks);
    pl_device_close(session->run.device);
    pl_metrics_close(&session->run.metrics);
    pl_outdir_close(&session->run.outdir);
    if (session->has_dataset)
        pl_dataset_close(&session->run.dataset);
}
