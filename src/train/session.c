/* session.c: setting up a run, in the order in which things can go wrong:
 * config, data, plan, memory, weights. */
#include "train/session.h"
#include "base/check.h"
#include "base/threads.h"
#include "data/batch.h"
#include "train/checkpoint.h"
#include "train/outdir.h"
#include "train/rehearse.h"
#include "train/runplan.h"

#include <math.h>
#include <string.h>

enum { STAGE_FLOATS = PL_SESSION_STAGE_BYTES / sizeof(float) };

pl_scalars *pl_session_scalars(pl_session *session)
{
    return pl_device_host(session->device, session->gpt.scalars);
}

/* ---- what this version can run ---- */

pl_status pl_session_check_supported(const pl_config *config, pl_error *err)
{
    if (strncmp(config->init_from, "gpt2", 4) == 0)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "init_from = '%s': this version cannot load OpenAI's "
                       "weights yet. Use init_from = 'scratch' or 'resume'",
                       config->init_from);
    return PL_OK;
}

static void say_device(const pl_config *config, const pl_log *log)
{
    if (strcmp(config->device, "auto") != 0 &&
        strcmp(config->device, "cpu") != 0)
        pl_log_say(log, PL_LOG_NOTE,
                   "device = '%s': this version runs on the processor, which "
                   "is used instead",
                   config->device);
}

/* ---- parts ---- */

static pl_status open_device(pl_session *session, pl_error *err)
{
    pl_kernels kernels = pl_kernels_for(pl_cpu_isa());
    const pl_gpt *gpt = &session->gpt;
    pl_status status = pl_heap_take(session->heap, &session->text,
                                    PL_SESSION_TEXT_BYTES, 1, err);
    if (!status)
        status = pl_heap_take(session->heap, &session->stage,
                              PL_SESSION_STAGE_BYTES, 1, err);
    if (!status)
        status = pl_heap_take(session->heap, &session->halves, STAGE_FLOATS,
                              sizeof *session->halves, err);
    for (int i = 0; i < PL_PROGRAM_COUNT && !status; i++)
        status = pl_heap_take(session->heap, &session->step_seconds[i],
                              gpt->graph.programs[i].n_steps + 1,
                              sizeof(double), err);
    if (!status)
        status = pl_device_open_cpu(
            &session->device, &gpt->graph, &gpt->placement, &kernels,
            (int)gpt->layout.threads, session->heap, err);
    if (!status)
        PL_CHECK(pl_device_used_bytes(session->device) ==
                 gpt->placement.arena_bytes);
    return status;
}

/* `count` floats of the stage, rounded, into a buffer of 16-bit elements. */
static void write_halves(pl_session *session, pl_buffer_id buffer, size_t first,
                         size_t count)
{
    const float *stage = (const float *)(const void *)session->stage;
    const pl_storage storage = session->gpt.graph.buffers[buffer].dtype ==
                                       PL_BF16
                                   ? PL_STORE_BF16
                                   : PL_STORE_F16;
    for (size_t i = 0; i < count; i++)
        pl_storage_put(session->halves, i, stage[i], storage);
    pl_device_write(session->device, buffer, first * sizeof *session->halves,
                    session->halves, count * sizeof *session->halves);
}

void pl_session_write_copy(pl_session *session, size_t slot, size_t first,
                           size_t count)
{
    pl_buffer_id copy = session->gpt.copies[slot];
    if (copy != PL_NO_BUFFER)
        write_halves(session, copy, first, count);
}

/* `count` weights of the stage to where they are kept. */
static void write_weights(pl_session *session, size_t slot, size_t first,
                          size_t count)
{
    pl_buffer_id buffer = session->gpt.weights[slot];
    if (session->gpt.graph.buffers[buffer].dtype != PL_F32)
        write_halves(session, buffer, first, count);
    else
        pl_device_write(session->device, buffer, first * sizeof(float),
                        session->stage, count * sizeof(float));
    pl_session_write_copy(session, slot, first, count);
}

static void init_weights(pl_session *session)
{
    for (size_t i = 0; i < pl_param_slots(&session->shape); i++) {
        pl_param param = pl_param_at(&session->shape, i);
        size_t count = param.rows * param.cols;
        if (!pl_param_present(&session->shape, &param))
            continue;
        for (size_t at = 0; at < count; at += STAGE_FLOATS) {
            size_t n = count - at < STAGE_FLOATS ? count - at : STAGE_FLOATS;
            pl_param_init(&session->shape, i, (unsigned)session->config->seed,
                          at, n, (float *)(void *)session->stage);
            write_weights(session, i, at, n);
        }
    }
}

static pl_status open_tokens(pl_session *session, pl_error *err)
{
    const pl_config *config = session->config;
    pl_status status = pl_dataset_open(&session->dataset, "data",
                                       config->dataset, session->heap, err);
    if (status)
        return status;
    /* Bare ids are bounded by what the config says, if it says anything. */
    if (session->dataset.tokenizer.kind == PL_TOKENIZER_NONE &&
        config->vocab_size != PL_NONE && config->vocab_size <= INT32_MAX)
        session->dataset.tokenizer.vocab_size = (int32_t)config->vocab_size;
    session->tokenizer = session->dataset.tokenizer;
    for (int split = 0; split < 2 && !status; split++) {
        const pl_shard_set *shards = &session->dataset.shards[split];
        status = pl_batch_check(shards->name, shards->n_tokens,
                                (size_t)config->block_size, err);
    }
    if (!status)
        status = pl_tokenizer_write(&session->tokenizer, session->heap,
                                    &session->tokenizer_file, err);
    if (status)
        pl_dataset_close(&session->dataset);
    session->has_dataset = !status;
    return status;
}

/* ---- resuming ---- */

/* A checkpoint fits a config only if they describe the same model. */
static pl_status check_same_model(const pl_shape *have, const pl_shape *want,
                                  const char *folder, pl_error *err)
{
    const struct {
        const char *key;
        size_t have, want;
    } sizes[] = {
        { "n_layer", have->L, want->L },
        { "n_head", have->H, want->H },
        { "n_embd", have->C, want->C },
        { "head_dim", have->D, want->D },
        { "vocab_size", have->V, want->V },
        { "block_size", have->T, want->T },
        { "bias", have->bias, want->bias },
        { "activation (0 gelu, 1 gelu_tanh)", have->activation,
          want->activation },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].have != sizes[i].want)
            return pl_fail(err, PL_E_CONFIG,
                           "%s: %s is %zu in the checkpoint and %zu in the "
                           "config. A checkpoint resumes the model it was "
                           "made with: set it back, or start anew with another "
                           "out_dir",
                           folder, sizes[i].key, sizes[i].have, sizes[i].want);
    return PL_OK;
}

/* Finds the checkpoint and looks whether it fits, before memory is taken. */
static pl_status find_resume(pl_session *session, char folder[PL_PATH_BYTES],
                             pl_checkpoint_state *state, pl_error *err)
{
    pl_status status = pl_checkpoint_find(folder, session->config->out_dir,
                                          PL_WANT_NEWEST, session->heap, err);
    if (!status)
        status = pl_checkpoint_read_state(state, folder, session->heap, err);
    if (!status)
        status = check_same_model(&state->shape, &session->shape, folder, err);
    if (!status)
        status = pl_checkpoint_check_tokenizer(session, folder, err);
    if (!status)
        status = pl_checkpoint_check(session, folder, err);
    return status;
}

static pl_status resume(pl_session *session, const char *folder,
                        const pl_checkpoint_state *state, pl_error *err)
{
    pl_status status = pl_checkpoint_load(session, folder, err);
    if (status)
        return status;
    session->step = state->step;
    session->skipped = state->skipped;
    session->best_val_loss = state->best_val_loss;
    if (session->scaler.active && state->scaler.active)
        session->scaler = state->scaler;
    pl_log_say(session->log, PL_LOG_INFO,
               "Resuming training from %s at iteration %llu", folder,
               (unsigned long long)state->step);
    return PL_OK;
}

/* A checkpoint keeps every setting: each has to fit its line. */
static pl_status check_values(const pl_config *config, pl_error *err)
{
    for (int key = 0; key < PL_KEY_COUNT; key++)
        if (pl_key_row((pl_key)key)->type != PL_TYPE_IGNORED &&
            pl_config_value_text(config, (pl_key)key, NULL, 0) >=
                PL_CHECKPOINT_VALUE_BYTES)
            return pl_fail(err, PL_E_CONFIG,
                           "%s: its value is longer than the %d bytes that a "
                           "checkpoint can hold",
                           pl_key_row((pl_key)key)->name,
                           PL_CHECKPOINT_VALUE_BYTES - 1);
    return PL_OK;
}

/* ---- sessions ---- */

/* The plan, or the reason why there is none that fits. */
static pl_status make_plan(pl_session *session, const pl_machine *given,
                           size_t vocab_size, pl_error *err)
{
    pl_run_plan plan;
    pl_machine own = *given, *machine = &own;
    own.held_bytes = pl_tokenizer_held_bytes(&session->tokenizer);
    pl_status status = pl_run_plan_make(&plan, session->config, machine,
                                        vocab_size, session->log, session->heap,
                                        err);
    if (!status)
        status = pl_run_plan_check(&plan, machine, err);
    if (status)
        return status;
    session->machine = *machine;
    session->reserve_bytes = plan.reserve_bytes;
    session->scaler = pl_scaler_make(plan.gpt.layout.dtype == PL_F16);
    session->gpt = plan.gpt;
    session->shape = plan.gpt.shape;
    return PL_OK;
}

/* Files in memory (tmpfs) are memory: a checkpoint, and the one it replaces. */
static pl_status check_medium(pl_session *session, const pl_machine *machine,
                              pl_error *err)
{
    uint64_t files = 2 * pl_checkpoint_bytes(session);
    uint64_t run = session->gpt.placement.arena_bytes + session->reserve_bytes;
    pl_disk_medium medium;
    pl_status status = pl_disk_look(session->config->out_dir, &medium, err);
    if (status || medium == PL_DISK_STORAGE ||
        run + files <= machine->budget_bytes)
        return status;
    return pl_fail(err, PL_E_MEMORY,
                   "out_dir %s is in memory (tmpfs): two checkpoints of %llu "
                   "bytes count, and with them the run needs %llu of %zu bytes "
                   "(%s). Choose an out_dir on a disk",
                   session->config->out_dir, (unsigned long long)files / 2,
                   (unsigned long long)(run + files), machine->budget_bytes,
                   machine->budget_from);
}

/* Everything that needs no memory of the model's size. */
static pl_status open_surroundings(pl_session *session,
                                   const pl_machine *machine, pl_error *err)
{
    pl_status status = pl_session_check_supported(session->config, err);
    if (!status)
        status = check_values(session->config, err);
    if (status)
        return status;
    say_device(session->config, session->log);
    status = open_tokens(session, err);
    if (status)
        return status;
    status = make_plan(session, machine,
                       pl_tokenizer_model_vocab(&session->tokenizer), err);
    if (!status && !session->config->eval_only)
        status = check_medium(session, machine, err);
    if (!status && !session->config->eval_only)
        status = pl_outdir_open(&session->lock, session->config->out_dir,
                                pl_checkpoint_bytes(session), err);
    if (status)
        pl_dataset_close(&session->dataset);
    return status;
}

pl_status pl_session_open_train(pl_session *session, const pl_config *config,
                                const pl_machine *machine, const pl_log *log,
                                pl_heap *heap, pl_error *err)
{
    char folder[PL_PATH_BYTES];
    pl_checkpoint_state state;
    int resumes = strcmp(config->init_from, "resume") == 0;

    *session = (pl_session){ .config = config,
                             .log = log,
                             .heap = heap,
                             .best_val_loss = HUGE_VAL,
                             .lock = PL_FILE_CLOSED };
    pl_status status = open_surroundings(session, machine, err);
    if (status)
        return status;
    if (resumes)
        status = find_resume(session, folder, &state, err);
    if (!status)
        status = open_device(session, err);
    if (status)
        goto close_surroundings;
    status = pl_rehearse(session, err);
    if (status)
        goto close_device;
    if (resumes)
        status = resume(session, folder, &state, err);
    else
        init_weights(session);
    if (status)
        goto close_device;
    session->has_own_best = resumes;
    pl_heap_seal(heap);
    return PL_OK;
close_device:
    pl_device_close(session->device);
close_surroundings:
    pl_outdir_close(&session->lock);
    pl_dataset_close(&session->dataset);
    return status;
}

pl_status pl_session_open_bench(pl_session *session, const pl_config *config,
                                const pl_machine *machine,
                                pl_new_weights weights, size_t vocab_size,
                                const pl_log *log, pl_heap *heap, pl_error *err)
{
    *session = (pl_session){
        .config = config, .log = log, .heap = heap, .lock = PL_FILE_CLOSED
    };
    say_device(config, log);
    pl_status status = make_plan(session, machine, vocab_size, err);
    if (!status)
        status = open_device(session, err);
    if (!status && weights == PL_NEW_RANDOM)
        init_weights(session);
    return status;
}

/* What the weights and the tokenizer of a checkpoint must agree on. */
static pl_status check_sampling(const pl_session *session, const char *folder,
                                pl_error *err)
{
    if (session->tokenizer.kind == PL_TOKENIZER_NONE)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s has no tokenizer, since the data it was trained on "
                       "had none. For GPT-2's tokens put GPT-2's vocabulary "
                       "there, as vocab.json and merges.txt or as "
                       "tokenizer.json: `plimsoll prepare --tokenizer=gpt2` "
                       "writes one beside the tokens",
                       folder);
    if ((size_t)session->tokenizer.vocab_size > session->shape.V)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: the tokenizer has %d tokens, the model in "
                       "state.json knows %zu: they do not belong together",
                       folder, session->tokenizer.vocab_size, session->shape.V);
    return pl_checkpoint_check(session, folder, err);
}

static pl_status check_budget(pl_session *session, const pl_machine *machine,
                              pl_error *err)
{
    size_t arena = session->gpt.placement.arena_bytes;
    session->reserve_bytes = pl_run_plan_reserve(&session->shape,
                                                 &session->gpt.layout, arena,
                                                 session->heap->taken_bytes);
    if (arena + session->reserve_bytes <= machine->budget_bytes)
        return PL_OK;
    return pl_fail(err, PL_E_MEMORY,
                   "sampling needs %zu bytes (arena %zu + reserve %zu), the "
                   "budget is %zu (%s)",
                   arena + session->reserve_bytes, arena,
                   session->reserve_bytes, machine->budget_bytes,
                   machine->budget_from);
}

pl_status pl_session_open_sample(pl_session *session, const pl_config *config,
                                 const pl_machine *machine, const char *folder,
                                 const pl_log *log, pl_heap *heap,
                                 pl_error *err)
{
    pl_checkpoint_state state;
    pl_gpt_layout layout;

    *session = (pl_session){
        .config = config, .log = log, .heap = heap, .lock = PL_FILE_CLOSED
    };
    say_device(config, log);
    pl_status status = pl_session_check_supported(config, err);
    if (!status)
        status = pl_checkpoint_read_state(&state, folder, heap, err);
    if (!status)
        status = pl_dataset_read_tokenizer(&session->tokenizer, folder, heap,
                                           err);
    if (status)
        return status;
    session->shape = state.shape;
    status = pl_gpt_layout_make(&layout, &session->shape, config,
                                PL_FOR_SAMPLING, heap, err);
    if (!status)
        status = pl_gpt_make(&session->gpt, &session->shape, &layout, heap,
                             err);
    if (!status)
        status = check_sampling(session, folder, err);
    if (!status)
        status = check_budget(session, machine, err);
    if (!status)
        status = open_device(session, err);
    if (status)
        return status;
    status = pl_checkpoint_load(session, folder, err);
    if (status)
        pl_device_close(session->device);
    return status;
}

void pl_session_close(pl_session *session)
{
    pl_device_close(session->device);
    pl_outdir_close(&session->lock);
    if (session->has_dataset)
        pl_dataset_close(&session->dataset);
}
