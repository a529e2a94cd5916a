/* session_rehearse.c: see session_rehearse.h. With weights of zero every
 * activation and every gradient is zero, so that an update changes nothing. */
#include "train/session_rehearse.h"
#include "base/file.h"
#include "model/cost.h"

#include <string.h>

/* One round of a program on tokens of zero, with controls that no step stumbles
 * over. */
static pl_status run_once(pl_session *session, pl_program_id program,
                          pl_buffer_id tokens, pl_error *err)
{
    pl_status status = pl_device_clear(session->run.device, tokens, err);
    if (!status)
        status = pl_session_run(session, program, PL_PART_LOOP, err);
    return status;
}

static pl_status run_training(pl_session *session, pl_error *err)
{
    session->controls = PL_CONTROLS_NEUTRAL;
    pl_status status = run_once(session, PL_TRAIN,
                                session->run.gpt.train_tokens, err);
    if (!status)
        status = pl_session_run(session, PL_TRAIN, PL_PART_REST, err);
    if (!status)
        status = pl_session_run(session, PL_ADD_GROUPS, PL_PART_LOOP, err);
    if (!status)
        status = pl_session_run(session, PL_ADD_GROUPS, PL_PART_REST, err);
    if (!status)
        status = pl_session_run(session, PL_UPDATE_WEIGHTS, PL_PART_LOOP, err);
    if (!status)
        status = pl_session_run(session, PL_UPDATE_WEIGHTS, PL_PART_REST, err);
    if (!status)
        status = pl_session_run(session, PL_SYNC, PL_PART_LOOP, err);
    if (!status)
        status = pl_session_run(session, PL_SYNC, PL_PART_REST, err);
    return status;
}

static pl_status run_evaluation(pl_session *session, pl_error *err)
{
    session->controls = PL_CONTROLS_NEUTRAL;
    return run_once(session, PL_EVAL, session->run.gpt.eval_tokens, err);
}

/* A prompt from the start, and the last token of a full window. */
static pl_status run_decoding(pl_session *session, pl_error *err)
{
    const pl_gpt_layout *layout = &session->run.gpt.layout;
    const size_t rows[] = { layout->prefill, 1 };
    pl_status status = PL_OK;
    for (int i = 0; i < 2 && !status; i++) {
        session->controls = PL_CONTROLS_NEUTRAL;
        session->controls.rows = (uint32_t)rows[i];
        session->controls.position = i ? (uint32_t)(session->run.shape.T - 1)
                                       : 0;
        status = run_once(session, PL_SAMPLE, session->run.gpt.sample_tokens,
                          err);
    }
    return status;
}

/* ---- files ---- */

static pl_status write_slice(pl_session *session, const char *path,
                             size_t bytes, pl_error *err)
{
    pl_file file = PL_FILE_CLOSED;
    void *slice = pl_device_host(session->run.device, session->run.gpt.slice);
    pl_status status = pl_device_read(
        session->run.device, session->run.gpt.weights[0], 0, slice, bytes, err);
    if (!status)
        status = pl_file_create(&file, path, err);
    if (status)
        return status;
    status = pl_file_append(&file, slice, bytes, err);
    if (!status)
        status = pl_file_sync(&file, err);
    if (status) {
        pl_file_discard(&file);
        return status;
    }
    pl_file_drop_cache(&file);
    status = pl_file_close(&file, err);
    if (status)
        pl_file_remove_quietly(path);
    return status;
}

/* Reads it the way a checkpoint is loaded; it must be what was written. */
static pl_status read_slice(pl_session *session, const char *path, size_t bytes,
                            pl_error *err)
{
    const char *slice = pl_device_host(session->run.device,
                                       session->run.gpt.slice);
    pl_file file = PL_FILE_CLOSED;
    pl_status status = pl_file_open_read(&file, path, err);
    for (size_t at = 0; at < bytes && !status;) {
        size_t n = bytes - at < PL_RUN_STAGE_BYTES ? bytes - at
                                                   : PL_RUN_STAGE_BYTES;
        status = pl_file_pread_exact(&file, session->run.stage, n, at, err);
        if (!status && memcmp(session->run.stage, slice + at, n) != 0)
            status = pl_fail(err, PL_E_IO,
                             "%s: what was written to this disk does not come "
                             "back the same: checkpoints would be worthless "
                             "here. Choose another out_dir",
                             path);
        if (!status)
            status = pl_device_write(session->run.device,
                                     session->run.gpt.weights[0], at,
                                     session->run.stage, n, err);
        at += n;
    }
    pl_file_abandon(&file);
    return status;
}

static pl_status save_and_load(pl_session *session, pl_error *err)
{
    const pl_gpt *gpt = &session->run.gpt;
    size_t bytes = gpt->graph.buffers[gpt->weights[0]].bytes;
    char path[PL_PATH_BYTES];
    if (bytes > gpt->layout.slice_bytes)
        bytes = gpt->layout.slice_bytes;
    pl_status status = pl_path_join(path, session->run.config->out_dir,
                                    ".rehearsal", err);
    if (!status)
        status = write_slice(session, path, bytes, err);
    if (status)
        return status;
    status = read_slice(session, path, bytes, err);
    if (status)
        pl_file_remove_quietly(path);
    else
        status = pl_file_remove(path, err);
    return status;
}

pl_status pl_rehearse(pl_session *session, pl_error *err)
{
    const pl_rates *rates = pl_machine_rates(&session->machine);
    const double seconds = pl_cost_round(&session->run.gpt, rates, PL_TRAIN) +
                           pl_cost_round(&session->run.gpt, rates, PL_EVAL) +
                           pl_cost_round(&session->run.gpt, rates, PL_SAMPLE);
    if (seconds > 1.0)
        pl_log_say(session->run.log, PL_LOG_NOTE,
                   "Rehearsing every program once, about %.0f s", seconds);
    const int trains = session->run.purpose == PL_RUN_TRAINS;
    pl_status status = PL_OK;
    if (trains)
        status = run_training(session, err);
    if (!status)
        status = run_evaluation(session, err);
    if (!status && trains)
        status = run_decoding(session, err);
    if (!status && trains && session->run.rank == 0)
        status = save_and_load(session, err);
    return status;
}
