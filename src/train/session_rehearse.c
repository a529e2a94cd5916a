/* session_rehearse.c: see rehearse.h. With weights of zero every activation and
 * every gradient is zero, so that an update changes nothing. */
#include "train/session_rehearse.h"
#include "base/file.h"
#include "model/cost.h"

#include <string.h>

/* Tokens of zero for a program, and scalars that no step stumbles over. */
static void set_scene(pl_session *session, pl_buffer_id tokens)
{
    const pl_gpt *gpt = &session->run.gpt;
    *pl_session_scalars(session) = PL_SCALARS_NEUTRAL;
    if (tokens != PL_NO_BUFFER)
        memset(pl_device_host(session->run.device, tokens), 0,
               gpt->graph.buffers[tokens].bytes);
}

static void run_training(pl_session *session)
{
    set_scene(session, session->run.gpt.train_tokens);
    pl_device_run(session->run.device, PL_TRAIN, PL_PART_LOOP);
    pl_device_run(session->run.device, PL_TRAIN, PL_PART_REST);
    set_scene(session, PL_NO_BUFFER);
    pl_device_run(session->run.device, PL_UPDATE_WEIGHTS, PL_PART_REST);
}

static void run_evaluation(pl_session *session)
{
    set_scene(session, session->run.gpt.eval_tokens);
    pl_device_run(session->run.device, PL_EVAL, PL_PART_LOOP);
}

/* A prompt from the start, and the last token of a full window. */
static void run_decoding(pl_session *session)
{
    const pl_gpt_layout *layout = &session->run.gpt.layout;
    const size_t rows[] = { layout->prefill, 1 };
    for (int i = 0; i < 2; i++) {
        set_scene(session, session->run.gpt.sample_tokens);
        pl_scalars *scalars = pl_session_scalars(session);
        scalars->rows = (uint32_t)rows[i];
        scalars->position = i ? (uint32_t)(session->run.shape.T - 1) : 0;
        pl_device_run(session->run.device, PL_SAMPLE, PL_PART_LOOP);
    }
}

/* ---- files ---- */

static pl_status write_slice(pl_session *session, const char *path,
                             size_t bytes, pl_error *err)
{
    pl_file file = PL_FILE_CLOSED;
    void *slice = pl_device_host(session->run.device, session->run.gpt.slice);
    pl_device_read(session->run.device, session->run.gpt.weights[0], 0, slice,
                   bytes);
    pl_status status = pl_file_create(&file, path, err);
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
            pl_device_write(session->run.device, session->run.gpt.weights[0],
                            at, session->run.stage, n);
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
    const pl_rates *rates = &session->machine.rates;
    const double seconds = pl_cost_round(&session->run.gpt, rates, PL_TRAIN) +
                           pl_cost_round(&session->run.gpt, rates, PL_EVAL) +
                           pl_cost_round(&session->run.gpt, rates, PL_SAMPLE);
    if (seconds > 1.0)
        pl_log_say(session->run.log, PL_LOG_NOTE,
                   "Rehearsing every program once, about %.0f s", seconds);
    if (session->run.purpose == PL_RUN_TRAINS)
        run_training(session);
    run_evaluation(session);
    if (session->run.purpose != PL_RUN_TRAINS)
        return PL_OK;
    run_decoding(session);
    return save_and_load(session, err);
}
