/* resume.c: see resume.h. */
#include "store/resume.h"
#include "store/vocabulary_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

pl_status pl_resume_same_model(const pl_shape *have, const pl_shape *want,
                               const char *folder, pl_error *err)
{
    for (int i = 0; i < PL_SHAPE_FIELDS; i++) {
        pl_shape_field field = (pl_shape_field)i;
        char has[PL_VALUE_BRIEF_BYTES], wants[PL_VALUE_BRIEF_BYTES];
        pl_value held = pl_shape_value(have, field),
                 asked = pl_shape_value(want, field);
        if (pl_shape_number(have, field) == pl_shape_number(want, field))
            continue;
        pl_value_brief(&held, has);
        pl_value_brief(&asked, wants);
        return pl_fail(err, PL_E_CONFIG,
                       "%s: %s is %s in the checkpoint and %s in the config. A "
                       "checkpoint resumes the model it was made with: set it "
                       "back, or start anew with another out_dir",
                       folder, pl_key_row(pl_shape_row(field)->key)->name, has,
                       wants);
    }
    return PL_OK;
}

static pl_status check_same_data(const pl_resume *resume, const pl_run *run,
                                 pl_error *err)
{
    const pl_checkpoint_state *state = &resume->state;
    const uint64_t had[] = { state->train_tokens, state->val_tokens };
    for (int split = 0; split < 2; split++) {
        const pl_shard_set *shards = &run->dataset.shards[split];
        if (shards->n_tokens != had[split])
            return pl_fail(err, PL_E_CONFIG,
                           "%s: %s has %" PRIu64 " tokens, and had %" PRIu64
                           " when the checkpoint was written: the data is "
                           "another. Resume with what it was trained on, or "
                           "start anew from its weights: --init_from=%s and "
                           "another out_dir",
                           resume->folder, shards->name,
                           (uint64_t)shards->n_tokens, had[split],
                           pl_path_quoted(resume->folder).text);
    }
    return PL_OK;
}

/* How to go on with the bits that a run had so far. */
static const char *way_back(uint64_t arithmetic)
{
    switch (arithmetic) {
    case PL_ARITHMETIC_BASE:
        return "with PLIMSOLL_ISA=base in the environment";
    case PL_ARITHMETIC_FUSED:
        return "on a processor with AVX2 or a 64-bit ARM, without "
               "PLIMSOLL_ISA=base and with products = 'exact'";
    case PL_ARITHMETIC_TENSOR24:
        return "with its dtype and products = 'tensor24'";
    case PL_ARITHMETIC_TENSOR25:
        return "with its dtype and products = 'tensor25'";
    case PL_ARITHMETIC_AMX:
        return "with its dtype and products = 'amx'";
    default:
        return "with the version that wrote it (\"plimsoll\" in its "
               "state.json)";
    }
}

/* Other kernels round otherwise: the run would not end with the bits that it
 * would have ended with. */
static pl_status check_arithmetic(const pl_resume *resume, const pl_run *run,
                                  pl_error *err)
{
    const uint64_t had = resume->state.arithmetic;
    const pl_device_info *device = &run->gpt.layout.device;
    char text[PL_PATH_BYTES + 256];
    if (run->purpose != PL_RUN_TRAINS || had == PL_ARITHMETIC_UNSAID ||
        had == (uint64_t)device->arithmetic)
        return PL_OK;
    snprintf(text, sizeof text,
             "%s was computed in arithmetic %" PRIu64
             " (%s), the %s kernels here have %d (%s): from here on its bits "
             "are others than they would have been",
             pl_path_shown(resume->folder), had, pl_arithmetic_name(had),
             device->kernels, (int)device->arithmetic,
             pl_arithmetic_name(device->arithmetic));
    if (!run->config->allow_other_arithmetic)
        return pl_fail(err, PL_E_CONFIG,
                       "%s. Go on %s, or allow it: "
                       "--allow_other_arithmetic=True",
                       text, way_back(had));
    pl_log_say(run->log, PL_LOG_WARN, "%s. It was allowed", text);
    return PL_OK;
}

/* A worker's state is of use to itself alone. */
static pl_status check_workers(const pl_resume *resume, const pl_run *run,
                               pl_error *err)
{
    const uint64_t had = resume->state.workers,
                   now = pl_gpt_workers(&run->gpt.layout);
    const char *folder = resume->folder;
    if (had == now || run->purpose != PL_RUN_TRAINS)
        return PL_OK;
    if (had == 0)
        return pl_fail(err, PL_E_FORMAT,
                       "%s: it was trained with sync_interval = 1, and has no "
                       "state of workers, which sync_interval = %zu needs. Set "
                       "it back, or start anew from these weights: "
                       "--init_from=%s and another out_dir",
                       folder, run->gpt.layout.sync_interval,
                       pl_path_quoted(folder).text);
    return pl_fail(
        err, PL_E_FORMAT,
        "%s: it is the state of %" PRIu64
        " workers, which made their updates apart (sync_interval), "
        "and here would be %" PRIu64
        ": nobody can go on for another. Go on with `mpirun -n "
        "%" PRIu64 " plimsoll train --resume %s`, or start anew from "
        "these weights: --init_from=%s and another out_dir",
        folder, had, now, had, pl_path_quoted(run->config->out_dir).text,
        pl_path_quoted(folder).text);
}

/* ---- keys that have changed ---- */

typedef struct changes {
    char text[768];
    size_t used;
    int felt;
    int same_arithmetic; /* another word for it is felt by nobody */
} changes;

/* Models, data and tensors are compared as such; their keys are only named. */
static pl_status compare_key(changes *c, const pl_config *had,
                             const pl_config *now, pl_key key,
                             const char *folder, pl_error *err)
{
    char before[PL_VALUE_BRIEF_BYTES], after[PL_VALUE_BRIEF_BYTES];
    const char *name = pl_key_row(key)->name;
    const pl_effect effect = pl_key_row(key)->effect;
    pl_value values[2] = { pl_config_get(had, key), pl_config_get(now, key) };
    if (pl_config_same_value(had, now, key))
        return PL_OK;
    pl_value_brief(&values[0], before);
    pl_value_brief(&values[1], after);
    if (effect == PL_EFFECT_IDENTITY)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: %s is %s in the checkpoint and %s in the config: "
                       "it decides which data each update sees, so it can't "
                       "change within a run. Set it back, or start anew from "
                       "these weights: --init_from=%s and another out_dir",
                       folder, name, before, after,
                       pl_path_quoted(folder).text);
    if (key == PL_KEY_optimizer) /* m of both have one name and shape */
        return pl_fail(err, PL_E_FORMAT,
                       "%s: %s is %s in the checkpoint and %s in the config: "
                       "the moments of one are no use to the other. Set it "
                       "back, or start anew from these weights: --init_from=%s "
                       "and another out_dir",
                       folder, name, before, after,
                       pl_path_quoted(folder).text);
    c->felt |= key == PL_KEY_sync_interval || /* of as many workers */
               (effect == PL_EFFECT_NUMBERS &&
                !(key == PL_KEY_products && c->same_arithmetic));
    if (c->used < sizeof c->text)
        c->used += (size_t)snprintf(c->text + c->used, sizeof c->text - c->used,
                                    "%s%s %s -> %s", c->used ? ", " : "", name,
                                    before, after);
    return PL_OK;
}

static pl_status compare_keys(const pl_resume *resume, const pl_run *run,
                              pl_error *err)
{
    changes c = { .same_arithmetic =
                      resume->state.arithmetic ==
                      (uint64_t)run->gpt.layout.device.arithmetic };
    pl_config *had;
    pl_heap scratch = pl_heap_make((size_t)16 << 20);
    pl_status status = pl_heap_take(&scratch, &had, 1, sizeof *had, err);
    if (!status)
        status = pl_checkpoint_read_config(had, resume->folder, &scratch, err);
    for (int i = 0; i < PL_KEY_COUNT && !status; i++) {
        const pl_key_info *row = pl_key_row((pl_key)i);
        if (pl_key_is_kept((pl_key)i) && (row->commands & PL_FOR_TRAIN) &&
            row->effect != PL_EFFECT_CALL)
            status = compare_key(&c, had, run->config, (pl_key)i,
                                 resume->folder, err);
    }
    if (!status && c.used)
        pl_log_say(run->log, PL_LOG_INFO,
                   c.felt ? "changed since the checkpoint: %s (the run is "
                            "another one from here on)"
                          : "changed since the checkpoint: %s",
                   c.text);
    pl_heap_close(&scratch);
    return status;
}

/* ---- */

static pl_status refuse_checkpoint(const char *out_dir, pl_error *err)
{
    int itself = 0;
    pl_status status = pl_checkpoint_is(out_dir, &itself, err);
    if (!status && itself)
        status = pl_fail(err, PL_E_USAGE,
                         "%s is a checkpoint itself: a run goes on in the "
                         "out_dir around it, from the newest that is whole. To "
                         "go back to this one move the newer ones away; to "
                         "start another run from it: --init_from=%s and "
                         "another out_dir",
                         out_dir, pl_path_quoted(out_dir).text);
    return status;
}

pl_status pl_resume_find(pl_resume *resume, pl_run *run, pl_error *err)
{
    const char *out_dir = run->config->out_dir, *folder = resume->folder;
    pl_status status = refuse_checkpoint(out_dir, err);
    if (!status)
        status = pl_checkpoint_find(resume->folder, out_dir, PL_WANT_NEWEST,
                                    PL_SCOPE_ALL, run->log, run->heap, err);
    if (!status)
        status = pl_checkpoint_read_state(&resume->state, folder, run->heap,
                                          err);
    if (!status) /* before the model, which may differ for this reason */
        status = pl_vocabulary_check(run, folder, err);
    if (!status)
        status = pl_resume_same_model(&resume->state.shape, &run->shape, folder,
                                      err);
    if (!status)
        status = check_same_data(resume, run, err);
    if (!status)
        status = check_arithmetic(resume, run, err);
    if (!status)
        status = check_workers(resume, run, err);
    if (!status)
        status = compare_keys(resume, run, err);
    if (!status)
        status = pl_checkpoint_check(run, folder, err);
    return status;
}

pl_status pl_resume_load(const pl_resume *resume, pl_run *run, pl_error *err)
{
    const pl_checkpoint_state *state = &resume->state;
    pl_metrics_past past = state->metrics;
    past.samples = pl_samples_due(run->config, state->step);
    past.tasks = pl_task_lines_due(run->config, state->step) ? run->tasks : 0;
    pl_status status = pl_checkpoint_load(run, resume->folder, err);
    if (!status && run->purpose == PL_RUN_TRAINS)
        status = pl_metrics_open(&run->metrics, run->config->out_dir,
                                 resume->folder, &past, run->log, run->heap,
                                 err);
    if (status)
        return status;
    run->step = state->step;
    run->skipped = state->skipped;
    run->best_val_loss = state->best_val_loss;
    run->best_val_bpb = state->best_val_bpb;
    run->val_loss = state->val_loss;
    run->val_bpb = state->val_bpb;
    if (run->scaler.adaptive && state->scaler.adaptive)
        run->scaler = state->scaler;
    if (run->purpose == PL_RUN_TRAINS)
        status = pl_resume_links(&run->outdir, state->step, run->heap, err);
    if (status)
        return status;
    pl_log_say(run->log, PL_LOG_INFO,
               "Resuming training from %s at iteration %" PRIu64,
               resume->folder, state->step);
    return PL_OK;
}
